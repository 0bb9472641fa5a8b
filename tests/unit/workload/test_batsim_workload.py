"""Batsim's JSON: every kind of profile by hand, and the round trip."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escala.errors import EscalaError
from escala.platform import Platform
from escala.workload import Workload, describe, read_workload, write_batsim


def read(
    tmp_path: Path,
    profile: dict[str, Any],
    job: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    **options: Any,
) -> Workload:
    document = {
        "nb_res": 8,
        "jobs": [{"id": 1, "subtime": 2.5, "res": 4, "walltime": 100, "profile": "p", **(job or {})}],
        "profiles": {
            "p": profile,
            "d": {"type": "delay", "delay": 2},
            "c": {"type": "msg_par_hg", "cpu": 3e9, "com": 0},
            **(more or {}),
        },
    }
    path = tmp_path / "w.json"
    path.write_text(json.dumps(document))
    return read_workload(path, **options)


def effort(workload: Workload) -> tuple[float, float | None, float]:
    job = workload.jobs.row(0, named=True)
    return job["runtime_s"], job.get("flops"), job["load"]


@pytest.mark.parametrize("kind", ["delay", "DelayProfile"])
def test_delay(tmp_path: Path, kind: str) -> None:
    workload = read(tmp_path, {"type": kind, "delay": 20.2})
    assert effort(workload) == (20.2, None, 0.0)
    assert (workload.max_cores, workload.jobs["submit_s"][0], workload.origin_s) == (8, 2.5, 0.0)


@pytest.mark.parametrize(
    "kind", ["parallel_homogeneous", "msg_par_hg", "ParallelTaskHomogeneousProfile", "ptask_homogeneous"]
)
def test_homogeneous(tmp_path: Path, kind: str) -> None:
    workload = read(tmp_path, {"type": kind, "cpu": 2e9, "com": 0})
    assert math.isnan(effort(workload)[0]) and effort(workload)[1:] == (2e9, 1.0)
    assert effort(workload.at_speed(1e8)) == (20.0, None, 1.0)
    assert effort(read(tmp_path, {"type": kind, "cpu": 2e9, "com": 0}, speed=1e8)) == (20.0, None, 1.0)


@pytest.mark.parametrize(
    "profile",
    [
        {"type": "parallel_homogeneous_total", "cpu": 8e9, "com": 0},
        {"type": "msg_par_hg_tot", "cpu": 8e9},
        {
            "type": "ParallelTaskHomogeneousProfile",
            "cpu": 8e9,
            "com": 0,
            "generation_strategy": "DefinedAmountsSpreadUniformly",
        },
    ],
)
def test_total_is_spread_over_the_cores(tmp_path: Path, profile: dict[str, Any]) -> None:
    assert effort(read(tmp_path, profile, speed=1e9)) == (2.0, None, 1.0)


@pytest.mark.parametrize("kind", ["parallel", "msg_par", "ParallelTaskProfile"])
def test_uneven_task_lasts_as_its_busiest_core(tmp_path: Path, kind: str) -> None:
    profile = {"type": kind, "cpu": [4e9, 2e9, 1e9, 1e9], "com": [0] * 16}
    assert effort(read(tmp_path, profile, speed=1e9)) == (4.0, None, 0.5)  # 8e9 of 4 x 4e9 flops
    with pytest.raises(EscalaError, match=r"4 cpu amounts.*2 cores"):
        read(tmp_path, profile, {"res": 2})


def test_sequences_add_up(tmp_path: Path) -> None:
    both = {"type": "composed", "seq": ["d", "c", "d"], "repeat": 2}
    assert effort(read(tmp_path, both, speed=1e9)) == (14.0, None, pytest.approx(6 / 14))
    with pytest.raises(EscalaError, match="speed="):
        read(tmp_path, both)
    nested = {"type": "SequentialCompositionProfile", "seq": ["q", "d"]}
    assert effort(read(tmp_path, nested, more={"q": {"type": "composed", "seq": ["d", "d"], "repeat": 3}})) == (
        14.0,
        None,
        0.0,
    )
    with pytest.raises(EscalaError, match="contains itself"):
        read(tmp_path, {"type": "composed", "seq": ["p"]})


def test_communication_beside_work_is_noted(tmp_path: Path) -> None:
    workload = read(tmp_path, {"type": "parallel_homogeneous", "cpu": 1e9, "com": 5e6}, speed=1e9)
    assert effort(workload) == (1.0, None, 1.0)
    assert workload.cleaning == {"note: communication ignored": 1}


@pytest.mark.parametrize(
    "profile",
    [
        {"type": "smpi", "trace": "x"},
        {"type": "usage_trace", "trace": "x"},
        {"type": "TraceReplayProfile", "trace_type": "SMPI", "filename": "x"},
        {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1, "bytes_to_write": 1, "storage": "pfs"},
        {"type": "data_staging", "nb_bytes": 1, "from": "a", "to": "b"},
        {"type": "parallel_homogeneous", "cpu": 0, "com": 1e6},
        {"type": "parallel", "com": [1e6] * 16},
        {"type": "something_new"},
    ],
)
def test_what_needs_another_model_is_refused_by_name(tmp_path: Path, profile: dict[str, Any]) -> None:
    with pytest.raises(EscalaError) as caught:
        read(tmp_path, profile)
    assert "'p'" in str(caught.value) and profile["type"] in str(caught.value) and "\n" not in str(caught.value)


def test_profiles_that_no_job_names_do_not_matter(tmp_path: Path) -> None:
    assert len(read(tmp_path, {"type": "delay", "delay": 1}, more={"x": {"type": "smpi", "trace": "x"}})) == 1


@pytest.mark.parametrize("walltime", [None, -1, 0])
def test_no_walltime(tmp_path: Path, walltime: float | None) -> None:
    workload = read(tmp_path, {"type": "delay", "delay": 20}, {"walltime": walltime})
    assert (workload.jobs["walltime_s"][0], workload.cleaning) == (20.0, {"no request": 1})
    work = read(tmp_path, {"type": "parallel_homogeneous", "cpu": 2e9, "com": 0}, {"walltime": walltime})
    assert math.isnan(work.jobs["walltime_s"][0]) and work.cleaning == {"no request": 1}
    assert work.at_speed(1e9).jobs["walltime_s"][0] == 2.0


def test_users_ids_and_order(tmp_path: Path) -> None:
    assert read(tmp_path, {"type": "delay", "delay": 1}, {"user": 5, "id": "w0!a"}).jobs.select("job_id", "user").row(
        0
    ) == ("w0!a", "5")
    assert read(tmp_path, {"type": "delay", "delay": 1}, {"user_id": "bob"}).jobs["user"][0] == "bob"


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"res": "4"}, ["job 1", "res", "'4'"]),
        ({"subtime": None}, ["job 1", "subtime"]),
        ({"walltime": True}, ["walltime", "True"]),
        ({"profile": "nothing"}, ["'nothing'", "not defined"]),
    ],
)
def test_malformed_jobs(tmp_path: Path, job: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(EscalaError) as caught:
        read(tmp_path, {"type": "delay", "delay": 1}, job)
    assert all(word in str(caught.value) for word in [*words, "w.json"]), str(caught.value)


@pytest.mark.parametrize("amount", [-1, "x", math.inf, math.nan, None])
def test_malformed_amounts(tmp_path: Path, amount: Any) -> None:
    for profile in (
        {"type": "delay", "delay": amount},
        {"type": "parallel_homogeneous", "cpu": amount},
        {"type": "parallel", "cpu": [amount] * 4},
    ):
        with pytest.raises(EscalaError, match="'p'"):
            read(tmp_path, profile)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n"jobs": [\n', ["line 3", "not valid JSON"]),
        ("[]", ["not a Batsim workload"]),
        ('{"jobs": {}, "profiles": {}}', ["not a Batsim workload"]),
        ('{"jobs": [], "profiles": {}}', ["no jobs"]),
        ('{"jobs": [7], "profiles": {}}', ["job number 1"]),
        ('{"jobs": [{"id": 3}], "profiles": {}}', ["job 3", "subtime"]),
        ("[" * 100_000, ["w.json"]),
    ],
)
def test_malformed_documents(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(EscalaError) as caught:
        read_workload(tmp_path / "w.json")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


JOB = st.fixed_dictionaries(
    {
        **dict.fromkeys(
            ("submit_s", "runtime_s", "walltime_s"), st.one_of(st.integers(1, 10**8).map(float), st.floats(1e-3, 1e8))
        ),
        "cores": st.integers(1, 10**6),
        "user": st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=8)),
        "load": st.sampled_from([0.0, 1.0, 0.25]),
    }
)
FILE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@FILE
@given(
    st.lists(JOB, min_size=1, max_size=10),
    st.sampled_from(["v4", "v5"]),
    st.sampled_from([1.0, 1e6, 1e9, 3.3e9]),
    st.data(),
)
def test_round_trip(tmp_path: Path, rows: list[dict[str, Any]], names: Any, speed: float, data: st.DataObject) -> None:
    ids = data.draw(
        st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=len(rows), max_size=len(rows), unique=True)
    )
    workload = Workload.from_jobs([{**row, "job_id": job} for row, job in zip(rows, ids)], max_cores=77, origin_s=5.0)
    path = tmp_path / "out.json.gz"
    write_batsim(workload, path, speed=speed, names=names)
    again = read_workload(path, speed=speed)
    exact = ["job_id", "submit_s", "walltime_s", "cores", "user"]
    assert again.jobs.select(exact).equals(workload.jobs.select(exact))
    assert again.jobs["load"].to_list() == pytest.approx(workload.jobs["load"].to_list(), rel=1e-12)
    for was, now, load in zip(workload.jobs["runtime_s"], again.jobs["runtime_s"], workload.jobs["load"]):
        assert now == was if load == 0.0 else now == pytest.approx(was, rel=1e-15)
    assert (again.max_cores, again.origin_s) == (77, 5.0)


@FILE
@given(st.integers(1, 64), st.floats(1.0, 1e18), st.floats(0.0, 1.0))
def test_work_is_written_as_it_is(tmp_path: Path, cores: int, flops: float, share: float) -> None:
    load = 1 / cores + share * (1 - 1 / cores)
    workload = Workload.from_jobs({"submit_s": [0], "flops": [flops], "cores": [cores], "load": [min(1.0, load)]})
    write_batsim(workload, tmp_path / "out.json")
    again = read_workload(tmp_path / "out.json").jobs.row(0, named=True)
    assert again["flops"] == flops and math.isnan(again["walltime_s"])
    assert again["load"] == pytest.approx(load, rel=1e-9)


def test_platform_size_and_refusals(tmp_path: Path) -> None:
    workload = Workload.from_jobs({"submit_s": [0], "runtime_s": [10], "cores": [3]})
    path = tmp_path / "out.json"
    with pytest.raises(EscalaError, match="speed="):
        write_batsim(workload, path)
    with pytest.raises(EscalaError, match="v6"):
        write_batsim(workload, path, speed=1.0, names="v6")  # type: ignore[arg-type]
    write_batsim(workload, path, platform_size=12, speed=1e9)
    document = json.loads(path.read_text())
    assert document["nb_res"] == 12
    assert document["jobs"] == [{"id": "1", "subtime": 0, "res": 3, "profile": "c10000000000"}]  # no walltime: no limit
    assert document["profiles"] == {"c10000000000": {"type": "parallel_homogeneous", "cpu": 10_000_000_000, "com": 0}}
    gpu = Workload.from_jobs({"submit_s": [0], "runtime_s": [1], "cores": [1], "single_node": [True]})
    with pytest.raises(EscalaError, match="single_node"):
        write_batsim(gpu, path, speed=1.0)


@pytest.mark.parametrize("speed", [-1, 0, math.nan, math.inf, -math.inf, "fast", True])
def test_absurd_speeds_are_refused(tmp_path: Path, speed: Any) -> None:
    workload = Workload.from_jobs({"submit_s": [0.0], "cores": [1], "runtime_s": [5.0]})
    with pytest.raises(EscalaError, match="finite number above 0"):
        write_batsim(workload, tmp_path / "w.json", speed=speed)
    assert not list(tmp_path.iterdir())
    write_batsim(workload, tmp_path / "w.json", speed=1e9)
    with pytest.raises(EscalaError, match="finite number above 0"):
        read_workload(tmp_path / "w.json", speed=speed)


def test_describe_takes_the_speed_of_the_platform(tmp_path: Path) -> None:
    write_batsim(
        Workload.from_jobs({"submit_s": [0.0], "cores": [1], "runtime_s": [5.0]}), tmp_path / "w.json", speed=1e9
    )
    work = read_workload(tmp_path / "w.json")
    assert describe(work, Platform.uniform(1, speed=2e9))["quantiles"]["runtime_s"]["max"] == 2.5
    for platform in (None, Platform.uniform(1)):
        with pytest.raises(EscalaError, match=r"w.json.*at_speed\(1e9\) \(--speed 1e9\)"):
            describe(work, platform)
