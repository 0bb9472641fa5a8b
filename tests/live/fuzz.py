"""Random worlds, inside the kernel and asked from outside: `python -m tests.live.fuzz --worlds 1000 --seed 0`.

With `--shapes` only those in which jobs ask for more than cores, a tenth. With `--sites` they are sites under Slurm's
rules: partitions that overlap, all shapes of jobs, limits, reservations, nodes that are gone. Exit code 1 at a
difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from escala.errors import EscalaError
from tests.live.machine import Machine
from tests.live.slurm_machine import Asked, site_world
from tests.live.twin import differences, world
from tests.oracle.worlds import ASKED

SAID = 100
"""A line of progress after so many worlds."""
FAIR = "fair_share"  # the one drawn policy that cannot be asked


def check(
    seed: int, first: int, worlds: int, kind: type[Machine] = Machine, shaped: bool = False
) -> tuple[int, list[str]]:
    """How many worlds were asked, and what went otherwise. shaped: of these only those in which jobs ask for more than
    cores."""
    asked, found = 0, list[str]()
    for number in range(first, first + worlds):
        case = world(seed, number, shaped=shaped)
        if case is None or (shaped and not any(job.get(name) is not None for job in case.jobs for name in ASKED)):
            continue
        try:
            other = differences(case, kind=kind)
        except EscalaError as error:
            if FAIR not in str(error):
                found.append(f"world {number} of seed {seed} is refused: {error}")
            continue
        asked += 1
        if other:
            found.append(
                f"world {number} of seed {seed}, {case.options['scheduler']} + {case.options['shutdown']}: {other[0]}"
            )
    return asked, found


def check_sites(first: int, worlds: int) -> tuple[int, list[str]]:
    """The same of sites under Slurm's rules."""
    found = list[str]()
    for number in range(first, first + worlds):
        with tempfile.TemporaryDirectory() as folder:
            machine = Asked(*site_world(number, Path(folder)))
            machine.run(Path(folder))
        other = machine.differences()
        if other:
            found.append(f"site world {number}: {other[0]}")
        if (done := number - first + 1) % SAID == 0:
            print(f"{done} of {worlds} site worlds, {len(found)} otherwise", file=sys.stderr, flush=True)
    return worlds, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--sites", action="store_true")
    given = parser.parse_args()
    asked, found = (
        check_sites(given.first, given.worlds)
        if given.sites
        else check(given.seed, given.first, given.worlds, shaped=given.shapes)
    )
    print(*found, sep="\n")
    print(f"{asked} of {given.worlds} worlds asked from outside, {len(found)} otherwise than inside")
    return 1 if found or asked < given.worlds * (0.08 if given.shapes else 0.8) else 0


if __name__ == "__main__":
    sys.exit(main())
