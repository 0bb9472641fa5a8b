"""What runs beside a fake Slurm in tests: it can die and begin anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from escala.bridges.slurm.actor import Actor, Changes
from escala.bridges.slurm.alone import Presence
from escala.bridges.slurm.guard import Guard, Limits
from escala.bridges.slurm.hands import Steering
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL, Beside, Setting
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.shape import LOOK
from escala.bridges.slurm.snapshots import layout
from escala.bridges.slurm.undoing import leased_by, undone
from escala.errors import EscalaError
from escala.live import Desk
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.shadow import WATTS

PERIOD = 5
ALL = frozenset(f"n{k}" for k in range(1, 9))
FAST = Limits(spare=0, switches=100, min_on_s=0, min_off_s=0, boot_s=90, lease_s=60, allowed=ALL)


class World:
    """A fake Slurm, and what runs beside it; it can die and begin anew."""

    def __init__(
        self, slurm: FakeSlurm, folder: Path, mode: str, limits: Limits = FAST, run: Any = None, **given: Any
    ) -> None:
        self.slurm, self.folder, self.mode, self.limits, self.run = slurm, folder, mode, limits, run or slurm
        self.marks = given.pop("marks", False)  # says in Slurm that it acts
        self.policies = {"scheduler": "easy", "shutdown": "timeout:0", **given}
        folder.mkdir(exist_ok=True)
        self.begin()

    def begin(self) -> None:
        reader = Reader(self.run, clock=self.slurm.clock)
        at = layout(Reader(self.slurm, clock=self.slurm.clock).read(), "batch", WATTS)
        changes = Changes(self.folder)
        self.guard = Guard(at, self.limits, reader.known, PERIOD, changes.owns, self.slurm.clock)
        actor = Actor(self.run, self.guard.seal, "ann", self.limits.lease_s, changes, self.guard.failed)
        presence = Presence(self.run, at, "ann", self.limits.lease_s, changes) if self.marks else None
        hands = Steering(self.mode, at, self.guard, actor, presence)
        desk = Desk(at.platform, self.policies["scheduler"], self.policies["shutdown"])
        self.beside = Beside(reader, desk, at, self.folder, Setting(self.mode, PERIOD), hands)
        try:
            hands.begin(reader.read)
            self.beside.begin(self.slurm.clock())
        except EscalaError:
            self.die()
            raise

    def die(self) -> None:
        self.beside.journal.close()

    def go(self, cycles: int) -> None:
        for _ in range(cycles):
            self.beside.cycle()
            self.slurm.advance(PERIOD)

    def told_of(self, name: str) -> list[Any]:
        return [one[name] for one in records(self.folder / JOURNAL) if one["kind"] == LOOK and name in one]

    def told(self, name: str) -> list[Any]:
        return [entry for one in records(self.folder / JOURNAL) if one["kind"] == LOOK for entry in one.get(name, ())]


def queue(*seconds: int, nodes: int = 8) -> FakeSlurm:
    """A machine that is full for 100 s, and jobs of these limits behind."""
    full = FakeJob(1, EPOCH + 1, nodes, 100, priority=5000)
    waiting = [
        FakeJob(k + 2, EPOCH + 2, nodes, 20, limit=60 * limit, priority=1000 - k) for k, limit in enumerate(seconds)
    ]
    slurm = FakeSlurm(nodes, [full, *waiting])
    slurm.advance(3)
    return slurm


def undo(
    slurm: FakeSlurm, folder: Path, user: str = "ann", dry: bool = False
) -> tuple[list[tuple[str, bool]], list[str]]:
    changes = Changes(folder)
    seen = Reader(slurm, clock=slurm.clock).read()
    return undone(slurm, seen, changes, leased_by(changes, folder / JOURNAL, user), dry)


def reserve(slurm: FakeSlurm, name: str, nodes: str, user: str = "root") -> None:
    slurm(
        "scontrol",
        "create",
        "reservation",
        f"reservationname={name}",
        "endtime=now+9999",
        f"nodes={nodes}",
        f"user={user}",
    )
