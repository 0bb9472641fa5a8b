"""Slurm's rules against recorded runs of real daemons: nearly all starts and nodes where Slurm repeats itself.

Fed are submissions, limits, real run times and the unix second of the clock's zero; of slurmctld's phases nothing, or
only that they are what they were.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import escala
from escala.calibration import calibrate
from escala.calibration.calibrate import STANDS
from escala.slurm import ensemble, settings_of
from tests.golden.slurm.recorded import OWN, Recorded, recorded

REPEATS = ("A1-repeat", "A1-slurm24", "B1", "B1-repeat", "C1", "C1-repeat", "D1", "D1-repeat", "E1-fine")
"""Runs that the default phases give; of those that Slurm repeats only A3 and A3-slurm24 need phases of their own."""
KIN = {
    "A1": ("A1", "A1-repeat"),
    "A3": ("A3", "A3-repeat"),
    "C1-noage": ("C1-noage", "C1-noage-repeat"),
    "E1": ("E1", "E1-repeat"),
}
"""Lists on which Slurm does not repeat itself."""
REPEATED = ("BB", "D2", "F1", "K1", "L1", "M1", "N1", "O3", "P1", "P2", "Q1", "W1")
"""Runs that were recorded for these tests, of which the default phases give every start, or nearly: bf_busy_nodes (BB);
shared nodes with exclusive jobs and memory by node or core; features; dependencies on jobs that are forgotten after
20 s (K1); limits of QOS, of partitions too, and accounts (L1); jobs of several partitions of three tiers (M1), which
Slurm repeats at three parts of a second; nodes that a job names (N1); settings of backfill; preemption by tier
(requeue, cancel) and by QOS (Q1); node weights."""
OWN_CLOCK = ("H1", "M1", "O2", "P3", "P4", "R1", "S1", "X1")
"""Those that a second decides: two threads a core; jobs of several partitions of several tiers; few jobs a pass;
preemption on shared nodes (P3), and with a grace (P4); reservations, flexible and magnetic ones too, and minutes behind
a start (R1); classic fair share; dependencies, arrays and begin times."""
CHANCE = ("A1", "A3", "A3-slurm24", "C1-noage", "C1-noage-repeat", "C1-noage-slurm24", "D1-slurm24", "E1", "E1-repeat")

DRAWS = {"A1": 200, "A3": 200, "C1-noage": 200}
"""So many draws find a mean wait as rare as that of these; 50 those of the others."""


@pytest.fixture(scope="session")
def live(traces: Path) -> Path:
    folder = traces.parent / "slurm-live"
    if not folder.is_dir():
        pytest.skip(f"no recorded runs of Slurm at {folder}")
    return folder


@pytest.mark.parametrize("name", REPEATS)
def test_where_slurm_repeats_itself(live: Path, tmp_path: Path, name: str) -> None:
    run = recorded(live, name, tmp_path)
    result = escala.simulate(run.workload, run.site, scheduler="slurm")
    starts, nodes = run.agreement(result)
    assert starts >= 0.9
    assert nodes >= 0.9
    assert result.summary()["mean_wait_s"] == pytest.approx(run.mean_wait_s, rel=0.05)


def _with_its_phases(run: Recorded) -> escala.Result:
    first = next(job["start_exact_s"] for job in run.run["jobs"] if job["started_by"] == "main")
    passes = tuple(run.run["backfill_pass_times_s"])
    settings = replace(settings_of(run.site), passes_s=passes, tick_s=first)
    return escala.simulate(run.workload, run.site, scheduler=settings)


@pytest.mark.parametrize(
    "name", ["A3", "A3-slurm24", "C1-noage-repeat", "C1-noage-slurm24", "D1", "D1-slurm24", "E1", "E1-fine"]
)
def test_with_its_own_passes_the_same_list_again(live: Path, tmp_path: Path, name: str) -> None:
    run = recorded(live, name, tmp_path)
    starts, nodes = run.agreement(_with_its_phases(run))
    assert starts == 1
    assert nodes == 1


@pytest.mark.parametrize("name", sorted(KIN))
def test_elsewhere_as_near_to_one_run_as_the_runs_are_to_each_other(live: Path, tmp_path: Path, name: str) -> None:
    one, other = (recorded(live, kin, tmp_path) for kin in KIN[name])
    starts = {str(job["id"]): job["start_exact_s"] for job in other.run["jobs"]}
    among = sum(abs(job["start_exact_s"] - starts[str(job["id"])]) <= 5 for job in one.run["jobs"]) / len(
        one.run["jobs"]
    )
    mine = max(run.agreement(escala.simulate(run.workload, run.site, scheduler="slurm"))[0] for run in (one, other))
    assert mine >= min(among, 0.5)


@pytest.mark.parametrize("name", CHANCE)
def test_an_ensemble_covers_the_recorded_mean_wait(live: Path, tmp_path: Path, name: str) -> None:
    run = recorded(live, name, tmp_path)
    waits = ensemble(run.workload, run.site, draws=DRAWS.get(name, 50)).mean_waits_s
    assert min(waits) <= run.mean_wait_s <= max(waits)


def test_an_ensemble_repeats_itself(live: Path, tmp_path: Path) -> None:
    run = recorded(live, "E1", tmp_path)
    one, other = (ensemble(run.workload, run.site, draws=3, seed=5) for _ in range(2))
    assert one.phases.equals(other.phases)
    assert len(one.starts()) == len(run.workload)


@pytest.mark.parametrize("name", ["A1-repeat", "B1", "C1"])
def test_a_calibration_says_that_the_replay_stands_for_the_lab(live: Path, tmp_path: Path, name: str) -> None:
    """From the site's own slurm.conf, with jobs on the machine when the judged ones begin."""
    run = recorded(live, name, tmp_path)
    waits = {str(job["id"]): job["start_exact_s"] - job["submit_s"] for job in run.run["jobs"]}
    jobs = run.workload.jobs
    log = run.workload.with_jobs(jobs.with_columns(wait_s=pl.Series([waits[ident] for ident in jobs["job_id"]])))
    found = calibrate(log, run.site, "slurm")
    assert found.verdict == STANDS and found.about["running"] >= 3 and found.causes == []
    assert (
        abs(found.whole["error_of_mean_s"]) < 0.01 * found.whole["mean_recorded_s"]
        and found.whole["rank_correlation"] > 0.98
    )
    easy = calibrate(log, run.site, "easy").whole["rank_correlation"]
    assert easy > 0.97 if name == "B1" else easy < 0.8, "with a queue for each of the two partitions of B1"


def _own(name: str, tmp_path: Path) -> Recorded:
    return recorded(OWN, name, tmp_path)


@pytest.mark.parametrize("name", REPEATED)
def test_kinds_that_were_recorded_for_these_tests(tmp_path: Path, name: str) -> None:
    """By the default phases, every start and all nodes but those that one second decides."""
    run = _own(name, tmp_path)
    result = escala.simulate(run.workload, run.site, scheduler="slurm")
    starts, nodes = run.agreement(result)
    assert starts >= 0.9 and nodes >= 0.9
    assert result.summary()["mean_wait_s"] == pytest.approx(run.mean_wait_s, rel=0.05)


@pytest.mark.parametrize("name", OWN_CLOCK)
def test_with_its_own_clock_every_start_and_all_nodes(tmp_path: Path, name: str) -> None:
    """Fed are the moments of its backfill passes, and those of its event passes as a line: a first one and the
    distance."""
    run = _own(name, tmp_path)
    settings = replace(
        settings_of(run.site), passes_s=tuple(run.run["backfill_pass_times_s"]), **run.run["event_passes"]
    )
    assert run.agreement(escala.simulate(run.workload, run.site, scheduler=settings)) == (1, 1)


OTHER_CLOCKS = ("X1", "X1-b", "X1-c", "X1-d")
"""One list four times, begun at the same second of half a minute, slurmctld at other parts of a second."""


def test_where_the_clock_decides_a_replay_is_as_near_as_the_runs_are(tmp_path: Path) -> None:
    """Recorded twice with clocks that lay alike, X1 is the same; with others slurmctld does not repeat itself either.
    The default phases are as near to one of the runs, and an ensemble covers the mean wait of each."""
    runs = [_own(name, tmp_path) for name in OTHER_CLOCKS]
    starts = [[job["start_exact_s"] for job in run.run["jobs"]] for run in runs]

    def among(one: list[float | None], other: list[float | None]) -> int:
        pairs = zip(one, other, strict=True)
        return sum(a == b if a is None or b is None else abs(a - b) <= 5 for a, b in pairs)

    most = max(among(one, other) for k, one in enumerate(starts) for other in starts[:k])
    mine = [run.agreement(escala.simulate(run.workload, run.site, scheduler="slurm"))[0] for run in runs]
    assert most <= 41 and max(mine) * len(starts[0]) > most
    for run in runs:
        waits = ensemble(run.workload, run.site, draws=200).mean_waits_s
        assert min(waits) <= run.mean_wait_s <= max(waits)


@pytest.mark.parametrize("name", ["A3-slurm24", "C1-noage-slurm24", "D1-slurm24", "A1-slurm24"])
def test_event_passes_at_whole_seconds_from_24_11_on(live: Path, tmp_path: Path, name: str) -> None:
    """With the moments of its backfill passes and its version alone each list comes out whole; as 22.05 paces itself
    three do not."""
    run = recorded(live, name, tmp_path)
    settings = replace(settings_of(run.site), passes_s=tuple(run.run["backfill_pass_times_s"]), version=(24, 11))
    assert run.agreement(escala.simulate(run.workload, run.site, scheduler=settings)) == (1, 1)


@pytest.mark.parametrize("name", ["A1", "C1-noage", "C1-noage-repeat", "D1"])
def test_both_threads_begin_with_slurmctld(live: Path, tmp_path: Path, name: str) -> None:
    """With the moments of its backfill passes alone: event passes stand beside them at first, and fall behind by some
    1.4 ms a second."""
    run = recorded(live, name, tmp_path)
    settings = replace(settings_of(run.site), passes_s=tuple(run.run["backfill_pass_times_s"]))
    assert run.agreement(escala.simulate(run.workload, run.site, scheduler=settings))[0] >= 0.85
