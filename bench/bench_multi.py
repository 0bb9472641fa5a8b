"""Agent steps per second of the game of several agents under random choices: one core, 256 games, resets included."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.measure import Case, seconds
from escala.envs import multi

GAMES = 256
STEPS = 1000


def random_turns(**options: Any) -> tuple[float, str]:
    """Valid and invalid choices alike, plain load .9, one choice a turn."""
    batch = multi.batch(GAMES, load=0.9, lists=1024, **options)
    turn, rows = batch.new_turn(), np.arange(GAMES)
    batch.seed(rows, rows.astype(np.uint64))
    batch.restart(rows, turn)
    actions = np.random.default_rng(0).integers(0, int(batch.action_space.n), (STEPS, GAMES))

    def roll() -> None:
        for chosen in actions:
            batch.step(chosen, turn)
            ended = turn.terminated | turn.truncated
            if ended.any():
                batch.restart(np.flatnonzero(ended), turn)

    return GAMES * STEPS / seconds(roll, 3) / 1e3, "k steps/s"


def aec_turns() -> tuple[float, str]:
    """The same through the PettingZoo AEC face, one game."""
    env = multi.slots(load=0.9, lists=64)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 6, 3000)

    def roll() -> None:
        for action in actions:
            name = env.agent_selection
            if env.terminations[name] or env.truncations[name]:
                env.reset()
            env.last()
            env.step(int(action))

    return len(actions) / seconds(roll, 3) / 1e3, "k steps/s"


CASES = [
    Case("Several agents, 3 x 1, compact, global", ">= 300 k agent steps/s", random_turns),
    Case("Several agents, 3 x 2, compact, global", ">= 300 k agent steps/s", lambda: random_turns(machines=2)),
    Case(
        "Several agents, 3 x 1, compact, local",
        ">= 300 k agent steps/s",
        lambda: random_turns(information="local", rewards="local"),
    ),
    Case("Several agents, 3 x 1, image", "-", lambda: random_turns(observation="image")),
    Case("Several agents, 3 x 1, the AEC face, one game", "-", aec_turns),
]
