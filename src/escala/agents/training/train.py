"""Training: a native batch, stable-baselines3's learner, checkpoints between rollouts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from escala.agents import checkpoint
from escala.agents.agent import FORMAT, MANIFEST, Agent
from escala.agents.imitation import teaching
from escala.agents.networks.build import RLLIB, build_learner, check_algorithm, check_request, pin_threads
from escala.agents.presets import Preset, preset_of
from escala.agents.training import tracking
from escala.agents.training.learning_curve import Returns, Watch, watch_of
from escala.agents.training.native import native_batch
from escala.agents.training.validation import Early, check_days
from escala.agents.vecenv import NativeVecEnv
from escala.envs import BatchVectorEnv
from escala.errors import EscalaError
from escala.extras import need
from escala.policies.rollout_names import rollout_of
from escala.writing import claimed, remove
from escala.writing.stale import remove_stale


class _Between(BaseCallback):
    """Between two rollouts: points of the learning curve, snapshots and checkpoints from time to time, progress, and the end of the time
    allowed."""

    def __init__(
        self,
        save: Callable[[], None] | None,
        snap: Callable[[], None],
        progress: Callable[[float], None] | None,
        target: int,
        minutes: float | None,
        returns: Returns,
        watch: Watch | None,
        early: Early | None,
    ) -> None:
        super().__init__()
        self._save, self._progress, self._target, self._watch, self._early = save, progress, target, watch, early
        self._returns, self._snap = returns, snap
        self._minutes = minutes
        self._end: float | None = None
        self._began = self._saved = time.monotonic()

    def _on_training_start(self) -> None:
        self._began = self._saved = time.monotonic()  # what was compiled before is not training
        if self._minutes is not None:
            self._end = self._began + 60.0 * self._minutes

    def _on_rollout_start(self) -> None:
        self._snap()
        self._returns.between(self.num_timesteps, self._share())
        if self._early is not None:
            self._early.between(self.num_timesteps, self._share())
        if self._watch is not None:
            self._watch.between(self.num_timesteps, self._share(), time.monotonic() - self._began)
        now = time.monotonic()
        if self._save is not None and now - self._saved >= checkpoint.EVERY_S:
            self._save()
            self._saved = now

    def _share(self) -> float:
        share = self.num_timesteps / self._target
        if self._end is not None:
            share = max(share, (time.monotonic() - self._began) / max(self._end - self._began, 1e-9))
        return min(1.0, share)

    def _on_rollout_end(self) -> None:
        if self._progress is not None:
            self._progress(self._share())

    def _on_step(self) -> bool:
        enough = self._early is not None and self._early.over
        return not enough and (self._end is None or time.monotonic() < self._end)


def _plain(value: Any, what: str) -> Any:
    """A value as JSON keeps it; EscalaError where it cannot."""
    if isinstance(value, tuple | list):
        return [_plain(v, what) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise EscalaError(f"option {what}={value!r}: give numbers, texts or lists of them")


def _imitated(name: str, teacher: Any) -> Mapping[str, Sequence[float]]:
    """The teacher that a policy's name stands for."""
    if teacher is not None:
        raise EscalaError("train: imitate and teacher both name whom to imitate: give one of them")
    policy = rollout_of(name, 0)
    if policy is None or "=" in name:
        raise EscalaError(f"train: cannot imitate {name!r}: use rollout or rollout:128, or see teacher")
    return {"rollout": [policy.futures]}


def _teaching(teacher: Any, imitate: str | None) -> Any:
    """The teacher, checked; None without one."""
    if imitate is not None:
        teacher = _imitated(imitate, teacher)
    if teacher is not None:
        teaching.check(teacher)
    return teacher


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


def train(
    env_id: str,
    workload: Any = None,
    platform: Any = None,
    *,
    algorithm: str | None = None,
    steps: int = 500_000,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[float], None] | None = None,
    preset: str = "tuned",
    num_envs: int | None = None,
    minutes: float | None = None,
    learn: Mapping[str, Any] | None = None,
    teacher: Sequence[Sequence[int]] | Mapping[str, Sequence[float]] | None = None,
    imitate: str | None = None,
    curve: bool | None = None,
    validation: Sequence[Any] | None = None,
    patience: int = 0,
    snapshots: Sequence[int] = (),
    track: str | None = None,
    **env_options: Any,
) -> Agent:
    """Train an agent.

    env_id: a registered environment; workload, platform, env_options: its arguments. algorithm: "maskable-ppo", "ppo" or "a2c"; by default
    the preset's own; or "rllib-ppo", see `escala.agents.rllib`. steps: decisions to learn from (rounded up to whole rollouts; 0 with a
    teacher: imitation only). seed: the same gives the same weights. out: folder for the agent and, every half minute, a checkpoint;
    interrupted (also by Ctrl-C), the same call with `resume=True` goes on from the last checkpoint and ends with the weights that an
    uninterrupted run gives. progress: called with the share done. preset: "tuned", "printed" or another of `escala.agents.presets`;
    num_envs and learn (arguments of the learner) override it. teacher (escala/Slots-v0): settings of the rule hold-back, look-ahead, its
    lessons, or the plan of a single list, to imitate first, see `escala.agents.imitation.teaching`. imitate: "rollout" or "rollout:K" is
    short for the teacher {"rollout": [K]}, look-ahead over K futures. minutes: stop when so long was trained, earlier sittings included
    (not repeatable). curve: keep a learning curve (`Agent.curve`), see `escala.agents.training.learning_curve`; by default where there is
    an `out`. It moves no weight. validation: days that are not learnt from; the weights that did best on them, at one of 20 looks, are kept
    (`Agent.manifest["validation"]`), and training stops after `patience` looks without a better one (0: never). snapshots: decisions after
    which (rounded up to whole rollouts) the agent as it then is is kept too, in `out`/after-DECISIONS. Where the preset's learning rate
    does not fall (`printed`), that is the agent of a whole training of so many decisions. track: "tensorboard:DIR", "mlflow:URI" or
    "wandb:PROJECT", see `escala.agents.training.tracking`.

    torch runs on one thread. Training uses, and leaves changed, the global random generators of torch and NumPy.
    Raises EscalaError: unknown names, a folder that holds an agent already (without resume), a checkpoint of another training.
    """
    if algorithm is not None:
        check_algorithm(algorithm)
    tracking.check(track)
    teacher = _teaching(teacher, imitate)
    check_request(steps, seed, num_envs, learn)
    check_days(env_id, workload, validation, patience)
    if steps < (1 if teacher is None else 0):
        raise EscalaError(f"steps={steps}: give at least 1 (0: imitate the teacher only)")
    chosen = preset_of(env_id, preset)
    by_rllib = (algorithm or chosen.algorithm) in RLLIB
    if by_rllib:
        _check_rllib(resume=resume, teacher=teacher, curve=curve, validation=validation, snapshots=snapshots, track=track)
    folder = None if out is None else Path(out)
    checkpoint.check_folder(folder, resume)
    _check_snapshots(snapshots, steps, folder)
    options = {**chosen.environment, **(chosen.drawn if workload is None else {}), **env_options}
    settings = {**chosen.learn, **(learn or {})}
    request = _request(env_id, workload, options, settings) | {
        "algorithm": algorithm or chosen.algorithm,
        "preset": preset,
        "num_envs": num_envs or chosen.num_envs,
        "steps": steps,
        "seed": seed,
        "teacher": _teacher(teacher),
        "validation_days": None if validation is None else checkpoint.about_days(validation, "validation") | {"patience": patience},
    }
    pin_threads()
    with claimed(folder):
        native = native_batch(env_id, request["num_envs"], workload, platform, options)
        if by_rllib:
            return _by_rllib(request, chosen, native, (workload, platform), folder, progress, minutes)
        training = _Training(request, chosen, settings, native, folder)
        training.look_on(options, folder is not None if curve is None else curve, validation, patience)
        training.snapshots, training.platform = sorted(snapshots), platform
        if resume:
            training.restore()
        elif teacher is not None:
            teaching.teach(training.model, training.normaliser, native.batch, teacher, seed)
        training.fit(progress, minutes, track, resume)
        return training.agent()


def _request(env_id: str, workload: Any, options: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of a training, as JSON keeps it; a checkpoint belongs to one alone."""
    return {
        "env_id": env_id,
        "env_options": {k: _plain(v, k) for k, v in options.items()},
        "learn": {k: _plain(v, k) for k, v in settings.items()},
        "workload": _about(workload),
    }


def _check_rllib(**given: Any) -> None:
    """EscalaError for what RLlib's trainings do not know, and where RLlib is not installed."""
    for name, value in given.items():
        if value is not None and value is not False and value != ():
            raise EscalaError(f"{name} means nothing to RLlib's algorithms: leave it out, or train with maskable-ppo")
    need(f"algorithm {RLLIB[0]}", "rllib")


def _by_rllib(
    request: dict[str, Any],
    chosen: Preset,
    native: BatchVectorEnv,
    given: tuple[Any, Any],
    folder: Path | None,
    progress: Callable[[float], None] | None,
    minutes: float | None,
) -> Agent:
    from escala.agents.rllib.training import fit, of_environment

    manifest = _described(request, chosen, native, given[1])
    networks, found = fit(of_environment(request, manifest, *given), progress, minutes)
    agent = Agent(networks[0], manifest | found)
    if folder is not None:
        agent.write(folder)
    return agent


def _check_snapshots(snapshots: Any, steps: int, folder: Path | None) -> None:
    whole_numbers = isinstance(snapshots, Sequence) and all(isinstance(n, int) and not isinstance(n, bool) for n in snapshots)
    if not whole_numbers or any(not 0 < n <= steps for n in snapshots):
        raise EscalaError(f"snapshots={snapshots!r}: give numbers of decisions from 1 to steps={steps}")
    if snapshots and folder is None:
        raise EscalaError("snapshots need out: the folder in which they are kept")


class _Training:
    """A learner, its games, and who looks on while it learns."""

    def __init__(
        self, request: dict[str, Any], chosen: Preset, settings: Mapping[str, Any], native: BatchVectorEnv, folder: Path | None
    ) -> None:
        self.request, self.chosen, self.native, self.folder = request, chosen, native, folder
        self.face = NativeVecEnv(native)
        self.normaliser = _normaliser(self.face, settings) if chosen.normalise else None
        face = self.normaliser or self.face
        self.model = build_learner(request["algorithm"], chosen, settings, face, request["seed"], request["steps"])
        self.returns = Returns(self.model)
        self.watch: Watch | None = None
        self.early: Early | None = None
        self.snapshots: list[int] = []
        self.platform: Any = None
        self._began, self._before_s = 0.0, 0.0  # of this sitting; what those before took

    def look_on(self, options: Mapping[str, Any], curve: bool, validation: Sequence[Any] | None, patience: int) -> None:
        """Keep a curve where it is wanted, and the weights that do best on validation days where there are some."""
        if curve:
            self.watch = watch_of(self.request["env_id"], self.native.batch, options, self.model)
        if validation is not None:
            self.early = Early(self.native.batch, validation, options, self.model, patience)

    def restore(self) -> None:
        """Go on from the checkpoint."""
        assert self.folder is not None
        saved = checkpoint.read(self.folder, self.request)
        self._before_s = saved.get("elapsed_s", 0.0)
        self.returns.restore(saved.get("returns", ()), saved["steps"] / max(self.request["steps"], 1))
        if self.watch is not None:
            self.watch.restore(saved.get("curve", ()), saved["steps"] / max(self.request["steps"], 1))
        if self.early is not None:
            self.early.restore(saved["early"])
        checkpoint.restore(saved, self.model, self.face, self.normaliser)

    def save(self) -> None:
        """Write a checkpoint."""
        assert self.folder is not None
        early = None if self.early is None else self.early.state()
        about = {"curve": [] if self.watch is None else self.watch.points, "elapsed_s": self._elapsed_s(), "early": early}
        about["returns"] = self.returns.points
        checkpoint.write(
            self.folder / checkpoint.FILE, {**checkpoint.capture(self.model, self.face, self.normaliser, self.request), **about}
        )

    def _elapsed_s(self) -> float:
        return self._before_s + time.monotonic() - self._began

    def fit(self, progress: Callable[[float], None] | None, minutes: float | None, track: str | None, resume: bool) -> None:
        """Learn what is left to learn, and tell a tracker."""
        steps = self.request["steps"]
        save = self.save if self.folder is not None else None
        left = None if minutes is None else max(0.0, minutes - self._before_s / 60.0)
        between = _Between(save, self.snap, progress, steps, left, self.returns, self.watch, self.early)
        self._began = time.monotonic()
        if self.model.num_timesteps < steps:
            with tracking.tracked(track, self.request, resume) as logger:
                self.model.set_logger(logger)
                self.model.learn(steps - self.model.num_timesteps, callback=between, reset_num_timesteps=False)

    def snap(self) -> None:
        """Keep the agent as it is where a snapshot is due."""
        while self.snapshots and self.model.num_timesteps >= self.snapshots[0]:
            assert self.folder is not None
            kept = self.folder / f"after-{self.snapshots.pop(0)}"
            if not (kept / MANIFEST).is_file():  # by an interrupted training
                Agent(self.model.policy, self._manifest(self._elapsed_s())).save(kept)

    def _manifest(self, elapsed_s: float) -> dict[str, Any]:
        return _manifest(self.request, self.chosen, self.native, self.platform, self.model, self.normaliser, elapsed_s)

    def agent(self) -> Agent:
        """What was learnt, saved where there is a folder."""
        self.snap()
        elapsed_s, step = self._elapsed_s(), int(self.model.num_timesteps)
        kept = None if self.watch is None else self.watch.end(step, elapsed_s)
        manifest = self._manifest(elapsed_s)
        manifest["returns"] = self.returns.end(step)
        if self.early is not None:
            self.early.end(step)
            manifest["validation"] = self.early.points
        agent = Agent(self.model.policy, manifest, kept)
        if self.folder is not None:
            if step > 0:
                self.save()  # so that a kill among the files of the agent leaves a training to go on with
            agent.write(self.folder)
            remove(self.folder / checkpoint.FILE)
            remove_stale(self.folder)  # of killed snapshots
        return agent


def _normaliser(face: NativeVecEnv, settings: Mapping[str, Any]) -> VecNormalize:
    """Rewards divided by a running deviation of returns."""
    return VecNormalize(face, norm_obs=False, norm_reward=True, gamma=float(settings.get("gamma", 0.99)))


def _manifest(
    request: Mapping[str, Any], chosen: Preset, native: BatchVectorEnv, platform: Any, model: Any, normaliser: Any, elapsed_s: float
) -> dict[str, Any]:
    returns = [float(episode["r"]) for episode in model.ep_info_buffer or ()]
    return _described(request, chosen, native, platform) | {
        "steps_done": int(model.num_timesteps),
        "elapsed_s": round(elapsed_s, 3),
        "mean_return": float(np.mean(returns)) if returns else None,
        "reward_scale": None if normaliser is None else float(1.0 / np.sqrt(normaliser.ret_rms.var + normaliser.epsilon)),
        "reward_normalisation": None
        if normaliser is None
        else {"mean": float(normaliser.ret_rms.mean), "var": float(normaliser.ret_rms.var), "count": float(normaliser.ret_rms.count)},
        "versions": {name: version(name) for name in ("escala", "torch", "stable-baselines3", "sb3-contrib", "gymnasium", "numpy")},
    }


def _described(request: Mapping[str, Any], chosen: Preset, native: BatchVectorEnv, platform: Any) -> dict[str, Any]:
    """What is known of an agent before it learns."""
    machine = getattr(native.batch, "platform", None)
    return {
        "kind": "agent",
        "format": FORMAT,
        **request,
        "command": sys.argv,
        "platform": machine.spec() if machine is not None else (str(platform) if platform is not None else None),
        "network": list(chosen.network),
        "extractor": chosen.extractor,
        "separate": chosen.separate,
        "relu": chosen.relu,
        "ordered": chosen.ordered,
        "sampled": chosen.sampled,
        "observation_shape": list(native.single_observation_space.shape or ()),
        "actions": int(native.single_action_space.n),  # type: ignore[attr-defined]
        "torch_threads": torch.get_num_threads(),
    }
