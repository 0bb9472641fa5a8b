"""Plant known bugs and see which the tests notice: `python -m tests.attacks.mutants [--area kernel] [--only TEXT]
[--out FILE]`.

Each bug of `tests.attacks.planted` is put into a copy of the working tree, made at the start, and all tests of its area
are run there until the first fails. First of all the tests have to pass on the copy as it is, so that a failure says
something.

How the tests of a bug end is one word: *failed*, a test failed; *crash*, compiled code ended pytest by a signal before
a test failed; *passed*; *timeout*, they took `PATIENCE` times the processor time of the sound copy; *not collected*,
the tests could not be imported. Noticed are *failed* and *crash*: there the tests themselves ran into the bug, and the
run is red wherever it is made. A bug that ends otherwise *survives*, also by *timeout* and *not collected*: no test
said anything about it, and another bug should be planted there.

The answers are one JSON object, outcomes by these words; docs/reliability.md shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.attacks.planted import AREAS, BUGS, Bug

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 5  # times the processor time of the sound copy, which compiles everything, may the tests of a bug take
IDLE = 20  # times that limit on the wall clock: what waits without working ends too
SAID = 1_500  # characters at the end of what pytest says: there the failed test has its name
PASSED, FAILED, CRASH, TIMEOUT, NOT_COLLECTED = "passed", "failed", "crash", "timeout", "not collected"
NOTICED = (FAILED, CRASH)
_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
_ENDS = {
    0: PASSED,
    1: FAILED,
    2: NOT_COLLECTED,
    4: NOT_COLLECTED,
    -signal.SIGXCPU: TIMEOUT,
    **{-sign: CRASH for sign in _CRASHES},
}
"""Exit code of pytest -> outcome; 4: a conftest.py could not be imported."""


def applies(bug: Bug) -> bool:
    """Does the bug's place exist, once?"""
    path = ROOT / "src" / "escala" / bug.file
    return path.is_file() and path.read_text(encoding="utf-8").count(bug.old) == 1


def copied(folder: Path) -> Path:
    """A copy of the working tree in this folder, with what lies beside the tree for its tests."""
    copy = folder / "tree"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    if (ROOT.parent / "shared").exists():
        (folder / "shared").symlink_to(ROOT.parent / "shared")
    return copy


def outcome(area: str, copy: Path, limit_s: float | None = None) -> tuple[str, str]:
    """How the tests of an area end in a copy, within this processor time: one of the words above, and what pytest said
    at last."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *AREAS[area]]
    places = {
        "PYTHONPATH": str(copy / "src"),
        "ESCALA_CACHE_DIR": str(copy / "cache"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "found"),
    }
    places["PYTEST_ADDOPTS"] = ""  # what is asked of a run of these tests is not asked of those
    # examples of Hypothesis are the same each time, and none fails for being slow on a busy machine
    places["CI"] = "true"
    if limit_s is not None:
        command = ["prlimit", f"--cpu={int(limit_s) + 1}:", "--core=0", *command]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, **places},
            capture_output=True,
            timeout=limit_s and IDLE * limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TIMEOUT, ""
    if done.returncode not in _ENDS:
        raise SystemExit(
            f"error: pytest ended with {done.returncode}: {done.stdout.decode()[-500:]}{done.stderr.decode()[-500:]}"
        )
    return _ENDS[done.returncode], done.stdout.decode("utf-8", "replace")[-SAID:]


def spent_s() -> float:
    """Processor time of all that this process ran and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sound(area: str, copy: Path) -> float:
    """The processor time of the tests of an area without a bug; they have to pass."""
    before = spent_s()
    end, said = outcome(area, copy)
    if end != PASSED:
        raise SystemExit(f"error: the tests of {area} end without a bug with: {end}\n{said}")
    return spent_s() - before


def plant(bug: Bug, copy: Path, limit_s: float) -> str:
    """How the tests of its area end with the bug."""
    path = copy / "src" / "escala" / bug.file
    whole, times = path.read_text(encoding="utf-8"), path.stat()
    path.write_text(whole.replace(bug.old, bug.new), encoding="utf-8")
    try:
        return outcome(bug.area, copy, limit_s)[0]
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
        raise SystemExit(
            f"error: {len(lost)} bugs have lost their place, mend tests/attacks/planted.py: {'; '.join(lost)}"
        )
    known: dict[str, str] = (
        json.loads(given.out.read_text()).get("outcomes", {}) if given.out and given.out.exists() else {}
    )
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        areas = dict.fromkeys(bug.area for bug in chosen if bug.name not in known)
        limits = {area: PATIENCE * sound(area, copy) for area in areas}
        for k, bug in enumerate(chosen):
            if bug.name not in known:
                before = spent_s()
                known[bug.name] = plant(bug, copy, limits[bug.area])
                told = "noticed" if known[bug.name] in NOTICED else "SURVIVES"
                print(
                    f"{k + 1}/{len(chosen)} {told}: {known[bug.name]} ({spent_s() - before:.0f} s) {bug.name}",
                    file=sys.stderr,
                    flush=True,
                )
            if given.out:
                given.out.write_text(json.dumps(answers(chosen, known), indent=1) + "\n")
    print(json.dumps(answers(chosen, known), indent=1))


def answers(chosen: list[Bug], known: dict[str, str]) -> dict[str, object]:
    """known: outcomes by name. Answers of earlier versions have no outcomes: there *noticed* was anything but
    *passed*."""
    done = {bug.name: known[bug.name] for bug in chosen if bug.name in known}
    noticed = {name: end in NOTICED for name, end in done.items()}
    by_area = {area: sum(bug.area == area and bug.name in done for bug in chosen) for area in AREAS}
    survivors = [name for name, seen in noticed.items() if not seen]
    return {"planted": len(done), "by_area": by_area, "survivors": survivors, "noticed": noticed, "outcomes": done}


if __name__ == "__main__":
    main()
