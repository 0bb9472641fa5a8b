"""The program as tests call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LOG = """; MaxProcs: 4
; UnixStartTime: 1000000000
1 0 -1 100 2 -1 -1 2 200 -1 1 7 -1 -1 -1 -1 -1 -1
2 10 -1 50 4 -1 -1 4 60 -1 1 8 -1 -1 -1 -1 -1 -1
3 20 -1 30 1 -1 -1 1 40 -1 1 7 -1 -1 -1 -1 -1 -1
4 400 -1 30 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1
"""


@dataclass(frozen=True)
class Outcome:
    """What one call of the program left behind."""

    status: int
    out: str
    err: str


Escala = Callable[..., Outcome]
