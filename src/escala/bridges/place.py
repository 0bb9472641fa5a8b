"""Where a server listens: a unix socket that is the owner's alone, taken over from a server that has died, never from
one that lives."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from escala.errors import EscalaError
from escala.writing import locks

LONGEST_NAME = 107  # bytes, of the path of a socket on Linux
BACKLOG = 64
PATIENCE_S = 2.0


def cleared(path: Path) -> None:
    """Remove the socket of a server that has died from `path`; EscalaError where one that lives, or anything else,
    stands there."""
    if not path.parent.is_dir():
        raise EscalaError(f"{path}: there is no folder {path.parent}: make it, or name another socket")
    with _alone(path.parent):
        _clear(path)


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """No other server keeps its state in this file meanwhile: a file beside it is locked, as the state itself is
    replaced at each write."""
    beside = path.with_name(f"{path.name}.lock")
    try:
        os.close(os.open(beside, os.O_RDONLY | os.O_CREAT | locks.REAL, 0o600))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EscalaError(
            f"{beside}: cannot be made ({reason}): name a state in a folder where you may write"
        ) from None
    handle = locks.take(beside)
    if handle is None:
        raise EscalaError(f"{path}: another server keeps its state there: end it, or name another file")
    try:
        yield
    finally:
        beside.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket at `path` (mode 0600), not blocking; its file goes at the end.

    Raises:
        EscalaError: there can be none, something else stands there, or a server that lives.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise EscalaError("this system has no unix sockets: run the server on Linux or macOS")
    if len(os.fsencode(path)) > LONGEST_NAME:
        raise EscalaError(
            f"{path}: more than {LONGEST_NAME} bytes, which no socket's name may have: name a shorter one"
        )
    if not path.parent.is_dir():
        raise EscalaError(f"{path}: there is no folder {path.parent}: make it, or name another socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as here:
        with _alone(path.parent):
            _clear(path)
            own = _bound(here, path)
        try:
            yield here
        finally:
            if locks.same(own, path):
                path.unlink(missing_ok=True)


def _bound(here: socket.socket, path: Path) -> os.stat_result:
    """Bind and listen. What stands at the path now."""
    mask = os.umask(0o177)
    try:
        here.bind(str(path))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise EscalaError(
            f"{path}: no socket can be made there ({reason}): name one in a folder where you may write"
        ) from None
    finally:
        os.umask(mask)
    here.listen(BACKLOG)
    here.setblocking(False)
    return os.stat(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other server looks at sockets of this folder meanwhile."""
    end = time.monotonic() + PATIENCE_S
    while (handle := _taken(folder)) is None:
        if time.monotonic() > end:
            raise EscalaError(
                f"{folder}: another process keeps it locked: try again, or name a socket in another folder"
            )
        time.sleep(0.02)
    try:
        yield
    finally:
        os.close(handle)


def _taken(folder: Path) -> int | None:
    try:
        return locks.take(folder)
    except OSError as error:
        raise EscalaError(
            f"{folder}: may not be read ({(error.strerror or str(error)).lower()}): name a socket elsewhere"
        ) from None


def _clear(path: Path) -> None:
    """Remove the socket of a server that has died."""
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise EscalaError(
            f"{path}: cannot be looked at ({(error.strerror or str(error)).lower()}): name another socket"
        ) from None
    if not stat.S_ISSOCK(about.st_mode):
        raise EscalaError(f"{path}: stands there already, and is no socket: name another one")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PATIENCE_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except FileNotFoundError:
            return
        except PermissionError:
            raise EscalaError(f"{path}: is a socket of somebody else: name another one") from None
        except OSError:  # its queue is full, or it is slow: somebody is there
            pass
    raise EscalaError(f"{path}: a server that lives listens there: stop it, or name another socket")
