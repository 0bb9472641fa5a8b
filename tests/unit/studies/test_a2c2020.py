"""The study a2c2020 at its smallest: what it writes, that nothing is done twice, and a log of the user's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.studies import a2c2020
from escala.studies.a2c2020_cells import LONGEST, log_lists, rules

TINY = replace(
    a2c2020.SCALES["smoke"], agent=256, a2c=256, printed=64, networks=("fc", "conv3-16-pool"), network=64, curve=(64,), log=256, pool=16,
    validation=4, test=6, episodes=3,
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("a2c2020")
    patch = pytest.MonkeyPatch()
    patch.setitem(a2c2020.SCALES, "tiny", TINY)
    a2c2020.run("tiny", out, jobs=1)
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    a2c2020.run("tiny", out, jobs=1)
    assert before == {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}  # what was done is not done again
    patch.undo()
    return out


@pytest.mark.slow
@pytest.mark.learn
def test_claims_tables_figures_and_manifest(found: Path) -> None:
    claims = {claim["id"]: claim for claim in json.loads((found / "claims.json").read_text())}
    assert {
        "r2.slowdown.0.7",
        "r2.completion.0.7",
        "r2.wait.0.7",
        "r2.headroom.0.7",
        "r2.vs_holdback.0.7",
        "r2.alone.0.7",
        "r2.a2c.0.7",
        "r2.printed.0.7",
        "r2.network.fc",
        "r2.log.slowdown",
    } <= set(claims)
    assert claims["r2.slowdown.0.7"]["paper"] == pytest.approx(1.91 / 2.14 - 1)
    for name in ("tables1and2", "table3", "table4", "paper"):
        assert pl.read_csv(found / "tables" / f"{name}.csv").height > 0
    for name in ("fig3-a2c", "fig3-ppo", "fig3-bars", "fig4"):
        assert (found / "figures" / f"{name}.png").stat().st_size > 1000
    manifest = json.loads((found / "manifest.json").read_text())
    assert any("generated" in line for line in manifest["missing"])


@pytest.mark.slow
@pytest.mark.learn
def test_every_policy_is_judged_on_the_same_jobs(found: Path) -> None:
    table = pl.read_csv(found / "tables" / "tables1and2.csv").filter(pl.col("unfinished") == 0)
    runtime = table["mean_turnaround_s"] - table["mean_wait_s"]
    assert runtime.max() - runtime.min() < 1e-4  # the printed tables fail this


def test_the_printed_tables_contradict_themselves() -> None:
    from escala.studies.a2c2020_report import paper_frame

    for (rate,), rows in paper_frame().group_by("rate"):
        spread = rows["runtime_implied"].max() - rows["runtime_implied"].min()
        assert spread > 0.5, rate


def test_rules_in_the_order_that_the_paper_prints() -> None:
    figures = rules(0.9, validation=10, test=60)
    mean = {rule: sum(figures[rule]["slowdown"]) / 60 for rule in ("sjf", "tetris", "random")}
    assert mean["sjf"] < mean["tetris"] < mean["random"]
    assert mean["sjf"] == pytest.approx(2.15, abs=0.4)


def test_a_log_of_the_users_own_gives_sixty_jobs_in_units(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{k},{60 * k},{30 + 40 * (k % 7)},{1 + k % 9}" for k in range(200)]
    log.write_text("job_id,submit_s,runtime_s,cores\n" + "\n".join(rows) + "\n")
    lists = log_lists(str(log))
    assert len(lists) == 1 and int(lists.jobs_of[0]) == 60
    assert lists.longest <= LONGEST and lists.job["cores"].max() == 10 and set(lists.demand.ravel()) == {1}
    short = tmp_path / "short.csv"
    short.write_text("job_id,submit_s,runtime_s,cores\n1,0,10,1\n")
    with pytest.raises(EscalaError, match="60 consecutive"):
        log_lists(str(short))


def test_unknown_scale_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        a2c2020.run("huge", tmp_path)
