"""The flat dictionary of a run's metrics, names with units: what `Result.summary()` gives and summary.json holds."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from escala.metrics import energy, machine
from escala.metrics import jobs as job_metrics

_DISTRIBUTIONS = (
    "wait_s",
    "turnaround_s",
    "runtime_s",
    "slowdown",
    "bounded_slowdown",
    "pp_slowdown",
    "stretch",
    "delay_s",
)
_STATISTICS = ("mean", "sd", "median", "p95", "max")


def summarise(
    jobs: pl.DataFrame,
    power: pl.DataFrame,
    *,
    nodes: int,
    cores: int,
    start_s: float,
    end_s: float,
    bound_s: float = job_metrics.BOUND_S,
    theta: float = job_metrics.THETA,
    only: Collection[str] | None = None,
) -> dict[str, float | int]:
    """All metrics of one run.

    jobs, power: tables of a Result. nodes, cores: the platform's totals. [start_s, end_s]: the window in which energy
    was measured, s (first submission to last finish, or the limits of a cut run). `bound_s`: floor of the bounded
    slowdown. `theta`: threshold of the delay.

    Means are over the jobs that ran to their end; the counts (n_...) say what they leave out. What has no value (a mean
    over no job) is NaN. Without watts (`energy.counted`) there is no energy among them. only: metrics that are wanted,
    for one who makes thousands of runs: of those that take long, others are left out.
    """
    out: dict[str, float | int] = dict(job_metrics.counts(jobs))
    wanted = [
        name
        for name in _DISTRIBUTIONS
        if only is None or any(f"{statistic}_{name}" in only for statistic in _STATISTICS)
    ]
    measured = job_metrics.measures(jobs, bound_s=bound_s, theta=theta, only=wanted)
    for name in wanted:
        values = job_metrics.distribution(measured.get_column(name))
        out |= {f"{statistic}_{name}": values[statistic] for statistic in _STATISTICS}
    out["makespan_s"] = job_metrics.makespan(jobs)
    out["window_s"] = end_s - start_s
    out["utilisation"] = machine.utilisation(jobs, cores, start_s, end_s)
    if only is None or "loss_of_capacity" in only:
        out["loss_of_capacity"] = machine.loss_of_capacity(jobs, cores, start_s, end_s)
    out |= energy_of(power, end_s - start_s)
    return out | {"nodes": nodes, "cores": cores}


def energy_of(power: pl.DataFrame, window_s: float) -> dict[str, float | int]:
    """The metrics of nodes and energy, from `totals` of a Result, over a window of so many seconds."""
    nodes = {f"{state}_node_s": value for state, value in energy.node_seconds(power).items()}
    if not energy.counted(power):
        return {**nodes, "transitions": energy.transitions(power)}
    by_state = energy.joules(power)
    of_gpus = {"gpu_j": float(power["gpu_joules"].sum())} if "gpu_joules" in power.columns else {}
    total, waste = sum(by_state.values()), sum(by_state[state] for state in energy.WASTE)
    return {
        "energy_j": total,
        "energy_kwh": energy.kwh(total),
        "waste_j": waste,
        "waste_w_min": waste / 60.0,
        **{f"{state}_j": value for state, value in by_state.items()},
        **of_gpus,
        **nodes,
        "mean_power_w": total / window_s if window_s > 0.0 else float("nan"),
        "transitions": energy.transitions(power),
    }
