"""The export in Batsim's format, file by file against the files that Batsim itself wrote for the same run.

Three of Batsim's files print 6 significant digits, so times are compared as they are printed. Batsim's files begin at 0
and go on after the last finish; Escala's cover first submission to last finish.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise
from pathlib import Path

import pytest

import escala
from tests.golden.runs import RUNS, Run, numbers, rows_of

ENERGY = (
    "ties1-easy_bf",
    "ties1-conservative_bf",
    "ties2-easy_bf",
    "power-timeout0",
    "power-timeout60",
    "power-timeout300-stock",
)
CHOSEN = [run for run in RUNS if run.name in ENERGY]
Rows = list[dict[str, str]]
JOB_NUMBERS = (
    *(
        "submission_time",
        "requested_number_of_resources",
        "requested_time",
        "starting_time",
        "execution_time",
        "finish_time",
    ),
    *("waiting_time", "turnaround_time", "stretch"),
)
MEASURES = (
    *(
        "makespan",
        "max_slowdown",
        "max_turnaround_time",
        "max_waiting_time",
        "mean_slowdown",
        "mean_turnaround_time",
        "mean_waiting_time",
    ),
    *("nb_computing_machines", "nb_jobs", "nb_jobs_finished", "nb_jobs_rejected", "time_computing", "time_unavailable"),
)


class Files:
    """Both sets of files of one run."""

    def __init__(self, run: Run, theirs: Path, ours: Path) -> None:
        self.run = run
        self.theirs, self.ours = theirs, ours

    def both(self, name: str) -> tuple[Rows, Rows]:
        """(ours, theirs) of one file; the columns must be the same, in the same order."""
        packed = self.theirs / f"out_{name}.csv.gz"
        theirs = rows_of(packed if packed.exists() else self.theirs / f"out_{name}.csv")
        ours = rows_of(self.ours / f"{name}.csv")
        assert list(ours[0]) == list(theirs[0])
        return ours, theirs

    def window(self) -> tuple[float, float]:
        jobs = rows_of(self.ours / "jobs.csv")
        return min(float(row["submission_time"]) for row in jobs), max(float(row["finish_time"]) for row in jobs)

    def inside(self, rows: Rows) -> Rows:
        """Rows after the beginning and before the end of what Escala measures."""
        begin, end = self.window()
        return [row for row in rows if begin + unsure(begin) < float(row["time"]) < end - unsure(end)]


def unsure(time: float) -> float:
    """Half a unit of the sixth digit: what Batsim's printing leaves open."""
    return 5.01e-6 * time


def same_times(ours: list[float], theirs: list[float]) -> None:
    assert len(ours) == len(theirs)
    for mine, gold in zip(sorted(ours), sorted(theirs), strict=True):
        assert abs(mine - gold) <= unsure(gold), (mine, gold)


@pytest.fixture(scope="module", params=CHOSEN, ids=lambda run: run.name)
def files(request: pytest.FixtureRequest, traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Files:
    run: Run = request.param
    folder = traces / "batsim" / "golden-runs" / run.name
    hosts = rows_of(folder / "out_schedule.csv")[0]["nb_computing_machines"]
    platform = escala.read_platform(f"{folder / 'platform.xml.gz'}#{hosts}")
    workload = escala.read_workload(folder / "workload.json.gz")
    result = escala.simulate(
        workload, platform, run.scheduler, run.shutdown, rules=run.rules, plan_margin_s=run.plan_margin_s
    )
    return Files(run, folder, result.export("batsim", tmp_path_factory.mktemp("batsim") / run.name))


def test_jobs(files: Files) -> None:
    ours, theirs = files.both("jobs")
    gold = {row["job_id"]: row for row in theirs}
    assert len(ours) == len(theirs) and {row["job_id"] for row in ours} == set(gold)
    finishes = [float(row["finish_time"]) for row in ours]
    assert finishes == sorted(finishes)
    if files.run.shutdown != "never":  # without ties the order is one
        assert [row["job_id"] for row in ours] == [row["job_id"] for row in theirs]
    for row in ours:
        other = gold[row["job_id"]]
        for column in JOB_NUMBERS:
            assert abs(float(row[column]) - float(other[column])) <= 1.000001e-6, (row["job_id"], column)
        assert row["allocated_resources"] == other["allocated_resources"]
        assert float(row["consumed_energy"]) == pytest.approx(float(other["consumed_energy"]), rel=1e-9, abs=1e-5)
        assert (row["workload_name"], row["metadata"]) == ("w0", "") == (other["workload_name"], other["metadata"])
        if not files.run.flop:  # at runtime = walltime Batsim calls a flop job completed
            assert (row["success"], row["final_state"]) == (other["success"], other["final_state"])


def test_schedule(files: Files) -> None:
    (ours,), (theirs,) = files.both("schedule")
    for column in MEASURES:
        assert abs(float(ours[column]) - float(theirs[column])) <= 1.000001e-6, column
    assert float(ours["consumed_joules"]) == pytest.approx(float(theirs["consumed_joules"]), rel=1e-9)
    if not files.run.flop:
        for column in ("nb_jobs_killed", "nb_jobs_success", "success_rate"):
            assert float(ours[column]) == float(theirs[column]), column
    begin, end = files.window()
    seconds = sum(float(value) for name, value in ours.items() if name.startswith("time_"))
    assert seconds == pytest.approx((end - begin) * float(ours["nb_computing_machines"]), rel=1e-12)
    assert ours["batsim_version"].startswith("escala-") and ours["scheduling_time"] == "NaN"


def test_switches(files: Files) -> None:
    """`nb_machine_switches` counts the window only; Batsim's also what came before and after."""
    (ours,), (theirs,) = files.both("schedule")
    if files.run.shutdown == "never":
        assert ours["nb_machine_switches"] == theirs["nb_machine_switches"] == "0"
        return
    begin, end = files.window()
    ordered = [
        row for row in rows_of(files.theirs / "switches.csv.gz") if begin <= float(row["requested"]) < end - 1e-6
    ]
    assert int(ours["nb_machine_switches"]) == len(ordered)


def test_machine_states(files: Files) -> None:
    """What Batsim's states are once all of an instant has happened is what ours are then, and each of ours is one of
    Batsim's."""
    ours, theirs = files.both("machine_states")
    times = [float(row["time"]) for row in ours]
    gold_times = [float(row["time"]) for row in theirs]
    settled = files.inside(
        [row for row, following in pairwise(theirs) if float(following["time"]) > 1.00002 * float(row["time"])]
    )
    for row in settled:
        time = float(row["time"])
        first = bisect_right(times, time - unsure(time)) - 1
        assert counts(row) in [counts(other) for other in ours[first : bisect_right(times, time + unsure(time))]], time
    for row in files.inside(ours):
        time = float(row["time"])
        near = theirs[bisect_left(gold_times, time - unsure(time)) : bisect_right(gold_times, time + unsure(time))]
        assert counts(row) in [counts(other) for other in near], time
    assert float(ours[-1]["time"]) == files.window()[1] and ours[-1]["nb_computing"] == "0"


def counts(row: dict[str, str]) -> list[str]:
    return [value for name, value in row.items() if name != "time"]


def test_pstate_changes(files: Files) -> None:
    if files.run.shutdown == "never":
        (row,) = rows_of(files.ours / "pstate_changes.csv")
        (schedule,) = rows_of(files.ours / "schedule.csv")
        assert len(numbers(row["machine_id"])) == int(schedule["nb_computing_machines"]) and row["new_pstate"] == "0"
        return
    ours, theirs = files.both("pstate_changes")
    mine, gold = changes(files.inside(ours)), changes(files.inside(theirs))
    assert set(mine) == set(gold)
    for node, moves in mine.items():
        theirs_lasting = lasting(gold[node], moves)
        assert [pstate for _, pstate in moves] == [pstate for _, pstate in theirs_lasting], node
        same_times([time for time, _ in moves], [time for time, _ in theirs_lasting])
    begin = files.window()[0]
    first = changes([row for row in ours if float(row["time"]) == begin])
    before = changes([row for row in theirs if float(row["time"]) <= begin + unsure(begin)])
    assert {node: moves[-1][1] for node, moves in first.items()} == {
        node: moves[-1][1] for node, moves in before.items()
    }


def lasting(theirs: list[tuple[float, int]], ours: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Batsim's changes without those that are taken back at the same instant and that ours leave out (on, or off, for
    no time)."""
    kept: list[tuple[float, int]] = []
    for k, change in enumerate(theirs):
        expected = ours[len(kept)][1] if len(kept) < len(ours) else None
        taken_back = k + 1 < len(theirs) and theirs[k + 1][0] - change[0] <= 2 * unsure(change[0])
        if change[1] == expected or not taken_back:
            kept.append(change)
    return kept


def changes(rows: Rows) -> dict[int, list[tuple[float, int]]]:
    """Node -> (time, pstate) in the order of the file; every sleeping pstate is 1, whatever number the platform gives
    it."""
    found: dict[int, list[tuple[float, int]]] = {}
    for row in rows:
        for node in numbers(row["machine_id"]):
            found.setdefault(node, []).append((float(row["time"]), min(int(row["new_pstate"]), 1)))
    return found


def test_consumed_energy(files: Files) -> None:
    """Batsim's joules count from time 0."""
    ours, theirs = files.both("consumed_energy")
    begin, end = files.window()
    offset = [float(row["energy"]) for row in theirs if float(row["time"]) <= begin + unsure(begin)][-1]
    mine, gold = files.inside(ours), files.inside(theirs)
    for kind in ("s", "e"):
        same_times(*([float(row["time"]) for row in rows if row["event_type"] == kind] for rows in (mine, gold)))
    times = [float(row["time"]) for row in gold]
    for row in [row for row in mine if row["epower"] != "NA"][1:]:  # the first has another row before it
        time, joules, watts = (float(row[name]) for name in ("time", "energy", "epower"))
        near = gold[bisect_left(times, time - unsure(time)) : bisect_right(times, time + unsure(time))]
        assert [
            other
            for other in near
            if other["epower"] != "NA"
            and abs(joules + offset - float(other["energy"])) <= unsure(joules + 2 * offset)
            and abs(watts - float(other["epower"])) <= unsure(watts)
        ], row
    if files.run.shutdown == "never":  # an order to switch shows the watts before it, ours those after its instant
        assert {row["wattmin"] for row in ours} == {f"{float(row['wattmin']):.6f}" for row in theirs}
    total = float(rows_of(files.ours / "schedule.csv")[0]["consumed_joules"])
    assert math.isclose(float(ours[-1]["energy"]), total, rel_tol=1e-11) and float(ours[-1]["time"]) == end


def test_escala_reads_its_export_back(files: Files) -> None:
    """jobs.csv holds everything that a replay needs, as Batsim's does."""
    back = escala.read_workload(files.ours / "jobs.csv")
    assert len(back) == len(rows_of(files.ours / "jobs.csv"))
