"""The off-reservation environment against the classic policies that its constant actions are, and against sums by
hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

import escala
import escala.envs
from tests.unit.envs.days import DAY_S, constant, workload

LAST = -1


def _sets() -> dict[str, tuple[list[escala.Workload], escala.Platform]]:
    return {
        "orion": (
            escala.workload.generate.grid5000(cluster="orion", days=8, seed=0).split_days(),
            escala.read_platform("orion"),
        ),
    }


def _replayed(days: list[escala.Workload], platform: escala.Platform, shutdown: str, window: str) -> np.ndarray:
    limit = {"until_s": DAY_S} if window == "cut" else {}
    runs = [escala.simulate(day, platform, scheduler="saf", shutdown=shutdown, start_off=True, **limit) for day in days]
    return np.array([run.summary()["waste_j"] for run in runs])


CONSTANTS: list[tuple[str, dict[str, Any], int, str]] = [
    ("wake all", {"action": "wake"}, LAST, "timeout:0"),
    ("hold none", {"action": "hold"}, 0, "timeout:0"),
    ("hold a quarter", {"action": "hold"}, 3, "hold:0.25:uncapped"),
    ("hold most", {"action": "hold"}, 5, "hold:0.475:uncapped"),
    ("hold most, guarded", {"action": "hold", "guard": "late", "guard_at": 0.25}, 5, "hold:0.25:uncapped"),
    ("hold little, guarded", {"action": "hold", "guard": "late", "guard_at": 0.25}, 2, "hold:0.125:uncapped"),
    ("keep none off", {"action": "count"}, 0, "never"),
    ("wake all, by the minute", {"action": "wake", "ask": "periods"}, LAST, "timeout:0"),
    ("hold a quarter, by the minute", {"action": "hold", "ask": "periods"}, 3, "hold:0.25:uncapped"),
    ("keep none off, by the minute", {"action": "count", "ask": "periods"}, 0, "never"),
]


@pytest.mark.parametrize("window", ["cut", "drain"])
@pytest.mark.parametrize("case", CONSTANTS, ids=[c[0] for c in CONSTANTS])
def test_a_constant_action_is_a_classic_policy_to_the_joule(
    case: tuple[str, dict[str, Any], int, str], window: str
) -> None:
    _, options, action, shutdown = case
    days, platform = _sets()["orion"]
    chosen = platform.n_nodes if action == LAST else action
    sums = constant(chosen, days, platform, window=window, **options)
    assert np.array_equal(sums["waste_j"], _replayed(days, platform, shutdown, window))


def test_waking_all_is_timeout_0_on_a_real_log(traces: Path) -> None:
    log = escala.read_workload(traces / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    days, platform = log.split_days()[:12], escala.read_platform("100x1:grid5000")
    sums = constant(platform.n_nodes, days, platform)
    assert np.array_equal(sums["waste_j"], _replayed(days, platform, "timeout:0", "cut"))


@pytest.mark.parametrize(
    "options",
    [
        {"action": "wake"},
        {"action": "wake", "guard": "none"},
        {"action": "hold", "window": "drain"},
    ],
)
def test_passing_quiet_minutes_changes_nothing(options: dict[str, Any]) -> None:
    """Actions that are a function of what is seen: the same questions, answers, rewards and joules with and without the
    quiet minutes."""
    days, platform = _sets()["orion"]
    seen: list[list[Any]] = []
    for skip in (True, False):
        env = gymnasium.make("escala/OffReservation-v0", workload=days, platform=platform, skip=skip, **options)
        story: list[Any] = []
        total = np.zeros(2)
        for day in range(4):
            observation, info = env.reset(seed=0, options={"day": day})
            over = False
            while not over:
                action = int(abs(float(observation.sum())) * 1e4) % int(env.action_space.n)
                if info["action_mask"].sum() > 1:
                    story.append((day, observation.tobytes(), action))
                observation, reward, terminated, truncated, info = env.step(action)
                total += (reward, info["waste_j"])
                over = terminated or truncated
        seen.append([story, total])
    assert seen[0][0] == seen[1][0]
    assert len(seen[0][0]) > 50
    assert np.allclose(seen[0][1], seen[1][1], rtol=1e-12)


def _asked(day: escala.Workload, **options: Any) -> tuple[list[float], float]:
    """When the agent was asked until the first job was given nodes, and when that job starts. All nodes held until 90
    s, then none."""
    env = gymnasium.make(
        "escala/OffReservation-v0", workload=[day], platform="2x1:grid5000", action="count", guard="none", **options
    )
    env.reset(seed=0)
    batch = env.unwrapped.batch  # type: ignore[attr-defined]
    times = []
    while batch.episodes.world.run[0, 0]["start"] < 0:
        times.append(float(batch.info()["time_s"][0]))
        env.step(0 if times[-1] >= 90.0 else 2)
    return times, float(batch.episodes.world.run[0, 0]["start"]) * 1e-6


def test_an_agent_is_asked_at_submissions_or_once_a_minute_only() -> None:
    """A job at 90 s. Released at once it starts when its node has booted for a minute; else at the next minute, and a
    minute later."""
    day = workload((90.0, 600.0, 1800.0, 1))
    assert _asked(day) == ([0.0, 60.0, 90.0, 120.0], 150.0)
    assert _asked(day, ask="periods") == ([0.0, 60.0, 120.0], 180.0)


@pytest.mark.parametrize("options", [{"action": "count"}, {"action": "count", "guard": "none"}])
def test_on_a_log_in_whole_minutes_both_ways_to_ask_are_one(options: dict[str, Any]) -> None:
    """As R3's logs are. Actions that are a function of what is seen."""
    days, platform = _sets()["orion"]
    rounded = [
        escala.Workload.from_jobs(
            day.jobs.with_columns((pl.col("submit_s") / 60.0).round() * 60.0).sort("submit_s"), name=day.name
        )
        for day in days[:3]
    ]
    stories = []
    for ask in ("submissions", "periods"):
        env = gymnasium.make("escala/OffReservation-v0", workload=rounded, platform=platform, ask=ask, **options)
        story: list[Any] = []
        for day in range(len(rounded)):
            observation, info = env.reset(seed=0, options={"day": day})
            over = False
            while not over:
                action = int(abs(float(observation.sum())) * 1e4) % int(env.action_space.n)  # type: ignore[attr-defined]
                story.append((observation.tobytes(), info["action_mask"].tobytes(), action))
                observation, reward, terminated, truncated, info = env.step(action)
                story.append((reward, info["waste_j"], info["time_s"]))
                over = terminated or truncated
        stories.append(story)
    assert stories[0] == stories[1] and len(stories[0]) > 100


def test_the_reward_is_the_metric() -> None:
    days, platform = _sets()["orion"]
    sums = constant(3, days, platform, action="hold")
    idle_w = sum(platform.profiles[k].idle_w for k in platform.profile_of)
    expected = -(sums["waste_j"] / (idle_w * 60.0) + sums["late_cores"] / platform.total_cores)
    assert np.allclose(sums["reward"], expected, rtol=1e-12)
    raw = constant(3, days, platform, action="hold", normalise="none")
    assert np.allclose(raw["reward"], -(raw["waste_j"] + raw["late_cores"]), rtol=1e-12)


def test_a_cost_of_stretch_counts_the_walltimes_that_queued_jobs_wait() -> None:
    """One job of 30 min of walltime at 10 min, never served: it waits 1430 min of the day."""
    day = workload((600.0, 600.0, 1800.0, 1))
    told = constant(
        0, [day], "2x1:grid5000", guard="none", min_jobs=1, qos="all", tau=1e9, stretch_cost=0.5, normalise="none"
    )
    assert told["reward"][0] == pytest.approx(-0.5 * 1430.0 / 30.0)


def test_a_day_by_hand() -> None:
    """Two nodes of one core, all off; a job of one core at 10 min for 30 min of walltime. Waking nothing without a
    guard: it waits for ever."""
    day = workload((600.0, 600.0, 1800.0, 1))
    held = constant(0, [day], "2x1:grid5000", guard="none", min_jobs=1)
    assert held["waste_j"][0] == 0.0
    minutes_late = 1440 - (10 + 15) + 1  # at every minute from 25 min on, the last at the end of the day
    assert held["late_cores"][0] == minutes_late
    woken = constant(2, [day], "2x1:grid5000", guard="none", min_jobs=1)
    assert woken["waste_j"][0] == pytest.approx(125.0 * 60.0 + 101.0 * 180.0)
    assert woken["late_cores"][0] == 0.0


def test_the_guard_lets_late_jobs_wake_what_they_need() -> None:
    day = workload((600.0, 600.0, 1800.0, 1), (600.0, 600.0, 1800.0, 1))
    guarded = constant(0, [day], "4x1:grid5000", guard="late", guard_at=0.3)
    assert guarded["waste_j"][0] == pytest.approx(2 * (125.0 * 60.0 + 101.0 * 180.0))
    assert guarded["late_cores"][0] == 0.0


def test_startable_counts_only_jobs_that_fit_what_no_job_holds() -> None:
    """The first job takes the whole machine for 100 min; the second waits behind it, late from its 5th minute on."""
    day = workload((0.0, 6000.0, 6000.0, 2), (60.0, 600.0, 600.0, 2))
    everyone = constant(2, [day], "2x1:grid5000", qos="all")
    startable = constant(2, [day], "2x1:grid5000", qos="startable")
    # from 6 min to 101 min: the first job starts after a minute of booting
    assert everyone["late_cores"][0] == 2.0 * 96
    assert startable["late_cores"][0] == 2.0  # at 101 min: the cores are free, the job has not started yet


def test_days_without_jobs_with_one_job_and_with_jobs_larger_than_what_is_free() -> None:
    empty = escala.Workload.from_jobs({"submit_s": [], "runtime_s": [], "walltime_s": [], "cores": []}, name="empty")
    one = workload((30.0, 60.0, 60.0, 1))
    crowded = workload((0.0, 3600.0, 3600.0, 3), (60.0, 60.0, 60.0, 4), (120.0, 60.0, 60.0, 4))
    platform = escala.read_platform("4x1:grid5000")
    for window in ("cut", "drain"):
        sums = constant(4, [empty, one, crowded], platform, window=window)
        assert sums["waste_j"][0] == 0.0
        assert np.array_equal(sums["waste_j"], _replayed([empty, one, crowded], platform, "timeout:0", window))


def test_a_day_may_end_in_the_middle_of_a_switch() -> None:
    """A job that ends 60 s before midnight: its node is switching off at the cut."""
    day = workload((DAY_S - 180.0, 60.0, 60.0, 1))
    sums = constant(1, [day], "1x1:grid5000", min_jobs=1)
    assert sums["waste_j"][0] == pytest.approx(125.0 * 60.0 + 101.0 * 60.0)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"action": "sleep"}, "action="),
        ({"window": "open"}, "window="),
        ({"colour": 1}, "unknown option"),
        ({"action": "count", "skip": True}, "option skip=True: with action='count'"),
        ({"ask": "periods", "skip": True}, "option skip=True: with ask='periods'"),
        ({"holds": ()}, "holds"),
        ({"holds": (0.25, float("nan"))}, "holds"),
        ({"action": "hold", "guard": "head"}, "guard='head': does nothing with action='hold': use late or none"),
        ({"action": "count", "guard": "late"}, "guard='late': does nothing with action='count': use head or none"),
        ({"guard_at": -0.1}, "guard_at=-0.1"),
        ({"guard_at": float("nan")}, "guard_at=nan"),
        ({"period_s": 0.0}, "period_s"),
        ({"ask": "events"}, "option ask='events' is not known: use one of submissions, periods"),
    ],
)
def test_bad_options_are_told_in_one_line(options: dict[str, Any], what: str) -> None:
    with pytest.raises(escala.EscalaError, match=what) as told:
        gymnasium.make(
            "escala/OffReservation-v0", workload=[workload((0.0, 60.0, 60.0, 1))], platform="2x1:grid5000", **options
        )
    assert "\n" not in str(told.value)


def test_bad_days_are_told_in_one_line() -> None:
    day = workload((0.0, 60.0, 60.0, 9))
    with pytest.raises(escala.EscalaError, match="9 cores"):
        gymnasium.make("escala/OffReservation-v0", workload=[day], platform="2x1:grid5000")
    gymnasium.make("escala/OffReservation-v0", workload=[day], platform="2x1:grid5000", oversized="drop")
    with pytest.raises(escala.EscalaError, match="no day"):
        gymnasium.make("escala/OffReservation-v0", workload=day, platform="2x1:grid5000")
    env = gymnasium.make("escala/OffReservation-v0", workload=[day], platform="9x1:grid5000")
    with pytest.raises(escala.EscalaError, match="day=3"):
        env.reset(options={"day": 3})


@pytest.mark.parametrize(("power", "what"), [(None, "has none"), ("computing=100,idle=50", "can switch off")])
def test_nodes_that_cannot_switch_off_are_told_in_one_line(power: str | None, what: str) -> None:
    platform = escala.read_platform("4x20", power=power)
    with pytest.raises(escala.EscalaError, match=f"an environment in which nodes are switched off.*{what}"):
        gymnasium.make("escala/OffReservation-v0", workload=[workload((0.0, 60.0, 60.0, 1))], platform=platform)


def test_keeping_all_nodes_off_leaves_the_first_job_what_it_needs() -> None:
    """One node of one core, off at first. The second job waits while the first runs and starts the instant that it
    ends, as under T(0): the reservation takes no node that the queue's first job needs. 125 W for a minute to switch
    on, 101 W for three to switch off."""
    day = workload((0.0, 600.0, 3600.0, 1), (120.0, 600.0, 3600.0, 1))
    kept = constant(1, [day], "1x1:grid5000", action="count", min_jobs=1)
    assert kept["waste_j"][0] == pytest.approx(125.0 * 60.0 + 101.0 * 180.0)
    assert kept["waste_j"][0] == pytest.approx(
        _replayed([day], escala.read_platform("1x1:grid5000"), "timeout:0", "cut")[0]
    )


@pytest.mark.parametrize(
    ("options", "always"),
    [
        ({"action": "wake"}, 0),
        ({"action": "hold"}, 5),
        ({"action": "hold", "guard": "late"}, 5),
        ({"action": "count"}, 8),
    ],
)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_first_job_that_needs_more_nodes_than_are_awake_together_starts_whatever_the_agent_does(
    options: dict[str, Any], always: int, seed: int | None
) -> None:
    """Narrow jobs come every ten minutes, so that some nodes work while others sleep; a job of all eight nodes waits
    among them. Always the choice that holds most, and choices at random: every job ends, and before noon."""
    narrow = [(600.0 * k, 900.0, 1200.0, 1 + k % 3) for k in range(30)]
    day = workload(*narrow, (1500.0, 600.0, 3600.0, 8), (7000.0, 600.0, 3600.0, 8))
    env = gymnasium.make("escala/OffReservation-v0", workload=[day], platform="8x1:grid5000", window="drain", **options)
    env.reset(seed=0)
    random, steps, terminated, truncated = np.random.default_rng(seed), 0, False, False
    while not (terminated or truncated):
        action = always if seed is None else int(random.integers(env.action_space.n))  # type: ignore[attr-defined]
        _, _, terminated, truncated, info = env.step(action)
        steps += 1
    assert terminated and not truncated and steps <= 24 * 60
    world = env.unwrapped.batch.episodes.world  # type: ignore[attr-defined]
    started = world.run[0, : len(day)]["start"]
    assert (started >= 0).all() and info["time_s"] < DAY_S / 2


def test_the_newest_snapshot_comes_last_and_counts_the_waiting_jobs() -> None:
    """One node: A runs, B and C wait."""
    day = workload((0.0, 3600.0, 3600.0, 1), (60.0, 60.0, 60.0, 1), (60.0, 60.0, 60.0, 1))
    env = gymnasium.make("escala/OffReservation-v0", workload=[day], platform="1x1:grid5000", observation="compact")
    env.reset(seed=0)
    seen, *_, info = env.step(0)
    while info["time_s"] < 600.0:
        seen, *_, info = env.step(0)
    past = np.ravel(seen)[: 20 * 8].reshape(20, 8)  # compact: 20 snapshots of five states, queue, promise, time of day
    assert past[-1, [5, 7]] == pytest.approx([2 / (2 + 10), 600.0 / DAY_S])
    assert (np.diff(past[-9:, 7]) > 0.0).all()
