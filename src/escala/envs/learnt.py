"""Agents as policies of `simulate`: the same questions and the same observations, by the same compiled code as in
training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.core.checks import choice
from escala.envs.core.policy import EnvPolicy, forbid_noop
from escala.envs.core.records import Records
from escala.envs.deciding import Deciding
from escala.envs.rjms import off_reservation, off_reservation_step, scheduling, scheduling_step
from escala.envs.rjms.observation import SNAPSHOT
from escala.envs.rjms.state import RECENT, SCHEDULING_MEMORY, SHUTDOWN_MEMORY
from escala.envs.slots.options import shaping
from escala.envs.slots.policy import SlotPolicy
from escala.errors import EscalaError
from escala.kernel import codes
from escala.policy import insider

UNKNOWN = -(2.0**40)
"""In place of a ratio: of a job that is gone, and of whose end nobody was told."""


def users_of(world: Any, i: int) -> int:
    """Users of simulation i's jobs."""
    return max(1, int(world.job[i]["user"].max(initial=0)) + 1)


class _Learnt(EnvPolicy):
    """An agent and its draws: the same in every run."""

    def __init__(self, agent: Deciding, sampled: bool, seed: int) -> None:
        self.agent = agent
        self.name = agent.name if sampled else f"{agent.name}, likeliest actions"
        self._sampled, self._seed, self.draws = sampled, seed, sampled
        self.begin_run()
        shape = tuple(agent.manifest["observation_shape"])
        self._observation = np.zeros((1, *shape), np.float32)
        self._mask = np.zeros((1, int(agent.manifest["actions"])), bool)

    def _expects(self, shape: tuple[int, ...]) -> None:
        """Refuse an agent that was taught to see something else than the environment shows now: compiled code writes
        into its arrays."""
        if self._observation.shape[1:] != shape:
            raise EscalaError(
                f"{self.name} was trained by another version of Escala (it sees {self._observation.shape[1:]} numbers, "
                f"{self.agent.env_id} now shows {shape}): train it again"
            )

    def _chooses(self, actions: int, here: str, advice: str) -> None:
        """The same of an agent that chooses among other actions than there are."""
        if self._mask.shape[1] != actions:
            raise EscalaError(
                f"{self.name} chooses among {self._mask.shape[1]} actions, {here} has {actions}: {advice}"
            )

    def begin_run(self) -> None:
        """The next decision is the first of a run."""
        super().begin_run()
        self._random = np.random.default_rng(self._seed) if self._sampled else None

    def _choose(self) -> int:
        return choice(self.name, self.agent.act(self._observation, self._mask, self._random)[0], self._mask.shape[1])


@insider
class LearntShutdown(_Learnt):
    """An off-reservation agent as a shutdown policy: `simulate(w, p, scheduler="saf", shutdown=agent)`."""

    role = "shutdown"
    before_scheduler = True
    remembers_rows = False

    def __init__(self, agent: Deciding, sampled: bool = True, seed: int = 0) -> None:
        super().__init__(agent, sampled, seed)
        self.options = off_reservation.options_of(agent.env_options)
        self._expects(self.options.shape)
        self.period_s = self.options.period_s
        self.at_events = self.options.ask == "submissions"
        self.beneath = off_reservation.BENEATH[self.options.action]

    def _forms(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        shape = 1, self.options.history, self.options.width
        return {"memory": (SHUTDOWN_MEMORY, (1,)), "history": (np.float32, shape)}

    def _check(self, state: Any, arrays: dict[str, NDArray[Any]]) -> None:
        memory = arrays["memory"][0]
        np.zeros(self.options.history)[abs(memory["newest"])], self._mask[0][abs(memory["standing"])]

    def _make_room(self, simulation: Any, i: int, users: int, ended: int) -> None:
        games, running = self._games, simulation.world.plans.shape[1]
        if users > len(games.users) or running >= len(games.frontier):
            fresh = self.options.games(1, simulation.platform, 2 * users, running)
            fresh.memory[:], fresh.history[:] = games.memory, games.history
            self._games = fresh

    def _begin(self, simulation: Any, i: int) -> Records:
        platform, world = simulation.platform, simulation.world
        actions = self.options.actions(platform)
        self._chooses(actions, f"platform {platform.name!r}", "train on this platform, or with action='hold'")
        return self.options.games(1, platform, users_of(world, i), world.plans.shape[1])

    def _look(self, simulation: Any, i: int, agent: int) -> bool:
        games = self._games.table
        self._what = off_reservation_step.look(simulation.table, i, games, self._observation.reshape(-1), self._mask[0])
        return self._what != 0

    def _ask(self, simulation: Any, i: int, agent: int) -> int:
        return self._choose() if self._what == 2 else int(self._games.memory["standing"][0])

    def _put(self, simulation: Any, i: int, action: int) -> bool:
        simulation.make_room(i, int(simulation.world.s[i, 0]["n_queued"]) + 2)  # a timer for each waiting job
        off_reservation_step.put(simulation.table, i, self._games.table, action)
        return False


@insider
class LearntScheduler(_Learnt):
    """A scheduling agent: `simulate(w, p, scheduler=agent, shutdown="timeout:300")`. Not sampled, it starts the greedy
    job where nothing runs and something fits, whatever it thinks of waiting."""

    def __init__(self, agent: Deciding, sampled: bool = True, seed: int = 0) -> None:
        super().__init__(agent, sampled, seed)
        self.options = scheduling.options_of(agent.env_options)
        self._expects(self.options.shape)
        self._chooses(self.options.places + 1, f"its queue of {self.options.places} places", "train it again")

    @property
    def remembers_rows(self) -> bool:  # type: ignore[override]
        """As of `EnvPolicy`: of jobs that have been submitted, until they end."""
        return self.options.confidence != "ended"

    def _forms(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        return {"memory": (SCHEDULING_MEMORY, (1,)), "history": (np.float32, (1, self.options.places, SNAPSHOT))}

    def _more(self) -> dict[str, Any]:
        """Users who have a confidence, by number; -1: jobs without."""
        games = self._games
        known = np.flatnonzero(games.entered[0]).tolist()
        rings = {k: games.ratios[0, k, : games.entered[0, k]].tolist() for k in known}
        last = len(games.entered[0]) - 1
        return {
            "users": [
                [-1 if k == last else k, int(games.entered[0, k]), float(games.confidence[0, k]), rings[k]]
                for k in known
            ]
        }

    def _check(self, state: Any, arrays: dict[str, NDArray[Any]]) -> None:
        np.zeros(self.options.places)[abs(arrays["memory"][0]["newest"])]
        for user, entered, confidence, ring in state["users"]:
            if (
                len(ring) != min(int(entered), RECENT)
                or int(user) < -1
                or not all(isinstance(x, float) for x in (*ring, confidence))
            ):
                raise ValueError(user)

    def _recall(self, state: Any) -> None:
        games = self._games
        for user, entered, confidence, ring in state["users"]:
            games.entered[0, user], games.confidence[0, user], games.ratios[0, user, : len(ring)] = (
                entered,
                confidence,
                ring,
            )

    def _make_room(self, simulation: Any, i: int, users: int, ended: int) -> None:
        games, running = self._games, simulation.world.plans.shape[1] + ended
        old = games.entered.shape[1] - 1
        if users <= old and running < games.live.shape[1]:
            return
        fresh = self.options.games(1, simulation.platform, max(2 * users, old), running)
        fresh.memory[:], fresh.history[:] = games.memory, games.history
        for name in ("ratios", "entered", "confidence"):
            ours, theirs = getattr(fresh, name)[0], getattr(games, name)[0]
            ours[:old], ours[-1] = theirs[:old], theirs[-1]
        self._games = fresh

    def renumber(self, kept: NDArray[np.int64]) -> None:
        """Beside a machine: the jobs of these rows, ascending, have rows from 0 on now; all others are gone."""
        games = self._games
        row = -1 - games.ratios
        place = np.searchsorted(kept, row)
        known = (
            (games.ratios < 0) & (kept[np.minimum(place, len(kept) - 1)] == row)
            if len(kept)
            else np.zeros(row.shape, bool)
        )
        games.ratios[...] = np.where(known, -1.0 - place, np.where(games.ratios < 0, UNKNOWN, games.ratios))
        games.memory["seen_jobs"] = len(kept)

    def _look_round(self, simulation: Any, i: int, ended: NDArray[np.int64]) -> None:
        """Whose end is to be noted, whoever has started them."""
        world, games = simulation.world, self._games
        state = world.run[i, : world.o["n_jobs"].item(i)]["state"]
        live = np.concatenate([np.flatnonzero((state == codes.GIVEN) | (state == codes.RUNNING)), ended])
        games.live[0, : len(live)] = live
        games.memory["n_live"] = len(live)
        games.memory["seen_ended"] = world.s["n_ended"].item(i) - (len(ended) > 0)

    @property
    def _counting(self) -> str:
        """What of it counts cores of any nodes; "" for nothing."""
        return "its guard" if self.options.guard_s > 0 else ""

    @property
    def one_pool(self) -> bool:  # type: ignore[override]
        """As of `EnvPolicy`: what counts cores does."""
        return bool(self._counting)

    def _suits(self, simulation: Any, i: int) -> None:
        if self._counting and not simulation.plain:
            raise EscalaError(
                f"{self.name}: {self._counting} counts cores of any nodes, and jobs go by nodes or further kinds: take "
                "an agent without it, or easy, or leave out what jobs ask of nodes"
            )

    def _begin(self, simulation: Any, i: int) -> Records:
        world = simulation.world
        return self.options.games(1, simulation.platform, users_of(world, i), world.plans.shape[1])

    def _look(self, simulation: Any, i: int, agent: int) -> bool:
        return scheduling_step.look(simulation.table, i, self._games.table, self._observation[0], self._mask[0])

    def _ask(self, simulation: Any, i: int, agent: int) -> int:
        if not self._sampled:
            forbid_noop(simulation, i, self._mask[0], 0)
        return self._choose()

    def _put(self, simulation: Any, i: int, action: int) -> bool:
        scheduling_step.put(simulation.table, i, self._games.table, action)
        return True


def learnt_slots(agent: Deciding, sampled: bool = True, seed: int = 0) -> SlotPolicy:
    """A slotted agent as a scheduler: `simulate(w, p, scheduler=agent)`. Each run draws from the same seed."""
    return SlotPolicy(
        lambda seen, mask, random: int(agent.act(seen[None], mask[None], random)[0]),
        name=agent.name if sampled else f"{agent.name}, likeliest actions",
        sampled=sampled,
        seed=seed,
        seen=tuple(agent.manifest["observation_shape"]),
        **shaping(agent.env_options),
    )


POLICIES: dict[str, Any] = {
    "escala/OffReservation-v0": LearntShutdown,
    "escala/Scheduling-v0": LearntScheduler,
    "escala/Slots-v0": learnt_slots,
}
"""Environment -> the policy that its agents make."""


def policy_of(agent: Deciding, sampled: bool, seed: int) -> Any:
    """The policy of an agent; EscalaError where its environment has none."""
    if agent.env_id not in POLICIES:
        raise EscalaError(f"an agent of {agent.env_id} is no policy of simulate: use agents of {', '.join(POLICIES)}")
    return POLICIES[agent.env_id](agent, sampled, seed)
