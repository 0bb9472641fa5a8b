"""The one entry for every read of a user's file: plain or gzipped, within limits, and every failure one clear line.

`guarded` stands around each reader. A reader says itself what is wrong with a file, as an `EscalaError`. What it did
not foresee, an error of a library deep inside, becomes `Unreadable`, with that error as `__cause__`: the user gets one
line all the same, and the tests count these and want none. Errors that only our own mistakes raise (TypeError,
AttributeError, AssertionError) pass through.
"""

from __future__ import annotations

import errno
import functools
import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from escala.errors import EscalaError, one_line, quoted

GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
CHUNK_BYTES = 1 << 23
HEAD_BYTES = 1 << 18  # by which a format is known
MOST_RATIO = 30
"""How many times its own size a gzipped file may unpack to beyond `FREE_BYTES`; job logs shrink 5 to 23 times."""
FREE_BYTES = 1 << 26
"""What a gzipped file may unpack to whatever its size; platforms of thousands of equal nodes shrink 90 times, and are
small."""

_FOREIGN = (ValueError, ArithmeticError, LookupError, RecursionError, MemoryError, EOFError, OSError, zlib.error)
_LIBRARIES = ("polars", "pyo3_runtime", "_pickle", "yaml", "xml")


DOTTED = re.compile(r"""(?<![\w."'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){1000}""")
FULL = (errno.ENOSPC, errno.EDQUOT)
HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half a character beyond the first 65,536, as JSON writes it."""

READ: set[str] = set()
"""The users' files that this process has read, as they were named."""


class Unreadable(EscalaError):
    """An error of a library at which no reader of ours looked; it is the `__cause__`."""


@contextmanager
def guarded(path: Path | str, what: str = "the file") -> Iterator[None]:
    """Around every read of a user's file: whatever it holds ends in an `EscalaError` that names the file.

    what: what the file should be, for a failure that nothing else explains.
    """
    READ.add(os.path.abspath(path))
    try:
        yield
    except EscalaError as error:
        raise _naming(path, error) from error.__cause__
    except MemoryError as error:
        raise EscalaError(
            f"{path}: needs more memory than there is: give a part of it, or a machine with more"
        ) from error
    except _FOREIGN as error:
        if is_full(error):
            raise
        raise _unreadable(path, what, error) from error
    except BaseException as error:
        if type(error).__module__.partition(".")[0] not in _LIBRARIES or is_full(error):
            raise
        raise _unreadable(path, what, error) from error


@contextmanager
def own(path: Path | str, what: str, again: str) -> Iterator[None]:
    """Around every read of what Escala itself wrote: whatever became of it since ends in an `EscalaError` that names
    it.

    Other than in a user's file an entry that is missing or of another kind (KeyError, TypeError, AttributeError) is
    damage too. again: how to mend it.
    """
    try:
        yield
    except EscalaError as error:
        raise _naming(path, error) from error.__cause__
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise
        reason = one_line(str(error)[:120]) or "no reason given"
        raise EscalaError(f"{path}: not a whole {what} ({type(error).__name__}: {reason}): {again}") from error


def is_full(error: BaseException) -> bool:
    """Does it say that a disk, or one's share of it, is full? That is no fault of a file that is read."""
    if isinstance(error, OSError):
        return error.errno in FULL
    return type(error).__module__.startswith("polars") and any(f"os error {number})" in str(error) for number in FULL)


def _naming(path: Path | str, error: EscalaError) -> EscalaError:
    """The error, with the path before it where it does not tell it."""
    return error if one_line(str(path))[:200] in str(error) else type(error)(f"{path}: {error}")


def _unreadable(path: Path | str, what: str, error: BaseException) -> Unreadable:
    reason = one_line(str(error)[:120]) or "no reason given"
    return Unreadable(
        f"{path}: cannot be read as {what} ({type(error).__name__}: {reason}): mend the file, or write it again"
    )


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """The content of `path` as a stream of bytes, unpacked if it is gzipped (found by content, not by name)."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
            raise EscalaError(f"{path}: is a pipe or a device: save its content as a file first")
        raw = path.open("rb")
    except FileNotFoundError:
        raise EscalaError(f"{path}: no such file: check the path") from None
    except IsADirectoryError:
        raise EscalaError(f"{path}: is a folder: give one file in it") from None
    except PermissionError:
        raise EscalaError(f"{path}: may not be read: check its permissions") from None
    except EscalaError:
        raise
    except (OSError, ValueError) as error:
        raise EscalaError(f"{path}: cannot be opened ({error}): check the path") from None
    with raw:
        try:
            packed = raw.peek(2)[:2] == GZIP_MAGIC
            yield cast(BinaryIO, _Unpacked(raw, path, about.st_size)) if packed else raw
        except EOFError:
            raise EscalaError(f"{path}: the gzip file ends too early: fetch or copy it again") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise EscalaError(f"{path}: the gzip file is damaged ({error}): fetch or copy it again") from None
        except OSError as error:
            if is_full(error):
                raise
            raise EscalaError(
                f"{path}: cannot be read ({error.strerror or error}): check the disk and the path"
            ) from None


class _Unpacked:
    """The content of a gzipped file, as long as it does not grow beyond all reason.

    What the file says of its own size is not asked: a file of several members says that of its last one alone, and may
    lie. The first `CHUNK_BYTES` are given as they come; before more is, the rest is unpacked and counted, so that what
    is too large is refused before most of it is parsed: the parsed rows take several times the memory of their text. Up
    to `FREE_BYTES` of the rest are kept meanwhile.
    """

    def __init__(self, raw: BinaryIO, path: Path, packed_bytes: int) -> None:
        self._stream = gzip.GzipFile(fileobj=raw)
        self._path = path
        self._most = max(FREE_BYTES, MOST_RATIO * packed_bytes)
        self._given, self._counted = 0, False
        self._kept = BytesIO()

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; all that is left where it is negative."""
        if size < 0:
            return self._kept.read() + b"".join(iter(lambda: self._next(CHUNK_BYTES), b""))
        if self._given + size > CHUNK_BYTES and not self._counted:
            self._count()
        return self._kept.read(size) or self._next(size)

    def _next(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._given += len(data)
        self._check(self._given)
        return data

    def _check(self, unpacked: int) -> None:
        if unpacked > self._most:
            raise EscalaError(
                f"{self._path}: unpacks to more than {MOST_RATIO} times its size: unpack it yourself if you trust it"
            )

    def _count(self) -> None:
        """Unpack the rest once; keep it where it is small, else begin again where reading was."""
        self._counted, total = True, self._given
        while data := self._stream.read(CHUNK_BYTES):
            total += len(data)
            self._check(total)
            if total <= FREE_BYTES:
                self._kept.write(data)
        if total <= FREE_BYTES:
            self._kept.seek(0)
        else:
            self._kept = BytesIO()
            self._stream.seek(self._given)


def file_name(path: Path) -> str:
    """The name of a file as text; bytes that are not UTF-8 become replacement characters."""
    return os.fsencode(path.name).decode("utf-8", errors="replace")


def read_head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """The first `size` bytes (unpacked)."""
    with reading(path) as stream:
        return stream.read(size)


def first_data(path: Path, comment: str) -> list[str]:
    """The first lines that do not begin with a sign of `comment`, however many do before them: of one piece of the
    file."""
    signs = tuple(comment.encode())
    with reading(path) as stream:
        rest = b""
        while piece := stream.read(CHUNK_BYTES):
            *lines, rest = line_breaks(rest + piece).split(b"\n")
            if found := [line for line in lines if line.strip() and line.lstrip()[0] not in signs]:
                return b"\n".join(found).decode("utf-8", errors="replace").splitlines()
            rest = rest[:HEAD_BYTES]
    return [rest.decode("utf-8", errors="replace")]


def read_all(path: Path) -> bytes:
    """The whole content (unpacked)."""
    with reading(path) as stream:
        return stream.read()


def read_text(path: Path) -> str:
    """The whole content as text; a byte-order mark goes, bytes that are not UTF-8 become replacement characters (names
    in old logs)."""
    data = read_all(path)
    refuse_nul(data, path)
    return data.decode("utf-8-sig", errors="replace")


def refuse_nul(data: bytes, path: Path, first_line: int = 1) -> None:
    """`EscalaError` where a text holds a byte 0, which only a damaged file does. first_line: the number of its first
    line."""
    at = data.find(b"\0")
    if at >= 0:
        line = first_line + data.count(b"\n", 0, at)
        raise EscalaError(
            f"{path}, line {line}: a byte 0 in a text: the file is damaged; fetch, copy or export it again"
        )


def line_breaks(data: bytes) -> bytes:
    """The same lines, where a carriage return alone ends some of them (old Macintosh files); unchanged where none
    does."""
    if data.count(b"\r") == data.count(b"\r\n"):
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def read_json(path: Path) -> Any:
    """What a JSON file holds; `EscalaError` with the line where it is none."""
    with guarded(path, "JSON"):
        return parse_json(read_text(path), path)


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds; `EscalaError` where it is none."""
    import tomllib

    with guarded(path, "TOML"):
        text = read_text(path)
        if DOTTED.search(text):
            raise EscalaError(f"{path}: TOML with a key of a thousand parts: mend the file")
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise EscalaError(f"{path}: not valid TOML ({one_line(str(error))[:200]}): mend the file") from None
        except RecursionError:
            raise EscalaError(f"{path}: TOML nested too deeply: mend the file") from None
        except ValueError:
            raise EscalaError(f"{path}: TOML with a number of thousands of digits: mend the file") from None


def first_twin(names: Sequence[str]) -> str | None:
    """The first name that was there before; None where all differ."""
    if len(set(names)) == len(names):
        return None
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def parse_json(text: str, path: Path) -> Any:
    """The content of a JSON file. EscalaError where it is not valid, or an object names a key twice."""
    try:
        value = json.loads(text, object_pairs_hook=functools.partial(named_once, path=path))
    except EscalaError:
        raise
    except (ValueError, RecursionError) as error:
        raise json_error(error, text, path) from None
    return characters(value) if HALF.search(text) else value


def named_once(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    """A JSON object. One that names a key twice is refused: whatever reads it would take one and drop the other."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twin = first_twin([key for key, _ in pairs])
        raise EscalaError(f"{path}: JSON with an object that names {quoted(twin)} twice: keep one of them")
    return entries


def json_error(error: BaseException, text: str, path: Path, first_line: int = 1) -> EscalaError:
    """What is wrong with a text that could not be parsed. first_line: its number in the file."""
    if isinstance(error, RecursionError):
        return EscalaError(f"{path}: JSON nested too deeply: mend the file")
    if isinstance(error, json.JSONDecodeError):
        return EscalaError(f"{path}, line {first_line - 1 + error.lineno}: not valid JSON ({error.msg}): mend the file")
    line = first_line + text.count("\n", 0, _long_number(text))
    return EscalaError(f"{path}, line {line}: a number of thousands of digits: mend the file")


def characters(value: Any) -> Any:
    """The same JSON, where halves of characters (surrogates, which no file and no terminal takes) become replacement
    characters."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {characters(key): characters(entry) for key, entry in value.items()}
    return [characters(entry) for entry in value] if isinstance(value, list) else value


def _long_number(text: str) -> int:
    """Where the first number of more than 4000 digits begins."""
    found = re.search(r"\d{4000}", text)
    return found.start() if found else 0
