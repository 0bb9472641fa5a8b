"""Options by which the jobs of a log are cleaned, for all verbs that read one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from escala.errors import EscalaError

NoRequest = Annotated[
    str | None,
    typer.Option(
        "--no-request",
        metavar="runtime|drop|SECONDS",
        help="a job that requests no time gets: runtime (no limit, policies see it), drop, or a limit in seconds "
        "[runtime]",
        show_default=False,
        rich_help_panel="Reading",
    ),
]


ZeroRuntime = Annotated[
    str | None,
    typer.Option(
        "--zero-runtime",
        metavar="WHAT",
        help="jobs that ran 0 s: a runtime in seconds, or drop [1]",
        show_default=False,
        rich_help_panel="Reading",
    ),
]


Longest = Annotated[
    float | None,
    typer.Option(
        "--longest",
        metavar="SECONDS",
        help="jobs that ran longer are absurd and left out [1e9]",
        show_default=False,
        rich_help_panel="Reading",
    ),
]


MostCores = Annotated[
    int | None,
    typer.Option(
        "--most-cores",
        metavar="N",
        min=1,
        help="jobs of more cores are absurd and left out [2^31 - 1]",
        show_default=False,
        rich_help_panel="Reading",
    ),
]


def _seconds_or(word: str, option: str, text: str) -> str | float:
    """The word, or a number of seconds."""
    if text == word:
        return text
    try:
        return float(text)
    except ValueError:
        raise EscalaError(f"{option} is {text!r}: give {word} or a number of seconds") from None


def _rules(no_request: str | None, zero_runtime: str | None, longest: float | None, most_cores: int | None) -> Any:
    """The rules of cleaning, None where no option speaks of them."""
    given: dict[str, Any] = {}
    if no_request is not None:
        given["no_request"] = no_request if no_request == "runtime" else _seconds_or("drop", "--no-request", no_request)
    if zero_runtime is not None:
        given["zero_runtime_s"] = (
            None if zero_runtime == "drop" else _seconds_or("drop", "--zero-runtime", zero_runtime)
        )
    given |= {name: value for name, value in (("longest_s", longest), ("most_cores", most_cores)) if value is not None}
    if not given:
        return None
    from escala.workload import CleaningRules

    return CleaningRules(**given)
