"""Lists of hosts as Slurm writes them: n[1-3,07-09],gpu1, racks and places included (r[1-2]c[1-4])."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from functools import lru_cache

from escala.errors import EscalaError, quoted

MOST = 1_000_000
_PART = re.compile(r"[^\[\],\s]+|\[[\d,-]+\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@lru_cache(maxsize=16384)
def expand(text: str) -> tuple[str, ...]:
    """The names; EscalaError for what is no list."""
    if not text:
        return ()
    names: list[str] = []
    for piece in _pieces(text):
        names += _expanded(piece, text, MOST - len(names))
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
    choices = [_numbers(part[1:-1], whole) if part.startswith("[") else [part] for part in parts]
    size = 1
    for choice in choices:
        size *= len(choice)
    if size > most:
        raise EscalaError(f"hosts {quoted(whole)}: more than {MOST} names")
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _numbers(text: str, whole: str) -> list[str]:
    out: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise EscalaError(f"hosts {quoted(whole)}: {quoted(part)} is no number and no range")
        low, high = int(found[1]), int(found[2] or found[1])
        if high < low or high - low >= MOST:
            raise EscalaError(f"hosts {quoted(whole)}: range {quoted(part)} is empty or too long")
        out += [str(k).zfill(len(found[1])) for k in range(low, high + 1)]
    return out
