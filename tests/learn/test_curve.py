"""The learning curve that training keeps: it moves no weight, survives an interruption, and its levels are what the simulator says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.agents import Agent, checkpoint, load_agent, train, watch
from escala.agents.presets import OFF_RESERVATION, SCHEDULING
from escala.envs.episodes import idle_watts
from escala.envs.offreservation import OffReservationBatch
from escala.report.training import training_of
from tests.learn.small import SMALL, days, equal

pytestmark = pytest.mark.learn


def small(env_id: str = OFF_RESERVATION, **more: Any) -> Agent:
    return train(env_id, days(), "orion", **SMALL, **more)


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a long training: every tenth is affordable."""
    monkeypatch.setattr(watch, "LEAST_S", 0.0)
    monkeypatch.setattr(watch, "SHARE", 1e9)


@pytest.mark.parametrize("env_id", [OFF_RESERVATION, SCHEDULING])
def test_a_curve_moves_no_weight(env_id: str, looking: None, tmp_path: Path) -> None:
    watched, plain = small(env_id, out=tmp_path / "agent"), small(env_id, curve=False)
    assert equal(watched, plain)
    assert plain.curve is None and watched.curve is not None
    steps = watched.curve.filter(pl.col("policy") == "agent")["step"].to_list()
    assert len(steps) >= 8 and steps == sorted(set(steps)) and steps[-1] == watched.manifest["steps_done"]
    loaded = load_agent(tmp_path / "agent").curve
    assert loaded is not None and loaded.equals(watched.curve)
    (drawn,) = training_of(tmp_path / "agent")
    assert drawn.points.height == len(steps)
    assert set(drawn.levels) == ({"first-fit"} if env_id == SCHEDULING else {"hold:0", "hold:0.25", "hold:0.475"})


def test_short_trainings_keep_none(tmp_path: Path) -> None:
    small(out=tmp_path / "agent")
    assert sorted(path.name for path in (tmp_path / "agent").iterdir()) == ["manifest.json", "weights.pt"]
    assert training_of(tmp_path / "agent") == []


class Killed(BaseException):
    """Stands for a kill: nothing in Escala catches it."""


def test_a_resumed_training_keeps_its_curve(looking: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)

    def kill(share: float) -> None:
        if share > 0.6:
            raise Killed

    with pytest.raises(Killed):
        small(out=tmp_path / "agent", progress=kill)
    resumed, whole = small(out=tmp_path / "agent", resume=True), small(curve=True)
    assert resumed.curve is not None and whole.curve is not None
    assert resumed.curve.equals(whole.curve)
    assert resumed.manifest["returns"] == whole.manifest["returns"]


def test_a_training_tells_what_it_earned_in_any_environment() -> None:
    """Points at every fiftieth, here at every rollout, each the mean of the last hundred episodes."""
    learn = {"n_steps": 32, "batch_size": 128}
    agent = train("escala/Slots-v0", steps=8192, num_envs=8, learn=learn, load=0.4, window=20, lists=50)
    points = agent.manifest["returns"]
    steps = [step for step, _ in points]
    assert steps == sorted(set(steps)) and 20 <= len(steps) <= watch.RETURNS and steps[-1] == agent.manifest["steps_done"]
    assert points[-1][1] == agent.manifest["mean_return"]
    assert points[0][1] < np.mean([value for _, value in points[-5:]]) < 0.0, "it learns, and pays for every job"


def test_levels_are_what_the_simulator_says() -> None:
    """With a QoS that nothing violates, the return is the waste of the day in minutes of an idle platform (R3, equation 4.4)."""
    batch = OffReservationBatch(len(days()), days(), "orion", action="hold", tau=1e9)
    scale = idle_watts(batch.platform) * 60.0
    levels = watch.rules(OFF_RESERVATION, batch)
    for name in ("hold:0", "hold:0.25", "hold:0.475"):
        wasted = [
            escala.simulate(day, "orion", scheduler="saf", shutdown=name, start_off=True, until_s=86400.0).summary()["waste_j"]
            for day in days()
        ]
        assert watch.mean_return(batch, levels[name], 60.0) == pytest.approx(-np.mean(wasted) / scale, rel=1e-9)


def test_rules_of_the_other_forms_of_action() -> None:
    names = {form: set(watch.rules(OFF_RESERVATION, OffReservationBatch(2, days(), "orion", action=form))) for form in ("wake", "count")}
    assert names == {"wake": {"timeout:0"}, "count": {"never"}}


def test_a_look_that_takes_too_long_is_given_up() -> None:
    batch = OffReservationBatch(2, days(), "orion", action="hold")
    assert watch.mean_return(batch, watch.rules(OFF_RESERVATION, batch)["hold:0"], 0.0) is None


def test_looks_take_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by hand: each look takes 2 s of a training of 100 s, so no more than three fit into a share of 6 %."""
    batch = OffReservationBatch(1, days(), "orion", action="hold")
    kept = watch.Watch(OFF_RESERVATION, batch, {"action": "hold"}, None)
    looks: list[int] = []

    def look(step: int, elapsed_s: float) -> None:
        looks.append(step)
        kept._spent, kept._last = kept._spent + 2.0, 2.0

    monkeypatch.setattr(kept, "_look", look)
    for second in range(1, 101):
        kept.between(second, second / 100, float(second))
    assert len(looks) == 3 and looks[0] == 10


def test_the_page_of_an_agent_shows_its_curve(looking: None, tmp_path: Path) -> None:
    from escala.cli.pages import report

    small(out=tmp_path / "agent")
    report([tmp_path / "agent"])
    page = (tmp_path / "agent" / "report.html").read_text(encoding="utf-8")
    assert "<h2>Learning curve</h2>" in page and "hold:0.25" in page and "Decisions in training" in page and "The agent" in page
    (tmp_path / "agent" / "curve.csv").write_text("policy,step,value\nagent,one,two\n")
    with pytest.raises(escala.EscalaError, match=r"curve\.csv"):
        report([tmp_path / "agent"])
