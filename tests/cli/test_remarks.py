"""Nothing happens in silence: cleaning, invented limits and options without effect are told on stderr, and counted in
JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.program import LOG, Escala

FIRST = LOG.splitlines(keepends=True)[2]
BAD = {  # how the fields of a second job differ (numbers from 1) -> rule
    "nan": ({4: "nan"}, "no runtime"),
    "inf": ({4: "inf"}, "absurd runtime"),
    "1e300": ({4: "1e300"}, "absurd runtime"),
    "early": ({2: "-5"}, "no submission time"),
    "huge": ({5: "99999999999", 8: "-1"}, "absurd processors"),
}


def _log(folder: Path, changes: dict[int, str]) -> Path:
    fields = FIRST.split()
    fields[0] = "2"
    for number, value in changes.items():
        fields[number - 1] = value
    path = folder / "two.swf"
    path.write_text(FIRST + " ".join(fields) + "\n")
    return path


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("verb", ["simulate", "compare", "describe", "convert"])
def test_a_job_that_is_left_out_is_told(escala_: Escala, tmp_path: Path, verb: str, name: str) -> None:
    changes, rule = BAD[name]
    path = _log(tmp_path, changes)
    verbs: dict[str, list[Any]] = {
        "simulate": ["simulate", path, "--platform", "4x1"],
        "compare": ["compare", path, "--platform", "4x1", "--schedulers", "fcfs,easy"],
        "describe": ["workload", "describe", path],
        "convert": ["workload", "convert", path, "--out", tmp_path / "copy.swf"],
    }
    outcome = escala_(*verbs[verb], "--json")
    assert outcome.status == 0
    assert outcome.err == f"remark: {path}: {rule}: 1 record left out (first: job '2', line 2)\n"
    document = json.loads(outcome.out)
    for part in document if isinstance(document, list) else [document]:
        assert part["cleaning"] == {rule: 1}
    strict = escala_(*verbs[verb], "--strict", "--force") if verb == "convert" else escala_(*verbs[verb], "--strict")
    assert (
        strict.status == 2
        and strict.out == ""
        and re.fullmatch(rf"error: {path}: {rule}: .*job '2', line 2.*\n", strict.err)
    )


@pytest.mark.parametrize("verb", ["demo", "train"])
def test_learning_verbs_tell_it_too(escala_: Escala, tmp_path: Path, verb: str) -> None:
    """The log has no day with two jobs, so it is refused after it was read."""
    pytest.importorskip("stable_baselines3")
    path = _log(tmp_path, {4: "inf"})
    first = ["demo"] if verb == "demo" else ["train", "escala/OffReservation-v0"]
    outcome = escala_(*first, "--workload", path, "--platform", "4x1", "--out", tmp_path / "out")
    remark, error = outcome.err.splitlines()
    assert (
        outcome.status == 2
        and remark.startswith(f"remark: {path}: absurd runtime: 1 record")
        and error.startswith("error: ")
    )
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_log_as_it_is_needs_no_remark(escala_: Escala, log: Path) -> None:
    for more in ([], ["--strict"]):
        outcome = escala_("simulate", log, "--platform", "4x1", "--json", *more)
        assert (outcome.status, outcome.err) == (0, "")
        assert json.loads(outcome.out)["cleaning"] == {"over request": 1}


def test_what_policies_see_without_a_request_is_told(escala_: Escala, tmp_path: Path) -> None:
    path = _log(tmp_path, {9: "-1"})
    simulate = ["simulate", path, "--platform", "4x1", "--json"]
    plain = escala_(*simulate)
    assert "no request: 1 record without limit; policies see the actual runtime as walltime" in plain.err
    limited = escala_(*simulate, "--no-request", "60")
    assert "limited to 60.0 s" in limited.err
    assert (json.loads(plain.out)["n_killed"], json.loads(limited.out)["n_killed"]) == (0, 1), "job 2 runs 100 s"
    dropped = escala_(*simulate, "--no-request", "drop")
    assert json.loads(dropped.out)["n_jobs"] == 1 and "no request (dropped): 1 record left out" in dropped.err


@pytest.mark.parametrize(
    ("option", "change", "jobs", "longest"),
    [
        (["--zero-runtime", "5"], {4: "0"}, 2, 100.0),
        (["--zero-runtime", "drop"], {4: "0"}, 1, 100.0),
        (["--longest", "1e4"], {4: "20000"}, 1, 100.0),
        (["--longest", "1e5"], {4: "20000", 9: "30000"}, 2, 20000.0),
        (["--most-cores", "3"], {5: "4"}, 1, 100.0),
    ],
)
def test_rules_of_cleaning_are_options(
    escala_: Escala, tmp_path: Path, option: list[str], change: dict[int, str], jobs: int, longest: float
) -> None:
    outcome = escala_("workload", "describe", _log(tmp_path, change), "--json", *option)
    described = json.loads(outcome.out)
    assert described["jobs"] == jobs and described["quantiles"]["runtime_s"]["max"] == longest


@pytest.mark.parametrize(
    "wrong",
    [
        ["--no-request", "never"],
        ["--zero-runtime", "never"],
        ["--zero-runtime", "0"],
        ["--longest", "nan"],
        ["--longest", "1e300"],
    ],
)
def test_rules_that_are_none_are_refused(escala_: Escala, log: Path, wrong: list[str]) -> None:
    outcome = escala_("workload", "describe", log, *wrong)
    assert outcome.status == 2 and re.fullmatch(r"error: [^\n]+\n", outcome.err) and outcome.err.count("Error") == 0


UNUSED = {
    "--depth": (["--depth", "1"], ["easy", "fcfs", "first-fit", "easy-fast", "rollout:2"], ["conservative"]),
    "--rebuild": (["--rebuild"], ["easy", "fcfs"], ["conservative"]),
    "--head": (["--head", "latest-released"], ["fcfs", "conservative", "sjf-fit", "easy-fast"], ["easy", "saf"]),
    "--plan-margin": (["--plan-margin", "5"], ["fcfs", "first-fit"], ["easy", "easy-fast", "conservative"]),
}


@pytest.mark.parametrize("flag", UNUSED)
def test_an_option_without_effect_is_told(escala_: Escala, log: Path, flag: str) -> None:
    given, ignoring, looking = UNUSED[flag]
    for scheduler in ignoring:
        plain = escala_("simulate", log, "--platform", "4x1", "--scheduler", scheduler, "--json")
        outcome = escala_("simulate", log, "--platform", "4x1", "--scheduler", scheduler, "--json", *given)
        assert outcome.status == 0 and outcome.out == plain.out, "it has no effect indeed"
        assert (
            outcome.err.startswith(f"remark: {flag} changes nothing with {scheduler}: ")
            and outcome.err.count("\n") == 1
        )
    for scheduler in looking:
        assert escala_("simulate", log, "--platform", "4x1", "--scheduler", scheduler, *given).err == ""
    both = f"{ignoring[0]},{looking[0]}"
    assert escala_("compare", log, "--platform", "4x1", "--schedulers", both, *given).err == "", (
        "one of them looks at it"
    )


def test_easy_fast_is_the_one_of_its_family_without_a_rule_for_the_head(escala_: Escala, log: Path) -> None:
    given = ("--platform", "4x1", "--scheduler", "easy-fast", "--head", "latest-released")
    said = "remark: --head changes nothing with easy-fast: only the EASY family but easy-fast looks at it\n"
    assert escala_("simulate", log, *given).err == said


def test_shapes_that_a_scheduler_does_not_see_are_told(escala_: Escala, tmp_path: Path) -> None:
    jobs = {
        "submit_s": [0.0, 1.0],
        "runtime_s": [60.0, 60.0],
        "walltime_s": [90.0, 90.0],
        "cores": [2, 2],
        "nodes": [2, 1],
    }
    table = tmp_path / "jobs.parquet"
    pl.DataFrame({**jobs, "gpus_per_node": [None, None]}).write_parquet(table)  # a column of nothing is none
    outcome = escala_("compare", table, "--platform", "2x2", "--schedulers", "easy,easy-fast,conservative,first-fit")
    assert outcome.status == 0 and outcome.err == "", "nodes count under all of them"
    more = tmp_path / "more.parquet"
    pl.DataFrame({**jobs, "gpus_per_node": [1, None], "reservation": ["a", None]}).write_parquet(more)
    outcome = escala_("simulate", more, "--platform", "2x2", "--scheduler", "easy")
    assert outcome.err.splitlines() == [
        "remark: what jobs ask for by gpus_per_node does not count: the platform has no GPUs",
        "remark: what jobs ask for by reservation does not count: the scheduler slurm alone looks at it",
    ]
    named = tmp_path / "named.parquet"
    pl.DataFrame({**jobs, "excluded_nodes": [None, "n2"]}).write_parquet(named)
    outcome = escala_("simulate", named, "--platform", "2x2", "--scheduler", "easy")
    said = "remark: what jobs ask for by excluded_nodes does not count: the platform has no names of nodes\n"
    assert outcome.err == said
    site = tmp_path / "site.toml"
    site.write_text(
        'name = "two"\n[[nodes]]\nnames = "n[1-2]"\ncores = 2\n[[partitions]]\nname = "all"\nnodes = "ALL"\ndefault = '
        "true\n"
    )
    for columns, scheduler in ((table, "slurm"), (named, "easy")):
        outcome = escala_("simulate", columns, "--platform", site, "--scheduler", scheduler)
        assert outcome.status == 0 and "what jobs ask for" not in outcome.err


REPLAYING = {
    "simulate": ["--scheduler", "saf"],
    "compare": ["--schedulers", "easy,saf,sjf-fit"],
    "frontier": ["--schedulers", "easy,saf", "--shutdowns", "never,timeout:300"],
    "bound": ["--objective", "wait", "--schedulers", "easy", "--limit", "1"],
    "what-if": ["--nodes", "+1,+100%", "--schedulers", "easy,fcfs"],
    "calibrate": ["--scheduler", "easy"],
}


@pytest.mark.parametrize("verb", REPLAYING)
def test_every_verb_that_replays_says_once_what_it_does_not_look_at(escala_: Escala, tmp_path: Path, verb: str) -> None:
    jobs = {"submit_s": [60.0 * k for k in range(40)], "runtime_s": [600.0] * 40, "walltime_s": [900.0] * 40}
    more = {"cores": [2] * 40, "wait_s": [60.0] * 40, "memory_mb_per_node": [5] + [None] * 39}
    table = tmp_path / "jobs.parquet"
    pl.DataFrame(jobs | more).write_parquet(table)
    outcome = escala_(verb, table, "--platform", "2x2:grid5000", *REPLAYING[verb])
    said = "remark: what jobs ask for by memory_mb_per_node does not count: the platform counts no memory\n"
    assert outcome.err.count(said) == outcome.err.count("what jobs ask for") == 1, outcome.err


def test_bound_says_how_to_give_watts_where_there_are_none(escala_: Escala, log: Path) -> None:
    asked = ("bound", log, *REPLAYING["bound"], "--platform")
    assert "power: no profile, so no energy, money or CO2 is told; name a preset" in escala_(*asked, "4x1").out
    assert "power:" not in escala_(*asked, "4x1:grid5000").out, "no energy is in it"
    assert "did you mean wait? use" in escala_("bound", log, "--objective", "wiat", "--platform", "4x1").err


def test_lost_runs_are_told_beside_the_figures_that_leave_them_out(escala_: Escala, tmp_path: Path) -> None:
    """A, on all nodes, begins at about 1 s, and loses them to B of the higher tier at about 101 s: 100 s are gone."""
    (tmp_path / "site.toml").write_text(
        'name = "two"\n[[nodes]]\nnames = "n[1-4]"\ncores = 4\n'
        '[[partitions]]\nname = "low"\nnodes = "ALL"\n[[partitions]]\nname = "high"\nnodes = "ALL"\ntier = 2\n'
        '[slurm]\nSelectTypeParameters = "CR_CPU"\nPreemptType = "preempt/partition_prio"\nPreemptMode = "requeue"\n'
    )
    log = tmp_path / "jobs.csv"
    log.write_text("job_id,submit_s,runtime_s,walltime_s,cores,partition\nA,0,600,900,16,low\nB,100,120,300,8,high\n")
    told = r"slurm \+ never: 1 job lost nodes to other jobs or to outages; the lost runs lasted 1.7 min in all"
    for verb in (("simulate", "--scheduler"), ("compare", "--schedulers")):
        out = escala_(verb[0], log, "--platform", tmp_path / "site.toml", verb[1], "slurm").out
        assert re.search(told, " ".join(out.split())), out
        assert "lost nodes" not in escala_(verb[0], log, "--platform", tmp_path / "site.toml", verb[1], "easy").out
