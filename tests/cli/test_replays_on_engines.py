"""Verbs that replay one log many times, on engines: the same for any, an engine that is none is one line, and what is
kept is gone on with."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.leaderboard.suite import jobs_digest
from escala.workload import generate
from tests.cli.program import Escala
from tests.cli.ray_stand_in import StandIn

WEEKS = "weeks.csv"
VERBS: dict[str, tuple[str, ...]] = {
    "compare": (
        *("--platform", "4x1:grid5000", "--schedulers", "easy,saf,random,rollout:2"),
        "--shutdowns",
        "never,timeout:60",
    ),
    "what-if": ("--platform", "4x1", "--nodes", "+1,+100%", "--schedulers", "easy,fcfs"),
    "frontier": (
        *("--platform", "8x1:grid5000", "--schedulers", "easy,sjf-fit", "--shutdowns", "never,timeout:60"),
        "--after",
        "60%",
    ),
    "tune": ("--platform", "8x1", "--predictors", "last2", "--searches", "1"),
}
LONG = ("frontier", "tune")
"""Verbs that need weeks."""


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five weeks of a congested machine of eight cores."""
    from tests.unit.tuning.test_tuning import CONGESTED, _log

    path = tmp_path_factory.mktemp("logs") / WEEKS
    _log(CONGESTED).jobs.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user", "queue").write_csv(
        path
    )
    return path


@pytest.fixture
def asked(log: Path, weeks: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """verb -> its command line."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return lambda verb: (verb, weeks if verb in LONG else log, *VERBS[verb])


def _files(folder: Path) -> dict[str, bytes]:
    """All that a verb wrote, without the times of the computer."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: data for name, data in found.items() if not name.endswith("manifest.json")}


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_written_is_the_same_on_any_engine(
    verb: str, asked: Any, escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", stand_in := StandIn())
    for on in ("local:1", "local:2", "ray"):
        done = escala_(*asked(verb), "--out", tmp_path / "out", "--on", on)
        assert done.status == 0, done.err
        (tmp_path / "out").rename(tmp_path / on)  # pages name the folder
    assert _files(tmp_path / "local:1") == _files(tmp_path / "local:2") == _files(tmp_path / "ray")
    assert (
        stand_in.tasks >= {"compare": 8, "what-if": 6, "frontier": 4, "tune": 40}[verb]
        and not stand_in.is_initialized()
    )


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_and_on_ray(verb: str, asked: Any, escala_: Escala, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    for on in ("local:1", "ray"):
        done = escala_(*asked(verb), "--out", tmp_path / "out", "--on", on)
        assert done.status == 0, done.err
        (tmp_path / "out").rename(tmp_path / on)
    assert _files(tmp_path / "local:1") == _files(tmp_path / "ray")


@pytest.mark.slow
def test_an_entry_of_a_leaderboard_is_the_same_on_ray(escala_: Escala, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    given = {"jobs": 2000, "cores": 16, "load": 0.8, "seed": 1}
    suite = tmp_path / "mine.toml"
    lines = ['name = "mine"', 'promise = "p99-wait<=1.05*easy"', 'objective = "wait"']
    for name, load in (("one", 0.8), ("other", 0.9)):
        digest = jobs_digest(generate.lublin(**{**given, "load": load}))
        lines += ["[[logs]]", f'name = "{name}"', 'generator = "lublin"', 'platform = "16x1"', f'sha256 = "{digest}"']
        lines += [f"{key} = {value}" for key, value in {**given, "load": load}.items()]
    suite.write_text("\n".join(lines))
    for on in ("local:1", "ray"):
        done = escala_("leaderboard", "run", "easy:queue=sjf", "--suite", suite, "--on", on, "--out", tmp_path / on)
        assert done.status == 0, done.err
    assert (tmp_path / "local:1" / "entry.json").read_bytes() == (tmp_path / "ray" / "entry.json").read_bytes()


@pytest.mark.parametrize("verb", VERBS)
def test_an_engine_that_is_none_is_one_line_before_the_log_is_read(verb: str, escala_: Escala, tmp_path: Path) -> None:
    for words, said in (
        (
            ("--on", "moon"),
            "unknown engine 'moon' (--on): give local, local:N for N processes, ray, ray:HOST:PORT, or slurm",
        ),
        (("--on", "local:0"), "engine 'local:0' (--on): give 1 to 1,024 processes"),
        (("--on", "slurm:short"), "engine slurm (--on): 'short' is no option: write KEY=VALUE"),
        (("--on", "local:2", "--jobs", "3"), "give one of the two; --jobs 3 is --on local:3"),
    ):
        done = escala_(verb, tmp_path / "missing.swf", *VERBS[verb], "--out", tmp_path / "out", *words)
        assert done.status == 2 and said in done.err and done.err.count("\n") == 1, done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", VERBS)
def test_an_address_that_does_not_answer_is_one_line(
    verb: str, asked: Any, escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", StandIn())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{free.getsockname()[1]}"
    done = escala_(*asked(verb), "--out", tmp_path / "out", "--on", f"ray:{closed}")
    assert (
        done.status == 2
        and f"no Ray cluster answers at {closed} (--on ray)" in done.err
        and done.err.count("error: ") == 1
    )
    assert not (tmp_path / "out").exists()


def test_an_interrupted_comparison_goes_on_on_another_engine(
    asked: Any, escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = escala_(*asked("compare"), "--out", tmp_path / "whole", "--on", "local:1")
    assert whole.status == 0, whole.err
    monkeypatch.setitem(sys.modules, "ray", StandIn(most=3))
    stopped = escala_(*asked("compare"), "--out", tmp_path / "out", "--on", "ray")
    assert stopped.status == 130 and "3 of 8 runs are kept beside" in stopped.err and not (tmp_path / "out").exists()
    resumed = escala_(*asked("compare"), "--out", tmp_path / "out", "--on", "local:2")
    assert resumed.status == 0 and "3 of 8 runs were kept" in resumed.err
    assert _files(tmp_path / "whole") == _files(tmp_path / "out")


def test_a_run_that_fails_elsewhere_names_its_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", StandIn())
    log = escala.workload.generate.lublin(cores=16, jobs=20, seed=1)

    def own(view: escala.View, act: escala.Commands) -> None:
        raise ZeroDivisionError("planted")

    with pytest.raises(escala.EscalaError, match=r"^own \+ never: .*planted"):
        escala.compare(log, "16x1", ["easy", own], on="ray")


def test_what_no_other_process_can_be_given_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", StandIn())
    log = escala.workload.generate.lublin(cores=16, jobs=20, seed=1)

    class Open:
        def __init__(self) -> None:
            self.line = socket.socket()

        def __deepcopy__(self, _: Any) -> Open:
            return self

        def decide(self, view: escala.View, act: escala.Commands) -> None: ...

    given = Open()
    with pytest.raises(escala.EscalaError, match=r"cannot be sent to another process \(--on ray\)") as told:
        escala.compare(log, "16x1", [given], on="ray")
    given.line.close()
    assert "\n" not in str(told.value)


def test_a_policy_of_ones_own_does_the_same_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", StandIn())
    log = escala.workload.generate.lublin(cores=16, jobs=60, seed=1)

    class Counting:
        decisions = 0

        def decide(self, view: escala.View, act: escala.Commands) -> None:
            self.decisions += 1
            for job in view.queue:
                act.start(job)

    given = Counting()
    here, there = (
        escala.compare(log, "16x1:grid5000", ["easy", given], ["never", "timeout:60"], on=on)
        for on in ("local:2", "ray")
    )
    assert given.decisions == 0 and list(here.results) == list(there.results)
    for name, result in here.results.items():
        other = there.results[name]
        for table in ("jobs", "nodes", "power", "allocations", "totals"):
            assert getattr(result, table).equals(getattr(other, table)), (name, table)
        assert json.dumps({**result.manifest, "elapsed_s": 0.0}) == json.dumps({**other.manifest, "elapsed_s": 0.0})
