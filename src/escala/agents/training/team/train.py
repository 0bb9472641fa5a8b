"""Training a team: independent PPO agents in turns, all at once, or with one network for all; checkpoints of the whole
team."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from escala.agents import checkpoint
from escala.agents.imitation import team_teaching
from escala.agents.networks.build import RLLIB, check_request, pin_threads, silence, taken_by
from escala.agents.networks.pair_scorer import MaskedPairPolicy
from escala.agents.team import FORMAT, Team
from escala.agents.training.team.buffer import TimedBuffer
from escala.agents.training.team.presets import PRESETS, TeamPreset
from escala.agents.training.team.validation import LOOKS, Judge, Looks
from escala.agents.training.team.view import NetworksView, parts_of, relative_weights
from escala.envs.forward import Shape
from escala.envs.slots.team.batch import MultiBatch
from escala.envs.slots.team.options import MultiOptions
from escala.errors import EscalaError
from escala.extras import need
from escala.writing import claimed, remove

MODES = ("turns", "simultaneous", "shared")


class _Quiet(BaseCallback):
    def _on_step(self) -> bool:
        return True


class _Learner:
    """One network, its games and its PPO. team: all learners (this one will be among them); number: which of them it
    is."""

    def __init__(
        self,
        batch: MultiBatch,
        agent: Any,
        team: list[_Learner],
        weight: Any,
        preset: TeamPreset,
        learn: Any,
        seed: int,
        number: int,
    ) -> None:
        self.chance = np.random.default_rng([seed, number, 0x7EA])
        self.weight = weight

        self.view = NetworksView(batch, agent, weight, float(learn["gamma"]), self.chance)
        self.view.networks = lambda: [learner.model.policy for learner in team]
        self.view.first_seed = (seed * 64 + number) << 20
        self.normaliser = VecNormalize(self.view, norm_obs=False, norm_reward=True, gamma=float(learn["gamma"]))
        self.shape = shape_of(batch)
        self.left = 1.0
        rate = float(learn["learning_rate"])
        arguments = {**learn, "learning_rate": (lambda _: rate * max(self.left, 0.0)) if preset.decay else rate}
        self.model = MaskablePPO(
            MaskedPairPolicy,
            self.normaliser,
            policy_kwargs={"shape": list(self.shape)},
            rollout_buffer_class=TimedBuffer,
            rollout_buffer_kwargs={"view": self.view},
            seed=seed + 1000 * number,
            device="cpu",
            **taken_by(MaskablePPO, arguments),
        )
        silence(self.model)
        self.per_rollout = self.view.num_envs * self.model.n_steps
        self._callback: Any = None

    def begin(self) -> None:
        """Begin the games; all learners must be there."""
        _, self._callback = self.model._setup_learn(0, _Quiet(), reset_num_timesteps=False)

    def collect(self) -> None:
        """One rollout."""
        self.model.ep_info_buffer.clear()  # type: ignore[union-attr]
        self.model.collect_rollouts(
            self.normaliser, self._callback, self.model.rollout_buffer, self.model.n_steps, use_masking=True
        )

    def improve(self, left: float) -> None:
        """Learn from it. left: share of the training that is left."""
        self.left = left
        self.model.train()


def shape_of(batch: MultiBatch) -> Shape:
    """How its observations are cut; EscalaError where they are pictures."""
    if batch.image:
        raise EscalaError("option observation='image': teams learn from compact observations: leave it out")
    chosen = batch.options
    return Shape(
        chosen.slots, chosen.machines, chosen.resources, len(batch.games.points), int(batch.observation_space.shape[0])
    )


def train_team(
    workload: Any = None,
    *,
    mode: str = "turns",
    steps: int = 300_000,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    preset: str = "tuned",
    teacher: str | Mapping[str, int] | None = "",
    num_envs: int | None = None,
    learn: Mapping[str, Any] | None = None,
    progress: Callable[[float], None] | None = None,
    judge: Judge | None = None,
    looks: int = LOOKS,
    algorithm: str = "maskable-ppo",
    **options: Any,
) -> Team:
    """Train a team on the game of `escala.envs.multi.slots` (workload and options as there; compact observations).

    mode: `"turns"` (R4): every agent has a network of its own; one learns from a rollout at a time while the others are
    frozen. `"simultaneous"`: all collect against the same teams, then all learn. `"shared"`: one network for all, which
    sees which agent it is.
    steps: decisions to learn from, of all agents together (rounded up to whole rollouts; 0: imitate only). teacher:
    what to imitate first: a rule, {"rollout": K} (look-ahead over K futures, see `escala.envs.slots.team.lookahead`),
    or None; by default the preset's. out, resume, seed, progress: as in `escala.train`; the checkpoint holds the whole
    team, and a resumed training ends with the weights of an uninterrupted one. judge: gives a figure of the team as it
    is, the smaller the better, at the start (after imitating) and `looks` times in training; the weights of the best
    look are kept. `manifest["judged"]` has pairs of decisions and figure. It must draw from generators of its own.
    algorithm: "rllib-ppo" learns on Ray, "simultaneous" or "shared", without a teacher, a judge or resume.

    Raises EscalaError: unknown names, a folder that holds a team already (without resume), another's checkpoint.
    """
    chosen = _preset(preset, mode)
    rule = chosen.teacher if teacher == "" else teacher
    _check_algorithm(algorithm, {"resume": resume, "teacher": rule, "judge": judge}, mode)
    _check_request(steps, rule, seed, num_envs, learn)
    clock = {"arrivals_end": MultiOptions.steps} if chosen.clock and workload is None else {}
    given = {**clock, **chosen.options, **options}
    folder = None if out is None else Path(out)
    checkpoint.check_folder(folder, resume)
    pin_threads()
    request = {
        "mode": mode, "steps": steps, "seed": seed, "preset": preset, "num_envs": num_envs or chosen.num_envs,
        "teacher": dict(rule) if isinstance(rule, Mapping) else rule, "learn": {**chosen.learn, **(learn or {})},
        "options": {k: _plain(v) for k, v in given.items()}, "looks": looks if judge is not None else 0,
        "workload": "generated" if workload is None else type(workload).__name__,
    }  # fmt: skip
    with claimed(folder):
        if algorithm in RLLIB:
            return _by_rllib(request | {"algorithm": algorithm}, workload, given, chosen, folder, progress)
        learners = _learners(workload, given, chosen, request)
        looked = Looks(judge, looks, [one.model.policy for one in learners])
        training = _Training(learners, request, chosen.rounds, folder, looked)
        if resume:
            training.restore()
        elif rule is not None:
            _imitate(learners, rule, given, seed, workload is None)
        training.fit(progress)
        return training.end()


def _check_request(steps: int, rule: Any, seed: int, num_envs: int | None, learn: Mapping[str, Any] | None) -> None:
    check_request(steps, seed, num_envs, learn)
    if steps < (1 if rule is None else 0):
        raise EscalaError(f"steps={steps}: give at least 1, or 0 with a teacher")


def _preset(name: Any, mode: Any) -> TeamPreset:
    """The preset of this name; EscalaError for an unknown one, and for an unknown mode."""
    if mode not in MODES:
        raise EscalaError(f"unknown mode {mode!r}: use one of {', '.join(MODES)}")
    if not isinstance(name, str) or name not in PRESETS:
        raise EscalaError(f"unknown preset {name!r}: use one of {', '.join(PRESETS)}")
    return PRESETS[name]


def _imitate(learners: list[_Learner], rule: Any, given: Mapping[str, Any], seed: int, drawn: bool) -> None:
    """Begin with what a rule does. drawn: the job lists are."""
    batch = learners[0].view.batch
    pairs = [x.model for x in learners], [x.normaliser for x in learners]
    loads = len(batch.options.models()) if drawn else 1
    team_teaching.teach(*pairs, batch.lists, dict(given), rule, learners[0].weight, seed, loads)


def _check_algorithm(algorithm: Any, given: Mapping[str, Any], mode: str) -> None:
    """EscalaError for an unknown algorithm or teacher, for what RLlib's trainings do not know, and where RLlib is not
    installed."""
    team_teaching.check(given["teacher"])
    if algorithm not in ("maskable-ppo", *RLLIB):
        raise EscalaError(f"unknown algorithm {algorithm!r}: use maskable-ppo or {', '.join(RLLIB)}")
    if algorithm not in RLLIB:
        return
    if mode == "turns":
        raise EscalaError(
            f"algorithm {algorithm} trains all networks at once: give mode='simultaneous' or 'shared', not {mode!r}"
        )
    for name, value in given.items():
        if value is not None and value is not False:
            raise EscalaError(
                f"{name} means nothing to RLlib's algorithms: leave it out (preset='from-nothing' has no teacher)"
            )
    need(f"algorithm {algorithm}", "rllib")


def _by_rllib(
    request: dict[str, Any],
    workload: Any,
    given: Mapping[str, Any],
    preset: TeamPreset,
    folder: Path | None,
    progress: Any,
) -> Team:
    from escala.agents.rllib.training import fit, of_team

    began = _now()
    first = MultiBatch(1, workload, **given)
    networks, found = fit(of_team(first, given, request, preset), progress)
    state: dict[str, Any] = {
        "done": found["steps_done"],
        "curve": [],
        "judged": [],
        "elapsed_s": 0.0,
        "processor_s": 0.0,
    }
    _tick(state, began)
    team = _described(networks, first, request, state)
    team.manifest["versions"] = found["versions"]
    if folder is not None:
        team.write(folder)
    return team


def _now() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def _tick(state: dict[str, Any], began: tuple[float, float]) -> None:
    """Add the time since `began`, by the clock and of the processor, to what the training has taken, over all its
    sittings."""
    clock, processor = _now()
    state["elapsed_s"] += clock - began[0]
    state["processor_s"] += processor - began[1]


class _Training:
    """The learners of a team, what they have done, and who looks on. rounds: rollouts of a learner before the turn to
    learn goes on."""

    def __init__(
        self, learners: list[_Learner], request: dict[str, Any], rounds: int, folder: Path | None, looks: Looks
    ) -> None:
        self.learners, self.request, self.rounds, self.folder, self.looks = learners, request, rounds, folder, looks
        self.state: dict[str, Any] = {"done": 0, "round": 0, "curve": [], "elapsed_s": 0.0, "processor_s": 0.0}
        self._began = _now()

    def restore(self) -> None:
        """Go on from the checkpoint."""
        assert self.folder is not None
        saved = checkpoint.read(self.folder, self.request)
        self.looks.restore(saved["looks"])
        self.state.update(saved["state"])
        for learner, part, chance in zip(self.learners, saved["members"], saved["chances"], strict=True):
            checkpoint.restore(part, learner.model, learner.view, learner.normaliser)
            learner.chance.bit_generator.state = chance

    def save(self) -> None:
        """Write a checkpoint."""
        assert self.folder is not None
        parts = [checkpoint.capture(x.model, x.view, x.normaliser, self.request) for x in self.learners]
        chances = [x.chance.bit_generator.state for x in self.learners]
        whole = {
            "request": self.request,
            "state": self.state,
            "members": parts,
            "chances": chances,
            "looks": self.looks.state(),
        }
        checkpoint.write(self.folder / checkpoint.FILE, whole)

    def fit(self, progress: Callable[[float], None] | None) -> None:
        """Learn what is left to learn, round by round, with a look where one is due and a checkpoint now and then."""
        state, steps = self.state, self.request["steps"]
        _tick(state, self._began)
        self.looks.look(state["done"], state["done"] / max(steps, 1), self.team)
        saved_at = time.monotonic()
        while state["done"] < steps:
            began = _now()
            if self.folder is not None and began[0] - saved_at >= checkpoint.EVERY_S:
                self.save()
                saved_at = time.monotonic()
            self._round()
            _tick(state, began)
            share = min(1.0, state["done"] / steps)
            self.looks.look(state["done"], share, self.team)
            if progress is not None:
                progress(share)
        self.looks.end()

    def _round(self) -> None:
        """One or all learners take a rollout and learn from it."""
        learners, state = self.learners, self.state
        left = 1.0 - state["done"] / self.request["steps"]
        turn = (state["round"] // self.rounds) % len(learners)
        active = [turn] if self.request["mode"] == "turns" else list(range(len(learners)))
        for k in active:
            learners[k].collect()
        for k in active:
            learners[k].improve(left)
            state["done"] += learners[k].per_rollout
            ended = [float(episode["r"]) for episode in learners[k].model.ep_info_buffer or ()]
            if ended:
                state["curve"].append([state["done"], k, float(np.mean(ended)), len(ended)])
        state["round"] += 1

    def team(self) -> Team:
        """The team as it is now."""
        networks = [learner.model.policy for learner in self.learners]
        return _described(
            networks, self.learners[0].view.batch, self.request, self.state | {"judged": self.looks.points}
        )

    def end(self) -> Team:
        """The team, written where a folder is given."""
        team = self.team()
        if self.folder is not None:
            team.write(self.folder)
            remove(self.folder / checkpoint.FILE)
        return team


def _described(networks: list[Any], batch: MultiBatch, request: Mapping[str, Any], state: Mapping[str, Any]) -> Team:
    done = {"steps_done": state["done"], "curve": state["curve"], "judged": state["judged"]}
    done |= {name: round(state[name], 3) for name in ("elapsed_s", "processor_s")}
    made = {"kind": "team", "format": FORMAT, **request, "command": sys.argv, "agents": batch.options.agents}
    versions = {name: version(name) for name in ("escala", "torch", "stable-baselines3", "sb3-contrib", "numpy")}
    shape = {"shape": list(shape_of(batch)), "actions": int(batch.action_space.n)}
    return Team(networks, {**made, **shape, **done, "versions": versions})


def _plain(value: Any) -> Any:
    """A value as JSON keeps it."""
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def _learners(
    workload: Any, given: Mapping[str, Any], preset: TeamPreset, request: Mapping[str, Any]
) -> list[_Learner]:
    """The learners of a mode, each with games of its own on the same job lists."""
    mode, games = request["mode"], request["num_envs"]
    first = MultiBatch(games, workload, **given)
    weight = relative_weights(first) if preset.relative else np.ones(len(first.lists))
    learners: list[_Learner] = []
    for k, part in enumerate(parts_of(first, mode == "shared")):
        batch = first if k == 0 else MultiBatch(games, first.lists, **given)
        learners.append(_Learner(batch, part, learners, weight, preset, request["learn"], request["seed"], k))
    for learner in learners:
        learner.begin()
    return learners
