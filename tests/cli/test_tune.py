"""The verb tune: what it prints and writes, and that other verbs take the policy that it leaves in a folder."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.tuning import replays
from tests.cli.program import Escala

MACHINE = ("--platform", "8x1")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five weeks of a congested machine of eight cores, as SWF."""
    from tests.unit.tuning.test_tuning import CONGESTED, _log

    path = tmp_path_factory.mktemp("tune") / "weeks.csv"
    _log(CONGESTED).jobs.select("job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user", "queue").write_csv(
        path
    )
    return path


def test_tune_writes_a_policy_that_other_verbs_take(escala_: Escala, log: Path, tmp_path: Path) -> None:
    out, today = tmp_path / "policy", tmp_path / "today.toml"
    today.write_text('form = "multifactor"\nmax_age_s = 86400\n[weights]\nage = 10\nfair_share = 5\n', encoding="utf-8")
    told = escala_("tune", log, *MACHINE, "--present", today, "--out", out, "--json")
    assert told.status == 0, told.err
    found = json.loads(told.out)
    mine = f"easy:queue=score:{today}"
    assert set(found["later"]) == {"policy", "easy", "easy-sjf", mine, found["chosen"]}
    assert set(found["ratio"]) == {"easy", "easy-sjf", mine, "rule"}
    assert set(found["ratio"]["easy"]) >= {"bounded_slowdown", "wait"} and len(found["ratio"]["easy"]["wait"]) == 3
    assert sorted(path.name for path in out.iterdir()) == [
        "manifest.json",
        "policy.toml",
        "report.html",
        "rules.csv",
        "tuned.json",
    ]
    written = tomllib.loads((out / "policy.toml").read_text())
    name = written["formula"] + (f":guard={written['guard']}" if "guard" in written else "")
    assert name == found["chosen"] and written["log"]["sha256"] == escala.read_workload(log).digest()
    own = escala_("simulate", log, *MACHINE, "--scheduler", f"policy:{out}", "--json")
    same = escala_("simulate", log, *MACHINE, "--scheduler", found["chosen"], "--json")
    assert own.status == same.status == 0 and _timeless(own.out) == _timeless(same.out)
    both = escala_("compare", log, *MACHINE, "--schedulers", f"easy,policy:{out}", "--json")
    assert both.status == 0 and len(json.loads(both.out)) == 2
    again = escala_("tune", log, *MACHINE, "--out", out)
    assert again.status == 0 and "95 % interval" in again.out and "Who pays" in again.out
    page = (out / "report.html").read_text()
    assert "95 % interval" in page and "Who pays" in page and "power" not in again.out.lower()


def test_compare_has_the_later_weeks_of_tune(escala_: Escala, log: Path, tmp_path: Path) -> None:
    """Any schedulers beside one another on the weeks after the split: figures and intervals are those of tune."""
    tuned = json.loads(escala_("tune", log, *MACHINE, "--out", tmp_path / "policy", "--json").out)
    verb = ("compare", log, *MACHINE, "--schedulers", f"easy,policy:{tmp_path / 'policy'}", "--after", "60%")
    easy, mine = (row["later"] for row in json.loads(escala_(*verb, "--json", "--out", tmp_path / "both").out))
    figures = tuned["later"]["policy"]
    assert {name: mine[name] for name in figures} == figures and mine["ratio"] == tuned["ratio"]["easy"]
    assert {name: easy[name] for name in figures} == tuned["later"]["easy"] and "ratio" not in easy
    assert mine["weeks"] == tuned["about"]["split"]["later_weeks"]
    assert json.loads((tmp_path / "both" / "later_weeks.json").read_text())["weeks"] == mine["weeks"]
    value, low, high = mine["ratio"]["bounded_slowdown"]
    shown = escala_(*verb).out
    assert f"{value:.2f} [{low:.2f}, {high:.2f}]" in shown and "intervals over" in shown
    assert (f"rest on {mine['weeks']} weeks only" in " ".join(shown.split())) == (mine["weeks"] < 8)
    alone = escala_("compare", log, *MACHINE, "--schedulers", "easy", "--estimate", "runtime", "--after", "60%").out
    assert alone.count("easy + never †") == 2 and "Ratios to" not in alone


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--after", "97%"), "less than a week before or after"),
        (("--after", "60%", "--stop-at", "1000000"), "later weeks are of whole replays: leave --stop-at"),
    ],
)
def test_later_weeks_that_are_none_are_one_line(
    more: tuple[str, ...], why: str, escala_: Escala, log: Path, tmp_path: Path
) -> None:
    told = escala_("compare", log, *MACHINE, "--out", tmp_path / "out", *more)
    assert told.status == 2 and told.out == "" and why in told.err.splitlines()[-1] and not (tmp_path / "out").exists()


def _timeless(text: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(text).items() if name != "elapsed_s"}


def test_an_interrupted_run_goes_on(
    escala_: Escala, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = escala_("tune", log, *MACHINE, "--out", tmp_path / "whole", "--json")
    begun: list[Any] = []
    simulate = replays.simulate

    def counted(log_: Any, machine: Any, scheduler: Any, **options: Any) -> Any:
        begun.append(scheduler)
        if len(begun) == 4:
            raise KeyboardInterrupt
        return simulate(log_, machine, scheduler, **options)

    with monkeypatch.context() as patch:
        patch.setattr(replays, "simulate", counted)
        stopped = escala_("tune", log, *MACHINE, "--out", tmp_path / "out", "--jobs", "1")
    assert stopped.status == 130 and "pieces: 3" in stopped.err and not (tmp_path / "out").exists()
    first, begun[:] = begun[:3], [None] * 10
    monkeypatch.setattr(replays, "simulate", counted)
    resumed = escala_("tune", log, *MACHINE, "--out", tmp_path / "out", "--jobs", "1", "--json")
    assert resumed.status == 0 and resumed.out == whole.out and "pieces kept from an interrupted run: 3" in resumed.err
    assert not set(first) & set(begun[10 : 10 + len(json.loads(whole.out)["later"])])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--objective", "speed"), "unknown objective 'speed'"),
        (("--promise", "p99<=1*easy"), "'p99' is no figure"),
        (("--promise", "p99-wait<=0.001*easy"), "no rule of"),
        (("--after", "3 weeks"), "--after"),
        (("--present", "eazy"), "unknown scheduler 'eazy'"),
        (("--present", "none.toml"), "none.toml: no such file"),
        (("--power", "grid5000"), "escala frontier LOG --power chooses both together"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    options: tuple[str, ...], why: str, escala_: Escala, log: Path, tmp_path: Path
) -> None:
    told = escala_("tune", log, *MACHINE, "--out", tmp_path / "out", *options)
    assert told.status == 2 and told.out == "" and why in told.err.splitlines()[-1] and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "no such file: policy:DIR is a folder that escala tune wrote"),
        ("format = 1\nformula = ", "not valid TOML"),
        ('format = 2\nformula = "easy"', "format 2 is not 1"),
        ("format = 1", "a formula is needed as a text"),
        ('format = 1\nformula = "easy"\nguard = 5', "guard = 5: a text is needed"),
        ('format = 1\nformula = "easy"\nestimate = "last3"', "option estimate='last3' is not known"),
        ('format = 1\nformula = "eazy"', "unknown scheduler 'eazy'"),
        ('format = 1\nformula = "policy:."', "is a folder"),
    ],
)
def test_a_folder_that_holds_no_policy_is_one_line(
    text: str | None, why: str, escala_: Escala, log: Path, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "policy.toml").write_text(text)
    told = escala_("simulate", log, *MACHINE, "--scheduler", f"policy:{tmp_path}")
    assert told.status == 2 and told.out == "" and why in told.err.splitlines()[-1]


def test_an_edited_estimate_is_what_runs(escala_: Escala, log: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(
        'format = 1\nformula = "easy:queue=sjf"\nguard = "24h"\norder_estimate = "last2"\n'
    )
    mine = escala_("simulate", log, *MACHINE, "--scheduler", f"policy:{tmp_path}", "--json")
    name = "easy:queue=sjf:guard=24h:order_estimate=last2"
    assert _timeless(mine.out) == _timeless(escala_("simulate", log, *MACHINE, "--scheduler", name, "--json").out)
    nobody = tmp_path / "nobody.csv"
    pl.read_csv(log).drop("user").write_csv(nobody)
    told = escala_("simulate", nobody, *MACHINE, "--scheduler", f"policy:{tmp_path}")
    assert told.status == 0 and "remark: the log names no users: last2 is the requested time of every job" in told.err


def test_an_edited_formula_is_what_runs(escala_: Escala, log: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('format = 1\nformula = "fcfs"\n')
    mine = escala_("simulate", log, *MACHINE, "--scheduler", f"policy:{tmp_path}", "--json")
    assert _timeless(mine.out) == _timeless(escala_("simulate", log, *MACHINE, "--scheduler", "fcfs", "--json").out)


@pytest.fixture(scope="module")
def logs(log: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """That log, and the same jobs at half the pace on a machine of another shape."""
    slower = tmp_path_factory.mktemp("slower") / "slower.csv"
    pl.read_csv(log).with_columns(submit_s=1.5 * pl.col("submit_s")).write_csv(slower)
    return log, slower


def test_several_logs_get_one_policy_and_each_is_shown(
    escala_: Escala, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "policy"
    told = escala_("tune", *logs, "--platform", "8x1,4x2", "--out", out)
    assert told.status == 0, told.err
    lines = [line.split() for line in told.out.splitlines()]
    assert {line[0]: line[1] for line in lines if line and line[0] in ("weeks", "slower")} == {
        "weeks": "8x1",
        "slower": "4x2",
    }
    assert "of 2 logs (geometric mean)" in told.out and "of 2 logs." in told.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(
        f"{name}: {part}" in page for name in ("weeks", "slower") for part in ("Waits on the later weeks", "Who pays")
    )
    found = json.loads(escala_("tune", *logs, "--platform", "8x1,4x2", "--out", out, "--json").out)
    assert [one["about"]["workload"]["name"] for one in found["logs"]] == ["weeks", "slower"]
    assert all("cleaning" in one and one["chosen"] == found["chosen"] for one in found["logs"])
    own = escala_("simulate", logs[1], "--platform", "4x2", "--scheduler", f"policy:{out}", "--json")
    assert own.status == 0 and _timeless(own.out) == _timeless(
        escala_("simulate", logs[1], "--platform", "4x2", "--scheduler", found["chosen"], "--json").out
    )


def test_an_interrupted_run_on_several_logs_goes_on(
    escala_: Escala, logs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped within the second log: the same rule on another log is another piece."""
    whole = escala_("tune", *logs, *MACHINE, "--out", tmp_path / "whole", "--json")
    simulate, begun = replays.simulate, list[Any]()

    def counted(log_: Any, machine: Any, scheduler: Any, **options: Any) -> Any:
        begun.append((len(log_), scheduler))
        if len(begun) == 60:
            raise KeyboardInterrupt
        return simulate(log_, machine, scheduler, **options)

    monkeypatch.setattr(replays, "simulate", counted)
    stopped = escala_("tune", *logs, *MACHINE, "--out", tmp_path / "out", "--jobs", "1")
    assert stopped.status == 130 and "pieces: 59" in stopped.err and not (tmp_path / "out").exists()
    resumed = escala_("tune", *logs, *MACHINE, "--out", tmp_path / "out", "--jobs", "1", "--json")
    assert resumed.status == 0 and resumed.out == whole.out and "pieces kept from an interrupted run: 59" in resumed.err


@pytest.mark.parametrize(
    ("platform", "twice", "why"),
    [
        ("8x1,8x1,8x1", False, "3 platforms for 2 logs"),
        ("8x1,none", False, "unknown platform 'none'"),
        ("8x1", True, "a log is named twice"),
    ],
)
def test_bad_input_of_several_logs_is_one_line(
    platform: str, twice: bool, why: str, escala_: Escala, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    told = escala_("tune", logs[0], logs[0] if twice else logs[1], "--platform", platform, "--out", tmp_path / "out")
    assert told.status == 2 and told.out == "" and why in told.err.splitlines()[-1] and not (tmp_path / "out").exists()
