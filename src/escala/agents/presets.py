"""Hyper-parameters as data. `printed`: as R3 gives them; `tuned`: what learns well in little time here.

algorithm: whose settings these are. learn: arguments of stable-baselines3's algorithm. num_envs: simulations in the
batch. environment: options of the environment (those that a user gives win). drawn: further ones, of the job lists that
are drawn where no workload is given. network: sizes of the hidden layers of policy and value (of the extractor
slot-scorer: of its embedding and its context, by default 16 and 32). extractor: a name of `networks.EXTRACTORS` or
None. separate: policy and value have extractors of their own. decay: the learning rate falls to 0. normalise: rewards
are divided by a running deviation of returns. lean: (action, preference) added to that action's logit before training,
None: no preference. relu: hidden layers of ReLU instead of tanh. ordered: the choices are in rising order and are drawn
near each other, see `networks.ordered`; the choice where training begins. sampled: `Agent.policy` draws actions, else
it takes the greedy ones (which do better where a teacher was imitated that looks ahead).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from escala.errors import EscalaError


@dataclass(frozen=True)
class Preset:
    """See above."""

    learn: Mapping[str, Any]
    algorithm: str = "maskable-ppo"
    num_envs: int = 64
    environment: Mapping[str, Any] = field(default_factory=dict)
    drawn: Mapping[str, Any] = field(default_factory=dict)
    network: tuple[int, ...] = (64, 64)
    extractor: str | None = None
    separate: bool = False
    decay: bool = True
    normalise: bool = True
    lean: tuple[int, float] | None = None
    relu: bool = False
    ordered: int | None = None
    sampled: bool = True

    def but(
        self, learn: Mapping[str, Any] | None = None, environment: Mapping[str, Any] | None = None, **others: Any
    ) -> Preset:
        """The same, but for these settings of the learner, these options of the environment and these other fields."""
        learnt, played = {**self.learn, **(learn or {})}, {**self.environment, **(environment or {})}
        return replace(self, learn=learnt, environment=played, **others)


OFF_RESERVATION = "escala/OffReservation-v0"
SCHEDULING = "escala/Scheduling-v0"
SLOTS = "escala/Slots-v0"

ORDERED_HOLDS = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
"""Shares of the walltime, close enough that a neighbour is a small change."""


def _convolutional() -> dict[tuple[str, str], Preset]:
    """R2's A2C by its network; the text prints no setting of the learner, so these are ours for all of them: on images
    many small updates (80 decisions each, Adam) learn most."""
    learn = {"n_steps": 16, "gamma": 0.99, "gae_lambda": 0.95, "learning_rate": 3e-3, "ent_coef": 0.002, "vf_coef": 0.5}
    often = learn | {"n_steps": 5, "learning_rate": 3e-4, "use_rms_prop": False}
    drawn = {"model": "cpu-memory", "window": [50, 200], "limit": 200}
    image = {"slots": 5, "observation": "image", "dtype": "float32", "skip": "forced"}
    compact = {"slots": 5, "observation": "compact", "skip": "forced"}
    seen: dict[str, Any] = {
        "algorithm": "a2c",
        "learn": often,
        "environment": image,
        "drawn": drawn,
        "num_envs": 16,
        "relu": True,
    }
    scorer: dict[str, Any] = {
        "algorithm": "a2c",
        "learn": learn,
        "environment": compact,
        "network": (),
        "extractor": "slot-scorer",
    }
    out = {(SLOTS, "fc"): Preset(**seen, network=(64,))}
    for name in ("conv3-16", "conv3-32", "conv3-16-pool", "conv3-32-pool"):
        out[SLOTS, name] = Preset(**seen, network=(), extractor=name, separate=True)
    out[SLOTS, "a2c"] = Preset(**scorer, drawn=drawn)
    out[SLOTS, "a2c-list"] = Preset(**scorer)  # for a single list
    return out


PPO = {
    "n_steps": 128,
    "batch_size": 1024,
    "n_epochs": 4,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "learning_rate": 1e-3,
    "ent_coef": 0.005,
    "vf_coef": 0.5,
}
TUNED = Preset(PPO)
PRINTED = Preset(PPO | {"learning_rate": 5e-4}, num_envs=16, network=(), separate=True, decay=False, normalise=False)
"""R3's two, but for its networks and horizons."""
ORDERED = TUNED.but(
    {"batch_size": 2048, "gamma": 0.995, "ent_coef": 0.0}, network=(), extractor="queue-and-running", separate=True
)
SCORER = Preset(
    PPO | {"n_steps": 64, "batch_size": 2048, "gae_lambda": 0.9, "learning_rate": 3e-3, "ent_coef": 0.003},
    num_envs=256,
    environment={"observation": "compact", "skip": "forced"},
    network=(),
    extractor="slot-scorer",
)
"""What scores the jobs in the slots one by one."""
SMALL = {"batch_size": 512, "clip_range": 0.1}
AFTER_TEACHER = SCORER.but(
    {
        "n_steps": 128,
        "batch_size": 4096,
        "gamma": 1.0,
        "gae_lambda": 0.97,
        "clip_range": 0.1,
        "learning_rate": 6e-4,
        "ent_coef": 0.0,
    },
    network=(32, 64),
    sampled=False,
)
"""PPO that goes on from what slotted agents imitated; small steps keep it."""
COMPACT = Preset(
    PPO | {"n_steps": 64, "batch_size": 192, "gamma": 1.0, "clip_range": 0.1, "ent_coef": 0.01, "max_grad_norm": 0.5},
    algorithm="ppo",
    num_envs=24,
    environment={"placement": "start-now", "observation": "compact"},
    network=(20,),
    decay=False,
    relu=True,
)
"""R1's learner on numbers in place of its image."""
START_NOW, RESERVE = {"placement": "start-now"}, {"placement": "reserve"}

PRESETS: dict[tuple[str, str], Preset] = {
    (OFF_RESERVATION, "printed"): PRINTED.but(
        {"n_steps": 1440, "batch_size": 1440}, {"action": "count", "observation": "snapshots"}, extractor="history-lstm"
    ),
    (OFF_RESERVATION, "tuned"): TUNED.but(environment={"action": "hold", "observation": "compact"}),
    (OFF_RESERVATION, "ordered"): ORDERED.but(  # begins as the rule hold:0.25
        environment={
            "action": "hold",
            "observation": "compact",
            "holds": ORDERED_HOLDS,
            "stretch_cost": 0.15,
            "window": "drain",
        },
        ordered=ORDERED_HOLDS.index(0.25),
    ),
    (SCHEDULING, "printed"): PRINTED.but(
        {"n_steps": 360, "batch_size": 180, "n_epochs": 6, "gamma": 0.97}, extractor="three-grus"
    ),
    (SCHEDULING, "tuned"): TUNED,
    (SCHEDULING, "queue"): TUNED.but(
        {"gamma": 0.999},
        {
            "warm": "easy",
            "shutdown": "never",
            "day_s": 7 * 86400.0,
            "objective": "bounded-slowdown",
            "rho": 0.0,
            "tau": 0.0,
            "guard_s": 2 * 86400.0,
            "waits": True,
        },
        num_envs=16,
    ),
    (SLOTS, "printed"): COMPACT.but(
        {"clip_range_vf": 0.1},  # as the author's library clips, by default
        {"placement": "reserve", "observation": "image", "dtype": "float32", "reward": "mean", "skip": "none"},
        normalise=False,
    ),
    (SLOTS, "printed-compact"): COMPACT,
    # to go on from a teacher: little wandering
    (SLOTS, "taught"): SCORER.but(SMALL | {"learning_rate": 1e-3}, START_NOW, num_envs=64),
    # fresh lists: reservations empty the slots: the agent sees more of the queue
    (SLOTS, "reserve"): SCORER.but(environment=RESERVE),
    (SLOTS, "taught-reserve"): SCORER.but(  # the same after a teacher: larger steps forget it
        {"gae_lambda": 0.95, "clip_range": 0.1, "learning_rate": 6e-4, "ent_coef": 0.0005}, RESERVE
    ),
    # after one that looks ahead over the whole queue
    (SLOTS, "look-ahead"): AFTER_TEACHER.but(environment={"slots": 32} | START_NOW),
    # no end of arrivals is known: horizons of many lengths, the longest cut; hold-pile is imitated
    (SLOTS, "open"): AFTER_TEACHER.but(
        {"gamma": 0.998, "learning_rate": 2e-4},
        {"slots": 32, "queue": "shortest"} | START_NOW,
        drawn={"window": [50, 100, 200, 400, 1000], "limit": 1200},
    ),
    (SLOTS, "one-list"): SCORER.but(  # a single list, from nothing; for PPO without a mask
        environment=RESERVE, algorithm="ppo", network=(64,), extractor=None, relu=True
    ),
    (SLOTS, "planned"): SCORER.but(  # a single list, after a plan: longer steps lose it in one seed of six
        SMALL | {"learning_rate": 3e-5, "ent_coef": 0.0}, num_envs=64, network=(128,), extractor=None, relu=True
    ),
    (SLOTS, "cpu-memory-taught"): AFTER_TEACHER.but(  # R2: after a teacher, windows of 50 steps whose end is seen
        {"clip_range": 0.2, "learning_rate": 2e-3, "ent_coef": 0.001},
        {"slots": 5},
        drawn={"model": "cpu-memory", "window": 50, "arrivals_end": 50},
    ),
    (SLOTS, "cpu-memory"): SCORER.but(  # R2: short windows to their end beside long ones that are cut
        {"ent_coef": 0.005}, {"slots": 5}, drawn={"model": "cpu-memory", "window": [50, 200], "limit": 200}
    ),
    **_convolutional(),
    (SLOTS, "tuned"): SCORER.but({"ent_coef": 0.01}, START_NOW),
}
"""(environment, name) -> preset."""

GENERAL = Preset(
    {name: PPO[name] for name in ("n_steps", "batch_size", "n_epochs", "gamma", "learning_rate", "ent_coef")}
)
"""For environments without presets of their own."""


def preset_of(env_id: str, name: str) -> Preset:
    """The preset of this name; EscalaError for an unknown one."""
    if (env_id, name) in PRESETS:
        return PRESETS[env_id, name]
    known = sorted(n for e, n in PRESETS if e == env_id)
    if not known and name == "tuned":
        return GENERAL
    raise EscalaError(f"unknown preset {name!r} for {env_id}: use one of {', '.join(known or ['tuned'])}")
