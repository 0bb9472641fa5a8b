"""A fake Slurm of which any command may go wrong: no order without a guard, and nothing is left behind after the lease."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.commands import Failed
from escala.bridges.slurm.guard import FREE, NICE, OFF_NODE, RENEW, WAKE, Guard, Limits
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.world import FAST, World

pytestmark = pytest.mark.usefixtures("compiled")


FAULTS: list[Callable[[str], str]] = [
    lambda printed: (_ for _ in ()).throw(Failed("no answer within 10 s")),
    lambda printed: (_ for _ in ()).throw(Failed("status 1: Access/permission denied")),
    lambda printed: printed[: len(printed) // 2],
    lambda printed: "slurm_load error: Unable to contact slurm controller\n",
    lambda printed: "\udcff\0garbage|" * 20 + "\n",
]


class Faulty:
    """A Slurm of which any command may go wrong, before or after it was carried out."""

    def __init__(self, slurm: FakeSlurm, drawn: random.Random, share: float) -> None:
        self.slurm, self.drawn, self.share, self.faults = slurm, drawn, share, 0
        self.clock = slurm.clock

    def __call__(self, client: str, *words: str) -> str:
        wrong = "--version" not in words and self.drawn.random() < self.share
        if wrong and self.drawn.random() < 0.5 and words[0] in ("update", "create", "delete"):
            self.faults += 1
            raise Failed("refused before anything was done")
        printed = self.slurm(client, *words)
        if not wrong:
            return printed
        self.faults += 1
        return self.drawn.choice(FAULTS)(printed)


def _faulty(seed: int, folder: Path) -> int:
    """One run with faults, deaths and a restart. The number of faults."""
    drawn = random.Random(seed)
    jobs = [FakeJob(k + 1, EPOCH + 5 * drawn.randrange(40), drawn.randint(1, 4), drawn.randint(10, 60)) for k in range(8)]
    slurm = FakeSlurm(4, jobs)
    for node in slurm.nodes.values():
        node.broken = drawn.random() < 0.1
    faulty = Faulty(slurm, drawn, drawn.choice((0.05, 0.2, 0.5)))
    limits = Limits(**{**vars(FAST), "allowed": frozenset(["n1", "n2", "n3"]), "spare": 1, "switches": 3, "lease_s": 30})
    mode, shutdown = drawn.choice(("order", "power", "full")), drawn.choice(("timeout:0", "hold:0.25"))
    world = World(slurm, folder, mode, limits, faulty, shutdown=shutdown)
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
            world.begin()
            world.guard.sort = noted  # type: ignore[method-assign]
            sort = Guard.sort.__get__(world.guard)
    world.die()
    _only_passed(slurm.commands, passed)
    slurm.advance(int(limits.lease_s) + 1)
    assert slurm.reservations == {}, "nothing is left behind after the lease"
    return faulty.faults


def _only_passed(commands: list[tuple[str, ...]], passed: set[tuple[str, str]]) -> None:
    """Every command that reached Slurm is one of something that a guard let through."""
    kinds: dict[str, tuple[str, ...]] = {"create": (OFF_NODE, "lease"), "delete": (FREE,), "power_down": (OFF_NODE,)}
    kinds |= {"power_up": (WAKE,), "nice": (NICE,), "endtime": (RENEW,)}
    for command in commands:
        told = dict(word.split("=", 1) for word in command if "=" in word)
        what = told.get("jobid") or told.get("nodename") or told["reservationname"].removeprefix("escala_")
        verb = command[1] if command[1] != "update" else told.get("state") or ("nice" if "nice" in told else "endtime")
        assert any((kind, what) in passed for kind in kinds[verb]), command
        assert what not in ("n4",), "not among the nodes that are allowed"


@pytest.mark.slow
def test_faults_at_every_command(tmp_path: Path) -> None:
    faults = sum(_faulty(seed, tmp_path / str(seed)) for seed in range(40))
    assert faults > 300


@pytest.mark.long
def test_faults_at_every_command_a_thousand_times(tmp_path: Path) -> None:
    assert sum(_faulty(seed, tmp_path / str(seed)) for seed in range(40, 1040)) > 8000
