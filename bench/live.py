"""One decision asked from outside, processor time: EASY, sjf-backfilling and conservative, on machines of which 80 %
are busy.

`python -m bench.live` prints median and 99th percentile of a decision for all sizes, and what a snapshot costs.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import escala
from bench.measure import Case
from escala.live import Desk, Snapshot

POWER = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=30,switch_on_s=60"
HOUR_S = 3600.0


def columns(nodes: int, queue: int, off: float = 0.08) -> tuple[Any, ...]:
    """Now, and the columns of a snapshot: 80 % of the nodes busy, this share off, so many jobs in the queue."""
    draw = np.random.default_rng([nodes, queue])
    sizes, left = [], nodes * 8 // 10
    while left > 0:
        sizes.append(min(left, int(draw.integers(1, max(nodes // 20, 1) + 1))))
        left -= sizes[-1]
    running, n = len(sizes), len(sizes) + queue
    now = 48 * HOUR_S
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    jobs = {
        "job_id": [str(k) for k in range(n)],
        "submit_s": np.concatenate([np.sort(draw.uniform(0, 20, running)), np.sort(draw.uniform(24, 48, queue))])
        * HOUR_S,
        "walltime_s": np.concatenate([draw.uniform(30, 60, running), draw.uniform(0.1, 24, queue)]) * HOUR_S,
        "cores": np.concatenate([np.array(sizes), draw.integers(1, max(nodes // 4, 2), queue)]),
        "state": ["running"] * running + ["queued"] * queue,
        "start_s": np.concatenate([draw.uniform(20, 47, running) * HOUR_S, np.full(queue, np.nan)]),
    }
    on = nodes - int(nodes * off)
    power = {
        "power": ["on"] * on + ["off"] * (nodes - on),
        "idle_since_s": np.where(np.arange(nodes) < on, now - 60.0, np.nan),
    }
    placed = {
        "job": np.arange(running),
        "first": first,
        "last": first + np.array(sizes) - 1,
        "cores": np.ones(running, np.int64),
    }
    return now, jobs, power, placed


def decisions(
    nodes: int,
    queue: int,
    scheduler: str,
    shutdown: str,
    times: int,
    off: float = 0.08,
    lines: bool = False,
    **options: Any,
) -> tuple[list[float], list[float]]:
    """Processor time of making a snapshot and of a decision, ms, so often. lines: the snapshot is read from a line of
    JSON."""
    platform = escala.read_platform(f"{nodes}x1", POWER)
    desk = Desk(platform, scheduler, shutdown, **options)
    now, *rest = columns(nodes, queue, off)
    made, taken = [], []
    for k in range(times + 1):
        line = Snapshot.of(now + k, *rest).to_json() if lines else ""
        begin = time.process_time_ns()
        snapshot = Snapshot.from_json(line) if lines else Snapshot.of(now + k, *rest)
        middle = time.process_time_ns()
        desk.decide(snapshot)
        end = time.process_time_ns()
        made.append((middle - begin) / 1e6)
        taken.append((end - middle) / 1e6)
    return made[1:], taken[1:]


def median_ms(nodes: int, queue: int, scheduler: str, shutdown: str, **options: Any) -> tuple[float, str]:
    """Of making a snapshot from columns, and its decision."""
    both = decisions(nodes, queue, scheduler, shutdown, 50, **options)
    return statistics.median(map(sum, zip(*both, strict=True))), "ms"


CASES = [
    Case(
        "A decision asked from outside, its snapshot included, easy + hold, 100 nodes, 100 waiting",
        "0.15 ms",
        lambda: median_ms(100, 100, "easy", "hold:0.25"),
    ),
    Case(
        "A decision asked from outside, its snapshot included, easy + hold, 1 000 nodes, 1 000 waiting",
        "1 ms",
        lambda: median_ms(1000, 1000, "easy", "hold:0.25"),
    ),
    Case(
        "A decision asked from outside, its snapshot included, easy + hold, 10 000 nodes, 10 000 waiting",
        "5 ms",
        lambda: median_ms(10_000, 10_000, "easy", "hold:0.25"),
    ),
    Case(
        "A decision asked from outside, its snapshot included, the score `escala` + hold, 1 000 nodes, 1 000 waiting",
        "1 ms",
        lambda: median_ms(1000, 1000, "easy:queue=escala:guard=24h", "hold:0.25"),
    ),
    Case(
        "A decision asked from outside, its snapshot included, conservative, 1 000 nodes, 1 000 waiting",
        "10 ms",
        lambda: median_ms(1000, 1000, "conservative", "never", rebuild=True),
    ),
]


def main() -> None:
    print("| nodes | waiting | policies | decision median | p99 | snapshot median |\n|---|---|---|---|---|---|")
    for nodes, queue in ((100, 100), (1000, 1000), (10_000, 10_000)):
        for scheduler, shutdown in (
            ("easy", "hold:0.25"),
            ("saf", "timeout:300"),
            ("easy:queue=wfp3:guard=24h", "timeout:300"),
        ):
            made, taken = decisions(nodes, queue, scheduler, shutdown, 200)
            row = (statistics.median(taken), np.percentile(taken, 99), statistics.median(made))
            print(
                f"| {nodes:,} | {queue:,} | {scheduler} + {shutdown} | "
                f"{' | '.join(f'{value:.2f} ms' for value in row)} |",
                flush=True,
            )
    for size in (100, 1000, 10_000):
        made, taken = decisions(size, size, "easy", "hold:0.25", 100, lines=True)
        row = (statistics.median(taken), np.percentile(taken, 99), statistics.median(made))
        print(f"| {size:,} | {size:,} | the first, from JSON | {' | '.join(f'{value:.2f} ms' for value in row)} |")
    for size, off in ((100, 0.08), (1000, 0.08), (1000, 0.0)):
        made, taken = decisions(size, size, "conservative", "never", 20, off, rebuild=True)
        row = (statistics.median(taken), np.percentile(taken, 99), statistics.median(made))
        print(
            f"| {size:,} | {size:,} | conservative, rebuild, {off:.0%} off | "
            f"{' | '.join(f'{value:.2f} ms' for value in row)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
