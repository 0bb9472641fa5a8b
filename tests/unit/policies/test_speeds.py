"""Nodes of several speeds beyond a schedule: manifests, streams, checked results, Slurm's rules, and who refuses."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala import EscalaError, EscalaWarning, Platform, Workload, streaming
from escala.workload import write_parquet
from tests.live.twin import differences
from tests.oracle.worlds import Case

PLATFORM = replace(Platform.uniform(3, 1, "taurus"), node_speed=[1.0, 0.8, 2.0])
COLUMNS = {
    "submit_s": [0.0] * 4,
    "runtime_s": [10.0] * 4,
    "walltime_s": [20.0, 11.0, 20.0, 20.0],
    "cores": [1, 1, 2, 3],
}
LOG = Workload.from_jobs(COLUMNS)


class Greedy:
    """Starts what fits. spoils: what it does to the tables of the simulation, which it finds in memory."""

    role = "scheduler"

    def __init__(self, spoils: Any = None) -> None:
        self.spoils = spoils

    def decide(self, view: Any, act: Any) -> None:
        for job in view.queue:
            act.start(job)
        if self.spoils is not None:
            for found in gc.get_objects():
                if type(found).__name__ == "Simulation" and found.platform is PLATFORM:
                    self.spoils(found.world)


def long_log(jobs: int = 1500) -> Workload:
    rng = np.random.default_rng(3)
    runtime = np.ceil(rng.exponential(100, jobs))
    return Workload.from_jobs(
        {
            "submit_s": np.sort(rng.integers(0, 15000, jobs)).astype(float),
            "runtime_s": runtime,
            "walltime_s": runtime * rng.choice([1, 1, 2, 3], jobs),
            "cores": rng.integers(1, 9, jobs),
            "limited": rng.random(jobs) < 0.5,
            "load": rng.choice([1.0, 1.0, 0.0, 0.5], jobs),
        }
    )


def test_the_manifest_says_so_and_nothing_where_there_are_none() -> None:
    told = escala.simulate(LOG, PLATFORM, "easy").manifest
    assert [group.get("speed") for group in told["platform"]["nodes"]] == [None, 0.8, 2.0]
    assert "unseen" not in told
    plain, ones = (
        escala.simulate(LOG, one, "easy") for one in (PLATFORM.alike(), replace(PLATFORM, node_speed=[1] * 3))
    )
    apart = ("elapsed_s",)
    assert {k: v for k, v in plain.manifest.items() if k not in apart} == {
        k: v for k, v in ones.manifest.items() if k not in apart
    }
    assert "speed" not in str(plain.manifest["platform"]) and plain.jobs.equals(ones.jobs)
    assert plain.jobs["runtime_s"].to_list() == [10.0] * 4


@pytest.mark.parametrize("scheduler", ["easy", "sjf"])
@pytest.mark.parametrize("shutdown", ["never", "timeout:60"])
def test_a_stream_and_a_rerun_give_the_same(tmp_path: Path, scheduler: str, shutdown: str) -> None:
    """Half of the jobs without a limit: what they are expected to run is no less than on the slowest node."""
    machine = replace(Platform.uniform(24, 1, "taurus"), node_speed=np.resize([1, 0.8, 0.5, 2.0, 1.0], 24))
    write_parquet(long_log(), tmp_path / "w.parquet")
    log = escala.read_workload(tmp_path / "w.parquet")
    whole = escala.simulate(log, machine, scheduler, shutdown)
    got = whole.jobs
    assert (got["runtime_s"] != log.jobs["runtime_s"]).mean() > 0.3
    assert (got.filter("limited")["runtime_s"] <= got.filter("limited")["walltime_s"]).all()
    free = got.filter(~pl.col("limited"))
    assert (free["runtime_s"] <= free["walltime_s"]).all() and (free["state"] == "COMPLETED").all()
    assert escala.rerun(whole, log).jobs.equals(got)
    out = tmp_path / "out"
    streaming.stream(tmp_path / "w.parquet", machine, scheduler, shutdown, out=out, jobs=200)
    by_id = pl.read_parquet(out / "jobs.parquet").sort(pl.col("job_id").cast(pl.Int64))
    same = ["job_id", "start_s", "finish_s", "runtime_s", "walltime_s", "state", "nodes"]
    assert by_id.select(same).equals(got.select(same))
    again = streaming.rerun(out, tmp_path / "w.parquet", out=tmp_path / "again").summary
    assert again == json.loads((out / "summary.json").read_text())


def test_a_policy_from_outside_is_held_against_what_its_nodes_let_run() -> None:
    got = escala.simulate(LOG, PLATFORM, Greedy()).jobs
    assert got["runtime_s"].to_list() == [10.0, 11.0, 10.0, 12.5]
    for record in (True, False):
        assert escala.simulate(LOG, PLATFORM, Greedy(), record=record).jobs["finish_s"].to_list() == [10, 11, 20, 32.5]

    def shorter(world: Any) -> None:
        world.job[0]["runtime"][0] = 3_000_000

    for record in (True, False):
        with pytest.raises(EscalaError, match="job '1' has another runtime than in the workload: a policy has changed"):
            escala.simulate(LOG, PLATFORM, Greedy(shorter), record=record)

    def unlimited(world: Any) -> None:
        world.whole[0, 1, 1] = 1 << 61
        world.job[0]["killed"][1] = 0

    with pytest.raises(EscalaError, match="job '2' has another killed"):
        escala.simulate(LOG, PLATFORM, Greedy(unlimited))


def test_a_clairvoyant_shutdown_policy_knows_when_jobs_really_end() -> None:
    """OR*: node 1 is switched off at once. Job 1 runs 10 / 0.5 = 20 s on node 0. Job 2 comes at 5, and may be held for
    half of its walltime: of 20 s to 15, so node 1 is woken for it, in 1 s; of 40 to 25, so it waits for job 1."""
    watts = {"computing_w": 200.0, "idle_w": 100.0, "off_w": 10.0, "switching_off_w": 120.0, "switching_on_w": 150.0}
    power = escala.PowerProfile(**watts, switch_off_s=1.0, switch_on_s=1.0, name="quick")
    machine = replace(Platform.uniform(2, 1, power), node_speed=[0.5, 1.0])
    for walltime, start in ((20.0, 6.0), (40.0, 20.0)):
        columns = {"submit_s": [0.0, 5.0], "runtime_s": [10.0, 10.0], "walltime_s": [20.0, walltime], "cores": [1, 1]}
        got = escala.simulate(Workload.from_jobs(columns), machine, "fcfs", "oracle:0.5").jobs
        assert got["start_s"].to_list() == [0.0, start]


def test_slurms_rules_pace_jobs_and_cut_them_at_a_beat() -> None:
    """Speeds 1, 0.8, 2. The 1000 s of job 2 would be 1250 on node 1, far over its limit of 17 min, so it is killed at a
    beat after that. Job 4 has all: 1000 / 0.8."""
    told = {"submit_s": [0.0] * 4, "runtime_s": [1000.0] * 4, "walltime_s": [2000.0, 1020.0, 2000.0, 2000.0]}
    got = escala.simulate(Workload.from_jobs({**told, "cores": [1, 1, 2, 3]}), PLATFORM, "slurm").jobs
    assert got["state"].to_list() == ["COMPLETED", "KILLED", "COMPLETED", "COMPLETED"]
    assert got["runtime_s"][0] == 1000.0 and got["runtime_s"][3] == 1250.0
    assert 1020.0 < got["runtime_s"][1] < 1080.0


def test_slurms_followers_go_by_how_it_went() -> None:
    """Job 1 is killed on the slow node; 2 waits for it to go well, 3 for it to fail. On a fast one it is otherwise."""
    told = {"submit_s": [0.0] * 3, "runtime_s": [1000.0] * 3, "walltime_s": [1020.0] * 3, "cores": [1] * 3}
    log = Workload.from_jobs({**told, "dependency": [None, "afterok:1", "afternotok:1"]})
    for speed, never in ((0.5, 1), (1.7, 2)):
        got = escala.simulate(log, replace(Platform.uniform(1, 1), node_speed=[speed]), "slurm").jobs
        assert got["start_s"].is_null().to_list() == [False, never == 1, never == 2]


def test_a_desk_decides_by_limits_alone() -> None:
    """Asked from outside, decision by decision, a machine of several speeds does what the kernel does."""
    watts = {"computing_w": 200.0, "idle_w": 100.0, "off_w": 10.0, "switching_off_w": 120.0, "switching_on_w": 150.0}
    profile = watts | {"switch_off_s": 2.0, "switch_on_s": 3.0, "can_switch": True}
    platform = {"cores": [2, 2, 1], "profiles": [profile], "profile_of": [0] * 3, "node_speed": [1.0, 0.5, 2.0]}
    rng = np.random.default_rng(5)
    rest = {"load": 1.0, "single_node": False, "user": None}
    drawn = rng.integers((0, 1, 10, 1), (60, 20, 30, 6), (40, 4)).tolist()
    columns = ("submit_s", "runtime_s", "walltime_s", "cores")
    jobs = [{"job_id": str(k), **dict(zip(columns, row, strict=True)), **rest} for k, row in enumerate(drawn)]
    jobs.sort(key=lambda job: job["submit_s"])
    for scheduler in ("fcfs", "easy", "conservative"):
        case = Case(
            platform, jobs, {"scheduler": scheduler, "shutdown": "timeout:5", "rebuild": scheduler == "conservative"}
        )
        assert not differences(case)


def test_policies_that_place_jobs_on_other_nodes_are_compared() -> None:
    """They run for other times, which is no sign of other jobs."""
    columns = COLUMNS | {"cores": [1, 2, 1, 1], "walltime_s": [20.0, 40.0, 14.0, 14.0]}
    compared = escala.compare(Workload.from_jobs(columns), PLATFORM, ["fcfs", "sjf-fit"], jobs=1)
    ran = {name: result.summary()["mean_runtime_s"] for name, result in compared.results.items()}
    assert len(set(ran.values())) == 2 and compared.table().height == 2
    summaries = {name: result.summary() for name, result in compared.results.items()}
    with pytest.raises(EscalaError, match="not the same jobs"):
        escala.metrics.compare.check(summaries)
    assert "placed and killed otherwise" in escala.metrics.compare.check(summaries, paced=True)[0]


def test_who_looks_ahead_at_one_speed_says_so() -> None:
    with pytest.warns(EscalaWarning, match="jobs run as long on any node in the futures that rollout"):
        got = escala.simulate(LOG, PLATFORM, "rollout:4")
    assert set(got.manifest["unseen"]) == {"speed"}


@pytest.mark.parametrize("objective", ["wait", "slowdown", "makespan", "waste"])
def test_bounds_refuse_them(objective: str) -> None:
    with pytest.raises(EscalaError, match="several speeds, and bounds are for jobs that run as long on any nodes"):
        escala.bound(LOG, PLATFORM, objective)


@pytest.mark.parametrize("env", ["escala/Scheduling-v0", "escala/OffReservation-v0", "escala/Slots-v0"])
def test_environments_refuse_them(env: str) -> None:
    import gymnasium

    with pytest.raises(EscalaError, match="several speeds, and environments are for jobs"):
        gymnasium.make(env, workload=LOG, platform=PLATFORM)
