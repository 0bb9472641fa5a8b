"""Gymnasium knows the environments as soon as it and this package are imported, in either order; importing this package
imports neither Gymnasium nor an environment.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

GYMNASIUM = "gymnasium"


class Entry(NamedTuple):
    """module: where the classes are; single, vector: their names there (`BatchEnv` and `BatchVectorEnv`)."""

    module: str
    single: str
    vector: str


ENVIRONMENTS: dict[str, Entry] = {
    "escala/OffReservation-v0": Entry("escala.envs.rjms.off_reservation", "OffReservation", "OffReservationVector"),
    "escala/Scheduling-v0": Entry("escala.envs.rjms.scheduling", "Scheduling", "SchedulingVector"),
    "escala/Slots-v0": Entry("escala.envs.slots", "Slots", "SlotsVector"),
}
"""All registered names. An environment's version moves when any number of it moves."""


POLICIES = {"agent:": "escala.loading", "shield:": "escala.loading"}
"""How names of policies begin that stand in folders of trained agents -> the module whose `policy_named` makes them and
whose `digests_named` hashes what decides: floors below it take such names without knowing agents."""


def is_trained(name: Any) -> bool:
    """Is it such a name?"""
    return isinstance(name, str) and name.startswith(tuple(POLICIES))


def trained(name: str, seed: int = 0) -> Any:
    """The policy of such a name; EscalaError where the folder holds none. seed: of its draws, if it draws (`draws`)."""
    return _door(name).policy_named(name, seed)


def trained_digests(name: str) -> dict[str, str]:
    """SHA-256 of what decides under such a name, by path; EscalaError where the folder holds none."""
    found: dict[str, str] = _door(name).digests_named(name)
    return found


def _door(name: str) -> ModuleType:
    return import_module(next(module for begin, module in POLICIES.items() if name.startswith(begin)))


def register(gymnasium: Any) -> None:
    """Tell Gymnasium about them (again, if need be)."""
    for name, entry in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point=f"{entry.module}:{entry.single}",
                vector_entry_point=f"{entry.module}:{entry.vector}",
                disable_env_checker=False,
            )


def register_when_imported() -> None:
    """Now, if Gymnasium is imported already, else right after it is."""
    known = sys.modules.get(GYMNASIUM)
    if hasattr(known, "registry"):
        register(known)
    else:
        sys.meta_path.insert(0, _Waiting())


class _Waiting:
    """Finds Gymnasium as it is found without this, until it is imported. (A finder without its base class:
    `importlib.abc` takes longer to import than all that this package needs.)"""

    def __init__(self) -> None:
        self._looking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != GYMNASIUM or self._looking:
            return None
        self._looking = True
        try:
            spec = find_spec(name)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Registering(spec.loader, self)  # type: ignore[assignment]
        return spec


class _Registering:
    """Gymnasium's own loader, and then the names."""

    def __init__(self, own: Any, finder: _Waiting) -> None:
        self._own, self._finder = own, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        register(module)
