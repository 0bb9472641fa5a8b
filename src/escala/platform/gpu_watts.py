"""Watts of GPUs, beside those of the nodes that they are in: what a power profile says of a GPU idle and computing, and
what follows for each node.

A GPU computes while a job that asked for it runs; while its node is on and no job has it, it idles; while its node is
off or switches, it draws nothing of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted

if TYPE_CHECKING:
    from escala.platform.platform import Platform
    from escala.platform.power import PowerProfile

GPU = "gpu"  # the kind of resource; of a kind of GPUs `gpu:KIND`
IDLE, COMPUTING = FIELDS = ("gpu_idle_w", "gpu_computing_w")
"""Of a profile: one number for every GPU, or a table kind -> number."""
Watts = tuple[tuple[str, float], ...]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def watts_of(told: Any, where: str, most: float) -> Watts:
    """(kind, watts of one GPU) of each kind, by kind; the kind "": every GPU. EscalaError for what is none."""
    if isinstance(told, tuple):  # as kept
        told = dict(told)
    entries = told if isinstance(told, Mapping) else {"": told}
    for kind, value in entries.items():
        number: Any = value if isinstance(value, Real) and not isinstance(value, bool) else -1.0
        if not isinstance(kind, str) or not 0 <= number <= most:
            of = f" of {quoted(kind)}" if kind else ""
            raise EscalaError(f"{where}{of} is {quoted(value)}; give a number >= 0, or a table of them by kind of GPU")
    return tuple(sorted((kind, float(value)) for kind, value in entries.items()))


def check_pair(idle: Watts, computing: Watts, where: str) -> None:
    """EscalaError where one is said and not the other, or a GPU idles at more than it computes at."""
    kinds = [{kind for kind, _ in one} for one in (idle, computing)]
    if kinds[0] != kinds[1]:
        kind = min(kinds[0] ^ kinds[1])
        lacks = FIELDS[kind in kinds[0]]
        of = f" of GPUs of kind {quoted(kind)}" if kind else ", as one number"
        raise EscalaError(f"{where}: {lacks}{of} is missing; give {IDLE} and {COMPUTING}, for the same GPUs")
    for (kind, low), (_, high) in zip(idle, computing, strict=True):
        if low > high:
            of = f" of kind {quoted(kind)}" if kind else ""
            raise EscalaError(
                f"{where}: an idle GPU{of} takes {low:g} W, more than one that computes ({high:g} W); are they swapped?"
            )


def as_told(watts: Watts) -> float | dict[str, float]:
    """As a file has it: one number, or a table."""
    return watts[0][1] if [kind for kind, _ in watts] == [""] else dict(watts)


@dataclass(frozen=True)
class Drawn:
    """What the nodes of a platform draw, GPUs that idle with them.

    profiles, profile_of: as those of the platform, each idling and computing node with its idle GPUs. gpu_idle_w: what
    is theirs of that, float64 [profiles]. more_w: what a GPU draws more while it computes, float64 [nodes] each: `gpu`
    for a job that takes any (the mean of the node's), `gpu:KIND` for one that asks for that kind. Without watts of GPUs
    the platform's own, and no `more_w`.
    """

    profiles: tuple[PowerProfile, ...]
    profile_of: Ints
    gpu_idle_w: Floats
    more_w: dict[str, Floats] = field(default_factory=dict)

    @property
    def counted(self) -> bool:
        """Does some GPU have watts?"""
        return bool(self.more_w)

    def gpus_j(self, held: Mapping[str, Ints], node: Ints, us: Ints) -> Floats:
        """What GPUs draw more while they are held, J: so many of each kind on this node for so long, [rows] each. A GPU
        of a kind stands under `gpu` too."""
        found, of_kinds = np.zeros(len(node)), np.zeros(len(node), np.int64)
        for kind, count in held.items():
            if kind != GPU and kind in self.more_w:
                found += count * (us / 1e6) * self.more_w[kind][node]
                of_kinds += count
        if GPU in held:
            found += np.maximum(held[GPU] - of_kinds, 0) * (us / 1e6) * self.more_w[GPU][node]
        return found


def kinds_of(platform: Platform) -> dict[str, Ints]:
    """Kind -> GPUs of each node, int64 [nodes]; "": those whose kind is not known."""
    named = {kind.partition(":")[2]: n for kind, n in platform.resources.items() if kind.startswith(f"{GPU}:")}
    if GPU not in platform.resources:
        return named
    rest = platform.resources[GPU] - sum(named.values(), np.zeros(platform.n_nodes, np.int64))
    return {**named, "": np.maximum(rest, 0)}


def drawn_of(platform: Platform) -> Drawn:
    """See `Drawn`. EscalaError for a node with GPUs of which its profile, that gives watts of some, says nothing."""
    nodes, plain = platform.n_nodes, Drawn(platform.profiles, platform.profile_of, np.zeros(len(platform.profiles)))
    if not any(one.gpu_idle_w for one in platform.profiles):
        return plain
    idle, busy, count = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes, np.int64)
    telling = np.array([bool(one.gpu_idle_w) for one in platform.profiles])[platform.profile_of]
    more: dict[str, Floats] = {}
    for kind, have in kinds_of(platform).items():
        low, high = (_of_kind(platform, kind, name) for name in FIELDS)
        lacks = np.flatnonzero(telling & (have > 0) & np.isnan(low))
        if len(lacks):
            raise _untold(platform, int(lacks[0]), kind)
        low, high = (np.where(telling & (have > 0), one, 0.0) for one in (low, high))
        idle, busy, count = idle + have * low, busy + have * high, count + have
        more[f"{GPU}:{kind}" if kind else GPU] = high - low
    if not busy.any():
        return plain
    more[GPU] = (busy - idle) / np.maximum(count, 1)
    pairs, of = np.unique(np.stack([platform.profile_of.astype(float), idle]), axis=1, return_inverse=True)
    profiles = tuple(_with(platform.profiles[int(p)], float(w)) for p, w in pairs.T)
    return Drawn(profiles, of.ravel().astype(np.int64), pairs[1], more)


def _of_kind(platform: Platform, kind: str, name: str) -> Floats:
    """Watts of a GPU of this kind in each node, NaN where its profile says none."""
    found = []
    for one in platform.profiles:
        told = dict(getattr(one, name))
        found.append(told.get(kind, told.get("", np.nan)))
    return np.array(found, float)[platform.profile_of]


def _with(profile: PowerProfile, idle_w: float) -> PowerProfile:
    """The profile of a node with its idle GPUs."""
    watts = {name: getattr(profile, name) + idle_w for name in ("idle_w", "computing_w")}
    return replace(profile, name=f"{profile.name}+{idle_w:g}", **watts, gpu_idle_w=(), gpu_computing_w=())


def _untold(platform: Platform, node: int, kind: str) -> EscalaError:
    profile = platform.profiles[platform.profile_of[node]]
    of = f"GPUs of kind {quoted(kind)}" if kind else "GPUs of no kind"
    known = ", ".join(told or "any" for told, _ in profile.gpu_idle_w)
    return EscalaError(
        f"platform {quoted(platform.name)}: node {quoted(platform.names[node])} has {of}, and power profile "
        f"{quoted(profile.name)} gives watts of {known}: add them to its {IDLE} and {COMPUTING}"
    )
