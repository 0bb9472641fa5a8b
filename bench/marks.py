"""Marks that no table of the page has: `python -m bench.marks [NAME ...]` (orders, growing, hold, conservative, whole,
compare; without a name all of them, some three minutes).

Processor time but for `compare`, which is by the clock. Ratios are of one run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import escala
from bench.bench_policies import Point, us_a_job
from bench.kernel import TRACES, kernel_seconds, synthetic
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import Simulation

STRICT = ("sjf", "f1", "saf-strict")
POOL = "1x10000:none"
Line = tuple[str, str, str]
"""What was measured, the figure, the mark."""


def _lublin() -> escala.Workload:
    return escala.read_workload(next(TRACES.rglob("lublin_256*")))


def _kth() -> escala.Workload:
    return escala.read_workload(TRACES / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")


def orders() -> Iterator[Line]:
    """Strict orders on a pool of 256 cores."""
    log = _lublin()
    for name in STRICT:
        rate = len(log) / kernel_seconds(log, "1x256:none", scheduler=name)
        yield f"{name}, lublin_256", f"{rate / 1e6:.2f} M jobs/s", ">= 0.825 M"


def growing() -> Iterator[Line]:
    """What a job takes in a log ten times as long."""
    logs = {n: synthetic(n, 10_000) for n in (10_000, 100_000)}
    for name in STRICT:
        few, many = (kernel_seconds(log, POOL, scheduler=name, repeats=3) / n for n, log in logs.items())
        yield f"{name}, a job of 100 000 beside one of 10 000", f"{many / few:.2f} times", "<= 1.3"


def hold() -> Iterator[Line]:
    """hold beside timeout, on many nodes."""
    for spec in ("6250x16:grid5000", "10000x1:grid5000"):
        log = synthetic(10_000, escala.read_platform(spec).total_cores)
        plain, held = (kernel_seconds(log, spec, shutdown=name, repeats=3) for name in ("timeout:0", "hold:0.25"))
        yield f"hold:0.25 beside timeout:0, {spec}", f"{held / plain:.1f} times", "<= 10"


def conservative() -> Iterator[Line]:
    """10 000 jobs at load 1.2, with all reserved and with the first 500, on one pool and on nodes."""
    for nodes, cores in ((1, 10_000), (625, 16)):
        for depth, mark in ((None, "< 100"), (500, "< 20")):
            point = Point("load", 10_000, nodes, cores, load=1.2)
            us = min(us_a_job("conservative", "never", point, depth) for _ in range(3 if nodes == 1 else 1))
            yield f"conservative, {nodes}x{cores}, load 1.2, depth {depth}", f"{us:.1f} us a job", mark


def whole() -> Iterator[Line]:
    """A whole `simulate` beside its kernel."""
    logs = {
        "30 000 drawn": (synthetic(30_000, 10_000), 10_000),
        "KTH-SP2": (_kth(), 100),
        "lublin_256": (_lublin(), 256),
    }
    for name, (log, cores) in logs.items():
        for scheduler in ("easy", "easy-fast"):
            options, platform = Options(record=False), escala.read_platform(f"1x{cores}")
            chosen = policies.pair(log, scheduler, "never", options)
            inside, outside = list[float](), list[float]()
            escala.simulate(log, platform, scheduler)
            for _ in range(15):
                simulation = Simulation(log, platform, chosen.plan, options)
                inside.append(_seconds(policies.run, simulation, 0, chosen))
                outside.append(_seconds(escala.simulate, log, platform, scheduler))
            ratio = statistics.median(outside) / statistics.median(inside)
            yield f"simulate beside its kernel, {name}, {scheduler}", f"{ratio:.2f} times", "<= 1.6"


def compare() -> Iterator[Line]:
    """Twelve pairs on two cores."""
    log, platform = _kth(), escala.read_platform("100x1:taurus")
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(6):
        for jobs, found in times.items():
            schedulers = ("fcfs", "easy", "sjf", "easy-sjf", "saf", "easy-saf")
            began = time.perf_counter()
            escala.compare(log, platform, schedulers, ("never", "timeout:300"), jobs=jobs)
            found.append(time.perf_counter() - began)
    alone, both = (statistics.median(found[1:]) for found in times.values())
    yield "compare of 12 pairs on KTH-SP2, two cores beside one", f"{alone / both:.2f} times", ">= 1.7"


def _seconds(does: Callable[..., object], *arguments: object) -> float:
    began = time.process_time()
    does(*arguments)
    return time.process_time() - began


MARKS = {one.__name__: one for one in (orders, growing, hold, conservative, whole, compare)}


def main() -> None:
    names = sys.argv[1:] or list(MARKS)
    strange = [name for name in names if name not in MARKS]
    if strange:
        sys.exit(f"error: no mark {strange[0]!r}; known: {', '.join(MARKS)}")
    for name in names:
        for what, figure, mark in MARKS[name]():
            print(f"{what}: {figure} (mark: {mark})", flush=True)


if __name__ == "__main__":
    main()
