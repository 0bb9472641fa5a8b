"""N games of several agents at once; see `slots.batch`."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from escala.envs.core.batch import Turn, new_turn
from escala.envs.core.checks import chosen_actions, environments
from escala.envs.slots import step as steps
from escala.envs.slots.batch import SlottedBatch
from escala.envs.slots.heuristics import TEAM_RULES
from escala.envs.slots.team.options import options_of
from escala.options import microseconds

FIGURES = ("slowdown", "turnaround", "wait", "makespan", "submitted", "left", "finished_slowdown", "finished_runtime")
LEAVE = -1
"""The action that leaves a game as it stands."""


class MultiBatch(SlottedBatch):
    """See `escala.envs.multi.slots` for rules and options. `agent` [N]: whose turn it is in each game. In a turn the
    observation and the mask are of that agent; reward [N, agents]: what passed in the step cost each agent. Action
    `LEAVE` leaves a game, and what the turn says of it but for reward and end, as it stands.

    In `info` a waiting job counts as if it started now; left: jobs that have not ended; finished_...: means over those
    that have. After a step that ends the episode of some games the caller restarts these before the next step.
    """

    RULES = TEAM_RULES
    FIGURES = FIGURES
    least = LEAVE

    def __init__(self, num_envs: int, workload: Any = None, **options: Any) -> None:
        self.options = chosen = options_of(options)
        lists = chosen.job_lists(workload)
        environments(num_envs)
        games = chosen.games(num_envs, chosen.capacities(), int(microseconds(lists.unit_s)), lists.longest)
        if chosen.observation == "image":
            space = spaces.Box(0, 255, (chosen.horizon, chosen.width()), np.uint8)
        else:
            space = spaces.Box(0.0, 1.0, (chosen.numbers(),), np.float32)
        super().__init__(num_envs, lists, games, space)

    @property
    def agent(self) -> NDArray[np.int64]:
        """Whose turn it is, [N]."""
        return self.games.memory["agent"]

    def new_turn(self) -> Turn:
        """Arrays for the steps of this batch."""
        return new_turn(self)._replace(reward=np.zeros((self.num_envs, self.options.agents)))

    def look(self, agents: NDArray[np.int64], observation: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        """Write what agents [N], one in each game, see now, whosever turn it is."""
        agents = chosen_actions(agents, self.num_envs, self.options.agents, what="agents")
        steps.look(self.worlds.table, self.games.table, agents, (*self._seen(observation), mask))
