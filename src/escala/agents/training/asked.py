"""What is asked of a training: checked before anything is made, and as its manifest and its checkpoints keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from escala.agents import checkpoint
from escala.agents.imitation import teaching
from escala.agents.networks.build import RLLIB, check_algorithm, check_request
from escala.agents.presets import Preset, preset_of
from escala.agents.training import tracking
from escala.agents.training.validation import check_days
from escala.errors import EscalaError
from escala.extras import need
from escala.policies.rollout_names import rollout_of


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments of `train`."""

    env_id: str
    workload: Any
    platform: Any
    algorithm: str | None
    steps: int
    seed: int
    out: str | Path | None
    resume: bool
    progress: Callable[[float], None] | None
    preset: str
    num_envs: int | None
    minutes: float | None
    learn: Mapping[str, Any] | None
    teacher: Any
    imitate: str | None
    curve: bool | None
    validation: Sequence[Any] | None
    patience: int
    snapshots: Sequence[int]
    track: str | None
    env_options: Mapping[str, Any]

    def checked(self) -> dict[str, Any]:
        """The request. EscalaError where arguments are unknown or contradict each other, or the folder holds something
        else."""
        if self.algorithm is not None:
            check_algorithm(self.algorithm)
        tracking.check(self.track)
        if self.lessons is not None:
            teaching.check(self.lessons)
        check_request(self.steps, self.seed, self.num_envs, self.learn)
        check_days(self.env_id, self.workload, self.validation, self.patience)
        if self.steps < (1 if self.lessons is None else 0):
            raise EscalaError(f"steps={self.steps}: give at least 1 (0: imitate the teacher only)")
        if self.by_rllib:
            self._check_rllib()
        checkpoint.check_folder(self.folder, self.resume)
        self._check_snapshots()
        return self.request

    @cached_property
    def lessons(self) -> Any:
        """Whom to imitate, None without a teacher."""
        return self.teacher if self.imitate is None else _imitated(self.imitate, self.teacher)

    @cached_property
    def chosen(self) -> Preset:
        """The preset."""
        return preset_of(self.env_id, self.preset)

    @property
    def by_rllib(self) -> bool:
        """Is it RLlib that learns?"""
        return (self.algorithm or self.chosen.algorithm) in RLLIB

    @property
    def folder(self) -> Path | None:
        """Where the agent is kept."""
        return None if self.out is None else Path(self.out)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The environment's."""
        return {**self.chosen.environment, **(self.chosen.drawn if self.workload is None else {}), **self.env_options}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The learner's."""
        return {**self.chosen.learn, **(self.learn or {})}

    @cached_property
    def request(self) -> dict[str, Any]:
        """What is asked, as JSON keeps it; a checkpoint belongs to one alone."""
        days = self.validation
        return {
            "env_id": self.env_id,
            "env_options": {k: _plain(v, k) for k, v in self.options.items()},
            "learn": {k: _plain(v, k) for k, v in self.settings.items()},
            "workload": _about(self.workload),
            "algorithm": self.algorithm or self.chosen.algorithm,
            "preset": self.preset,
            "num_envs": self.num_envs or self.chosen.num_envs,
            "steps": self.steps,
            "seed": self.seed,
            "teacher": _teacher(self.lessons),
            "validation_days": None
            if days is None
            else checkpoint.about_days(days, "validation") | {"patience": self.patience},
        }

    def _check_rllib(self) -> None:
        """EscalaError for what RLlib's trainings do not know, and where RLlib is not installed."""
        given = {"resume": self.resume, "teacher": self.lessons, "curve": self.curve, "validation": self.validation}
        for name, value in (given | {"snapshots": self.snapshots, "track": self.track}).items():
            if value is not None and value is not False and value != ():
                raise EscalaError(
                    f"{name} means nothing to RLlib's algorithms: leave it out, or train with maskable-ppo"
                )
        need(f"algorithm {RLLIB[0]}", "rllib")

    def _check_snapshots(self) -> None:
        snapshots, steps = self.snapshots, self.steps
        whole_numbers = isinstance(snapshots, Sequence) and all(
            isinstance(n, int) and not isinstance(n, bool) for n in snapshots
        )
        if not whole_numbers or any(not 0 < n <= steps for n in snapshots):
            raise EscalaError(f"snapshots={snapshots!r}: give numbers of decisions from 1 to steps={steps}")
        if snapshots and self.folder is None:
            raise EscalaError("snapshots need out: the folder in which they are kept")


def _imitated(name: str, teacher: Any) -> Mapping[str, Sequence[float]]:
    """The teacher that a policy's name stands for."""
    if teacher is not None:
        raise EscalaError("train: imitate and teacher both name whom to imitate: give one of them")
    policy = rollout_of(name, 0)
    if policy is None or "=" in name:
        raise EscalaError(f"train: cannot imitate {name!r}: use rollout or rollout:128, or see teacher")
    return {"rollout": [policy.futures]}


def _plain(value: Any, what: str) -> Any:
    """A value as JSON keeps it; EscalaError where it cannot."""
    if isinstance(value, tuple | list):
        return [_plain(v, what) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise EscalaError(f"option {what}={value!r}: give numbers, texts or lists of them")


def _teacher(teacher: Any) -> Any:
    """A teacher as JSON keeps it."""
    if isinstance(teacher, Mapping):
        return {str(name): _plain(list(value), "teacher") for name, value in teacher.items()}
    return None if teacher is None else _plain(list(teacher), "teacher")


def _about(workload: Any) -> dict[str, Any]:
    """What a manifest says of the workload."""
    if isinstance(workload, list | tuple):
        return checkpoint.about_days(workload)
    if isinstance(workload, str | Path):
        return {"path": str(workload)}
    return {} if workload is None else {"name": workload.name, "source": workload.source, "jobs": len(workload)}
