"""The page: one file that loads nothing, says the result first, hides nothing, and is whole or absent."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic import Run, run

from escala.errors import EscalaError
from escala.report import Section, Training, render, write_report
from escala.report.plots import frontier

VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """Tags that do not close, addresses, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.titles: list[str] = []
        self.text = ""
        self.tags: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "action", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            return
        self.text += data
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


def test_everything_in_order(runs: dict[str, Run], comparison: pl.DataFrame) -> None:
    points = pl.DataFrame({"step": [0, 1000], "value": [-3.0, -1.0]})
    figure = frontier({n: r.summary() for n, r in runs.items()})
    extra = Section("About the log", "Plain text.", [(pl.DataFrame({"jobs": [3]}), "a caption")], [(figure, "again")])
    page = Page(
        render(
            runs,
            title="Orion",
            notes=["First note.", "Second."],
            comparison=comparison,
            training=Training(points),
            sections=[extra],
        )
    )
    assert page.titles == [
        "Comparison over episodes", "About the log", "Metrics", "Energy", "Load over time", "Power over time",
        "How waits and slowdowns are distributed", "For the operator: energy, waits, and a year", "Learning curve",
        "Every job on every node", "What the figures mean", "How to run it again",
    ]  # fmt: skip
    assert (
        page.text.index("Second.")
        < page.text.index("Energy waste against never")
        < page.text.index("Comparison over episodes")
    )
    assert page.tags.count("svg") == 8


@pytest.fixture(scope="module")
def html(runs: dict[str, Run]) -> str:
    return render(runs, title="t")


def test_loads_nothing(html: str) -> None:
    page = Page(html)
    assert all(a.startswith("#") for a in page.addresses)
    assert "default-src 'none'" in html
    assert "@import" not in html and "url(http" not in html and "fetch(" not in html
    outside = [
        line for line in html.splitlines() if "http" in line and "http-equiv" not in line and "www.w3.org" not in line
    ]
    assert outside == []


def test_names_are_text_not_markup() -> None:
    bad = "<script>alert('x')</script></script><!--"
    one = run(3)
    one.jobs = one.jobs.with_columns(job_id=pl.lit(bad) + pl.col("job_id"), user=pl.lit(bad))
    one.manifest = {"note": bad}
    html = render(
        {bad: one, "other": run(3)},
        title=bad,
        notes=bad,
        sections=[Section(bad, bad, [(pl.DataFrame({bad: [bad]}), bad)])],
    )
    page = Page(html)
    assert "<script>alert" not in html
    assert page.text.count(bad) >= 8
    assert page.tags.count("script") == 2  # the charts' data and gantt.js


@pytest.mark.parametrize("n_jobs", [0, 1])
def test_tiny_runs(n_jobs: int) -> None:
    one = run(n_jobs)
    assert "Metrics" in Page(render({"a": one}, title="t")).titles
    assert "Metrics" in Page(render({"a": one, "b": one}, title="t")).titles


def test_a_cut_run_says_so_before_the_figures() -> None:
    whole, cut = run(20), run(20)
    last = pl.col("job_id") == "job-19"
    cut.jobs = cut.jobs.with_columns(
        state=pl.when(last).then(pl.lit("RUNNING")).otherwise("state"),
        finish_s=pl.when(last).then(None).otherwise("finish_s"),
        runtime_s=pl.when(last).then(None).otherwise("runtime_s"),
    )
    text = Page(render({"whole": whole, "cut": cut}, title="t")).text
    assert text.index("cut: 1 of 20 jobs unfinished") < text.index("Metrics")


def test_other_jobs_are_refused() -> None:
    with pytest.raises(EscalaError, match="a ran 3 jobs and b 4"):
        render({"a": run(3), "b": run(4)}, title="t")


def test_nothing_is_refused() -> None:
    with pytest.raises(EscalaError, match="nothing to report"):
        render({}, title="t")
    with pytest.raises(EscalaError, match="reference 'x' is not among"):
        render({"a": run(1)}, title="t", reference="x")


def test_a_comparison_alone(comparison: pl.DataFrame) -> None:
    page = Page(render({}, title="t", comparison=comparison))
    assert page.titles == ["Comparison over episodes", "What the figures mean"]


def test_many_policies_are_not_dropped_silently() -> None:
    page = Page(render({f"p{i}": run(5) for i in range(11)}, title="t"))
    assert "Drawn for the first 8 of 11 policies." in page.text
    assert page.text.count("p10") >= 3  # tables and the chart's menu have all


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"a": run(3)}
    target = write_report(tmp_path / "deep" / "page.html", runs, title="first")
    assert target == tmp_path / "deep" / "page.html"
    before = target.read_text()

    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(KeyboardInterrupt):
        write_report(target, runs, title="second")
    assert target.read_text() == before
    assert [p.name for p in target.parent.iterdir()] == ["page.html"]


def test_a_folder_gets_a_page(tmp_path: Path) -> None:
    assert write_report(tmp_path, {"a": run(3)}, title="t") == tmp_path / "report.html"


def test_the_same_results_give_the_same_bytes(runs: dict[str, Run], html: str) -> None:
    assert render(runs, title="t") == html


@pytest.mark.slow
def test_a_hundred_thousand_jobs_fit_in_eight_megabytes(tmp_path: Path) -> None:
    one = run(100_000, nodes=128, gap=60.0)
    assert write_report(tmp_path / "p.html", {"fcfs": one}, title="t").stat().st_size < 8e6
