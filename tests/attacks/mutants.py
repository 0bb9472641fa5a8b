"""Plant known bugs and see which the tests notice: `python -m tests.attacks.mutants [--area kernel] [--only TEXT] [--out FILE]`.

Each bug of `tests.attacks.planted` is put into a copy of the sources and all tests of its area are run against that copy until the first
fails. A bug that no test notices *survives*. First of all the tests have to pass on the copy as it is, so that a failure says something.
The answers are one JSON object; docs/reliability.md shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.attacks.planted import AREAS, BUGS, Bug

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 900.0  # of the tests of one bug; beyond, the bug made something endless, which is noticed


def applies(bug: Bug) -> bool:
    """Does the bug's place exist, once?"""
    return (ROOT / "src" / "escala" / bug.file).read_text(encoding="utf-8").count(bug.old) == 1


def tests_pass(area: str, copy: Path) -> bool:
    """Do the tests of an area pass on a copy of the sources?"""
    paths = [path for path in AREAS[area] if (ROOT / path).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *paths]
    places = {"PYTHONPATH": str(copy / "src"), "ESCALA_CACHE_DIR": str(copy / "cache"), "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "found")}
    try:
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **places}, capture_output=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2, -6, -7, -8, -11):  # 2: not even collected; negative: the process was ended by a signal
        raise SystemExit(f"error: pytest ended with {done.returncode}: {done.stdout.decode()[-500:]}{done.stderr.decode()[-500:]}")
    return done.returncode == 0


def plant(bug: Bug, copy: Path) -> bool:
    """Are there tests that notice the bug?"""
    path = copy / "src" / "escala" / bug.file
    whole, times = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(whole.replace(bug.old, bug.new), encoding="utf-8")
    try:
        return not tests_pass(bug.area, copy)
    finally:
        path.write_text(whole, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled code of the sound copy stays good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", choices=list(AREAS))
    parser.add_argument("--only", default="", help="bugs whose name holds this text")
    parser.add_argument("--out", type=Path, help="keep the answers here as they come, and go on from what is there")
    given = parser.parse_args()
    chosen = [bug for bug in BUGS if given.area in (None, bug.area) and given.only in bug.name]
    lost = [bug.name for bug in chosen if not applies(bug)]
    if lost:
        raise SystemExit(f"error: {len(lost)} bugs have lost their place, mend tests/attacks/planted.py: {'; '.join(lost)}")
    known: dict[str, bool] = json.loads(given.out.read_text())["noticed"] if given.out and given.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for area in dict.fromkeys(bug.area for bug in chosen if bug.name not in known):
            if not tests_pass(area, copy):
                raise SystemExit(f"error: the tests of {area} fail without a bug")
        for k, bug in enumerate(chosen):
            if bug.name not in known:
                began = time.perf_counter()
                known[bug.name] = plant(bug, copy)
                told = "noticed" if known[bug.name] else "SURVIVES"
                print(f"{k + 1}/{len(chosen)} {told} ({time.perf_counter() - began:.0f} s) {bug.name}", file=sys.stderr, flush=True)
            if given.out:
                given.out.write_text(json.dumps(answers(chosen, known), indent=1) + "\n")
    print(json.dumps(answers(chosen, known), indent=1))


def answers(chosen: list[Bug], known: dict[str, bool]) -> dict[str, object]:
    done = [bug for bug in chosen if bug.name in known]
    survivors = [bug.name for bug in done if not known[bug.name]]
    by_area = {area: sum(bug.area == area for bug in done) for area in AREAS}
    return {"planted": len(done), "by_area": by_area, "survivors": survivors, "noticed": {bug.name: known[bug.name] for bug in done}}


if __name__ == "__main__":
    main()
