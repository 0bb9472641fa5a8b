"""`--split` of train and evaluate: which days of a log come first."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from escala.errors import EscalaError

Split = Annotated[
    str,
    typer.Option(
        "--split", metavar="HOW", help="which days are the first N: time, or random:SEED (in train and evaluate alike)"
    ),
]


def seed_of(how: str, apart: bool, option: str) -> int | None:
    """The seed by which days are drawn, None for time order. apart: are days to learn from told from days to judge on,
    by `option`?"""
    if how == "time":
        return None
    kind, colon, seed = how.partition(":")
    if kind != "random" or (colon and not (seed.isascii() and seed.isdigit())):
        raise EscalaError(
            f"--split {how}: give time, random, or random:SEED with a whole number, for instance random:1"
        )
    if not apart:
        raise EscalaError(f"--split {how}: says which days are the first N: give {option} N, too")
    return int(seed or 0)


def parted(days: list[Any], seed: int | None, first: int | None) -> tuple[list[Any], list[Any]]:
    """The first so many days (None: all) and the others, each in time order."""
    from escala.studies.lab.days import drawn

    if seed is None:
        return days[:first], [] if first is None else days[first:]
    order = drawn(len(days), seed)
    return [days[k] for k in sorted(order[:first])], [days[k] for k in sorted(order[first:])]
