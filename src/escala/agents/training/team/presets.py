"""Settings with which teams learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class TeamPreset:
    """learn: arguments of MaskablePPO; num_envs: games of each learner; options: of the game (those that a user gives
    win); decay: the learning rate falls to 0; relative: rewards weigh 1 / (what SJF loses on the list); teacher: the
    rule to imitate first, {"rollout": futures} for look-ahead, or None; rounds: rollouts of an agent before the turn to
    learn goes on; clock: agents are told when the arrivals of drawn lists end."""

    learn: Mapping[str, Any]
    num_envs: int
    options: Mapping[str, Any] = field(default_factory=dict)
    decay: bool = True
    relative: bool = True
    teacher: str | Mapping[str, int] | None = "dense"
    rounds: int = 1
    clock: bool = False


PRESETS = {
    "tuned": TeamPreset(
        learn={
            "n_steps": 64, "batch_size": 2048, "n_epochs": 4, "gamma": 0.99, "gae_lambda": 0.9, "clip_range": 0.2,
            "learning_rate": 5e-4, "ent_coef": 0.0, "vf_coef": 0.5,
        },
        num_envs=64,
        options={"skip": "forced", "lists": 1024, "limit": 240},
    ),
    "printed": TeamPreset(
        learn={
            "n_steps": 200, "batch_size": 64, "n_epochs": 10, "gamma": 0.99, "gae_lambda": 0.95, "clip_range": 0.2,
            "learning_rate": 3e-3, "ent_coef": 0.0, "vf_coef": 0.5,
        },
        num_envs=8,
        options={"limit": 200},
        decay=False,
        relative=False,
        teacher=None,
    ),
}  # fmt: skip
PRESETS["look-ahead"] = replace(
    PRESETS["tuned"], options={"skip": "forced", "lists": 1024}, teacher={"rollout": 16}, clock=True
)
PRESETS["from-nothing"] = replace(
    PRESETS["tuned"], learn={**PRESETS["tuned"].learn, "learning_rate": 3e-3, "ent_coef": 0.01}, teacher=None
)
"""`printed`: R4's tables 1 and 2 (n_steps: one episode of 200 units; 8 games, which it does not tell); `tuned`: what
learns well in little time here; `look-ahead`: its teacher is look-ahead; steps=0 imitates only; `from-nothing`: no
teacher, so larger steps (the rate falls to 0) and some entropy; it needs a team for each load: with shared parameters
and a million decisions 3 x 1 comes within 2 % of SJF by sampled actions (best look, one seed, loads 50 and 90 %), while
one team for seven loads stays 11 % above it."""
