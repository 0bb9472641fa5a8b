"""Lists of hosts as Slurm writes them: n[1-3,07-09],gpu1, racks and places included (r[1-2]c[1-4])."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from functools import lru_cache

from escala.errors import EscalaError, quoted

MOST = 100_000
"""Names in a list: more than any Slurm has nodes."""
LONG = 64
"""Longer lists are not kept: few jobs hold so many nodes, and what is kept stays small."""
_PART = re.compile(r"[^\[\],\s]+|\[[\d,-]+\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def expand(text: str, most: int = MOST) -> tuple[str, ...]:
    """The names; EscalaError for what is no list, and for one of more than `most` names, before it is built."""
    names = (_short(text) if len(text) < 16 * LONG else None) or _names(text, most)
    if len(names) > most:
        raise _too_many(text, most)
    return names


@lru_cache(maxsize=16384)
def _short(text: str) -> tuple[str, ...] | None:
    """The names of a list that is worth keeping; None for a longer one."""
    try:
        return _names(text, LONG)
    except _TooMany:
        return None


class _TooMany(EscalaError):
    """A list of more names than are wanted."""


def _too_many(text: str, most: int) -> _TooMany:
    return _TooMany(f"hosts {quoted(text)}: more than {most} names")


def _names(text: str, most: int) -> tuple[str, ...]:
    if not text:
        return ()
    names: list[str] = []
    for piece in _pieces(text):
        names += _expanded(piece, text, most - len(names))
    return tuple(map(sys.intern, names))  # the same few in all lists


def _pieces(text: str) -> Iterator[str]:
    """Split at the commas outside brackets."""
    depth, begin = 0, 0
    for k, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            yield text[begin:k]
            begin = k + 1
    yield text[begin:]


def _expanded(piece: str, whole: str, most: int) -> list[str]:
    parts = _PART.findall(piece)
    if not piece or "".join(parts) != piece:
        raise EscalaError(f"hosts {quoted(whole)}: no list such as n[1-3],m4")
    choices, size = list[list[str]](), 1
    for part in parts:
        choices.append(_numbers(part[1:-1], whole, most) if part.startswith("[") else [part])
        size *= len(choices[-1])
        if size > most:
            raise _too_many(whole, most)
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _numbers(text: str, whole: str, most: int) -> list[str]:
    out: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise EscalaError(f"hosts {quoted(whole)}: {quoted(part)} is no number and no range")
        low, high = int(found[1]), int(found[2] or found[1])
        if high < low:
            raise EscalaError(f"hosts {quoted(whole)}: range {quoted(part)} is empty")
        if len(out) + high - low >= most:
            raise _too_many(whole, most)
        out += [str(k).zfill(len(found[1])) for k in range(low, high + 1)]
    return out
