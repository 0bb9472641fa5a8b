"""What the user sees: results on stdout (tables, or JSON and nothing else), progress on stderr."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from escala.compiling import tell_when_compiling
from escala.errors import MOST_CHARACTERS, EscalaWarning, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Share = Callable[[float], None]
"""Called with the share of a piece of work that is done, 0..1."""

Begin = Callable[[str], Share | None]
"""Called with what is being done now, for one piece of the work after the other. Gives None where nobody watches."""


def stdout(width: int | None = None) -> Console:
    """The console of the results; asked for at each use, so that a replaced `sys.stdout` is respected."""
    from rich.console import Console

    from escala.cli.printable import Printable

    console = Console(highlight=False, markup=False, emoji=False, width=width)
    console.push_render_hook(Printable())
    return console


def stderr() -> Console:
    """The console of progress and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def plain(value: Any) -> Any:
    """`value` as strict JSON knows it: tuples as lists, NaN and infinities as null, numpy numbers as Python's, data
    frames as rows."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "to_dicts"):
        return plain(value.to_dicts())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def emit(as_json: bool, payload: Any, *shown: RenderableType) -> None:
    """Print the result: `payload` as one JSON document, or the renderables."""
    if as_json:
        sys.stdout.write(json.dumps(plain(payload), indent=2) + "\n")
        return
    from rich.measure import Measurement

    console = stdout()
    for entry in shown:
        if isinstance(entry, str):
            console.print(entry, soft_wrap=True)
            continue
        natural = Measurement.get(console, console.options.update(max_width=10_000), entry).maximum
        stdout(max(natural, 1)).print(entry)  # lines that a narrow terminal breaks, rather than numbers cut short


def fail(message: str) -> None:
    """Print one error line on stderr."""
    _say("error", message)


def remark(message: str) -> None:
    """Print one line on stderr about what the user should know, and would not see in the result."""
    _say("remark", message)


def _say(kind: str, message: str) -> None:
    """One printable line on stderr of at most `MOST_CHARACTERS`, whatever a file or a user put into it."""
    start = f"{kind}: "
    sys.stderr.write(f"{start}{one_line(' '.join(message.split()), MOST_CHARACTERS - len(start))}\n")


@contextlib.contextmanager
def remarking() -> Iterator[None]:
    """While a verb runs, each warning of Escala's own is a remark, once."""
    said = set[str]()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, EscalaWarning):
            before(message, category, *where, **more)
        elif str(message) not in said:
            said.add(str(message))
            remark(str(message))

    with warnings.catch_warnings():
        before = warnings.showwarning
        warnings.simplefilter("always", EscalaWarning)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def progress() -> Iterator[Begin]:
    """How far the work is, on stderr, with the time left where the share done is known.

    A line drawn again and again where stderr is a terminal; else plain lines now and then, see `escala.cli.watched`:
    none of short work, but for the line that says that code is compiled.
    """
    from escala.cli.watched import Bar, Lines, begin_of, looking

    if sys.stderr is not None and sys.stderr.isatty():
        bar = Bar(stderr())
        with bar.drawn:
            yield begin_of(bar)
            tell_when_compiling()
        return
    lines = Lines(_line)
    with looking(lines):
        yield begin_of(lines)
        tell_when_compiling()


def _line(text: str) -> None:
    """Write one line on stderr, where anybody listens."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stderr.write(f"{one_line(text)}\n")
        sys.stderr.flush()
