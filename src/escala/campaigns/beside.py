"""Paths in the file of a campaign: those that are relative begin in its folder, wherever the command is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from escala.policies.files import AGENT
from escala.policies.queues import ESTIMATES, within_folder
from escala.policies.slurm_names import slurm_within
from escala.policies.tuned import PREFIX as POLICY
from escala.prediction.folder import PREFIX as MODEL
from escala.registry import is_trained
from escala.slurm.named import is_slurm

NAMES = ("schedulers", "shutdowns")


def beside(told: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """What a file in this folder says, with its paths as they are found from the current folder; and such name of a
    policy or a model -> as it is written. What is of a wrong kind stays as it is."""
    found, written = dict(told), dict[str, str]()

    def named(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        there = _policy(name, folder)
        written[there] = name
        return there

    found = _each(found, "logs", lambda log: _log(log, folder))
    for key in ("platforms", "power"):
        found = _each(found, key, lambda spec: _file(spec, folder))
    for key in NAMES:
        found = _each(found, key, named)
    if isinstance(options := found.get("options"), Mapping):
        chosen = dict(options)
        for key in ESTIMATES:
            chosen = _each(chosen, key, named)
        found["options"] = chosen
    return found, written


def _each(told: dict[str, Any], key: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """With a value changed, or each entry of a list of them."""
    if key not in told:
        return told
    value = told[key]
    return told | {key: [change(one) for one in value] if isinstance(value, list) else change(value)}


def _log(log: Any, folder: Path) -> Any:
    if isinstance(log, Mapping):
        return _each(dict(log), "path", lambda path: _log(path, folder))
    return os.path.join(folder, log) if isinstance(log, str) and log else log


def _file(spec: Any, folder: Path) -> Any:
    """A platform or a power profile: a name, or a file, with #N behind it perhaps."""
    if not isinstance(spec, str):
        return spec
    there = os.path.join(folder, spec)
    path, mark, _ = spec.rpartition("#")
    files = (spec, path) if mark else (spec,)
    return there if any(os.path.isfile(os.path.join(at, one)) for at in (folder, "") for one in files) else spec


def _policy(name: str, folder: Path) -> str:
    """The name of a scheduler, a shutdown policy or an estimate."""
    if is_trained(name) and AGENT in name:
        at = name.rindex(AGENT) + len(AGENT)
        return name[:at] + os.path.join(folder, name[at:])
    for prefix in (POLICY, MODEL):
        if name.startswith(prefix):
            return prefix + os.path.join(folder, name.removeprefix(prefix))
    return slurm_within(name, folder) if is_slurm(name) else within_folder(name, folder)
