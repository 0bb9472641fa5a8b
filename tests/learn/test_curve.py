"""The learning curve that training keeps: it moves no weight, survives an interruption, and its levels are what the
simulator says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.agents import Agent, checkpoint, load_agent, train
from escala.agents.presets import OFF_RESERVATION, SCHEDULING
from escala.agents.training import learning_curve as watch
from escala.agents.training import reference_returns
from escala.envs.rjms.episodes import idle_watts
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.report.curves import Training, learning_curve
from escala.report.training import training_of
from tests.learn.small import SMALL, days, equal
from tests.unit.envs.days import scheduling_return, workload

pytestmark = pytest.mark.learn


def small(env_id: str = OFF_RESERVATION, **more: Any) -> Agent:
    return train(env_id, days()[:2], "orion", **SMALL, **more)


def _look(patch: pytest.MonkeyPatch) -> None:
    """As in a long training: every tenth is affordable."""
    patch.setattr(watch, "LEAST_S", 0.0)
    patch.setattr(watch, "SHARE", 1e9)


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> None:
    _look(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Agent, Path]:
    """A watched training that nothing interrupts, and its folder."""
    folder = tmp_path_factory.mktemp("curve") / "agent"
    with pytest.MonkeyPatch.context() as patch:
        _look(patch)
        return small(out=folder), folder


@pytest.mark.parametrize("env_id", [OFF_RESERVATION, SCHEDULING])
def test_a_curve_moves_no_weight(env_id: str, looking: None, whole: tuple[Agent, Path], tmp_path: Path) -> None:
    watched, folder = (
        whole if env_id == OFF_RESERVATION else (small(env_id, out=tmp_path / "agent"), tmp_path / "agent")
    )
    plain = small(env_id, curve=False)
    assert equal(watched, plain)
    assert plain.curve is None and watched.curve is not None
    steps = watched.curve.filter(pl.col("policy") == "agent")["step"].to_list()
    assert len(steps) >= 8 and steps == sorted(set(steps)) and steps[-1] == watched.manifest["steps_done"]
    loaded = load_agent(folder).curve
    assert loaded is not None and loaded.equals(watched.curve)
    (drawn,) = training_of(folder)
    assert drawn.points.height == len(steps)
    held = (*reference_returns.SHUTDOWNS, "hold:0.25:uncapped", "hold:0.475:uncapped")
    assert list(drawn.levels) == list(reference_returns.SCHEDULERS if env_id == SCHEDULING else held)


def test_short_trainings_keep_none(tmp_path: Path) -> None:
    small(out=tmp_path / "agent")
    assert sorted(path.name for path in (tmp_path / "agent").iterdir()) == ["manifest.json", "weights.pt"]
    assert training_of(tmp_path / "agent") == []


class Killed(BaseException):
    """Stands for a kill: nothing in Escala catches it."""


def test_a_resumed_training_keeps_its_curve(
    looking: None, whole: tuple[Agent, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)

    def kill(share: float) -> None:
        if share > 0.6:
            raise Killed

    with pytest.raises(Killed):
        small(out=tmp_path / "agent", progress=kill)
    resumed, (one, _) = small(out=tmp_path / "agent", resume=True), whole
    assert resumed.curve is not None and one.curve is not None
    assert resumed.curve.equals(one.curve)
    assert resumed.manifest["returns"] == one.manifest["returns"]


def test_a_training_tells_what_it_earned_in_any_environment() -> None:
    """Points at every fiftieth, here at every rollout, each the mean of the last hundred episodes."""
    learn = {"n_steps": 32, "batch_size": 128}
    agent = train("escala/Slots-v0", steps=8192, num_envs=8, learn=learn, load=0.4, window=20, lists=50)
    points = agent.manifest["returns"]
    steps = [step for step, _ in points]
    assert (
        steps == sorted(set(steps)) and 20 <= len(steps) <= watch.RETURNS and steps[-1] == agent.manifest["steps_done"]
    )
    assert points[-1][1] == agent.manifest["mean_return"]
    assert points[0][1] < np.mean([value for _, value in points[-5:]]) < 0.0, "it learns, and pays for every job"


@pytest.mark.parametrize("window", ["cut", "drain"])
@pytest.mark.parametrize("action", ["hold", "count", "wake"])
def test_levels_are_what_the_simulator_says(action: str, window: str) -> None:
    """With a QoS that nothing violates, the return is the waste of the day in minutes of an idle platform (R3, equation
    4.4)."""
    batch = OffReservationBatch(len(days()), days(), "orion", action=action, tau=1e9, window=window)
    scale = idle_watts(batch.platform) * 60.0
    limit = {"until_s": 86400.0} if window == "cut" else {}
    told = reference_returns.levels(OFF_RESERVATION, batch)
    assert list(told) == [
        *reference_returns.SHUTDOWNS,
        *(("hold:0.25:uncapped", "hold:0.475:uncapped") if action == "hold" else ()),
    ]
    for name, level in told.items():
        runs = [
            escala.simulate(day, "orion", scheduler="saf", shutdown=name, start_off=True, **limit).summary()
            for day in days()
        ]
        assert level(60.0) == pytest.approx(-np.mean([run["waste_j"] for run in runs]) / scale, rel=1e-9), name


def test_levels_count_late_jobs_as_the_agent_s_reward_does() -> None:
    """A policy of the kernel beneath, and the agent's choices that are the same policy. One job waits for another's
    nodes, late from 5 min of waiting on, 96 times: from 6 min to the end of the first at 101 min (its node boots for a
    minute)."""
    batch = OffReservationBatch(len(days()), days(), "orion", action="hold", stretch_cost=0.5, qos="all")
    level = reference_returns.levels(OFF_RESERVATION, batch)["timeout:0"](60.0)
    assert level == pytest.approx(
        reference_returns.mean_return(batch, reference_returns.always(0, batch.num_envs), 60.0), rel=1e-12
    )
    day = workload((0.0, 6000.0, 6000.0, 2), (60.0, 600.0, 600.0, 2))
    late = OffReservationBatch(1, [day], "2x1:grid5000", action="count", qos="all", normalise="none")
    waste = 2 * 60.0 * 125.0 + 2 * (86400.0 - 60.0 - 6600.0) * 95.0
    assert reference_returns.levels(OFF_RESERVATION, late)["never"](60.0) == pytest.approx(
        -waste - 2.0 * 96.0, rel=1e-12
    )


@pytest.mark.parametrize("window", ["cut", "drain"])
def test_levels_of_schedulers_are_what_the_simulator_says(window: str) -> None:
    batch = SchedulingBatch(len(days()), days(), "orion", window=window)
    limit = {"until_s": 86400.0} if window == "cut" else {}
    told = reference_returns.levels(SCHEDULING, batch)
    assert list(told) == ["first-fit", "easy", "saf"]
    for name, level in told.items():
        runs = [
            escala.simulate(day, "orion", scheduler=name, shutdown="timeout:300", start_off=True, **limit)
            for day in days()
        ]
        sums = [scheduling_return(run, day, batch.platform.n_nodes) for run, day in zip(runs, days(), strict=True)]
        assert level(60.0) == pytest.approx(np.mean(sums), rel=1e-9), name


def test_a_look_that_takes_too_long_is_given_up() -> None:
    batch = OffReservationBatch(2, days(), "orion", action="hold")
    assert reference_returns.levels(OFF_RESERVATION, batch)["hold:0.25:uncapped"](0.0) is None
    assert reference_returns.levels(OFF_RESERVATION, batch)["never"](0.0) is None


def test_a_level_that_would_squeeze_the_curve_is_told_in_the_legend() -> None:
    points = pl.DataFrame({"step": [0, 1000], "value": [-12.0, -8.0]})
    drawn = Training(points, {"timeout:0": -9.0, "timeout:300": -18.0, "off-reservation:2": -360.4, "never": -716336.0})
    axes = learning_curve(drawn).axes[0]
    told = [text.get_text() for text in axes.get_legend().get_texts()]
    assert told == [
        "trained",
        "timeout:0",
        "timeout:300",
        "off-reservation:2 (−360, off the scale)",
        "never (−716 k, off the scale)",
    ]
    assert axes.get_ylim()[0] > -30.0
    near = learning_curve(Training(points, {"timeout:0": -9.0, "timeout:300": -18.0, "never": -60.0})).axes[0]
    assert near.get_ylim()[0] < -60.0


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


def test_the_page_of_an_agent_shows_its_curve(whole: tuple[Agent, Path], tmp_path: Path) -> None:
    from escala.cli.pages import report

    shutil.copytree(whole[1], tmp_path / "agent")
    report([tmp_path / "agent"])
    page = (tmp_path / "agent" / "report.html").read_text(encoding="utf-8")
    assert (
        "<h2>Learning curve</h2>" in page
        and "hold:0.25" in page
        and "Decisions in training" in page
        and "The agent" in page
    )
    (tmp_path / "agent" / "curve.csv").write_text("policy,step,value\nagent,one,two\n")
    with pytest.raises(escala.EscalaError, match=r"curve\.csv"):
        report([tmp_path / "agent"])
