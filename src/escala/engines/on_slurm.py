"""Pieces of work, such as runs of a campaign, on Slurm: an array of sbatch, whose tasks read their pieces and write
what they found as text in its folder.

A task that ends before its time is charged to its first piece without a result: that one is tried once more, in a task
of its own, and then named; the others go into the next array. An array outlives the process that asked for it: the next
one in the folder takes it up.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from escala.engines.by_text import ByText, entry_of
from escala.engines.pool import ENDED
from escala.engines.there import made_by
from escala.errors import EscalaError, one_line, quoted
from escala.writing import write_whole

Found = tuple[Any, dict[str, Any]]
CLIENTS = ("sbatch", "squeue", "scancel")
TASKS, MOST_TASKS = 32, 1_000_000
OURS = ("array", "chdir", "error", "input", "job-name", "open-mode", "output", "parsable", "wait", "wrap")
"""Options of sbatch that the engine gives itself."""
ASKED, FOUND, SAID = "asked", "found", "out"
"""What the files of a task end in: its pieces, what it found, what it printed."""
BEGUN = b"begun\n"
"""The first line of what a task found."""
TAKES = (
    "Slurm takes this as a command alone, with --on slurm, for its tasks begin the command again: give local, "
    "local:N or ray here"
)
LIMIT_S = 60.0
LOOK_S, QUEUE_S = 0.2, 5.0
"""How long to wait between two looks at the files of an array at first, and between two questions to Slurm."""


def options_of(text: str) -> dict[str, str]:
    """`tasks` and long options of sbatch, as KEY=VALUE joined by colons; a part without = belongs to the value before
    it, as in time=01:00:00. EscalaError for anything else."""
    found: dict[str, str] = {}
    key = ""
    for part in text.split(":") if text else ():
        name, equals, value = part.partition("=")
        if equals and re.fullmatch(r"[a-z][a-z-]*", name):
            key = name
            if key in OURS or key in found:
                why = "is given twice: give it once" if key in found else "is the engine's own: leave it out"
                raise EscalaError(f"engine slurm (--on): {key} {why}")
            found[key] = value
        elif key:
            found[key] += f":{part}"
        else:
            raise EscalaError(
                f"engine slurm (--on): {quoted(part)} is no option: write KEY=VALUE, as in "
                "slurm:tasks=64:partition=short"
            )
    tasks = found.get("tasks", "1")
    if not (tasks.isascii() and tasks.isdigit() and 1 <= int(tasks[:9]) <= MOST_TASKS):
        raise EscalaError(f"engine slurm (--on): tasks={quoted(tasks)}: give a whole number from 1 to {MOST_TASKS:,}")
    return found


@contextmanager
def arrays(text: str, folder: Path, tasks: int = TASKS) -> Iterator[Callable[..., Iterator[Found]]]:
    """Slurm, by the clients on the PATH. text: see `options_of`. folder: of what is done; every node must see it.
    tasks: of an array, where the text gives no other number.

    Raises EscalaError, one line: Slurm's clients are missing.
    """
    yield partial(each, options=ready(text, tasks), folder=folder)


def ready(text: str, tasks: int = TASKS) -> dict[str, str]:
    """`options_of` the text, with `tasks`. EscalaError, one line: Slurm's clients are missing."""
    options = options_of(text)
    for client in CLIENTS:
        if shutil.which(client) is None:
            raise EscalaError(
                f"--on slurm needs {', '.join(CLIENTS)}, and {client} is not on the PATH: run it where jobs are "
                "submitted"
            )
    return {"tasks": str(max(1, min(tasks, MOST_TASKS)))} | options


def each(
    pieces: Sequence[Any], job: Callable[[Any], dict[str, Any]], *, options: Mapping[str, str], folder: Path
) -> Iterator[Found]:
    """Every piece with what the job gives, as they end. EscalaError for a job that text does not hold."""
    if not isinstance(job, ByText):
        raise EscalaError(TAKES)
    n_tasks = int(options["tasks"])
    open_ = {job.key(piece): piece for piece in pieces}
    left = left_in(folder)
    tried = set[str]()
    while open_:
        under_way = {key for array in left for chunk in array.chunks.values() for key in chunk}
        waiting = [key for key in open_ if key not in under_way]
        chunks = [[key] for key in waiting if key in tried] + _split(
            [key for key in waiting if key not in tried], n_tasks
        )
        array = left.pop() if left else Array.submitted(folder, job, open_, chunks, options)
        for key, told in array.results(open_):
            yield open_.pop(key), told
        if not array.began and not array.taken_up:
            said = array.last_words() or "it printed nothing"
            array.remove()
            raise EscalaError(f"no task of the array has begun to work (--on slurm): {said}")
        for key in array.suspects(open_):
            if key in tried:
                yield open_.pop(key), {"error": one_line(f"{ENDED}: {array.last_words()}")}
            tried.add(key)
        array.remove()
    for array in left:
        array.remove()


def left_in(folder: Path) -> list[Array]:
    """The arrays of a folder that earlier processes asked for."""
    return [Array(place) for place in sorted(folder.glob(f"{Array.PREFIX}*"))]


def _split(keys: Sequence[str], n: int) -> list[list[str]]:
    """At most n lists of equal length, one behind the other: runs of one log stay together."""
    n = min(n, len(keys))
    return [list(keys[k * len(keys) // n : (k + 1) * len(keys) // n]) for k in range(n)]


@dataclass
class Array:
    """An array and its folder. chunks: task -> the keys of its pieces. taken_up: was it begun by an earlier process?"""

    folder: Path
    taken_up: bool = True
    began: bool = False
    chunks: dict[int, list[str]] = field(default_factory=dict)
    _read: dict[int, int] = field(default_factory=dict)

    PREFIX = ".slurm-"

    def __post_init__(self) -> None:
        if self.taken_up:
            with suppress(OSError, ValueError):
                self.chunks = {
                    k: line.split() for k, line in enumerate((self.folder / "keys").read_text().splitlines())
                }

    @property
    def name(self) -> str:
        """Of the job."""
        return f"escala-{self.folder.name.removeprefix(self.PREFIX)}"

    @classmethod
    def submitted(
        cls, folder: Path, job: ByText, pieces: Mapping[str, Any], chunks: list[list[str]], options: Mapping[str, str]
    ) -> Array:
        """A new array, a task for each list of keys. EscalaError where sbatch refuses it."""
        array = cls((folder / f"{cls.PREFIX}{secrets.token_hex(6)}").resolve(), False)
        array.folder.mkdir()
        try:
            for k, chunk in enumerate(chunks):
                array.chunks[k] = chunk
                write_whole(array.folder / f"{k}.{ASKED}", job.written([pieces[key] for key in chunk]))
            script = shlex.join([sys.executable, "-m", job.module, str(array.folder), os.getcwd(), made_by()])
            given = [f"--{name}={value}" for name, value in options.items() if name != "tasks"]
            own = [
                f"--job-name={array.name}",
                f"--array=0-{len(chunks) - 1}",
                f"--chdir={array.folder}",
                f"--output=%a.{SAID}",
            ]
            status, said = _client("sbatch", "--parsable", *own, *given, script=f"#!/bin/sh\nexec {script}\n")
            if status != 0:
                raise EscalaError(f"sbatch refuses the array (--on slurm): {one_line(said)[:300]}")
            write_whole(array.folder / "keys", "".join(" ".join(chunk) + "\n" for chunk in array.chunks.values()))
        except BaseException:
            array.remove()
            raise
        return array

    def results(self, wanted: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """What is found of the wanted pieces, as it is written, until every task has found all of its own or is no
        longer there. What failed in an array that is taken up has been said by the process before: it is tried
        again."""
        missing = {k: {key for key in chunk if key in wanted} for k, chunk in self.chunks.items()}
        begin, asked, gone = time.monotonic(), time.monotonic(), set[int]()
        while any(missing.values()):
            told = False
            for k in [k for k, keys in missing.items() if keys]:
                for key, entry in self._new_lines(k):
                    if key in missing[k]:
                        missing[k].discard(key)
                        told = True
                        if not (self.taken_up and "error" in entry):
                            yield key, entry
            now = time.monotonic()
            if told:
                continue
            if now - asked >= QUEUE_S:
                asked, there = now, self._in_queue()
                absent = set() if there is None else {k for k, keys in missing.items() if keys} - there
                for k in absent & gone:  # at two looks: what it has written is seen by now
                    missing[k] = set()
                gone = absent
            time.sleep(min(QUEUE_S, max(LOOK_S, (now - begin) / 20)))

    def _new_lines(self, k: int) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            with (self.folder / f"{k}.{FOUND}").open("rb") as file:
                file.seek(self._read.get(k, 0))
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read[k] = self._read.get(k, 0) + len(whole)
        self.began = self.began or bool(whole)
        yield from filter(None, map(entry_of, whole.splitlines()))

    def _in_queue(self) -> set[int] | None:
        """The tasks that wait or run; None where Slurm does not say."""
        status, said = _client("squeue", "--noheader", "--array", f"--name={self.name}", "--format=%K")
        if status != 0:
            return None
        return {int(word) for word in said.split() if word.isdigit()}

    def suspects(self, left: Mapping[str, Any]) -> list[str]:
        """Of each task that ended before its time: its first piece without a result."""
        firsts = (next((key for key in chunk if key in left), None) for chunk in self.chunks.values())
        return [key for key in firsts if key is not None]

    def last_words(self) -> str:
        """The last line that a task printed."""
        for path in sorted(self.folder.glob(f"*.{SAID}")):
            with suppress(OSError):
                if words := path.read_text(errors="replace").strip():
                    return words.splitlines()[-1][:300]
        return ""

    def remove(self) -> None:
        """End what still runs of it, and remove its folder."""
        with suppress(EscalaError):
            _client("scancel", f"--name={self.name}")
        shutil.rmtree(self.folder, ignore_errors=True)


def _client(client: str, *words: str, script: str = "") -> tuple[int, str]:
    """The status of one of Slurm's clients, and what it printed."""
    try:
        done = subprocess.run(
            [client, *words], input=script, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, f"{client}: no answer within {LIMIT_S:g} s"
    except OSError as error:
        return 1, f"{client}: cannot be run ({(error.strerror or str(error)).lower()})"
    return done.returncode, done.stdout if done.returncode == 0 else (done.stderr or done.stdout).strip()
