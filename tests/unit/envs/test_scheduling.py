"""The scheduling environment against sums by hand and against the metrics of the same run."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import escala
import escala.envs
from escala.tables import totals_of
from tests.unit.envs.days import DAY_S, scheduling_return, workload


def _env(day: escala.Workload, platform: str = "2x1:grid5000", **options: Any) -> Any:
    return gymnasium.make("escala/Scheduling-v0", workload=[day], platform=platform, **options)


def test_no_joules_are_said_of_a_machine_without_watts() -> None:
    day = workload((100.0, 60.0, 60.0, 1), (100.0, 60.0, 60.0, 1))
    for platform, said in (("2x1", False), ("2x1:grid5000", True)):
        env = _env(day, platform, objective="wait", shutdown="never")
        env.reset(seed=0)
        assert ("waste_j" in env.step(0)[4]) is said


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
    _, reward, _, _, info = env.step(1)  # does not fit: as a no-op
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


def _seen_confidence(jobs: list[tuple[float, float, float, int]], kind: str) -> float:
    """Of the first waiting job at 1000 s; every job before is started when it comes, on nodes that are on."""
    env = _env(workload(*jobs, users=["a"] * len(jobs)), "32x1:grid5000", start_off=False, confidence=kind)
    observation, info = env.reset(seed=0)
    while info.get("time_s", 0.0) < 1000.0:
        observation, _, _, _, info = env.step(1)
    return float(observation[0, 2])


@pytest.mark.parametrize(
    ("waiting", "kind", "expected"),
    [(19, "ended", 0.5), (19, "submitted", 0.5), (20, "ended", 0.5), (20, "submitted", 1)],
)
def test_submissions_that_wait_are_among_the_last_twenty(waiting: int, kind: str, expected: float) -> None:
    """One job has ended (half of its walltime); so many wait. The twentieth that waits pushes it out of the last twenty
    submissions."""
    assert _seen_confidence([(0.0, 30.0, 60.0, 1)] + [(1000.0, 60.0, 60.0, 1)] * waiting, kind) == expected


@pytest.mark.parametrize(("kind", "expected"), [("ended", (0.1 + 19.0) / 20.0), ("submitted", 1.0)])
def test_the_job_that_was_submitted_first_may_end_last(kind: str, expected: float) -> None:
    """It ran for a tenth of its walltime, the twenty behind it to their walltimes' end; the one that waits is the last
    submission."""
    jobs = [(0.0, 900.0, 9000.0, 1)] + [(1.0, 60.0, 60.0, 1)] * 20 + [(1000.0, 60.0, 60.0, 1)]
    assert _seen_confidence(jobs, kind) == pytest.approx(expected, rel=1e-6)


def test_an_unknown_confidence_is_told_in_one_line() -> None:
    with pytest.raises(
        escala.EscalaError, match="option confidence='started' is not known: use one of ended, submitted"
    ):
        _env(workload((0.0, 60.0, 60.0, 1)), confidence="started")


def test_running_jobs_are_seen_with_the_next_to_leave_first() -> None:
    env = _env(workload((0.0, 900.0, 7200.0, 1), (0.0, 900.0, 3600.0, 1), (0.0, 60.0, 60.0, 1)), start_off=False)
    env.reset(seed=0)
    env.step(1)
    observation, *_ = env.step(1)
    assert observation[0, 3:6] == pytest.approx([0.5, np.sqrt(3600.0 / DAY_S), np.sqrt(3600.0 / DAY_S)])
    assert observation[1, 3:6] == pytest.approx([0.5, np.sqrt(7200.0 / DAY_S), np.sqrt(7200.0 / DAY_S)])


class FirstFit:
    """The environment's questions, answered by the first job that fits; the metrics of the same run come from
    `simulate`."""

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


def _by_first_fit(env: Any, number: int) -> tuple[float, float]:
    """Rewards and waste of a day, added up over the steps."""
    _, info = env.reset(seed=0, options={"day": number})
    total = waste = 0.0
    over = False
    while not over:
        allowed = np.flatnonzero(info["action_mask"])
        _, reward, terminated, truncated, info = env.step(int(allowed[1]) if len(allowed) > 1 else 0)
        total, waste, over = total + reward, waste + info["waste_j"], terminated or truncated
    return total, waste


def _simulated(day: escala.Workload, platform: escala.Platform, window: str) -> escala.Result:
    limit = {"until_s": DAY_S} if window == "cut" else {}
    return escala.simulate(day, platform, scheduler=FirstFit(), shutdown="timeout:300", start_off=True, **limit)


@pytest.mark.parametrize("window", ["cut", "drain"])
def test_the_rewards_of_a_day_add_up_to_its_metrics(window: str) -> None:
    days = escala.workload.generate.grid5000(cluster="orion", days=6, seed=0).split_days()
    platform = escala.read_platform("orion")
    env = gymnasium.make("escala/Scheduling-v0", workload=days, platform=platform, window=window)
    for number, day in enumerate(days):
        total, waste = _by_first_fit(env, number)
        result = _simulated(day, platform, window)
        assert waste == pytest.approx(result.summary()["waste_j"], abs=1e-6)
        assert total == pytest.approx(scheduling_return(result, day, platform.n_nodes), rel=1e-9, abs=1e-9)


# W; 180 s to switch off, 60 s to switch on
COMPUTING, IDLE, OFF, SWITCHING_OFF, SWITCHING_ON = 190.0, 95.0, 9.0, 101.0, 125.0
WATTS = {"computing": COMPUTING, "idle": IDLE, "off": OFF, "switching_off": SWITCHING_OFF, "switching_on": SWITCHING_ON}

EDGES: dict[str, tuple[list[tuple[float, float, float, int]], str, dict[str, tuple[float, float]]]] = {
    # jobs, platform, and by hand for each window the day's (waste, reward)
    "no job": ([], "4x1:grid5000", {"cut": (0.0, 0.0), "drain": (0.0, 0.0)}),
    # it boots a node for a minute and runs for one; then 5 min of idling and a switch, not in a day run to completion
    "one job": (
        [(30.0, 60.0, 60.0, 1)],
        "4x1:grid5000",
        {
            "cut": (60 * SWITCHING_ON + 300 * IDLE + 180 * SWITCHING_OFF, -5.0 / 4 + 0.2 * 1.0 / 4),
            "drain": (60 * SWITCHING_ON, 0.2 * 1.0 / 4),
        },
    ),
    "jobs larger than the free part": (
        # Three of four nodes work until 61 min. The second job waits an hour for them, then they for the fourth node's
        # boot; the third follows it after 61 min. Computing: 3 x 60 + 2 x 4 node-minutes; booting 4; idle 3 before the
        # second job, 4 x 5 at the end.
        [(0.0, 3600.0, 3600.0, 3), (60.0, 60.0, 60.0, 4), (120.0, 60.0, 60.0, 4)],
        "4x1:grid5000",
        {
            "cut": (60 * (4 * SWITCHING_ON + 23 * IDLE + 12 * SWITCHING_OFF), (0.2 * 188 - 23) / 4 - 60 - 61),
            "drain": (60 * (4 * SWITCHING_ON + 3 * IDLE), (0.2 * 188 - 3) / 4 - 60 - 61),
        },
    ),
    "cut in the middle of switching off": (
        [(DAY_S - 480.0, 60.0, 60.0, 1)],
        "1x1:grid5000",
        {"cut": (60 * SWITCHING_ON + 300 * IDLE + 60 * SWITCHING_OFF, -5.0 + 0.2), "drain": (60 * SWITCHING_ON, 0.2)},
    ),
    "cut in the middle of switching on": (
        [(DAY_S - 30.0, 60.0, 60.0, 1)],
        "1x1:grid5000",
        {"cut": (30 * SWITCHING_ON, 0.0), "drain": (60 * SWITCHING_ON, 0.2)},
    ),
}


@pytest.mark.parametrize("window", ["cut", "drain"])
@pytest.mark.parametrize("edge", EDGES)
def test_days_at_the_edge(edge: str, window: str) -> None:
    """Waste and reward by hand, and as the metrics of the same run; every node is in one state at every moment, and no
    joule is lost."""
    jobs, spec, by_hand = EDGES[edge]
    day, platform = workload(*jobs), escala.read_platform(spec)
    env = _env(day, spec, window=window)
    total, waste = _by_first_fit(env, 0)
    assert waste == pytest.approx(by_hand[window][0], rel=1e-12) and total == pytest.approx(
        by_hand[window][1], rel=1e-12
    )
    result = _simulated(day, platform, window)
    assert waste == pytest.approx(result.summary()["waste_j"], rel=1e-12)
    # no Result tells that a job has left the queue before it starts
    if (edge, window) != ("cut in the middle of switching on", "cut"):
        assert total == pytest.approx(scheduling_return(result, day, platform.n_nodes), rel=1e-12)
    world = env.unwrapped.batch.episodes.world
    spent = totals_of(world, 0, platform, (0, 0))
    began = 0.0 if window == "cut" or not jobs else jobs[0][0]
    assert spent["seconds"].sum() == pytest.approx(
        platform.n_nodes * (float(world.s[0, 0]["now"]) * 1e-6 - began), rel=1e-12
    )
    lived = sum(
        WATTS[state] * (until - since)
        for since, until, state in result.nodes.select("from_s", "to_s", "state").iter_rows()
    )
    assert spent["joules"].sum() == pytest.approx(lived, rel=1e-12)
    assert spent["joules"].sum() == pytest.approx(result.summary()["energy_j"], rel=1e-12)


def test_a_job_larger_than_the_free_part_cannot_be_chosen() -> None:
    jobs, spec, _ = EDGES["jobs larger than the free part"]
    env = _env(workload(*jobs), spec)
    env.reset(seed=0)
    _, _, _, _, info = env.step(1)
    assert info["time_s"] == 60.0 and info["action_mask"].sum() == 1
    _, reward, _, _, info = env.step(1)  # as a no-op: a minute passes, and the job has waited its walltime of one
    assert info["time_s"] == 120.0 and info["action_mask"].sum() == 1 and reward == pytest.approx(0.2 * 3 / 4 - 1.0)


def test_at_the_end_of_a_cut_day_nothing_can_be_chosen() -> None:
    """The job that comes in the day's last minute would fit; the day is over before it may start."""
    env = _env(workload((0.0, 60.0, 60.0, 1), (DAY_S - 30.0, 60.0, 60.0, 1)), window="cut")
    _, info = env.reset(seed=0)
    over = False
    while not over:
        assert info["action_mask"][0]
        _, _, terminated, truncated, info = env.step(1 if info.get("time_s", 0.0) < DAY_S - 60.0 else 0)
        over = terminated or truncated
    assert info["action_mask"].tolist() == [True] + [False] * (len(info["action_mask"]) - 1)
