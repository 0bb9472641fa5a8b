"""The one error that users see: what is wrong, where, and how to mend it, in one line of at most 500 characters."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

MOST_CHARACTERS = 500
_TAIL = 170  # of a message that is too long: its end says how to mend it


class EscalaError(ValueError):
    """Bad input or an impossible request. The message is one line: what, where, how to mend it.

    Whatever a file or a user put into it: line breaks become blanks, other characters that no terminal shows become
    escapes, and what is longer than `MOST_CHARACTERS` loses its middle.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(str(message)))


class EscalaWarning(UserWarning):
    """What a run does not look at, though its log says it; one line."""


@contextmanager
def said_of(what: str) -> Iterator[None]:
    """An `EscalaError` from within says of what it is."""
    try:
        yield
    except EscalaError as error:
        raise EscalaError(f"{what}: {error}") from None


def one_line(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text as one printable line of at most `most` characters (more than 200)."""
    if len(text) > 2 * most:
        text = text[:most] + text[-most:]
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else " " if sign.isspace() else repr(sign)[1:-1] for sign in text)
    return text if len(text) <= most else f"{text[: most - _TAIL - 5]} ... {text[-_TAIL:]}"


def refuse_text(**given: object) -> None:
    """EscalaError where one text stands in place of a list of names: its letters would be taken for names."""
    for name, value in given.items():
        if isinstance(value, str):
            names = [one.strip() for one in value[:MOST_CHARACTERS].split(",")]
            raise EscalaError(f"{name}={quoted(value)} is one text: give a list, {name}={names!r}")


def nearest(word: str, known: Iterable[str], end: str = "", alike: float = 0.5) -> str:
    """ "did you mean NAME? " for the known name that is most like the word; "" where none is. end: to be written behind
    the name; alike: 0, any is like it, to 1, the same alone."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=alike)
    return f"did you mean {near[0]}{end}? " if near else ""


def number_of(count: int, what: str) -> str:
    """A count with its noun: 1 job, 2,000 jobs. what: a noun whose plural ends in s."""
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def waiting(jobs: int) -> str:
    """1 job waits, 2 jobs wait."""
    return f"{number_of(jobs, 'job')} wait{'s' if jobs == 1 else ''}"


_quotes = reprlib.Repr()
_quotes.maxstring = _quotes.maxother = 60
_quotes.maxlong = 40
_quotes.maxlevel = 3


def quoted(value: object) -> str:
    """The value as a message quotes it: its `repr`, with the middle of what is long left out before it is built."""
    try:
        text = _quotes.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:50]}...{text[-27:]}"
