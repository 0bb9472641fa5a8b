"""Arrays of jobs with their limit of running tasks (https://slurm.schedmd.com/job_array.html), by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala import EscalaError
from escala.kernel.slurm import tables as t
from escala.slurm import settings_of
from escala.slurm.asked import Asking
from escala.slurm.run import play
from escala.workload import read_workload
from tests.unit.slurm.by_hand import ORIGIN, QUICK, jobs, starts
from tests.unit.workload.test_sacct_json import _document, _new
from tests.unit.workload.test_slurm import HEADER, row


def array(tasks: int, run: float, limit: int | None, *others: tuple[Any, ...], **columns: Any) -> escala.Workload:
    """An array of one-node tasks that come at 0.1 s, and other jobs."""
    rows = [(0.1, run, 60, 1)] * tasks + list(others)
    one = {"array_id": ["7"] * tasks + [None] * len(others), "array_limit": [limit] * tasks + [None] * len(others)}
    return jobs(*rows, **one, **columns)


def test_so_many_tasks_run_at_one_time(site: Any) -> None:
    """ "--array=0-15%4" will limit the number of simultaneously running tasks from this job array to 4."""
    assert starts(array(5, 10, 2), site()) == pytest.approx([0.4, 0.4, 10.4, 10.4, 20.4], abs=1.1)
    assert starts(array(5, 10, None), site()) == pytest.approx([0.4, 0.4, 0.4, 0.4, 10.4], abs=1.1), (
        "no limit: as many as fit"
    )


@pytest.mark.parametrize(
    ("dependency", "status", "starts_at"),
    [
        ("after:7", None, 20.4),  # all tasks have started
        ("afterany:7", None, 30.4),
        ("afterok:7", None, 30.4),
        ("afterok:7", "FAILED", None),
        ("afternotok:7", "FAILED", 30.4),  # all have ended, and one of them failed
        ("afternotok:7", None, None),
    ],
)
def test_a_job_waits_for_a_whole_array(site: Any, dependency: str, status: str | None, starts_at: float | None) -> None:
    """ "Wait for entire job array to complete"; "... and at least one task fails". A real slurmctld did so with its
    tasks, too."""
    work = array(
        5, 10, 2, (0.2, 5, 60, 1), dependency=[None] * 5 + [dependency], status=[None, status, None, None, None, None]
    )
    found = starts(work, site())[-1]
    assert found is None if starts_at is None else found == pytest.approx(starts_at, abs=1.1)


def test_tasks_wait_for_those_with_their_numbers(site: Any) -> None:
    """aftercorr: "A task of this job array can begin execution after the corresponding task ID in the specified job has
    completed"."""
    rows = [(0.1, 10, 60, 1), (0.1, 30, 60, 1), (0.2, 5, 60, 1), (0.2, 5, 60, 1)]
    work = jobs(
        *rows,
        job_id=["7_1", "7_2", "8_2", "8_1"],
        array_id=["7", "7", "8", "8"],
        dependency=[None, None, *["aftercorr:7"] * 2],
    )
    assert starts(work, site())[2:] == pytest.approx([30.4, 10.4], abs=1.1)


def test_a_task_at_its_limit_holds_nobody_up(site: Any) -> None:
    """JobArrayTaskLimit: it is passed over, in the event pass too, has no reservation and closes no partition."""
    builtin = "SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=0,sched_interval=2"
    for more in (QUICK, builtin):
        found = starts(array(3, 50, 1, (0.1, 10, 60, 3)), site(more=more))
        assert found[0] == found[3] < 2, "the wide job behind the array has the other nodes at once"
        assert found[1] > 50 and found[2] > 100


def test_tasks_behind_one_that_finds_no_room_are_not_looked_at(site: Any) -> None:
    """default_queue_depth counts an array that cannot start once: the job behind ten tasks is within a depth of 3."""
    parts = "PartitionName=p Nodes=n[1-2] Default=YES\nPartitionName=q Nodes=n[3-4]"
    more = (
        "SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=0,sched_interval=600,default_queue_depth=3"
    )
    other = {"partition": ["p", *["p"] * 10, "q"]}
    rows = [(0.0, 50, 60, 2), *[(0.1, 10, 60, 1)] * 10, (1.0, 10, 60, 1)]
    tasks = {"array_id": [None, *["7"] * 10, None]}
    assert starts(jobs(*rows, **other, **tasks), site(partitions=parts, more=more))[-1] == 1.4
    assert starts(jobs(*rows, **other), site(partitions=parts, more=more))[-1] > 10, (
        "without an array the depth ends before it"
    )


def test_a_pass_plans_so_many_tasks(site: Any) -> None:
    """bf_max_job_array_resv: "The maximum number of tasks from a job array for which the backfill scheduler will
    reserve resources in the future" (slurm.conf, 20 by default). Of four tasks that wait for 60 s for two nodes each,
    one is planned, so that the short job of two nodes behind them fits beside it, and is not held back by the plans of
    the others."""
    rows = [(0.0, 100, 120, 3), *[(1.0, 100, 120, 2)] * 4, (2.0, 500, 540, 1)]
    tasks = {"array_id": [None, *["7"] * 4, None]}
    first = starts(jobs(*rows, **tasks), site(more=QUICK + ",bf_max_job_array_resv=1"))
    every = starts(jobs(*rows, **tasks), site())
    assert first[5] < 4 < 100 < every[5]


def test_tasks_that_lose_their_nodes_count_no_longer(site: Any, tmp_path: Path) -> None:
    text = (
        '[[nodes]]\nnames = "n[1-2]"\ncores = 1\n[slurm]\nSelectTypeParameters = "CR_CPU"\nSchedulerParameters = '
        '"requeue_delay=1000"\n'
    )
    text += f'[[closed]]\nnodes = "n1"\nfrom = {ORIGIN + 20}\nuntil = {ORIGIN + 2000}\n'
    (tmp_path / "site.toml").write_text(text)
    found = starts(array(2, 50, 1), escala.read_site(tmp_path / "site.toml"))
    assert 20 < found[1] < 90, "the second, while the first waits to be queued again"
    assert found[0] > 1000


def test_the_law_on_random_worlds(site: Any) -> None:
    """Never more tasks of an array at a time than its limit, all jobs run, and one less would be exceeded somewhere."""
    reached = 0
    for seed in range(30):
        draw = np.random.default_rng([seed, 5])
        n = 60
        run = draw.exponential(60, n).clip(1)
        named = [None if k < 0 else str(k) for k in draw.integers(-2, 4, n)]
        most = dict(zip("0123", [int(draw.integers(1, 4)) for _ in "0123"], strict=True))
        rows = list(
            zip(
                np.sort(draw.uniform(0, 400, n)),
                run,
                run + draw.exponential(60, n),
                draw.integers(1, 4, n).tolist(),
                strict=True,
            )
        )
        work = jobs(*rows, array_id=named, array_limit=[None if one is None else most[one] for one in named])
        place = site(nodes="NodeName=n[1-8] CPUs=1")
        settings = settings_of(place)
        run_ = play(work, place, settings, Asking(work, place, settings).asked())
        assert (run_.jobs.state == t.ENDED).all()
        assert (run_.arrays.run == 0).all()
        for name, limit in most.items():
            mine = np.array([j for j in range(n) if named[j] == name], int)
            for at in run_.jobs.start[mine]:
                now = int(((run_.jobs.start[mine] <= at) & (run_.jobs.finish[mine] > at)).sum())
                assert now <= limit, (seed, name)
                reached += now == limit
    assert reached > 300


def test_sacct_tells_arrays_and_their_limits(tmp_path: Path) -> None:
    header = HEADER + "|SubmitLine"
    lines = [
        f"{row('12_3')}|sbatch --array=1-9%2 a.sh",
        f"{row('12_4')}|sbatch -a 1-9%2 a.sh",
        f"{row('13_1')}|sbatch x",
        f"{row('14')}|",
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([header, *lines]))
    log = read_workload(tmp_path / "sacct.txt", shapes=True)
    assert log.jobs.select("array_id", "array_limit").rows() == [("12", 2), ("12", 2), ("13", None), (None, None)]
    assert "limits of arrays" not in log.ignored
    document = _document(_new, True)
    document["jobs"][1]["array"]["limits"] = {"max": {"running": {"tasks": 3}}}
    (tmp_path / "sacct.json").write_text(json.dumps(document))
    log = read_workload(tmp_path / "sacct.json", shapes=True)
    assert log.jobs.select("array_id", "array_limit").rows() == [(None, None), ("13", 3)]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"array_limit": [2, 2]}, "needs its array_id"),
        ({"array_id": ["a", "a"], "array_limit": [0, 0]}, "1 or more"),
        ({"array_id": ["a", "a"], "array_limit": [2, 3]}, "job '2': tasks of array 'a' have different array_limit"),
    ],
)
def test_what_cannot_be_is_one_line(site: Any, columns: dict[str, Any], says: str) -> None:
    with pytest.raises(EscalaError, match=says) as error:
        escala.simulate(jobs((0, 5, 60, 1), (0, 5, 60, 1), **columns), site(), scheduler="slurm")
    assert "\n" not in str(error.value)
