"""What is kept of studies under docs/studies: all that they must tell is there, and pages, tables of claims and their
data agree."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.studies import RUNNABLE
from escala.studies.lab.claims import Claim, of_paper, read_rows, write_claims
from escala.studies.verdicts import rows_of
from escala.studies.verdicts.papers.deepshutdown2020 import LOGS as TABLE_2

ROOT = Path(__file__).resolve().parents[2] / "docs" / "studies"
SOURCES = sorted((ROOT.parents[1] / "src" / "escala" / "studies").glob("*.py"))
FOLDERS = sorted(path.parent for path in ROOT.glob("*/claims.json"))

LOADS = (10, 40, 70, 100, 130, 160, 190)
INPUTS = ("g5k", "econome", "graphite", "orion", "taurus", "kth", "hpc2n", "sdsc")
SHAPES = ("2x1", "2x2", "3x1", "3x2")
DEMANDED = {
    "grid2019": [
        *(f"r1.published.{what}.{load}" for what, load in product(("slowdown", "vs_author"), LOADS)),
        *(f"r1.fresh.{what}.{load}" for what, load in product(("slowdown", "vs_strict", "vs_holdback"), LOADS)),
        "r1.published.heuristics", "r1.published.makespan_vs_packer.190", "r1.fresh.worst_load",
        "r1.steps_to_pass_sjf.100",
    ],
    "a2c2020": [f"r2.slowdown.{rate}" for rate in (0.6, 0.7, 0.8, 0.9)],
    "deepshutdown2020": [
        f"r3.{what}.{log}"
        for what, log in product(
            ("waste_vs_t0", "waste_vs_t300", "transitions_vs_t0", "stretch", "stretch_minus_t0", "waste_vs_oracle",
             "waste_vs_hold_same_stretch", "hold25_vs_t0"),
            INPUTS,
        )
    ],
    "deepscheduler2020": [
        f"r3.{what}.{log}" for what, log in product(("waste_vs_easy", "waste_vs_saf", "wait_vs_easy",
                                                     "wait_vs_first_fit"), INPUTS)
    ],
    "marl2024": [
        *(f"r4.vs_best_heuristic.{shape}.{load}" for shape, load in product(SHAPES, (10, 30, 50, 70, 90, 110, 120))),
        "r4.worst_against_best_heuristic",
    ],
}  # fmt: skip


def _claims(folder: Path) -> list[dict[str, Any]]:
    return read_rows(folder)


def test_every_study_of_a_paper_is_kept() -> None:
    assert {folder.name for folder in FOLDERS} == set(DEMANDED) == set(RUNNABLE)


@pytest.mark.parametrize("study", DEMANDED)
def test_every_claim_that_is_demanded_is_kept_with_a_figure(study: str) -> None:
    claims = {claim["id"]: claim for claim in _claims(ROOT / study)}
    assert [ident for ident in DEMANDED[study] if ident not in claims] == []
    unmeasured = [ident for ident in DEMANDED[study] if claims[ident]["ours"] is None]
    assert all(claims[ident]["note"] for ident in unmeasured), "what was not reached says so"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_claims_are_told_once_and_within_their_intervals(folder: Path) -> None:
    claims = _claims(folder)
    assert len({claim["id"] for claim in claims}) == len(claims)
    for claim in claims:
        assert {claim["reproduces"], claim["meets_aim"]} <= {True, False, None} and claim["unit"], claim["id"]
        if claim["low"] is not None and claim["ours"] is not None:
            assert claim["low"] <= claim["ours"] <= claim["high"], claim["id"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_table_of_claims_is_what_its_data_give(folder: Path, tmp_path: Path) -> None:
    text = (folder / "claims.md").read_text(encoding="utf-8")
    title, _, about = text.split("\n", 3)[:3]
    write_claims(
        tmp_path,
        title.removeprefix("# "),
        [Claim(**{k: v for k, v in claim.items() if k != "reproduces"}) for claim in _claims(folder)],
        about,
    )
    assert (tmp_path / "claims.md").read_text(encoding="utf-8") == text
    assert read_rows(tmp_path) == _claims(folder)
    assert (tmp_path / "claims.json").read_text(encoding="utf-8") == (folder / "claims.json").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_claims_are_the_papers_and_findings_are_in_a_table(folder: Path) -> None:
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    rows = {row["id"]: row for row in _claims(folder)}
    assert all(of_paper(Claim(**{k: v for k, v in claim.items() if k != "reproduces"})) for claim in claims)
    assert len(claims) < 150 and len(rows) > len(claims)
    assert all(
        rows[row.id]["id"] in {c["id"] for c in claims}
        for row in rows_of(folder.name, folder)
        if row.found.of == row.id in rows
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_claims_that_a_page_names_exist(folder: Path) -> None:
    """Among those kept, or those that the studies write since (`r4.void.*`): no other name, and none misspelt."""
    known = [claim["id"] for other in FOLDERS for claim in _claims(other)]
    written = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    named = re.findall(r"`(r[1-4]\.[\w.*]+)`", (folder / "README.md").read_text(encoding="utf-8"))
    kept = {name for name in named if any(fnmatch(ident, name) or ident.startswith(f"{name}.") for ident in known)}
    assert [name for name in named if name not in kept and f"{name.rstrip('.*')}." not in written] == []


@pytest.mark.parametrize("name", INPUTS)
def test_slowdowns_of_figure_22_are_kept_as_distributions(name: str) -> None:
    table = pl.read_csv(ROOT / "deepshutdown2020" / "tables" / f"fig22-{name}.csv")
    order = ("low", "q1", "median", "q3", "high")
    assert table["policy"].n_unique() == 6
    for below, above in pairwise(order):
        assert (table[below] <= table[above]).all(), (below, above)


def test_logs_are_those_of_table_2_and_figure_11_crosses_submissions_and_ends() -> None:
    tables = ROOT / "deepshutdown2020" / "tables"
    logs = pl.read_csv(tables / "table2-logs.csv")
    assert {name.lower() for name in TABLE_2} <= set(logs["input"])
    years = pl.read_csv(tables / "fig11-years.csv")
    crossed = (
        years["sequential"] * years["error_of_sequential"] + (1.0 - years["sequential"]) * years["error_of_others"]
    )
    assert len(years) > 20 and (crossed - years["error"]).abs().max() < 1e-3


def test_agents_of_the_author_s_lists_are_judged_by_events_too() -> None:
    """As the paper did, by drawn actions; the slotted world, where they learnt, gives nearly the same."""
    folder = ROOT / "grid2019"
    kept = [int(path.name.split("-")[1]) for path in (folder / "agents").glob("published-*-0")]
    queue, slotted = (pl.read_csv(folder / "tables" / f"{name}.csv") for name in ("queue", "published_seeds"))
    events = queue.filter(policy="our agent, event-driven")
    assert sorted(events["load"]) == sorted(kept) and events["seeds"].to_list() == [100] * len(kept)
    for row in events.iter_rows(named=True):
        beside = slotted.filter(load=row["load"], seed=0)["sampled"].item()
        assert row["mean_slowdown"] == pytest.approx(beside, rel=0.05)
