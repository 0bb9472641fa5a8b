"""The rule hold-pile, and agents that imitate it where no end of arrivals is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.envs.slots.options import options_of
from escala.envs.slots.pile import PARAMETERS, set_pile
from escala.envs.slots.playing import play
from escala.envs.slots.slots import SlotsBatch
from escala.envs.slots.state import HOLD_PILE
from escala.errors import EscalaError

SHORTEST: dict[str, Any] = {"slots": 32, "queue": "shortest"}


@pytest.mark.parametrize("load, window", [(0.7, 400), (1.3, 50), (1.3, 400)])
def test_it_is_below_both_sjf_at_horizons_that_it_is_not_told(load: float, window: int) -> None:
    lists = options_of({"load": load, "window": window, "lists": 4000 // window, "lists_seed": 77}).job_lists()
    ours = play(lists, "hold-pile", **SHORTEST)["slowdown"].to_numpy().mean()
    for rule in ("sjf", "sjf-strict"):
        assert ours < play(lists, rule, slots=200)["slowdown"].to_numpy().mean()


def test_it_takes_as_many_numbers_as_it_names() -> None:
    batch = SlotsBatch(1, options_of({"lists": 1}).job_lists())
    set_pile(batch.games, np.zeros(len(PARAMETERS)))  # type: ignore[arg-type]
    assert not batch.games.pile.any()
    for wrong in (HOLD_PILE[:-1], (*HOLD_PILE[:-1], float("nan"))):
        with pytest.raises(EscalaError, match="numbers of the rule hold-pile"):
            set_pile(batch.games, wrong)


def test_an_agent_imitates_it_and_is_shown_no_end(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra [agents] is not installed")
    given: dict[str, Any] = {"load": [0.7, 1.3], "window": [20, 40], "lists": 40, "lists_seed": 1}
    teacher = {"pile": list(HOLD_PILE), "updates": [150]}
    agent = escala.train("escala/Slots-v0", steps=0, preset="open", teacher=teacher, seed=1, **given)
    assert "arrivals_end" not in agent.env_options and agent.env_options["queue"] == "shortest"
    lists = options_of(given | {"lists_seed": 9}).job_lists()
    ours = play(lists, lambda seen, mask: agent.act(seen, mask, None), rescue=50, skip="forced", **SHORTEST)["slowdown"]
    nothing = escala.train(
        "escala/Slots-v0", steps=0, preset="open", teacher=teacher | {"updates": [1]}, seed=1, **given
    )
    before = play(lists, lambda seen, mask: nothing.act(seen, mask, None), rescue=50, skip="forced", **SHORTEST)[
        "slowdown"
    ]
    assert ours.to_numpy().mean() < before.to_numpy().mean()
    for wrong in ({"pile": [1.0]}, {"pile": [float("nan")] * 16}):
        with pytest.raises(EscalaError, match="the numbers of hold-pile"):
            escala.train("escala/Slots-v0", steps=0, preset="open", teacher=wrong, **given)
