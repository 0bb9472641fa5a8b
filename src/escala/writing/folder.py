"""Output folders that appear whole or not at all.

The work goes into `.NAME.partial/new` beside the target; the folder `.NAME.partial` is locked while the run lives. At
the end `new` and the target exchange names in one step, and the old content goes, as far as Escala wrote it: all else
is kept beside the target. Where the system has no such exchange, a journal says which of the two renames were done, and
the next run of the same target ends what a killed one began.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from escala.errors import EscalaError
from escala.writing import left, locks, settling
from escala.writing.files import made, write_whole
from escala.writing.kept import HALF, out_of_sight
from escala.writing.places import (
    ASIDE,
    check_nobody_works,
    check_not_read,
    check_replaceable,
    real,
    unwritable,
    written_to,
)
from escala.writing.sealing import entries, foreign, sign, stray, written

NEW, KEPT, ARRAYS, NOTE = settling.NEW, "kept", "arrays", "verb"
WHAT = {
    NOTE: stat.S_ISREG,
    settling.JOURNAL: stat.S_ISREG,
    **dict.fromkeys((NEW, KEPT, ARRAYS, settling.OLD), stat.S_ISDIR),
}
"""What lies in the folder of a run, besides halves of pieces and of files, and folders of runs within it."""


def check_target(target: Path, verb: str, force: bool | None) -> None:
    """Refuse a target that may not be replaced.

    Raises:
        EscalaError: it may not be written, or holds anything but an untouched output of the same verb (unless `force`;
            None: nobody can ask for that).
    """
    if target.is_dir() and not os.access(target, os.W_OK | os.X_OK):
        raise EscalaError(f"{target}: is a folder that you may not write to; name another folder")
    if target.is_dir() and not force and any(target.iterdir()):
        reason = foreign(target, verb)
        if reason is not None:
            raise EscalaError(
                f"{target}: {reason}; name another folder{'' if force is None else ', or replace it with --force'}"
            )


def partial_of(target: Path) -> Path:
    """Where the work for a target goes."""
    return target.with_name(f".{target.name}{left.PARTIAL}")


def work_of_another(target: Path) -> Path:
    """The folder in which another process works for a target."""
    return partial_of(real(os.path.abspath(target))) / NEW


@contextlib.contextmanager
def output_folder(
    target: Path | None, verb: str, *, force: bool | None = False, keeps: bool = False
) -> Iterator[Path | None]:
    """A folder to write into, which becomes `target` if the block ends well; None stays None. verb: which verb writes
    it. keeps: the work is done in pieces noted by `Kept`; those of an interrupted run are found in the folder again,
    and an interruption leaves them there.

    Raises:
        EscalaError: it is a file; see `check_target` and `places.check_replaceable`; the place cannot be written;
            another run writes there now: on entering, before the work. At the end, where the target was changed
            meanwhile: it stays, and the output is kept beside it.
    """
    if target is None:
        yield None
        return
    place = real(os.path.abspath(target))
    if os.path.exists(place) and not place.is_dir():
        raise EscalaError(f"{target}: is a file; name a folder for the output")
    check_replaceable(place)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(made(place.parent))
            run = stack.enter_context(_running(place, target))
            settling.settle(run, place)
            check_target(place, verb, force)
            check_nobody_works(place)
            if force:
                check_not_read(place)
            own = written(place) if force and place.is_dir() else set()
            before = settling.listing(place)
            goes = {name: about for name, about in (before or {}).items() if not force or name in own}
            work = _fresh(run, verb, keeps)
            if keeps:
                left.keeps(run / KEPT, target)
        except OSError as error:
            raise unwritable(target, error) from error
        with written_to(target, run):
            yield work
        try:
            if force:
                check_not_read(place)
            sign(work, verb)
            os.chmod(work, 0o777 & ~_umask())
            left.arrives(work, place, target)
            settling.put(run, work, place, before, goes)
        except OSError as error:
            raise unwritable(target, error) from error


@contextlib.contextmanager
def saved_folder(target: Path, verb: str) -> Iterator[Path]:
    """As `output_folder`, for what is saved from Python: a failure to write is an EscalaError too."""
    try:
        with output_folder(target, verb, force=None) as work:
            assert work is not None
            yield work
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.startswith("polars"):
            raise unwritable(target, error) from error
        raise


@contextlib.contextmanager
def claimed(folder: Path | None) -> Iterator[None]:
    """A folder that is written to bit by bit, made and kept to this run; None stays None. Where nothing was written, it
    goes again.

    Raises:
        EscalaError: it cannot be made or written to, another run writes there now, or a link in it leads out of it.
    """
    if folder is None:
        yield
        return
    place = real(folder)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(made(place))
        except OSError as error:
            raise unwritable(folder, error) from error
        if not os.access(place, os.W_OK | os.X_OK):
            raise EscalaError(f"{folder}: is a folder that you may not write to; name another folder")
        stack.enter_context(locks.locked(place, folder))
        links = (name for name in entries(place) if (place / name).is_symlink())
        if (
            odd := next((name for name in links if place not in Path(os.path.realpath(place / name)).parents), None)
        ) is not None:
            raise EscalaError(
                f"{folder / odd}: is a link out of the folder, which would be written through: put there what it "
                "leads to"
            )
        left.grows(place, folder)
        yield


@contextlib.contextmanager
def _running(place: Path, told: Path) -> Iterator[Path]:
    """The locked folder of this run. It goes at the end, but for pieces that were kept, and arrays whose tasks go on to
    keep some."""
    run = partial_of(place)
    if os.path.lexists(run) and (odd := stranger(run)) is not None:
        raise EscalaError(
            f"{odd}: stands where the work for {told} goes, and no run of Escala made it; move it, or name another "
            "folder"
        )
    handle = None
    for _ in range(100):  # another run may end, and remove it, just now
        with contextlib.suppress(FileExistsError):
            os.mkdir(run)
        handle = locks.take(run)
        if handle is not None or run.exists():
            break
    if handle is None:
        raise EscalaError(f"{told}: another run writes there now: wait for it, or name another folder")
    try:
        yield run
    finally:
        if not any_kept(run):
            with contextlib.suppress(OSError):
                clear(run, place)
        os.close(handle)


def clear(run: Path, place: Path) -> None:
    """Remove the folder of a run that is over; see `settling.settle` for what stood at the target before."""
    settling.settle(run, place)
    note = run / NOTE
    _empty(run, {note.name})
    note.unlink(missing_ok=True)  # last: what is left of a clearing that was killed is known as ours
    run.rmdir()


def stranger(run: Path) -> Path | None:
    """What no run of Escala made: the folder itself, or something in it that would be written, read or removed as a
    run's own. None where all is a run's, or the folder is empty. What stood at a target, on its way out, may hold
    anything: it is never followed."""
    if not _is(run, stat.S_ISDIR):
        return run
    names = os.listdir(run)
    if names and NOTE not in names:
        return run
    for name in names:
        if name.startswith(".") and name.endswith(left.PARTIAL):  # of a folder that is saved into this one
            if (inner := stranger(run / name)) is not None:
                return inner
            continue
        wanted = WHAT.get(name, stat.S_ISREG if name.startswith(ASIDE) else _plain if name.startswith(HALF) else None)
        if wanted is None or not _is(run / name, wanted):
            return run / name
    deep = [
        KEPT,
        ARRAYS,
        *(name for name in names if name.startswith(HALF)),
        *([NEW] if settling.journal(run) is None else []),
    ]
    return next((run / name / odd for name in deep if (odd := stray(run / name)) is not None), None)


def _plain(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _is(path: Path, wanted: Callable[[int], bool]) -> bool:
    """Is it of this kind itself, no link, and no second name of a file? What is gone by now is taken for it."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return True
    return wanted(found.st_mode) and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1)


def _empty(folder: Path, but: set[str]) -> None:
    """Remove all but these. Finished pieces first lose the name by which they are found: none that is half removed is
    taken for whole."""
    if KEPT not in but and (folder / KEPT).is_dir():
        out_of_sight(folder / KEPT, folder)
    for entry in list(folder.iterdir()):
        if entry.name not in but:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def any_kept(run: Path) -> bool:
    """Are there finished pieces of an interrupted run, or arrays whose tasks finish some?"""
    return (run / NEW).is_dir() and any(left.holds(run / name) for name in (KEPT, ARRAYS))


def _fresh(run: Path, verb: str, keeps: bool) -> Path:
    """The folder to work in: with the pieces of an interrupted run of the same verb, or empty."""
    note, work = run / NOTE, run / NEW
    same = keeps and note.is_file() and note.read_text() == verb
    note.touch()
    _empty(run, {note.name, NEW, KEPT, ARRAYS} if same else {note.name})
    write_whole(note, verb)
    work.mkdir(exist_ok=True)
    return work


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
