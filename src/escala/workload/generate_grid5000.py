"""Days of a Grid'5000-like cluster: users who come and submit the same request again and again, much of which ends
early.

The nine clusters and their figures are those of table 2 of R. B. Casagrande's dissertation (2020): cores, jobs, share
of submissions less than 5 min after the previous one, utilisation (`grid5000_clusters`). How the jobs look follows the
public days of the Taurus cluster (`grid5000_visits`). `docs/generators.md` says how close it comes.

The model. *Visits* begin as a Poisson process with a daily and weekly rhythm and a level that changes from week to
week. A visit is quick (a burst: gaps mostly below 5 min), slow (most often the user looks at the outcome first) or a
reservation for a night, a weekend or a week, mostly made in the evening. Quick and slow visits are light (trials: short
requests, mostly ended at once) or heavy. Each visit belongs to a user, repeats the request of its first job most of the
time, and users have a favourite request. Two numbers of each cluster are solved, not set: the share of heavy jobs makes
the mean work of a job that utilisation and jobs a day imply, in closed form; the share of quick visits is fitted to the
sequential submissions by `bench/fit_grid5000.py`. In the released days requests are cut at 24 h, where 5 % of all jobs
pile up; here they are not (cut them alike to compare, see `docs/generators.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from escala.errors import EscalaError
from escala.workload import grid5000_visits as model
from escala.workload.grid5000_clusters import CLUSTERS, DAY_S, HEAVY_IN_QUICK, Cluster
from escala.workload.grid5000_visits import Floats, Ints
from escala.workload.settings import checked
from escala.workload.table import Workload

WARM_UP_DAYS = 7  # visits that began before time 0 still submit
PACES = (model.QUICK, model.SLOW, model.NIGHT)
WORKS = (model.LIGHT, model.HEAVY, model.LONG)


@dataclass(frozen=True)
class _Visits:
    """Visits in order of their beginning. All arrays [visits]."""

    begin: Floats  # s
    pace: Ints  # index into PACES
    work: Ints  # index into WORKS
    jobs: Ints
    user: Ints
    size_q: Floats  # the request as quantiles: of the size
    wall_q: Floats  # and of the requested time


@checked
def grid5000(cluster: str = "orion", days: float = 30, seed: int | np.random.Generator = 0) -> Workload:
    """`days` days of jobs for a cluster of table 2; day 0 is a Monday. `max_cores` is the cluster's cores.

    Jobs have users, requested times in whole minutes, whole seconds elsewhere, and a status (COMPLETED, FAILED,
    TIMEOUT). Loads and counts of single months vary about as much as real ones; the figures of table 2 are met by the
    long run. Raises EscalaError on an unknown cluster or days <= 0.
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
    size_q, wall_q = _requests(visits, visit, rng)
    share, sizes = cluster.sizes
    cores = sizes[np.searchsorted(model.cumulative(share), size_q, side="right")]
    walltime, runtime, status = _times(visits.work[visit], wall_q, rng)
    submit = _submissions(visits, visit, runtime, rng)
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
    """Visits from WARM_UP_DAYS before time 0 to the end: an hourly Poisson process whose rate is hour x weekday x
    week."""
    first, last = -WARM_UP_DAYS, math.ceil(days)
    day = np.repeat(np.arange(first, last), 24)
    week = np.floor_divide(day, 7) - first // 7
    levels = rng.gamma(model.WEEK_SHAPE, 1 / model.WEEK_SHAPE, int(week.max()) + 1)
    hours = np.tile(model.HOURS / model.HOURS.sum(), last - first)
    level = levels[week] * model.WEEKDAYS[day % 7] / model.WEEKDAYS.mean() * hours
    shares = np.array([cluster.quick_share, 1 - cluster.quick_share - cluster.long_share, cluster.long_share])
    rates = cluster.jobs_per_day * shares / [pace.mean for pace in PACES]  # visits a day
    hour = np.repeat(np.arange(first * 24, last * 24), rng.poisson(level * rates.sum()))
    visits = len(hour)
    begin = (hour + rng.random(visits)) * 3600.0
    pace = rng.choice(len(PACES), visits, p=rates / rates.sum())
    moved = (pace == 2) & (rng.random(visits) < model.EVENING)
    evening = np.floor(begin / DAY_S) * DAY_S + rng.uniform(*model.EVENING_HOURS, visits) * 3600.0
    begin = np.where(moved, evening, begin)
    heavy = rng.random(visits) < np.array([HEAVY_IN_QUICK, 1.0, 0.0])[pace] * cluster.heavy_if_slow
    jobs = np.choose(pace, [p.sizes(rng.random(visits)) for p in PACES])
    return _Visits(begin, pace, np.where(pace == 2, 2, heavy), jobs, *_users(begin, rng))


def _users(begin: Floats, rng: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """User, and the request as quantiles of size and time, of each visit [visits]."""
    popularity = 1.0 / np.arange(1, model.USER_PLACES + 1)
    place = rng.choice(model.USER_PLACES, len(begin), p=popularity / popularity.sum())
    handover = rng.random(model.USER_PLACES)
    tenure = np.floor(begin / DAY_S / model.USER_DAYS + handover[place]).astype(np.int64) + 1
    favourites = rng.random((2, int(tenure.max(initial=0)) + 1, model.USER_PLACES))
    fresh = rng.random((2, len(begin)))
    request = np.where(rng.random(len(begin)) < model.FAVOURITE, favourites[:, tenure, place], fresh)
    return tenure * model.USER_PLACES + place, request[0], request[1]


def _submissions(visits: _Visits, visit: Ints, runtime: Floats, rng: np.random.Generator) -> Floats:
    """Submission times, whole s [jobs]: the visit's beginning plus the gaps so far, some of which begin when the job
    before has run."""
    pace = visits.pace[visit]
    median, spread, watched = (
        np.array([getattr(p, name) for p in PACES])[pace] for name in ("gap_median", "gap_spread", "watched")
    )
    gap = median * np.exp(spread * rng.standard_normal(len(visit)))
    gap[1:] += np.where(rng.random(len(visit)) < watched, runtime, 0.0)[:-1]
    first = np.cumsum(visits.jobs) - visits.jobs
    gap[first] = 0.0
    elapsed = np.cumsum(gap)
    return np.floor(visits.begin[visit] + elapsed - elapsed[first][visit])


def _requests(visits: _Visits, visit: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Quantiles of size and requested time of each job [jobs]: the visit's, or new ones."""
    same = rng.random(len(visit)) < model.SAME_REQUEST
    fresh = rng.random((2, len(visit)))
    return np.where(same, visits.size_q[visit], fresh[0]), np.where(same, visits.wall_q[visit], fresh[1])


def _times(work: Ints, wall_q: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, NDArray[np.str_]]:
    """Requested time and run time, s, and status of each job [jobs]."""
    walltime, runtime, status = np.empty(len(work)), np.empty(len(work)), np.empty(len(work), dtype="<U9")
    for kind, jobs in enumerate(WORKS):
        mine = work == kind
        walltime[mine] = jobs.walltime_s(wall_q[mine])
        runtime[mine], status[mine] = jobs.ends(walltime[mine], rng)
    return walltime, runtime, status
