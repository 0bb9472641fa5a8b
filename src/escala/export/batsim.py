"""A Result as Batsim 4's output files, in its columns: for tools that read those.

What differs from Batsim's own files, all for the sake of true values:

- Everything is measured where Escala measures: from the first submission to the last finish, or between the limits of a
  cut run. Batsim's states, power states and cumulative energy begin at 0 and go on after the last finish; its
  `consumed_joules` are of the same window.
- `time_computing`, `time_idle`, ... are the whole node seconds of the window; Batsim leaves out the last, still open
  interval of each host.
- All times have 6 decimals, where Batsim prints three of the files with 6 significant digits.
- machine_states.csv has one row an instant, after all its changes; switches of one instant to one state share a row of
  pstate_changes.csv and of consumed_energy.csv.
- pstates: 0 on, 1 off, -1 switching on, -2 switching off. Escala does not know the pstate numbers of a platform file.
- `consumed_energy` of a job is that of its cores: a share of the node where it has only some of them.
- Where some node has no power profile, no energy is told: `consumed_energy` of jobs is -1, `consumed_joules` NA, and
  there is no consumed_energy.csv.
- Jobs that still run or wait when a run is cut have no row; `nb_jobs` counts them. Means are over finished jobs.
- `profile` and `metadata` are empty, `scheduling_time` is unknown (NaN), `batsim_version` says which Escala wrote the
  files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from escala.export.batsim_energy import Run as EnergyRun
from escala.export.batsim_energy import consumed_energy
from escala.writing import saved_folder

FINAL_STATES = {"COMPLETED": "COMPLETED_SUCCESSFULLY", "KILLED": "COMPLETED_WALLTIME_REACHED", "REJECTED": "REJECTED"}
# in the order of the columns of machine_states.csv: Escala's state, Batsim's name, pstate
STATES = (
    ("off", "sleeping", 1),
    ("switching_on", "switching_on", -1),
    ("switching_off", "switching_off", -2),
    ("idle", "idle", 0),
    ("computing", "computing", 0),
)


class Run(EnergyRun, Protocol):
    """What is read of a Result."""

    @property
    def totals(self) -> pl.DataFrame: ...


def export(result: Run, folder: Path) -> Path:
    """Write the files into `folder`, all or none: five, or without watts four, with no consumed_energy.csv.

    Raises EscalaError: a folder with anything else, a place that cannot be written, a
    run whose table of nodes is too large to make."""
    pstates = pstate_changes(result.nodes)
    tables = {
        "jobs.csv": jobs(result),
        "schedule.csv": schedule(result, grouped=pstates.filter(pl.col("new_pstate") < 0).height),
        "machine_states.csv": machine_states(result.nodes, cut=_is_cut(result)),
        "pstate_changes.csv": pstates.with_columns(machine_id=intervals(pstates["machine_id"])),
    }
    if "joules" in result.totals.columns:
        tables["consumed_energy.csv"] = consumed_energy(result, pstates["time"])
    with saved_folder(folder, "export") as scratch:
        for name, table in tables.items():
            table.write_csv(scratch / name, float_precision=6, null_value="NA")
    return folder


def _is_cut(result: Run) -> bool:
    return result.manifest["options"]["until_s"] is not None


def jobs(result: Run) -> pl.DataFrame:
    """jobs.csv: ended jobs in the order in which they ended (completed before killed), rejected ones at their
    submission; -1 where a rejected job has no value, for a job without a limit, and for consumed energy where the
    platform has no watts."""
    state, finish = pl.col("state"), pl.col("finish_s")
    table = result.jobs.with_row_index("row").filter(state.is_in(list(FINAL_STATES)))
    drawn = (
        pl.col("joules").sum() if "joules" in result.allocations.columns else pl.lit(None, pl.Float64).alias("joules")
    )
    joules = result.allocations.group_by("job_id").agg(drawn)
    table = table.join(joules, on="job_id", how="left", maintain_order="left")
    limit = (
        pl.col("walltime_s")
        if "limited" not in table.columns
        else pl.when("limited").then("walltime_s").otherwise(-1.0)
    )
    run = finish - pl.col("start_s")
    around = finish - pl.col("submit_s")
    ordered = table.sort(finish.fill_null(pl.col("submit_s")), state != "REJECTED", state == "KILLED", "row")
    return ordered.select(
        "job_id",
        workload_name=pl.lit("w0"),
        profile=pl.lit(""),
        submission_time=pl.col("submit_s"),
        requested_number_of_resources=pl.col("cores"),
        requested_time=limit,
        success=(state == "COMPLETED").cast(pl.Int8),
        final_state=state.replace_strict(FINAL_STATES, return_dtype=pl.String),
        starting_time=pl.col("start_s").fill_null(-1.0),
        execution_time=run.fill_null(-1.0),
        finish_time=finish.fill_null(-1.0),
        waiting_time=pl.col("wait_s").fill_null(-1.0),
        turnaround_time=around.fill_null(-1.0),
        stretch=(around / run).fill_null(-1.0),
        allocated_resources=pl.col("nodes"),
        consumed_energy=pl.col("joules").fill_null(-1.0),
        metadata=pl.lit(""),
    )


def schedule(result: Run, grouped: int) -> pl.DataFrame:
    """schedule.csv: one row. grouped: switch orders, those of one instant to one state counted once."""
    ended = result.jobs.filter(pl.col("finish_s").is_not_null())
    around = ended["finish_s"] - ended["submit_s"]
    slowdown = around / (ended["finish_s"] - ended["start_s"])
    count = dict(result.jobs.group_by("state").len().iter_rows())
    total, success = result.jobs.height, count.get("COMPLETED", 0)
    seconds = dict(result.totals.select("state", "seconds").iter_rows())
    measures = {"slowdown": slowdown, "turnaround_time": around, "waiting_time": ended["wait_s"]}
    row: dict[str, Any] = {
        "batsim_version": f"escala-{result.manifest['escala']}",
        "consumed_joules": float(result.totals["joules"].sum()) if "joules" in result.totals.columns else None,
        "makespan": _number(ended["finish_s"].max()),
        **{f"max_{name}": _number(values.max()) for name, values in measures.items()},
        **{f"mean_{name}": _number(values.mean()) for name, values in measures.items()},
        "nb_computing_machines": result.manifest["n_nodes"],
        "nb_grouped_switches": grouped,
        "nb_jobs": total,
        "nb_jobs_finished": ended.height,
        "nb_jobs_killed": count.get("KILLED", 0),
        "nb_jobs_rejected": count.get("REJECTED", 0),
        "nb_jobs_success": success,
        "nb_machine_switches": int(result.totals["transitions"].sum()),
        "scheduling_time": float("nan"),
        "simulation_time": _number(result.manifest.get("elapsed_s")),
        "success_rate": success / total if total else float("nan"),
        **{f"time_{theirs}": seconds[ours] for ours, theirs, _ in STATES},
        "time_unavailable": 0.0,
    }
    order = ["computing", "idle", "sleeping", "switching_off", "switching_on", "unavailable"]
    head = [name for name in row if not name.startswith("time_")]
    return pl.DataFrame([row]).select(*head, *(f"time_{name}" for name in order))


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def machine_states(nodes: pl.DataFrame, cut: bool) -> pl.DataFrame:
    """machine_states.csv: nodes in each state, a row at each change. The last row: after the last finish what computed
    is idle, unless the run was cut."""
    times, where = np.unique(np.concatenate([nodes["from_s"], nodes["to_s"]]), return_inverse=True)
    columns: dict[str, Any] = {"time": times}
    for ours, theirs, _ in STATES:
        here = (nodes["state"] == ours).to_numpy()
        change = np.bincount(where[: len(here)][here], minlength=len(times)) - np.bincount(
            where[len(here) :][here], minlength=len(times)
        )
        columns[f"nb_{theirs}"] = np.cumsum(change)
    if len(times):
        for name in columns:
            if name != "time":
                columns[name][-1] = columns[name][-2]
        if not cut:
            columns["nb_idle"][-1] += columns["nb_computing"][-1]
            columns["nb_computing"][-1] = 0
    table = pl.DataFrame(columns)
    moved = pl.any_horizontal(pl.exclude("time").diff().ne(0).fill_null(True))
    closing = pl.int_range(pl.len()) == pl.len() - 1
    return table.filter(moved | closing)


def pstate_changes(nodes: pl.DataFrame) -> pl.DataFrame:
    """time, machine_id (list of nodes), new_pstate: the power states at the beginning, then each change, those of one
    instant together."""
    number = {ours: pstate for ours, _, pstate in STATES}
    table = nodes.select(
        "node", time=pl.col("from_s"), new_pstate=pl.col("state").replace_strict(number, return_dtype=pl.Int8)
    )
    before = pl.col("new_pstate").shift(1).over("node")
    changed = table.filter((pl.col("new_pstate") != before).fill_null(True))
    return (
        changed.group_by("time", "new_pstate")
        .agg(machine_id=pl.col("node").sort())
        .sort("time", "new_pstate")
        .select("time", "machine_id", "new_pstate")
    )


def intervals(sets: pl.Series) -> pl.Series:
    """Lists of ascending numbers as interval sets, "0-3 7"."""
    return pl.Series(sets.name, [_interval(numbers) for numbers in sets.to_list()], dtype=pl.String)


def _interval(numbers: list[int]) -> str:
    values = np.asarray(numbers)
    cuts = np.flatnonzero(np.diff(values) != 1)
    first, last = values[np.concatenate([[0], cuts + 1])], values[np.concatenate([cuts, [len(values) - 1]])]
    return " ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in zip(first.tolist(), last.tolist(), strict=True))
