"""Columns of a snapshot, checked: each is a list or an array, and what it may hold is told in one line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, nearest, quoted
from escala.kernel.clock import SECOND
from escala.kernel.sound import LATEST_S, MOST

PLAIN: frozenset[Any] = frozenset((list, np.ndarray))
NUMBERS: frozenset[Any] = frozenset((float, int, type(None)))
WHOLE: frozenset[Any] = frozenset((int,))
FLAGS: frozenset[Any] = frozenset((bool,))
WHOLE_ONLY = "give a whole number"


def in_us(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest us, half up."""
    return np.floor(seconds * SECOND + 0.5)


class Columns:
    """The columns of one part of a snapshot. name: that of the part."""

    def __init__(self, name: str, columns: Mapping[str, Any]) -> None:
        self.name, self.columns = name, columns
        if not isinstance(columns, Mapping):
            raise EscalaError(f"snapshot: {name} is {quoted(columns)}: give its columns, name -> list")
        if not PLAIN.issuperset(map(type, columns.values())):
            self._refuse_kinds()
        try:
            lengths = set(map(len, columns.values()))
        except TypeError:
            raise EscalaError(f"snapshot: a column of {name} is an array without dimensions: give a list") from None
        if len(lengths) > 1:
            self._refuse_lengths()
        self.length = lengths.pop() if lengths else 0

    def _refuse_kinds(self) -> None:
        for column, values in self.columns.items():
            if isinstance(values, str | bytes) or not (isinstance(values, Sequence) or hasattr(values, "__array__")):
                raise EscalaError(f"snapshot: {self.name}.{column} is {quoted(values)}: give a list")

    def _refuse_lengths(self) -> None:
        first, *others = self.columns
        length = len(self.columns[first])
        column = next(other for other in others if len(self.columns[other]) != length)
        said = f"{self.name}.{column} has {len(self.columns[column])} entries, the columns before it {length}"
        raise EscalaError(f"snapshot: {said}: give as many entries in each")

    def known(self, names: Collection[str], prefix: str = "") -> None:
        """EscalaError for a column that is none."""
        for column in self.columns:
            if column not in names and not (prefix and str(column).startswith(prefix)):
                near = nearest(str(column), names)
                raise EscalaError(f"snapshot: {self.name}.{column} is no column: {near}there are {', '.join(names)}")

    def refuse(self, wrong: NDArray[np.bool_], column: str, why: str) -> None:
        """EscalaError for the first entry that is wrong."""
        if wrong.any():
            k = int(wrong.argmax())
            value = list(self.columns[column])[k] if column in self.columns else None
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(value)}: {why}")

    def _needed(self, column: str) -> Any:
        if column not in self.columns and self.length:
            raise EscalaError(f"snapshot: {self.name} has no column {column}: add it")
        return self.columns.get(column, ())

    def texts(self, column: str) -> list[str]:
        """Names, each once."""
        values = self._needed(column)
        found = values.tolist() if isinstance(values, np.ndarray) else list(values)
        try:
            "".join(found)
        except TypeError:
            k = next(k for k, value in enumerate(found) if not isinstance(value, str))
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(found[k])}: give a text") from None
        if len(set(found)) != len(found):
            first: dict[str, int] = {}
            twice = next(value for k, value in enumerate(found) if first.setdefault(value, k) < k)
            raise EscalaError(f"snapshot: {self.name}.{column} has {quoted(twice)} twice: give each job once")
        return found

    def users(self, column: str) -> list[str | None]:
        """Texts or nulls; nulls where the column is left out."""
        values = self.columns.get(column)
        if values is None:
            return [None] * self.length
        found = values.tolist() if isinstance(values, np.ndarray) else list(values)
        if not set(map(type, found)) <= {str, type(None)}:
            k = next((k for k, value in enumerate(found) if not isinstance(value, str | None)), None)
            if k is not None:
                raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(found[k])}: give a text, or null")
            return [None if value is None else str(value) for value in found]
        return found

    def fill_times(self, out: NDArray[np.float64], column: str, may_lack: bool = False) -> None:
        """Seconds, NaN for null, and for a column that is left out where it may be."""
        if may_lack and column not in self.columns:
            out[:] = np.nan
            return
        values = self._needed(column)
        if not isinstance(values, np.ndarray) and not NUMBERS.issuperset(map(type, values)):
            k, wrong = next((k, value) for k, value in enumerate(values) if type(value) not in NUMBERS)
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(wrong)}: give a number")
        try:
            out[:] = values
        except (TypeError, ValueError, OverflowError):
            raise EscalaError(f"snapshot: {self.name}.{column} holds no plain numbers: give a list of them") from None

    def refuse_times(self, column: str, seconds: NDArray[np.float64], may_lack: bool = False) -> None:
        """EscalaError for the first that is no time."""
        none = np.isnan(seconds)
        if not may_lack:
            self.refuse(none, column, "give seconds")
        self.refuse(~none & ~((seconds >= 0.0) & (seconds <= LATEST_S)), column, f"give seconds from 0 to {LATEST_S:g}")

    def times(self, column: str) -> NDArray[np.int64]:
        """Seconds as us."""
        seconds = np.empty(self.length)
        self.fill_times(seconds, column)
        self.refuse_times(column, seconds)
        return in_us(seconds).astype(np.int64)

    def fill_whole(self, out: NDArray[np.int64], column: str) -> None:
        """Whole numbers, of any size."""
        given = self._needed(column)
        if given.dtype == np.int64 if isinstance(given, np.ndarray) else WHOLE.issuperset(map(type, given)):
            try:
                out[:] = given
                return
            except (OverflowError, TypeError, ValueError):
                pass  # what is wrong with it is found below
        values = np.empty(self.length)
        self.fill_times(values, column)
        self.refuse(~(np.abs(values) <= MOST) | (values != np.floor(values)), column, WHOLE_ONLY)
        out[:] = values

    def refuse_whole(self, column: str, values: NDArray[np.int64]) -> None:
        """EscalaError for the first that is too large, or too small."""
        self.refuse((values > MOST) | (values < -MOST), column, WHOLE_ONLY)

    def whole(self, column: str) -> NDArray[np.int64]:
        """Whole numbers."""
        out = np.empty(self.length, np.int64)
        self.fill_whole(out, column)
        self.refuse_whole(column, out)
        return out

    def fill_flags(self, out: NDArray[np.int64], column: str) -> None:
        """True or False as 1 or 0; 0 where the column is left out."""
        values = self.columns.get(column)
        if values is None:
            out[:] = 0
            return
        if not (isinstance(values, np.ndarray) and values.dtype == bool) and not FLAGS.issuperset(map(type, values)):
            k, wrong = next((k, value) for k, value in enumerate(values) if type(value) is not bool)
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(wrong)}: give true or false")
        try:
            out[:] = values
        except (TypeError, ValueError):
            raise EscalaError(f"snapshot: {self.name}.{column} is no plain list: give one of true and false") from None

    def words(self, column: str, known: Collection[str]) -> str:
        """Its texts, a line feed behind each."""
        values = self._needed(column)
        try:
            return "\n".join(values) + "\n" if self.length else ""
        except TypeError:
            self.refuse_words(column, known)
            raise

    def refuse_words(self, column: str, known: Collection[str]) -> None:
        """EscalaError for the first that is none of those."""
        for k, value in enumerate(self._needed(column)):
            if not isinstance(value, str) or value not in known:
                raise EscalaError(
                    f"snapshot: {self.name}.{column}[{k}] is {quoted(value)}: give one of {', '.join(known)}"
                )
