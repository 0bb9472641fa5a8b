"""Lists of hosts as Slurm writes them: `n[1-3,5],gpu[01-04]`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

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


def hosts_text(value: Any, where: str, such: str = "ALL") -> str:
    """A host list as a file has it; EscalaError for what is no text. such: one that could stand there."""
    if not isinstance(value, str):
        raise EscalaError(f'{where}: {quoted(value)}: give one text, such as "{such}"')
    return value


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
    before, *rest = text.split("[")
    part = _Part([before], [])
    for one in rest:
        inside, closed, after = one.partition("]")
        if not closed or not inside:
            raise EscalaError(f"{where} has a [ that is not closed, or nothing in it")
        part.ranges.append([_range(number.strip(), where) for number in inside.split(",")])
        part.texts.append(after)
    if any("]" in one for one in part.texts):
        raise EscalaError(f"{where} has a ] without [")
    return part


def _names(part: _Part) -> Iterator[str]:
    """Those that a part stands for; the last bracket goes round first."""
    numbers = [
        [str(number).zfill(width) for first, last, width in some for number in range(first, last + 1)]
        for some in part.ranges
    ]
    if len(numbers) == 1:
        before, after = part.texts
        yield from [f"{before}{number}{after}" for number in numbers[0]]
        return
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


_NUMBERS = re.compile(r"([0-9]+)")
MOST_DIGITS = 12


def folded(names: Sequence[str]) -> str:
    """The host list that stands for these names in their order: n1, n2, n3, m7 -> `n[1-3],m7`. Where a name has several
    numbers, as in n1.rack2.org, the one in which neighbours differ is folded."""
    runs: list[_Run] = []
    for name in names:
        if not runs or not runs[-1].took(name):
            runs.append(_Run(name))
    return ",".join(run.text() for run in runs)


class _Run:
    """Names that differ in one number alone. texts: of the last one, every second a number; place: of the number, None
    with one name; ranges: first and last number of each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts = _NUMBERS.split(name)
        self.place: int | None = None
        self.ranges: list[list[str]] = []

    def took(self, name: str) -> bool:
        """Is the name the next of this run?"""
        texts = _NUMBERS.split(name)
        differ = [k for k, (one, other) in enumerate(zip(self.texts, texts, strict=False)) if one != other]
        if len(texts) != len(self.texts) or len(differ) != 1 or "[" in name or "," in name:
            return False
        place = differ[0]
        last, next_ = self.texts[place], texts[place]
        if self.place not in (None, place) or place % 2 == 0 or max(len(last), len(next_)) > MOST_DIGITS:
            return False
        self.ranges = self.ranges or [[last, last]]
        if int(next_) == int(last) + 1 and _alike(last, next_):
            self.ranges[-1][1] = next_
        else:
            self.ranges.append([next_, next_])
        self.place, self.texts = place, texts
        return True

    def text(self) -> str:
        if self.place is None:
            return self.name
        shown = ",".join(a if a == b else f"{a}-{b}" for a, b in self.ranges)
        return "".join([*self.texts[: self.place], f"[{shown}]", *self.texts[self.place + 1 :]])


def _alike(last: str, next_: str) -> bool:
    """May one range go from the first number to the second? Where numbers are filled with zeros all must have one
    length."""
    return len(last) == len(next_) or not (last.startswith("0") or next_.startswith("0"))


def in_order(names: Iterable[str]) -> list[str]:
    """Names sorted as people count: n2 before n10."""
    return sorted(names, key=lambda name: [_counted(part) for part in re.split(r"(\d+)", name)])


def _counted(part: str) -> tuple[int, int, str]:
    """A number of any length by its value, before text."""
    if not part.isdigit():
        return 1, 0, part
    digits = part.lstrip("0")
    return 0, len(digits), digits
