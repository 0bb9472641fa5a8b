"""What the records of a journal hold: checked as they are read, so that nobody behind stumbles over one that is
damaged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from escala.bridges.slurm.seen import ENDED, ON_NODES, PENDING
from escala.errors import EscalaError, quoted
from escala.platform import Platform

Shape = Callable[[Any], bool]

BEGIN, LOOK, MISS = "begin", "look", "miss"
TAKEN = ("same", "earlier", "later", "unasked")
"""How the policy took a start."""
MOST = 1e15


def _text(told: Any) -> bool:
    return isinstance(told, str) and told.isprintable()


def _number(told: Any) -> bool:
    return isinstance(told, int | float) and not isinstance(told, bool) and abs(told) < MOST


def _some(told: Any) -> bool:
    return _number(told) and told >= 0


def _end(told: Any) -> bool:
    return told == math.inf or _number(told)


def _whole(told: Any) -> bool:
    return isinstance(told, int) and _number(told)


def _count(told: Any) -> bool:
    return _whole(told) and told >= 0


def _truth(told: Any) -> bool:
    return isinstance(told, bool)


def _or_none(shape: Shape) -> Shape:
    return lambda told: told is None or shape(told)


def _one_of(*known: str) -> Shape:
    return lambda told: isinstance(told, str) and told in known


def _many(shape: Shape) -> Shape:
    return lambda told: isinstance(told, list) and all(map(shape, told))


def _row(*shapes: Shape, more: Shape | None = None) -> Shape:
    """more: of one field behind them, which may be there."""

    def fits(told: Any) -> bool:
        if not isinstance(told, list) or not len(shapes) <= len(told) <= len(shapes) + (more is not None):
            return False
        return all(shape(value) for shape, value in zip([*shapes, *([more] if more else [])], told, strict=False))

    return fits


def _by_name(shape: Shape) -> Shape:
    return lambda told: isinstance(told, dict) and all(_text(key) and shape(value) for key, value in told.items())


def _holding(**shapes: Shape) -> Shape:
    return lambda told: isinstance(told, dict) and all(shape(told[key]) for key, shape in shapes.items() if key in told)


def _platform(told: Any) -> bool:
    try:
        return isinstance(told, dict) and bool(Platform.from_spec(told).n_nodes)
    except (EscalaError, TypeError, AttributeError, KeyError, OverflowError):
        return False


_TEXTS = _many(_text)
_TIME = _or_none(_number)
_JOB = _row(
    *(_text, _one_of(PENDING, *ON_NODES, ENDED), _number, _TIME, _TIME, _TIME, _count, _count, _whole, _whole, _truth),
    *(_text, _text, _TEXTS, _text),
)
_NODE = _row(_text, _count, _count, _TEXTS, _TIME, _TEXTS)
_SEEN = _holding(
    whole=_truth,
    jobs=_many(_JOB),
    left=_TEXTS,
    nodes=_many(_NODE),
    gone=_TEXTS,
    reservations=_many(_row(_text, _TEXTS, _number, _end, more=_TEXTS)),
)
_PASSED = ("watched_s", "off_s", "switching_s", "idle_s", "truly_off_s", "gap_s")
_LIVED = _holding(**dict.fromkeys(_PASSED, _some), saved_j=_number, delays=_many(_row(_text, _text, _some)))
_NAMES = ("starts", "wakes", "offs", "leases", "advice", "added", "aside")
NEEDED = {BEGIN: ("mode", "policies", "partition", "names", "platform"), LOOK: ("seq",), MISS: ("why",)}
KNOWN: dict[str, dict[str, Shape]] = {
    BEGIN: {
        **dict.fromkeys(("mode", "policies", "partition", "slurm", "cluster"), _text),
        "names": _TEXTS,
        "platform": _platform,
        "period_s": _some,
        "guards": _by_name(_or_none(_some)),
        "options": _by_name(lambda told: told is None or _text(told) or _number(told) or _truth(told)),
    },
    LOOK: {
        **dict.fromkeys(_NAMES, _TEXTS),
        "seq": _count,
        "unsure": _many(_count),
        "left_out": _TEXTS,
        "lived": _LIVED,
        "started": _many(_row(_text, _text, _number, _number, _one_of(*TAKEN), _TIME, _TIME, _TIME, more=_TIME)),
        "acted": _many(_row(_text, _truth)),
        "refused": _many(_row(_text, _text, _text)),
        "changed": _many(_row(_text, _whole, _whole)),
        "expected": _by_name(_row(_TIME, _TIME)),
        "counts": _by_name(_count),
        "seen": _SEEN,
    },
    MISS: {"why": _text},
}


def wrong(record: Any) -> str:
    """What of a record is not as it should be; "" where nothing is."""
    if not isinstance(record, dict):
        return f"it is {quoted(record)}"
    kind = record.get("kind")
    if kind not in (BEGIN, LOOK, MISS):
        return f"kind is {quoted(kind)}"
    if not _number(record.get("t")):
        return f"t is {quoted(record.get('t'))}"
    missing = next((key for key in NEEDED[kind] if key not in record), None)
    if missing is not None:
        return f"{missing} is not there"
    damaged = next((key for key, shape in KNOWN[kind].items() if key in record and not shape(record[key])), None)
    return "" if damaged is None else f"{damaged} is {quoted(record[damaged])}"
