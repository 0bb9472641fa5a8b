"""Where a verb that keeps its pieces works: its output folder and its engine, in the process that was called and in a
task of its array."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from escala.cli.terminal import remark
from escala.errors import EscalaError
from escala.writing import output_folder
from escala.writing.folder import ARRAYS, work_of_another

if TYPE_CHECKING:
    from escala.engines.again import Share
    from escala.engines.engine import Where


_given: list[str] | Share = []


def begin(given: list[str] | Share) -> None:
    """Note what this process was given: the words of a command, or, of a task, its share of one."""
    global _given
    _given = given


class Place(NamedTuple):
    """folder: to write into, None: nothing is written; on: where pieces are done; shared: does another process own the
    folder?"""

    folder: Path | None
    on: Where
    shared: bool


@contextmanager
def working(out: Path | None, verb: str, *, force: bool, on: str | None, jobs: int | None) -> Iterator[Place]:
    """The place of a verb whose pieces are kept beside `out`; see `output_folder`. In a task of the verb's array on
    Slurm it is the folder of the process that waits, and nothing else is written.

    An array outlives a process that is ended from outside, and no other failure. EscalaError before anything is
    written: an engine that there is none of, Slurm without its clients or without `out`.
    """
    from escala.engines import on_slurm, replays_on
    from escala.engines.again import Again, Share
    from escala.engines.engine import checked, slurm_in

    given = _given
    if isinstance(given, Share):
        assert out is not None
        yield Place(work_of_another(out), given, True)
        return
    checked(on, jobs)
    options = slurm_in(on)
    if options is None:
        replays_on(on, jobs)
    else:
        on_slurm.ready(options)
        if out is None:
            raise EscalaError("--on slurm needs --out DIR, which every node sees: tasks keep what they find beside it")
    with output_folder(out, verb, force=force, keeps=True) as folder:
        if folder is None:
            yield Place(None, on, False)
            return
        arrays = folder.parent / ARRAYS
        if options is None:
            for array in on_slurm.left_in(arrays):  # the work is done here from now on
                array.remove()
            yield Place(folder, on, False)
            return
        try:
            yield Place(folder, Again(given, on_slurm.ready(options), arrays), False)
        except Exception:
            for array in on_slurm.left_in(arrays):
                array.remove()
            raise
        except BaseException:  # as Ctrl-C
            for array in on_slurm.left_in(arrays):
                remark(
                    f"the array {array.name} goes on: the same command takes it up; scancel --name={array.name} ends it"
                )
            raise
