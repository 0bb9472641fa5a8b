"""A learnt scheduler behind a shield: what it chooses counts as long as a look-ahead by EASY does not find it much
worse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import escala
from escala.cli.app import run
from escala.envs.shield import Shielded, shielded
from escala.errors import EscalaError, EscalaWarning
from escala.kernel import codes
from escala.platform.site import Partition
from escala.policies import SCHEDULERS
from escala.unseen import POOL
from escala.workload import generate, write_swf

pytestmark = pytest.mark.learn


@pytest.fixture(scope="module")
def log() -> escala.Workload:
    return generate.lublin(jobs=250, cores=32, load=1.0, seed=4)


@pytest.fixture(scope="module")
def unlearnt(log: escala.Workload) -> escala.Agent:
    """An agent that acts at random, or nearly so, without a guard."""
    return escala.train("escala/Scheduling-v0", log, "32x1", preset="queue", steps=1, seed=3, guard_s=0.0)


def _slowdown(result: escala.Result) -> float:
    return float(result.summary()["mean_bounded_slowdown"])


def test_jobs_of_nodes_start_where_there_is_room_and_what_would_count_their_cores_refuses_them(
    log: escala.Workload, unlearnt: escala.Agent
) -> None:
    """Three jobs of 4 cores on one node each, on two nodes of 6: beside two of them 2 cores are free on either."""
    rows = [{"submit_s": 0.0, "runtime_s": 10.0, "walltime_s": 10.0, "cores": 4, "nodes": 1} for _ in range(3)]
    jobs = escala.Workload.from_jobs(rows)
    assert sorted(escala.simulate(jobs, "2x6", unlearnt.policy(seed=1)).jobs["start_s"])[-1] >= 10.0
    guarded = escala.train("escala/Scheduling-v0", log, "32x1", preset="queue", steps=1, seed=3, guard_s=3600.0)
    for policy, what in ((shielded(unlearnt, seed=1), "shield"), (guarded.policy(), "guard")):
        with pytest.raises(EscalaError, match=f"its {what} counts cores of any nodes, and jobs go by nodes"):
            escala.simulate(jobs, "2x6", policy)


def test_partitions_count_for_an_agent_alone_and_what_would_count_cores_takes_all_as_one_pool(
    log: escala.Workload, unlearnt: escala.Agent
) -> None:
    plain = escala.Platform.uniform(4, 8)
    parts = (Partition("a", (0, 1, 2), default=True), Partition("b", (3,)))
    site = escala.Site("two", plain.cores, plain.profiles, plain.profile_of, partitions=parts)
    jobs = log.head(40)
    jobs = jobs.with_jobs(jobs.jobs.with_columns(partition=pl.lit("b"), cores=pl.col("cores").clip(upper_bound=8)))
    assert set(escala.simulate(jobs, site, unlearnt.policy(seed=1)).jobs["nodes"]) == {"3"}
    with pytest.warns(EscalaWarning, match=POOL):
        behind = escala.simulate(jobs, site, shielded(unlearnt, seed=1))
    assert behind.jobs.equals(escala.simulate(jobs, plain, shielded(unlearnt, seed=1)).jobs)
    guarded = escala.train("escala/Scheduling-v0", log, "32x1", preset="queue", steps=1, seed=3, guard_s=3600.0)
    with pytest.warns(EscalaWarning, match=POOL):
        judged = escala.evaluate(guarded, [jobs], site, ["easy"], runs=1)
    assert judged.equals(escala.evaluate(guarded, [jobs], plain, ["easy"], runs=1)), "side by side, all on one pool"


def test_a_bad_agent_does_much_better_behind_it(log: escala.Workload, unlearnt: escala.Agent) -> None:
    alone = escala.simulate(log, "32x1", unlearnt.policy(seed=1))
    behind = escala.simulate(log, "32x1", shielded(unlearnt, seed=1))
    easy = escala.simulate(log, "32x1", "easy")
    assert _slowdown(easy) < 0.5 * _slowdown(alone), "it is bad"
    assert _slowdown(behind) < 0.6 * _slowdown(alone)
    assert _slowdown(behind) < 1.5 * _slowdown(easy)
    counts = behind.manifest["counts"]
    assert 0 < counts["overruled"] < counts["unlike"] < counts["choices"]
    first, again = (escala.simulate(log.head(60), "32x1", shielded(unlearnt, seed=1)) for _ in range(2))
    assert again.jobs.equals(first.jobs) and again.manifest["counts"] == first.manifest["counts"]


def test_a_margin_that_allows_all_changes_nothing(log: escala.Workload, unlearnt: escala.Agent) -> None:
    log = log.head(60)
    alone = escala.simulate(log, "32x1", unlearnt.policy(seed=1))
    free = escala.simulate(log, "32x1", shielded(unlearnt, seed=1, margin=1e300))
    assert free.manifest["counts"]["overruled"] == 0
    assert free.jobs["start_s"].equals(alone.jobs["start_s"])


def test_what_cannot_stand_behind_one_is_refused(unlearnt: escala.Agent) -> None:
    with pytest.raises(EscalaError, match="give a share of at least 0"):
        shielded(unlearnt, margin=-0.1)
    slotted = Path(__file__).parents[2] / "docs" / "studies" / "grid2019" / "agents" / "open-all-1"
    for agent in ("easy", escala.load_agent(slotted)):
        with pytest.raises(
            EscalaError, match="before agents of escala/Scheduling-v0 and escala/OffReservation-v0, before no others"
        ):
            shielded(agent)
    with pytest.raises(EscalaError, match="is a scheduler policy, given as shutdown"):
        escala.simulate(generate.lublin(jobs=5, cores=32), "32x1:taurus", "easy", shielded(unlearnt))


def test_by_the_command(
    log: escala.Workload, unlearnt: escala.Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unlearnt.save(tmp_path / "agent")
    write_swf(log.head(50), tmp_path / "log.swf")
    asked = ["compare", str(tmp_path / "log.swf"), "--platform", "32x1", "--schedulers"]
    name = f"shield:easy:agent:{tmp_path / 'agent'}"
    assert run([*asked, f"easy,{name}"]) == 0
    out = capsys.readouterr().out
    assert "shield:easy:agent:" in out and "unlike the base's" in out
    assert run(["simulate", str(tmp_path / "log.swf"), "--platform", "32x1", "--scheduler", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 0 < told["counts"]["overruled"] < told["counts"]["choices"]
    assert run(["simulate", str(tmp_path / "log.swf"), "--platform", "32x1", "--scheduler", name]) == 0
    assert f"{told['counts']['overruled']:,} overruled." in capsys.readouterr().out
    for wrong, why in (
        ("shield:hold-back:agent:x", "base 'hold-back' is none of its bases"),
        ("shield:conservative:agent:x", "base 'conservative' is none of its bases"),
        ("shield:easy:futurs=8:agent:x", "did you mean futures?"),
        ("shield:easy:margin=-1:agent:x", "margin is '-1': give a share of at least 0"),
        ("shield:easy:futures=8:futures=9:agent:x", "futures is given twice"),
        ("shield:easy:8:agent:x", "'8' is no option: write KEY=VALUE, as in shield:easy:futures=8"),
        ("shield:agent:x", "write shield:BASE[:KEY=VALUE...]:agent:DIR"),
        ("shield:easy", "write shield:BASE[:KEY=VALUE...]:agent:DIR"),
        ("shield:saf:agent:x", "x: "),
    ):
        assert run([*asked, wrong]) == 2
        told = capsys.readouterr().err
        assert why in told and told.count("\n") == 1, told


def _first(view: escala.View, base: str) -> int:
    """What a base would start first, by counts of cores, written down anew; -1: nothing."""
    scheduler = SCHEDULERS[base]
    queue = view.queue
    if scheduler.score is not None:
        columns = zip(*((job.submit_s, job.walltime_s, job.cores) for job in queue), strict=True)
        keys = scheduler.score(*(np.array(column) * unit for column, unit in zip(columns, (1e6, 1e6, 1), strict=True)))
        queue = [queue[k] for k in np.argsort(keys, kind="stable")]
    fitting = [job for job in queue if job.cores <= view.free_any]
    if scheduler.queueing == codes.GREEDY or fitting[:1] == queue[:1]:
        return fitting[0].row if fitting else codes.NONE
    if scheduler.queueing == codes.STRICT:
        return codes.NONE
    free = view.free_any
    for job in sorted(view.running, key=lambda job: job.planned_end_s):
        free += job.cores
        if free >= queue[0].cores:
            break
    late, spare = job.planned_end_s, free - queue[0].cores
    passing = [job.row for job in fitting if job.cores <= spare or view.now_s + job.walltime_s <= late]
    return passing[0] if passing else codes.NONE


@pytest.mark.parametrize("base", ["fcfs", "first-fit", "easy", "saf", "sjf-fit"])
def test_a_base_acts_as_its_rule_says(
    base: str, log: escala.Workload, unlearnt: escala.Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Overruled every second time, it starts what the rule would start at that moment."""
    found = list[bool]()

    def passes(self: Shielded, view: escala.View, row: int, other: int) -> bool:
        found.append(other == _first(view, base))
        return len(found) % 2 == 0

    monkeypatch.setattr(Shielded, "_passes", passes)
    behind = shielded(unlearnt, seed=1, base=base)
    escala.simulate(log.head(130), "32x1", behind)
    assert all(found) and len(found) > 100 and behind.name.startswith(f"shield:{base} of")


def test_settings_in_the_name_and_names_in_python_and_at_a_desk(
    log: escala.Workload, unlearnt: escala.Agent, tmp_path: Path
) -> None:
    unlearnt.save(tmp_path / "agent")
    log = log.head(60)
    name = f"shield:saf:futures=8:margin=0.02:agent:{tmp_path / 'agent'}"
    by_name = escala.simulate(log, "32x1", name)
    by_hand = escala.simulate(log, "32x1", shielded(unlearnt, sampled=False, base="saf", futures=8, margin=0.02))
    assert by_name.jobs["start_s"].equals(by_hand.jobs["start_s"])
    assert by_name.manifest["counts"] == by_hand.manifest["counts"]
    alone = escala.simulate(log, "32x1", f"agent:{tmp_path / 'agent'}")
    assert alone.jobs["start_s"].equals(escala.simulate(log, "32x1", unlearnt.policy()).jobs["start_s"])
    job = {"job_id": ["1"], "submit_s": [0.0], "walltime_s": [60.0], "cores": [4], "state": ["queued"]}
    for scheduler in (name, f"agent:{tmp_path / 'agent'}"):
        desk = escala.live.Desk("32x1", scheduler)
        orders = desk.decide(escala.live.Snapshot.of(0.0, job, {"power": ["on"] * 32}))
        assert desk.name == f"{scheduler} + never" and [one.job_id for one in orders.starts] == ["1"]
        assert ("choices" in desk.counts) == scheduler.startswith("shield:")
    shape = escala.live.Snapshot.of(1.0, job | {"nodes": [4]}, {"power": ["on"] * 32})
    with pytest.raises(EscalaError, match="its shield counts cores of any nodes, and jobs go by nodes"):
        escala.live.Desk("32x1", name).decide(shape)
    with pytest.raises(EscalaError, match="nowhere"):
        escala.live.Desk("32x1", f"agent:{tmp_path / 'nowhere'}")
