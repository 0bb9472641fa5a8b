"""The cells of a study: pieces that stand alone, done side by side as the runs of a campaign are, kept, and never done
twice."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from escala.engines import engine_of
from escala.errors import EscalaError, one_line, quoted
from escala.source import source_digest
from escala.writing import write_whole

Share = Callable[[float], None]
SECONDS = "seconds.json"  # beside the cells: how long each took
STUDIES = "escala.studies."
"""Where the functions are that a text may name."""
TUPLE = "()"


@dataclass(frozen=True)
class Cell:
    """A piece of a study that stands alone. name: its file under `cells/`; work: a function of a module, which gives
    what JSON keeps;
    given: its arguments. cost: roughly how long it takes, in any unit."""

    name: str
    work: Callable[..., Any]
    given: Mapping[str, Any]
    cost: float = 1.0

    @property
    def key(self) -> str:
        """By which an engine knows it."""
        return self.name


@dataclass(frozen=True)
class Timed:
    """What an engine does with a cell: `content` is what it gives, `seconds` of the processor are what that took.
    elsewhere: an exception is an `error`, one line; here it is raised. See `escala.engines.by_text.ByText`."""

    elsewhere: bool = False

    module: ClassVar[str] = "escala.studies.lab.task"

    def __call__(self, cell: Cell, /) -> dict[str, Any]:
        begin = time.process_time()
        try:
            content = cell.work(**cell.given)
        except Exception as error:
            if not self.elsewhere:
                raise
            return {
                "error": one_line(str(error) if isinstance(error, EscalaError) else f"{type(error).__name__}: {error}")
            }
        return {"content": content, "seconds": time.process_time() - begin}

    def key(self, cell: Cell, /) -> str:
        """Of all that a cell is."""
        return hashlib.sha256(self.written([cell]).encode()).hexdigest()[:32]

    def written(self, cells: Sequence[Cell], /) -> str:
        """Cells as text: their functions by name."""
        return json.dumps(
            [[cell.name, cell.work.__module__, cell.work.__name__, _tagged(dict(cell.given))] for cell in cells]
        )

    @staticmethod
    def read(text: str) -> tuple[Timed, list[Cell]]:
        """What was written. EscalaError for a function of no study."""
        cells = json.loads(text, object_hook=_untagged)
        return Timed(elsewhere=True), [Cell(name, _work(module, work), given) for name, module, work, given in cells]


def run_cells(
    folder: Path, cells: Sequence[Cell], settings: Mapping[str, Any], jobs: int | str, progress: Share | None = None
) -> dict[str, Any]:
    """Do the cells that are not done yet, `jobs` at a time in processes of their own, or on the engine of that name (on
    Slurm a task each); name -> what it gave. A cell that is done is never done again: an interrupted study goes on
    where it stopped.

    Raises EscalaError where the folder holds cells of other settings, or of another version of the program.
    """
    kept = folder / "cells"
    kept.mkdir(parents=True, exist_ok=True)
    _same_settings(kept / "settings.json", settings)
    left = [cell for cell in cells if not _path(kept, cell).exists()]
    total = sum(cell.cost for cell in cells) or 1.0
    done = total - sum(cell.cost for cell in left)
    on = f"local:{jobs}" if isinstance(jobs, int) else jobs
    order = left if on == "local:1" else sorted(left, key=lambda cell: -cell.cost)
    with engine_of(on, folder, tasks=len(order)) as each, _signals_kept() as answer:
        for cell, told in each(order, Timed()):
            if "error" in told:
                raise EscalaError(f"cell {cell.name}: {told['error']}")
            _store(kept, cell, told["content"], told["seconds"])
            done += cell.cost
            if progress is not None:
                progress(done / total)
            answer()
    return {cell.name: json.loads(_path(kept, cell).read_text(encoding="utf-8")) for cell in cells}


@contextmanager
def _signals_kept() -> Iterator[Callable[[], None]]:
    """Ctrl-C and SIGTERM that are not lost: an error raised inside a callback of a compiled library (a finalizer, a
    compiler's hook) is printed by Python and forgotten. What this yields answers again a signal that came before and
    ended nothing."""
    came: list[tuple[Any, int]] = []
    before: dict[signal.Signals, Any] = {}

    def answer() -> None:
        while came:
            handler, number = came.pop(0)
            handler(number, None)

    if threading.current_thread() is threading.main_thread():
        for one in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(one)
            if callable(handler):  # neither ignored nor the system's own

                def note(number: int, frame: Any, handler: Any = handler) -> None:
                    came.append((handler, number))
                    handler(number, frame)

                before[one] = signal.signal(one, note)
    try:
        yield answer
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _path(kept: Path, cell: Cell) -> Path:
    return kept / f"{cell.name.replace('/', '_')}.json"


def _store(kept: Path, cell: Cell, content: Any, seconds: float) -> None:
    write_whole(_path(kept, cell), json.dumps(content) + "\n")
    write_whole(kept / SECONDS, json.dumps(_seconds(kept) | {cell.name: round(seconds, 2)}, indent=1) + "\n")


def _seconds(kept: Path) -> dict[str, float]:
    file = kept / SECONDS
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def spent(folder: Path) -> float:
    """Processor seconds of all cells that a study's folder holds, over all its sittings (without what an interruption
    undid)."""
    return sum(_seconds(folder / "cells").values())


def _same_settings(path: Path, settings: Mapping[str, Any]) -> None:
    wanted = json.loads(json.dumps({**settings, "source": source_digest()}))
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        if found != wanted:
            other = (
                "of another version of the program"
                if {**found, "source": wanted["source"]} == wanted
                else "of other settings"
            )
            raise EscalaError(
                f"{path.parent.parent}: holds a study {other} (cells/settings.json): give another folder, or remove "
                "the whole of this one"
            )
        return
    if any(path.parent.glob("*.json")):
        raise EscalaError(
            f"{path.parent}: holds results, but not their settings (settings.json): give another folder, or remove "
            "its parent"
        )
    write_whole(path, json.dumps(wanted, indent=2) + "\n")


def _work(module: str, name: str) -> Callable[..., Any]:
    if not module.startswith(STUDIES) or not callable(found := vars(import_module(module)).get(name)):
        raise EscalaError(f"{quoted(f'{module}.{name}')} is no piece of a study")
    return found


def _tagged(value: Any) -> Any:
    """Lists and tuples are told apart."""
    if isinstance(value, dict):
        return {name: _tagged(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return {TUPLE: [_tagged(one) for one in value]}
    return [_tagged(one) for one in value] if isinstance(value, list) else value


def _untagged(value: dict[str, Any]) -> Any:
    return tuple(value[TUPLE]) if value.keys() == {TUPLE} else value
