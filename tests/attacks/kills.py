"""Kills at file operations: python -m tests.attacks.kills --kills 200. Prints as JSON what was tried and what held.

A verb runs in a forked child that ends itself by SIGKILL at its k-th change of a file below the working folder: before
it, and for renames and exchanges also after it. Then the target holds the old result or the new one, whole; nothing
else of the user's has changed; and the next run works, gives what an uninterrupted one gives, and leaves no other file
behind.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from escala.agents import checkpoint
from escala.agents.training import learning_curve
from escala.studies.marl2024 import recipe
from escala.writing import moves
from escala.writing.sealing import digest, foreign
from tests.attacks.killed import INPUTS, QUICK, SLOW, VERBS, Verb, act

CHANGES = {"os.rename": 2, "os.mkdir": 2, "os.remove": 1, "os.rmdir": 1, "os.chmod": 2, "os.truncate": 9}
"""What changes a file -> which argument is the open folder that the name is relative to (-1: none; 9: it takes
none)."""
NEEDED = "jinja2 matplotlib.figure numba polars pooch pydantic.main requests rich.progress torch._dynamo typer yaml"
for needed in NEEDED.split():  # by children: imported once, and not used, since threads do not live through a fork
    import_module(needed)
HALF = 12  # of a training's points: its checkpoint is written, its agent is not
TINY = {"steps": 64, "loads": (50,), "imitated": 0, "void": 0, "test": 2, "sampled": 1, "validation": 2}


class _Killer:
    """Counts the points at which a process may be killed, and kills it at one of them."""

    def __init__(self, work: Path, at: int | None) -> None:
        self.work, self.at, self.count = f"{os.path.realpath(work)}/", at, 0

    def point(self) -> None:
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def look(self, event: str, given: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
        if (event in CHANGES or writes) and not isinstance(given[0], int):
            folder = given[CHANGES[event]] if event in CHANGES and len(given) > CHANGES[event] else -1
            place = "." if folder < 0 else os.readlink(f"/proc/self/fd/{folder}")
            if self._here(os.path.join(place, os.fsdecode(given[0]))):
                self.point()

    def _here(self, path: str) -> bool:
        return os.path.abspath(path).startswith(self.work)

    def after(self, step: Callable[..., Any], before: bool = False) -> Callable[..., Any]:
        """A step with a point after it, if it moves something below the working folder. before: and one before it,
        where Python tells of none."""

        def stepped(*given: Any, **named: Any) -> Any:
            counts = self._here(os.fsdecode(given[0]))
            if before and counts:
                self.point()
            done = step(*given, **named)
            if counts:
                self.point()
            return done

        return stepped


def _child(work: Path, arguments: list[str], at: int | None) -> tuple[int, int]:
    """Run a verb in a child, killed at point number `at`, from 0. (signal or exit status, points counted where not
    killed)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            os.chdir(work)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            tempfile.tempdir = str(work.parent)  # what a killed child leaves there goes with it
            killer = _Killer(work, at)
            os.rename, os.replace = killer.after(os.rename), killer.after(os.replace)
            moves._special = killer.after(moves._special, before=True)  # type: ignore[attr-defined]
            sys.addaudithook(killer.look)
            status = act(arguments)
            os.write(write, str(killer.count).encode())
        finally:
            os._exit(status)
    os.close(write)
    _, ended = os.waitpid(pid, 0)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    return (-os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)), int(told or 0)


def _names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def _weights(path: Path) -> dict[str, bytes]:
    """What torch saved, without the name of the file that it was written to."""
    with zipfile.ZipFile(path) as found:
        return {name.partition("/")[2]: found.read(name) for name in found.namelist()}


def _half(place: Path, verb: Verb, reference: Path) -> str | None:
    """What is not whole there; None where all is. Of a folder that grows: of what is said to be finished."""
    if verb.kind == "file":
        return None if place.read_bytes() == reference.read_bytes() else "other content"
    if verb.kind != "bit by bit":
        return foreign(place, verb.kind)
    for path in place.rglob("[!.]*.json"):
        found = json.loads(path.read_text())
        known = found.get("weights_sha256", []) if path.name == "manifest.json" else []
        weights = sorted(path.parent.glob("weights*.pt"))
        if known and [digest(one) for one in weights] != ([known] if isinstance(known, str) else known):
            return f"{path}: of other weights"
    return None


def _different(place: Path, verb: Verb, reference: Path) -> str | None:
    """What a finished result has otherwise than an uninterrupted one; None where there is nothing."""
    half = _half(place, verb, reference)
    if half is not None or place.is_file():
        return half
    if _names(place) != _names(reference):
        return f"files {sorted(set(_names(place)) ^ set(_names(reference)))}"
    pairs = [(path, place / path.relative_to(reference)) for path in sorted(reference.rglob("*.*"))]
    other = [b.name for a, b in pairs if a.suffix == ".pt" and _weights(a) != _weights(b)]
    other += [b.name for a, b in pairs if a.name == "claims.csv" and a.read_bytes() != b.read_bytes()]
    return f"other content of {other}" if other else None


@dataclass
class Begun:
    """Where a verb is killed: a folder with its inputs and, where that exists, its old result; how many points its run
    has."""

    inputs: Path
    arguments: list[str]
    points: int
    reference: Path


def _prepared(name: str, folder: Path) -> dict[bool, Begun]:
    """The folders to begin from: without and with a result. Of a training, which replaces none, with a half of it."""
    verb, fresh, done, begun = VERBS[name], folder / "fresh", folder / "done", folder / "begun"
    fresh.mkdir(parents=True)
    for own, text in INPUTS.items():
        (fresh / own).write_text(text)
    (fresh / "cache").mkdir()
    for arguments in verb.first:
        assert _child(fresh, arguments, None)[0] == 0, arguments
    shutil.copytree(fresh, done)
    status, points = _child(done, verb.arguments, None)
    assert status == 0, f"{name}: the first run ended with {status}"
    reference = done / verb.target
    shutil.copytree(fresh if verb.again else done, begun)
    if verb.again:
        _child(begun, verb.arguments, HALF)
    shutil.copytree(begun, folder / "counted")
    status, more = _child(folder / "counted", verb.again or verb.arguments, None)
    assert status == 0, f"{name}: the second run ended with {status}"
    return {
        False: Begun(fresh, verb.arguments, points, reference),
        True: Begun(begun, verb.again or verb.arguments, more, reference),
    }


def attack(verb: Verb, begun: Begun, at: int) -> list[str] | None:
    """One kill; what did not hold. None: it ended well before it came to that point."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        shutil.copytree(begun.inputs, work)
        place, existed = work / verb.target, (work / verb.target).exists()
        status, _ = _child(work, begun.arguments, at)
        if status == 0:
            return None
        wrong = []
        if status != -signal.SIGKILL:
            wrong.append(f"ended with {status}")
        if existed and not place.exists():
            wrong.append("the old result is gone")
        if place.exists() and (half := _half(place, verb, begun.reference)) is not None:
            wrong.append(f"half a result: {half}")
        status, _ = _child(work, verb.arguments, None)
        if status == 2 and verb.again:
            status, _ = _child(work, verb.again, None)
        # told that nothing is left to go on with
        ended = status == 2 and verb.again and (place / "manifest.json").is_file()
        if not (status == 0 or ended):
            wrong.append(f"the next run ended with {status}")
        elif (other := _different(place, verb, begun.reference)) is not None:
            wrong.append(f"the next run gave {other}")
        wanted = sorted({*os.listdir(begun.inputs), verb.target})
        if sorted(os.listdir(work)) != wanted:
            wrong.append(f"left behind: {sorted(set(os.listdir(work)) ^ set(wanted))}")
        if any((work / own).read_text() != text for own, text in INPUTS.items()):
            wrong.append("a file of the user's was changed")
        return wrong


def kills(n: int, seed: int = 0, verbs: list[str] | None = None) -> dict[str, object]:
    """So many kills, over the quick verbs or those named, half of them where a result, or half a training, exists."""
    chance, tried, held, failed = random.Random(seed), Counter[str](), Counter[str](), []
    recipe.SCALES["smoke"] = replace(recipe.SCALES["smoke"], **TINY)
    checkpoint.EVERY_S = 0.0  # a checkpoint between any two rollouts
    learning_curve.LEAST_S = math.inf  # no curve: whether a training is long enough for one would be chance
    names = verbs or QUICK
    with tempfile.TemporaryDirectory() as folder:
        prepared = {name: _prepared(name, Path(folder) / name) for name in names[:n]}
        for k in range(n):
            name, existing = names[k % len(names)], (k // len(names)) % 2 == 0
            begun = prepared[name][existing]
            at = chance.randrange(max(1, begun.points))
            while (wrong := attack(VERBS[name], begun, at)) is None:
                at = chance.randrange(at)
            told = f"{name}, {'existing' if existing else 'fresh'} target"
            tried[told] += 1
            held[told] += not wrong
            print(
                f"{k + 1}/{n} {told}: killed at {at} of {begun.points}: {'; '.join(wrong) or 'held'}",
                file=sys.stderr,
                flush=True,
            )
            failed += (
                [{"verb": name, "existing": existing, "at": at, "of": begun.points, "wrong": wrong}] if wrong else []
            )
    points = {
        f"{name}, {'existing' if e else 'fresh'} target": one.points
        for name, by in prepared.items()
        for e, one in by.items()
    }
    return {
        "kills": n,
        "held": n - len(failed),
        "tried": dict(tried),
        "held_by_verb": dict(held),
        "points": points,
        "failed": failed,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbs", help=f"some of {','.join(VERBS)} [all but {','.join(sorted(SLOW))}]")
    given = parser.parse_args()
    told = kills(given.kills, given.seed, given.verbs and given.verbs.split(","))
    print(json.dumps(told, indent=1))
    sys.exit(told["held"] != told["kills"])
