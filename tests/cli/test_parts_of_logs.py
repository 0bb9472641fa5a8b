"""Filters and what no replay looks at, in every verb that reads a log; `--until` is a filter, `--stop-at` stops the
clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from escala.cli.app import app
from tests.cli.program import Escala
from tests.unit.workload.test_filters import SACCT

NAMES = ("--partition", "--user", "--account", "--since", "--until")
LOOKED = (
    "GPUs (1 job), memory (2 jobs), reservations (1 job); and what score files alone look at: 3 QOS (3 jobs); and what "
    "counts on a site that describes it, else score files alone look at it: 2 partitions (3 jobs)"
)
TOLD = f"the log has what no replay looks at: {LOOKED}"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    return path


def _commands(command: Any) -> list[Any]:
    names = command.list_commands(None) if hasattr(command, "list_commands") else []
    return [command] if not names else [found for name in names for found in _commands(command.get_command(None, name))]


def test_every_verb_that_reads_a_log_filters_it() -> None:
    readers = 0
    for command in _commands(typer.main.get_command(app)):
        flags = {flag for entry in command.params for flag in entry.opts}
        if "--no-request" in flags:
            readers += 1
            assert set(NAMES) <= flags, command.name
    assert readers == 15, (
        "demo, simulate, compare, calibrate, what-if, "
        "tune, predict, drift, frontier, bound, train, evaluate, render, describe, convert have them"
    )


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        (["simulate"], ["--platform", "1x4"]),
        (["compare"], ["--platform", "1x4", "--schedulers", "fcfs,easy"]),
        (["bound"], ["--platform", "1x4", "--limit", "1"]),
        (["workload", "describe"], []),
        (["workload", "convert"], ["--out", "part.swf"]),
    ],
)
def test_verbs(escala_: Escala, jobs: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str], more: list[str]) -> None:
    monkeypatch.chdir(jobs.parent)
    whole = escala_(*verb, jobs, *more, "--json")
    assert whole.status == 0 and whole.err == f"remark: {jobs}: {TOLD}\n", whole.err
    document = json.loads(whole.out)
    assert (document[0] if isinstance(document, list) else document)["ignored"]["GPUs"] == {"jobs": 1}
    more = [*more, "--force"] if verb[-1] == "convert" else more
    part = escala_(*verb, jobs, *more, "--user", "ann,cid", "--until", "2024-03-03", "--json")
    assert part.err == f"remark: {jobs}: filtered out: 2 records left out, as was asked for\n"
    wrong = escala_(*verb, jobs, *more, "--partition", "cpuu")
    assert (
        wrong.status == 2
        and wrong.err.startswith(f"error: {jobs}: no job of partition 'cpuu'")
        and wrong.err.count("\n") == 1
    )


def test_filters_of_the_site(escala_: Escala, jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(jobs.parent)
    Path("escala.toml").write_text('platform = "1x4"\npartition = "cpu"\nsince = "2024-03-02"\nstop-at = 1e6\n')
    done = escala_("simulate", jobs, "--out", "run")
    assert done.status == 0, done.err
    about = json.loads(Path("run/manifest.json").read_text())
    assert about["workload"]["jobs"] == 1 and about["options"]["until_s"] == 1e6
    assert (about["workload"]["read_as"]["partition"], about["workload"]["read_as"]["since"]) == (["cpu"], "2024-03-02")
    Path("escala.toml").write_text("until = 86400\n")
    old = escala_("simulate", jobs)
    assert old.status == 2 and old.err == "error: escala.toml: until: a text between quotes is needed, not 86400\n"


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_an_old_use_of_until_is_answered(escala_: Escala, log: Path, verb: str) -> None:
    """It stopped the clock; a number of seconds is a filter now, and what it once did is told."""
    outcome = escala_(verb, log, "--platform", "4x1", "--until", "20", "--json")
    assert outcome.status == 0
    assert outcome.err.splitlines()[0] == (
        "remark: --until 20 leaves out the jobs submitted from then on; to stop the replay's clock, as it once did: "
        "--stop-at 20"
    )
    stopped = escala_(verb, log, "--platform", "4x1", "--stop-at", "20", "--json")
    assert stopped.status == 0 and stopped.err == ""


def test_the_page_tells_what_no_replay_looks_at(escala_: Escala, jobs: Path) -> None:
    pytest.importorskip("matplotlib")
    out = jobs.parent / "run"
    assert escala_("compare", jobs, "--platform", "1x4", "--schedulers", "fcfs,easy", "--out", out).status == 0
    assert escala_("report", out).status == 0
    page = (out / "report.html").read_text()
    assert page.count(f"The log has what no replay looks at: {LOOKED}.") == 1


def test_partitions_of_a_site_are_not_among_what_nobody_looks_at(
    escala_: Escala, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(jobs.parent)
    node, part = '[[nodes]]\nnames = "n{}"\ncores = 4\n', '[[partitions]]\nname = "{}"\nnodes = "n{}"\n'
    names = sorted({line.split("|")[3] for line in SACCT.splitlines()[1:]})
    site = "".join(node.format(k) + part.format(name, k) for k, name in enumerate(names))
    Path("site.toml").write_text(f'name = "s"\n{site}')
    for more in ([], ["--stream"]):
        done = escala_("simulate", jobs, "--platform", "site.toml", "--out", f"run{len(more)}", *more)
        assert done.status == 0 and "the log has what" in done.err, done.err
        assert "else score files alone" not in done.err and "partitions (3 jobs)" not in done.err
    assert escala_("report", "run0").status == 0
    assert "partitions (3 jobs)" not in Path("run0/report.html").read_text()
