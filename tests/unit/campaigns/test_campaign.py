"""Campaigns: the figures are those of `simulate`, nothing is run twice, and a kill at any moment changes no table."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.campaigns import journal, work
from escala.campaigns.campaign import RUNS, SECONDS
from escala.campaigns.definition import Log, read_definition
from escala.campaigns.runs import runs_of
from escala.engines import pool
from escala.report.campaign import policies
from tests.cli.program import LOG
from tests.unit.campaigns.small import GENERATED, counted


def test_the_figures_are_those_of_single_runs(spec: dict[str, Any], tmp_path: Path) -> None:
    found = escala.campaign(spec, tmp_path / "out", "local:1")
    assert found.runs.select("scheduler", "shutdown", "seed").rows() == [
        ("easy", "never", None), ("easy", "timeout:0", None),
        ("random", "never", 0), ("random", "never", 1), ("random", "timeout:0", 0), ("random", "timeout:0", 1),
        *((s, d, seed) for s in ("easy", "random") for d in ("never", "timeout:0") for seed in (0, 1)),
    ]  # fmt: skip
    logs = {("small", seed): escala.read_workload(tmp_path / "small.swf") for seed in (None, 0, 1)}
    logs |= {
        ("lublin", seed): escala.workload.generate.lublin(jobs=60, cores=16, load=0.9, seed=seed) for seed in (0, 1)
    }
    for row in found.runs.to_dicts():
        log = logs[row["log"], row["seed"]]
        result = escala.simulate(
            log, "16x1:grid5000", row["scheduler"], row["shutdown"], seed=row["seed"] or 0, oversized="drop"
        )
        for name, value in result.summary().items():
            assert name not in row or row[name] == value, name
        wait, area = result.jobs["wait_s"].to_numpy(), (result.jobs["runtime_s"] * result.jobs["cores"]).to_numpy()
        assert row["p99_wait_s"] == np.percentile(wait, 99) and row["longest_wait_s"] == wait.max()
        assert row["area_weighted_wait_s"] == pytest.approx((wait * area).sum() / area.sum(), rel=1e-12)
        assert row["energy_j"] > 0 and row["error"] is None
    assert found.runs["energy_j"].n_unique() > 4
    assert found.runs.filter(log="lublin", scheduler="easy", shutdown="never")["mean_wait_s"].n_unique() == 2


def test_nothing_is_run_twice_also_when_the_definition_grows(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = counted(monkeypatch)
    first = escala.campaign(spec, tmp_path / "out", "local:1")
    assert (first.done, first.kept, first.failed, len(made)) == (14, 0, 0, 14)
    again = escala.campaign(spec, tmp_path / "out", "local:1")
    assert (again.done, again.kept, len(made)) == (0, 14, 14) and again.runs.equals(first.runs)
    copy = tmp_path / "copy.swf"
    copy.write_text(LOG)
    grown = escala.campaign(
        {**spec, "logs": [*spec["logs"], str(copy)], "schedulers": ["fcfs", "easy", "random"]},
        tmp_path / "out",
        "local:1",
    )
    assert [given[0] for given in made[14:]] == ["fcfs"] * 6, "the copy holds the same jobs: its runs are there"
    assert grown.runs.height == 28 and grown.kept == 14
    (tmp_path / "small.swf").write_text(LOG.replace(" 100 2 ", " 110 2 "))
    other = escala.campaign(spec, tmp_path / "out", "local:1")
    assert other.done == 6, "other jobs"


def test_the_date_at_which_a_log_begins_is_part_of_a_run(spec: dict[str, Any], tmp_path: Path) -> None:
    """Predictions by hour and weekday look at it."""
    for hour in (0, 12):
        (tmp_path / f"from-{hour}.swf").write_text(f"; UnixStartTime: {1_600_000_000 + 3600 * hour}\n{LOG}")
    asked = {**spec, "schedulers": ["easy"], "logs": [str(tmp_path / f"from-{hour}.swf") for hour in (0, 12)]}
    logs = [escala.read_workload(path) for path in asked["logs"]]
    assert logs[0].jobs.equals(logs[1].jobs) and logs[0].origin_s + 43_200 == logs[1].origin_s
    assert len({run.key for run in runs_of(read_definition(asked))}) == 4
    assert escala.campaign(asked, tmp_path / "out", "local:1").done == 4
    (tmp_path / "from-0.swf").write_text((tmp_path / "from-12.swf").read_text())
    again = escala.campaign(asked, tmp_path / "out", "local:1")
    assert (again.done, again.kept) == (0, 2), "both files are one log now"


def test_the_state_of_files_and_options_is_part_of_a_run(spec: dict[str, Any], tmp_path: Path) -> None:
    score = tmp_path / "score.toml"
    score.write_text('form = "linear"\n[weights]\nlog_wait = -1\n')
    asked = {**spec, "schedulers": [f"easy:queue=score:{score}"]}

    def keys(**more: Any) -> set[str]:
        return {run.key for run in runs_of(read_definition({**asked, **more}))}

    first = keys()
    assert (
        keys() == first
        and not first & keys(options={"head": "latest-released"})
        and not first & keys(platforms=["16x1:taurus"])
    )
    score.write_text('form = "linear"\n[weights]\nlog_wait = -2\n')
    assert not first & keys()


def test_two_processes_give_the_same_table(spec: dict[str, Any], tmp_path: Path) -> None:
    escala.campaign(spec, tmp_path / "one", "local:1")
    found = escala.campaign(spec, tmp_path / "two", "local:2")
    assert found.done == 14 and (tmp_path / "one" / RUNS).read_bytes() == (tmp_path / "two" / RUNS).read_bytes()


KILLED = """
import json, os, signal, sys
import escala
from escala.campaigns import journal
spec, out, at, torn = json.loads(sys.argv[1])
own, lines = journal.Journal.write, [0]
def write(self, line):
    if lines[0] == at:
        own(self, line[: len(line) // 2] if torn else b"")
        os.kill(os.getpid(), signal.SIGKILL)
    lines[0] += 1
    own(self, line)
journal.Journal.write = write
escala.campaign(spec, out, "local:1")
"""
"""A campaign that ends by SIGKILL at the at-th line of its journal, before it or in the middle of it."""


@pytest.mark.parametrize(
    "lines", [((0, True), (7, False), (14, True)), pytest.param(((1, False), (2, True)), marks=pytest.mark.long)]
)
def test_a_kill_at_any_line_changes_no_table(
    lines: Any, spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = counted(monkeypatch)
    escala.campaign(spec, tmp_path / "whole", "local:1")
    for at, torn in lines:
        out = tmp_path / f"killed-{at}"
        given = json.dumps([spec, str(out), at, torn])
        assert subprocess.run([sys.executable, "-c", KILLED, given], timeout=60).returncode == -signal.SIGKILL
        made.clear()
        found = escala.campaign(spec, out, "local:1")
        assert len(made) == found.done == 14 - max(0, at - 1), (
            "each line that was whole is a run that is not made again"
        )
        assert (out / RUNS).read_bytes() == (tmp_path / "whole" / RUNS).read_bytes()
        assert sorted(path.name for path in out.iterdir()) == ["runs.journal", "runs.parquet", "seconds.parquet"]
        assert escala.campaign(spec, out, "local:1").kept == 14, (
            "nothing of a line that was torn stands in the way of those behind it"
        )


def test_a_log_that_changes_during_a_campaign_gives_no_figures(spec: dict[str, Any], tmp_path: Path) -> None:
    runs = runs_of(read_definition(spec))
    (tmp_path / "small.swf").write_text(LOG.replace(" 100 2 ", " 111 2 "))
    work._logs.clear()
    assert {run.log.name for run in runs if "error" in work.work(run)} == {"small"}
    assert "log 'small' holds other jobs than when the campaign began" in work.work(runs[0])["error"]


@pytest.mark.long
def test_twenty_kills_at_random_moments_of_two_processes_change_no_table(spec: dict[str, Any], tmp_path: Path) -> None:
    """By the clock, of the process that a user kills; what it had kept is kept, and the next goes on."""
    asked = {**spec, "seeds": list(range(60))}
    whole, draw = escala.campaign(asked, tmp_path / "whole", "local:1"), random.Random(3)
    code = "import json, sys, escala; escala.campaign(*json.loads(sys.argv[1]), 'local:2')"

    def begun(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, json.dumps([asked, str(out)])])

    begin = time.monotonic()
    assert begun(tmp_path / "timed").wait(timeout=300) == 0
    length_s = time.monotonic() - begin
    kills, inside, folder = 0, 0, 0
    while kills < 20:
        out = tmp_path / f"out-{folder}"
        child, journal_of = begun(out), out / journal.FILE
        try:
            assert child.wait(timeout=draw.uniform(0.2, 1.0) * length_s) == 0
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(timeout=60)
            kills += 1
            lines = journal_of.read_bytes().count(b"\n") - 1 if journal_of.exists() else 0
            inside += 0 < lines < whole.done
            if lines <= 0:
                continue
        found = escala.campaign(asked, out, "local:2")
        assert (
            found.done + found.kept == whole.done
            and (out / RUNS).read_bytes() == (tmp_path / "whole" / RUNS).read_bytes()
        )
        folder += 1
    assert inside >= 3


def test_lines_that_were_changed_are_run_again(spec: dict[str, Any], tmp_path: Path) -> None:
    first = escala.campaign(spec, tmp_path / "out", "local:1")
    path = tmp_path / "out" / journal.FILE
    path.write_bytes(path.read_bytes().replace(b'"mean_wait_s": ', b'"mean_wait_s": 9', 1))
    again = escala.campaign(spec, tmp_path / "out", "local:1")
    assert again.done == 1 and again.runs.equals(first.runs)
    path.write_bytes(b"#" + path.read_bytes()[1:])  # its first line, which says what it is
    last = escala.campaign(spec, tmp_path / "out", "local:1")
    assert last.done == 0 and last.runs.equals(first.runs)


def test_a_failing_run_is_tried_twice_and_named(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = counted(monkeypatch)
    off = "off-reservation:16"
    asked = {**spec, "logs": spec["logs"][:1], "schedulers": ["easy", "fcfs"], "shutdowns": [off, "never"]}
    found = escala.campaign(asked, tmp_path / "out", "local:1")
    assert (found.done, found.failed, len([one for one in made if one[1] == off])) == (2, 2, 2 * 2)
    errors = found.runs.filter(pl.col("error").is_not_null())
    assert errors["shutdown"].to_list() == [off] * 2 and "keeps 16 of 16 nodes off" in errors["error"][0]
    assert errors["mean_wait_s"].null_count() == 2
    assert found.runs.filter(shutdown="never")["mean_wait_s"].null_count() == 0
    again = escala.campaign(asked, tmp_path / "out", "local:1")
    assert (again.done, again.kept, again.failed) == (0, 2, 2), "it is tried again, what went well is not"


def test_a_generated_log_is_known_by_its_settings(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is generated to know the runs, but for what is said of the log: its jobs of the first seed."""
    made: list[int] = []
    own = Log.load
    monkeypatch.setattr(Log, "load", lambda log, seed: made.append(seed) or own(log, seed))

    def keys(seeds: str = "5..8", **settings: Any) -> list[str]:
        asked = {**spec, "logs": [{**GENERATED, **settings}], "schedulers": ["easy"], "shutdowns": ["never"]}
        return [run.key for run in runs_of(read_definition({**asked, "seeds": seeds}))]

    first = keys()
    assert made == [5] and len(set(first)) == 4
    assert keys("7..8") == first[2:] and keys(name="other", kind="batch") == first, "a setting left out is its default"
    assert not set(first) & {*keys(jobs=61), *keys(load=0.8)}
    with monkeypatch.context() as then:
        then.setattr(np, "__version__", "1.0")
        assert not set(first) & set(keys())
        (run, *_) = runs_of(read_definition(spec | {"logs": [GENERATED]}))
    work._logs.clear()
    assert "is generated by another version of NumPy" in work.work(run)["error"]


class _Pool:
    """Processes of which one ends, with all that it was given, when a run of `bad` comes."""

    bad = "random"
    made = 0

    def __init__(self, n: int) -> None:
        self.broken = False

    def submit(self, job: Any, run: Any) -> Any:
        future: Any = pool.Future()
        self.broken = self.broken or run.scheduler == self.bad
        if self.broken:
            future.set_exception(pool.BrokenProcessPool("ended"))
        else:
            future.set_result({"found": run.key})
        return future

    def shutdown(self, **_: Any) -> None: ...


def test_a_run_that_ends_its_process_is_named_and_the_others_go_on(
    spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = runs_of(read_definition(spec))
    monkeypatch.setattr(pool, "_pool", _Pool)
    found = {run.key: told for run, told in pool.each(runs, 2, work.work)}
    assert len(found) == len(runs)
    assert {run.scheduler for run in runs if "error" in found[run.key]} == {"random"}
    assert all(found[run.key] == {"found": run.key} for run in runs if run.scheduler == "easy")
    bad = [run for run in runs if run.scheduler == "random"]
    with pytest.raises(escala.EscalaError, match="no process lives"):
        list(pool.each(bad, 2, work.work))


def test_seeds_as_a_range(spec: dict[str, Any]) -> None:
    assert read_definition({**spec, "seeds": "2..5"}).seeds == read_definition({**spec, "seeds": [2, 3, 4, 5]}).seeds


def test_an_option_that_changes_nothing_makes_one_run(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = counted(monkeypatch)
    asked = {**spec, "schedulers": ["fcfs", "easy", "conservative"], "shutdowns": ["never"], "logs": spec["logs"][:1]}
    asked["options"] = {"head": ["latest-released", "lowest-id"], "depth": ["none", 1]}
    found = escala.campaign(asked, tmp_path / "out", "local:1")
    assert found.runs.select("scheduler", "head", "depth").rows() == [
        ("fcfs", None, None),
        ("easy", "latest-released", None),
        ("easy", "lowest-id", None),
        ("conservative", None, None),
        ("conservative", None, 1),
    ]
    assert len(made) == found.runs["key"].n_unique() == 5
    plain = escala.campaign({**asked, "options": {}}, tmp_path / "out", "local:1")
    assert plain.done == 0, "the run with an empty option is the one without it"
    named = ["fcfs", "easy, head latest-released", "easy, head lowest-id"]
    assert policies(found)["policy"].to_list() == [*named, "conservative, depth none", "conservative, depth 1"]
    one = escala.campaign({**asked, "options": {"head": "latest-released"}}, tmp_path / "one", "local:1")
    assert policies(one)["policy"].to_list() == ["fcfs", "easy", "conservative"], "nothing to tell apart"


def test_options_become_columns(spec: dict[str, Any], tmp_path: Path) -> None:
    asked = {**spec, "logs": [GENERATED], "schedulers": ["conservative"], "shutdowns": ["never"], "seeds": [0]}
    asked["options"] = {"depth": ["none", 1], "estimate": "last2", "corrections_s": [60, 300]}
    found = escala.campaign(asked, tmp_path / "out", "local:1")
    assert found.options == ("depth", "estimate", "corrections_s") and found.runs["depth"].to_list() == [None, 1]
    assert [json.loads(text) for text in found.runs["corrections_s"]] == [[60.0, 300.0]] * 2
    assert SECONDS in {path.name for path in (tmp_path / "out").iterdir()}
