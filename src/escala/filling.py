"""Filling the kernel's tables of the orders of the queue: ranks, numbers, the weights of linear scores, and the users
of a log; and what its options say of a shutdown policy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.kernel.lanes import LANE
from escala.kernel.state import UNTOUCHED, WIDTHS, World
from escala.options import Plan, Terms, microseconds
from escala.partitions import Parted
from escala.scores import places_of

LONGEST_S = 1e12  # spans beyond are endless
LONGEST_LOG = 40.0
"""Above log1p of any wait over any estimate."""
ROUNDING = 1e-13
"""What sums of a few terms lose, of the sum of their sizes."""


def fill_orders(
    w: World, i: int, plan: Plan, rows: NDArray[np.int64] | slice, n: int, machine: int, **found: Any
) -> None:
    """The orders of the queue in simulation i, whose n jobs are filled in. rows [jobs]: their places in the workload;
    machine: its cores.
    found: keys, fixed and terms where they are others than the plan's."""
    if plan.ordering in codes.PACKING and plan.keys is not None and "keys" not in found and w.o[i, 0]["plain"] == 0:
        job = w.job[i, :n]
        length_us = w.forecast[i, :n]["order"] if w.forecast.shape[1] > 0 else job["walltime"]
        found["keys"] = packing_keys(
            *(plan.ordering, length_us, job, w.shape[i, :n], w.demand[i, :n], int(w.o[i, 0]["n_kinds"]))
        )
        rows = slice(n)
    keys, fixed, linear = found.get("keys", plan.keys), found.get("fixed", plan.fixed), found.get("terms", plan.terms)
    by_lane = plan.queueing in codes.BY_LANE and keys is not None and not plan.by_user
    lanes = w.link[i, :n, LANE] if by_lane and w.link.shape[1] > 0 else None
    if w.order.shape[2] > 0:
        places = np.arange(n)
        order = places if keys is None else keys[rows].argsort(kind="stable")
        if lanes is not None:
            order = order[lanes[order].argsort(kind="stable")]
        front = n * plan.has_front
        if front:
            w.order[i, 0, :front] = places
        w.order[i, 0, front : front + n] = order
        w.order[i, 1, order] = places + front if front else places
    _fill_lanes(w.lane[i], n, lanes)
    for k, numbers in enumerate(fixed):
        if numbers is not None:
            w.fixed[i, k, :n] = np.unique(numbers[rows], return_inverse=True)[1]
    for k, terms in enumerate(linear):
        if terms is not None:
            w.fixed[i, k, :n] = terms.fixed(machine)[rows]
            _fill_terms(w.terms[i], k, terms, float(np.abs(w.fixed[i, k, :n]).max(initial=0.0)))
            _fill_users(w.user[i], k, terms, w.job[i, :n]["user"][w.order[i, 0, :n]] if plan.by_user else None)


def packing_keys(ordering: int, length_us: NDArray[Any], job: Any, shape: Any, demand: Any, kinds: int) -> NDArray[Any]:
    """The keys of an order of packing where some jobs go by nodes: of BY_TETRIS its scores, which do not depend on what
    is free; of BY_PACKER places that have jobs side by side which ask for the same. length_us [jobs]: by which the
    queue is ordered; job: JOB [jobs]; shape: SHAPE [jobs or 0]; demand: int [jobs or 0, kinds and SHARERS]; kinds: how
    many are resources."""
    shaped = shape if len(shape) else np.zeros(len(job), shape.dtype)
    several = job["single"] == 2
    if ordering == codes.BY_TETRIS:
        parts = np.where(several, shaped["parts"], job["single"])
        wanted = job["cores"] + (parts * demand[:, :kinds].sum(axis=1) if len(demand) else 0)
        return np.asarray(-(0.5 * wanted + 0.5 / (length_us / 1e6)))
    columns = [np.where(several, shaped[name], 0) for name in ("parts", "share", "less", "large", "most")]
    columns += [shaped["allowed"], job["single"], job["cores"], *(demand.T if len(demand) else ())]
    return places_of(*columns)


def _fill_lanes(lane: Any, n: int, of: NDArray[np.int32] | None) -> None:
    """LANE of one simulation of n jobs: the ranks of each lane's in the search order. of: the lane of each, where that
    order goes by lanes."""
    lane["low"], lane["high"] = 0, n - 1
    if of is not None:
        ends = np.cumsum(np.bincount(of, minlength=len(lane)))
        lane["low"][1:], lane["high"] = ends[:-1], ends - 1


def fill_lanes(w: World, i: int, parted: Parted | None, rows: NDArray[np.int64]) -> None:
    """In which lane the jobs and the nodes of simulation i are. parted, rows [jobs]: of the workload, and the places of
    the kernel's jobs in it."""
    if w.link.shape[1] > 0:
        lanes = None if parted is None or parted.lanes.n == 0 else parted.lanes
        w.node["lane"][i] = 1 if lanes is None else lanes.of_node
        w.link[i, : len(rows), LANE] = 1 if lanes is None else lanes.of_job[rows]


def fill_widths(options: Any, plan: Plan, cores: NDArray[np.int32]) -> None:
    """What the search tree has rows for: limits of cores, from the sizes of the jobs [jobs], so many that each size has
    its own, or WIDTHS with as many jobs between them; one for all where nobody asks who ends in time, or where the
    ranks go by size already."""
    graded = plan.queueing in codes.PASSING and plan.orders == 0
    sizes, counts = _counted(cores if graded else cores[:0])
    if len(sizes) > WIDTHS:
        parts = np.cumsum(counts) * WIDTHS // (len(cores) + 1)
        sizes = sizes[np.unique(parts, return_index=True)[1]]
    options["n_orders"] = plan.orders
    options["n_widths"] = max(len(sizes), 1)
    options["widths"][: max(len(sizes) - 1, 0)] = sizes[1:] - 1
    options["widths"][max(len(sizes) - 1, 0) :] = np.iinfo(np.int64).max


def _counted(cores: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sizes of jobs, ascending, and how many jobs have each."""
    if cores.max(initial=0) > len(cores):
        return np.unique(cores, return_counts=True)
    counts = np.bincount(cores)
    sizes = np.flatnonzero(counts)
    return sizes, counts[sizes]


def _fill_terms(row: Any, k: int, terms: Terms, most: float) -> None:
    """TERMS [orders] of one simulation, order k. most: the largest size of what never changes."""
    largest = most + LONGEST_LOG * (abs(terms.log_wait) + abs(terms.log_ratio) + abs(terms.queued) + abs(terms.length))
    largest += LONGEST_LOG**2 * abs(terms.length_cores) + abs(terms.age) + abs(terms.running) + abs(terms.fair)
    values = {
        "log_wait": terms.log_wait,
        "log_ratio": terms.log_ratio,
        "age": terms.age,
        "length": terms.length,
        "length_cores": terms.length_cores,
        "max_age_us": int(microseconds(terms.max_age_s)),
        "running": terms.running,
        "queued": terms.queued,
        "fair": terms.fair,
        "decay": math.log(2.0) / (terms.half_life_s * SECOND) if terms.half_life_s > 0 else 0.0,
        "every_us": int(microseconds(terms.every_s)),
        "doubt": ROUNDING * largest,
        "by_user": terms.by_user,
        "due_us": -(1 << 62),
    }
    for name, value in values.items():
        row[name][k] = value


def _fill_users(row: Any, k: int, terms: Terms, ordered: NDArray[np.int64] | None) -> None:
    """USER [users] of one simulation, order k. ordered [jobs]: the user of each job in the search order, where that
    goes by user."""
    if ordered is None:
        return
    users = np.arange(len(row))
    row["low"] = np.minimum(np.searchsorted(ordered, users, "left"), max(len(ordered) - 1, 0))  # a user may have no job
    row["high"] = np.maximum(np.searchsorted(ordered, users, "right") - 1, row["low"])
    row["next"] = UNTOUCHED
    if terms.shares is not None:
        row["share"][: len(terms.shares), k] = terms.shares


def power_rules(plan: Plan) -> dict[str, float]:
    """What the kernel's options say of a plan's shutdown policy."""
    return {
        "shutdown": plan.shutdown,
        "timeout_us": int(microseconds(plan.timeout_s)),
        "spare": plan.spare,
        "fraction": plan.fraction,
        "cap_us": endless_us(plan.cap_s),
        "if_busy": plan.if_busy,
        "target": plan.target,
    }


def endless_us(seconds: float) -> int:
    """A span in us; NEVER_US for one without end."""
    return codes.NEVER_US if seconds > LONGEST_S else int(microseconds(seconds))
