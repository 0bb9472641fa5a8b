"""`escala train --algorithm search`: an off-reservation agent, searched by whole days."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli.interrupt import keeping, learnt
from escala.cli.terminal import Begin
from escala.errors import EscalaError

SEARCH = "search"
ALGORITHMS = ("maskable-ppo", "ppo", "a2c", "rllib-ppo", SEARCH)
ENVIRONMENT = "escala/OffReservation-v0"
GENERATIONS, POPULATION, WORTH = 30, 20, 1.0

Generations = Annotated[
    int | None,
    typer.Option("--generations", min=1, metavar="N", help="search: how long, in generations [30]", show_default=False),
]
Population = Annotated[
    int | None,
    typer.Option(
        "--population", min=4, metavar="N", help="search: candidates in each generation [20]", show_default=False
    ),
]
Worth = Annotated[
    float | None,
    typer.Option(
        "--worth",
        min=0.0,
        metavar="X",
        help="search: what waiting costs; with 1 hold:0.25 is about the best fixed rule, with less more is saved [1]",
        show_default=False,
    ),
]


def check(
    algorithm: str | None, environment: str, by_gradient: Mapping[str, Any], by_search: Mapping[str, Any]
) -> None:
    """Refuse, before anything is read, an environment that is not searched and options of the other way to learn (None:
    not given)."""
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise EscalaError(f"unknown algorithm {algorithm!r}: use one of {', '.join(ALGORITHMS)}")
    if algorithm != SEARCH:
        for option, value in by_search.items():
            if value is not None:
                raise EscalaError(f"--{option} is of --algorithm {SEARCH}: give that, or leave it out")
        return
    if environment != ENVIRONMENT:
        raise EscalaError(
            f"--algorithm {SEARCH} is for {ENVIRONMENT}; schedulers are searched in Python "
            "(escala.agents.search_scheduler), where waiting has a price"
        )
    for option, value in by_gradient.items():
        if value is not None:
            raise EscalaError(
                f"--{option} means nothing to --algorithm {SEARCH}: a search is as long as --generations N of "
                "--population N"
            )


def search(
    days: list[Any], machine: Any, begin: Begin, *, out: Path, resume: bool, seed: int, validation: Any,
    generations: int | None, population: int | None, worth: float | None,
) -> Any:  # fmt: skip
    """The agent of a search on all these days; with validation days, of the generation that does best on them."""
    from escala.agents import checkpoint
    from escala.agents import search as searched
    from escala.studies.lab.searched import options_of

    checkpoint.check_folder(out, resume)
    if resume and not (out / checkpoint.SEARCH).is_file():
        raise EscalaError(f"{out}: no {checkpoint.SEARCH} to resume from; search without --resume first")
    begin(f"pricing waits on {len(days)} days")
    options = options_of(days, machine, WORTH if worth is None else worth)
    share = begin(f"searching on {len(days)} days")
    with keeping(lambda: learnt(out)):
        return searched(
            days, machine, validation=validation, generations=generations or GENERATIONS,
            population=population or POPULATION, days_each=len(days), seed=seed, out=out, progress=share, **options,
        )  # fmt: skip


def facts(done: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """What was searched, for the terminal."""
    told = [("generations", done["generations"], ""), ("candidates in each", done["population"], "")]
    values = [("value of a training day", 1), ("value of a validation day, the best", 2)]
    for name, column in values:
        seen = [point[column] for point in done["curve"] if point[column] is not None]
        if seen:
            told.append((name, max(seen) if column == 2 else seen[-1], "idle minutes of the platform"))
    return told
