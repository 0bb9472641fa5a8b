"""A policy that knows the future is marked in every table and page, an honest one in none; in files its name stays a
name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.cli.judged import judged_table
from escala.metrics import compare as comparing
from escala.report import write_report
from escala.report.marks import SIGNS, legend, shown
from escala.studies.lab.days import judge
from tests.cli.program import Escala

SPEC = "4x1:grid5000"
KNOWN = {"oracle": "runtimes", "oracle:0.2": "runtimes", "arrivals-known": "arrivals"}
SIGN = re.compile("[†‡]")
VERBS = ("simulate", "compare", "bound")


def _called(escala_: Escala, verb: str, log: Path, shutdown: str, *more: Any) -> str:
    chosen: dict[str, list[Any]] = {
        "simulate": ["--shutdown", shutdown],
        "compare": ["--schedulers", "easy", "--shutdowns", f"timeout:0,{shutdown}"],
        "bound": [
            "--schedulers",
            "easy",
            "--shutdowns",
            f"timeout:0,{shutdown}",
            "--objective",
            "waste",
            "--limit",
            "1",
        ],
    }
    outcome = escala_(verb, log, "--platform", SPEC, *chosen[verb], *more)
    assert outcome.status == 0, outcome.err
    return outcome.out


def _told(verb: str, told: Any, shutdown: str) -> Any:
    """What a JSON document says that "easy + shutdown" knows."""
    if verb == "simulate":
        return told["knows"]
    return (
        told["knows"][f"easy + {shutdown}"]
        if verb == "bound"
        else {row["policy"]: row["knows"] for row in told}[f"easy + {shutdown}"]
    )


@pytest.mark.parametrize("shutdown", KNOWN)
@pytest.mark.parametrize("verb", VERBS)
def test_tables_mark_every_clairvoyant_policy(escala_: Escala, log: Path, verb: str, shutdown: str) -> None:
    sign = SIGNS[KNOWN[shutdown]]
    out = _called(escala_, verb, log, shutdown)
    assert f"easy + {shutdown} {sign}" in out
    assert f"{sign} clairvoyant: knows {KNOWN[shutdown]}; no scheduler of a real machine does." in out
    assert f"easy + timeout:0 {sign}" not in out
    told = json.loads(_called(escala_, verb, log, shutdown, "--json"))
    assert _told(verb, told, shutdown) == KNOWN[shutdown]
    assert not SIGN.search(json.dumps(told, ensure_ascii=False)), "names in JSON can be given back"


@pytest.mark.parametrize("verb", VERBS)
def test_honest_policies_are_not_marked(escala_: Escala, log: Path, verb: str) -> None:
    out = _called(escala_, verb, log, "hold:0.25")
    assert not SIGN.search(out) and "clairvoyant: knows" not in out
    assert _told(verb, json.loads(_called(escala_, verb, log, "hold:0.25", "--json")), "hold:0.25") == ""


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_known_runtimes_mark_every_run(escala_: Escala, log: Path, verb: str) -> None:
    out = _called(escala_, verb, log, "timeout:9", "--estimate", "runtime")
    assert "easy + timeout:9 †" in out and "† clairvoyant: knows runtimes" in out
    assert (
        _told(
            verb, json.loads(_called(escala_, verb, log, "timeout:9", "--estimate", "runtime", "--json")), "timeout:9"
        )
        == "runtimes"
    )


def test_saved_runs_and_comparisons_say_so(escala_: Escala, log: Path, tmp_path: Path) -> None:
    _called(escala_, "compare", log, "oracle", "--out", tmp_path / "out")
    table = pl.read_csv(tmp_path / "out" / "table.csv")
    assert table.select("policy", "knows").rows() == [("easy + timeout:0", ""), ("easy + oracle", "runtimes")]
    folder = tmp_path / "out" / "easy + oracle"
    assert json.loads((folder / "manifest.json").read_text())["knows"] == "runtimes"
    loaded = escala.Result.load(folder)
    del loaded.manifest["knows"]  # of an earlier version
    assert loaded.knows == "runtimes"


def test_the_list_of_policies_marks_them(escala_: Escala) -> None:
    out = escala_("policies").out
    assert (
        "arrivals-known ‡" in out
        and "oracle †" in out
        and "clairvoyant: knows runtimes; ‡ clairvoyant: knows arrivals" in out
    )
    assert len(SIGN.findall(out)) == 4
    rows = json.loads(escala_("policies", "--json").out)["shutdowns"]
    assert {row["shutdown"]: row["knows"] for row in rows if row["knows"]} == {
        "arrivals-known": "arrivals",
        "oracle": "runtimes",
    }


def _rows(page: str) -> dict[str, set[str]]:
    """Policy -> the forms in which it begins a row of a table, or is an entry of a list."""
    cells = re.findall(r"<tr>\s*<td[^>]*>([^<]*)", page) + re.findall(r"<option value=\"\d+\">([^<]*)", page)
    found: dict[str, set[str]] = {}
    for cell in cells:
        found.setdefault(cell.rstrip(" †‡"), set()).add(cell.rstrip())
    return found


def _check_page(page: str, clairvoyant: dict[str, str], honest: set[str]) -> None:
    rows = _rows(page)
    for name, sign in clairvoyant.items():
        assert rows[name] == {f"{name} {sign}"}, "marked in every table"
    for name in honest:
        assert rows[name] == {name}
    marked = [table for table in re.findall(r"<table>.*?</table>", page, re.DOTALL) if SIGN.search(table)]
    assert marked and all(re.search("<caption>.*[†‡] clairvoyant: knows", table) for table in marked), (
        "a legend at each of them"
    )
    assert re.search('class="warnings".*[†‡] clairvoyant: knows', page, re.DOTALL)


def test_the_page_of_a_comparison_marks_them_everywhere(escala_: Escala, log: Path, tmp_path: Path) -> None:
    _called(
        escala_,
        "compare",
        log,
        "oracle,arrivals-known",
        "--start-off",
        "--headroom",
        "waste",
        "--limit",
        "1",
        "--out",
        tmp_path / "out",
    )
    assert escala_("report", tmp_path / "out").status == 0
    page = (tmp_path / "out" / "report.html").read_text()
    _check_page(page, {"easy + oracle": "†", "easy + arrivals-known": "‡"}, {"easy + timeout:0"})
    assert page.count("easy + oracle †") > len(re.findall(r"<td[^>]*>easy \+ oracle †", page)), "in figures too"


def test_headlines_name_what_can_be_had() -> None:
    """The clairvoyant policy is better in all; it is no answer to who needs least, unless there is no other."""
    from escala.report import verdict

    figures = {"n_jobs": 1, "mean_wait_s": 10.0, "energy_j": 100.0, "mean_bounded_slowdown": 2.0, "window_s": 1e6}
    better = {name: value / 2 if name != "window_s" else value for name, value in figures.items()}
    middle = figures | {"energy_j": 80.0}
    summaries = {"easy + never": figures, "easy + timeout:0": middle, "easy + oracle †": better}
    told = " ".join(verdict.answers(summaries, "easy + never"))
    assert "Least energy: easy + timeout:0" in told and "oracle" not in told
    assert [card.who for card in verdict.cards(summaries, reference="easy + never", metrics=["energy_j"])] == [
        "easy + timeout:0"
    ]
    marked = {"easy + never †": figures, "easy + oracle †": better}
    assert "Least energy: easy + oracle †" in " ".join(verdict.answers(marked, "easy + never †"))
    rows = [
        {"policy": name, "episode": day, "energy_j": s["energy_j"]} for name, s in summaries.items() for day in range(3)
    ]
    found = comparing.episodes(pl.DataFrame(rows), ["energy_j"], reference="easy + never")
    assert [card.who for card in verdict.held_out_cards(found)] == ["easy + timeout:0"]


def test_the_best_beyond_chance_can_be_had() -> None:
    from escala.report import verdict

    figures = {"timeout:0": (10.0, 10.0), "oracle †": (5.0, 5.0), "hold": (8.0, 20.0)}
    rows = [
        {"policy": p, "episode": day, "energy_j": e, "mean_wait_s": w}
        for p, (e, w) in figures.items()
        for day in range(10)
    ]
    found = comparing.episodes(pl.DataFrame(rows), ["energy_j", "mean_wait_s"], reference="timeout:0")
    said, price = verdict.held_out(found)
    assert "better under oracle †" in said
    assert price == "hold, the best in energy, is worse in mean wait (+100\u202f%)."
    without = found.filter(pl.col("policy") != "hold")
    assert verdict.held_out(without)[1:] == ["No honest policy is better in energy beyond chance."]


def test_the_answer_names_the_wait_of_the_log() -> None:
    from escala.report import verdict

    figures = {"n_jobs": 1, "mean_wait_s": 0.0, "window_s": 1e6}
    assert "waited 30" in verdict.answers({"easy + never": figures}, "easy + never", 1800.0)[0]
    assert "log" not in verdict.answers({"easy + never": figures}, "easy + never")[0]


def test_an_object_of_ones_own_is_marked(log: Path, tmp_path: Path) -> None:
    class Mine:
        clairvoyant = True
        name = "mine"

        def decide(self, view: Any, act: Any) -> None:
            for job in view.queue:
                act.start(job)

    compared = escala.compare(log, SPEC, schedulers=["easy", Mine()], shutdowns=["never"])
    assert compared.table().select("policy", "knows").rows() == [("easy + never", ""), ("mine + never", "runtimes")]
    _check_page(
        write_report(tmp_path, compared.results, title="x").read_text(), {"mine + never": "†"}, {"easy + never"}
    )


DAYS = [{"submit_s": [0.0, 60.0], "runtime_s": [100.0, 900.0], "walltime_s": [1000.0, 1000.0], "cores": [3, 2]}] * 3


@pytest.fixture(scope="module")
def judged() -> pl.DataFrame:
    """Days judged under an honest policy and two that are not; one of them under a name that does not tell."""
    days = [escala.Workload.from_jobs(day) for day in DAYS]
    policies = {"never": ("saf", "never"), "oracle": ("saf", "oracle"), "other": ("saf", "arrivals-known")}
    return judge(days, escala.read_platform(SPEC), policies)


def test_judged_days_are_marked(judged: pl.DataFrame, tmp_path: Path) -> None:
    found = comparing.episodes(judged, ["energy_j", "mean_wait_s"], reference="oracle")
    assert dict(found.select("policy", "knows").rows()) == {"never": "", "oracle": "runtimes", "other": "arrivals"}
    table, line = judged_table(found)
    assert list(table.columns[0].cells) == ["never", "oracle †", "other ‡"]  # type: ignore[union-attr]
    assert any("oracle †" in str(column.header) for column in table.columns), "the reference in a heading"  # type: ignore[union-attr]
    assert line == legend({"a": "runtimes", "b": "arrivals"})
    page = write_report(tmp_path, {}, title="x", comparison=found).read_text()
    _check_page(page, {"oracle": "†", "other": "‡"}, {"never"})


def test_judged_days_of_earlier_versions_are_marked_by_their_names(judged: pl.DataFrame, tmp_path: Path) -> None:
    found = comparing.episodes(judged.drop("knows"), ["energy_j"], reference="never")
    assert "knows" not in found.columns
    _check_page(
        write_report(tmp_path, {}, title="x", comparison=found).read_text(), {"oracle": "†"}, {"never", "other"}
    )


def test_the_evaluation_of_an_agent_says_what_policies_know() -> None:
    from escala.agents.evaluate import evaluate

    class Agent:
        env_id, env_options = "escala/OffReservation-v0", {"window": "drain"}

        def policy(self, **_: Any) -> Any:
            return lambda view, act: None

    days = [escala.Workload.from_jobs(day) for day in DAYS]
    played = evaluate(Agent(), days, SPEC, ["timeout:0", "oracle"], runs=1)  # type: ignore[arg-type]
    known = dict(played.select("policy", "knows").rows())
    assert known == {"timeout:0": "", "oracle": "runtimes", "agent": "", "agent (argmax)": ""}


def test_studies_say_so(tmp_path: Path) -> None:
    from escala.report.study_page import sections_of
    from escala.studies.lab.claims import write_table

    write_table(tmp_path, "honest", pl.DataFrame({"policy": ["hold:0.25"], "x": [1]}))
    write_table(tmp_path, "both", pl.DataFrame({"policy": ["never", "oracle", "arrivals-known"], "x": [1, 2, 3]}))
    assert pl.read_csv(tmp_path / "tables" / "honest.csv").columns == ["policy", "x"]
    assert pl.read_csv(tmp_path / "tables" / "both.csv")["knows"].to_list() == ["", "runtimes", "arrivals"]
    assert "Clairvoyant: oracle knows runtimes; arrivals-known knows arrivals." in sections_of(tmp_path, [], [])[0].text


def test_signs_of_what_is_known() -> None:
    assert shown("x", {"x": "arrivals and runtimes"}) == "x †‡" and shown("x", {"x": ""}) == "x" == shown("x", {})
    assert legend({"x": ""}) == ""


def test_what_is_judged_by_a_log_is_marked_too(escala_: Escala, tmp_path: Path) -> None:
    """what-if, calibrate and drift: in what they print and on their pages, and an honest scheduler beside is not."""
    rows = [f"{600 * k},{60 + 7 * (k % 9)},{60 + 7 * (k % 9)},{1 + k % 3},u,{k % 5}" for k in range(9000)]
    log, known, legend_ = tmp_path / "log.csv", "easy:estimate=runtime", "† clairvoyant: knows runtimes"
    log.write_text("submit_s,runtime_s,walltime_s,cores,user,wait_s\n" + "\n".join(rows) + "\n")
    asked = {
        "what-if": ["--nodes", "+1", "--schedulers", f"{known},fcfs"],
        "calibrate": ["--scheduler", known],
        "drift": ["--scheduler", known],
    }
    for verb, more in asked.items():
        out = tmp_path / verb
        folder = [] if verb == "drift" else ["--out", out]
        done = escala_(verb, log, "--platform", "4x1", *more, *folder)
        assert done.status == 0, done.err
        assert legend_ in done.out and "fcfs †" not in done.out, verb
        if folder:
            page = (out / "report.html").read_text()
            assert legend_ in page and f"{known} †" in page and "fcfs †" not in page, verb
        assert not SIGN.search(escala_(verb, log, "--platform", "4x1", *more, "--json").out), verb
    told = escala_("what-if", log, "--platform", "4x1", "--nodes", "+1", "--schedulers", "easy,fcfs")
    assert told.status == 0 and not SIGN.search(told.out)
