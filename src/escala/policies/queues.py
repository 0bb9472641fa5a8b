"""The names of schedulers with a queue in order of priority: `easy:queue=SCORE[:guard=TIME]`, `conservative:queue=SCORE[:guard=TIME]`, and
strict and greedy schedulers with `:guard=TIME`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import replace
from numbers import Real

from escala.errors import EscalaError
from escala.kernel import codes
from escala.policies.schedulers import SCHEDULERS, Scheduler
from escala.policies.scores import CHANGING, FIXED, by_size

QUEUE_FORMS = {
    "easy:queue=SCORE[:guard=TIME]": "the first in the order of the score has easy's reservation, the others pass in that order",
    "conservative:queue=SCORE[:guard=TIME]": "conservative, reservations given anew in the order of the score",
    "NAME:guard=TIME": "a scheduler above without reservations (sjf, sjf-fit, ...); with a guard: who has waited so long stands in front",
}
WAYS = {"easy": codes.EASY_PRIORITY, "conservative": codes.CONSERVATIVE}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_S = 1e10


def queue_of(name: str) -> Scheduler:
    """The scheduler of a name with a colon, whose first part is a scheduler; EscalaError for what makes no sense."""
    kind, _, rest = name.partition(":")
    plain = SCHEDULERS[kind]
    keys = _keys(kind, plain)
    if not keys:
        raise EscalaError(f"scheduler {name!r}: {kind} takes nothing behind its name: write {kind}, or easy:queue=sjf:guard=24h")
    given = _parts(rest, name, keys)
    guard_s = _span(given["guard"], name) if "guard" in given else math.inf
    if kind not in WAYS:
        return replace(plain, guard_s=guard_s)
    if "queue" not in given:
        raise EscalaError(
            f"scheduler {name!r}: {kind} is in the order of submission, the oldest in front: name an order too, {kind}:queue=sjf:{rest}"
        )
    return replace(_score(given["queue"], name), queueing=WAYS[kind], guard_s=guard_s)


def queue(score: str, guard_s: float = math.inf, way: str = "easy") -> str:
    """Name of the scheduler with a queue in the order of this score, for every parameter that takes one. way: "easy" or "conservative".
    guard_s: who has waited so long stands in front."""
    guard = "" if guard_s == math.inf else f":guard={_written(guard_s)}"
    name = f"{way}:queue={score}{guard}"
    if way not in WAYS:
        raise EscalaError(f"way={way!r}: use {' or '.join(WAYS)}")
    queue_of(name)
    return name


def _written(seconds: float) -> str:
    """A span as it stands in a name: 73h, 90m, 10s."""
    if not isinstance(seconds, Real):
        return str(seconds)
    unit = next((unit for unit in ("h", "m") if seconds > 0 and seconds % UNITS[unit] == 0), "s")
    return f"{repr(float(seconds) / UNITS[unit]).removesuffix('.0')}{unit}"


def _keys(kind: str, plain: Scheduler) -> tuple[str, ...]:
    """What may stand behind the name of a scheduler."""
    if kind in WAYS:
        return ("queue", "guard")
    ordered = plain.queueing in (codes.STRICT, codes.GREEDY) and plain.ordering != codes.BY_QUEUE
    return ("guard",) if ordered else ()


def _parts(rest: str, name: str, keys: tuple[str, ...]) -> dict[str, str]:
    """Key -> value of the parts between colons."""
    found: dict[str, str] = {}
    for part in rest.split(":"):
        key, equals, value = part.partition("=")
        if not equals or key not in keys:
            known = " and ".join(f"{k}=" for k in keys)
            raise EscalaError(f"scheduler {name!r}: {part!r} is no part that it takes: {_near(key, keys, '=')}it takes {known}")
        if key in found:
            raise EscalaError(f"scheduler {name!r}: {key}= is given twice: give it once")
        found[key] = value
    return found


def _near(word: str, known: Iterable[str], end: str = "") -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}{end}? " if near else ""


def _score(word: str, name: str) -> Scheduler:
    """A scheduler in the order of a score."""
    if word in FIXED:
        return Scheduler(codes.GREEDY, codes.BY_RANK, FIXED[word])
    if word in CHANGING:
        return Scheduler(codes.GREEDY, CHANGING[word], by_size)
    scores = [*FIXED, *CHANGING]
    raise EscalaError(f"scheduler {name!r}: {word!r} is no score: {_near(word, scores)}known are {', '.join(scores)}")


def _span(text: str, name: str) -> float:
    """A span of time such as 73h, 30m, 2d or 90 (seconds), in s."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_S:
        raise EscalaError(f"scheduler {name!r}: guard={text} is no span of time: write it as 24h, 30m, 2d or 90 (seconds)")
    return seconds
