"""What the studies of R3 run on: the author's real days, generated clusters of Grid'5000, and real logs; each as days
to train on, to choose by, and held out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import escala
from escala.errors import EscalaError
from escala.platform import Platform, read_platform
from escala.studies.lab.days import days_of, split
from escala.workload import Workload, read_workload
from escala.workload.tabular import read_pack

AUTHOR = "g5k"
GENERATED = ("orion", "graphite", "taurus", "econome")
ANALYSED = ("hercule", "nova", "grimoire", "grisou", "ecotype")
"""Further clusters of R3's table 2, whose logs are described, and nothing more."""
LOGS: dict[str, tuple[str, str]] = {
    "kth": ("swf/KTH-SP2-1996-2.1-cln.swf.gz", "100x1"),
    "hpc2n": ("windows/HPC2N-2002-2.2-cln", "120x2"),
    "sdsc": ("swf/SDSC-SP2-1998-5K-sample.swf.gz", "128x1"),
}
"""Real logs beside the traces -> (file, or folder of files of two weeks each; platform)."""
POWER = "grid5000"
"""The dissertation's power profile, a node each, under every input."""
GROUPS = (1, 2, 3, 4, 5)
# days with more jobs are left out of training and of the choice of models: a few saturated days would drown the others
BUSY = 400
WINDOWS = 30  # files of two weeks taken of a log that comes in many


@dataclass(frozen=True)
class Days:
    """One input. groups, train_groups: for each held-out and each training day the author's group, empty where there
    are none."""

    name: str
    platform: Platform
    train: tuple[Workload, ...]
    validation: tuple[Workload, ...]
    test: tuple[Workload, ...]
    groups: tuple[int, ...] = ()
    train_groups: tuple[int, ...] = ()

    def first(self, most: int | None) -> Days:
        """At most so many days of each part, taken evenly."""
        if most is None:
            return self
        every = {part: max(1, len(getattr(self, part)) // most) for part in ("train", "validation", "test")}
        cut = {part: getattr(self, part)[::step][:most] for part, step in every.items()}
        held, seen = self.groups[:: every["test"]][:most], self.train_groups[:: every["train"]][:most]
        return replace(self, **cut, groups=held, train_groups=seen)


def folder_of_traces(given: Path | None = None) -> Path | None:
    """The folder of real logs: the one given, $ESCALA_TRACES, or shared/traces beside the repository; None where there
    is none."""
    if given is not None:
        if not given.is_dir():
            raise EscalaError(f"{given}: no folder of traces; give one, or leave it out")
        return given
    roots = [Path(os.environ["ESCALA_TRACES"])] if os.environ.get("ESCALA_TRACES") else []
    roots += [parent / "shared" / "traces" for parent in Path(__file__).resolve().parents]
    return next((root for root in roots if (root / "author" / "r3-days").is_dir()), None)


def names(traces: Path | None) -> list[str]:
    """The inputs that are at hand."""
    real = [name for name, (file, _) in LOGS.items() if traces is not None and (traces / file).exists()]
    return ([AUTHOR] if traces is not None else []) + list(GENERATED) + real


@lru_cache(maxsize=4)
def days(name: str, traces: str | None, generated_days: int, most: int | None, seed: int = 0) -> Days:
    """The days of an input. generated_days: length of a generated log, drawn by `seed`; most: at most so many days of
    each part."""
    if name in GENERATED:
        log = escala.workload.generate.grid5000(cluster=name, days=generated_days, seed=seed)
        return _in_time(name, days_of(log), read_platform(name)).first(most)
    if traces is None:
        raise EscalaError(f"input {name!r} is a real log: set ESCALA_TRACES to the folder of traces")
    if name == AUTHOR:
        return author_days(Path(traces)).first(most)
    file, platform = LOGS[name]
    place = Path(traces) / file
    files = sorted(place.glob("*.swf*"), key=_number)[:WINDOWS] if place.is_dir() else [place]
    return _in_time(
        name, [day for one in files for day in days_of(read_workload(one))], read_platform(platform, POWER)
    ).first(most)


def whole_log(name: str, traces: str | None, days: int) -> Workload | None:
    """The log behind an input: generated, of so many days, or a real one that is one file; None of other inputs."""
    if name in (*GENERATED, *ANALYSED):
        return escala.workload.generate.grid5000(cluster=name, days=days, seed=0)
    if traces is None or name not in LOGS or (Path(traces) / LOGS[name][0]).is_dir():
        return None
    return read_workload(Path(traces) / LOGS[name][0])


def _number(path: Path) -> int:
    """The number that ends a file's name."""
    digits = "".join(c for c in path.name.split(".swf")[0].rsplit("_", 1)[-1] if c.isdigit())
    return int(digits or 0)


def _in_time(name: str, every: list[Workload], platform: Platform) -> Days:
    train, validation, test = ([every[k] for k in part] for part in split(len(every), "time"))
    return Days(name, platform, _quiet(train), _quiet(validation), tuple(test))


def _quiet(part: list[Workload]) -> tuple[Workload, ...]:
    return tuple(day for day in part if len(day) <= BUSY)


@lru_cache(maxsize=1)
def author_days(traces: Path) -> Days:
    """The author's days of a cluster of 14 nodes x 12 cores, with his own training and test days; the last fifth of the
    training days, by the number in their names, is for validation."""
    folder = traces / "author" / "r3-days"
    numbered = []
    for group in GROUPS:
        for (_, file), day in read_pack(folder / f"lyon_{group}-train.csv.gz", unit="min").items():
            numbered.append((int(file.rsplit("_", 1)[-1]), group, day))
    in_order = sorted(numbered, key=lambda one: one[:2])
    ordered = [day for _, _, day in in_order]
    test, groups = [], []
    for group in GROUPS:
        pack = folder / f"lyon_{group}-test.csv.gz"
        if pack.is_file():
            held = list(read_pack(pack, unit="min").values())
            test += held
            groups += [group] * len(held)
    cut = round(0.8 * len(ordered))
    seen = tuple(group for _, group, day in in_order[:cut] if len(day) <= BUSY)
    return Days(
        AUTHOR, read_platform("taurus"), _quiet(ordered[:cut]), _quiet(ordered[cut:]), tuple(test), tuple(groups), seen
    )
