"""The Lublin-Feitelson model of rigid jobs: sizes, run times and arrivals with a daily cycle.

U. Lublin, D. G. Feitelson: The Workload on Parallel Supercomputers: Modeling the Characteristics of Rigid Jobs, JPDC
63(11):1105-1122,
2003. Parameters are those of the paper and of its authors' program; the program's conventions (floors, cut-offs, cycle)
are kept, its random numbers are not.

- Size: serial with probability `serial`; else 2^x with x two-stage uniform: U(low, med) with probability `prob`, else
  U(med, hi); with probability `pow2` (of all jobs) x is rounded to a whole number. hi = log2(machine size); med = hi -
  `med_below`.
- Run time: ln(t) hyper-gamma: gamma(a1, b1) with probability p, else gamma(a2, b2); p = pa x size + pb, kept in [0, 1].
  Values above e^12 s are redrawn.
- Arrivals: in the rush hours ln(gap) is gamma(aarr, barr); over all hours aarr is multiplied by `arar`. The daily cycle
  stretches these gaps: a half hour of the day counts with a weight taken from the distribution gamma(anum, bnum) of
  arrivals over the half hours 11..58 of a day (mean weight 1). Gaps above e^13 are redrawn.

The model has no requested times (walltime = runtime here), no users and no weeks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError
from escala.workload.settings import checked
from escala.workload.table import Workload

Floats = NDArray[np.float64]

BUCKET_S = 1800.0
BUCKETS = 48
CYCLE_START = 11  # the cycle runs over the half hours 11 .. 58
LONGEST_LN_RUNTIME = 12.0
LONGEST_LN_GAP = 13.0


@dataclass(frozen=True)
class LublinParameters:
    """The parameters of one class of jobs; see the module."""

    serial: float
    pow2: float
    low: float
    med_below: float
    hi_below: float  # hi = log2(machine size) - hi_below
    prob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float


CLASSES: dict[str, LublinParameters] = {
    "batch": LublinParameters(
        serial=0.2927, pow2=0.6686, low=1.2, med_below=2.0, hi_below=0.0, prob=0.875,
        a1=6.57, b1=0.823, a2=639.1, b2=0.0156, pa=-0.003, pb=0.6986,
        aarr=6.0415, barr=0.8531, anum=6.1271, bnum=5.2740, arar=1.0519,
    ),
    "interactive": LublinParameters(
        serial=0.1541, pow2=0.625, low=1.0, med_below=2.5, hi_below=1.5, prob=0.705,
        a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856, pa=-0.0118, pb=0.9156,
        aarr=6.5510, barr=0.6621, anum=8.9186, bnum=3.6680, arar=0.9797,
    ),
    "all": LublinParameters(
        serial=0.244, pow2=0.576, low=0.8, med_below=2.5, hi_below=0.0, prob=0.86,
        a1=4.2, b1=0.94, a2=312.0, b2=0.03, pa=-0.0054, pb=0.78,
        aarr=10.2303, barr=0.4871, anum=8.1737, bnum=3.9631, arar=1.0225,
    ),
}  # fmt: skip
"""Batch jobs, interactive jobs, and one class for the whole of a log without types; the machine of the paper has 128
nodes."""


@checked
def lublin(
    jobs: int = 10_000,
    cores: int = 128,
    kind: str = "batch",
    load: float | None = None,
    seed: int | np.random.Generator = 0,
) -> Workload:
    """`jobs` jobs for a machine of `cores` cores, from the model's class `kind` (batch, interactive, all).

    `load`: the offered load, sum(cores x runtime) / (machine x span of the submissions), reached by scaling all gaps;
    None keeps the model's own gaps. Note that those were fitted to machines of 128 nodes: on others the load differs.
    Raises EscalaError on a machine so small that the ranges of the sizes vanish.
    """
    if kind not in CLASSES:
        raise EscalaError(f"unknown class {kind!r} of the Lublin model; known: {', '.join(CLASSES)}")
    if jobs < 0:
        raise EscalaError(f"the number of jobs is {jobs}; give a number >= 0")
    p = CLASSES[kind]
    least = math.ceil(2.0 ** (p.low + p.med_below + p.hi_below))
    if cores < least:
        raise EscalaError(f"{kind} jobs of the Lublin model need a machine of at least {least} cores, not {cores}")
    if load is not None and not load > 0:
        raise EscalaError(f"the load is {load}; give a number above 0")
    rng = np.random.default_rng(seed)
    submit = arrivals(rng, jobs, p)
    size = sizes(rng, jobs, cores, p)
    runtime = runtimes(rng, size, p)
    if load is not None and jobs > 1:
        span = float(size @ runtime) / (load * cores)
        submit = np.rint((submit - submit[0]) * span / (submit[-1] - submit[0]))
    return Workload.from_jobs(
        {"submit_s": submit, "runtime_s": runtime, "cores": size, "queue": np.full(jobs, kind)},
        name=f"lublin-{kind}-{cores}",
        max_cores=cores,
        source=f"generated: Lublin-Feitelson 2003, {kind}, {cores} cores"
        + (f", seed {seed}" if isinstance(seed, int) else ""),
    )


def sizes(rng: np.random.Generator, jobs: int, cores: int, p: LublinParameters) -> NDArray[np.int64]:
    """Cores of each job [jobs]; cut at the machine where rounding to a power of two goes beyond it."""
    hi = math.log2(cores) - p.hi_below
    med = hi - p.med_below
    first = rng.random(jobs) < p.prob
    low_end, high_end = np.where(first, p.low, med), np.where(first, med, hi)
    exponent = low_end + rng.random(jobs) * (high_end - low_end)
    kind = rng.random(jobs)
    exponent = np.where(kind <= p.serial + p.pow2, np.floor(exponent + 0.5), exponent)
    parallel = np.floor(2.0**exponent + 0.5)
    return np.where(kind <= p.serial, 1, np.minimum(parallel, cores)).astype(np.int64)


def runtimes(rng: np.random.Generator, size: NDArray[np.int64], p: LublinParameters) -> Floats:
    """Run time of each job, whole s [jobs]."""
    share = np.clip(p.pa * size + p.pb, 0.0, 1.0)
    logarithm = np.full(len(size), np.inf)
    while (redraw := np.flatnonzero(logarithm > LONGEST_LN_RUNTIME)).size:
        first = rng.random(redraw.size) <= share[redraw]
        logarithm[redraw] = rng.gamma(np.where(first, p.a1, p.a2), np.where(first, p.b1, p.b2))
    return np.floor(np.exp(logarithm))


def arrivals(rng: np.random.Generator, jobs: int, p: LublinParameters) -> Floats:
    """Submission of each job, whole s from midnight [jobs].

    A gap is a number of points; a half hour takes as many points as its weight, so arrivals are a renewal process run
    through the inverse of the cumulative weight.
    """
    logarithm = np.full(jobs, np.inf)
    while (redraw := np.flatnonzero(logarithm > LONGEST_LN_GAP)).size:
        logarithm[redraw] = rng.gamma(p.aarr * p.arar, p.barr, redraw.size)
    points = np.cumsum(np.exp(logarithm) / BUCKET_S)
    cycle = np.concatenate([[0.0], np.cumsum(weights(p))])
    days, rest = np.divmod(points, cycle[-1])
    return np.floor(days * 86400.0 + np.interp(rest, cycle, np.arange(BUCKETS + 1) * BUCKET_S))


def weights(p: LublinParameters) -> Floats:
    """Weight of each half hour of the day [48], mean 1, from midnight."""
    edges = [gamma_cdf((bucket - 0.5) / p.bnum, p.anum) for bucket in range(CYCLE_START, CYCLE_START + BUCKETS + 1)]
    weight = np.zeros(BUCKETS)
    for offset, mass in enumerate(np.diff(edges)):
        weight[(CYCLE_START + offset - 1) % BUCKETS] = mass  # bucket 1 is the first half hour of the day
    return weight / weight.mean()


def gamma_cdf(x: float, shape: float) -> float:
    """P(X <= x) of the gamma distribution with scale 1: the series e^-x x^a sum_n x^n / Gamma(a + n + 1), to double
    precision."""
    term = total = 1.0 / shape
    n = shape
    while term > total * 1e-17:
        n += 1.0
        term *= x / n
        total += term
    return total * math.exp(-x + shape * math.log(x) - math.lgamma(shape))
