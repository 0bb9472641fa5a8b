"""The entries of lists and objects of a JSON object, of a file that need not fit into memory."""

from __future__ import annotations

import codecs
import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from escala.errors import EscalaError
from escala.reading import HALF, characters, json_error, named_once, reading, refuse_nul

CHUNK_BYTES = 1 << 22
LONGEST = 1 << 26  # characters of one entry, or of what stands beside the list
LONGEST_SIGN = 16  # characters of a sign beyond the first 65,536, of -Infinity
SPACE = re.compile(r"[ \t\n\r]*")


class Entry(NamedTuple):
    """One of the list: what it is, its text, and the number of the line where it begins."""

    value: Any
    text: str
    line: int


class Part(NamedTuple):
    """A value of the object of a file (`name` None), or one within it: of an object by its name, of a list by ""."""

    key: str
    name: str | None
    entry: Entry


def entries(path: Path, name: str, hint: str) -> Iterator[Entry]:
    """Those of the list `name`, as they come. EscalaError as of `parts`, and, with the hint, where there is no such
    list."""
    there = False
    for part in parts(path, {name: "["}):
        there |= part.key == name and part.entry.text == "["
        if part.name == "":
            yield part.entry
    if not there:
        raise EscalaError(f"{path}: is JSON without a list of {name}: {hint}")


def parts(path: Path, opened: Mapping[str, str]) -> Iterator[Part]:
    """What the object of a file holds, as it comes. opened: key -> "[", "{" or both, whose entries come one by one, if
    it is that; before them the sign alone. Key "" opens a list that stands in place of the object. EscalaError as of
    `parse_json`; for what stands behind an entry only after that."""
    keys = set[str]()
    with reading(path) as stream:
        text = _Text(stream, path)
        if text.next_sign() == "[" and "[" in opened.get("", ""):
            yield from _within(text, "", "[")
        else:
            text.take("{")
            while text.goes_on("}", is_first=not keys):
                key = text.name(keys)
                sign = text.next_sign()
                if sign and sign in opened.get(key, ""):
                    yield Part(key, None, Entry(None, sign, 0))
                    yield from _within(text, key, sign)
                else:
                    yield Part(key, None, text.value())
        if text.next_sign():
            raise text.wrong("Extra data")


def _within(text: _Text, key: str, sign: str) -> Iterator[Part]:
    """The entries of the list or object that begins here."""
    text.take(sign)
    names, is_first = set[str](), True
    while text.goes_on("]" if sign == "[" else "}", is_first):
        is_first = False
        name = text.name(names) if sign == "{" else ""
        yield Part(key, name, text.value())


class _Text:
    """The part of a text that is in memory, and a place in it."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path, self._ended = stream, path, False
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._json = json.JSONDecoder(object_pairs_hook=functools.partial(named_once, path=path))
        self._text, self._at = "", 0
        self._line, self._counted = 1, 0  # lines are counted to there

    def take(self, sign: str) -> None:
        """Go behind this sign, which must be next."""
        if self.next_sign() != sign:
            raise self.wrong(f"Expecting {sign!r} delimiter")
        self._at += 1

    def name(self, before: set[str]) -> str:
        """The name of what comes next in an object; go behind the colon. before: the names until now, to which it is
        added."""
        if self.next_sign() != '"':
            raise self.wrong("Expecting property name enclosed in double quotes")
        key = str(self.value().value)
        named_once([(known, None) for known in (key, *({key} & before))], self._path)
        before.add(key)
        self.take(":")
        return key

    def goes_on(self, end: str, is_first: bool) -> bool:
        """Go before another entry, or (False) behind the end."""
        if self.next_sign() == end:
            self.take(end)
            return False
        if not is_first:
            self.take(",")
        return True

    def next_sign(self) -> str:
        """What stands next but for spaces; "" at the end of the file."""
        while True:
            self._at = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def value(self) -> Entry:
        """What begins here, however much of the file it takes; go behind it."""
        self.next_sign()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
                if end + LONGEST_SIGN < len(self._text) or self._ended:  # else a number may go on
                    break
            except EscalaError:
                raise
            except (ValueError, RecursionError) as error:
                if not self._may_go_on(error):
                    raise json_error(error, self._text, self._path, self._line_at(0)) from None
            self._more()
        text, line = self._text[self._at : end], self._line_at(self._at)
        self._at = end
        return Entry(characters(value) if HALF.search(text) else value, text, line)

    def wrong(self, why: str) -> EscalaError:
        """What is said of this place."""
        return EscalaError(f"{self._path}, line {self._line_at(self._at)}: not valid JSON ({why}): mend the file")

    def _may_go_on(self, error: BaseException) -> bool:
        """Is what is wrong with a value perhaps that the part ends?"""
        if self._ended or not isinstance(error, json.JSONDecodeError):
            return False
        if len(self._text) - self._at > LONGEST:
            raise self.wrong(f"a value of more than {LONGEST:,} characters")
        return error.pos >= len(self._text) - LONGEST_SIGN or error.msg.startswith("Unterminated string")

    def _line_at(self, at: int) -> int:
        """The number of the line of a place. The next one asked for is rarely before it."""
        between = self._text.count("\n", min(self._counted, at), max(self._counted, at))
        self._line += between if at >= self._counted else -between
        self._counted = at
        return self._line

    def _more(self) -> None:
        """Read on, without what is before the place."""
        data = self._stream.read(CHUNK_BYTES)
        refuse_nul(data, self._path, self._line_at(len(self._text)))
        self._line_at(self._at)
        self._text = self._text[self._at :] + self._bytes.decode(data, final=not data)
        self._at = self._counted = 0
        self._ended = not data
