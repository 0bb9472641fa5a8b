"""What jobs ask for and a run does not look at: said once, as a warning, and kept in its manifest."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, TypeVar

import numpy as np
import polars as pl

from escala.errors import EscalaWarning, quoted
from escala.partitions import PARTITION, QUEUE, Parted, apart, gives_whole, pooled
from escala.parts import Parts, counting
from escala.platform import Platform
from escala.platform.closures import RESERVED as RESERVING
from escala.platform.closures import Closure, counts
from escala.platform.site import GPU, Site
from escala.workload.shapes import BEGIN, EXCLUSIVE, KIND, OF_GPUS, OF_NODES, SHAPES

OF_SOME = "on which some of them may lie"
"""The end of a reason why a column does not count: it does for the other jobs."""
MIXED = f"GPUs without a kind bind in total only: the platform has several kinds on nodes {OF_SOME}"
NO_FEATURES = "the platform has no features of nodes"
SLURM = "the scheduler slurm alone looks at it"
SHOWN = f"{SLURM}, and policies of your own, which see it"
JOBS = "jobs "
"""The start of a reason that says all by itself: the column does count."""
ACROSS = f"{JOBS}of several nodes that name several partitions may lie across them, where Slurm takes one"
BEYOND = f"{JOBS}that say no number of nodes may lie on more than their partition's max_nodes"
CLOSED = f"{JOBS}may lie on nodes that are down, drained or reserved: runs of simulate alone look at that"
BOUNDS = f"{JOBS}may lie on nodes that are down, drained or reserved: bounds, and policies beside them, pass that over"
OUTSIDE = f"{JOBS}of this log meet none of the site's closures ([[closed]]), all of which are at other times"
RESERVED = f"{JOBS}may lie on nodes that are reserved for others: the scheduler slurm alone looks at that"
INTO = f"{JOBS}that run when a reservation begins run on into it: the scheduler slurm alone keeps them from it"
LIMITED = f"{JOBS}may run beyond the limits of QOS: the scheduler slurm alone keeps to them"
POOL = "environments, rollout, and agents with a guard or a shield take the nodes of all as one pool"
COUNTS = f"{JOBS}ask for what did not count in that run, and does now: its figures may be others"
OUTAGES = f"{JOBS}lay on nodes that were down or drained in that run, and do not now: its figures may be others"
UNEVEN = f"{JOBS}of whole nodes whose cores cannot be dealt out evenly on nodes of several sizes may share them"
SHARED = f"{JOBS}of partitions of whole nodes share them in environments, in rollout, and with a guard or a shield"
SPEED = f"{JOBS}run as long on any node in the futures that rollout, agents and shields look at"
MOST_NAMED, FEW = 12, 3
Unseen = Mapping[str, str]
"""Column -> why a run does not look at it."""
P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class _Call:
    """Where somebody called Escala, and what was said there."""

    where: tuple[str, int, str, dict[Any, Any]]  # file, line, module, and what Python's filter keeps of it
    said: set[str] = field(default_factory=set)

    @classmethod
    def now(cls) -> _Call:
        """At the first frame outside of Escala."""
        frame: Any = inspect.currentframe()
        while frame.f_back is not None and _name(frame).partition(".")[0] == "escala":
            frame = frame.f_back
        kept = frame.f_globals.setdefault("__warningregistry__", {})
        return cls((frame.f_code.co_filename, frame.f_lineno, _name(frame), kept))


_CALL: ContextVar[_Call | None] = ContextVar("_CALL", default=None)


def _name(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "<unknown>"))


def says_once(does: Callable[P, R]) -> Callable[P, R]:
    """A function of several runs: what they do not look at is said once, at the line that calls it."""

    @functools.wraps(does)
    def wrapped(*args: P.args, **more: P.kwargs) -> R:
        token = _CALL.set(_CALL.get() or _Call.now())
        try:
            return does(*args, **more)
        finally:
            _CALL.reset(token)

    return wrapped


def unseen_in(
    jobs: pl.DataFrame, platform: Platform, parts: Parts | None = None, closes: bool = False
) -> dict[str, str]:
    """The columns by which some jobs of a table ask for more than a run on a platform gives them, under any scheduler
    but slurm, and why. parts: what they are made of. closes: nodes go and come back in it."""
    counts = counting(jobs, platform)
    asked = [name for name in SHAPES if name != BEGIN and name in jobs.columns and jobs[name].null_count() < len(jobs)]
    why = {name: _why_not(name) if name not in OF_NODES else f"the platform {counts[name]}" for name in asked}
    found = {name: reason for name, reason in why.items() if name not in OF_NODES or counts[name]}
    if parts is not None:
        found |= {EXCLUSIVE: UNEVEN} if parts.uneven else {}
        found |= _of_partitions(parts.parted) if parts.parted is not None else {}
    if isinstance(platform, Site):
        found |= _of_closures(platform.closed, closes)
        found |= {"limits": LIMITED} if any(platform.qos_limits.values()) else {}
    return found | ({KIND: MIXED} if KIND in asked and KIND not in found and _mixed(jobs, platform) else {})


def _of_closures(closed: Sequence[Closure], closes: bool) -> dict[str, str]:
    """What a run does not look at of outages, drains and reservations."""
    if not closes:
        return {"closed": CLOSED} if closed else {}
    reserved = [one for one in closed if one.kind == RESERVING]
    found = {"closed": INTO} if any(counts(one) for one in reserved) else {}
    return found | ({"reserved": RESERVED} if any(not counts(one) for one in reserved) else {})


def _why_not(name: str) -> str:
    """Why a column that is not of `OF_NODES` does not count."""
    return SHOWN if name in ("nice", "priority") else SLURM


def _of_partitions(parted: Parted) -> dict[str, str]:
    """What partitions do not do to jobs as a Slurm would, and whom they take though it names another."""
    found = {PARTITION: ACROSS} if parted.across else {}
    found |= {"max_nodes": BEYOND} if parted.beyond else {}
    return found | in_default(parted.strange)


def in_default(queues: list[str]) -> dict[str, str]:
    """That these queues are no partitions of a site."""
    more = f" and {len(queues) - FEW} more" if len(queues) > FEW else ""
    named = ", ".join(map(quoted, queues[:FEW]))
    said = f"{JOBS}of queues that are no partition of the site lie in its default ({named}{more})"
    return {QUEUE: said} if queues else {}


def one_pool(platform: Platform) -> dict[str, str]:
    """What a run does not look at that takes all nodes of a site as one pool, and why."""
    found = {PARTITION: POOL} if apart(platform) else {}
    if isinstance(platform, Site) and any(gives_whole(platform, one) for one in platform.partitions):
        found[EXCLUSIVE] = SHARED
    return found | ({"speed": SPEED} if platform.node_speed is not None else {})


def for_all(platform: Platform, policies: Iterable[Any]) -> Platform:
    """The platform on which policies are judged side by side: as one pool where one of them takes it so."""
    if not any(takes_pool(one) for one in policies):
        return platform
    warn([one_pool(platform)])
    return pooled(platform)


def takes_pool(policy: Any) -> bool:
    """Does a policy take all nodes of a site as one pool?"""
    return bool(getattr(policy, "one_pool", False))


def _mixed(jobs: pl.DataFrame, platform: Platform) -> bool:
    """Do jobs ask for GPUs of no kind, where a node has several?"""
    amounts = [pl.col(name).fill_null(0) > 0 for name in OF_GPUS if name in jobs.columns]
    kinds = [have > 0 for kind, have in platform.resources.items() if kind.startswith(f"{GPU}:")]
    several = bool((np.sum(kinds, axis=0) > 1).any())
    return several and jobs.select((pl.any_horizontal(amounts) & pl.col(KIND).is_null()).any()).item()


def unclosed(platform: Platform, why: str = CLOSED) -> Platform:
    """The platform with all nodes there all the time, which is said. why: what is to be said."""
    if not isinstance(platform, Site) or not platform.closed:
        return platform
    warn([{"closed": why}])
    return replace(platform, closed=())


def of_all(found: Unseen) -> list[str]:
    """Those of these columns at which the run does not look for any job."""
    return [name for name, reason in found.items() if not str(reason).endswith(OF_SOME) and not _says_all(str(reason))]


def _says_all(reason: str) -> bool:
    return reason.startswith(JOBS)


def warn(found: Iterable[Unseen]) -> None:
    """An `EscalaWarning` for each reason, at the line outside of Escala that asks for the run."""
    call = _CALL.get() or _Call.now()
    for reason, names in _by_reason({name: why for one in found for name, why in one.items()}).items():
        text = reason if _says_all(reason) else f"what jobs ask for by {', '.join(names)} does not count: {reason}"
        about = ", ".join(names) if _says_all(reason) else text
        if about not in call.said:
            call.said.add(about)
            file, line, module, kept = call.where
            warnings.warn_explicit(text, EscalaWarning, file, line, module, kept)


def sentences(runs: Mapping[str, Unseen]) -> list[str]:
    """What runs did not look at, a sentence for each reason and those that share it; runs: name -> what it did not."""
    found: dict[tuple[str, str], list[str]] = {}
    for run, one in runs.items():
        for reason, columns in _by_reason(one).items():
            found.setdefault((", ".join(columns), reason), []).append(run)
    said = list[str]()
    for (names, reason), of in found.items():
        more = f" and {len(of) - MOST_NAMED} more" if len(of) > MOST_NAMED else ""
        under = "" if len(of) == len(runs) else f"under {', '.join(of[:MOST_NAMED])}{more}"
        if _says_all(reason):
            text = f"{under}: {reason}." if under else f"{reason}."
            said.append(f"{text[0].upper()}{text[1:]}")
            continue
        said.append(f"What jobs ask for by {names} does not count{under and ' '}{under}: {reason}.")
    return said


def _by_reason(one: Unseen) -> dict[str, list[str]]:
    """Why -> the columns."""
    found: dict[str, list[str]] = {}
    for name, why in one.items():
        found.setdefault(why, []).append(name)
    return found
