"""The study a2c2020 at its smallest: what it writes, that nothing is done twice, and a log of the user's own."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import escala
from escala.errors import EscalaError
from escala.studies.a2c2020 import real_logs, recipe
from escala.studies.a2c2020.cells import LONGEST, log_jobs, log_lists, printed_cells, rules
from escala.studies.a2c2020.controls import ABOUT, CONTROLS
from escala.studies.a2c2020.curves import converged_at, levels, points_of
from escala.studies.a2c2020.report import mark_of
from escala.studies.lab.claims import read_rows
from escala.studies.verdicts import page_of

TINY = replace(
    recipe.SCALES["smoke"], agent=256, a2c=256, printed=64, networks=("fc", "conv3-16-pool"), network=1600,
    controls=160,
    curve=(64,), curve_image=(64,), curve_seeds=2, log=256, real=256, real_windows=2, pool=16, validation=4, test=6,
    episodes=3,
)  # fmt: skip


def swf(path: Path, jobs: int) -> str:
    """A log with jobs of changing size and length."""
    rng = np.random.default_rng(5)
    submit, runtime, cores = (
        np.cumsum(rng.integers(1, 60, jobs)),
        rng.integers(10, 900, jobs),
        rng.integers(1, 65, jobs),
    )
    rows = [
        f"{k + 1} {s} 0 {r} {c} -1 -1 {c} {2 * r} -1 1 1 1 -1 -1 -1 -1 -1"
        for k, (s, r, c) in enumerate(zip(submit, runtime, cores))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(["; MaxProcs: 64", *rows, ""]).encode()))
    return str(path)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("a2c2020")
    patch = pytest.MonkeyPatch()
    patch.setitem(recipe.SCALES, "tiny", TINY)
    traces = tmp_path_factory.mktemp("traces")
    swf(traces / real_logs.LOGS["sdsc"][0], 600)
    recipe.run("tiny", out, jobs=1, traces=traces)
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    recipe.run("tiny", out, jobs=1, traces=traces)
    # what was done is not done again
    assert before == {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    patch.undo()
    return out


@pytest.mark.long
@pytest.mark.learn
def test_claims_tables_figures_and_manifest(found: Path) -> None:
    claims = {claim["id"]: claim for claim in read_rows(found)}
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
        "r2.log.a2c",
    } <= set(claims)
    assert claims["r2.slowdown.0.7"]["paper"] == pytest.approx(1.91 / 2.14 - 1)
    for name in ("tables1and2", "table3", "table4", "paper", "training"):
        assert pl.read_csv(found / "tables" / f"{name}.csv").height > 0
    for name in ("fig3", "fig3-bars", "fig4", "fig4-bars", "training"):
        assert (found / "figures" / f"{name}.png").stat().st_size > 1000
    manifest = json.loads((found / "manifest.json").read_text())
    assert manifest["missing"] == [] and manifest["settings"]["logs"] == ["sdsc"]


@pytest.mark.long
@pytest.mark.learn
def test_positive_controls_are_trained_and_shown(found: Path) -> None:
    """Each by both ways of acting, the better one on validation lists chosen; its claim is that one's change against
    SJF."""
    table = pl.read_csv(found / "tables" / "controls.csv", infer_schema_length=None)
    assert table["control"].unique(maintain_order=True).to_list() == list(CONTROLS)
    assert table.group_by("control").agg(pl.len(), pl.col("chosen").sum())[["len", "chosen"]].unique().rows() == [
        (2, 1)
    ]
    assert all((row["decisions"] == 0) == (row["control"] == "imitated") for row in table.iter_rows(named=True))
    claims = {row["id"]: row for row in read_rows(found)}
    sjf = pl.read_csv(found / "tables" / "tables1and2.csv").filter(policy="sjf")["mean_slowdown"].item()
    for row in table.filter("chosen").iter_rows(named=True):
        change = claims[f"r2.control.{row['control']}"]["ours"]
        assert (change is None) == (row["unfinished"] > 0)
        assert change is None or change == pytest.approx(row["mean_slowdown"] / sjf - 1, rel=1e-4)
    shown = page_of("a2c2020", found).split("## Positive controls")[1].split("##")[0]
    assert all(f"| {ABOUT[name]} |" in shown for name in CONTROLS)


@pytest.mark.learn
def test_a_single_pass_of_ppo_without_clipping_is_a2c() -> None:
    """So the control "masked" is A2C with a mask: where nothing is masked, the same weights come out."""
    drawn = {"rate": 0.7, "lists": 16, "lists_seed": 1}
    one = {**CONTROLS["masked"]["learn"], "ent_coef": 0.002}
    asked: dict[str, Any] = {"steps": 400, "seed": 0, "preset": "fc"} | drawn
    as_printed = escala.train("escala/Slots-v0", algorithm="a2c", **asked)
    as_ppo = escala.train("escala/Slots-v0", algorithm="ppo", learn=one, **asked)
    before = escala.train("escala/Slots-v0", algorithm="a2c", learn={"learning_rate": 0.0}, **asked)
    for found, wanted, old in zip(*(one.network.parameters() for one in (as_ppo, as_printed, before)), strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)
        assert not torch.allclose(wanted, old, atol=1e-5)


@pytest.mark.long
@pytest.mark.learn
def test_every_policy_is_judged_on_the_same_jobs(found: Path) -> None:
    table = pl.read_csv(found / "tables" / "tables1and2.csv").filter(pl.col("unfinished") == 0)
    runtime = table["mean_turnaround_s"] - table["mean_wait_s"]
    assert runtime.max() - runtime.min() < 1e-4  # the printed tables fail this


@pytest.mark.long
@pytest.mark.learn
def test_figures_3_and_4_have_every_learner_and_budget(found: Path) -> None:
    """What the paper's four curves show, of each seed; the longest trainings are those of the tables."""
    points = pl.read_csv(found / "tables" / "fig3.csv", infer_schema_length=None)
    assert {"return", "slowdown", "turnaround", "wait", "unfinished"} <= set(points.columns)
    learners = {line: rows.height for (line,), rows in points.group_by("line")}
    assert learners == {
        "PPO alone": 6,
        "A2C, slot scorer": 6,
        "A2C, Conv3-16 on the image": 6,
    }  # two seeds, the longest; two ways of acting
    assert points.filter(pl.col("unfinished") > 0)["slowdown"].is_null().all()
    for (line,), rows in points.filter("chosen").group_by("line"):
        assert rows["step"].unique().sort().to_list() == points.filter(line=line)["step"].unique().sort().to_list(), (
            "a budget is left out"
        )
    table = pl.read_csv(found / "tables" / "tables1and2.csv").filter(
        pl.col("policy").str.starts_with("A2C, slot scorer"), unfinished=0
    )
    found_there = points.filter(line="A2C, slot scorer")["slowdown"].to_list()
    assert table.height and all(
        any(one == pytest.approx(told, rel=1e-4) for one in found_there) for told in table["mean_slowdown"]
    )
    log = pl.read_csv(found / "tables" / "fig4.csv").filter(pl.col("unfinished") == 0)
    assert log.height and log["return"].to_list() == pytest.approx([-60 * x for x in log["slowdown"]], rel=1e-5)
    training = pl.read_csv(found / "tables" / "training.csv")
    assert set(training["line"]) == {"fc", "conv3-16-pool"} and training["value"].max() < 0.0


@pytest.mark.long
@pytest.mark.learn
def test_tables_have_the_spread_that_the_paper_prints(found: Path) -> None:
    table = pl.read_csv(found / "tables" / "table4.csv").filter(pl.col("unfinished") == 0)
    rules = ~pl.col("policy").str.contains("sampled|likeliest")
    assert table.filter(rules)["mean_wait_s_sd"].to_list() == [0.0] * table.filter(rules).height
    drawn = pl.read_csv(found / "tables" / "fig4.csv").filter(acting="sampled")
    assert drawn.height == 2 and drawn["unfinished"].sum() == 0
    row = table.filter(policy="A2C from nothing, sampled").row(0, named=True)
    assert row["mean_slowdown_sd"] == pytest.approx(drawn["slowdown"].std(), rel=1e-4)
    paper = pl.read_csv(found / "tables" / "paper.csv").filter(rate="0.8", policy="A2cScheduler").row(0, named=True)
    assert (paper["slowdown_sd"], paper["turnaround_sd"], paper["wait_sd"]) == (0.05, 0.04, 0.005)


def test_a_budget_whose_sampled_runs_do_not_end_is_told_and_its_greedy_actions_are_drawn() -> None:
    def judged(slowdown: list[float | None]) -> dict[str, list[float | None]]:
        return dict.fromkeys(("slowdown", "turnaround", "wait"), slowdown)

    fine = {
        "steps": 10,
        "sampled": judged([2.0, 4.0]),
        "likeliest": judged([3.0, 3.5]),
        "validation": {"sampled": [1.0], "likeliest": [2.0]},
    }
    idle = {
        "steps": 20,
        "sampled": judged([2.0, None]),
        "likeliest": judged([1.0, 3.0]),
        "validation": {"sampled": [None], "likeliest": [2.0]},
    }
    points = points_of(
        {"a": fine, "b": idle, "c": fine | {"steps": 20}}, {"one": [["a"], ["b", "c"]]}, np.array([2, 2])
    )
    assert points.height == 6 and points["unfinished"].sum() == 1
    drawn = points.filter("chosen").sort("step", "seed")
    assert drawn["acting"].to_list() == ["sampled", "likeliest", "likeliest"] and drawn["slowdown"].to_list() == [
        3.0,
        2.0,
        3.25,
    ]
    assert drawn["return"].to_list() == [-6.0, -4.0, -6.5]
    log = points_of(
        {"a": {name: value for name, value in fine.items() if name != "validation"}}, {"one": [["a"]]}, np.array([2, 2])
    )
    assert log.height == 2 and log["chosen"].is_null().all()


def test_when_a_training_has_converged() -> None:
    """A return that rises by 10 a point to -100 and stays: the mean of five is within 10 % of it from the point on at
    which it is -110."""
    rise = [[k, max(-100.0 - 10.0 * (20 - k), -100.0 - 200.0) if k < 20 else -100.0] for k in range(50)]
    # points 17 to 21 are -130, -120, -110, -100, -100 with a mean of -112; one later it is -106
    assert converged_at(rise) == 22
    level = [[k, -100.0] for k in range(50)]
    assert converged_at(level) == 4 and converged_at(level[:14]) is None
    assert converged_at([[k, -100.0 - 10.0 * (50 - k)] for k in range(50)]) is None  # rises to the end
    late = [[k, -100.0 if k < 38 else -200.0] for k in range(50)]
    assert converged_at(late) is None  # falls to another level at last


def test_no_training_is_done_twice(tmp_path: Path) -> None:
    """A2C as printed: three seeds at rates with a mark for A2C, one elsewhere; at that of table 3 its trainings."""
    scale = recipe.SCALES["short"]
    cells = recipe.cells_of(scale, tmp_path, None)
    assert len({cell.name for cell in cells}) == len(cells)
    done = [
        json.dumps([cell.work.__name__, {k: v for k, v in cell.given.items() if k != "keep"}], sort_keys=True)
        for cell in cells
    ]
    assert len(set(done)) == len(done)
    assert printed_cells(scale, 0.7) == [f"network/conv3-16/{seed}" for seed in range(3)]
    given = {cell.name: cell.given for cell in cells}
    for rate in scale.rates:
        trained = [given[name] for name in printed_cells(scale, rate)]
        assert all(one["rate"] == rate and one["preset"] == "conv3-16" and one["steps"] >= 500_000 for one in trained)
        assert len(trained) == (3 if rate in (0.7, 0.9) else 1)
    other = replace(scale, networks=("fc",))
    assert printed_cells(other, 0.7)[0] == "printed/0.7/0" and "printed/0.7/0" in {
        c.name for c in recipe.cells_of(other, tmp_path, None)
    }


def test_what_a_mark_is_of() -> None:
    assert [mark_of("A2C, slot scorer", rate)[0] for rate in (0.6, 0.7, 0.8, 0.9)] == [None, 0.10, None, 0.20]
    assert [mark_of("A2C, Conv3-16 on the image", rate)[0] for rate in (0.6, 0.7, 0.8, 0.9)] == [None, 0.10, None, 0.20]
    assert "compact observation" in mark_of("A2C, Conv3-16 on the image", 0.7)[1]
    assert mark_of("A2C, slot scorer", 0.6)[1] == "a finding, no test"
    assert [mark_of("recommended", rate)[0] for rate in (0.6, 0.7, 0.8, 0.9)] == [0.03, 0.0, 0.0, 0.03]


def test_the_printed_tables_contradict_themselves() -> None:
    from escala.studies.a2c2020.report import paper_frame

    for (rate,), rows in paper_frame().group_by("rate"):
        spread = rows["runtime_implied"].max() - rows["runtime_implied"].min()
        assert spread > 0.5, rate


def test_rules_in_the_order_that_the_paper_prints() -> None:
    figures = rules(0.9, validation=10, test=60)
    mean = {rule: sum(figures[rule]["slowdown"]) / 60 for rule in ("sjf", "tetris", "random")}
    assert mean["sjf"] < mean["tetris"] < mean["random"]
    assert mean["sjf"] == pytest.approx(2.15, abs=0.4)


def test_levels_of_rules_return_minus_their_summed_slowdowns() -> None:
    figures = {"sjf": {"slowdown": [1.5, 2.0], "turnaround": [4.0, 6.0], "wait": [1.0, 2.0]}}
    (row,) = levels(figures, np.array([10, 20]), {"sjf": "SJF"}).to_dicts()
    assert row == {"policy": "SJF", "return": -(15.0 + 40.0) / 2, "slowdown": 1.75, "turnaround": 5.0, "wait": 1.5}


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


@pytest.mark.long
@pytest.mark.learn
def test_table_4_is_done_on_the_real_logs_that_are_at_hand(found: Path) -> None:
    """Each way of learning has its claim and its row, beside the rules on the same windows; unseen windows are other
    ones."""
    table = pl.read_csv(found / "tables" / "table4-logs.csv")
    assert table["log"].unique().to_list() == ["sdsc"]
    policies = {jobs: set(table.filter(jobs=jobs)["policy"]) for jobs in ("same", "unseen")}
    assert policies == {"same": {*real_logs.SHOWN, "plan", "a2c"}, "unseen": {*real_logs.SHOWN, "unseen"}}
    claims = {row["id"]: row for row in read_rows(found)}
    for way, jobs in (("plan", "same"), ("a2c", "same"), ("unseen", "unseen")):
        mean = {row["policy"]: row["mean_slowdown"] for row in table.filter(jobs=jobs).iter_rows(named=True)}
        row = claims[f"r2.log.sdsc_{way}"]
        assert row["paper"] is None and row["meets_aim"] is None and row["episodes"] == 2
        assert row["ours"] == pytest.approx(mean[way] / mean["sjf"] - 1, abs=1e-5)
    page = page_of("a2c2020", found)
    assert page.count("SDSC-SP2, SWF") == 5 and page.count("`r2.log.sdsc_") == 3


def test_windows_of_a_log_are_spread_and_those_of_the_three_parts_are_apart(tmp_path: Path) -> None:
    log = swf(tmp_path / "log.swf.gz", 900)
    submit = log_jobs(log)["submit_s"].to_numpy()
    middle = [np.diff(log_lists(log, (k, 3)).job["submit"] / 1e6) for k in range(3)]
    for k, gaps in enumerate(middle):  # the middle of each third
        at = 840 * (2 * k + 1) // 6
        unit = np.percentile(log_jobs(log)["runtime_s"].to_numpy()[at : at + 60], 90) / LONGEST
        assert (gaps == np.diff(np.floor((submit[at : at + 60] - submit[at]) / unit))).all()
    assert (log_lists(log).job == log_lists(log, (0, 1)).job).all() and (
        log_lists(log).job == log_lists(log, (1, 3)).job
    ).all()
    learnt, chosen, judged = real_logs.windows_of(log)
    assert [len(learnt), len(chosen), len(judged)] == [9, 3, 3]  # of 15 windows of 60 jobs


def test_memory_that_sacct_names_is_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "sacct.txt"
    head = "JobID|Submit|Start|End|NNodes|NCPUS|ReqMem|State"
    rows = [
        f"{k}|2024-01-01T00:{k % 60:02}:00|2024-01-01T01:00:00|2024-01-01T02:00:00|1|4|{1 + k % 10}000Mn|COMPLETED"
        for k in range(60)
    ]
    log.write_text("\n".join([head, *rows, ""]))
    lists = log_lists(str(log))
    assert sorted(set(lists.demand.ravel())) == list(range(1, 11)) and set(lists.job["cores"]) == {10}


def test_unknown_scale_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="smoke, short, paper"):
        recipe.run("huge", tmp_path)
