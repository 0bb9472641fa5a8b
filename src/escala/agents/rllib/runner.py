"""An EnvRunner of RLlib that steps a native batch: one compiled call a step for all its environments, and one piece of an episode for each
row and rollout in place of an object for each step.

`env_config` of RLlib's configuration: `face`, called with a number of environments and a seed for them as one `VecEnv` whose `venv` has
`action_masks`, and `normalise` (rewards that are learnt from are divided by a running deviation of returns, as in Escala's own training).
The metrics are of the rewards as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from stable_baselines3.common.vec_env import VecNormalize

from escala.agents.networks.build import pin_threads
from escala.agents.rllib.module import MASK, OBSERVATIONS, seen_space
from escala.agents.rllib.timed import DISCOUNT
from escala.agents.training.team.view import SharedView

Array = NDArray[Any]


class _Spaces:
    """What RLlib asks of an environment."""

    def __init__(self, face: Any) -> None:
        self.single_observation_space = self.observation_space = seen_space(face.observation_space, face.action_space)
        self.single_action_space = self.action_space = face.action_space
        self.num_envs, self.unwrapped = face.num_envs, self

    def close(self) -> None:
        """Nothing to close."""


class NativeEnvRunner(SingleAgentEnvRunner):
    """All `num_envs_per_env_runner` environments as one batch."""

    def make_env(self) -> None:
        """Make the batch."""
        pin_threads()
        told = self.config.env_config
        self.face = told["face"](self.config.num_envs_per_env_runner, self._seed or 0)
        normalised = VecNormalize(self.face, norm_obs=False, norm_reward=True, gamma=self.config.gamma) if told["normalise"] else None
        self.stepped: Any = normalised or self.face
        self.env, self.num_envs = _Spaces(self.face), self.face.num_envs
        if isinstance(self.face, SharedView):
            self.face.network = lambda: self.module.policy
        self.ended: list[tuple[int, float]] = []
        self.seen: Array | None = None

    def _sample(
        self, *, num_timesteps: int | None = None, num_episodes: int | None = None, explore: bool, random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[SingleAgentEpisode]:  # fmt: skip
        """So many steps of every environment that there are at least `num_timesteps` of all; or as long as `num_episodes` take."""
        if self.seen is None or force_reset:
            self.seen = self.stepped.reset().copy()
        rollout = _Rollout(self.num_envs)
        ended = 0
        while len(rollout.rewards) * self.num_envs < num_timesteps if num_timesteps is not None else ended < (num_episodes or 1):
            mask = self.face.venv.action_masks().copy()
            logits = self._logits(self.seen, mask)
            actions = _drawn(torch.where(torch.as_tensor(mask), 0.0, -1e8) if random_actions else logits, explore or random_actions)
            self.stepped.step_async(actions)
            after, rewards, done, infos = self.stepped.step_wait()
            rollout.add(self.seen, mask, actions, np.array(rewards), logits.numpy(), done, infos)
            rollout.discounts += [self.face.passed.copy()] if isinstance(self.face, SharedView) else []
            self.ended += [(infos[row]["episode"]["l"], infos[row]["episode"]["r"]) for row in np.flatnonzero(done)]
            ended += int(done.sum())
            self.seen = after.copy()
        pieces = rollout.pieces(self.seen, self.face.venv.action_masks().copy())
        self._log_env_steps(metric=self._metrics_num_env_steps_sampled, num_steps=rollout.steps)
        self._increase_sampled_metrics(rollout.steps, ended)
        return pieces

    def _logits(self, seen: Array, mask: Array) -> torch.Tensor:
        with torch.no_grad():
            shown = {OBSERVATIONS: torch.as_tensor(seen), MASK: torch.as_tensor(mask)}
            logits: torch.Tensor = self.module.forward_exploration({Columns.OBS: shown})[Columns.ACTION_DIST_INPUTS]
        return logits

    def get_metrics(self) -> Any:
        """Lengths and returns of the episodes that ended since the last call."""
        for length, total in self.ended:
            self._log_episode_metrics(length, total, 0.0)
        self.ended.clear()
        return self.metrics.reduce()


def _drawn(logits: torch.Tensor, explore: bool) -> Array:
    """Actions, int64 [rows]."""
    drawn = torch.distributions.Categorical(logits=logits).sample() if explore else logits.argmax(dim=1)
    out: Array = drawn.numpy()
    return out


class _Rollout:
    """Steps of all rows, to be cut into pieces of episodes."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.seen: list[Array] = []
        self.masks: list[Array] = []
        self.actions: list[Array] = []
        self.rewards: list[Array] = []
        self.logits: list[Array] = []
        self.done: list[Array] = []
        self.discounts: list[Array] = []  # of steps that last
        self.last: dict[tuple[int, int], tuple[Array, bool]] = {}

    @property
    def steps(self) -> int:
        """Decisions."""
        return self.rows * len(self.rewards)

    def add(self, seen: Array, mask: Array, actions: Array, rewards: Array, logits: Array, done: Array, infos: Any) -> None:
        """One step of every row."""
        for row in np.flatnonzero(done):
            self.last[len(self.rewards), int(row)] = (infos[row]["terminal_observation"], bool(infos[row]["TimeLimit.truncated"]))
        kept = (self.seen, self.masks, self.actions, self.rewards, self.logits, self.done)
        for one, value in zip(kept, (seen, mask, actions, rewards, logits, done), strict=True):
            one.append(value)

    def pieces(self, after: Array, mask_after: Array) -> list[SingleAgentEpisode]:
        """What each row played, cut where an episode ends. after, mask_after: what is shown now."""
        seen, masks = np.stack([*self.seen, after], axis=1), np.stack([*self.masks, mask_after], axis=1)
        actions, rewards, logits = (np.stack(one, axis=1) for one in (self.actions, self.rewards, self.logits))
        log_probability = np.take_along_axis(_log_softmax(logits), actions[:, :, None], axis=2)[:, :, 0]
        extra = {Columns.ACTION_DIST_INPUTS: logits, Columns.ACTION_LOGP: log_probability}
        if self.discounts:
            extra[DISCOUNT] = np.stack(self.discounts, axis=1)
        found = []
        for row in range(self.rows):
            begin = 0
            for end in [*(t for t in range(len(self.done)) if self.done[t][row]), len(self.done) - 1]:
                if end < begin:  # the rollout ended with the episode
                    continue
                final, cut = self.last.get((end, row), (None, False))
                shown, allowed = seen[row, begin : end + 2], masks[row, begin : end + 2]
                if final is not None:  # the next row is of the next episode
                    shown, allowed = shown.copy(), allowed.copy()
                    shown[-1], allowed[-1] = final, True
                part = slice(begin, end + 1)
                piece = SingleAgentEpisode(
                    observations=[{OBSERVATIONS: o, MASK: m} for o, m in zip(shown, allowed, strict=True)],
                    actions=list(actions[row, part]),
                    rewards=list(rewards[row, part]),
                    terminated=final is not None and not cut,
                    truncated=cut,
                    extra_model_outputs={name: list(values[row, part]) for name, values in extra.items()},
                    t_started=0,
                    len_lookback_buffer=0,
                )
                found.append(piece.to_numpy())
                begin = end + 1
        return found


def _log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    out: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return out
