"""The study deepscheduler2020 at its smallest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.studies import deepscheduler2020 as study

TINY = replace(study.SCALES["smoke"], inputs=("orion",))


@pytest.mark.slow
@pytest.mark.learn
def test_claims_tables_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(study.SCALES, "smoke", TINY)
    told = study.run("smoke", tmp_path, jobs=1)
    ids = {claim["id"] for claim in told["claims"]}
    keys = ("waste_vs_easy", "waste_vs_saf", "wait_vs_easy", "wait_vs_first_fit")
    assert {f"r3.{key}.orion{end}" for key in keys for end in ("", ".drain")} <= ids
    claims = {claim["id"]: claim for claim in json.loads((tmp_path / "claims.json").read_text())}
    table = pl.read_csv(tmp_path / "tables" / "policies.csv").filter((pl.col("window") == "cut") & (pl.col("policy") == "agent"))
    assert claims["r3.waste_vs_easy.orion"]["ours"] == pytest.approx(table["waste_vs_easy"][0], abs=1e-6)
    for name in ("fig21-orion", "fig25-orion", "fig26-orion"):
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 1000 and (tmp_path / "figures" / f"{name}.svg").exists()
    assert (tmp_path / "agents" / "orion-0.95-0" / "weights.pt").exists()


def test_unknown_scale_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        study.run("huge", tmp_path)
