"""The Grid'5000-like generator against the published figures of its clusters, within the tolerances that its
documentation states."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

from escala.platform import PRESETS
from escala.workload.describe import Description, describe
from escala.workload.generate_grid5000 import grid5000
from escala.workload.grid5000_clusters import CLUSTERS
from escala.workload.grid5000_visits import HEAVY, LIGHT, LONG, NIGHT, QUICK, SLOW, Pace, Work
from escala.workload.table import Workload

DAYS = 2500
TABLE_3 = {  # days in the groups #1 .. #5
    "econome": (259, 520, 504, 271, 39),
    "graphite": (487, 705, 427, 149, 24),
    "orion": (659, 777, 496, 129, 28),
    "taurus": (441, 947, 612, 130, 22),
}


@cache
def _long(cluster: str) -> list[Workload]:
    return [grid5000(cluster, DAYS, seed) for seed in (11, 12)]


def _mean(cluster: str, key: str) -> float:
    return float(np.mean([_described(cluster, run)[key] for run in range(2)]))


@cache
def _described(cluster: str, run: int) -> Description:
    return describe(_long(cluster)[run])


def test_clusters_are_the_preset_platforms() -> None:
    assert {name: (c.nodes, c.node_cores) for name, c in CLUSTERS.items()} == PRESETS


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_table_2_is_met(cluster: str) -> None:
    c = CLUSTERS[cluster]
    assert _mean(cluster, "jobs") / DAYS == pytest.approx(c.jobs_per_day, rel=0.06)
    assert _mean(cluster, "sequential_share") == pytest.approx(c.sequential, abs=0.03)
    assert _mean(cluster, "utilisation") == pytest.approx(c.utilisation, rel=0.12)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_shares_are_shares_and_make_the_mean_work_of_a_job(cluster: str) -> None:
    c = CLUSTERS[cluster]
    light = 1 - c.long_share - c.heavy_share
    assert c.heavy_share >= 0 and light > 0 and 0 <= c.heavy_if_slow <= 1 and c.quick_share + c.long_share < 1
    share, cores = c.sizes
    assert share.sum() == pytest.approx(1) and cores.max() == c.cores
    run_s = light * LIGHT.mean_s + c.heavy_share * HEAVY.mean_s + c.long_share * LONG.mean_s
    assert float(share @ cores) * run_s == pytest.approx(c.utilisation * c.cores * 86400 / c.jobs_per_day, rel=1e-9)


@pytest.mark.parametrize("work", [LIGHT, HEAVY, LONG], ids=["light", "heavy", "long"])
def test_run_times_have_the_stated_mean_and_ends(work: Work) -> None:
    rng = np.random.default_rng(5)
    walltime = work.walltime_s(rng.random(400_000))
    runtime, status = work.ends(walltime, rng)
    assert runtime.mean() == pytest.approx(work.mean_s, rel=0.01)
    assert (status == "TIMEOUT").mean() == pytest.approx(work.at_limit, abs=0.005)
    assert (status == "FAILED").mean() == pytest.approx(work.failed, abs=0.005)


@pytest.mark.parametrize("pace", [QUICK, SLOW, NIGHT], ids=["quick", "slow", "night"])
def test_visits_have_the_stated_mean_size(pace: Pace) -> None:
    sizes = pace.sizes(np.random.default_rng(6).random(400_000))
    assert sizes.min() == 1 and sizes.max() <= pace.most and sizes.mean() == pytest.approx(pace.mean, rel=0.01)


@pytest.mark.parametrize("cluster", TABLE_3)
def test_days_fall_into_the_groups_about_as_published(cluster: str) -> None:
    published = np.array(TABLE_3[cluster]) / sum(TABLE_3[cluster])
    found = np.mean([list(_described(cluster, run)["day_groups"].values()) for run in range(2)], axis=0)
    assert np.abs(found / found.sum() - published).max() < 0.16


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_jobs_are_possible_and_end_badly_more_often_than_not(cluster: str) -> None:
    jobs = _long(cluster)[0].jobs
    assert (
        jobs["cores"].max() <= CLUSTERS[cluster].cores
        and jobs["submit_s"].min() >= 0
        and jobs["submit_s"].max() < DAYS * 86400
    )  # type: ignore[operator]
    assert (
        (jobs["runtime_s"] >= 1).all()
        and (jobs["runtime_s"] <= jobs["walltime_s"]).all()
        and jobs["walltime_s"].max() <= 7 * 86400
    )  # type: ignore[operator]
    assert ((jobs["runtime_s"] == jobs["walltime_s"]) == (jobs["status"] == "TIMEOUT")).all()
    assert (jobs["runtime_s"] % 1 == 0).all() and (jobs["walltime_s"] % 60 == 0).all()
    assert (jobs["status"] != "COMPLETED").mean() > 0.5  # "most jobs are failed ones" (figure 11)


def test_taurus_resembles_the_released_days() -> None:
    """Figures of the 45 724 released jobs (1 362 days), each with the width that the documentation states."""
    jobs = _long("taurus")[0].jobs
    ratio = jobs["runtime_s"] / jobs["walltime_s"]
    per_day = (jobs["submit_s"] // 86400).value_counts()["count"]
    released = {"mean run/walltime": 0.46, "at the walltime": 0.32, "below a tenth": 0.38, "at most 5 min": 0.31}
    found = [ratio.mean(), (ratio >= 1).mean(), (ratio <= 0.1).mean(), (jobs["runtime_s"] <= 300).mean()]
    assert found == pytest.approx(list(released.values()), abs=0.06)
    assert [per_day.quantile(q) for q in (0.25, 0.5, 0.75, 0.95)] == pytest.approx([10, 22, 41, 84], rel=0.3)
    users = jobs.group_by(jobs["submit_s"] // 86400).agg(pl.col("user").n_unique())["user"]
    assert 3 <= users.median() <= 7  # released: 4  # type: ignore[operator]


def test_rhythm_of_day_and_week() -> None:
    submit = pl.concat([run.jobs["submit_s"] for run in _long("grisou")]).to_numpy()
    hours = np.bincount((submit % 86400 // 3600).astype(int), minlength=24)
    assert hours[9:18].sum() > 2 * hours[:8].sum() and np.argmax(hours) in (9, 10, 11, 12)
    days = np.bincount((submit // 86400 % 7).astype(int), minlength=7)
    assert days[5:].max() < days[:5].min()


def test_a_month_is_about_a_month() -> None:
    w = grid5000("orion", days=30, seed=0)
    assert w.max_cores == 48 and 0 < w.span_s < 30 * 86400
    counts = [len(grid5000("orion", days=30, seed=seed)) for seed in range(40)]
    assert np.mean(counts) == pytest.approx(30 * CLUSTERS["orion"].jobs_per_day, rel=0.15)
    assert len(grid5000("ecotype", days=0.5)) < len(grid5000("ecotype", days=20))
