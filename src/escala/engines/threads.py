"""Pieces of work in threads of this process: compiled code releases the interpreter's lock, and nothing is copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Threads:
    """An engine of n threads."""

    n: int

    def __call__(self, pieces: Sequence[T], job: Callable[[T], dict[str, Any]]) -> Iterator[tuple[T, dict[str, Any]]]:
        """Every piece of work with what `job` gives, as they end. After a piece that fails nothing more begins; what
        runs already is finished and given, and then its exception is raised."""
        failure: BaseException | None = None
        with ThreadPoolExecutor(self.n) as pool:
            running = {pool.submit(copy_context().run, job, piece): piece for piece in pieces}
            try:
                for future in as_completed(running):
                    failure = future.exception()
                    if failure is not None:
                        break
                    yield running.pop(future), future.result()
            finally:
                pool.shutdown(cancel_futures=True)
        for future, piece in running.items():
            if not future.cancelled() and future.exception() is None:
                yield piece, future.result()
        if failure is not None:
            raise failure
