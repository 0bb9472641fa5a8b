"""What jobs ask of a site: nodes, tasks, memory, GPUs, partitions and priorities, as optional columns; null: not asked.

Rules of Slurm (`scheduler="slurm"`) read them all. Others read `OF_NODES` and `begin_s`, see `escala.parts` and
`escala.allowed`.
"""

from __future__ import annotations

from functools import reduce

import polars as pl

from escala.workload.rule import Rule

BEGIN = "begin_s"
MOST_S = 1e11  # times of some 3000 years; the clock's integers end at 9.2e12 s

SHAPES: dict[str, pl.DataType] = {
    "nodes": pl.Int64(),  # nodes, exactly so many
    "tasks": pl.Int64(),  # processes; without `nodes` they pack as they fit
    "cores_per_task": pl.Int64(),  # 1 by default
    "tasks_per_node": pl.Int64(),  # no more on a node
    "memory_mb_per_core": pl.Int64(),
    "memory_mb_per_node": pl.Int64(),
    "gpus_per_node": pl.Int64(),
    "gpus_per_task": pl.Int64(),
    "gpu_kind": pl.String(),  # of these GPUs; null: any
    "exclusive": pl.Boolean(),  # whole nodes, shared with nobody
    "features": pl.String(),  # that nodes must have, joined by & and |; parentheses first
    "required_nodes": pl.String(),  # a host list: on these, and as many as `nodes` says
    "excluded_nodes": pl.String(),  # a host list: on none of these
    "nice": pl.Int64(),  # taken off the priority
    "priority": pl.Int64(),  # in place of what the site would compute
    "dependency": pl.String(),  # after:ID, afterok:ID:ID, afterany:ID, afternotok:ID, singleton, joined by commas
    "array_id": pl.String(),  # tasks of one array have the same
    "array_limit": pl.Int64(),  # of these, so many at most run at one time
    "reservation": pl.String(),  # name of the one in which it runs, and nowhere else
    BEGIN: pl.Float64(),  # no start before, on the clock of `submit_s`
}
LATER = ("dependency", "array_id", "array_limit", "reservation", BEGIN)
"""What holds a job up before it waits for the nodes that there are."""
OF_TASKS = ("nodes", "tasks", "cores_per_task", "tasks_per_node")
OF_MEMORY = ("memory_mb_per_core", "memory_mb_per_node")
OF_GPUS = ("gpus_per_node", "gpus_per_task")
KIND, EXCLUSIVE = "gpu_kind", "exclusive"
FEATURES, REQUIRED, EXCLUDED = PLACES = ("features", "required_nodes", "excluded_nodes")
"""By these a job says on which nodes it may lie."""
OF_NODES = (*OF_TASKS, *OF_MEMORY, *OF_GPUS, KIND, EXCLUSIVE, *PLACES)
"""By these a job may ask for more than cores of any nodes; not only Slurm's rules look at them."""
COUNTS = ("nodes", "tasks", "cores_per_task", "tasks_per_node", "array_limit")
AMOUNTS = ("memory_mb_per_core", "memory_mb_per_node", "gpus_per_node", "gpus_per_task", "priority")


def with_cores(frame: pl.DataFrame) -> pl.DataFrame:
    """A table without `cores`, where tasks or nodes say how many there are."""
    have = set(frame.columns)
    if "cores" in have or have.isdisjoint(("tasks", "nodes")):
        return frame

    def column(name: str) -> pl.Expr:
        return pl.col(name).cast(pl.Int64) if name in have else pl.lit(None, dtype=pl.Int64)

    of_nodes = column("nodes").fill_null(1) * column("tasks_per_node").fill_null(1)
    cores = column("tasks").fill_null(of_nodes) * column("cores_per_task").fill_null(1)
    return frame.with_columns(cores=pl.max_horizontal(cores, column("nodes").fill_null(1)))


def clocked(jobs: pl.DataFrame) -> pl.Expr:
    """The columns that are moments on the clock of the workload."""
    return pl.col(["submit_s", *([BEGIN] if BEGIN in jobs.columns else [])])


def submitted(jobs: pl.DataFrame, at: pl.Expr) -> pl.DataFrame:
    """The jobs with other submissions; begin times stay as far behind them."""
    begin = {BEGIN: pl.col(BEGIN) + at - pl.col("submit_s")} if BEGIN in jobs.columns else {}
    return jobs.with_columns(submit_s=at, **begin)


def first_late(jobs: pl.DataFrame) -> str | None:
    """The first job that may not start when it is submitted; None where there is none."""
    if BEGIN not in jobs.columns:
        return None
    late = jobs["job_id"].filter((jobs[BEGIN] > jobs["submit_s"]).fill_null(False))
    return late[0] if len(late) else None


def shape_rules(columns: list[str]) -> list[Rule]:
    """Rules on these columns: numbers that are none, and shapes that cannot be."""
    rules = [Rule(name, pl.col(name) < 1, "1 or more, or null is needed") for name in COUNTS if name in columns]
    rules += [Rule(name, pl.col(name) < 0, "0 or more, or null is needed") for name in AMOUNTS if name in columns]
    if "array_limit" in columns:
        alone = pl.col("array_id").is_null() if "array_id" in columns else pl.lit(True)
        rules.append(
            Rule("array_limit", pl.col("array_limit").is_not_null() & alone, "a limit of an array needs its array_id")
        )
    if BEGIN in columns:
        rules.append(
            Rule(BEGIN, ~(pl.col(BEGIN).abs() <= MOST_S), f"a moment within {MOST_S:g} s of 0, or null is needed")
        )
    if {"nodes", "tasks"} <= set(columns):
        rules.append(
            Rule(
                "nodes",
                pl.col("nodes") > pl.col("tasks"),
                "no more than its tasks are possible: each node runs one at least",
            )
        )
    if {"nodes", "tasks", "tasks_per_node"} <= set(columns):
        most = pl.col("nodes") * pl.col("tasks_per_node")
        rules.append(Rule("tasks", pl.col("tasks") > most, "no more than nodes x tasks_per_node are possible"))
    if {"memory_mb_per_core", "memory_mb_per_node"} <= set(columns):
        both = (pl.col("memory_mb_per_core") > 0) & (pl.col("memory_mb_per_node") > 0)
        rules.append(Rule("memory_mb_per_node", both, "a job asks for memory by core or by node, not for both"))
    gpus = [pl.col(name).fill_null(0) > 0 for name in ("gpus_per_node", "gpus_per_task") if name in columns]
    if len(gpus) == 2:
        rules.append(Rule("gpus_per_task", gpus[0] & gpus[1], "a job asks for GPUs by node or by task, not for both"))
    if "gpu_kind" in columns:
        some = reduce(lambda a, b: a | b, gpus, pl.lit(False))
        rules.append(
            Rule("gpu_kind", pl.col("gpu_kind").is_not_null() & ~some, "a kind needs gpus_per_node or gpus_per_task")
        )
    return rules
