"""An EnvRunner of RLlib that steps a native batch: one compiled call a step for all its environments, and one piece of
an episode for each row and rollout in place of an object for each step.

`env_config` of RLlib's configuration: `faces`, called with a number of environments and a seed for them as one `VecEnv`
whose `venv` has `action_masks`, one by the name of each module, and `normalise` (rewards that are learnt from are
divided by a running deviation of returns, as in Escala's own training). With several modules, each decides in
environments of its own, and its pieces name it as agent and module. The metrics are of the rewards as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from stable_baselines3.common.vec_env import VecNormalize

from escala.agents.networks.build import pin_threads
from escala.agents.rllib.module import MASK, OBSERVATIONS, of_each, seen_space
from escala.agents.rllib.timed import DISCOUNT
from escala.agents.training.team.view import NetworksView

Array = NDArray[Any]


class _Spaces:
    """What RLlib asks of an environment. agents: their names, where there are several."""

    def __init__(self, face: Any, num_envs: int, agents: Sequence[str]) -> None:
        seen, action = seen_space(face.observation_space, face.action_space), face.action_space
        self.single_observation_space = self.observation_space = of_each(seen, agents)
        self.single_action_space = self.action_space = of_each(action, agents)
        self.num_envs, self.unwrapped = num_envs, self

    def close(self) -> None:
        """Nothing to close."""


class _Part:
    """The environments in which one module decides. name: of its agent and itself, None where there is no other."""

    def __init__(self, face: Any, stepped: Any, name: str | None) -> None:
        self.face, self.stepped, self.name = face, stepped, name
        self.seen: Any = None


class NativeEnvRunner(SingleAgentEnvRunner):
    """All `num_envs_per_env_runner` environments as one batch, or as one of the same size for each module."""

    def make_env(self) -> None:
        """Make the batches."""
        pin_threads()
        given, several = self.config.env_config, self.config.is_multi_agent
        self.num_envs = self.config.num_envs_per_env_runner
        self.parts = []
        for name, make in given["faces"].items():
            face = make(self.num_envs // len(given["faces"]), self._seed or 0)
            stepped = (
                VecNormalize(face, norm_obs=False, norm_reward=True, gamma=self.config.gamma)
                if given["normalise"]
                else face
            )
            if isinstance(face, NetworksView):
                face.networks = lambda: [module.policy for module in self._modules()]
            self.parts.append(_Part(face, stepped, name if several else None))
        self.env = _Spaces(self.parts[0].face, self.num_envs, list(given["faces"]) if several else [])
        self.ended: list[tuple[int, float]] = []

    def make_module(self) -> None:
        """Make the module, or the modules of all agents."""
        if not self.config.is_multi_agent:
            super().make_module()
            return
        self.module = self.config.rl_module_spec.build()

    def _modules(self) -> list[Any]:
        return [self.module if part.name is None else self.module[part.name] for part in self.parts]

    def _sample(
        self, *, num_timesteps: int | None = None, num_episodes: int | None = None, explore: bool,
        random_actions: bool = False, force_reset: bool = False,
    ) -> list[SingleAgentEpisode]:  # fmt: skip
        """So many steps of every environment that there are at least `num_timesteps` of all; or, of each module, as
        long as `num_episodes` take."""
        steps = None if num_timesteps is None else -(-num_timesteps // self.num_envs)
        pieces, done, ended = [], 0, len(self.ended)
        for part, module in zip(self.parts, self._modules(), strict=True):
            if part.seen is None or force_reset:
                part.seen = part.stepped.reset().copy()
            rollout, begun = _Rollout(part.face.num_envs), len(self.ended)
            while len(rollout.rewards) < steps if steps is not None else len(self.ended) - begun < (num_episodes or 1):
                self._step(part, module, rollout, explore, random_actions)
            pieces += rollout.pieces(part.seen, part.face.venv.action_masks().copy(), part.name)
            done += rollout.steps
        self._log_env_steps(metric=self._metrics_num_env_steps_sampled, num_steps=done)
        self._increase_sampled_metrics(done, len(self.ended) - ended)
        return pieces

    def _step(self, part: _Part, module: Any, rollout: _Rollout, explore: bool, random_actions: bool) -> None:
        """One step of every environment of a module."""
        face, mask = part.face, part.face.venv.action_masks().copy()
        logits = _logits(module, part.seen, mask)
        actions = _drawn(
            torch.where(torch.as_tensor(mask), 0.0, -1e8) if random_actions else logits, explore or random_actions
        )
        part.stepped.step_async(actions)
        after, rewards, done, infos = part.stepped.step_wait()
        rollout.add(part.seen, mask, actions, np.array(rewards), logits.numpy(), done, infos)
        rollout.discounts += [face.passed.copy()] if isinstance(face, NetworksView) else []
        self.ended += [(infos[row]["episode"]["l"], infos[row]["episode"]["r"]) for row in np.flatnonzero(done)]
        part.seen = after.copy()

    def get_metrics(self) -> Any:
        """Lengths and returns of the episodes that ended since the last call."""
        for length, total in self.ended:
            self._log_episode_metrics(length, total, 0.0)
        self.ended.clear()
        return self.metrics.reduce()


def _logits(module: Any, seen: Array, mask: Array) -> torch.Tensor:
    with torch.no_grad():
        shown = {OBSERVATIONS: torch.as_tensor(seen), MASK: torch.as_tensor(mask)}
        logits: torch.Tensor = module.forward_exploration({Columns.OBS: shown})[Columns.ACTION_DIST_INPUTS]
    return logits


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

    def add(
        self, seen: Array, mask: Array, actions: Array, rewards: Array, logits: Array, done: Array, infos: Any
    ) -> None:
        """One step of every row."""
        for row in np.flatnonzero(done):
            self.last[len(self.rewards), int(row)] = (
                infos[row]["terminal_observation"],
                bool(infos[row]["TimeLimit.truncated"]),
            )
        kept = (self.seen, self.masks, self.actions, self.rewards, self.logits, self.done)
        for one, value in zip(kept, (seen, mask, actions, rewards, logits, done), strict=True):
            one.append(value)

    def pieces(self, after: Array, mask_after: Array, name: str | None) -> list[SingleAgentEpisode]:
        """What each row played, cut where an episode ends. after, mask_after: what is shown now. name: of who
        decided."""
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
                    agent_id=name,
                    module_id=name,
                )
                piece.multi_agent_episode_id = None if name is None else piece.id_
                found.append(piece.to_numpy())
                begin = end + 1
        return found


def _log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    out: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return out
