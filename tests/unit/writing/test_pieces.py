"""Pieces of a long run: found again by the same request, forgotten by any other."""

from __future__ import annotations

import math
from pathlib import Path

from escala.writing import Pieces


def _never() -> list[float]:
    raise AssertionError("was kept")


def test_a_piece_is_found_by_the_same_request_and_by_no_other(tmp_path: Path) -> None:
    work = tmp_path / "new"
    work.mkdir()
    made = Pieces(work, {"seed": 1}).value("a", lambda: [0.1, math.inf, 1e-17])
    (work / "half.csv").touch()
    again = Pieces(work, {"seed": 1})
    assert not list(work.iterdir()) and again.value("a", _never) == made and again.found == {"a"}
    assert again.value("b", lambda: [2.0]) == [2.0] and again.done == {"a", "b"}
    other = Pieces(work, {"seed": 2})
    assert other.value("a", lambda: [3.0]) == [3.0] and not other.found
    assert Pieces(work, {"seed": 1}).value("a", lambda: [4.0]) == [4.0]


def test_a_piece_that_is_not_whole_is_none(tmp_path: Path) -> None:
    work = tmp_path / "new"
    work.mkdir()

    def half(path: Path, value: list[float]) -> None:
        path.write_text("[")
        raise KeyboardInterrupt

    pieces = Pieces(work, {})
    try:
        pieces.file("a", lambda: [1.0], half, lambda path: [5.0])
    except KeyboardInterrupt:
        assert Pieces(work, {}).value("a", lambda: [2.0]) == [2.0]


def test_without_a_folder_nothing_is_kept() -> None:
    pieces = Pieces(None, {})
    assert pieces.value("a", lambda: 1) == 1 and pieces.value("a", lambda: 2) == 2 and pieces.growing("b") is None and not pieces.done
