"""The game of several agents as one agent sees it: a `VecEnv` of stable-baselines3 in which the others are part of the
environment.

In each game one agent learns; the others answer by what they have learnt so far (or by a rule) until it is the
learner's turn again. What a unit of time costs the learner is added up between its turns, discounted by the units that
pass: were the discount one of choices, dithering would make costs smaller. With no learner named, every turn is a step,
whoever's it is: agents that
share one network and all rewards then are one learner that plays all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.agents.team import preferences_of
from escala.agents.vecenv import SharedVecEnv
from escala.envs.core.batch import Turn
from escala.envs.slots.playing import Member, choose
from escala.envs.slots.team.batch import MultiBatch
from escala.envs.slots.team.deciding import Player

EVERYBODY = -1
LEAST_LOSS = 0.2  # a job; keeps lists that SJF plays without a loss from weighing without limit


def relative_weights(batch: MultiBatch) -> NDArray[np.float64]:
    """1 / (what SJF loses) of each list [lists], so that light and heavy loads count alike."""
    from escala.envs.slots.team.playing import play

    shape = {
        name: getattr(batch.options, name)
        for name in ("agents", "machines", "resources", "capacity", "horizon", "slots", "turns")
    }
    figures = play(batch.lists, "sjf", **shape)
    mean = figures["slowdown"].to_numpy()
    return 1.0 / (figures["submitted"].to_numpy() * np.maximum(mean - 1.0, LEAST_LOSS))


class TeamView(SharedVecEnv):
    """learner: which agent learns in each game, int [N] (`EVERYBODY`: see the module). others: gives the members who
    answer, one for each agent, when asked (they change as they learn). weight: of the rewards of each job list. gamma:
    the discount of a unit of time."""

    def __init__(
        self,
        batch: MultiBatch,
        learner: Any,
        others: Callable[[], Sequence[Member]],
        weight: NDArray[np.float64] | None = None,
        gamma: float = 1.0,
    ) -> None:
        self.batch = batch
        self.venv = self  # what checkpoints ask for
        self.learner = np.broadcast_to(np.asarray(learner, np.int64), (batch.num_envs,)).copy()
        self._others = others
        self.gamma = gamma
        batch.games.settings["discount"] = gamma
        self.passed = np.ones(batch.num_envs)  # discount of what follows the last step
        self._since = np.zeros(batch.num_envs, np.int64)  # the unit of the learner's last choice
        self._weight = weight if weight is not None else np.ones(len(batch.lists))
        self._inner: Turn = batch.new_turn()  # where the game writes; what the learner is shown is copied
        self.turn: Turn = batch.new_turn()
        super().__init__(batch.num_envs, batch.observation_space, batch.action_space)
        self.returns, self.lengths = np.zeros(batch.num_envs), np.zeros(batch.num_envs, np.int64)
        self.first_seed = 0
        self._seeded = False
        self._actions = np.zeros(batch.num_envs, np.int64)

    render_mode = None

    def waits(self) -> NDArray[np.bool_]:
        """In which games is it not the learner's turn?"""
        return (self.learner != EVERYBODY) & (self.batch.agent != self.learner)

    def reset(self) -> Any:
        """Begin an episode in every game."""
        rows = np.arange(self.num_envs)
        self.batch.seed(rows, rows.astype(np.uint64) + np.uint64(self.first_seed))
        self.batch.restart(rows, self._inner)
        self._play_on(np.zeros(self.num_envs), None)
        self.returns[:], self.lengths[:] = 0.0, 0
        return self._show()

    def _show(self) -> NDArray[Any]:
        self.turn = self.batch.new_turn()
        self.turn.observation[...], self.turn.mask[...] = self._inner.observation, self._inner.mask
        return self.turn.observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Note the learner's actions."""
        self._actions = np.asarray(actions, np.int64)

    def step_wait(self) -> Any:
        """The learner's choice, then the others' until its next turn."""
        paid, ended = np.zeros(self.num_envs), np.zeros((2, self.num_envs), bool)
        infos: list[dict[str, Any]] = [{}] * self.num_envs
        self._since = self.batch.games.memory["row"].copy()
        self._step(self._actions, paid, ended, infos)
        self._play_on(paid, (ended, infos))
        self.passed = self._discount()
        self.returns += paid
        self.lengths += 1
        done = ended.any(axis=0)
        for row in np.flatnonzero(done):
            infos[row]["episode"] = {"r": float(self.returns[row]), "l": int(self.lengths[row]), "t": 0.0}
        self.returns[done], self.lengths[done] = 0.0, 0
        return self._show(), paid.astype(np.float32), done, infos

    def _discount(self) -> NDArray[np.float64]:
        out: NDArray[np.float64] = self.gamma ** np.maximum(self.batch.games.memory["row"] - self._since, 0)
        return out

    def _step(
        self,
        actions: NDArray[np.int64],
        paid: NDArray[np.float64],
        ended: NDArray[np.bool_],
        infos: list[dict[str, Any]],
    ) -> None:
        """A step of the games; rewards of games that have ended before count no more, as they belong to the next
        episode's past."""
        weight = self._weight[self.batch.worlds.chosen]
        late = self._discount()
        self.batch.step(actions, self._inner)
        turn = self._inner
        own = turn.reward[np.arange(self.num_envs), np.maximum(self.learner, 0)]
        its = np.where(self.learner == EVERYBODY, turn.reward.mean(axis=1), own)
        fresh: NDArray[np.bool_] = np.any(ended, axis=0)
        paid += np.where(fresh, 0.0, its * weight * late)
        over = turn.terminated | turn.truncated
        if not over.any():
            return
        rows = np.flatnonzero(over)
        last, mask = np.zeros_like(turn.observation), np.zeros_like(turn.mask)
        self.batch.look(np.where(self.learner == EVERYBODY, 0, self.learner), last, mask)
        for row in rows:
            if not fresh[row]:
                cut = bool(turn.truncated[row] and not turn.terminated[row])
                infos[row] = {"terminal_observation": last[row].copy(), "TimeLimit.truncated": cut}
        ended[0, rows] |= turn.terminated[rows]
        ended[1, rows] |= turn.truncated[rows]
        self.batch.restart(rows, turn)

    def _play_on(self, paid: NDArray[np.float64], found: tuple[NDArray[np.bool_], list[dict[str, Any]]] | None) -> None:
        """The others answer until it is the learner's turn everywhere."""
        ended, infos = found if found is not None else (np.ones((2, self.num_envs), bool), [{}] * self.num_envs)
        waits = self.waits()
        members = self._others() if waits.any() else []
        while waits.any():
            self._step(choose(self.batch, self._inner, members, waits), paid, ended, infos)
            waits = self.waits()

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions make sense, [N, actions]."""
        return self.turn.mask

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes."""
        return self.batch.state() | {
            "face.returns": self.returns.copy(),
            "face.lengths": self.lengths.copy(),
            "face.observation": self._inner.observation.copy(),
            "face.mask": self._inner.mask.copy(),
        }

    def restore(self, state: dict[str, NDArray[Any]], observation: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        """Restore a saved state."""
        self.batch.restore(state)
        self.returns[:], self.lengths[:] = state["face.returns"], state["face.lengths"]
        self._inner.observation[...], self._inner.mask[...] = state["face.observation"], state["face.mask"]
        self._show()
        self.turn.observation[...], self.turn.mask[...] = observation, mask


def parts_of(batch: MultiBatch, shared: bool) -> list[Any]:
    """Whom each network of a team learns to play: one agent in every game, or, where one network is for all, every
    agent."""
    agents = batch.options.agents
    if not shared:
        return list(range(agents))
    # what one is paid is its own: each game teaches one agent's part
    return [EVERYBODY if batch.options.rewards == "global" else np.arange(batch.num_envs) % agents]


def players(networks: Sequence[Any], batch: MultiBatch, chance: np.random.Generator) -> list[Member]:
    """What the networks of a team, or the one that all share, answer. chance: what they draw their actions by."""
    sees = int(batch.observation_space.shape[0]), int(batch.action_space.n)
    found: list[Member] = [Player(preferences_of(network), sees, chance) for network in networks]
    return found * batch.options.agents if len(found) == 1 else found


class NetworksView(TeamView):
    """In which the others have networks, which whoever trains them gives as `networks`. chance: what the others draw
    their actions by."""

    def __init__(
        self,
        batch: MultiBatch,
        learner: Any,
        weight: NDArray[np.float64] | None,
        gamma: float,
        chance: np.random.Generator,
    ) -> None:
        self.networks: Callable[[], Sequence[Any]] = list
        super().__init__(batch, learner, lambda: players(self.networks(), batch, chance), weight, gamma)
