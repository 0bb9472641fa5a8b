"""Is a scheduler Slurm's? Asked in every run, so nothing else is loaded for it."""

from __future__ import annotations

from typing import Any

NAME, FCFS = "slurm", "fcfs"


class Rules:
    """What asks for Slurm's rules by being what it is (`escala.slurm.Settings`)."""


def is_slurm(name: Any) -> bool:
    """Is this scheduler Slurm's rules: "slurm", "slurm:KEY=VALUE...", or `Settings`?"""
    return isinstance(name, Rules) or (isinstance(name, str) and name.partition(":")[0] == NAME)
