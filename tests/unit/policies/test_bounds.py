"""Bounds of logs: never above what any simulated scheduler reaches, and what is found is carried out by the
simulator."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.admit import admit_jobs
from escala.bounds.schedule_bound import BEGIN_WITH, METRIC, Planned, instance_of, pool_of
from escala.errors import EscalaError
from escala.optimum import OBJECTIVES
from escala.optimum import bound as bound_of
from escala.options import Options
from escala.workload import Workload, write_swf
from escala.workload.generate_slots import bernoulli_model, cpu_memory_model

LONG = [pytest.param(one, marks=pytest.mark.long) for one in ("bounded-slowdown", "wait")]
RULES = ("fcfs", "sjf-fit", "saf", "conservative")


def random_log(rng: np.random.Generator, most: int = 10, cores: int = 8) -> Workload:
    n = int(rng.integers(1, most + 1))
    runtime = rng.integers(1, 30, n).astype(float) * float(rng.choice([0.5, 1.0, 60.0]))
    return Workload.from_jobs(
        {
            "submit_s": np.sort(rng.integers(0, 40, n)).astype(float),
            "runtime_s": runtime,
            "walltime_s": np.ceil(runtime * rng.uniform(0.6, 3.0, n)),
            "cores": rng.integers(1, cores + 1, n),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("logs", [168, pytest.param(2000, marks=pytest.mark.long)])
def test_no_simulated_schedule_is_below_the_bound(logs: int) -> None:
    """Random logs, on one pool and on nodes, every objective and rule on each; and the bounds say something: most
    schedules cost more than the least that any could, most of these bounds are above that, and many are reached."""
    rng = np.random.default_rng(11)
    seen: dict[tuple[str, ...], int] = {}
    costly = useful = reached_often = 0
    platforms = [escala.read_platform(text) for text in ("1x8:none", "8x1:none", "4x2")]
    for k in range(logs):
        log, machine = random_log(rng), platforms[k % 3]
        objective, rule = OBJECTIVES[k % len(OBJECTIVES)], RULES[k % 7 % len(RULES)]
        instance, tick_us, _ = instance_of(log, machine, admit_jobs(log, machine, Options()), objective)
        proved = bound_of(instance, steps=("wspt", "lagrange"), limit_s=5.0).lower
        assert proved is not None
        unit = 1.0 if objective.endswith("slowdown") else tick_us / 1e6
        reached = escala.simulate(log, machine, rule).summary()[METRIC[objective]]
        assert proved * unit <= reached * (1 + 1e-9), (k, objective, rule)
        key = machine.name, objective, rule
        seen[key] = seen.get(key, 0) + 1
        trivial = instance.value(instance.release) * unit  # every job at its submission
        costly += reached > trivial * (1 + 1e-9)
        useful += proved * unit > trivial * (1 + 1e-9)
        reached_often += reached > trivial * (1 + 1e-9) and proved * unit >= 0.9 * reached
    assert (
        sum(seen.values()) == logs
        and len(seen) == len(platforms) * len(OBJECTIVES) * len(RULES)
        and min(seen.values()) > logs // 130
    )
    assert costly > 0.65 * logs and useful > 0.9 * costly and reached_often > 0.2 * logs


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_found_and_lower_enclose_the_truth(objective: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        log = random_log(rng)
        result = escala.bound(log, "8x1", objective, limit_s=5.0, policies=RULES)
        assert result.found is not None and result.lower is not None and result.starts_s is not None
        assert result.lower <= result.found + 1e-9
        # it begins with schedules as good as simple rules make
        assert result.found <= min(result.policies.values()) + 1e-9
        value = escala.simulate(
            log, pool_of(escala.read_platform("8x1")), Planned((result.starts_s * 1e6).astype(np.int64))
        )
        assert value.summary()[METRIC[objective]] == pytest.approx(result.found, rel=1e-12)


def test_exact_proves_a_small_list() -> None:
    pytest.importorskip("highspy")
    log = bernoulli_model(load=1.0, steps=20).workload(4)
    result = escala.bound(log, "10x1", "slowdown", exact=True, limit_s=60.0)
    assert result.status == "optimal" and result.gap == pytest.approx(0.0, abs=1e-6)


def test_a_second_resource_counts() -> None:
    """Two jobs that share the cores but not the memory run one after the other."""
    jobs = {
        "submit_s": [0.0, 0.0],
        "runtime_s": [10.0, 10.0],
        "cores": [1, 1],
        "single_node": [True, True],
        "demand_memory": [6, 6],
    }
    machine = escala.Platform.uniform(1, 10, resources={"memory": 10})
    assert escala.bound(Workload.from_jobs(jobs), machine, "makespan").lower == 20.0
    assert (
        escala.bound(cpu_memory_model().workload(1), machine, "slowdown", limit_s=2.0, policies=["sjf-fit"]).found
        is not None
    )


@pytest.mark.parametrize("objective", ["slowdown", "makespan", *LONG])
def test_a_year_in_microseconds_is_bounded(objective: str) -> None:
    """Times whose only common tick is a microsecond are rounded for the proof; what is found is replayed exactly."""
    rng = np.random.default_rng(6)
    runtime = np.round(rng.uniform(600.0, 86_400.0, 60), 6)
    submit = np.sort(np.round(rng.integers(0, 12, 60) * 30.0 * 86_400 + rng.uniform(0, 3600, 60), 6))
    log = Workload.from_jobs(
        {"submit_s": submit, "runtime_s": runtime, "walltime_s": runtime * 2, "cores": rng.integers(1, 8, 60)}
    )
    result = escala.bound(log, "8x1", objective, limit_s=5.0, policies=RULES)
    assert (
        result.tick_s == 1e-6 and result.relaxations[-1] == "times rounded to 0.0001 s for the proof, so that it holds"
    )
    assert result.status in ("interval", "optimal") and result.lower is not None and result.found is not None
    assert result.lower <= result.found <= min(result.policies.values()) + 1e-9
    assert result.lower > {"makespan": 300 * 86_400.0, "wait": 1.0}.get(objective, 1.05)
    assert result.starts_s is not None
    run = escala.simulate(
        log, pool_of(escala.read_platform("8x1")), Planned(np.round(result.starts_s * 1e6).astype(np.int64))
    )
    assert run.summary()[METRIC[objective]] == pytest.approx(result.found, rel=1e-9)


def test_headroom_is_a_share_of_what_is_possible() -> None:
    log = bernoulli_model(load=1.9, steps=50).workload(7)
    result = escala.bound(log, "10x1", "slowdown", limit_s=5.0, policies=["fcfs", "sjf-fit"])
    share = result.headroom("sjf-fit", "fcfs")
    assert result.found is not None and share is not None and 0 < share <= 1
    expected = (result.policies["fcfs"] - result.policies["sjf-fit"]) / (result.policies["fcfs"] - result.found)
    assert share == pytest.approx(expected)
    assert result.headroom("fcfs", "fcfs") == 0.0


def test_jobs_that_never_fit_are_an_error_or_left_out() -> None:
    log = Workload.from_jobs({"submit_s": [0.0, 0.0], "runtime_s": [5.0, 5.0], "cores": [2, 20]})
    with pytest.raises(EscalaError, match="needs 20 cores"):
        escala.bound(log, "8x1")
    result = escala.bound(log, "8x1", oversized="drop")
    assert result.rejected == 1 and result.jobs == 1 and result.starts_s is not None and np.isnan(result.starts_s[1])


@pytest.mark.parametrize(
    ("given", "word"),
    [({"objective": "power"}, "'power'"), ({"limit_s": 0.0}, "limit_s"), ({"policies": ["esy"]}, "'esy'")],
)
def test_bad_options_are_one_clear_line(given: dict[str, object], word: str) -> None:
    log = random_log(np.random.default_rng(0))
    with pytest.raises(EscalaError, match=word) as error:
        escala.bound(log, "8x1", **given)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("objective", ["wait", "waste"])
@pytest.mark.parametrize("limit_s", [-1.0, math.nan, "60"])
def test_no_time_is_refused_before_anything_is_replayed(objective: str, limit_s: Any) -> None:
    def replayed(*_: Any) -> Any:
        raise AssertionError("a replay began")

    with pytest.raises(EscalaError, match=r"limit_s is .*: give seconds above 0"):
        escala.bound(random_log(np.random.default_rng(0)), "8x1:grid5000", objective, limit_s=limit_s, keep=replayed)


def command(tmp_path: Path, steps: int, *arguments: str) -> list[str]:
    write_swf(bernoulli_model(load=1.9, steps=steps).workload(7), tmp_path / "list.swf")
    return [
        sys.executable,
        "-c",
        "from escala.cli import main; main()",
        "bound",
        str(tmp_path / "list.swf"),
        "--platform",
        "10x1",
        "--objective",
        "slowdown",
        *arguments,
    ]


def test_the_verb_tells_and_saves(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, 50, "--limit", "3", "--json", "--out", str(tmp_path / "out")),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["status"] in ("interval", "optimal") and told["lower"] <= told["found"] <= told["policies"]["sjf-fit"]
    assert json.loads((tmp_path / "out" / "bound.json").read_text())["found"] == told["found"]
    assert (tmp_path / "out" / "schedule.parquet").exists()


@pytest.mark.slow
def test_ctrl_c_shows_what_was_proved(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    process = subprocess.Popen(
        command(tmp_path, 200, "--exact", "--limit", "100", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, used = "", 0.0
        # read, compiled or loaded, and at work on a list that takes it longer
        while used < 6.0 and process.poll() is None:
            time.sleep(0.1)
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        assert process.poll() is None, "it ended by itself: make the list longer"
        for _ in range(10):  # a library's callback may swallow one: whoever waits presses again
            os.kill(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, _ = process.communicate(timeout=5)
                break
    finally:
        process.kill()
    told = json.loads(out)
    assert process.returncode == 130 and told["interrupted"] and told["lower"] <= told["found"]


def test_ctrl_c_while_the_schedule_is_replayed_keeps_what_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    log, machine = (
        escala.Workload.from_jobs({"submit_s": [0.0, 1.0], "runtime_s": [5.0, 2.0], "cores": [1, 1]}),
        "1x1:none",
    )
    whole = escala.bound(log, machine, "slowdown")
    monkeypatch.setattr("escala.bounds.schedule_bound._carried_out", stopped)
    told = escala.bound(log, machine, "slowdown", policies=())
    assert told.detail.interrupted and told.status == "bound-only" and told.lower == whole.lower
    assert told.found is None and told.starts_s is None
    beside = escala.bound(log, machine, "slowdown", policies=["fcfs"])
    assert beside.detail.interrupted and beside.found == beside.policies["fcfs"] and beside.found_by == "fcfs"


def test_look_ahead_by_name_minds_the_objective_and_its_schedule_counts() -> None:
    """The best schedule found is none that a policy of the list beats, however little time the search has."""
    log = bernoulli_model(load=1.9, steps=50, demand="clip10").workload(7_000_003)
    bounds = escala.bound(log, "10x1:none", "slowdown", policies=["sjf-fit", "rollout:16"], limit_s=0.05)
    direct = escala.simulate(
        log, "10x1:none", escala.policies.Rollout(16, objective="slowdown"), record=False
    ).summary()["mean_slowdown"]
    assert bounds.policies["rollout:16"] == pytest.approx(direct, rel=1e-12)
    assert bounds.found is not None and bounds.found <= min(bounds.policies.values()) + 1e-9


@pytest.mark.parametrize(("platform", "single"), [("3x2:grid5000", False), ("2x3:none", True)])
def test_what_is_found_can_be_carried_out(platform: str, single: bool) -> None:
    """Nodes that boot, or jobs that must lie on one node: the pool's best schedule may not be possible, so what is told
    as found is a schedule of the platform, no worse than any policy's there, and `optimal` is said of nothing else."""
    rules = [rule for rule in RULES if rule != "conservative"]  # which plans cores of any nodes only
    machine, rng, by = escala.read_platform(platform), np.random.default_rng(8), set()
    for k in range(8):
        log = random_log(rng, cores=machine.total_cores // 2)
        log = Workload(log.jobs.with_columns(single_node=single), name=log.name)
        objective = OBJECTIVES[k % len(OBJECTIVES)]
        result = escala.bound(log, machine, objective, limit_s=2.0, policies=rules, start_off=not single)
        assert result.found is not None and result.lower is not None and result.starts_s is not None
        assert result.lower <= result.found <= min(result.policies.values()) * (1 + 1e-12)
        shares = [result.headroom(rule, "fcfs") for rule in rules]
        assert all(share is None or share <= 1 + 1e-9 for share in shares)
        by.add(result.found_by)
        if result.found_by != "search":
            assert result.found_by in {*rules, *(f"{rule}, runtimes known" for rule in BEGIN_WITH)}
        elif single:  # the same starts on the platform itself
            run = escala.simulate(log, machine, Planned(np.round(result.starts_s * 1e6).astype(np.int64)))
            assert run.summary()[METRIC[objective]] == pytest.approx(result.found, rel=1e-12)
    assert len(by) > 1


def test_a_job_that_waits_for_its_node_to_boot_is_no_optimum_of_the_pool() -> None:
    one = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [10.0], "cores": [1]})
    off = escala.bound(one, "1x1:grid5000", "wait", start_off=True)
    assert (off.status, off.lower, off.found, off.found_by) == (
        "interval",
        0.0,
        off.policies["easy"],
        "easy",
    ) and off.found > 0.0
    on = escala.bound(one, "1x1:grid5000", "wait")
    assert (on.status, on.lower, on.found, on.found_by, on.gap) == ("optimal", 0.0, 0.0, "search", 0.0)
