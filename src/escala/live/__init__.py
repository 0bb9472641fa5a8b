"""Beside a machine: a policy is asked from outside what to do now. A `Snapshot` says how things stand, a `Desk` answers with `Orders`."""

from escala.live.desk import Desk
from escala.live.orders import Orders, Planned, Start
from escala.live.snapshot import Snapshot

__all__ = ["Desk", "Orders", "Planned", "Snapshot", "Start"]
