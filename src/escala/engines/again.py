"""The same command, begun again by each task of an array on Slurm: for pieces of work that no text holds, such as
replays under policies.

The tasks get the words of the command. Each comes by itself to the pieces that are wanted, does its share of them,
keeps what they give where the command keeps it, and ends. The process that submitted the array takes it from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from escala.engines import on_slurm

KEPT = {"kept": True}
"""What a task says of a piece whose result it has kept."""


@runtime_checkable
class Keyed(Protocol):
    """What is done with pieces that are kept. key: of a piece, the hash of all that its result depends on."""

    def key(self, piece: Any, /) -> str: ...


@dataclass
class Again:
    """The engine of a command, in the process that waits. words: its arguments; options: of sbatch, see
    `on_slurm.options_of`; folder: of the arrays, which every node sees under this path; turn: how many times it was
    called, by which tasks find their pieces."""

    words: Sequence[str]
    options: Mapping[str, str]
    folder: Path
    turn: int = 0

    def __call__(
        self, pieces: Sequence[Any], job: Callable[[Any], dict[str, Any]]
    ) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Every piece with `KEPT`, or an `error`, as they end."""
        self.turn += 1
        if pieces:
            assert isinstance(job, Keyed)
            self.folder.mkdir(exist_ok=True)
            yield from on_slurm.each(
                pieces, _Asked(self.words, self.turn, job), options=self.options, folder=self.folder
            )


@dataclass(frozen=True)
class _Asked:
    """The work of tasks, see `escala.engines.by_text.ByText`."""

    words: Sequence[str]
    turn: int
    job: Keyed

    module: ClassVar[str] = "escala.cli.task"

    def __call__(self, piece: Any, /) -> dict[str, Any]:
        raise AssertionError("a piece of a command is done by a task")

    def key(self, piece: Any, /) -> str:
        """Of a piece."""
        return self.job.key(piece)

    def written(self, pieces: Sequence[Any], /) -> str:
        """The command, and its pieces by their keys."""
        return json.dumps([list(self.words), self.turn, [self.key(piece) for piece in pieces]])


@dataclass
class Share:
    """What a task does of a command. turn, keys: of the pieces that are wanted; n: how many side by side; there: gives
    what a job gives of a piece; tell: what became of one, by its key. come: how many turns it has come to."""

    turn: int
    keys: Sequence[str]
    n: int
    there: Callable[..., dict[str, Any]]
    tell: Callable[[str, dict[str, Any]], None]
    come: int = 0

    def comes(self) -> bool:
        """Is this the turn whose pieces are wanted? Those of earlier turns are kept."""
        self.come += 1
        return self.come == self.turn
