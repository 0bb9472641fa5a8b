"""Good schedules: orders from priority rules and hints, then annealing, of all jobs at once or (above `FEW` jobs) of
some jobs around others that stay.

Iteration limits and a seed decide the outcome; a deadline only cuts it short (and is then reported). Every schedule
that leaves this module has passed `check_schedule`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from escala.optimum.instance import Floats, Instance, Ints, check_schedule
from escala.optimum.searcher import Searcher

FEW, WHOLE = 64, 400  # up to so many jobs annealing all at once is enough; is worth doing first
RUNS, STEPS = 24, 25_000  # many short runs find more than few long ones
# up to FEW jobs steps x jobs stay below PLACES, down to LEAST steps: a slotted list takes a second at most
LEAST, PLACES = 20_000, 800_000
HOTTEST = 1.0, 3.0  # first temperatures in turn: cool runs go deep, hot ones far
PARTS, PART_STEPS, TURNS = (256, 128, 256, 64), 500, 1600  # jobs taken out at a time, annealing steps for them, times

Improved = Callable[[float], None]


class Found(NamedTuple):
    """A checked schedule (n,), its objective, the annealing steps done, and whether the deadline or Ctrl-C cut the
    search short."""

    starts: Ints
    value: float
    steps: int
    cut: bool
    interrupted: bool


def search(
    instance: Instance, *, seed: int = 0, effort: float = 1.0, hints: Iterable[Ints | Floats] = (),
    lower: float = -np.inf, expired: Callable[[], bool] = lambda: False, improved: Improved | None = None,
) -> Found:  # fmt: skip
    """Best schedule found. hints: (n,) start times or priorities to order by. effort scales the iteration limits. Stops
    early at `lower` (a proven bound).

    expired is asked between compiled calls (each well below a second at usual sizes). improved is called with each
    better value.
    """
    searcher = Searcher(instance, seed)
    cut = interrupted = False
    try:
        for _ in _turns(searcher, hints, effort):
            if improved is not None:
                improved(searcher.value)
            if searcher.value <= lower + 1e-9 * abs(lower):
                break
            if expired():
                cut = True
                break
    except KeyboardInterrupt:
        interrupted = True
    check_schedule(instance, searcher.starts)
    return Found(searcher.starts, instance.value(searcher.starts), searcher.steps, cut, interrupted)


def _turns(searcher: Searcher, hints: Iterable[Ints | Floats], effort: float) -> Iterator[None]:
    """The search in pieces; between them the caller may stop."""
    for hint in hints:
        searcher.offer(searcher.generate(searcher.by(hint)))
        yield
    jobs = searcher.instance.jobs
    for _ in range(4 if jobs <= FEW else 32):
        searcher.rules(8)
        yield
    if jobs <= WHOLE:
        yield from _whole(searcher, effort)
    if jobs > FEW:
        yield from _parts(searcher, effort * (0.25 if jobs <= WHOLE else 1.0))


def _whole(searcher: Searcher, effort: float) -> Iterator[None]:
    jobs = searcher.instance.jobs
    most = min(STEPS, max(LEAST, PLACES // jobs)) if jobs <= FEW else STEPS
    steps = max(1, int(effort * min(most, 300 * jobs**2)))
    pieces = -(-steps * jobs // 4_000_000)  # about half a second each
    for run in range(RUNS):
        yield from searcher.whole(steps, pieces, hottest=HOTTEST[run % 2], anew=run % 4 < 2)


def _parts(searcher: Searcher, effort: float) -> Iterator[None]:
    jobs = searcher.instance.jobs
    for turn in range(max(1, int(effort * TURNS))):
        part = min(jobs, int(PARTS[turn % len(PARTS)]))
        order = np.argsort(searcher.starts, kind="stable")
        width = min(jobs, part * (1 + turn % 2))
        first = int(searcher.random.integers(0, jobs - width + 1))
        chosen = searcher.random.choice(order[first : first + width], part, replace=False)
        if searcher.part(chosen, PART_STEPS):
            searcher.offer(searcher.generate(np.argsort(searcher.starts, kind="stable")))
        yield
