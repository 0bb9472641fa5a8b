"""Columns of a snapshot, checked: each is a list or an array, and what it may hold is told in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, nearest, quoted
from escala.kernel import codes
from escala.kernel.sound import in_us, within

PLAIN = (list, np.ndarray)
MOST_WHOLE = 2**31 - 1


class Columns:
    """The columns of one part of a snapshot. name: that of the part."""

    LATEST_S: ClassVar[float] = 1e11

    def __init__(self, name: str, columns: Mapping[str, Any]) -> None:
        self.name, self.columns = name, columns
        self.length = 0
        for column, values in columns.items():
            if type(values) not in PLAIN and (isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__")):
                raise EscalaError(f"snapshot: {name}.{column} is {quoted(values)}: give a list")
            length = len(values)
            if self.length and length != self.length:
                raise EscalaError(f"snapshot: {name}.{column} has {length} entries, the columns before it {self.length}: give as many")
            self.length = length
        if self.length and any(len(values) != self.length for values in columns.values()):
            raise EscalaError(f"snapshot: the columns of {name} are of different lengths: give as many entries in each")

    def known(self, names: tuple[str, ...], prefix: str = "") -> None:
        """EscalaError for a column that is none."""
        for column in self.columns:
            if column not in names and not (prefix and column.startswith(prefix)):
                raise EscalaError(f"snapshot: {self.name}.{column} is no column: {nearest(column, names)}there are {', '.join(names)}")

    def refuse(self, wrong: NDArray[np.bool_], column: str, why: str) -> None:
        """EscalaError for the first entry that is wrong."""
        if wrong.any():
            k = int(wrong.argmax())
            value = self.columns[column][k] if column in self.columns else None
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
            seen: set[str] = set()
            twice = next(value for value in found if value in seen or seen.add(value))  # type: ignore[func-returns-value]
            raise EscalaError(f"snapshot: {self.name}.{column} has {quoted(twice)} twice: give each job once")
        return found

    def users(self, column: str) -> list[str | None]:
        """Texts or nulls; nulls where the column is left out."""
        values = self.columns.get(column)
        if values is None:
            return [None] * self.length
        found = values.tolist() if isinstance(values, np.ndarray) else list(values)
        if not set(map(type, found)) <= {str, type(None)}:
            k = next(k for k, value in enumerate(found) if not isinstance(value, str | None))
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(found[k])}: give a text, or null")
        return found

    def times(self, column: str, absent: int | None = None) -> NDArray[np.int64]:
        """Seconds as us; `absent` stands for a null, and for a column that is left out, where that is allowed."""
        if absent is not None and column not in self.columns:
            return np.full(self.length, absent, np.int64)
        values = self._numbers(column, self._needed(column))
        out = np.empty(self.length, np.int64)
        if in_us(values, codes.NEVER_US if absent is None else absent, self.LATEST_S, out):
            return out
        none = np.isnan(values)
        if absent is None:
            self.refuse(none, column, "give seconds")
        self.refuse(~none & ~((values >= 0.0) & (values <= self.LATEST_S)), column, f"give seconds from 0 to {self.LATEST_S:g}")
        raise AssertionError(column)

    def _numbers(self, column: str, values: Any) -> NDArray[np.float64]:
        """float64, NaN for null."""
        if not isinstance(values, np.ndarray) and not set(map(type, values)) <= {float, int, type(None)}:
            k = next(k for k, value in enumerate(values) if type(value) not in (float, int, type(None)))
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(values[k])}: give a number")
        try:
            return np.array(values, np.float64).reshape(self.length)
        except (TypeError, ValueError, OverflowError):
            raise EscalaError(f"snapshot: {self.name}.{column} holds no plain numbers: give a list of them") from None

    def whole(self, column: str) -> NDArray[np.int64]:
        """Whole numbers."""
        given = self._needed(column)
        plain = given.dtype == np.int64 and given.ndim == 1 if isinstance(given, np.ndarray) else set(map(type, given)) == {int}
        if plain:
            with contextlib.suppress(OverflowError):
                found = np.array(given, np.int64)
                if within(found, 0, MOST_WHOLE):
                    return found
        values = self._numbers(column, given)
        self.refuse(~(np.abs(values) <= MOST_WHOLE) | (values != np.floor(values)), column, "give a whole number")
        return values.astype(np.int64)

    def flags(self, column: str) -> NDArray[np.int64]:
        """True or False as 1 or 0; 0 where the column is left out."""
        values = self.columns.get(column)
        if values is None:
            return np.zeros(self.length, np.int64)
        if isinstance(values, np.ndarray) and values.dtype == bool:
            return values.astype(np.int64)
        if not set(map(type, values)) <= {bool}:
            k = next(k for k, value in enumerate(values) if not isinstance(value, bool))
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(values[k])}: give true or false")
        return np.array(values, np.int64)

    def words(self, column: str, known: Mapping[str, int]) -> NDArray[np.int64]:
        """The numbers of words."""
        values = self._needed(column)
        try:
            return np.fromiter(map(known.__getitem__, values), np.int64, self.length)
        except (KeyError, TypeError):
            k = next(k for k, value in enumerate(values) if not isinstance(value, str) or value not in known)
            raise EscalaError(f"snapshot: {self.name}.{column}[{k}] is {quoted(values[k])}: give one of {', '.join(known)}") from None
