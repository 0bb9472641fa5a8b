"""Lists of hosts as Slurm writes them: `n[1-3,5],gpu[01-04]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
    found: list[str] = []
    for part in split_hosts(text):
        for name in _expanded(part, f"{where}: host list {quoted(text)}"):
            found.append(name)
            if len(found) > MOST_HOSTS:
                raise EscalaError(f"{where}: host list {quoted(text)} stands for more than {MOST_HOSTS} hosts")
    return found


def _expanded(part: str, where: str) -> list[str]:
    """Names of one part, `rack[1-2]node[01-16]`."""
    before, bracket, rest = part.partition("[")
    if not bracket:
        if "]" in part:
            raise EscalaError(f"{where} has a ] without [")
        return [part]
    inside, closed, after = rest.partition("]")
    if not closed or not inside:
        raise EscalaError(f"{where} has a [ that is not closed, or nothing in it")
    tails = _expanded(after, where) if after else [""]
    numbers = [number for one in inside.split(",") for number in _numbers(one.strip(), where)]
    if len(numbers) * len(tails) > MOST_HOSTS:
        raise EscalaError(f"{where} stands for more than {MOST_HOSTS} hosts")
    return [f"{before}{number}{tail}" for number in numbers for tail in tails]


def _numbers(one: str, where: str) -> list[str]:
    """`01-03` -> 01, 02, 03."""
    match = _RANGE.fullmatch(one)
    if match is None:
        raise EscalaError(f"{where}: {quoted(one)} is neither a number nor a range such as 01-16")
    first, last = match[1], match[2] or match[1]
    if int(last) < int(first) or int(last) - int(first) >= MOST_HOSTS:
        raise EscalaError(f"{where}: the range {quoted(one)} runs backwards or is too long")
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]


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
