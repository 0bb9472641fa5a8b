"""An environment's own side of its simulations: settings and memory as one record a game, which compiled code is given
by its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from escala.compile.pointer import PointerType, table_of
from escala.envs.core.batch import Rows
from escala.errors import EscalaError


def settings_of(fields: np.dtype[Any], values: Mapping[str, float]) -> NDArray[Any]:
    """One record of settings. KeyError unless each field has its value: what is left out would be 0 in silence."""
    if set(fields.names or ()) != set(values):
        raise KeyError(f"settings given otherwise than laid out: {sorted(set(fields.names or ()) ^ set(values))}")
    return np.array(tuple(values[name] for name in fields.names or ()), fields)


class Records:
    """The games of a batch: attributes are their arrays by name, `table` is what compiled code takes.

    An array with the leading axis [games] changes from step to step; one without is shared by all games: settings, and
    scratch room. Arrays are written in place, never replaced: the table holds their addresses.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, kind: PointerType, games: int, **arrays: NDArray[Any]) -> None:
        self._kind, self._games = kind, games
        vars(self).update(arrays)
        self.table = table_of(kind, games, arrays)

    def _changing(self) -> dict[str, NDArray[Any]]:
        return {
            name: getattr(self, name)
            for name, (_, axes) in self._kind.fields.items()
            if getattr(self, name).ndim > axes
        }

    def forget(self, rows: Rows) -> None:
        """A memory of nothing in these games."""
        self.memory.view(np.int64).reshape(self._games, -1)[rows] = 0  # numpy writes records field by field

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes."""
        return {name: array.copy() for name, array in self._changing().items()}

    def restore(self, state: Mapping[str, NDArray[Any]], advice: str) -> None:
        """Restore a saved state; `advice`: what to do where it does not fit."""
        for name, array in self._changing().items():
            restore(array, state[name], name, advice)

    def with_room(self, **arrays: NDArray[Any]) -> Records:
        """The same games with these arrays, larger ones, in place of their own."""
        kept = {name: getattr(self, name) for name in self._kind.fields}
        return Records(self._kind, self._games, **{**kept, **arrays})

    def __getstate__(self) -> dict[str, Any]:
        fields = self.__dict__.copy()
        del fields["table"]  # addresses: made anew
        return fields

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        self.table = table_of(self._kind, self._games, fields)


def restore(target: NDArray[Any], saved: NDArray[Any], name: str, advice: str) -> None:
    """Copy a saved array into the environment's own; EscalaError where it is of another shape, or of another version's
    layout."""
    if saved.shape != target.shape:
        raise EscalaError(
            f"saved state: {name} has shape {saved.shape}, this environment needs {target.shape}: {advice}"
        )
    if saved.dtype != target.dtype:
        raise EscalaError(f"saved state: {name} was saved by another version of Escala, with other fields: begin anew")
    target[...] = saved


def from_plain(told: Any, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """The array of which `tolist` gave plain data, through JSON. ValueError or TypeError where it is another."""
    rows = [tuple(row) for row in told] if np.dtype(dtype).names else told
    array = np.array(rows, dtype)
    if array.shape != shape:
        raise ValueError(f"shape {array.shape}, not {shape}")
    return array
