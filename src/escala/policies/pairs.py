"""Comparing: one workload on one platform under many pairs of policies, each finished run kept where there is a folder.

The work is a list of pairs (`pairs_of`); `play` runs those that are not kept yet on an engine, keeps each as soon as it
is finished, and gives all of them in the order of the list. The table comes last, from results that may have been read
back.
"""

from __future__ import annotations

import copy
import hashlib
import io
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import polars as pl

from escala import metrics
from escala.engines import Each, replays_on
from escala.engines.again import KEPT, Again, Share
from escala.engines.engine import Where, cores
from escala.engines.threads import Threads
from escala.errors import EscalaError, one_line, quoted, refuse_text
from escala.foresight import plain
from escala.metrics.compare import paced_in
from escala.platform import Platform
from escala.policies.run import check_power, read, simulate
from escala.policies.schedulers import Scheduler
from escala.policy import name_of
from escala.result import Result
from escala.unseen import says_once
from escala.workload import Workload
from escala.writing import Kept

Told = Callable[[str, float], None]  # the pair that runs now, and the share of all work done
Begin = Callable[[str], Callable[[float], None] | None]
"""Called with what is done now; gives what to call with the share of it that is done, or None where nobody watches."""
T = TypeVar("T")


class Keeping(Protocol[T]):
    """Where finished runs are kept: which are there, and what each gave; what a task has kept; the hash of all that one
    depends on."""

    def has(self, name: str) -> bool: ...
    def load(self, name: str) -> T: ...
    def keep(self, name: str, result: T) -> None: ...
    def taken(self, name: str) -> T: ...
    def key(self, name: str) -> str: ...


@dataclass(frozen=True)
class Named:
    """A scheduler and a shutdown policy (names or objects), and what the two are called in tables."""

    name: str
    scheduler: Any
    shutdown: Any

    @property
    def key(self) -> str:
        """By which an engine knows it."""
        return self.name


@dataclass(frozen=True)
class Comparison:
    """Several policies on the same jobs. results: "scheduler + shutdown" -> Result, the first is the reference."""

    results: dict[str, Result]

    @property
    def knows(self) -> dict[str, str]:
        """What the policies of each run knew of the future; see `escala.foresight`."""
        return {name: result.knows for name, result in self.results.items()}

    @property
    def unseen(self) -> dict[str, dict[str, str]]:
        """What jobs ask for and each run did not look at: column -> why; see `escala.unseen`."""
        return {name: result.unseen for name, result in self.results.items()}

    @property
    def paced(self) -> bool:
        """May how long jobs ran differ between the runs? See `metrics.compare.check`."""
        return paced_in(self.results)

    def table(self, reference: str | None = None, *, cut: bool = False) -> pl.DataFrame:
        """Metrics per policy, with relative changes against the reference, and what it knew of the future; see
        `escala.metrics.table`."""
        summaries = {name: result.summary() for name, result in self.results.items()}
        first = reference or next(iter(summaries))
        return metrics.table(summaries, reference=first, knows=self.knows, cut=cut, paced=self.paced)


class KeptRuns:
    """Finished runs in the work folder of a `writing.output_folder(..., keeps=True)`: each is a saved Result in the
    folder of its pair.

    work: the folder. about: what all runs depend on besides the pair, the jobs, the platform and the options (the
    program's own state).
    identity: of policies whose names do not say all of them (trained agents), name -> the hash of what they are.
    shared: see `Kept`.
    """

    def __init__(
        self, work: Path, about: Mapping[str, Any], identity: Mapping[str, str] | None = None, shared: bool = False
    ) -> None:
        self._kept, self._work, self._about, self._identity = (
            Kept(work, shared),
            work,
            dict(about),
            dict(identity or {}),
        )
        self._requests: dict[str, Any] = {}
        self.found: list[str] = []
        """Pairs that an interrupted run had finished."""
        self.done = 0

    def begin(self, pairs: Sequence[Named], workload: Workload, platform: Platform, options: Mapping[str, Any]) -> None:
        """Find what was kept for these very runs, and forget all else."""
        about = {**self._about, "jobs": digest_of(workload), "platform": platform.spec(), "options": dict(options)}
        for pair in pairs:
            known = {
                name: self._identity[name]
                for name in (name_of(pair.scheduler), name_of(pair.shutdown))
                if name in self._identity
            }
            self._requests[pair.name] = {
                **about,
                "pair": [name_of(pair.scheduler), name_of(pair.shutdown)],
                "identity": known,
            }
        there = self._kept.only({folder_of(name): request for name, request in self._requests.items()})
        self.found = [name for name in self._requests if folder_of(name) in there]
        self.done = len(self.found)

    def has(self, name: str) -> bool:
        """Was this one finished before?"""
        return name in self.found

    def load(self, name: str) -> Result:
        """A run that was kept."""
        return Result.load(self._work / folder_of(name))

    def keep(self, name: str, result: Result) -> None:
        """Keep a run that is finished."""
        self._kept.keep(folder_of(name), self._requests[name], result.save)
        self.done += 1

    def taken(self, name: str) -> Result:
        """A run that a task has kept."""
        self._kept.wait(folder_of(name), self._requests[name])
        self.done += 1
        return self.load(name)

    def key(self, name: str) -> str:
        """The hash of all that a run depends on."""
        return self._kept.key(folder_of(name), self._requests[name])


LONGEST_FOLDER = 100  # bytes


def folder_of(name: str) -> str:
    """The folder of a pair's run in the output of a comparison: its name; where that is long or holds a path, a part of
    it and its hash."""
    if "/" not in name and len(os.fsencode(name)) <= LONGEST_FOLDER:
        return name
    first = os.fsencode(name)[:LONGEST_FOLDER].decode("utf-8", errors="ignore")
    return f"{first.replace('/', '-')} {hashlib.sha256(name.encode()).hexdigest()[:12]}"


def digest_of(workload: Workload) -> str:
    """SHA-256 of all that is known of the jobs, and of where they were read."""
    stream = io.BytesIO()
    workload.jobs.write_ipc(stream)
    told = f"{workload.name} {workload.origin_s} {workload.max_cores} {sorted(workload.read_as.items())}"
    return hashlib.sha256(stream.getvalue() + os.fsencode(told)).hexdigest()


def pairs_of(schedulers: Iterable[Any], shutdowns: Iterable[Any]) -> list[Named]:
    """Every pair of a scheduler and a shutdown policy. EscalaError where there is none, two have one name, or one name
    stands in place of a list."""
    refuse_text(schedulers=schedulers, shutdowns=shutdowns)
    pairs = [Named(f"{name_of(s)} + {name_of(d)}", s, d) for s in map(plain, schedulers) for d in map(plain, shutdowns)]
    if not pairs:
        raise EscalaError("compare needs at least one scheduler and one shutdown policy")
    names = [pair.name for pair in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise EscalaError(
            f"two of the pairs are called {twice[0]!r}: give each policy a name of its own (its attribute `name`)"
        )
    return pairs


def play(
    pairs: Sequence[Named],
    run: Callable[[Named], T],
    keep: Keeping[T] | None = None,
    progress: Told | None = None,
    each: Each | Share | None = None,
) -> dict[str, T]:
    """Run the pairs that are not kept yet, and keep each that ends; name -> what `run` gave, in the order of `pairs`.

    each: the engine; None: a thread for each core. In threads, pairs with a policy outside the kernel run one after the
    other, each with a copy of its own (`copy.deepcopy`): what an object notes in one run is not known in another, and
    the one given stays as it is. On Ray `run`, pairs and what it gives are sent from process to process; tasks on Slurm
    keep what it gives (`Again`), and one that comes to the pairs that it was begun for does them and ends (`Share`).
    EscalaError before the first run for a policy that cannot be copied.
    """
    if isinstance(each, Share):
        if each.comes():
            _share(each, pairs, run, keep)
        each = Threads(each.n)
    each = Threads(cores()) if each is None else each
    found = {} if keep is None else {pair.name: keep.load(pair.name) for pair in pairs if keep.has(pair.name)}
    waiting = [pair for pair in pairs if pair.name not in found]
    here = each if isinstance(each, Threads) else None
    side = [pair for pair in waiting if here is None or (here.n > 1 and _compiled(pair))]
    for one in {id(one): one for pair in waiting for one in (pair.scheduler, pair.shutdown)}.values():
        _own(one)

    def ended(pair: Named, result: T, kept: bool = False) -> None:
        found[pair.name] = result
        if keep is not None and not kept:
            keep.keep(pair.name, result)
        if progress is not None:
            progress(pair.name, len(found) / len(pairs))

    if progress is not None:
        progress("", len(found) / len(pairs))
    for pair, told in each(side, _Job(run, elsewhere=here is None, keep=keep if isinstance(each, Again) else None)):
        if "error" in told:
            raise EscalaError(f"{pair.name}: {told['error']}")
        if told == KEPT and keep is not None:
            ended(pair, keep.taken(pair.name), kept=True)
        else:
            ended(pair, told["found"])
    for pair in waiting:
        if pair.name not in found:
            ended(pair, run(replace(pair, scheduler=_own(pair.scheduler), shutdown=_own(pair.shutdown))))
    return {pair.name: found[pair.name] for pair in pairs}


def _share(share: Share, pairs: Sequence[Named], run: Callable[[Named], T], keep: Keeping[T] | None) -> NoReturn:
    """Do those of the pairs that a task was begun for, keep what they give, and end the process: what comes after is
    for others."""
    assert keep is not None
    own, job = {keep.key(pair.name): pair for pair in pairs}, _Job(run, elsewhere=True)
    keys = {pair.name: key for key, pair in own.items()}
    for key in share.keys:
        if key not in own:
            where = socket.gethostname()
            share.tell(
                key, {"error": f"node {where} finds another log, policy or model there than the command was given with"}
            )
        elif keep.has(own[key].name):
            share.tell(key, KEPT)

    def there(pair: Named) -> T:
        told = share.there(pair, job=job)
        if "error" in told:
            share.tell(keys[pair.name], told)
            raise EscalaError(told["error"])
        found: T = told["found"]
        return found

    def ended(name: str, _: float) -> None:
        if name:
            share.tell(keys[name], KEPT)

    wanted = [pair for key, pair in own.items() if key in share.keys and not keep.has(pair.name)]
    with suppress(EscalaError):  # it is told
        play(wanted, there, keep, ended, Threads(share.n))
    raise SystemExit


@dataclass(frozen=True)
class _Job(Generic[T]):
    """What an engine does with a pair. elsewhere: an exception is told, not raised. keep: of what tasks keep."""

    run: Callable[[Named], T]
    elsewhere: bool
    keep: Keeping[T] | None = None

    def key(self, pair: Named) -> str:
        """The hash of all that a run depends on."""
        assert self.keep is not None
        return self.keep.key(pair.name)

    def __call__(self, pair: Named) -> dict[str, Any]:
        try:
            return {"found": self.run(pair)}
        except Exception as error:
            if not self.elsewhere:
                raise
            return {
                "error": one_line(str(error) if isinstance(error, EscalaError) else f"{type(error).__name__}: {error}")
            }


def _compiled(pair: Named) -> bool:
    """Do both policies decide inside the kernel, or in objects made for this run alone?"""
    return isinstance(pair.scheduler, str | Scheduler) and isinstance(pair.shutdown, str)


def _own(policy: Any) -> Any:
    """A policy for one run alone: a copy, of what is no name. EscalaError where there is no copy."""
    if isinstance(policy, str | Scheduler):
        return policy
    try:
        return copy.deepcopy(policy)
    except Exception as error:  # of somebody else's code, whatever it is
        raise EscalaError(
            f"policy {quoted(name_of(policy))} cannot be copied, which each run of several needs "
            f"({type(error).__name__}: {quoted(str(error))}): give it a method __deepcopy__, or run it alone with "
            "simulate"
        ) from error


@says_once
def compare(
    workload: Any,
    platform: Any,
    schedulers: Iterable[Any] = ("fcfs", "easy", "saf"),
    shutdowns: Iterable[Any] = ("never",),
    *,
    progress: Told | None = None,
    keep: KeptRuns | None = None,
    jobs: int | None = None,
    on: Where = None,
    **options: Any,
) -> Comparison:
    """Replay a workload under every pair of schedulers and shutdown policies; see `simulate`.

    progress: called with the name of the pair that ended last and the share of all work done. keep: where each finished
    run goes at once, and finished ones are taken from. on: "local" (pairs of named policies side by side, one a core),
    "local:N", "ray" or "ray:HOST:PORT", see docs/how-to/scale.md; the results are the same for any. jobs: N is
    "local:N". EscalaError for jobs < 1, and an engine that is not there.
    """
    with replays_on(on, jobs) as each:
        loaded, machine = read(workload, platform)
        pairs = pairs_of(schedulers, shutdowns)
        check_power(machine, [pair.shutdown for pair in pairs], bool(options.get("start_off", False)))
        if keep is not None:
            keep.begin(pairs, loaded, machine, options)
        if any(
            name in options and not isinstance(options[name], str | None) for name in ("estimate", "order_estimate")
        ):
            each = Threads(1) if isinstance(each, Threads) else each  # a predictor in Python
        return Comparison(
            play(
                pairs,
                lambda pair: simulate(loaded, machine, pair.scheduler, pair.shutdown, **options),
                keep,
                progress,
                each,
            )
        )
