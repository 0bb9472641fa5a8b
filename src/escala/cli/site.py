"""`escala.toml`: what a site says once for all verbs, its platform, its price of energy, how its logs are read; flags
go before it.

Its keys are the options that `escala.cli.options` describes, without the dashes, all but those of the output.
"""

from __future__ import annotations

import functools
import inspect
import math
import os.path
import types
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import typer
from typer.models import OptionInfo

from escala.cli import options, prices
from escala.cli.terminal import remark
from escala.errors import EscalaError, quoted

FILE = "escala.toml"
NOT_ANY = "none"
OUTPUT = "Output"
NEEDED = {
    str: "a text between quotes",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list[str]: 'a list of texts (as ["name=value"])',
}


class Key(NamedTuple):
    """An option as a key of the file. kind: one of `NEEDED`. lowest: the smallest number that it takes, None where any
    will do."""

    kind: Any
    lowest: float | None


def option_of(annotation: Any) -> OptionInfo | None:
    """The option of an annotated parameter, None of an argument."""
    found = getattr(annotation, "__metadata__", (None,))[0]
    return found if isinstance(found, OptionInfo) else None


def name_of(option: OptionInfo) -> str:
    """What an option is called, without its dashes; in an annotation its first argument is its name, not its
    default."""
    return str(option.default).removeprefix("--")


def _kind(annotation: Any) -> Any:
    """The type of what an option takes: a key of `NEEDED`."""
    kind = annotation.__origin__
    return (
        next(part for part in get_args(kind) if part is not types.NoneType)
        if isinstance(kind, types.UnionType)
        else kind
    )


SHARED = [
    (found, _kind(annotation))
    for annotation in vars(options).values()
    if (found := option_of(annotation)) is not None and found.rich_help_panel != OUTPUT
]
"""Every option that may stand in the file, with the type of what it takes."""

KEYS = {name_of(option): Key(kind, option.min) for option, kind in SHARED}


def read_site(path: Path) -> dict[str, Any]:
    """Key -> value, as the file says.

    Raises:
        EscalaError: no such file, no TOML, an unknown key, or a value of another kind than the option's.
    """
    from escala.reading import guarded, read_toml

    with guarded(path, "TOML"):
        entries = read_toml(path)
        return {name: _checked(path, name, value) for name, value in entries.items()}


def _checked(path: Path, name: str, value: Any) -> Any:
    """The value, if it is one that the option of this name takes."""
    if name not in KEYS:
        near = get_close_matches(name, KEYS, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(KEYS))}"
        raise EscalaError(f"{path}: unknown key {quoted(name)}: {hint}")
    kind, lowest = KEYS[name]
    if not _fits(kind, value) or (lowest is not None and value < lowest):
        bound = "" if lowest is None else f" of at least {lowest:g}"
        raise EscalaError(f"{path}: {name}: {NEEDED[kind]}{bound} is needed, not {quoted(value)}")
    return value


def _fits(kind: Any, value: Any) -> bool:
    if kind is float:
        return type(value) in (int, float) and abs(value) < 1e300 and not math.isnan(value)
    if kind == list[str]:
        return type(value) is list and all(type(entry) is str for entry in value)
    return type(value) is kind


def configured(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that takes what is not said on the command line from `--config FILE`, or from `escala.toml` where there is
    one.

    A verb without any option that may stand in the file is returned as it is.
    """
    own = inspect.signature(verb, eval_str=True).parameters
    taken = {
        name_of(found): name
        for name, entry in own.items()
        if (found := option_of(entry.annotation)) and _is_shared(found)
    }
    if not taken:
        return verb

    def read(context: typer.Context, given: Path | None) -> Path | None:
        """Before the other options are looked at: what the file says is their default."""
        path = Path(FILE) if given is None and os.path.lexists(FILE) else given
        if path is None or str(path) == NOT_ANY or context.resilient_parsing:
            return None
        entries = read_site(path)
        texts = {name for name, entry in own.items() if _takes_more(option_of(entry.annotation))}
        told = {taken[name]: value for name, value in entries.items() if name in taken}
        context.default_map = {name: str(value) if name in texts else value for name, value in told.items()}
        return path

    config = typer.Option(
        "--config", metavar="FILE", help=f"options of the site, or {NOT_ANY} [{FILE}, if it exists]",
        show_default=False, is_eager=True, callback=read,
    )  # fmt: skip

    @functools.wraps(verb)
    def wrapper(context: typer.Context, config: Path | None, **given: Any) -> None:
        used = [name for name, own_name in taken.items() if _is_from_file(context, own_name)]
        if used:
            told = ", ".join(f"{name} = {_shown(context.params[taken[name]])}" for name in used)
            remark(f"from {config}: {told}")
        verb(**given)

    of_name = inspect.Parameter.KEYWORD_ONLY
    kept = [entry.replace(kind=of_name) for entry in own.values()]
    kept.append(inspect.Parameter("context", of_name, annotation=typer.Context))
    kept.append(inspect.Parameter("config", of_name, default=None, annotation=Annotated[Path | None, config]))
    wrapper.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {entry.name: entry.annotation for entry in kept} | {"return": None}
    del wrapper.__wrapped__
    return wrapper


def _is_shared(option: OptionInfo) -> bool:
    return _takes_more(option) or any(option is shared for shared, _ in SHARED)


def _takes_more(option: OptionInfo | None) -> bool:
    """Is it one of the file's keys, of which a verb takes a file too, as a text?"""
    return option is not None and any(option is option_of(one) for one in (prices.Price, prices.Carbon))


def _is_from_file(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "DEFAULT_MAP"


def _shown(value: Any) -> str:
    return (
        ", ".join(value)
        if isinstance(value, list | tuple)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
