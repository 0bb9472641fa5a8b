"""Arrays that a compiled loop works with, behind one pointer (`escala.compile.pointer`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from escala.compile.pointer import PointerType, table_of


class Record:
    """Attributes are the arrays by name, `table` is what compiled code takes.

    Arrays are written in place, never replaced: the table holds their addresses. TypeError where one is not of the
    element and dimensions that the kind gives it.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, kind: PointerType, **arrays: NDArray[Any]) -> None:
        vars(self).update(arrays)
        self.table = table_of(kind, 1, arrays)
