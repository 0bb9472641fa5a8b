"""Days of a Grid'5000-like cluster: users who come and submit the same request again and again, much of which ends early.

The nine clusters and their figures are those of table 2 of R. B. Casagrande's dissertation (2020): cores, jobs, share of submissions
less than 5 min after the previous one, utilisation. How the jobs look follows the public days of the Taurus cluster that its author
released (45 724 jobs): hours of the day, requests, sizes, run times against requests, repeats. `docs/generators.md` says how close it
comes.

The model. *Visits* begin as a Poisson process with a daily and weekly rhythm and a level that changes from week to week. A visit is
quick (a burst: gaps mostly below 5 min) or slow (the user looks at the outcome first), and light (trials: short requests, mostly ended
at once) or heavy. Each visit belongs to a user, repeats the request of its first job most of the time, and users have a favourite
request. Two numbers of each cluster are solved, not set: the mean work of a job (from utilisation and jobs a day) fixes the requested
times of the heavy jobs, analytically; `quick_share` is fitted by `bench/fit_grid5000.py`. No job asks for more than a day, as in the
released days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from escala.errors import EscalaError
from escala.workload.grid5000_clusters import CLUSTERS, DAY_S, Cluster
from escala.workload.table import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WARM_UP_DAYS = 3  # visits that began before time 0 still submit


HOURS = np.array(
    [25, 26, 25, 18, 19, 18, 19, 30, 35, 75, 96, 80, 51, 54, 52, 51, 50, 54, 42, 55, 39, 32, 27, 27], np.float64
)  # fmt: skip
"""Share of submissions in each hour of the day, 1/1000 (Taurus)."""
WEEKDAYS = np.array([1.1, 1.1, 1.15, 1.1, 1.05, 0.75, 0.75])
"""Level of each day of the week; day 0 is a Monday."""
WEEK_SHAPE = 4.0  # gamma shape of a week's level: relative standard deviation 1/2

QUICK_GAP = (50.0, 1.3)  # median s and log standard deviation of the gaps in a quick visit: 92 % below 5 min
SLOW_GAP = (1100.0, 1.35)  # in a slow visit: 17 % below 5 min
QUICK_SIZE = (4.5, 1.15, 400)  # median, log standard deviation and maximum of the jobs of a quick visit
SLOW_SIZE = (2.2, 0.9, 60)
LIGHT_QUICK = 0.75  # probability that a quick visit is light
LIGHT_SLOW = 0.3

LIGHT_WALLTIMES = {10: 0.06, 20: 0.30, 30: 0.08, 60: 0.36, 120: 0.14, 180: 0.02, 360: 0.04}  # minutes -> share
HEAVY_WALLTIMES = {60: 0.08, 120: 0.10, 180: 0.05, 240: 0.06, 300: 0.03, 360: 0.42, 480: 0.04, 600: 0.04, 720: 0.07, 840: 0.04, 1440: 0.07}


@dataclass(frozen=True)
class Outcome:
    """How jobs end: at their walltime, failed early, or done; the run time of the last two is walltime x Beta(a, b)."""

    at_limit: float
    failed: float
    failed_beta: tuple[float, float]
    done_beta: tuple[float, float]

    @property
    def mean(self) -> float:
        """Mean of run time / walltime."""
        (a, b), (c, d) = self.failed_beta, self.done_beta
        return self.at_limit + self.failed * a / (a + b) + (1 - self.at_limit - self.failed) * c / (c + d)


LIGHT = Outcome(at_limit=0.15, failed=0.45, failed_beta=(0.4, 6.0), done_beta=(0.5, 2.0))
HEAVY = Outcome(at_limit=0.47, failed=0.25, failed_beta=(0.3, 3.0), done_beta=(2.0, 1.5))

SUBNODE = 0.12  # share of requests below a node: half of them one core, the rest a third of a node
SAME_REQUEST = 0.75  # a job of a visit repeats the request of the visit
FAVOURITE = 0.6  # a visit's request is the user's favourite
USER_PLACES = 40  # users at one time; the k-th place makes visits with probability ~ 1/k and changes hands after USER_DAYS
USER_DAYS = 90.0


@dataclass(frozen=True)
class _Visits:
    """Visits in order of their beginning. All arrays [visits]."""

    begin: Floats  # s
    quick: NDArray[np.bool_]
    light: NDArray[np.bool_]
    jobs: Ints
    user: Ints
    size_q: Floats  # the request as quantiles: of the size
    wall_q: Floats  # and of the requested time


def grid5000(cluster: str = "orion", days: float = 30, seed: int | np.random.Generator = 0) -> Workload:
    """`days` days of jobs for a cluster of table 2; day 0 is a Monday. `max_cores` is the cluster's cores.

    Jobs have users, requested times in whole minutes, whole seconds elsewhere, and a status (COMPLETED, FAILED, TIMEOUT). Loads and
    counts of single months vary about as much as real ones; the figures of table 2 are met by the long run. Raises EscalaError on an
    unknown cluster or days <= 0.
    """
    if cluster not in CLUSTERS:
        raise EscalaError(f"unknown cluster {cluster!r}; known: {', '.join(sorted(CLUSTERS))}")
    if not (math.isfinite(days) and days > 0):
        raise EscalaError(f"the number of days is {days}; give a number above 0")
    rng = np.random.default_rng(seed)
    label = f", seed {seed}" if isinstance(seed, int) else ""
    columns = draw(CLUSTERS[cluster], days, rng)
    source = f"generated: Grid'5000-like, cluster {cluster}, {days:g} days{label}"
    return Workload.from_jobs(columns, name=f"grid5000-{cluster}", max_cores=CLUSTERS[cluster].cores, source=source)


def draw(cluster: Cluster, days: float, rng: np.random.Generator) -> dict[str, ArrayLike]:
    """The columns of `days` days of jobs, in order of submission."""
    visits = _visits(cluster, days, rng)
    visit = np.repeat(np.arange(len(visits.begin)), visits.jobs)
    submit = _submissions(visits, visit, rng)
    size_q, wall_q = _requests(visits, visit, rng)
    light = visits.light[visit]
    cores = _sizes(cluster)[1][np.searchsorted(_sizes(cluster)[0], size_q, side="right")]
    walltime = np.where(light, _walltime(LIGHT_WALLTIMES, 0.0, wall_q), _walltime(HEAVY_WALLTIMES, heavy_tilt(cluster), wall_q)) * 60.0
    runtime, status = _outcomes(walltime, light, rng)
    order = np.argsort(submit, kind="stable")
    order = order[(submit[order] >= 0) & (submit[order] < days * DAY_S)]
    return {
        "submit_s": submit[order],
        "runtime_s": runtime[order],
        "walltime_s": walltime[order],
        "cores": cores[order],
        "user": visits.user[visit][order].astype(str),
        "status": status[order],
    }


def _visits(cluster: Cluster, days: float, rng: np.random.Generator) -> _Visits:
    """Visits from WARM_UP_DAYS before time 0 to the end: an hourly Poisson process whose rate is hour x weekday x week."""
    first, last = -WARM_UP_DAYS, math.ceil(days)
    day = np.repeat(np.arange(first, last), 24)
    week = np.floor_divide(day, 7) - first // 7
    levels = rng.gamma(WEEK_SHAPE, 1 / WEEK_SHAPE, int(week.max()) + 1)
    level = levels[week] * WEEKDAYS[day % 7] / WEEKDAYS.mean() * np.tile(HOURS / HOURS.sum(), last - first)
    quick_rate = cluster.jobs_per_day * cluster.quick_share / _mean(QUICK_SIZE)
    slow_rate = cluster.jobs_per_day * (1 - cluster.quick_share) / _mean(SLOW_SIZE)
    counts = rng.poisson(level * (quick_rate + slow_rate))
    hour = np.repeat(np.arange(first * 24, last * 24), counts)
    begin = np.sort((hour + rng.random(len(hour))) * 3600.0)
    quick = rng.random(len(begin)) < quick_rate / (quick_rate + slow_rate)
    light = rng.random(len(begin)) < np.where(quick, LIGHT_QUICK, LIGHT_SLOW)
    jobs = np.where(quick, _counts(QUICK_SIZE, rng.random(len(begin))), _counts(SLOW_SIZE, rng.random(len(begin))))
    return _Visits(begin, quick, light, jobs, *_users(begin, rng))


def _users(begin: Floats, rng: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """User, and the request as quantiles of size and time, of each visit [visits]."""
    popularity = 1.0 / np.arange(1, USER_PLACES + 1)
    place = rng.choice(USER_PLACES, len(begin), p=popularity / popularity.sum())
    handover = rng.random(USER_PLACES)
    tenure = np.floor(begin / DAY_S / USER_DAYS + handover[place]).astype(np.int64) + 1
    tenures = int(tenure.max(initial=0)) + 1
    favourites = rng.random((2, tenures, USER_PLACES))
    fresh = rng.random((2, len(begin)))
    request = np.where(rng.random(len(begin)) < FAVOURITE, favourites[:, tenure, place], fresh)
    return tenure * USER_PLACES + place, request[0], request[1]


def _submissions(visits: _Visits, visit: Ints, rng: np.random.Generator) -> Floats:
    """Submission times, whole s [jobs]: the visit's beginning plus the gaps so far."""
    quick = visits.quick[visit]
    median, spread = np.where(quick, QUICK_GAP[0], SLOW_GAP[0]), np.where(quick, QUICK_GAP[1], SLOW_GAP[1])
    gap = median * np.exp(spread * rng.standard_normal(len(visit)))
    first = np.cumsum(visits.jobs) - visits.jobs
    gap[first] = 0.0
    elapsed = np.cumsum(gap)
    return np.floor(visits.begin[visit] + elapsed - elapsed[first][visit])


def _requests(visits: _Visits, visit: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Quantiles of size and requested time of each job [jobs]: the visit's, or new ones."""
    same = rng.random(len(visit)) < SAME_REQUEST
    fresh = rng.random((2, len(visit)))
    return np.where(same, visits.size_q[visit], fresh[0]), np.where(same, visits.wall_q[visit], fresh[1])


def _outcomes(walltime: Floats, light: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Floats, NDArray[np.str_]]:
    """Run time, whole s >= 1, and status of each job [jobs]."""
    runtime, status = walltime.copy(), np.full(len(walltime), "TIMEOUT", dtype="<U9")
    for outcome, mine in ((LIGHT, light), (HEAVY, ~light)):
        end = rng.random(len(walltime))
        failed = mine & (end < outcome.failed)
        done = mine & (end >= outcome.failed + outcome.at_limit)
        for jobs, (a, b), name in ((failed, outcome.failed_beta, "FAILED"), (done, outcome.done_beta, "COMPLETED")):
            share = rng.beta(a, b, int(jobs.sum()))
            runtime[jobs] = np.clip(np.ceil(walltime[jobs] * share), 1.0, walltime[jobs] - 1.0)
            status[jobs] = name
    return runtime, status


@cache
def _sizes(cluster: Cluster) -> tuple[Floats, Ints]:
    """Distribution of the requested cores: cumulative probability and cores, both [sizes], in ascending order of cores."""
    third = max(1, cluster.node_cores // 3)
    nodes = np.arange(1, cluster.nodes + 1)
    weight = nodes**-cluster.size_exponent
    cores = np.concatenate([[1, third], nodes * cluster.node_cores])
    share = np.concatenate([[SUBNODE / 2, SUBNODE / 2], (1 - SUBNODE) * weight / weight.sum()])
    return _cumulative(share), cores.astype(np.int64)


def mean_cores(cluster: Cluster) -> float:
    """Mean of the requested cores."""
    cumulative, cores = _sizes(cluster)
    return float(np.diff(cumulative, prepend=0.0) @ cores)


def _cumulative(share: Floats) -> Floats:
    cumulative = np.cumsum(share)
    return np.asarray(cumulative / cumulative[-1], np.float64)


def _tilted(walltimes: dict[int, float], tilt: float) -> tuple[Floats, Floats]:
    """Requested minutes and their shares, the share of each multiplied by (minutes / 360)^tilt."""
    minutes = np.array(sorted(walltimes), np.float64)
    share = np.array([walltimes[int(m)] for m in minutes]) * (minutes / 360.0) ** tilt
    return minutes, share / share.sum()


def _walltime(walltimes: dict[int, float], tilt: float, quantile: Floats) -> Floats:
    minutes, share = _tilted(walltimes, tilt)
    return minutes[np.searchsorted(_cumulative(share), quantile, side="right")]


def light_share(cluster: Cluster) -> float:
    """Share of the jobs that are light."""
    return cluster.quick_share * LIGHT_QUICK + (1 - cluster.quick_share) * LIGHT_SLOW


@cache
def heavy_tilt(cluster: Cluster) -> float:
    """The tilt of the heavy jobs' requested times that gives jobs the mean work of `Cluster.work_s` (bisection; requests and sizes are
    independent)."""
    light = light_share(cluster)
    minutes, share = _tilted(LIGHT_WALLTIMES, 0.0)
    wanted_s = (cluster.work_s / mean_cores(cluster) - light * LIGHT.mean * 60.0 * float(minutes @ share)) / ((1 - light) * HEAVY.mean)
    low, high = -12.0, 12.0
    for _ in range(80):
        tilt = (low + high) / 2
        minutes, share = _tilted(HEAVY_WALLTIMES, tilt)
        low, high = (tilt, high) if 60.0 * float(minutes @ share) < wanted_s else (low, tilt)
    return tilt


def _shares(median: float, spread: float, most: int) -> Floats:
    """Probability of 1 .. most jobs in a visit: a log-normal density at whole numbers."""
    n = np.arange(1, most + 1)
    weight = np.exp(-0.5 * (np.log(n / median) / spread) ** 2) / n
    return np.asarray(weight / weight.sum(), np.float64)


@cache
def _mean(size: tuple[float, float, int]) -> float:
    share = _shares(*size)
    return float(share @ np.arange(1, len(share) + 1))


def _counts(size: tuple[float, float, int], quantile: Floats) -> Ints:
    return (np.searchsorted(_cumulative(_shares(*size)), quantile, side="right") + 1).astype(np.int64)
