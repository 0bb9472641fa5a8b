"""Records behind a pointer: what compiled code reads and writes lies in the caller's arrays."""

from __future__ import annotations

import pickle
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from escala.compile import lean
from escala.compile.pointer import PointerType, kind_of, row_of, table_of
from escala.compile.pointer_code import Pointer

MEMORY = np.dtype([("row", "i8"), ("total", "f8")])
FIELDS: dict[str, tuple[Any, int]] = {
    "settings": (MEMORY, 0), "memory": (MEMORY, 0), "slots": (np.int64, 1), "used": (np.int32, 2),
    "chart": (np.uint8, 3),
}  # fmt: skip
KIND = PointerType("TestGame", FIELDS)
game: Any = row_of(KIND)
ROWS = 3


def arrays() -> dict[str, Any]:
    return {
        "settings": np.array((2, 0.5), MEMORY),
        "memory": np.zeros(ROWS, MEMORY),
        "slots": np.arange(ROWS * 4).reshape(ROWS, 4),
        "used": np.zeros((ROWS, 2, 5), np.int32),
        "chart": np.zeros((ROWS, 2, 5, 7), np.uint8),
    }


@lean
def work(games: Any) -> None:
    for i in range(games.shape[0]):
        g = game(games, i)
        g.memory.row += g.settings.row + g.slots[3]
        g.memory.total = g.settings.total * i
        g.used[1, 4] = g.slots.shape[0] + g.used.shape[1]
        g.chart[1, 2, 3] = 10 * i + g.chart.shape[2]


def test_fields_of_all_dimensions_are_read_and_written_in_place() -> None:
    given = arrays()
    work(table_of(KIND, ROWS, given))
    assert given["memory"].tolist() == [(5, 0.0), (9, 0.5), (13, 1.0)]
    expected = np.zeros((ROWS, 2, 5), np.int32)
    expected[:, 1, 4] = 9
    assert (given["used"] == expected).all()
    assert given["chart"][:, 1, 2, 3].tolist() == [7, 17, 27] and np.count_nonzero(given["chart"]) == ROWS


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("slots", np.zeros((ROWS, 4), np.int32)),  # another type
        ("used", np.zeros((ROWS, 1, 2, 5), np.int32)),  # too many dimensions
        ("slots", np.zeros((ROWS + 1, 4), np.int64)),  # too many rows
        ("used", np.zeros((ROWS, 5, 2), np.int32).transpose(0, 2, 1)),  # other strides
        ("memory", np.zeros((ROWS, 1), MEMORY)),
    ],
)
def test_arrays_laid_out_otherwise_are_refused(name: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"TestGame\.{name}"):
        table_of(KIND, ROWS, arrays() | {name: wrong})


def test_code_compiled_for_another_layout_is_none_of_a_types_own() -> None:
    mine = Pointer(KIND)
    assert Pointer(PointerType("TestGame", FIELDS)) == mine
    assert pickle.loads(pickle.dumps(mine)) == mine  # as Numba's cache keeps signatures
    assert Pointer(PointerType("TestGame", FIELDS | {"slots": (np.int32, 1)})) != mine
    assert Pointer(PointerType("TestGame", {name: FIELDS[name] for name in reversed(FIELDS)})) != mine


class Rules(NamedTuple):
    step: int
    share: float


class Pile(NamedTuple):
    size: NDArray[np.int64]
    weight: Annotated[NDArray[np.float64], 2]


class Yard(NamedTuple):
    mine: Pile
    rules: Rules
    other: Pile
    sums: NDArray[np.float64]


YARD = kind_of(Yard)
yard: Any = row_of(YARD)


@lean
def weighed(pile: Pile, rules: Rules) -> float:
    total = 0.0
    for i in range(0, pile.size.size, rules.step):
        total += pile.size[i] * pile.weight[i, 1] * rules.share
    pile.size[0] = -1
    return total


@lean
def weigh(yards: Any) -> None:
    w = yard(yards, 0)
    w.sums[0] = weighed(w.mine, w.rules)
    w.sums[1] = weighed(w.other, w.rules)


def test_a_record_within_a_record_and_numbers_in_the_row_are_read_by_name() -> None:
    def pile(n: int) -> Pile:
        return Pile(np.arange(1, n + 1), np.arange(2.0 * n).reshape(n, 2))

    given = Yard(pile(3), Rules(2, -0.5), pile(5), np.zeros(2))
    weigh(table_of(YARD, 1, given))
    assert given.sums.tolist() == [-0.5 * (1 * 1 + 3 * 5), -0.5 * (1 * 1 + 3 * 5 + 5 * 9)]
    assert given.mine.size.tolist() == [-1, 2, 3] and given.other.size.tolist() == [-1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match=r"Pile\.weight"):
        table_of(YARD, 1, given._replace(other=Pile(np.arange(3), np.zeros(3))))


def test_code_compiled_for_another_layout_within_is_none_of_a_types_own() -> None:
    mine, other = Pointer(YARD), Pointer(PointerType("Yard", YARD.fields | {"other": (kind_of(Rules), 0)}))
    assert Pointer(kind_of(Yard)) == mine != other
    assert pickle.loads(pickle.dumps(mine)) == mine
