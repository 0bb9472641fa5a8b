"""A piece of work on another machine, whose Escala has to be the same."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from escala.source import source_digest


def made_by() -> str:
    """The program's version and state, on which every result depends."""
    return f"{version('escala')} {source_digest()}"


def there(piece: Any, job: Callable[[Any], dict[str, Any]], folder: str, program: str) -> dict[str, Any]:
    """One piece of work on another machine, in the folder in which the work was begun; `error` where its Escala is
    another one."""
    with suppress(OSError):
        os.chdir(folder)
    if _program() != program:
        return {
            "error": f"node {socket.gethostname()} has another version or state of Escala ({_program()}): install "
            f"{program} there"
        }
    return job(piece)


@functools.cache
def _program() -> str:
    return made_by()
