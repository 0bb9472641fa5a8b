"""Tables of jobs whose columns Escala knows, and the units and words that they use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from escala.workload.columns import ESTIMATE, OPTIONAL, SCHEMA
from escala.workload.filters import Keep, every
from escala.workload.table import MOST_CORES

UNITS = {"ms": 1e-3, "s": 1.0, "step": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
TIMES = ("submit_s", "begin_s", "start_s", "end_s", "runtime_s", "walltime_s", "wait_s")
WORDS = {  # what logs call the ends of jobs
    **dict.fromkeys(("COMPLETED", "COMPLETED_SUCCESSFULLY", "SUCCEEDED", "1"), "COMPLETED"),
    **dict.fromkeys(("FAILED", "COMPLETED_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "0"), "FAILED"),
    **dict.fromkeys(("CANCELLED", "COMPLETED_KILLED", "REJECTED", "PREEMPTED"), "CANCELLED"),
    **dict.fromkeys(("TIMEOUT", "COMPLETED_WALLTIME_REACHED", "KILLED"), "TIMEOUT"),
}


@dataclass(frozen=True)
class Layout:
    """A known set of columns."""

    name: str
    columns: dict[str, str]  # field -> column
    needs: tuple[str, ...] = ()  # columns that tell this layout, besides those of submit_s, runtime_s and cores
    units: dict[str, float | str] = field(default_factory=dict)  # column -> seconds or name of a unit
    unit_needed: bool = False  # the file does not say in what unit its times are
    split: tuple[str, ...] = ()  # columns that tell several workloads in one file apart
    shift: bool = True  # first submission becomes time 0

    def fits(self, columns: set[str]) -> bool:
        """True if a file with these columns has this layout."""
        core = {
            self.columns[name]
            for name in ("submit_s", "runtime_s", "cores", "start_s", "end_s")
            if name in self.columns
        }
        return core | set(self.needs) <= columns

    def of(self, columns: Sequence[str]) -> Layout:
        """The same without the columns that this file lacks, and with its further resource kinds."""
        present = {name: column for name, column in self.columns.items() if column in columns}
        further = {name: name for name in columns if name.startswith((ESTIMATE, "demand_"))} if self is ESCALA else {}
        return replace(self, columns=present | further)


BATSIM_JOBS = "Batsim jobs.csv"
ESCALA = Layout("Escala table", {name: name for name in (*SCHEMA, *OPTIONAL)}, shift=False)
PACK = Layout(
    "pack of days",
    {
        "job_id": "id",
        "submit_s": "subtime",
        "cores": "res",
        "walltime_s": "walltime",
        "runtime_s": "runtime",
        "user": "user",
    },
    needs=("set", "file"),
    unit_needed=True,
    split=("set", "file"),
    shift=False,
)
_OUT_JOBS = {
    "submit_s": "submission_time",
    "walltime_s": "requested_time",
    "runtime_s": "execution_time",
    "wait_s": "waiting_time",
}
LAYOUTS = (
    ESCALA,
    PACK,
    *(
        Layout(
            BATSIM_JOBS,
            {**_OUT_JOBS, "job_id": job, "cores": cores, "status": status},
            needs=(job, status),
            split=("workload_name",),
            shift=False,
        )
        for status in ("final_state", "success")
        for job in ("job_id", "jobID")
        for cores in ("requested_number_of_resources", "requested_number_of_processors")
    ),
    Layout(
        "NREL Eagle",
        {
            "job_id": "job_id",
            "submit_s": "submit_time",
            "runtime_s": "run_time",
            "walltime_s": "wallclock_req",
            "start_s": "start_time",
        }
        | {"cores": "processors_req", "user": "user", "queue": "partition", "status": "state", "job_name": "name"},
    ),
    Layout(
        "OpenDC tasks (SURF Lisa)",
        {"job_id": "id", "submit_s": "submission_time", "runtime_s": "duration", "cores": "cpu_count"},
        units={"submission_time": "ms", "duration": "ms"},
    ),
    Layout(
        "Slurm simulator tutorial",
        {"job_id": "job_id", "submit_s": "dt", "runtime_s": "wall_time", "walltime_s": "wall_limit"}
        | {"cores": "n_tasks", "user": "user", "queue": "partition"},
        units={"wall_limit": "min"},
    ),
)


ALIBABA = "Alibaba GPU cluster 2023, cores in thousandths"
ALIBABA_NEEDS = {
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "creation_time",
    "deletion_time",
    "scheduled_time",
    "pod_phase",
}
ALIBABA_IGNORED = {"gpu_spec": "constraints", "qos": "qos"}


def alibaba_jobs(table: pl.DataFrame, keep: Keep = every) -> tuple[pl.DataFrame, dict[str, int], dict[str, str]]:
    """Pods of the Alibaba GPU trace (Weng et al., ATC 2023): single-node jobs with memory (MiB) and GPUs.

    `cores` are thousandths of a CPU, as in the trace and as of Google's tasks, at least one. A pod that shares a GPU
    gets a whole one (counted). Also the counts of these notes, and the first pod of each. `keep` takes part of the
    pods.
    """
    number = {name: pl.col(name).cast(pl.Float64, strict=False) for name in ALIBABA_NEEDS - {"name", "pod_phase"}}
    frame = table.select(
        pl.col("name").alias("job_id"),
        number["creation_time"].alias("submit_s"),
        (number["deletion_time"] - number["scheduled_time"]).alias("runtime_s"),
        pl.lit(None, dtype=pl.Float64).alias("walltime_s"),
        pl.when(number["cpu_milli"] >= 0).then(number["cpu_milli"].clip(1.0)).alias("cores"),
        (number["scheduled_time"] - number["creation_time"]).alias("wait_s"),
        pl.lit(True).alias("single_node"),
        number["memory_mib"].alias("demand_memory"),
        number["num_gpu"].alias("demand_gpu"),
        pl.col("pod_phase")
        .str.to_uppercase()
        .replace_strict(WORDS, default=None, return_dtype=pl.String)
        .alias("status"),
        ((number["num_gpu"] == 1) & (number["gpu_milli"] < 1000)).alias("shares"),
        *(
            pl.col(name).cast(pl.String).alias(known)
            for name, known in ALIBABA_IGNORED.items()
            if name in table.columns
        ),
    )
    frame = keep(frame)
    waiting = frame["wait_s"].is_null()
    noted = {"never started": frame.filter(waiting)["job_id"]}
    frame = frame.filter(~waiting)
    sane = frame.select(
        pl.all_horizontal(pl.col("demand_memory", "demand_gpu").is_between(0, MOST_CORES))
        .fill_null(False)
        .alias("sane")
    )
    noted["absurd demand"] = frame.filter(~sane["sane"])["job_id"]
    frame = frame.filter(sane["sane"]).with_columns(pl.col("demand_memory", "demand_gpu").ceil().cast(pl.Int64))
    noted["note: shared GPU taken whole"] = frame.filter("shares")["job_id"]
    noted = {rule: ids for rule, ids in noted.items() if len(ids)}
    return (
        frame.drop("shares"),
        {rule: len(ids) for rule, ids in noted.items()},
        {rule: f"job {ids[0]!r}" for rule, ids in noted.items()},
    )


def is_known(names: Sequence[str]) -> bool:
    """True if the names are those of a known table of jobs."""
    return set(names) >= ALIBABA_NEEDS or any(layout.fits(set(names)) for layout in LAYOUTS)
