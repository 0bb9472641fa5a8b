"""Running: one workload on one platform under one pair of policies, and many pairs side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from escala import metrics
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import Options, Plan, with_options
from escala.platform import Platform, read_platform
from escala.policies.compose import external_shutdown, plan_for, scheduler, shutdown
from escala.policies.rollout import rollout_of
from escala.policy import ClairvoyantView, Commands, View, as_policy, name_of
from escala.result import Result
from escala.simulation import Simulation
from escala.workload import Workload, read_workload

Progress = Callable[[float], None]  # share done, 0..1


@dataclass(frozen=True)
class Pair:
    """A scheduler and a shutdown policy, ready to run: the kernel's plan, and what decides outside the kernel."""

    plan: Plan
    scheduler: Any
    shutdown: Any
    name: str


def pair(workload: Workload, scheduler_: Any, shutdown_: Any, options: Options) -> Pair:
    """Resolve names and objects; EscalaError for what is neither."""
    outside = rollout_of(scheduler_, options.seed) if isinstance(scheduler_, str) else as_policy(scheduler_)
    chosen = scheduler(scheduler_) if isinstance(scheduler_, str) and outside is None else None
    if isinstance(shutdown_, str):
        fields, power = shutdown(shutdown_, options)
        if power is not None:
            fields = external_shutdown(power)
    else:
        power = as_policy(shutdown_)
        fields = external_shutdown(power)
    name = f"{name_of(scheduler_)} + {name_of(shutdown_)}"
    return Pair(plan_for(chosen, fields, workload, options), outside, power, name)


def _view(policy: Any, simulation: Simulation, i: int) -> View:
    return ClairvoyantView(simulation, i) if getattr(policy, "clairvoyant", False) else View(simulation, i)


def run(simulation: Simulation, i: int, chosen: Pair, progress: Progress | None = None) -> None:
    """Run simulation i to its end: the only rollout loop."""
    act = Commands(simulation, i)
    views = {id(p): _view(p, simulation, i) for p in (chosen.scheduler, chosen.shutdown) if p is not None}
    horizon = _horizon(simulation, i) if progress is not None else None
    step = 0
    while True:
        until = None if horizon is None else horizon * (step + 1) / 100.0
        stop = simulation.advance(i, None if step >= 100 else until)
        if stop == codes.DONE:
            break
        if stop == codes.NONE:
            step += 1
            if progress is not None:
                progress(min(step / 100.0, 0.99))
        elif stop == codes.DECISION:
            chosen.scheduler.decide(views[id(chosen.scheduler)], act)
        elif stop in (codes.BEFORE, codes.AFTER):
            chosen.shutdown.decide(views[id(chosen.shutdown)], act)
        else:
            waiting = int(simulation.world.s[i, 0]["n_queued"])
            raise EscalaError(
                f"{chosen.name}: {waiting} jobs wait and nothing will ever happen again: "
                "the policy starts nothing and asks for no decision (call_at)"
            )
    if progress is not None:
        progress(1.0)


def _horizon(simulation: Simulation, i: int) -> float:
    """Time of the last submission, s."""
    submits = simulation.casts[i].submit_us
    return float(submits[-1]) / 1e6 if len(submits) else 0.0


def read(workload: Any, platform: Any) -> tuple[Workload, Platform]:
    """A workload and a platform, read where a path or a spec was given."""
    loaded = workload if isinstance(workload, Workload) else read_workload(workload)
    return loaded, platform if isinstance(platform, Platform) else read_platform(platform)


def simulate(
    workload: Any, platform: Any, scheduler: Any = "easy", shutdown: Any = "never", *, progress: Progress | None = None, **options: Any
) -> Result:
    """Replay a workload on a platform.

    workload: a `Workload`, or a path. platform: a `Platform`, or a spec ("orion", "100x1", a file). scheduler, shutdown: names (see
    docs/design.md), agents, functions of (view, act), or objects with `decide`. options: fields of `escala.simulation.Options`. Raises
    EscalaError: unknown names, jobs that can never run, policies without progress.
    """
    loaded, machine = read(workload, platform)
    chosen_options = with_options(Options(), **options)
    if machine.speed is not None and "flops" in loaded.jobs.columns:
        loaded = loaded.at_speed(machine.speed)
    chosen = pair(loaded, scheduler, shutdown, chosen_options)
    began = time.perf_counter()
    simulation = Simulation(loaded, machine, chosen.plan, chosen_options)
    run(simulation, 0, chosen, progress)
    about = {"scheduler": name_of(scheduler), "shutdown": name_of(shutdown), "elapsed_s": time.perf_counter() - began}
    return simulation.result(0, about)


@dataclass(frozen=True)
class Comparison:
    """Several policies on the same jobs. results: "scheduler + shutdown" -> Result, the first is the reference."""

    results: dict[str, Result]

    def table(self, reference: str | None = None) -> pl.DataFrame:
        """Metrics per policy, with relative changes against the reference; see `escala.metrics.table`."""
        summaries = {name: result.summary() for name, result in self.results.items()}
        return metrics.table(summaries, reference=reference or next(iter(summaries)))


def compare(
    workload: Any,
    platform: Any,
    schedulers: Iterable[Any] = ("fcfs", "easy", "saf"),
    shutdowns: Iterable[Any] = ("never",),
    *,
    progress: Callable[[str, float], None] | None = None,
    **options: Any,
) -> Comparison:
    """Replay a workload under every pair of schedulers and shutdown policies; see `simulate`. progress: called with the pair's name and
    the share of all work done."""
    loaded, machine = read(workload, platform)
    pairs = [(s, d) for s in schedulers for d in shutdowns]
    if not pairs:
        raise EscalaError("compare needs at least one scheduler and one shutdown policy")
    results: dict[str, Result] = {}
    for k, (one_scheduler, one_shutdown) in enumerate(pairs):
        name = f"{name_of(one_scheduler)} + {name_of(one_shutdown)}"
        if progress is not None:
            progress(name, k / len(pairs))
        results[name] = simulate(loaded, machine, one_scheduler, one_shutdown, **options)
    if progress is not None:
        progress("", 1.0)
    return Comparison(results)
