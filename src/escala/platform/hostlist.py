"""Lists of hosts as Slurm writes them: `n[1-3,5],gpu[01-04]`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from escala.errors import EscalaError, quoted

MOST_HOSTS = 1_000_000
_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?")


def split_hosts(text: str) -> list[str]:
    """The parts between commas that stand outside brackets."""
    parts, depth, begun = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            parts.append(text[begun:place])
            begun = place + 1
    return [part.strip() for part in [*parts, text[begun:]] if part.strip()]


def hosts_of(text: str, where: str) -> list[str]:
    """The names that a host list stands for, in its order. EscalaError, beginning with `where`, for one that is broken
    or far too long."""
    return [name for part in _parts_of(text, where)[0] for name in _names(part)]


def count_of(text: str, where: str) -> int:
    """How many names a host list stands for, without making them. EscalaError as of `hosts_of`."""
    return _parts_of(text, where)[1]


def _parts_of(text: str, where: str) -> tuple[list[_Part], int]:
    """The parts, and how many names they stand for."""
    told = f"{where}: host list {quoted(text)}"
    parts, count = list[_Part](), 0
    for part in split_hosts(text):
        parts.append(_part_of(part, told))
        count += math.prod(sum(last - first + 1 for first, last, _ in some) for some in parts[-1].ranges)
        if count > MOST_HOSTS:  # before any is made
            raise EscalaError(f"{told} stands for more than {MOST_HOSTS} hosts")
    return parts, count


class _Part(NamedTuple):
    """`rack[1-2]node[01-16]`: the texts around its brackets, and of each bracket the ranges, see `_range`."""

    texts: list[str]
    ranges: list[list[tuple[int, int, int]]]


def _part_of(text: str, where: str) -> _Part:
    part, rest, bracket = _Part([], []), text, "["
    while bracket:
        before, bracket, rest = rest.partition("[")
        if "]" in before:
            raise EscalaError(f"{where} has a ] without [")
        part.texts.append(before)
        if bracket:
            inside, closed, rest = rest.partition("]")
            if not closed or not inside:
                raise EscalaError(f"{where} has a [ that is not closed, or nothing in it")
            part.ranges.append([_range(one.strip(), where) for one in inside.split(",")])
    return part


def _names(part: _Part) -> Iterator[str]:
    """Those that a part stands for; the last bracket goes round first."""
    numbers = [
        [str(number).zfill(width) for first, last, width in some for number in range(first, last + 1)]
        for some in part.ranges
    ]
    for chosen in itertools.product(*numbers):
        yield part.texts[0] + "".join(itertools.chain(*zip(chosen, part.texts[1:], strict=True)))


def _range(one: str, where: str) -> tuple[int, int, int]:
    """`01-03` -> first and last number, and digits of the first."""
    match = _RANGE.fullmatch(one)
    if match is None:
        raise EscalaError(f"{where}: {quoted(one)} is neither a number nor a range such as 01-16")
    first, last = match[1], match[2] or match[1]
    if int(last) < int(first) or int(last) - int(first) >= MOST_HOSTS:
        raise EscalaError(f"{where}: the range {quoted(one)} runs backwards or is too long")
    return int(first), int(last), len(first)


_NUMBERED = re.compile(r"(.*?)(\d{1,12})([^\d]*)")


def folded(names: Sequence[str]) -> str:
    """The host list that stands for these names in their order: n1, n2, n3, m7 -> `n[1-3],m7`."""
    parts: list[str] = []
    runs: list[list[str]] = []  # first and last number of each
    kept: tuple[str, str] | None = None  # what stands before and after the number

    def close() -> None:
        if kept is not None:
            shown = ",".join(a if a == b else f"{a}-{b}" for a, b in runs)
            plain = len(runs) == 1 and runs[0][0] == runs[0][1]
            parts.append(f"{kept[0]}{shown if plain else f'[{shown}]'}{kept[1]}")

    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None or "[" in name or "," in name:
            close()
            kept, runs = None, []
            parts.append(name)
            continue
        before, digits, after = match.groups()
        if (
            kept is not None
            and kept == (before, after)
            and int(digits) == int(runs[-1][1]) + 1
            and _alike(runs[-1][1], digits)
        ):
            runs[-1][1] = digits
        elif kept is not None and kept == (before, after):
            runs.append([digits, digits])
        else:
            close()
            kept, runs = (before, after), [[digits, digits]]
    close()
    return ",".join(parts)


def _alike(last: str, next_: str) -> bool:
    """May one range go from the first number to the second? Where numbers are filled with zeros all must have one
    length."""
    return len(last) == len(next_) or not (last.startswith("0") or next_.startswith("0"))


def in_order(names: Iterable[str]) -> list[str]:
    """Names sorted as people count: n2 before n10."""
    return sorted(
        names,
        key=lambda name: [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)],
    )
