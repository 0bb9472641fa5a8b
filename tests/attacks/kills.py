"""Kills at file operations: python -m tests.attacks.kills --kills 200. Prints as JSON what was tried and what held.

A verb runs in a forked child that ends itself by SIGKILL before its k-th change of a file below the working folder. Then the target holds
the old result or the new one, whole; nothing else of the user's has changed; and the next run works and leaves no other file behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars  # noqa: F401  what children need is imported once, and not used: threads do not live through a fork

import escala.policies
import escala.studies.saving  # noqa: F401
from escala.cli.app import run
from escala.writing.sealing import foreign
from tests.cli.program import LOG

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate"}
REPLAY = ["small.swf", "--platform", "4x1"]
VERBS: dict[str, tuple[list[str], str]] = {
    "simulate": (["simulate", *REPLAY, "--out", "out"], "out"),
    "compare": (["compare", *REPLAY, "--schedulers", "fcfs,easy", "--out", "out"], "out"),
    "generate": (["workload", "generate", "bernoulli", "--out", "out.swf", "--force"], "out.swf"),
    "convert": (["workload", "convert", "small.swf", "--out", "out.swf.gz", "--force"], "out.swf.gz"),
}


def _child(work: Path, arguments: list[str], at: int | None) -> tuple[int, int]:
    """Run a verb in a child, killed before change number `at`, from 0. (signal or exit status, changes counted where not killed)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        count = 0

        def look(event: str, given: tuple[object, ...]) -> None:
            nonlocal count
            writes = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
            if (event in CHANGES or writes) and not str(given[0]).startswith(("/dev", "/proc")):
                if count == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1

        os.chdir(work)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.addaudithook(look)
        status = run(arguments)
        os.write(write, str(count).encode())
        os._exit(status)
    os.close(write)
    _, ended = os.waitpid(pid, 0)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    return (-os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)), int(told or 0)


def _whole(place: Path, verb: str, first: bytes | None) -> bool:
    """Is what stands there a whole output? first: of a file, the content it must have."""
    return foreign(place, verb) is None if place.is_dir() else place.read_bytes() == first


def attack(verb: str, existing: bool, at: Callable[[int], int]) -> list[str]:
    """One kill; what did not hold."""
    arguments, name = VERBS[verb]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for own in ("small.swf", "precious"):
            (work / own).write_text(LOG)
        status, changes = _child(work, arguments, None)
        if status != 0:
            return [f"the first run ended with {status}"]
        place = work / name
        content = place.read_bytes() if place.is_file() else None
        if not existing:
            place.rename(work / "aside")
            _remove(work / "aside")
        status, _ = _child(work, arguments, at(changes))
        wrong = []
        if status not in (0, -signal.SIGKILL):
            wrong.append(f"ended with {status}")
        if existing and not place.exists():
            wrong.append("the old result is gone")
        if place.exists() and not _whole(place, verb, content):
            wrong.append("half a result")
        status, _ = _child(work, arguments, None)
        if status != 0 or not _whole(place, verb, content):
            wrong.append(f"the next run ended with {status}")
        if sorted(os.listdir(work)) != sorted([name, "precious", "small.swf"]):
            wrong.append(f"left behind: {sorted(os.listdir(work))}")
        if any((work / own).read_text() != LOG for own in ("small.swf", "precious")):
            wrong.append("a file of the user's was changed")
        return wrong


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path) if path.is_dir() else path.unlink()


def kills(n: int, seed: int = 0) -> dict[str, object]:
    """So many kills, over all verbs, half of them over an existing target."""
    chance, tried, failed = random.Random(seed), Counter[str](), []
    for k in range(n):
        verb, existing = list(VERBS)[k % len(VERBS)], (k // len(VERBS)) % 2 == 0
        point: list[int] = []
        wrong = attack(verb, existing, lambda changes: point.append(chance.randrange(max(1, changes))) or point[0])  # noqa: B023
        tried[f"{verb}, {'existing' if existing else 'fresh'} target"] += 1
        failed += [{"verb": verb, "existing": existing, "at": point, "wrong": wrong}] if wrong else []
    return {"kills": n, "tried": dict(tried), "held": n - len(failed), "failed": failed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    told = kills(given.kills, given.seed)
    print(json.dumps(told, indent=1))
    sys.exit(told["held"] != told["kills"])
