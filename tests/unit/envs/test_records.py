"""An environment's own record: every setting is given, copies are apart, and a policy sees what its environment
shows."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import escala
from escala.envs import multi
from escala.envs.core.batch import new_turn
from escala.envs.core.records import settings_of
from escala.envs.slots.policy import SlotPolicy
from escala.envs.slots.slots import SlotsBatch
from escala.envs.slots.team.policy import TeamPolicy
from escala.errors import EscalaError

FIELDS = np.dtype([("slots", "i8"), ("tau", "f8")])


def test_no_setting_is_left_out_in_silence() -> None:
    assert settings_of(FIELDS, {"tau": 0.5, "slots": 3}).item() == (3, 0.5)
    with pytest.raises(KeyError, match="tau"):
        settings_of(FIELDS, {"slots": 3})
    with pytest.raises(KeyError, match="depth"):
        settings_of(FIELDS, {"slots": 3, "tau": 0.5, "depth": 1})


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_copies_have_arrays_of_their_own(copied: Any) -> None:
    batch = SlotsBatch(2, lists=2)
    twin = copied(batch)
    before = batch.games.state()
    turn = new_turn(twin)
    twin.restart(np.arange(2), turn, {"list": np.zeros(2, np.int64)})
    twin.step(np.ones(2, np.int64), turn)
    assert (twin.games.memory["seen"] > 0).all()
    assert all((batch.games.state()[name] == before[name]).all() for name in before)


def test_a_state_of_another_shape_is_refused_in_one_line() -> None:
    saved = SlotsBatch(2, lists=2).state()
    with pytest.raises(EscalaError, match=r"saved state: .*use the same options"):
        SlotsBatch(3, lists=2).restore(saved)


def test_policies_have_the_settings_of_their_environments() -> None:
    """Every field, but for those of a whole list: in a run through `simulate` an agent sees what it saw in training."""
    for options in (
        {},
        {"placement": "reserve"},
        {"observation": "image", "skip": "forced"},
        {"arrivals_end": 101, "slots": 7},
    ):
        batch, policy = SlotsBatch(1, lists=1, **options), SlotPolicy("sjf", **options)
        escala.simulate(batch.lists.workload(0), batch.lists.platform, scheduler=policy)
        for name in set(batch.games.settings.dtype.names) - {"ring", "named", "long", "quiet", "share"}:
            assert policy._games.settings[name] == batch.games.settings[name], name
        assert [policy._games.settings[name] for name in ("long", "quiet", "share")] == [3, 6, 0]


def test_teams_have_the_settings_of_their_games() -> None:
    for options in (
        {},
        {"turns": "until-void"},
        {"information": "local", "machines": 2},
        {"arrivals_end": 60, "skip": "forced"},
    ):
        shape: dict[str, Any] = {"agents": 2, **options}
        batch, team = multi.batch(1, lists=1, steps=40, **shape), TeamPolicy("sjf", **shape)
        escala.simulate(batch.lists.workload(0), batch.lists.platform, scheduler=team)
        for name in set(batch.games.settings.dtype.names) - {"ring", "discount"}:
            assert team._games.settings[name] == batch.games.settings[name], name
        assert (team._games.capacity == batch.games.capacity).all() and (team._games.points == batch.games.points).all()
