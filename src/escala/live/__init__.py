"""Beside a machine: a policy is asked from outside what to do now. A `Snapshot` says how things stand, a `Desk` answers
with `Orders`.

`ask` asks a desk in another process, which `escala serve` keeps. Each public name is loaded when it is first used:
asking compiles nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from escala.lazy import loaded_when_used

if TYPE_CHECKING:
    from escala.live.client import ask, request
    from escala.live.desk import Desk
    from escala.live.orders import Orders, Planned, Refused, Start
    from escala.live.site_desk import SiteDesk
    from escala.live.slurm_desk import SlurmDesk
    from escala.live.snapshot import Snapshot

__all__ = ["Desk", "Orders", "Planned", "Refused", "SiteDesk", "SlurmDesk", "Snapshot", "Start", "ask", "request"]

_HOME = {
    "Desk": "escala.live.desk",
    "Orders": "escala.live.orders",
    "Planned": "escala.live.orders",
    "Refused": "escala.live.orders",
    "SiteDesk": "escala.live.site_desk",
    "SlurmDesk": "escala.live.slurm_desk",
    "Snapshot": "escala.live.snapshot",
    "Start": "escala.live.orders",
    "ask": "escala.live.client",
    "request": "escala.live.client",
}
"""Public name -> the module that defines it."""


__getattr__ = loaded_when_used(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
