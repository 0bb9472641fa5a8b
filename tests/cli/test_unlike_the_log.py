"""Verbs that advise say where their replays do not resemble the log: its own waits stand beside theirs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import escala
from escala.errors import EscalaWarning
from escala.report import campaign as campaign_page
from escala.report import frontier as page
from escala.workload import Workload
from tests.cli.program import Escala

BLIND = "What jobs ask for by memory_mb_per_node does not count"
WORDS = ("does not resemble the log", "resembles the log")


def _log(wait_s: float | None) -> Workload:
    """Five weeks of jobs on a machine of four cores, each of which waited so long."""
    days = [float(day) for day in range(35)]
    jobs = {
        "submit_s": [86400.0 * day + hour * 3600.0 for day in days for hour in (8.0, 8.1, 8.2, 14.0)],
        "runtime_s": [600.0, 1200.0, 300.0, 900.0] * len(days),
        "walltime_s": [3600.0] * (4 * len(days)),
        "cores": [2, 4, 1, 3] * len(days),
        "user": ["a", "b", "a", "c"] * len(days),
    }
    return Workload.from_jobs(jobs | ({} if wait_s is None else {"wait_s": [wait_s] * (4 * len(days))}))


@pytest.mark.parametrize(("wait_s", "unlike"), [(7200.0, True), (300.0, False), (None, False)])
def test_a_frontier_and_a_tuned_policy_say_so(wait_s: float | None, unlike: bool, tmp_path: Path) -> None:
    log = _log(wait_s)
    found = escala.frontier(log, "4x1:grid5000", ["easy", "sjf"], ["never"])
    assert any(word in text for text in page.sentences(found) for word in WORDS) == unlike
    assert (set(found.waits) == set(found.summaries)) == (wait_s is not None)
    page.write_page(found, tmp_path / "frontier.html", "a log", "watts")
    tuned = escala.tune(log, "4x1", predictors=(), searches=0, jobs=1)
    from escala.report import tuned as order

    assert any(word in text for text in order.sentences(tuned) for word in WORDS) == unlike
    order.write_page(tuned, tmp_path / "tuned.html")
    for name in ("frontier.html", "tuned.html"):
        assert any(word in (tmp_path / name).read_text() for word in WORDS) == unlike, name
    if wait_s is not None:
        assert tuned.recorded is not None and tuned.recorded["mean_recorded_s"] == pytest.approx(wait_s)
        assert tuned.recorded["mean_replayed_s"] == pytest.approx(tuned.later["easy"]["mean_wait_s"])
        assert "the log itself" in (tmp_path / "frontier.html").read_text()


def test_a_tuned_policy_and_a_what_if_say_what_their_replays_do_not_look_at() -> None:
    from escala.calibration import what_if
    from escala.report import tuned as order
    from escala.report import what_if as changed

    log = _log(None)
    log = log.with_jobs(log.jobs.with_columns(memory_mb_per_node=pl.lit(100)))
    with pytest.warns(EscalaWarning, match="memory_mb_per_node does not count"):
        tuned = escala.tune(log, "4x1", predictors=(), searches=0, jobs=1)
    with pytest.warns(EscalaWarning, match="memory_mb_per_node does not count"):
        found = what_if(log, "4x1", nodes=["+1"], schedulers=["easy"])
    for told in (order.sentences(tuned), changed.sentences(found)):
        assert sum(line.startswith(BLIND) for line in told) == 1


def test_the_verb_shows_both_waits(escala_: Escala, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    _log(7200.0).jobs.write_parquet(path)
    asked = ["frontier", path, "--platform", "4x1:grid5000", "--schedulers", "easy,sjf", "--shutdowns", "never"]
    done = escala_(*asked)
    assert done.status == 0, done.err
    assert (
        "the log itself" in done.out and WORDS[0] in done.out and "None of these replays resembles the log" in done.out
    )
    assert json.loads(escala_(*asked, "--json").out)["recorded_waits"]["easy + never"]["resembles"] is False


@pytest.mark.parametrize(("wait_s", "unlike"), [(7200.0, True), (300.0, False), (None, False)])
def test_a_campaign_names_the_logs_that_no_replay_resembles(wait_s: float | None, unlike: bool, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    _log(wait_s).jobs.write_parquet(path)
    plan = {"logs": [str(path)], "platforms": ["4x1"], "schedulers": ["easy", "fcfs"], "shutdowns": ["never"]}
    found = escala.campaign(plan, tmp_path / "out", "local:1")
    told = " ".join(campaign_page.sentences(found))
    assert ("No replay resembles the log by its mean wait: log on 4x1 (" in told) == unlike
    assert found.runs["recorded_wait_s"].to_list() == [wait_s, wait_s]
    campaign_page.write_page(found, tmp_path / "page.html")
    assert ("No replay resembles the log" in (tmp_path / "page.html").read_text()) == unlike


@pytest.mark.parametrize(("wait_s", "unlike"), [(7200.0, True), (300.0, False), (None, False)])
def test_a_replay_in_pieces_says_so_too(escala_: Escala, wait_s: float | None, unlike: bool, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    _log(wait_s).jobs.write_parquet(path)
    done = escala_("simulate", path, "--platform", "4x1", "--stream")
    assert done.status == 0 and ("in the log itself" in done.out) == (wait_s is not None), done.err
    assert (WORDS[0] in done.out) == unlike
    told = json.loads(escala_("simulate", path, "--platform", "4x1", "--stream", "--json").out)["recorded_waits"]
    whole = json.loads(escala_("simulate", path, "--platform", "4x1", "--json").out)["recorded_waits"]
    assert (told is None) == (whole is None) == (wait_s is None)
    if wait_s is not None:
        assert told == pytest.approx({name: whole[name] for name in told})
