"""What is known of an optimum, and nothing more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeVar

from escala.optimum.instance import Ints

RELAXATIONS = (
    "clairvoyant: every job is known from the start, with its actual runtime",
    "no slot window: any waiting job may be chosen",
    "end of arrivals known",
    "cores as one pool: no placement on nodes, no switching of nodes",
)
Status = Literal["optimal", "interval", "bound-only", "found-only"]
CLOSED = 1e-6  # relative gap that counts as none


def closes(lower: float | None, found: float | None) -> bool:
    """Whether a bound meets a schedule's value."""
    return lower is not None and found is not None and found - lower <= CLOSED * abs(found)


def status_of(lower: float | None, found: float | None) -> Status:
    """What a bound and a schedule's value, either of which may be missing, amount to."""
    if lower is None:
        return "found-only"
    return "bound-only" if found is None else "optimal" if closes(lower, found) else "interval"


def within(lower: float | None, found: float | None, prover: str) -> float | None:
    """The bound, no higher than a checked schedule's value where it is within the solver's tolerance of that;
    AssertionError beyond."""
    if lower is None or found is None or lower <= found:
        return lower
    if lower - found > CLOSED * abs(found):
        raise AssertionError(
            f"bound {lower} by {prover} above a checked schedule of {found}: a defect in Escala or the solver"
        )
    return found


def down(value: Fraction) -> float:
    """The largest float that is not above `value`."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


@dataclass(frozen=True)
class Step:
    """One step done: its name, seconds, iterations, and the bound and best value after it (None: none yet), in the
    objective's unit."""

    name: str
    seconds: float
    iterations: int
    lower: float | None
    found: float | None


Progress = Callable[[Step], None]


@dataclass(frozen=True)
class Bound:
    """What is known of the optimum of one instance; never more than was proved.

    status: `optimal` (found <= lower within 1e-6 relative), `interval` (both ends), `bound-only` or `found-only`.
    lower, found: in the objective's unit (slowdowns: plain; wait and makespan: ticks). starts: the found schedule,
    checked independently. prover: who proved `lower`. unit: times were rounded to so many ticks for the proof, in its
    favour (1: they were not). cut: a time limit cut a step short, so the figures depend on the machine; interrupted:
    Ctrl-C did.
    """

    status: Status
    objective: str
    jobs: int
    lower: float | None
    found: float | None
    starts: Ints | None
    prover: str
    relaxations: tuple[str, ...]
    steps: tuple[Step, ...]
    seconds: float
    seed: int
    limit_s: float
    cut: bool
    interrupted: bool
    unit: int = 1

    @property
    def gap(self) -> float | None:
        """(found - lower) / found: 0 = proved optimal. None if either is missing."""
        if self.lower is None or self.found is None:
            return None
        return max(0.0, self.found - self.lower) / self.found if self.found > 0 else 0.0

    @property
    def iterations(self) -> int:
        """Iterations of all steps together."""
        return sum(step.iterations for step in self.steps)


class Interruptible(Protocol):
    """A result that Ctrl-C may have ended early."""

    @property
    def interrupted(self) -> bool: ...


Ended = TypeVar("Ended", bound=Interruptible)


def unless_interrupted(result: Ended) -> Ended:
    """`result`; KeyboardInterrupt where Ctrl-C ended it. For callers to whom a bound is one step of many."""
    if result.interrupted:
        raise KeyboardInterrupt
    return result
