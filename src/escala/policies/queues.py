"""The names of schedulers with a queue in order of priority: `easy:queue=SCORE[:backfill=SCORE][:guard=TIME]`,
`conservative:queue=SCORE[:guard=TIME]`, and strict and greedy schedulers with `:guard=TIME`.

SCORE is a name, or `score:FILE`, a file with a linear score. The path may hold colons: it ends where the next key of
the name begins.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.kernel import codes
from escala.options import SPANS
from escala.policies.linear import Linear, Multifactor
from escala.policies.schedulers import SCHEDULERS, Scheduler
from escala.policies.score_files import PREFIX, read_score
from escala.prediction.folder import MANIFEST
from escala.prediction.folder import PREFIX as MODEL
from escala.scores import CHANGING, FIXED, by_size

QUEUE_FORMS = {
    "easy:queue=SCORE[:guard=TIME]": "the first in the order of the score has easy's reservation, the others pass in "
    "that order",
    "easy:queue=SCORE:backfill=SCORE[:guard=TIME]": "the same, but the others pass in the order of the second score",
    "conservative:queue=SCORE[:guard=TIME]": "conservative, reservations given anew in the order of the score",
    "easy:queue=score:FILE[:guard=TIME]": "in the order of a linear score: weights over named features, in a file "
    "(docs: how-to/queue)",
    "NAME:guard=TIME": "a scheduler above without reservations (sjf, sjf-fit, ...); with a guard: who has waited so "
    "long stands in front",
}
WAYS = {"easy": codes.EASY_PRIORITY, "conservative": codes.CONSERVATIVE}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_S = 1e10
ESCALA = "escala"
"""The score that comes with Escala, and the scheduler in its order; see docs/how-to/queue.md."""
ESCALA_RULE = "easy:queue=escala:guard=24h"
ESTIMATES = ("estimate", "order_estimate")
"""Parts of a scheduler's name that are options of the same names."""
KEYS = ("queue", "backfill", *SPANS, *ESTIMATES)
FILE = re.compile(rf"(?<=={PREFIX}|={MODEL}).*?(?=:(?:{'|'.join(KEYS)})=|$)")
"""The path of a score file, or of the folder of a model of run times, in a name."""


def queue_of(name: str) -> Scheduler:
    """The scheduler of a name with a colon, whose first part is a scheduler; EscalaError for what makes no sense."""
    kind, _, rest = name.partition(":")
    plain = SCHEDULERS[kind]
    keys = _keys(kind, plain)
    if not keys:
        raise EscalaError(
            f"scheduler {quoted(name)}: {kind} takes nothing behind its name: write {kind}, or easy:queue=sjf:guard=24h"
        )
    given = _parts(rest, name, keys)
    if kind not in WAYS:
        return replace(plain, **_spans(given, name))
    if "queue" not in given:
        raise EscalaError(
            f"scheduler {quoted(name)}: {kind} is in the order of submission: name an order too, "
            f"{kind}:queue=sjf:{rest}"
        )
    return order_of(given, name, kind)


def order_of(given: Mapping[str, str], name: str, way: str = "easy") -> Scheduler:
    """The scheduler whose queue is in the order of these parts of the name: queue, and perhaps backfill and guard."""
    scores = _score(given["queue"], name), _score(given["backfill"], name) if "backfill" in given else None
    return replace(_queued(scores[0], way, scores[1]), **_spans(given, name))


def _spans(given: Mapping[str, str], name: str) -> dict[str, Any]:
    return {f"{key}_s": span_of(given[key], name, key) for key in SPANS if key in given}


def queue_by(
    score: str | Linear | Multifactor,
    guard_s: float = math.inf,
    way: str = "easy",
    backfill: str | Linear | Multifactor | None = None,
) -> Scheduler:
    """The scheduler with a queue in the order of this score, of which no file need tell: for `simulate` and its like.
    As `queue`, but scores may be objects."""
    first, second = (
        _score(one, "queue_by") if isinstance(one, str) else None if one is None else _linear(one)
        for one in (score, backfill)
    )
    assert first is not None
    guard = guard_s if guard_s == math.inf else span_of(_written(guard_s), "queue_by", "guard")
    return replace(
        _queued(first, way, second),
        guard_s=guard,
        name=_named(str(score), guard_s, way, "" if backfill is None else str(backfill)),
    )


def _queued(score: Scheduler, way: str, backfill: Scheduler | None) -> Scheduler:
    _check_way(way, backfill is not None)
    chosen = replace(score, queueing=WAYS[way])
    return chosen if backfill is None else chosen.passed_by(backfill)


def _check_way(way: str, backfill: bool) -> None:
    """EscalaError for a way that is none, or that has no place for an order of those who pass."""
    if way not in WAYS:
        raise EscalaError(f"way={way!r}: use {' or '.join(WAYS)}")
    if backfill and way != "easy":
        raise EscalaError(f"way={way!r}: only easy has an order of those who pass: leave backfill out")


def _linear(score: Linear | Multifactor) -> Scheduler:
    return Scheduler(codes.GREEDY, codes.BY_LINEAR, by_size, orders=(score, None))


def queue(score: str, guard_s: float = math.inf, way: str = "easy", backfill: str = "") -> str:
    """Name of the scheduler with a queue in the order of this score, for every parameter that takes one. way: "easy" or
    "conservative".
    guard_s: who has waited so long stands in front. backfill: the score in whose order the others pass the first; "":
    the same."""
    name = _named(score, guard_s, way, backfill)
    _check_way(way, bool(backfill))
    queue_of(name)
    return name


def _named(score: str, guard_s: float, way: str, backfill: str) -> str:
    """A queue as it stands in tables."""
    guard = "" if guard_s == math.inf else f":guard={_written(guard_s)}"
    return f"{way}:queue={score}{f':backfill={backfill}' if backfill else ''}{guard}"


def _written(seconds: float) -> str:
    """A span as it stands in a name: 73h, 90m, 10s."""
    if not isinstance(seconds, Real):
        return str(seconds)
    unit = next((unit for unit in ("h", "m") if seconds > 0 and seconds % UNITS[unit] == 0), "s")
    return f"{repr(float(seconds) / UNITS[unit]).removesuffix('.0')}{unit}"


def _keys(kind: str, plain: Scheduler) -> tuple[str, ...]:
    """What may stand behind the name of a scheduler."""
    if kind in WAYS:
        return ("queue", "guard", "backfill") if kind == "easy" else ("queue", "guard")
    ordered = plain.queueing in (codes.STRICT, codes.GREEDY) and plain.ordering != codes.BY_QUEUE
    return ("guard",) if ordered else ()


def _parts(rest: str, name: str, keys: tuple[str, ...]) -> dict[str, str]:
    """Key -> value of the parts between colons."""
    found: dict[str, str] = {}
    for part in _split(rest, keys):
        key, equals, value = part.partition("=")
        if not equals or key not in keys:
            known = ", ".join(f"{k}=" for k in keys)
            raise EscalaError(
                f"scheduler {quoted(name)}: {quoted(part)} is no part that it takes: {nearest(key, keys, '=')}it "
                f"takes {known}"
            )
        if key in found:
            raise EscalaError(f"scheduler {quoted(name)}: {key}= is given twice: give it once")
        found[key] = value
    return found


def within_folder(name: str, folder: Path) -> str:
    """The name of a scheduler with its score files and models, those of relative paths, in this folder."""
    return FILE.sub(lambda found: str(folder / found[0]) if found[0] else "", name)


def score_digests(name: Any) -> dict[str, str]:
    """SHA-256 of the score files and the models' manifests that the name of a scheduler tells, by path, of those that
    are there."""
    told = [Path(path) for path in (FILE.findall(name) if isinstance(name, str) else []) if path]
    paths = [path / MANIFEST if path.is_dir() else path for path in told]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def _split(rest: str, keys: tuple[str, ...]) -> Iterator[str]:
    """The parts between colons; the path of a score file goes on to the next key."""
    key = "|".join(keys)
    yield from re.findall(rf"(?:^|:)((?:{key})={PREFIX}.*?(?=:(?:{key})=|$)|[^:]*)", rest)


@functools.cache
def shipped() -> Scheduler:
    """The order of the score that comes with Escala: `escala.toml` beside this file."""
    return _linear(read_score(Path(__file__).with_name("escala.toml")))


def _score(word: str, name: str) -> Scheduler:
    """A scheduler in the order of a score."""
    if word.startswith(PREFIX):
        try:
            return _linear(read_score(Path(word.removeprefix(PREFIX))))
        except EscalaError as error:
            raise EscalaError(f"scheduler {quoted(name)}: {error}") from None
    if word == ESCALA:
        return shipped()
    if word in FIXED:
        return Scheduler(codes.GREEDY, codes.BY_RANK, FIXED[word])
    if word in CHANGING:
        return Scheduler(codes.GREEDY, CHANGING[word], by_size)
    scores = [*FIXED, *CHANGING, ESCALA]
    known = f"known are {', '.join(scores)}, and {PREFIX}FILE"
    raise EscalaError(f"scheduler {quoted(name)}: {quoted(word)} is no score: {nearest(word, scores)}{known}")


def span_of(text: str, name: str, key: str) -> float:
    """A span of time such as 73h, 30m, 2d or 90 (seconds), in s."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_S:
        raise EscalaError(
            f"scheduler {quoted(name)}: {key}={text} is no span of time: write it as 24h, 30m, 2d or 90 (seconds)"
        )
    return seconds
