"""Generators of the slotted studies: the offered load, the ranges, and the published lists."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from escala.errors import EscalaError
from escala.workload import generate
from escala.workload.generate_slots import DEMANDS, SlotModel, bernoulli_model, cpu_memory_model, multi_resource_model

MODELS = {
    **{
        f"bernoulli {demand} {load}": bernoulli_model(load, demand=demand)
        for demand in DEMANDS
        for load in (0.1, 0.7, 1.3, 1.8)
    },
    **{f"cpu-memory {rate}": cpu_memory_model(rate) for rate in (0.6, 0.7, 0.8, 0.9)},
    **{
        f"multi {load} {machines}x{resources} {formula}": multi_resource_model(load, formula, machines, resources)
        for load in (0.3, 0.9, 1.2)
        for machines, resources in ((1, 1), (3, 2), (6, 3))
        for formula in ("plain", "printed")
    },
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_offered_load_within_one_per_cent_of_nominal(model: SlotModel) -> None:
    episodes = round(400_000 / model.rate / model.steps)  # 400 000 jobs: the standard error of the load is below 0.25 %
    jobs = model.draw(np.random.default_rng(7), episodes)
    work = float((jobs.length[:, None] * jobs.demand).sum()) / len(model.kinds)
    capacity = model.capacity * model.machines * model.steps * episodes
    assert work / capacity == pytest.approx(model.load, rel=0.01)
    assert np.diff(jobs.offset).sum() == len(jobs.step) and (np.diff(jobs.offset) >= 0).all()
    assert (
        jobs.step.min() >= 0
        and jobs.step.max() < model.steps
        and jobs.demand.min() >= 1
        and jobs.demand.max() <= model.capacity
    )


def test_nominal_load_is_what_was_asked() -> None:
    assert bernoulli_model(1.0).load == pytest.approx(1.0) and bernoulli_model(1.0).rate == pytest.approx(1 / 1.845)
    assert bernoulli_model(1.0, demand="clip10").rate == pytest.approx(0.375, abs=5e-4)
    assert bernoulli_model(1.0, demand="six-to-ten").rate == pytest.approx(0.443, abs=5e-4)
    ceiling = bernoulli_model(1.9)  # a job at every step
    assert ceiling.rate == 1.0 and ceiling.load == pytest.approx(1.845)
    assert [round(cpu_memory_model(rate).load, 2) for rate in (0.6, 0.7, 0.8, 0.9)] == pytest.approx(
        [0.61, 0.72, 0.82, 0.92], abs=0.006
    )
    assert multi_resource_model(0.9).load == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("load", "machines", "q", "plain"),
    [  # printed formula: rate and plain load, worked out by hand from q^2 5.25 7.8 / 10 / machines
        (0.1, 2, 0.22, 0.45), (0.1, 3, 0.27, 0.37), (0.1, 4, 0.31, 0.32), (0.1, 6, 0.38, 0.26), (0.5, 2, 0.49, 1.01),
        (0.5, 6, 0.86, 0.58), (0.9, 3, 0.81, 1.11), (0.9, 6, 1.15, 0.78), (1.2, 4, 1.08, 1.11), (1.2, 6, 1.33, 0.90),
    ],
)  # fmt: skip
def test_printed_formula(load: float, machines: int, q: float, plain: float) -> None:
    model = multi_resource_model(load, "printed", machines)
    assert model.rate == pytest.approx(q, abs=0.006) and model.load == pytest.approx(plain, abs=0.006)


def test_rates_above_one_are_sure_arrivals_and_one_draw() -> None:
    model = multi_resource_model(1.2, "printed", 6)  # rate 1.33
    jobs = model.draw(np.random.default_rng(0), 500)
    arrivals = np.bincount(
        np.repeat(np.arange(500), np.diff(jobs.offset)) * model.steps + jobs.step, minlength=500 * model.steps
    )
    assert set(arrivals.tolist()) == {1, 2} and arrivals.mean() == pytest.approx(model.rate, abs=0.01)


def test_ranges_of_each_model() -> None:
    rng = np.random.default_rng(3)
    one = bernoulli_model(1.0).draw(rng, 3000)
    assert set(one.length.tolist()) == {1, 2, 3, 10, 11, 12, 13, 14, 15} and set(one.demand.ravel().tolist()) == {
        1,
        2,
        5,
        6,
        7,
        8,
        9,
        10,
    }
    assert (one.length <= 3).mean() == pytest.approx(0.8, abs=0.01) and (one.demand <= 2).mean() == pytest.approx(
        0.5, abs=0.01
    )
    # at most one job a step
    assert all(len(set(one.step[a:b].tolist())) == b - a for a, b in zip(one.offset, one.offset[1:]))
    two = cpu_memory_model(0.9).draw(rng, 2000)
    assert set(map(tuple, np.sort(two.demand, axis=1).tolist())) == {(1, 3), (1, 4), (1, 5)}
    assert (two.demand[:, 0] > 1).mean() == pytest.approx(0.5, abs=0.02)
    four = multi_resource_model(0.9).draw(rng, 500)
    assert set(four.length.tolist()) == {*range(1, 11), *range(14, 21)}
    assert set(four.demand.max(axis=1).tolist()) == set(range(5, 11)) and set(four.demand.min(axis=1).tolist()) == set(
        range(1, 6)
    )
    assert multi_resource_model(0.9, resources=1).draw(rng, 50).demand.min() >= 5


def test_workloads() -> None:
    one = generate.bernoulli(load=1.0, seed=5)
    assert (
        one.max_cores == 10
        and not one.jobs["single_node"].any()
        and (one.jobs["runtime_s"] == one.jobs["walltime_s"]).all()
    )
    assert one.jobs["submit_s"].n_unique() == len(one) and one.jobs["submit_s"].max() < 100  # type: ignore[operator]
    two = generate.cpu_memory(seed=5)
    assert two.jobs["single_node"].all() and "demand_memory" in two.jobs.columns
    many = generate.multi_resource(load=0.9, machines=2, resources=3)
    assert many.max_cores == 20 and {"demand_memory", "demand_resource3"} <= set(many.jobs.columns)
    assert len(generate.bernoulli(load=0.0)) == 0


@pytest.mark.parametrize("name", generate.GENERATORS)
def test_seeds(name: str) -> None:
    first, again, other = (generate.by_name(name, seed=seed) for seed in (1, 1, 2))
    assert first.jobs.equals(again.jobs) and not first.jobs.equals(other.jobs)
    assert generate.by_name(name, seed=np.random.default_rng(1)).jobs.equals(first.jobs)
    assert "generated" in first.source and first.max_cores is not None


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bernouli", {}, "did you mean 'bernoulli'"),
        ("lublin", {"job": 3}, "did you mean 'jobs'"),
        ("bernoulli", {"demand": "odd"}, "known: author"),
        ("bernoulli", {"load": -1.0}, "rate"),
        ("bernoulli", {"steps": 0}, "at least 1"),
        ("multi-resource", {"formula": "odd"}, "plain, printed"),
        ("multi-resource", {"load": -1.0, "formula": "printed"}, "load"),
        ("multi-resource", {"resources": 0}, "at least 1"),
        ("multi-resource", {"machines": 0}, "at least 1"),
        ("multi-resource", {"horizon": 1}, "range short"),
        ("multi-resource", {"p_long": 2.0}, "probability"),
        ("lublin", {"kind": "odd"}, "batch, interactive, all"),
        ("lublin", {"cores": 4}, "at least"),
        ("lublin", {"jobs": -1}, "jobs"),
        ("lublin", {"load": 0.0}, "load"),
        ("grid5000", {"cluster": "odd"}, "known: econome"),
        ("grid5000", {"days": 0}, "days"),
    ],
)
def test_refusals_are_one_line(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(EscalaError, match=message) as caught:
        generate.by_name(name, **options)
    assert "\n" not in str(caught.value)


def _published(folder: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for pack in ("series", "test-even"):
        with gzip.open(folder / f"{pack}.csv.gz", "rt") as file:
            rows += list(csv.DictReader(file))
    return rows


def test_same_distributions_as_the_published_lists(traces: Path) -> None:
    """Lengths and demands of 31 650 published jobs; the lists are independent draws, so a chi-square test applies."""
    from scipy import stats

    rows = [
        row
        for row in _published(traces / "author" / "r1-bench")
        if row["set"].startswith(("Benchmark", "series", "test"))
    ]
    assert len(rows) > 20_000
    ours = bernoulli_model(1.0).draw(np.random.default_rng(11), 20_000)
    for published, generated in (
        (np.array([int(row["res"]) for row in rows]), ours.demand[:, 0]),
        (np.array([int(float(row["runtime"])) for row in rows]), ours.length),
    ):
        values = np.unique(generated)
        assert set(np.unique(published).tolist()) == set(values.tolist())
        table = np.array([[(sample == value).sum() for value in values] for sample in (published, generated)])
        assert stats.chi2_contingency(table).pvalue > 0.001
