"""Bounds and search on slotted lists: `python -m bench.bench_bound [--loads 1.0 1.9] [--lists 60] [--exact] [--limit
60] [--large]`.

Lists after R1 (reading `clip10`): 50 steps, at most one arrival a step, 80 % of lengths U{1..3} else U{10..15}, demand
by a fair coin U{1..5} or 10 of 10 units; then run to completion. Every time is processor time on one core, solvers
included; of the bounds the least of three runs. Without --exact, gaps are to the best schedule found. With --rows FILE
what was measured is kept, and a run that ended early goes on; with --write the table in docs/performance.md is replaced
by the one measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import escala
from bench.measure import machine
from escala.optimum import Instance, bound
from escala.optimum.ladder import effort
from escala.optimum.lagrange import Dual
from escala.optimum.search import search
from escala.optimum.searcher import Searcher
from escala.optimum.splitting import Parts
from escala.workload import Workload

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- bounds: begin -->", "<!-- bounds: end -->"
PROVED_S, BOUND_S, SEARCH_S = 60.0, 0.020, 1.0  # marks a list
NEAR, GAP, MOST = 0.005, 0.2, 0.95

Row = dict[str, float]
Columns = dict[str, NDArray[np.float64]]


def episode(rng: np.random.Generator, load: float, steps: int = 50) -> Instance:
    """One list with at least one job; load = arrival rate x mean work (4.1 x 6.5) / 10."""
    arrivals = np.flatnonzero(rng.random(steps) < load * 10 / (4.1 * 6.5))
    n = arrivals.size
    if n == 0:
        return episode(rng, load, steps)
    length = np.where(rng.random(n) < 0.8, rng.integers(1, 4, n), rng.integers(10, 16, n))
    return Instance(arrivals, length, np.where(rng.random(n) < 0.5, rng.integers(1, 6, n), 10), 10)


def processor_s() -> float:
    """Processor seconds of this process and of its ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def greedy(instance: Instance) -> float:
    """Mean slowdown of greedy SJF."""
    jobs = {"submit_s": instance.release, "runtime_s": instance.length, "cores": instance.demand[:, 0]}
    log = Workload.from_jobs(
        {name: values.astype(float) if name != "cores" else values for name, values in jobs.items()}
    )
    return float(escala.simulate(log, "10x1:none", "sjf-fit", record=False).summary()["mean_slowdown"])


def bounds(instance: Instance) -> Row:
    """The Lagrangian bound alone, then in parts, as before the search."""
    begin = processor_s()
    rough = Searcher(instance, 0)
    rough.rules(4)
    target = (rough.value - 1) * instance.jobs
    dual = Dual(instance, int((rough.starts + instance.length).max()))
    rounds, splits = effort(dual, False)
    dual.improve(target, rounds)
    alone = 1 + float(dual.proof().cost) / instance.jobs
    between = processor_s()
    parts = Parts(dual, target)
    parts.split(splits)
    lower = 1 + float(parts.cost()) / instance.jobs
    return {
        "alone": alone,
        "alone_s": between - begin,
        "lower": lower,
        "lower_s": processor_s() - begin,
        "parts": len(parts),
    }


def after_search(instance: Instance, found: float) -> Row:
    """The bound in many parts, aimed at a good schedule."""
    begin = processor_s()
    target = (found - 1) * instance.jobs
    dual = Dual(instance, instance.horizon)
    rounds, splits = effort(dual, True)
    dual.improve(target, rounds)
    parts = Parts(dual, target)
    parts.split(splits)
    return {"many": 1 + float(parts.cost()) / instance.jobs, "many_s": processor_s() - begin}


def one(instance: Instance, exact: bool, limit_s: float) -> Row:
    """Figures of one list."""
    row = {"jobs": float(instance.jobs), "greedy": greedy(instance)}
    row |= min((bounds(instance) for _ in range(3)), key=lambda made: made["lower_s"])
    begin = processor_s()
    found = search(instance)
    row |= {"found": found.value, "found_s": processor_s() - begin, "best": found.value}
    row |= after_search(instance, found.value)
    if exact:
        begin = processor_s()
        result = bound(instance, exact=True, limit_s=limit_s)
        assert result.found is not None and result.lower is not None
        row |= {"exact_s": processor_s() - begin, "best": result.found, "proved": float(result.status == "optimal")}
        row["interval"] = result.lower
    return row


def measured(load: float, lists: int, exact: bool, limit_s: float, seed: int, rows: Path | None) -> Columns:
    """The figures of so many lists of a load, [lists] each."""
    kept: dict[str, Row] = json.loads(rows.read_text(encoding="utf-8")) if rows is not None and rows.exists() else {}
    rng = np.random.default_rng([seed, int(100 * load)])
    told = []
    for number in range(lists):
        instance = episode(rng, load)
        key = f"load {load}, seed {seed}, list {number}" + (f", exact, {limit_s:g} s" if exact else "")
        if key not in kept:
            kept[key] = one(instance, exact, limit_s)
            if rows is not None:
                rows.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            print(key, {name: round(value, 4) for name, value in kept[key].items()}, flush=True)
        told.append(kept[key])
    return {name: np.array([row[name] for row in told]) for name in told[0]}


def times(column: NDArray[np.float64], most_s: float) -> str:
    """Mean, 95 % and longest of times, and how many keep the mark."""
    unit, shown = (1e3, "ms") if most_s < 0.5 else (1.0, "s")
    mean, most, longest = (f"{unit * value:.3g}" for value in (column.mean(), np.quantile(column, 0.95), column.max()))
    return f"{mean}, {most}, {longest} {shown}; {int((column <= most_s).sum())} of {column.size}"


def against_greedy(c: Columns) -> str:
    """Change of the mean of the best schedules against greedy SJF, with its 95 % interval over lists."""
    rows = np.random.default_rng(0).integers(0, c["best"].size, (2000, c["best"].size))
    low, high = np.quantile(c["best"][rows].mean(axis=1) / c["greedy"][rows].mean(axis=1) - 1, [0.025, 0.975])
    return (
        f"{c['best'].mean():.3f}, {100 * (c['best'].mean() / c['greedy'].mean() - 1):.1f} % [{100 * low:.1f}, "
        f"{100 * high:.1f}]"
    )


def below(name: str) -> Callable[[Columns], str]:
    """How far a bound's mean is below that of the best schedules, and in how many lists it is near enough."""

    def text(c: Columns) -> str:
        near = int((1 - c[name] / c["best"] <= GAP).sum())
        return f"{100 * (1 - c[name].mean() / c['best'].mean()):.1f} %; {near} of {c[name].size}"

    return text


def near_best(c: Columns) -> str:
    """In how many lists the search is near the best, and the worst."""
    over = c["found"] / c["best"] - 1
    return (
        f"{int((over <= NEAR).sum())} of {over.size} ({100 * float(np.mean(over <= NEAR)):.0f} %); "
        f"{100 * max(0.0, over.max()):.1f} %"
    )


LINES: list[tuple[str, str, Callable[[Columns], str]]] = [
    (
        "proved optimal within 60 s",
        "all",
        lambda c: f"{int(((c['proved'] > 0) & (c['exact_s'] <= PROVED_S)).sum())} of {c['proved'].size}",
    ),
    ("time of the proof: mean, 95 %, longest; lists within 60 s", "60 s", lambda c: times(c["exact_s"], PROVED_S)),
    ("mean of the best schedules, against greedy SJF", "", against_greedy),
    ("Lagrangian bound alone: mean below the best; lists within 20 %", "", below("alone")),
    ("its time: mean, 95 %, longest; lists within 20 ms", "20 ms", lambda c: times(c["alone_s"], BOUND_S)),
    (
        "the same in parts, before the search: parts",
        "",
        lambda c: f"{int(c['parts'].min())} to {int(c['parts'].max())}",
    ),
    ("mean below the best; lists within 20 %", "20 %", below("lower")),
    ("its time in all: mean, 95 %, longest; lists within 20 ms", "20 ms", lambda c: times(c["lower_s"], BOUND_S)),
    (
        "the same in up to some hundred parts, aimed at the schedule found: mean below the best; lists within 20 %",
        "",
        below("many"),
    ),
    ("its time: mean, 95 %, longest; lists within 1 s", "", lambda c: times(c["many_s"], 1.0)),
    ("search within 0.5 % of the best; the worst above it", "95 %", near_best),
    ("its time: mean, 95 %, longest; lists within 1 s", "1 s", lambda c: times(c["found_s"], SEARCH_S)),
]


def table(columns: dict[float, Columns], limit_s: float) -> str:
    """The table of docs/performance.md."""
    heads = [f"load {load}, {c['jobs'].mean():.0f} jobs ({c['jobs'].max():.0f} at most)" for load, c in columns.items()]
    count = next(iter(columns.values()))["jobs"].size
    exact = all("proved" in c for c in columns.values())
    lines = [
        f"Machine: {machine()}. {count} lists a load, one core, processor time"
        + (f"; solvers limited to {limit_s:g} s by the clock." if exact else "."),
        "",
        f"| what, a list | must reach | {' | '.join(heads)} |",
        f"|---|---|{'---|' * len(heads)}",
    ]
    for what, must, text in LINES if exact else LINES[2:]:
        lines.append(f"| {what} | {must} | {' | '.join(text(c) for c in columns.values())} |")
    return "\n".join(lines)


def large(load: float, seed: int, limit_s: float) -> None:
    """One list of about 1 000 jobs."""
    instance = episode(np.random.default_rng([seed, int(100 * load)]), load, round(1000 * 4.1 * 6.5 / (10 * load)))
    result = bound(instance, limit_s=limit_s)
    assert result.found is not None and result.lower is not None
    print(
        f"load {load}: {instance.jobs} jobs, [{result.lower:.3f}, {result.found:.3f}], gap {result.gap:.1%}, "
        f"{result.seconds:.1f} s"
    )
    for step in result.steps:
        print(
            f"  {step.name}: {step.seconds:.2f} s, {step.iterations} iterations, bound {step.lower:.3f}, found "
            f"{step.found}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bench_bound", description=__doc__)
    parser.add_argument("--loads", type=float, nargs="+", default=[1.0, 1.9])
    parser.add_argument("--lists", type=int, default=60)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds by the clock for each proof; more on a busy machine"
    )
    parser.add_argument("--seed", type=int, default=9001)
    parser.add_argument("--rows", type=Path, help="JSON file that keeps what was measured")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/performance.md")
    parser.add_argument("--large", action="store_true", help="about 1 000 jobs a load instead of lists")
    given = parser.parse_args()
    if given.write and not given.exact:
        sys.exit("error: --write replaces the whole table; give --exact too")
    if given.large:
        for load in given.loads:
            large(load, given.seed, given.limit)
        return
    one(episode(np.random.default_rng(0), 1.0), False, 1.0)  # compiles
    columns = {
        load: measured(load, given.lists, given.exact, given.limit, given.seed, given.rows) for load in given.loads
    }
    text = table(columns, given.limit)
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n{text}\n{END}{page.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
