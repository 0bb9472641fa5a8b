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
from escala.agents.networks.build import build_learner, pin_threads
from escala.agents.training import tracking
from escala.agents.training.asked import Asked
from escala.agents.training.learning_curve import Returns, Watch, watch_of
from escala.agents.training.native import native_batch
from escala.agents.training.validation import Early
from escala.agents.vecenv import NativeVecEnv
from escala.envs import BatchVectorEnv
from escala.writing import claimed, remove
from escala.writing.stale import remove_stale


class _Between(BaseCallback):
    """Between two rollouts: points of the learning curve, snapshots and checkpoints from time to time, progress, and
    the end of the time allowed."""

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

    env_id: a registered environment; workload, platform, env_options: its arguments. algorithm: "maskable-ppo", "ppo"
    or "a2c"; by default the preset's own; or "rllib-ppo", see `escala.agents.rllib`. steps: decisions to learn from
    (rounded up to whole rollouts; 0 with a teacher: imitation only). seed: the same gives the same weights. out: folder
    for the agent and, every half minute, a checkpoint; interrupted (also by Ctrl-C), the same call with `resume=True`
    goes on from the last checkpoint and ends with the weights that an uninterrupted run gives. progress: called with
    the share done. preset: "tuned", "printed" or another of `escala.agents.presets`; num_envs and learn (arguments of
    the learner) override it. teacher (escala/Slots-v0): settings of the rule hold-back, look-ahead, its lessons, or the
    plan of a single list, to imitate first, see `escala.agents.imitation.teaching`. imitate: "rollout" or "rollout:K"
    is short for the teacher {"rollout": [K]}, look-ahead over K futures. minutes: stop when so long was trained,
    earlier sittings included (not repeatable). curve: keep a learning curve (`Agent.curve`), see
    `escala.agents.training.learning_curve`; by default where there is an `out`. It moves no weight. validation: days
    that are not learnt from; the weights that did best on them, at one of 20 looks, are kept
    (`Agent.manifest["validation"]`), and training stops after `patience` looks without a better one (0: never).
    snapshots: decisions after which (rounded up to whole rollouts) the agent as it then is is kept too, in
    `out`/after-DECISIONS. Where the preset's learning rate does not fall (`printed`), that is the agent of a whole
    training of so many decisions. track: "tensorboard:DIR", "mlflow:URI" or "wandb:PROJECT", see
    `escala.agents.training.tracking`.

    torch runs on one thread. Training uses, and leaves changed, the global random generators of torch and NumPy.
    Raises EscalaError: unknown names, a folder that holds an agent already (without resume), a checkpoint of another
    training.
    """
    asked = Asked(
        env_id=env_id, workload=workload, platform=platform, algorithm=algorithm, steps=steps, seed=seed, out=out,
        resume=resume,
        progress=progress, preset=preset, num_envs=num_envs, minutes=minutes, learn=learn, teacher=teacher,
        imitate=imitate, curve=curve,
        validation=validation, patience=patience, snapshots=snapshots, track=track, env_options=env_options,
    )  # fmt: skip
    request = asked.checked()
    pin_threads()
    with claimed(asked.folder):
        native = native_batch(env_id, request["num_envs"], workload, platform, asked.options)
        return _by_rllib(asked, native) if asked.by_rllib else _Training(asked, native).run()


def _by_rllib(asked: Asked, native: BatchVectorEnv) -> Agent:
    from escala.agents.rllib.training import fit, of_environment

    manifest = _described(asked, native)
    networks, found = fit(
        of_environment(asked.request, manifest, asked.workload, asked.platform), asked.progress, asked.minutes
    )
    agent = Agent(networks[0], manifest | found)
    if asked.folder is not None:
        agent.write(asked.folder)
    return agent


class _Training:
    """A learner, its games, and who looks on while it learns."""

    def __init__(self, asked: Asked, native: BatchVectorEnv) -> None:
        self.asked, self.request, self.native, self.folder = asked, asked.request, native, asked.folder
        self.face = NativeVecEnv(native)
        self.normaliser = _normaliser(self.face, asked.settings) if asked.chosen.normalise else None
        face = self.normaliser or self.face
        self.model = build_learner(
            self.request["algorithm"], asked.chosen, asked.settings, face, asked.seed, asked.steps
        )
        self.returns = Returns(self.model)
        curve = asked.folder is not None if asked.curve is None else asked.curve
        self.watch = watch_of(asked.env_id, native.batch, asked.options, self.model) if curve else None
        days = asked.validation
        self.early = None if days is None else Early(native.batch, days, asked.options, self.model, asked.patience)
        self.snapshots = sorted(asked.snapshots)
        self._began, self._before_s = 0.0, 0.0  # of this sitting; what those before took

    def run(self) -> Agent:
        """Go on from the checkpoint, or begin with the teacher's lessons; learn."""
        if self.asked.resume:
            self.restore()
        elif self.asked.lessons is not None:
            teaching.teach(self.model, self.normaliser, self.native.batch, self.asked.lessons, self.asked.seed)
        self.fit()
        return self.agent()

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
        about = {
            "curve": [] if self.watch is None else self.watch.points,
            "elapsed_s": self._elapsed_s(),
            "early": early,
        }
        about["returns"] = self.returns.points
        checkpoint.write(
            self.folder / checkpoint.FILE,
            {**checkpoint.capture(self.model, self.face, self.normaliser, self.request), **about},
        )

    def _elapsed_s(self) -> float:
        return self._before_s + time.monotonic() - self._began

    def fit(self) -> None:
        """Learn what is left to learn, and tell a tracker."""
        steps, minutes = self.asked.steps, self.asked.minutes
        save = self.save if self.folder is not None else None
        left = None if minutes is None else max(0.0, minutes - self._before_s / 60.0)
        between = _Between(save, self.snap, self.asked.progress, steps, left, self.returns, self.watch, self.early)
        self._began = time.monotonic()
        if self.model.num_timesteps < steps:
            with tracking.tracked(self.asked.track, self.request, self.asked.resume) as logger:
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
        return _manifest(self.asked, self.native, self.model, self.normaliser, elapsed_s)

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


def _manifest(asked: Asked, native: BatchVectorEnv, model: Any, normaliser: Any, elapsed_s: float) -> dict[str, Any]:
    returns = [float(episode["r"]) for episode in model.ep_info_buffer or ()]
    return _described(asked, native) | {
        "steps_done": int(model.num_timesteps),
        "elapsed_s": round(elapsed_s, 3),
        "mean_return": float(np.mean(returns)) if returns else None,
        "reward_scale": None
        if normaliser is None
        else float(1.0 / np.sqrt(normaliser.ret_rms.var + normaliser.epsilon)),
        "reward_normalisation": None
        if normaliser is None
        else {
            "mean": float(normaliser.ret_rms.mean),
            "var": float(normaliser.ret_rms.var),
            "count": float(normaliser.ret_rms.count),
        },
        "versions": {
            name: version(name)
            for name in ("escala", "torch", "stable-baselines3", "sb3-contrib", "gymnasium", "numpy")
        },
    }


def _described(asked: Asked, native: BatchVectorEnv) -> dict[str, Any]:
    """What is known of an agent before it learns."""
    platform, chosen = asked.platform, asked.chosen
    machine = getattr(native.batch, "platform", None)
    return {
        "kind": "agent",
        "format": FORMAT,
        **asked.request,
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
