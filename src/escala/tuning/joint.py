"""Energy against wait of pairs of a scheduler and a shutdown policy, each replayed on one whole log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from escala.engines import replays_on
from escala.engines.engine import Where
from escala.errors import EscalaError, quoted
from escala.metrics.bill import COST, Prices
from escala.metrics.recorded import recorded_waits
from escala.options import Options, with_options
from escala.platform import Platform
from escala.platform.told import how
from escala.policies.compose import CAP_S
from escala.policies.kept_pieces import kept_values
from escala.policies.pairs import Named, Told, pairs_of, play
from escala.policies.queues import queue
from escala.policies.run import check_power, read, simulate
from escala.tuning.later import Later, judge
from escala.tuning.split import split_of
from escala.unseen import Unseen, says_once
from escala.writing import Pieces

SCHEDULERS = ("easy", "saf", "sjf-fit", queue("sjf", 24 * 3600.0))
SHUTDOWNS = (
    "never",
    "timeout:1800",
    "timeout:300",
    "timeout:0",
    *(f"hold:{share}:{CAP_S:.0f}" for share in ("0.1", "0.25", "0.5")),
)
"""Jobs are held back an hour at most: a share of the walltime alone makes them wait for hours where walltimes are
long."""
WAITS = ("mean_wait_s", "p95_wait_s")
MARGINS = (0.0, 0.02, 0.1)
"""How much longer jobs may wait than under the reference, as shares of its mean and 95th percentile."""
LONGEST = 1.25
"""The longest wait may be so many times the reference's: an order that starves some jobs is no saving."""

ENERGY = "energy_j"
Summary = Mapping[str, float | int]


@dataclass(frozen=True)
class Frontier:
    """Pairs on one log, or on its past. summaries: "scheduler + shutdown" -> its metrics, the reference first; knows:
    what each knew of the future (`escala.foresight`), "" for an honest pair. later: the reference and the cheapest
    pairs on the weeks after that past, if any.
    least: what is made small, "energy_j", or "cost" where prices are known.
    waits: of each pair the log's own waits beside its replay's (`metrics.recorded.recorded_waits`), none where the log
    tells none. unseen: of each pair what jobs ask for and it did not look at (`escala.unseen`)."""

    summaries: dict[str, Summary]
    knows: dict[str, str]
    later: Later | None = None
    waits: Mapping[str, Any] = field(default_factory=dict)
    unseen: Mapping[str, Unseen] = field(default_factory=dict)
    least: str = ENERGY

    @property
    def reference(self) -> str:
        """The pair that changes are against: the first."""
        return next(iter(self.summaries))

    def points(self, wait: str = "mean_wait_s") -> dict[str, tuple[float, float]]:
        """Pair -> (wait in s, energy in J)."""
        return {name: (float(s[wait]), float(s["energy_j"])) for name, s in self.summaries.items()}

    def undominated(self, wait: str = "mean_wait_s") -> list[str]:
        """The honest pairs that no honest pair beats in both, the least energy first. Of pairs that are alike in both
        the first stays."""
        points = {name: point for name, point in self.points(wait).items() if not self.knows[name]}
        found: list[str] = []
        for name in sorted(points, key=lambda name: points[name][::-1]):
            if not found or points[name][0] < points[found[-1]][0]:
                found.append(name)
        return found

    def hull(self, wait: str = "mean_wait_s") -> list[str]:
        """Those of them that no mixture of two others beats: the corners of the lower left convex hull, the least
        energy first."""
        points, found = self.points(wait), list[str]()
        for name in self.undominated(wait):
            while len(found) > 1 and _not_below(points[found[-2]], points[name], points[found[-1]]):
                found.pop()
            found.append(name)
        return found

    def cheapest(self, margin: float = 0.0) -> str:
        """The honest pair of least energy, or cost (`least`), whose mean wait and 95th percentile of the wait are at
        most 1 + margin times the reference's, and whose longest wait at most `LONGEST` times."""
        base = self.summaries[self.reference]
        most = {**{wait: (1.0 + margin) * base[wait] for wait in WAITS}, "max_wait_s": LONGEST * base["max_wait_s"]}
        fit = [
            name
            for name, s in self.summaries.items()
            if name == self.reference
            or (not self.knows[name] and all(s[wait] <= bound for wait, bound in most.items()))
        ]
        return min(fit, key=lambda name: self.summaries[name][self.least])

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "reference": self.reference,
            "least": self.least,
            "pairs": {name: {**s, "knows": self.knows[name]} for name, s in self.summaries.items()},
            "undominated": {wait: self.undominated(wait) for wait in WAITS},
            "hull": {wait: self.hull(wait) for wait in WAITS},
            "recorded_waits": dict(self.waits),
            "unseen": dict(self.unseen),
            "cheapest": {f"{margin:g}": self.cheapest(margin) for margin in MARGINS},
            **({} if self.later is None else {"later": self.later.as_dict()}),
        }


def _not_below(a: tuple[float, float], b: tuple[float, float], point: tuple[float, float]) -> bool:
    """Does `point` lie on the line from a to b, or above it? Points go from long waits to short ones, from little
    energy to much."""
    return (a[0] - b[0]) * (point[1] - a[1]) >= (a[0] - point[0]) * (b[1] - a[1])


@says_once
def frontier(
    workload: Any,
    platform: Any,
    schedulers: Sequence[Any] = SCHEDULERS,
    shutdowns: Sequence[Any] = SHUTDOWNS,
    *,
    beside: Sequence[Named] = (),
    after: str | float | None = None,
    margin: float = 0.0,
    prices: Prices | None = None,
    keep: Pieces | None = None,
    progress: Told | None = None,
    jobs: int | None = None,
    on: Where = None,
    **options: Any,
) -> Frontier:
    """Replay a log under every pair of a scheduler and a shutdown policy, and set their energies against their waits.

    The first pair is the reference: name what runs today first. Trained agents and tuned policies are policies like
    others. beside: further pairs, each with a name of its own, "SCHEDULER + SHUTDOWN". after: the frontier is of this
    share of the log's time ("60%"), and the cheapest pairs are judged once on the weeks after it; margin: also the one
    with waits longer by at most this share. prices: of a kWh, that change over time: of each pair `cost` and `co2_kg`
    too, and where the price is known the cheapest is the one of least cost. keep: where replays go, and are taken from;
    progress, jobs, on: see `compare`; options: as of `simulate`. Energy is counted from the first submission to the
    last finish of each replay; on later weeks from their beginning to the last submission. EscalaError: a platform
    without watts or without switches, fewer than two pairs, none that a real machine can have, a replay that is cut,
    too few weeks, prices that begin after the log, an engine that is not there.
    """
    log, machine = read(workload, platform)
    split = None if after is None else split_of(log, after)
    past = log if split is None else split.past(log)
    pairs = [*pairs_of(schedulers, shutdowns), *beside]
    if len(pairs) < 2:
        raise EscalaError(f"a frontier of one pair, {quoted(pairs[0].name)}: give more schedulers or shutdown policies")
    _check(machine, pairs, with_options(Options(), **options))

    def run(pair: Named) -> dict[str, Any]:
        result = simulate(past, machine, pair.scheduler, pair.shutdown, record=bool(prices), **options)
        about = {"knows": result.knows, "waits": recorded_waits(result.jobs), "unseen": result.unseen}
        paid = prices.of(result.nodes, result.power) if prices else {}
        return {"summary": result.summary() | paid, **about}

    with replays_on(on, jobs) as each:
        found = play(pairs, run, kept_values(keep), progress, each)
        best = _found(found, COST if prices and prices.money is not None else ENERGY)
        if split is None:
            return best
        names = dict.fromkeys([best.reference, *map(best.cheapest, (*MARGINS, margin))])
        judged = [next(pair for pair in pairs if pair.name == name) for name in names]
        later = judge(log, machine, split, judged, options, prices=prices, keep=keep, each=each)
        return replace(best, later=later)


def _found(found: Mapping[str, Mapping[str, Any]], least: str) -> Frontier:
    """The frontier of what was found of each pair."""
    knows = {name: one["knows"] for name, one in found.items()}
    if all(knows.values()):
        raise EscalaError(
            "a frontier of clairvoyant pairs only: no real machine can have them; name another shutdown policy or "
            "scheduler"
        )
    waits = {name: one["waits"] for name, one in found.items() if one["waits"] is not None}
    unseen = {name: one.get("unseen", {}) for name, one in found.items()}
    return Frontier({name: one["summary"] for name, one in found.items()}, knows, None, waits, unseen, least)


def _check(machine: Platform, pairs: Sequence[Named], asked: Options) -> None:
    if asked.until_s is not None:
        raise EscalaError(
            "a frontier is of whole replays, for one that is cut does less work: leave --stop-at (until_s) out"
        )
    if asked.estimate != "walltime":
        raise EscalaError(
            f"estimate={asked.estimate!r} (--estimate): a frontier is of pairs that a real machine can have: leave it "
            "out"
        )
    check_power(machine, [pair.shutdown for pair in pairs])
    if not machine.has_energy:
        raise EscalaError(f"a frontier needs watts, platform {machine.name!r} has none: {how(machine)}")
