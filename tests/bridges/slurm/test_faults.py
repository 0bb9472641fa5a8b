"""A fake Slurm of which any command may go wrong: no order without a guard, and nothing is left behind after the
lease."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.alone import counts_s
from escala.bridges.slurm.commands import Failed
from escala.bridges.slurm.guard import FREE, NICE, OFF_NODE, RENEW, WAKE, Guard, Limits
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.snapshots import MARK
from escala.errors import EscalaError
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.world import FAST, World, undo

pytestmark = pytest.mark.usefixtures("compiled")


FAULTS: list[Callable[[str], str]] = [
    lambda printed: (_ for _ in ()).throw(Failed("no answer within 10 s")),
    lambda printed: (_ for _ in ()).throw(Failed("status 1: Access/permission denied")),
    lambda printed: printed[: len(printed) // 2],
    lambda printed: "slurm_load error: Unable to contact slurm controller\n",
    lambda printed: "\udcff\0garbage|" * 20 + "\n",
]


TEXTS = (
    "Nodes=n1 CPU_IDs=,",
    "Nodes=[ CPU_IDs=1 Mem=0",
    "Nodes=n4 CPU_IDs=0-999 Mem=0",
    "a\nb",
    "a\u2028b",
    "x\nJobId=1 JobName=y",
    "|",
)
"""What users may write into the names and comments of their jobs."""
STATES = ("EXPEDITING", "SUSPENDED", "STOPPED", "COMPLETING", "x", "")
REASONS = ("|x", "\nmore", "\u2028", " Nodes=n1 CPU_IDs=,", "\x1b[31m")
SIZES = ("|1M|", "|x|", f"|{2**31}|", "|-3|", f"|{'9' * 5000}|")
FLAGS = ("MAINTENANCE", "REBOOT_REQUESTED", "INVAL", "BLOCKED", "DYNAMIC_FUTURE", "SOMETHING_NEW")
COUNTS = ("CPUTot=x", "CPUTot=0", f"CPUTot={'9' * 30}")
"""Of a node; not to be read."""


class Faulty:
    """A Slurm of which any command may go wrong, before or after it was carried out. odd: share of the records of what
    it shows that have something odd in them. kept: nodes that are odd in what it has shown last, which nobody may
    switch."""

    def __init__(self, slurm: FakeSlurm, drawn: random.Random, share: float, odd: float = 0.0) -> None:
        self.slurm, self.drawn, self.share, self.odd, self.faults = slurm, drawn, share, odd, 0
        self.clock = slurm.clock
        self.kept: set[str] = set()

    def _shown(self, client: str, words: tuple[str, ...], printed: str) -> str:
        """An output with odd records."""
        what = "jobs" if client == "squeue" else "nodes" if "nodes" in words else "details" if "jobs" in words else ""
        if not what or not self.odd or "--version" in words:
            return printed
        self.kept = set() if what == "nodes" else self.kept
        lines = [self._odd(what, line) if self.drawn.random() < self.odd else line for line in printed.splitlines()]
        lines += ["slurm: warning: x"] if lines and self.drawn.random() < self.odd / 4 else []
        return "".join(f"{line}\n" for line in lines)

    def _odd(self, what: str, line: str) -> str:
        drawn = self.drawn
        if what == "details":
            return line.replace(" x", f" JobName={drawn.choice(TEXTS)} ", 1) + f" Comment={drawn.choice(TEXTS)}"
        if what == "nodes":
            self.kept.add(line.split()[0].removeprefix("NodeName="))
            if drawn.random() < 0.3:
                return re.sub(r"CPUEfctv=\d+ CPUTot=\d+", drawn.choice(COUNTS), line)
            return re.sub(r" State=(\S+)", rf" State=\1+{drawn.choice(FLAGS)}", line)
        fields = line.split("|")
        which = drawn.randrange(4)
        if which == 0:
            return line + drawn.choice(REASONS)
        if which == 1:
            return line.replace(f"|{fields[6]}|{fields[7]}|", f"|{fields[6]}{drawn.choice(SIZES)}")
        return (
            line.replace(f"|{fields[1]}|", f"|{drawn.choice(STATES)}|")
            if which == 2
            else line.replace("|ann|", "|a\x0bn|")
        )

    def __call__(self, client: str, *words: str) -> str:
        wrong = "--version" not in words and self.drawn.random() < self.share
        if wrong and self.drawn.random() < 0.5 and words[0] in ("update", "create", "delete"):
            self.faults += 1
            raise Failed("refused before anything was done")
        told = dict(word.split("=", 1) for word in words if "=" in word)
        switched = told.get("nodename") or told.get("nodes")
        assert switched not in self.kept or _is_mark(words), (
            f"{words}: that node was shown with a flag that is not known to be harmless"
        )
        printed = self._shown(client, words, self.slurm(client, *words))
        if not wrong:
            return printed
        self.faults += 1
        return self.drawn.choice(FAULTS)(printed)


def _faulty(seed: int, folder: Path) -> int:
    """One run with faults, deaths and a restart. The number of faults."""
    drawn = random.Random(seed)
    jobs = [
        FakeJob(k + 1, EPOCH + 5 * drawn.randrange(40), drawn.randint(1, 4), drawn.randint(10, 60)) for k in range(8)
    ]
    slurm = FakeSlurm(4, jobs)
    for node in slurm.nodes.values():
        node.broken = drawn.random() < 0.1
    faulty = Faulty(slurm, drawn, drawn.choice((0.05, 0.2, 0.5)), drawn.choice((0.0, 0.1, 0.4)))
    limits = Limits(
        **{**vars(FAST), "allowed": frozenset(["n1", "n2", "n3"]), "spare": 1, "switches": 3, "lease_s": 30}
    )
    mode, shutdown = drawn.choice(("order", "power", "full")), drawn.choice(("timeout:0", "hold:0.25"))
    world = _begun(lambda: World(slurm, folder, mode, limits, faulty, shutdown=shutdown, marks=seed % 2 == 0))
    passed: set[tuple[str, str]] = set()
    sort = world.guard.sort

    def noted(*given: Any, **more: Any) -> Any:
        allowed, refused = sort(*given, **more)
        passed.update((one.wanted.kind, one.wanted.name) for one in allowed)
        return allowed, refused

    world.guard.sort = noted  # type: ignore[method-assign]
    for k in range(30):
        world.go(1)
        if k == 15 and drawn.random() < 0.5:
            world.die()
            _begun(world.begin)
            world.guard.sort = noted  # type: ignore[method-assign]
            sort = Guard.sort.__get__(world.guard)
    world.die()
    marked = [command for command in slurm.commands if _is_mark(command)]
    assert all("flags=ignore_jobs,overlap" in command for command in marked if command[1] == "create"), (
        "a mark holds back no job"
    )
    assert bool(marked) == world.marks
    _only_passed([command for command in slurm.commands if not _is_mark(command)], passed)
    slurm.advance(int(limits.lease_s) + 1)
    seen = Reader(slurm, clock=slurm.clock).read()
    _only_the_mark(seen)
    undo(slurm, folder)
    assert slurm.reservations == {}
    return faulty.faults


def _only_the_mark(seen: Seen) -> None:
    """Nothing is left after the lease but what says that somebody acts. It counts no more, and Slurm keeps it until its
    date: a reservation that ends with the lease would have to lie on a node now, and keep jobs off it."""
    assert all(one.name.startswith(MARK) for one in seen.reservations.values())
    assert all(counts_s(one, seen) <= 0 and one.start_s > seen.now_s for one in seen.reservations.values())


def _begun(begin: Callable[[], Any]) -> Any:
    """Whoever starts it tries again where a command fails."""
    for _ in range(200):
        try:
            return begin()
        except EscalaError:
            continue
    raise AssertionError("it never began")


def _is_mark(command: tuple[str, ...]) -> bool:
    """Is it of what says that somebody acts on a partition, which no guard is asked for?"""
    return any(word.startswith(f"reservationname={MARK}") for word in command)


def _only_passed(commands: list[tuple[str, ...]], passed: set[tuple[str, str]]) -> None:
    """Every command that reached Slurm is one of something that a guard let through."""
    kinds: dict[str, tuple[str, ...]] = {
        "create": (OFF_NODE, "lease"),
        "delete": (FREE, OFF_NODE),
        "power_down": (OFF_NODE,),
    }
    kinds |= {"power_up": (WAKE,), "nice": (NICE,), "endtime": (RENEW,)}
    for command in commands:
        told = dict(word.split("=", 1) for word in command if "=" in word)
        what = told.get("jobid") or told.get("nodename") or told["reservationname"].removeprefix("escala_")
        verb = command[1] if command[1] != "update" else told.get("state") or ("nice" if "nice" in told else "endtime")
        assert any((kind, what) in passed for kind in kinds[verb]), command
        assert what not in ("n4",), "not among the nodes that are allowed"


@pytest.mark.slow
def test_nothing_odd_costs_a_look_or_touches_what_it_is_of(tmp_path: Path) -> None:
    """Free text of users, flags of nodes, states and sizes of jobs: each costs its own record."""
    acted, left = 0, 0
    for seed in range(12):
        drawn = random.Random(seed)
        jobs = [
            FakeJob(k + 1, EPOCH + 5 * drawn.randrange(40), drawn.randint(1, 3), drawn.randint(10, 60))
            for k in range(8)
        ]
        slurm = FakeSlurm(4, [FakeJob(99, EPOCH + 1, 1, 900), *jobs])
        slurm.advance(2)
        faulty = Faulty(slurm, drawn, 0.0, 0.3)
        world = World(slurm, tmp_path / str(seed), "power", Limits(**{**vars(FAST), "lease_s": 30}), faulty)
        for _ in range(25):
            world.go(1)
            assert world.beside.misses == 0 or "none of its records" in world.beside.why, world.beside.why
            world.beside.misses = 0
        world.die()
        acted += len(slurm.commands)
        left += len(world.told("left_out"))
    assert acted > 50 and left > 200


@pytest.mark.slow
def test_faults_at_every_command(tmp_path: Path) -> None:
    faults = sum(_faulty(seed, tmp_path / str(seed)) for seed in range(40))
    assert faults > 300


@pytest.mark.long
def test_faults_at_every_command_a_thousand_times(tmp_path: Path) -> None:
    assert sum(_faulty(seed, tmp_path / str(seed)) for seed in range(40, 1040)) > 8000
