"""`python -m bench.campaigns`: a campaign on lublin_256, whole with `local:2`, and parts of it on engines in turn.

10 002 differing runs: three schedulers with `plan_margin_s` from 0 to 3 333, for seeds change nothing in them. Each is
`escala campaign` as a process of its own, in a new folder, its start and its page included. Ratios are of two that ran
one after the other. Ray needs an environment of its own (`make test-extras` makes one). Ends with status 1 where two
engines give different tables.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from bench.kernel import TRACES
from bench.measure import machine

LOG = TRACES / "swf-synthetic" / "lublin_256.swf.gz"
SCHEDULERS = ("easy", "saf", "easy:queue=xfactor")
WHOLE_S, SPEEDUP, RAY = 180, 1.8, 1.3
RAY_RUNS = 10_002  # Ray's start and end, some 10 s, are a third of a campaign of 2 001


@dataclass(frozen=True)
class Made:
    """A campaign: s of the clock; processor s of its runs alone, and of all processes that it waited for; its table, as
    the file is."""

    clock_s: float
    runs_s: float
    processor_s: float
    table: bytes


def made(folder: Path, runs: int, on: str) -> Made:
    """So many runs on an engine."""
    margins = list(range(runs // len(SCHEDULERS)))
    told = (
        f"logs = [{json.dumps(str(LOG))}]\nplatforms = ['256x1']\nschedulers = "
        f"{list(SCHEDULERS)}\n[options]\nplan_margin_s = {margins}\n"
    )
    (folder / "campaign.toml").write_text(told)
    out = folder / f"{runs}-{on.replace(':', '-')}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "escala", "campaign", str(folder / "campaign.toml"), "--on", on, "--out", str(out)]
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    taken = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with status {os.waitstatus_to_exitcode(status)}")
    alone = float(pl.read_parquet(out / "seconds.parquet")["processor_s"].sum())
    print(
        f"{runs:,} runs, {on}: {taken:.1f} s, {alone:.1f} s of processor time of the runs alone",
        file=sys.stderr,
        flush=True,
    )
    return Made(taken, alone, used.ru_utime + used.ru_stime, (out / "runs.parquet").read_bytes())


def in_turn(folder: Path, runs: int, engines: tuple[str, str], rounds: int) -> list[tuple[Made, Made]]:
    """The same runs on two engines, one after the other, in each round."""
    found = []
    for _ in range(rounds):
        one, other = (made(folder, runs, on) for on in engines)
        if one.table != other.table:
            raise SystemExit(f"the tables of {engines[0]} and {engines[1]} differ ({runs:,} runs)")
        found.append((one, other))
    return found


def row(what: str, must: str, measured: str) -> None:
    """A line of the table."""
    print(f"| {what} | {must} | {measured} |", flush=True)


def spans(found: list[float]) -> str:
    """Figures of rounds."""
    return ", ".join(f"{one:.2f}" for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.campaigns", description=__doc__)
    parser.add_argument("--runs", type=int, default=10_002, help="of the whole campaign; 0: none")
    parser.add_argument("--part", type=int, default=1_800, help="runs with one process and with two in turn")
    parser.add_argument("--ray", type=int, default=RAY_RUNS, help="runs with local:2 and with ray in turn; 0: none")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print(f"Machine: {machine()}.\n\n| what | must reach | measured |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made(folder, len(SCHEDULERS), "local:1")  # compiles
        if given.runs:
            whole = made(folder, given.runs, "local:2")
            measured = f"{whole.clock_s:.0f} s of clock, {whole.processor_s:.0f} s of processor time"
            row(f"{given.runs:,} runs, `local:2`", f"≤ {WHOLE_S} s", measured)
        pairs = in_turn(folder, given.part, ("local:1", "local:2"), given.rounds)
        gains = [one.clock_s / two.clock_s for one, two in pairs]
        row(
            f"{given.part:,} runs, `local:2` beside `local:1`: times as fast",
            f"≥ {SPEEDUP}",
            f"{statistics.median(gains):.2f} ({spans(gains)})",
        )
        if given.ray and importlib.util.find_spec("ray") is not None:
            pairs = in_turn(folder, given.ray, ("local:2", "ray"), given.rounds)
            longer = [ray.clock_s / local.clock_s for local, ray in pairs]
            measured = f"{statistics.median(longer):.2f} ({spans(longer)})"
            row(
                f"{given.ray:,} runs, `ray` beside `local:2`: times as long, Ray's start included", f"≤ {RAY}", measured
            )
    print("\nThe tables of all engines are equal to the byte.")


if __name__ == "__main__":
    main()
