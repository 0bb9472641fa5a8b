"""Processes of this machine that do work side by side, and what becomes of one that ends before its time."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from escala.errors import EscalaError

T = TypeVar("T")
Job = Callable[[T], dict[str, Any]]
AHEAD = 2
"""Pieces that are given to each process before they begin, so that none waits for the next."""
ENDED = "its process ended before its time, twice (too little memory?)"


def end_with_parent() -> None:
    """Let this process end when its parent is ended, be it by a signal that cannot be caught."""

    def wait_and_end() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


def _begin() -> None:
    """In each process, before its first piece: Ctrl-C is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _pool(n: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(n, mp_context=get_context("spawn"), initializer=_begin)


def each(pieces: Sequence[T], n: int, job: Job[T]) -> Iterator[tuple[T, dict[str, Any]]]:
    """Every piece of work with what `job` gives, as they end. n: processes; 1: this one.

    A piece whose process ends before its time is tried once more, alone, and then has an `error`. EscalaError where no
    process lives until the end of a piece.
    """
    if n == 1 or len(pieces) < 2:
        for piece in pieces:
            yield piece, job(piece)
        return
    waiting, any_done = deque(pieces), False
    while waiting:
        suspects: list[T] = []
        for piece, told in _until_broken(waiting, n, job):
            if told is None:
                suspects.append(piece)
            else:
                any_done = True
                yield piece, told
        again = [(piece, _alone(piece, job)) for piece in suspects]
        any_done = any_done or any(told != {"error": ENDED} for _, told in again)
        if len(again) > 1 and not any_done:
            raise EscalaError(
                "no process lives until the end of its work: give more memory, work in one process (--on local:1, "
                "--jobs 1), or, in a script of your own, call it under if __name__ == '__main__':"
            )
        yield from again


def _until_broken(waiting: deque[T], n: int, job: Job[T]) -> Iterator[tuple[T, dict[str, Any] | None]]:
    """Take pieces from `waiting` and do them until there are none, or a process has ended before its time: then None
    for all that were under way."""
    pool, running, broken = _pool(n), dict[Future[dict[str, Any]], T](), False
    try:
        while running or (waiting and not broken):
            while waiting and not broken and len(running) < AHEAD * n:
                try:
                    running[pool.submit(job, waiting[0])] = waiting[0]
                    waiting.popleft()
                except BrokenProcessPool:
                    broken = True
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                piece, failure = running.pop(future), future.exception()
                if failure is not None and not isinstance(failure, BrokenProcessPool):
                    raise failure
                broken = broken or failure is not None
                yield piece, None if failure is not None else future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _alone(piece: T, job: Job[T]) -> dict[str, Any]:
    """A piece in a process of its own."""
    pool = _pool(1)
    try:
        return pool.submit(job, piece).result()
    except BrokenProcessPool:
        return {"error": ENDED}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
