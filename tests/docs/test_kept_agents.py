"""Every agent that is kept under docs/studies is the agent of its row: played again, it gives the figures of its page
to the last digit."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.studies.replay import REPLAYED, Study, replay
from escala.studies.replay.figures import folder_of

ROOT = Path(__file__).resolve().parents[2] / "docs" / "studies"
KEPT = [(study, agent) for study in REPLAYED for agent in Study(ROOT / study).agents()]


LONG = (
    "a2c2020/open",
    "deepscheduler2020",
    "deepshutdown2020",
    "grid2019/fresh",
    "grid2019/open",
    "marl2024/ahead-2x1",
    "marl2024/printed",
    "marl2024/team-3x2",
)
"""The agents that take longest, as their names begin: their figures under `make fuzz`."""

OF_THEM = (
    ("a2c2020", "open-all-0"),
    ("deepscheduler2020", "orion-0.95-0"),
    ("deepshutdown2020", "orion-1-0"),
    ("grid2019", "fresh-190-0"),
    ("grid2019", "open-all-1"),
    ("marl2024", "ahead-2x1-0"),
    ("marl2024", "printed-3x1-0"),
    ("marl2024", "team-3x2-0"),
)
"""One of each kind: its first figure in every run of the tests. tests/digests has decisions of all."""


def _is_long(study: str, agent: str) -> bool:
    return f"{study}/{agent}".startswith(LONG)


def _marked(study: str, agent: str) -> Any:
    return pytest.param(study, agent, marks=pytest.mark.long if _is_long(study, agent) else ())


@pytest.mark.slow
@pytest.mark.parametrize("study, agent", [_marked(*one) for one in KEPT], ids=lambda one: str(one))
def test_a_kept_agent_is_that_of_its_row(traces: Path, study: str, agent: str) -> None:
    found = replay(study, ROOT / study, agents=[agent])
    assert found.figures and not found.missing
    assert [f"{one.figure}: {one.page} on the page, {one.now} now" for one in found.differ] == []


@pytest.mark.slow
@pytest.mark.parametrize("study, agent", OF_THEM, ids=lambda one: str(one))
def test_the_first_figure_of_an_agent_that_takes_long_is_that_of_its_row(traces: Path, study: str, agent: str) -> None:
    assert (study, agent) in KEPT and _is_long(study, agent)
    play = getattr(import_module(f"escala.studies.replay.{REPLAYED[study]}"), study)
    first = next(iter(play(folder_of(study, ROOT / study), agent, None)))
    assert first.same, f"{first.figure}: {first.page} on the page, {first.now} now"


@pytest.mark.parametrize("agent", [one for one in Study(ROOT / "a2c2020").agents() if one.startswith("agent-")])
def test_an_agent_of_a2c2020_fits_the_row_of_its_five_seeds(agent: str) -> None:
    """Its training ends elsewhere on another processor, so the other seeds cannot be made again: of five seeds with
    mean m and standard deviation s, none is further from m than 4 s / sqrt(5)."""
    _, rate, seed = agent.split("-")
    own = pl.read_csv(ROOT / "a2c2020" / "tables" / "seeds.csv").row(
        by_predicate=(pl.col("rate") == float(rate)) & (pl.col("seed") == int(seed)), named=True
    )
    table = pl.read_csv(ROOT / "a2c2020" / "tables" / "tables1and2.csv").filter(
        pl.col("rate") == round(100 * float(rate))
    )
    for how, policy in (("sampled", "recommended"), ("likeliest", "recommended, likeliest")):
        row = table.row(by_predicate=pl.col("policy") == policy, named=True)
        assert abs(own[how] - row["mean_slowdown"]) <= 4 * row["mean_slowdown_sd"] / 5**0.5


def test_the_seeds_of_grid2019_are_those_of_its_means() -> None:
    """Every kind of agent that is kept of fresh lists: the mean of its five seeds is the row of the page."""
    own = pl.read_csv(ROOT / "grid2019" / "tables" / "fresh_seeds.csv")
    table = pl.read_csv(ROOT / "grid2019" / "tables" / "fresh.csv")
    labels = {"fresh": "agent, own load", "imitated": "imitation alone, own load"}
    for (kind, trained, load), seeds in own.group_by("kind", "trained", "load"):
        policy = "agent, all loads" if trained == "all" else labels[str(kind)]
        for how, end in (("sampled", ""), ("likeliest", ", likeliest")):
            row = table.row(by_predicate=(pl.col("load") == load) & (pl.col("policy") == f"{policy}{end}"), named=True)
            assert len(seeds) == 5 and seeds[how].mean() == pytest.approx(row["mean_slowdown"], abs=2e-6)


def test_the_seeds_of_marl2024_are_those_of_its_means() -> None:
    """Every kind of team, shape and load, by greedy actions."""
    own = pl.read_csv(ROOT / "marl2024" / "tables" / "seeds.csv").filter(acting="likeliest")
    table = pl.read_csv(ROOT / "marl2024" / "tables" / "slowdown.csv")
    means = own.group_by("shape", "load", pl.col("kind") + ", likeliest").agg(pl.col("mean_slowdown").mean(), pl.len())
    both = means.join(table, left_on=("shape", "load", "kind"), right_on=("shape", "load", "policy"), suffix="_told")
    assert len(both) > 100 and both["len"].to_list() == both["seeds"].to_list()
    assert both["mean_slowdown"].to_list() == pytest.approx(both["mean_slowdown_told"].to_list(), abs=2e-6)


@pytest.mark.parametrize("study, setting", [("deepscheduler2020", "0.95"), ("deepshutdown2020", "1")])
def test_the_agent_behind_each_headline_of_clusters_is_kept(study: str, setting: str) -> None:
    """Of every input; the page says of one why not."""
    said = (ROOT / study / "README.md").read_text(encoding="utf-8")
    missing = {"econome"} if "but for that of the\nEconome-like days" in said else set()
    wanted = {"g5k", "orion", "graphite", "taurus", "econome", "kth", "hpc2n", "sdsc"} - missing
    assert {f"{name}-{setting}-0" for name in wanted} <= set(Study(ROOT / study).agents())


@pytest.mark.parametrize("load", [10, 40, 70, 100, 130, 160, 190])
def test_the_agent_behind_each_headline_of_grid2019_is_kept(load: int) -> None:
    """The one that was chosen for a load of fresh lists: its first seed."""
    names = {
        "imitation alone, own load": f"imitated-{load}-0",
        "agent, own load": f"fresh-{load}-0",
        "agent, all loads": "fresh-all-0",
    }
    told = pl.read_csv(ROOT / "grid2019" / "tables" / "fresh_other.csv").filter(load=load)["policy"].unique().item()
    assert names[told.rpartition(", ")[0]] in Study(ROOT / "grid2019").agents()
