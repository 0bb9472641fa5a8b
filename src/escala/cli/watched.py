"""How far long work is: a bar at a terminal, and in the log file of a batch job a plain line now and then."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from escala.compiling import LINE, tell_when_compiling
from escala.errors import one_line

if TYPE_CHECKING:
    from rich.console import Console

FIRST_S, NEXT_S, MOST_S, CLOSE_S = 30.0, 60.0, 600.0, 30.0
"""Seconds before the first line; at least and at most from a line to the next; and to one of a further `STEP`."""
STEP = 0.0999  # of a piece of work, a tenth
GROWTH = 0.1  # from line to line, of the time since the start, within NEXT_S..MOST_S: a day takes some 170 lines
TICK_S = 1.0


class Shown(Protocol):
    """Where one piece of work after the other is shown, and which share of it is done."""

    def start(self, what: str) -> None:
        """Another piece begins; the share done is not known."""

    def wait(self) -> None:
        """Code is compiled for this piece."""

    def move(self, done: float) -> None:
        """That share of it is done, 0..1. After `wait`: the time left is counted from here on."""


def begin_of(shown: Shown) -> Callable[[str], Callable[[float], None]]:
    """What work calls with each of its pieces; it gives what to call with the share done."""

    def begin(what: str) -> Callable[[float], None]:
        shown.start(what)
        tell_when_compiling(shown.wait)
        return shown.move

    return begin


class Bar:
    """A line of a terminal, drawn again and again, with the time spent and the time left."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        text = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left")
        self.drawn = Progress(*text, TimeRemainingColumn(), console=console, transient=True)
        self._what, self._compiling = "", False

    def start(self, what: str) -> None:
        """See `Shown`."""
        for earlier in self.drawn.task_ids:
            self.drawn.remove_task(earlier)
        self._what, self._compiling = one_line(what), False
        self.drawn.add_task(self._what, total=None)

    def wait(self) -> None:
        """See `Shown`."""
        self._compiling = True
        for task in self.drawn.task_ids:  # one; none where Ctrl-C ended `start`
            self.drawn.update(task, description=f"{self._what}: {LINE}", total=None)

    def move(self, done: float) -> None:
        """See `Shown`."""
        compiled, self._compiling = self._compiling, False
        for task in self.drawn.task_ids:
            if compiled:
                self.drawn.reset(task, description=self._what)
            self.drawn.update(task, total=1.0, completed=done)


class Lines:
    """Plain lines: none of work that is done within `FIRST_S`, then one after `NEXT_S`, or after `STEP` of a piece.

    write: takes a line without its end. clock: s, for tests.
    """

    def __init__(self, write: Callable[[str], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock, self._lock = write, clock, threading.Lock()
        self._began = self._last = clock()
        self._gap_s, self._lines = FIRST_S, 0
        self._reset("")

    def _reset(self, what: str) -> None:
        self._what, self._told = " ".join(what.split()), 0.0
        self._from = self._clock(), 0.0  # when which share was done: when work began,
        self._base: tuple[float, float] | None = None  # at the first `move` after that,
        self._moved: tuple[float, float] | None = None  # and at the last

    def start(self, what: str) -> None:
        """See `Shown`."""
        with self._lock:
            self._reset(what)

    def wait(self) -> None:
        """See `Shown`. Whoever compiles says so in a line, from which the time to the next is counted."""
        with self._lock:
            self._last, self._base = self._clock(), None
            self._gap_s = max(self._gap_s, NEXT_S)
            self._from = self._last, self._done()

    def move(self, done: float) -> None:
        """See `Shown`."""
        with self._lock:
            self._moved = self._clock(), done
            self._base = self._base or self._moved
        self.look()

    def look(self) -> None:
        """Write a line where one is due."""
        with self._lock:
            now = self._clock()
            since, done = now - self._last, self._done()
            further = self._lines > 0 and since >= CLOSE_S and done >= self._told + STEP
            if since < self._gap_s and not further:
                return
            self._last, self._told, self._lines = now, done, self._lines + 1
            self._gap_s = min(max(NEXT_S, GROWTH * (now - self._began)), MOST_S)
            self._write(self._line(now))

    def _done(self) -> float:
        return 0.0 if self._moved is None else self._moved[1]

    def _line(self, now: float) -> str:
        share = "" if self._moved is None else f" {100 * self._done():.0f} % done,"
        left_s = self._left_s(now)
        left = "" if left_s is None else f" about {_clock(left_s)} left,"
        return f"progress: {self._what}:{share}{left} {_clock(now - self._began)} since the start"

    def _left_s(self, now: float) -> float | None:
        """At the mean speed since the first `move`, for what was done by then may have been kept from an earlier run;
        of a single one, since work began. None where no speed is known, or more time has passed."""
        if self._base is None or self._moved is None:
            return None
        (at_s, then), (moved_s, done) = self._from if self._base == self._moved else self._base, self._moved
        if moved_s <= at_s or done <= then:
            return None
        left_s = (moved_s - at_s) * (1.0 - done) / (done - then) - (now - moved_s)
        return left_s if left_s >= 0 else None


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


@contextlib.contextmanager
def looking(lines: Lines) -> Iterator[None]:
    """Lines are written when they are due, also of work that says nothing while it is done."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(TICK_S):
            lines.look()

    watcher = threading.Thread(target=look, name="escala-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
