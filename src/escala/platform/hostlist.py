"""Lists of hosts as Slurm writes them: `n[1-3,5],gpu[01-04]`."""

from __future__ import annotations

import re

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
    """The names that a host list stands for, in its order. EscalaError, beginning with `where`, for one that is broken or far too long."""
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
