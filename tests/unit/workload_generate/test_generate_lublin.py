"""The Lublin-Feitelson model against its own distributions (closed forms) and against a list made by its authors'
program."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from escala.workload import generate
from escala.workload.generate_lublin import BUCKETS, CLASSES, arrivals, gamma_cdf, runtimes, sizes, weights

N = 100_000


@pytest.mark.parametrize("shape", [0.5, 3.8351, 8.1737, 14.0])
@pytest.mark.parametrize("x", [0.01, 1.0, 3.3, 9.7, 16.0, 40.0])
def test_gamma_distribution(x: float, shape: float) -> None:
    assert gamma_cdf(x, shape) == pytest.approx(float(stats.gamma.cdf(x, shape)), abs=1e-13)


@pytest.mark.parametrize("kind", CLASSES)
def test_sizes_have_the_distribution_in_closed_form(kind: str) -> None:
    p = CLASSES[kind]
    size = sizes(np.random.default_rng(1), N, 128, p)
    assert size.min() == 1 and size.max() <= 128
    hi = 7 - p.hi_below
    med = hi - p.med_below

    def exponent_below(x: float) -> float:
        first, second = np.clip([(x - p.low) / (med - p.low), (x - med) / (hi - med)], 0, 1)
        return float(p.prob * first + (1 - p.prob) * second)

    for k in (1, 2, 3, 4, 5, 8, 13, 16, 21, 32, 50, 64, 100):
        rounded, plain = exponent_below(np.floor(np.log2(k)) + 0.5), exponent_below(np.log2(k + 0.5))
        expected = p.serial + p.pow2 * rounded + (1 - p.serial - p.pow2) * plain
        assert (size <= k).mean() == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(N)), k


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("size", [1, 16, 128])
def test_run_times_are_hyper_gamma(kind: str, size: int) -> None:
    p = CLASSES[kind]
    logarithm = np.log(runtimes(np.random.default_rng(2), np.full(N, size), p))
    share = float(np.clip(p.pa * size + p.pb, 0, 1))

    def cdf(x: float) -> float:
        both = share * stats.gamma.cdf([x, 12], p.a1, scale=p.b1) + (1 - share) * stats.gamma.cdf(
            [x, 12], p.a2, scale=p.b2
        )
        return float(both[0] / both[1])

    for seconds in (100, 1_000, 10_000, 100_000):  # whole seconds: P(floor(t) < s) = P(t < s)
        assert (logarithm < np.log(seconds)).mean() == pytest.approx(cdf(np.log(seconds)), abs=4 / np.sqrt(N))


@pytest.mark.parametrize("kind", CLASSES)
def test_arrivals_follow_the_daily_cycle(kind: str) -> None:
    p = CLASSES[kind]
    weight = weights(p)
    assert weight.shape == (BUCKETS,) and weight.mean() == pytest.approx(1) and weight.min() > 0
    submit = arrivals(np.random.default_rng(3), N, p)
    assert (np.diff(submit) >= 0).all()
    found = np.bincount((submit % 86400 // 1800).astype(int), minlength=BUCKETS) / N
    assert np.corrcoef(found, weight)[0, 1] > 0.99
    assert 20 <= np.argmax(weight) <= 34  # the peak lies between 10 and 17 o'clock
    # gaps in operational time are gamma in the logarithm: undo the cycle
    cycle = np.concatenate([[0.0], np.cumsum(weight)]) * 1800
    points = np.floor(submit / 86400) * cycle[-1] + np.interp(submit % 86400, np.arange(BUCKETS + 1) * 1800.0, cycle)
    gap = np.diff(points)
    for seconds in (60, 600, 6_000):
        expected = stats.gamma.cdf(np.log(seconds), p.aarr * p.arar, scale=p.barr) / stats.gamma.cdf(
            13, p.aarr * p.arar, scale=p.barr
        )
        assert (gap < seconds).mean() == pytest.approx(expected, abs=0.01)  # submissions are whole seconds


def test_load_is_met_exactly_by_the_gaps() -> None:
    w = generate.lublin(jobs=5_000, cores=64, load=0.8, seed=4)
    offered = float((w.jobs["cores"] * w.jobs["runtime_s"]).sum()) / (64 * w.span_s)
    assert offered == pytest.approx(0.8, rel=1e-5)
    plain = generate.lublin(jobs=5_000, cores=64, seed=4)
    assert plain.jobs["cores"].equals(w.jobs["cores"]) and plain.jobs["runtime_s"].equals(w.jobs["runtime_s"])
    assert len(generate.lublin(jobs=0)) == 0 and len(generate.lublin(jobs=1, load=0.5)) == 1
    assert generate.lublin(jobs=3_000, cores=100).jobs["cores"].max() <= 100  # type: ignore[operator]


def test_same_distributions_as_the_authors_program(traces: Path) -> None:
    """lublin_256.swf: 10 000 jobs of that program, class "all", 256 nodes. Two-sample Kolmogorov-Smirnov, 0.1 % level
    0.0214."""
    with gzip.open(traces / "swf-synthetic" / "lublin_256.swf.gz", "rt") as file:
        rows = np.array([[int(value) for value in line.split()[:5]] for line in file if not line.startswith(";")])
    submit, runtime, size = rows[:, 1], rows[:, 3], rows[:, 4]
    ours = generate.lublin(jobs=50_000, cores=256, kind="all", seed=6).jobs
    pairs = {
        "gap": (np.diff(submit), np.diff(ours["submit_s"].to_numpy())),
        "run time": (runtime, ours["runtime_s"].to_numpy()),
        "size": (size, ours["cores"].to_numpy()),
        "work": (size * runtime, (ours["cores"] * ours["runtime_s"]).to_numpy()),
    }
    distances = {name: float(stats.ks_2samp(theirs, mine).statistic) for name, (theirs, mine) in pairs.items()}
    assert max(distances.values()) < 1.95 * np.sqrt(1 / 10_000 + 1 / 50_000), distances
