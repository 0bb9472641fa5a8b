"""The demo: an order of the queue on later weeks, energy against wait, and one page about both."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import escala
from escala.studies import demo


@pytest.fixture(scope="module")
def findings() -> demo.Findings:
    log, platform = demo.built_in(days=24)
    return demo.run(log, platform, demo.Settings(train_minutes=0.0))


def test_the_page_leads_with_the_answers_and_the_picture(findings: demo.Findings, tmp_path: Path) -> None:
    page = demo.write(findings, tmp_path, price=0.2, carbon=None, currency="EUR").read_text(encoding="utf-8")
    heads = re.findall(r"<h2[^>]*>([^<]+)</h2>", page)
    assert heads[:2] == ["Energy against wait", "Waits on the later weeks"] and {
        "Who pays",
        "A year of them",
        "The log",
    } <= set(heads)
    assert page.index("On the ") < page.index("Against easy + never: ") < page.index(heads[0]), (
        "the answers stand first"
    )
    assert "Nothing was trained: no time." in page and "EUR" in page and page.count("<svg") >= 2
    assert not re.search(r"""(src|href)=["']https?:""", page), "self-contained"
    written = {"description.json", "frontier.json", "manifest.json", "policy", "report.html"}
    assert {path.name for path in tmp_path.iterdir()} == written
    assert json.loads((tmp_path / "frontier.json").read_text())["reference"] == "easy + never"


def test_the_chosen_order_stands_on_the_picture_and_runs_from_its_folder(
    findings: demo.Findings, tmp_path: Path
) -> None:
    assert findings.frontier is not None and f"{findings.tuned.chosen} + timeout:0" in findings.frontier.summaries
    demo.write(findings, tmp_path)
    log, platform = demo.built_in(days=24)
    again = escala.simulate(log, platform, f"policy:{tmp_path / 'policy'}").summary()
    assert again["mean_wait_s"] == findings.frontier.summaries[f"{findings.tuned.chosen} + never"]["mean_wait_s"]


def test_without_watts_the_order_is_told_alone(tmp_path: Path) -> None:
    log, platform = demo.built_in(days=24)
    bare = escala.read_platform(f"{platform.n_nodes}x{int(platform.cores[0])}")
    findings = demo.run(log, bare)
    page = demo.write(findings, tmp_path).read_text(encoding="utf-8")
    assert findings.frontier is None and findings.agent is None and not (tmp_path / "frontier.json").exists()
    assert "No energy is given, and nothing was trained: name a preset (--power grid5000" in page and "Who pays" in page
