"""The description of a workload: by hand, on nothing, and against counts made independently on real logs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.platform import Platform
from escala.studies.lab.days import days_of
from escala.workload.describe import GROUPS, Description, day_group, describe
from escala.workload.generate import grid5000
from escala.workload.table import Workload

DAY = 86400.0


def _workload(submit: list[float], **columns: object) -> Workload:
    n = len(submit)
    base: dict[str, object] = {"submit_s": submit, "runtime_s": [60.0] * n, "cores": [1] * n}
    return Workload.from_jobs(base | columns, max_cores=4)  # type: ignore[operator]


def test_by_hand() -> None:
    w = _workload(
        [0.0, 299.0, 599.0, 1000.0],
        runtime_s=[100.0, 200.0, 400.0, 50.0],
        walltime_s=[200.0, 200.0, 300.0, 100.0],
        cores=[1, 2, 4, 1],
        user=["a", "a", "b", None],
        status=["COMPLETED", "FAILED", "TIMEOUT", None],
    )
    d = describe(w)
    assert (d["jobs"], d["users"], d["cores"], d["largest_job"]) == (4, 2, 4, 4)
    assert d["period_days"] == 1050 / DAY  # the last job ends last; job 3 is cut at its walltime
    assert d["utilisation"] == pytest.approx((100 + 400 + 1200 + 50) / (4 * 1050))
    assert d["sequential_share"] == pytest.approx(1 / 3)  # 299 s is less than 5 min, 300 s is not
    assert d["error_share"] == pytest.approx(2 / 3) and d["at_walltime_share"] == 0.5 and d["one_core_share"] == 0.5
    assert d["days"] == 1 and list(d["day_groups"].values()) == [0, 1, 0, 0, 0]
    year = {"jobs": 4, "sequential": pytest.approx(1 / 3), "error": pytest.approx(2 / 3)}
    assert d["years"] == {"year 1": year | {"error_of_sequential": 1.0, "error_of_others": 1.0}}
    assert d["quantiles"]["cores"] == {
        "mean": 2.0,
        "min": 1.0,
        "p5": 1.0,
        "p25": 1.0,
        "p50": 1.0,
        "p75": 2.0,
        "p95": 2.0,
        "max": 4.0,
    }
    assert d["quantiles"]["interarrival_s"]["max"] == 401 and d["quantiles"]["wait_s"]["mean"] is None
    assert describe(w, Platform.uniform(4, 2))["utilisation"] == pytest.approx(d["utilisation"] / 2)


def test_the_log_s_waits_lengthen_the_period() -> None:
    w = _workload([0.0, 10.0], wait_s=[0.0, 1000.0])
    assert describe(w)["period_days"] == 1070 / DAY


@pytest.mark.parametrize(
    ("gaps", "group"),
    [
        ([1000.0] * 4, 0),
        ([1000.0] * 4 + [10.0], 0),
        ([1000.0] * 3 + [10.0], 1),  # a quarter
        ([1000.0, 10.0], 2),  # a half
        ([1000.0, 10.0, 10.0, 10.0], 3),  # three quarters
        ([10.0] * 3, 4),
    ],
)
def test_groups_of_days(gaps: list[float], group: int) -> None:
    submit = [0.0]
    for gap in gaps:
        submit.append(submit[-1] + gap)
    assert list(describe(_workload(submit))["day_groups"].values()) == [int(k == group) for k in range(5)]
    assert day_group(_workload(submit)) == group + 1
    assert len(GROUPS) == 5


def test_days_of_some_groups_are_those_that_describe_counts() -> None:
    log = grid5000(cluster="orion", days=40, seed=3)
    counted = list(describe(log)["day_groups"].values())
    assert [len(days_of(log, groups=[g])) for g in range(1, 6)] == counted and len(days_of(log)) == sum(counted) > 20
    assert {day_group(day) for day in days_of(log, groups=(2, 3))} == {2, 3}
    with pytest.raises(EscalaError, match="groups 1 to 5"):
        days_of(log, groups=[6])
    with pytest.raises(EscalaError, match="two"):
        day_group(_workload([5.0]))


def test_days_begin_at_midnight_and_need_two_jobs() -> None:
    w = _workload([DAY - 10.0, DAY + 10.0, DAY + 20.0, 3 * DAY])
    d = describe(w)
    assert (d["days"], d["days_dropped"]) == (1, 2) and list(d["day_groups"].values())[4] == 1
    # the same log, whose clock begins 20 s after midnight
    shifted = Workload(w.jobs, origin_s=1.5e9 // DAY * DAY + 20.0)
    assert (describe(shifted)["days"], describe(shifted)["days_dropped"]) == (1, 1)


def test_years_of_an_absolute_log() -> None:
    w = Workload(
        _workload([0.0, 10.0, 400 * DAY], status=["FAILED", "COMPLETED", "COMPLETED"]).jobs, origin_s=1_483_228_800.0
    )
    d = describe(w)
    first = {"jobs": 2, "sequential": 1.0, "error": 0.5, "error_of_sequential": 0.0, "error_of_others": None}
    second = {"jobs": 1, "sequential": 0.0, "error": 0.0, "error_of_sequential": None, "error_of_others": 0.0}
    assert d["years"] == {"2017": first, "2018": second}
    # of the two jobs that have a predecessor: all of 2017's one, none of 2018's one
    assert d["sequential_share"] == 0.5
    assert d["first"] == "2017-01-01 00:00:00" and d["last"] == "2018-02-05 00:00:00"


@pytest.mark.parametrize("submit", [[], [5.0], [5.0, 5.0]])
def test_small_workloads(submit: list[float]) -> None:
    d = describe(_workload(submit))
    assert d["jobs"] == len(submit) and json.loads(json.dumps(d, allow_nan=False)) == d
    assert (d["sequential_share"] is None) == (len(submit) < 2)
    rows = d.rows()
    assert all(len(row) == 3 and row[1] is not None for row in rows) and ("jobs", len(submit), "") in rows


def test_rows_name_everything() -> None:
    d = describe(_workload([0.0, 10.0, 20.0], status=["COMPLETED"] * 3, user=["a"] * 3, wait_s=[0.0] * 3))
    assert isinstance(d, Description)
    labels = [row[0] for row in d.rows()]
    assert len(labels) == len(set(labels)) and {
        "utilisation",
        "runtime p50",
        "days in group #5 100 %",
        "year 1: error",
    } <= set(labels)


def test_work_without_a_speed_is_refused() -> None:
    w = Workload.from_jobs({"submit_s": [0.0], "flops": [1e9], "cores": [1]})
    with pytest.raises(EscalaError, match="at_speed"):
        describe(w)
    assert describe(w.at_speed(1e9))["jobs"] == 1


def test_real_log(traces: Path) -> None:
    """KTH-SP2: the manifest beside the log counts 59.0 % of gaps below 5 min, load 0.701, 32.9 % on one node (one job
    has no size)."""
    names = ["job_id", "submit_s", "wait_s", "runtime_s", "used", "a", "b", "asked", "walltime_s"]
    with gzip.open(traces / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz", "rt") as file:
        rows = [
            [float(value) for value in line.split()[:9]] for line in file if line.strip() and not line.startswith(";")
        ]
    log = pl.DataFrame(rows, schema=names, orient="row").filter(pl.col("used") > 0, pl.col("runtime_s") > 0)
    w = Workload.from_jobs(
        {name: log[name] for name in ("submit_s", "wait_s", "runtime_s")}
        | {"cores": log["used"].cast(pl.Int64)},  # no requests: the manifest does not cut run times at them
        max_cores=100,
    )
    d = describe(w)
    assert d["sequential_share"] == pytest.approx(0.590, abs=5e-4)
    assert d["one_core_share"] == pytest.approx(0.329, abs=1e-3)
    assert d["utilisation"] == pytest.approx(0.701, abs=5e-4)
    assert d["period_days"] == pytest.approx(332.9, abs=0.1)
