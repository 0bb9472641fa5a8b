"""The scheduling environment against sums by hand and against the metrics of the same run."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import escala
import escala.envs
from tests.unit.envs.days import DAY_S, workload


def _env(day: escala.Workload, platform: str = "2x1", **options: Any) -> Any:
    return gymnasium.make("escala/Scheduling-v0", workload=[day], platform=platform, **options)


def test_time_stands_still_during_valid_choices_and_a_void_one_passes_a_minute() -> None:
    env = _env(workload((100.0, 60.0, 60.0, 1), (100.0, 60.0, 60.0, 1), (100.0, 60.0, 60.0, 1)))
    _, info = env.reset(seed=0)
    assert info["action_mask"][:4].tolist() == [True, True, True, True]
    _, reward, _, _, info = env.step(2)
    assert (info["time_s"], reward) == (100.0, 0.0)
    assert info["action_mask"][:4].tolist() == [True, True, True, False]
    _, reward, _, _, info = env.step(1)
    assert (info["time_s"], reward) == (100.0, 0.0)
    assert info["action_mask"][:4].tolist() == [True, False, False, False]
    _, reward, _, _, info = env.step(1)  # does not fit: as void
    assert info["time_s"] == 160.0
    assert reward == pytest.approx(-60.0 / 60.0)  # one job waited its walltime; both nodes were switching on


def test_with_an_empty_queue_time_runs_to_the_next_submission() -> None:
    env = _env(workload((100.0, 60.0, 60.0, 1), (5000.5, 60.0, 60.0, 1)))
    env.reset(seed=0)
    _, reward, _, _, info = env.step(1)
    assert info["time_s"] == 5000.5
    # booting 60 s, computing 60 s, idle 300 s, then off: shares of 2 nodes and minutes
    assert reward == pytest.approx(-(300.0 / 60.0) / 2 + 0.2 * (60.0 / 60.0) / 2)


def test_confidence_knows_only_what_has_ended() -> None:
    jobs = [(0.0, 30.0, 60.0, 1), (0.0, 60.0, 600.0, 1), (1000.0, 60.0, 60.0, 1), (1000.0, 60.0, 60.0, 1)]
    env = _env(workload(*jobs, users=["a", "a", "a", "b"]))
    observation, _ = env.reset(seed=0)
    assert observation[0, 2] == 1.0
    env.step(1)
    observation, *_ = env.step(1)
    assert observation[0, 2] == pytest.approx((30.0 / 60.0 + 60.0 / 600.0) / 2)
    assert observation[1, 2] == 1.0


def test_running_jobs_are_seen_with_the_next_to_leave_first() -> None:
    env = _env(workload((0.0, 900.0, 7200.0, 1), (0.0, 900.0, 3600.0, 1), (0.0, 60.0, 60.0, 1)), start_off=False)
    env.reset(seed=0)
    env.step(1)
    observation, *_ = env.step(1)
    assert observation[0, 3:6] == pytest.approx([0.5, np.sqrt(3600.0 / DAY_S), np.sqrt(3600.0 / DAY_S)])
    assert observation[1, 3:6] == pytest.approx([0.5, np.sqrt(7200.0 / DAY_S), np.sqrt(7200.0 / DAY_S)])


class FirstFit:
    """The environment's questions, answered by the first job that fits; the metrics of the same run come from `simulate`."""

    name = "first fit, once a minute"

    def __init__(self) -> None:
        self.due = 0.0

    def decide(self, view: Any, act: Any) -> None:
        if view.queue_length == 0:
            self.due = 0.0
        if view.queue_length == 0 or view.now_s < self.due:
            return
        while any(act.start(job) for job in view.queue[:20]):
            pass
        self.due = 0.0
        if view.queue_length:
            self.due = view.now_s + 60.0
            act.call_at(self.due)


@pytest.mark.parametrize("window", ["cut", "drain"])
def test_the_rewards_of_a_day_add_up_to_its_metrics(window: str) -> None:
    days = escala.workload.generate.grid5000(cluster="orion", days=6, seed=0).split_days()
    platform = escala.read_platform("orion")
    limit = {"until_s": DAY_S} if window == "cut" else {}
    env = gymnasium.make("escala/Scheduling-v0", workload=days, platform=platform, window=window)
    for number, day in enumerate(days):
        _, info = env.reset(seed=0, options={"day": number})
        total = waste = 0.0
        over = False
        while not over:
            allowed = np.flatnonzero(info["action_mask"])
            _, reward, terminated, truncated, info = env.step(int(allowed[1]) if len(allowed) > 1 else 0)
            total, waste, over = total + reward, waste + info["waste_j"], terminated or truncated
        result = escala.simulate(day, platform, scheduler=FirstFit(), shutdown="timeout:300", start_off=True, **limit)
        summary = result.summary()
        assert waste == pytest.approx(summary["waste_j"], abs=1e-6)
        seconds = dict(result.power.group_by("state").sum().select("state", "seconds").iter_rows())
        nodes = platform.n_nodes
        waited = _queued(result, day)
        expected = (0.2 * seconds["computing"] - seconds["idle"]) / 60.0 / nodes - waited
        assert total == pytest.approx(expected, rel=1e-9, abs=1e-9)


def _queued(result: escala.Result, day: escala.Workload) -> float:
    """Sum over jobs of the time in the queue / walltime. The wait of a Result lasts until the start; a job that was given nodes left the
    queue before that, by the nodes' boot."""
    import polars as pl

    end = float(result.manifest["window"]["end_s"])
    jobs = result.jobs.filter(pl.col("submit_s") <= end)
    given = dict(zip(jobs["job_id"], _given_at(result, jobs), strict=True))
    return sum((min(given[j], end) - s) / w for j, s, w in zip(jobs["job_id"], jobs["submit_s"], jobs["walltime_s"], strict=True))


def _given_at(result: escala.Result, jobs: Any) -> list[float]:
    """When each job left the queue: its start, or, where one of its nodes was then just booted for it, the latest moment at which a node
    of it was off."""
    boots: dict[int, list[tuple[float, float]]] = {}
    for node, begin, until, state in result.nodes.select("node", "from_s", "to_s", "state").iter_rows():
        if state == "switching_on":
            boots.setdefault(int(node), []).append((begin, until))
    out = []
    for start, text in jobs.select("start_s", "nodes").iter_rows():
        if not text:
            out.append(float("inf"))
            continue
        own = [n for part in text.split() for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
        began = [b for n in own for b, until in boots.get(n, []) if start is None or until == start]
        out.append(max(began) if began and (start is not None) else (start if start is not None else max(began)))
    return out
