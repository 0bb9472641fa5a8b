"""Begin times (sbatch --begin): by hand under Slurm's rules, and as later submissions under all other schedulers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala import EscalaError
from escala.bounds.schedule_bound import bound
from escala.workload import read_workload
from tests.unit.slurm.by_hand import jobs, starts
from tests.unit.workload.test_slurm import HEADER, row

SLOW = "SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=0,sched_interval=60"
OTHERS = (
    "fcfs",
    "first-fit",
    "sjf",
    "wfp3-fit",
    "f1",
    "easy",
    "easy-sjf",
    "saf",
    "easy:queue=xfactor",
    "conservative",
    "packer",
)


def test_a_job_starts_at_the_first_pass_behind_its_begin_time(site: Any) -> None:
    """sbatch --begin: "the job will be eligible to start on the next poll following the specified time. The exact poll
    interval depends on the Slurm scheduler (e.g., 60 seconds with the default sched/builtin)".
    https://slurm.schedmd.com/sbatch.html#OPT_begin

    Full passes here: slurmctld has started at -2.5, the first tick 60 s behind is that of 57.4, late by 1.4 ms a
    second.
    """
    alone = jobs((0, 10, 60, 1), begin_s=[30.0])
    assert starts(alone, site(more=SLOW)) == [57.5]
    other = jobs((0, 10, 60, 1), (40.1, 10, 60, 1), begin_s=[30.0, None])
    assert starts(other, site(more=SLOW)) == [40.5, 40.5], "a submission has a pass of its own, which sees both"
    assert starts(alone, site()) == [30.4], "at the next tick, as full passes are due each 2 s"


def test_it_holds_nothing_up_before(site: Any) -> None:
    """Job 1 of all nodes may begin at 100 s: nothing is reserved for it before, and it stands where it was
    submitted."""
    work = jobs((0, 50, 60, 4), (1, 300, 300, 2), (2, 10, 60, 4), begin_s=[100.0, None, None])
    assert starts(work, site())[0] > 301, "the long job is not held back for it"
    assert starts(work, site())[2] > starts(work, site())[0], "priority/basic: the order of submission"
    assert starts(jobs((5, 10, 60, 1), begin_s=[2.0]), site()) == [5.4], "in the past: at once"


def test_a_dependency_and_a_begin_time_both_hold(site: Any) -> None:
    def two(end_s: float, begin_s: float) -> float:
        work = jobs((0, end_s, 600, 1), (1, 5, 60, 1), begin_s=[None, begin_s], dependency=[None, "afterany:1"])
        return starts(work, site())[1]

    assert two(50, 20) == pytest.approx(50.4, abs=2.1)
    assert two(20, 50) == pytest.approx(51.4, abs=1.1)
    late = jobs((0, 5, 60, 1), (1, 5, 60, 1), begin_s=[40.0, None], dependency=[None, "after:1"])
    assert starts(late, site())[1] >= starts(late, site())[0] >= 40
    never = jobs((0, 5, 60, 1), (1, 5, 60, 1), begin_s=[None, 40.0], dependency=[None, "afternotok:1"])
    assert escala.simulate(never, site(), scheduler="slurm").jobs["state"].to_list() == ["COMPLETED", "REJECTED"]


def test_minutes_behind_the_start_of_another(site: Any) -> None:
    """ "After the specified jobs start or are cancelled and 'time' in minutes from job start or cancellation happens,
    this job can begin execution" (sbatch, --dependency=after:job_id[+time]): by whole seconds, in the next pass that
    there is. The other may be over."""
    for run in (20, 400):
        work = jobs((0, run, 600, 1), (1, 5, 60, 1), dependency=[None, "after:1+2"])
        assert starts(work, site()) == [0.4, 120.6], "ticks are late by 1.4 ms a second, backfill looks at .6"
    slow = jobs((0, 20, 60, 1), (1, 5, 60, 1), dependency=[None, "after:1+2"])
    assert starts(slow, site(more=SLOW)) == [0.4, 177.6], "nobody is asked to look: the full pass behind"
    late = jobs((0, 20, 60, 1), (200, 5, 60, 1), dependency=[None, "after:1+2"])
    assert starts(late, site())[1] == pytest.approx(200.5, abs=0.5), "over before it was submitted"
    two = jobs((0, 90, 120, 4), (1, 5, 60, 1), (2, 5, 60, 1), dependency=[None, None, "after:1+1:2+1"])
    assert starts(two, site())[2] == pytest.approx(151, abs=1.5), "of each its own"
    with pytest.raises(EscalaError, match=r"job '2': dependency 'after:1\+0': minutes behind a \+ are at least 1"):
        starts(jobs((0, 20, 60, 1), (1, 5, 60, 1), dependency=[None, "after:1+0"]), site())


def test_minutes_count_anew_where_the_other_starts_anew(tmp_path: Path) -> None:
    """slurmctld asks whether the other is pending, and for its last start (_test_job_dependency_common in
    job_scheduler.c). Its node fails at 30 s, and it starts anew at 151 s."""
    (tmp_path / "site.toml").write_text(
        '[[nodes]]\nnames = "n[1-4]"\ncores = 1\n[slurm]\nSelectTypeParameters = "CR_CPU"\n'
        'SchedulerParameters = "bf_interval=1,sched_interval=2,bf_resolution=1,batch_sched_delay=0"\n'
        '[[closed]]\nnodes = "n1"\nfrom = 1800000030\nuntil = 1800000040\n'
    )
    work = jobs((0, 100, 120, 1), (1, 5, 60, 1), dependency=[None, "after:1+1"])
    first, second = starts(work, escala.read_site(tmp_path / "site.toml"))
    assert first == pytest.approx(151, abs=1.1) and second == pytest.approx(first + 60, abs=1.1)


def test_age_counts_from_the_begin_time(site: Any) -> None:
    """Job 1 is eligible from 500 s on, job 2 since 100 s, so job 2 is the older; ACCRUE_ALWAYS "increases the age
    factor of jobs despite their being ineligible due to either dependencies, holds or begin time in the future"
    (slurm.conf, PriorityFlags)."""
    more = "PriorityType=priority/multifactor\nPriorityWeightAge=100000\n"
    more += "AccountingStorageType=accounting_storage/slurmdbd\n"
    more += "SchedulerParameters=bf_interval=1,sched_interval=2,bf_resolution=1,batch_sched_delay=0"
    work = jobs((0, 1000, 1200, 4), (1, 50, 60, 4), (100, 50, 60, 4), begin_s=[None, 500.0, None])
    _, first, second = starts(work, site(more=more))
    assert first > second
    _, first, second = starts(work, site(more=more + "\nPriorityFlags=ACCRUE_ALWAYS"))
    assert first < second


def test_it_counts_as_submitted(site: Any, tmp_path: Path) -> None:
    """MaxSubmitJobs counts "pending or running" jobs, whatever they wait for
    (https://slurm.schedmd.com/resource_limits.html)."""
    (tmp_path / "site.toml").write_text(
        '[[nodes]]\nnames = "n[1-4]"\ncores = 1\n[slurm]\nSelectTypeParameters = "CR_CPU"\n[qos]\nnormal = '
        "{max_submit_per_user = 1}\n"
    )
    work = jobs((0, 5, 60, 1), (1, 5, 60, 1), begin_s=[300.0, None], user=["a", "a"])
    result = escala.simulate(work, escala.read_site(tmp_path / "site.toml"), scheduler="slurm")
    assert result.jobs["state"].to_list() == ["COMPLETED", "REJECTED"]


def drawn(seed: int, n: int = 60) -> dict[str, Any]:
    draw = np.random.default_rng([seed, 77])
    submit = np.sort(draw.integers(0, 600, n)).astype(float)
    run = draw.integers(1, 120, n).astype(float)
    begin = [
        float(at + draw.integers(-50, 400)) if late else None
        for at, late in zip(submit, draw.random(n) < 0.4, strict=True)
    ]
    return {
        "job_id": [str(k) for k in range(n)],
        "submit_s": submit,
        "runtime_s": run,
        "walltime_s": run + draw.integers(0, 100, n),
        "cores": draw.integers(1, 9, n),
        "user": draw.choice(["a", "b"], n).tolist(),
        "begin_s": begin,
    }


@pytest.mark.parametrize("scheduler", OTHERS)
@pytest.mark.parametrize("rules", ["escala", "batsched"])
def test_others_take_it_as_the_submission(scheduler: str, rules: str) -> None:
    """The same starts, nodes and energy as with the later submissions; waits count from the submissions that there
    were."""
    if rules == "batsched" and scheduler not in ("easy", "fcfs", "saf"):
        pytest.skip("a rule of the reference engine's own")
    for seed in range(6):
        table = drawn(seed)
        work = escala.Workload.from_jobs(table)
        came = [max(at, late or 0.0) for at, late in zip(table["submit_s"], table["begin_s"], strict=True)]
        moved = escala.Workload.from_jobs({**table, "submit_s": came, "begin_s": [None] * len(came)})
        options: dict[str, Any] = {"shutdown": "timeout:30", "rules": rules, "estimate": "walltime"}
        one, two = (escala.simulate(log, "3x4:taurus", scheduler, **options) for log in (work, moved))
        by_id = two.jobs.select("job_id", "start_s", "finish_s", "nodes", "state")
        both = one.jobs.join(by_id, on="job_id", suffix="_2", maintain_order="left")
        for name in ("start_s", "finish_s", "nodes", "state"):
            assert both[name].to_list() == both[f"{name}_2"].to_list(), (seed, name)
        assert (one.jobs["wait_s"] - (one.jobs["start_s"] - one.jobs["submit_s"])).abs().max() < 1e-6
        assert (one.jobs["start_s"] >= pl.Series(came)).all()
        assert one.totals.equals(two.totals)
        assert (
            one.manifest["workload"]["sha256"]
            != escala.Workload.from_jobs({k: v for k, v in table.items() if k != "begin_s"}).digest()
        )


def test_moments_move_with_the_clock() -> None:
    work = escala.Workload.from_jobs(
        {"submit_s": [100.0, 200.0], "runtime_s": [5.0, 5.0], "cores": [1, 1], "begin_s": [150.0, None]}
    )
    assert work.window(100.0, 50.0).jobs["begin_s"].to_list() == [50.0]
    assert work.split_days(60.0)[0].jobs["begin_s"].to_list() == [90.0]
    assert work.rescale_load(0.5).jobs.select("submit_s", "begin_s").rows() == [(100.0, 150.0), (300.0, None)]


def test_sacct_tells_when_jobs_became_eligible(tmp_path: Path) -> None:
    """Eligible, "when the job became eligible to run" (https://slurm.schedmd.com/sacct.html): read with what jobs ask
    of a site, unless it is taken as the submission."""
    path = tmp_path / "sacct.txt"
    path.write_text(
        "\n".join(
            (HEADER, row("5"), row("6", Eligible="2024-03-01T10:00:01"), row("7", Eligible="2024-03-01T10:03:00"))
        )
    )
    log = read_workload(path, shapes=True)
    assert log.jobs["begin_s"].to_list() == [60.0, None, None], "neither within a second, nor later than the start"
    assert "dependencies or begin times" not in log.ignored
    assert "begin_s" not in read_workload(path, shapes=True, submission="eligible").jobs.columns
    assert "begin_s" not in read_workload(path).jobs.columns
    assert escala.simulate(log, "4x8", "fcfs").jobs["start_s"].to_list() == [60.0, 0.0, 0.0]


def test_tables_have_it(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submit_s,runtime_s,cores,begin_s\n0,5,1,50\n1,5,1,\n")
    assert escala.simulate(tmp_path / "jobs.csv", "4x1", "easy").jobs["start_s"].to_list() == [50.0, 1.0]


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    table = {"submit_s": [0.0], "runtime_s": [5.0], "cores": [1]}
    for bad in (float("nan"), 1e15):
        with pytest.raises(EscalaError, match=r"begin_s = .*a moment"):
            escala.Workload.from_jobs({**table, "begin_s": [bad]})
    with pytest.raises(EscalaError, match=r"column .begin_s. is String"):
        escala.Workload.from_jobs({**table, "begin_s": ["soon"]})
    with pytest.raises(EscalaError, match="job '1' may begin after its submission"):
        bound(escala.Workload.from_jobs({**table, "begin_s": [9.0]}), "2x1", "wait")
