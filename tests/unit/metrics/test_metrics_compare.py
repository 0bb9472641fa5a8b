"""Comparisons: what is refused, what the numbers are, and whether the intervals keep their promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from escala.errors import EscalaError
from escala.metrics import bootstrap, compare, summarise


@pytest.fixture
def summary(table: Any, power: pl.DataFrame) -> Any:
    def make(
        wait: float, *, runs: tuple[float, ...] = (10.0, 30.0), state: str = "COMPLETED"
    ) -> dict[str, float | int]:
        rows = [(0.0, wait, wait + run, 1, 100.0, "COMPLETED") for run in runs[:-1]]
        last = (0.0, wait, None if state == "RUNNING" else wait + runs[-1], 1, 100.0, state)
        return summarise(table([*rows, last]), power, nodes=2, cores=2, start_s=0.0, end_s=200.0)

    return make


def test_table_by_hand(summary: Any) -> None:
    got = compare.table({"fcfs": summary(20.0), "easy": summary(5.0)}, reference="fcfs")
    assert got["policy"].to_list() == ["fcfs", "easy"]
    assert got["mean_wait_s"].to_list() == [20.0, 5.0]
    assert got["mean_wait_s_change"].to_list() == [0.0, -0.75]
    assert got["waste_j_change"].to_list() == [0.0, 0.0]
    assert got["n_completed"].to_list() == [2, 2]


def test_change_against_zero_has_no_value(summary: Any) -> None:
    got = compare.table({"a": summary(0.0), "b": summary(5.0)})
    assert got["mean_wait_s_change"].to_list() == [None, None]


def test_change_is_of_the_size_of_the_reference() -> None:
    assert compare.change(-3.0, -4.0) == 0.25  # less negative is more
    assert compare.change(-5.0, -4.0) == -0.25


def test_an_interval_that_touches_zero_is_not_clear() -> None:
    touching = [(0.0, 1.0), (-1.0, 0.0), (0.0, 0.0), (-1.0, 1.0)]
    assert not any(bootstrap.Interval(0.5, low, high, 0.95, 9, 1).clear for low, high in touching)
    assert all(bootstrap.Interval(0.5, low, high, 0.95, 9, 1).clear for low, high in [(0.1, 1.0), (-1.0, -0.1)])


def test_equal_episodes_are_not_better() -> None:
    rows = [("ref", k, 1.0) for k in range(4)] + [("other", k, value) for k, value in enumerate((1.0, 1.0, 0.5, 2.0))]
    both = compare.episodes(
        pl.DataFrame(rows, schema=["policy", "episode", "x"], orient="row"), "x", reference="ref", resamples=100
    )
    assert dict(both.select("policy", "better_share").iter_rows()) == {"ref": 0.0, "other": 0.25}


def test_refuses_other_jobs(summary: Any) -> None:
    with pytest.raises(EscalaError, match="not the same jobs"):
        compare.table({"a": summary(1.0), "b": summary(1.0, runs=(10.0, 31.0))})
    with pytest.raises(EscalaError, match=r"a ran 2 jobs and b 3"):
        compare.table({"a": summary(1.0), "b": summary(1.0, runs=(10.0, 20.0, 30.0))})


def test_refuses_a_wrong_job_table(summary: Any) -> None:
    wrong = dict(summary(1.0))
    wrong["mean_wait_s"] += 1.0
    with pytest.raises(EscalaError, match="its job table is wrong"):
        compare.check({"a": wrong})


def test_unfinished_jobs_are_refused_or_reported(summary: Any) -> None:
    runs = {"whole": summary(1.0), "cut": summary(1.0, state="RUNNING")}
    with pytest.raises(EscalaError, match=r"1 of 2 jobs unfinished.*cut=True"):
        compare.table(runs)
    remarks = compare.check(runs, cut=True)
    assert len(remarks) == 2 and "unfinished" in remarks[0] and "not the same jobs" in remarks[1]
    assert compare.table(runs, cut=True)["n_unfinished"].to_list() == [0, 1]


def test_refuses_unknown_names(summary: Any) -> None:
    with pytest.raises(EscalaError, match="reference 'easy' is not among"):
        compare.table({"a": summary(1.0)}, reference="easy")
    with pytest.raises(EscalaError, match="no metric 'speed'"):
        compare.table({"a": summary(1.0)}, metrics=["speed"])
    with pytest.raises(EscalaError, match="nothing to compare"):
        compare.table({})


def test_paired_values_by_hand() -> None:
    ratio = compare.paired([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert (ratio.value, ratio.low, ratio.high) == (-0.5, -0.5, -0.5)  # every episode halves, so no resample differs
    assert ratio.clear and ratio.episodes == 3 and ratio.seeds == 1
    difference = compare.paired([[1.0, 2.0], [3.0, 4.0]], [2.0, 2.0], statistic="difference")
    assert difference.value == 0.5
    assert difference.seeds == 2


def test_seeded() -> None:
    random = np.random.default_rng(3)
    a, b = random.exponential(1, (4, 30)), random.exponential(1, 30)
    assert compare.paired(a, b, seed=7) == compare.paired(a, b, seed=7)
    assert compare.paired(a, b, seed=7) != compare.paired(a, b, seed=8)


def test_weights_that_are_drawn_once_are_those_of_each_chunk() -> None:
    """Many episodes are resampled in chunks, which several tables share: intervals do not depend on what was asked
    before."""
    random = np.random.default_rng(3)
    values, reference = random.uniform(1, 3, (2, 60_000)), random.uniform(1, 3, 60_000)
    asked = ((values, 1), (values[:1], 1), (values, 2), (values, 1), (values[:1], 1))
    together = [compare.paired(ours, reference, resamples=100, seed=seed) for ours, seed in asked]
    alone = []
    for ours, seed in asked:
        bootstrap._KEPT.clear()
        alone.append(compare.paired(ours, reference, resamples=100, seed=seed))
    assert together == alone and together[0] != together[2] and together[0] != together[1]


def test_pairs_are_kept() -> None:
    """Episodes differ a thousandfold, the policy always saves a tenth: an unpaired interval would be wide, the paired
    one is a point."""
    reference = 10.0 ** np.random.default_rng(0).uniform(0, 3, 40)
    got = compare.paired(0.9 * reference, reference)
    assert got.low == pytest.approx(-0.1) and got.high == pytest.approx(-0.1)


def test_training_seeds_widen_the_interval() -> None:
    random = np.random.default_rng(1)
    reference = random.uniform(9, 11, 200)
    good_and_bad = np.stack([reference * f for f in (0.7, 0.8, 0.9, 1.0, 1.1)])
    over_both = compare.paired(good_and_bad, reference)
    over_episodes = compare.paired(good_and_bad.mean(0), reference)
    assert over_both.value == pytest.approx(over_episodes.value)
    assert over_both.high - over_both.low > 10 * (over_episodes.high - over_episodes.low)


@pytest.mark.parametrize("seeds", [1, 12])
def test_intervals_cover_the_truth(seeds: int) -> None:
    """Of 95 % intervals for a known difference of 0.5, about 95 % hold it. 400 repetitions: 3 standard errors are 3.3
    points; few seeds cost a few more.
    """
    random = np.random.default_rng(11)
    held = 0
    for repetition in range(400):
        episode = random.normal(0, 2, 60)
        seed_effect = random.normal(0, 0.3, (seeds, 1)) if seeds > 1 else 0.0
        ours = 10.5 + episode + seed_effect + random.normal(0, 0.5, (seeds, 60))
        got = compare.paired(ours, 10.0 + episode, statistic="difference", resamples=500, seed=repetition)
        held += got.low <= 0.5 <= got.high
    assert 0.88 <= held / 400 <= 0.99


def test_paired_refuses() -> None:
    with pytest.raises(EscalaError, match="2 episodes against 3"):
        compare.paired([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(EscalaError, match="episode 1 is nan"):
        compare.paired([1.0, np.nan], [1.0, 2.0])
    with pytest.raises(EscalaError, match="unknown statistic"):
        compare.paired([1.0], [1.0], statistic="median")
    with pytest.raises(EscalaError, match="sums to 0"):
        compare.paired([1.0], [0.0])
    with pytest.raises(EscalaError, match="not empty"):
        compare.paired([], [])


def test_ranks_by_hand() -> None:
    got = compare.ranks({"a": [1.0, 5.0, 2.0], "b": [2.0, 5.0, 1.0], "c": [3.0, 9.0, 9.0]})
    assert dict(got.select("policy", "mean_rank").iter_rows()) == pytest.approx({"a": 1.5, "b": 1.5, "c": 3.0})
    assert dict(got.select("policy", "best_share").iter_rows()) == pytest.approx({"a": 2 / 3, "b": 2 / 3, "c": 0.0})
    assert compare.ranks({"a": [1.0], "b": [2.0]}, smaller_is_better=False)["policy"].to_list() == ["b", "a"]


def test_episode_table(table: Any) -> None:
    rows = [{"policy": "sjf", "episode": e, "seed": 0, "slowdown": 2.0 + e} for e in range(20)]
    rows += [
        {"policy": "ppo", "episode": e, "seed": s, "slowdown": 1.0 + e / 2}
        for s in range(5)
        for e in reversed(range(20))
    ]
    got = compare.episodes(pl.DataFrame(rows), "slowdown", reference="sjf")
    ppo = got.row(by_predicate=pl.col("policy") == "ppo", named=True)
    assert ppo["change"] == pytest.approx(-0.5) and ppo["difference"] == pytest.approx(-5.75)
    assert ppo["better_share"] == 1.0 and ppo["mean_rank"] == 1.0 and ppo["seeds"] == 5 and ppo["episodes"] == 20
    assert got.row(by_predicate=pl.col("policy") == "sjf", named=True)["change"] is None


def test_episode_table_of_several_metrics_and_directions() -> None:
    rows = pl.DataFrame(
        {
            "policy": ["a", "a", "b", "b"],
            "episode": [0, 1, 0, 1],
            "wait": [1.0, 2.0, 2.0, 3.0],
            "utilisation": [0.5, 0.6, 0.6, 0.7],
        }
    )
    got = compare.episodes(rows, ["wait", "utilisation"], reference="a")
    assert got["metric"].to_list() == ["wait", "wait", "utilisation", "utilisation"]
    assert got.filter(pl.col("policy") == "b")["better_share"].to_list() == [0.0, 1.0]
    assert got.filter(pl.col("policy") == "b")["mean_rank"].to_list() == [2.0, 1.0]


def test_episode_table_refuses_gaps() -> None:
    rows = pl.DataFrame({"policy": ["a", "a", "b"], "episode": [0, 1, 0], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(EscalaError, match="b: 1 rows for 1 seeds and 2 episodes"):
        compare.episodes(rows, "x", reference="a")
    twice = pl.DataFrame({"policy": ["a", "a"], "episode": [0, 0], "x": [1.0, 2.0]})
    with pytest.raises(EscalaError, match="exactly once"):
        compare.episodes(twice, "x", reference="a")
    with pytest.raises(EscalaError, match="reference 'z'"):
        compare.episodes(rows.filter(pl.col("policy") == "a"), "x", reference="z")
    with pytest.raises(EscalaError, match="lacks the column 'y'"):
        compare.episodes(rows, "y", reference="a")
