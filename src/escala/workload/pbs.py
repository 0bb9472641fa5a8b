"""PBS and TORQUE accounting logs: the `E` (job ended) records of `date;type;job;key=value key=value ...` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import polars as pl

from escala.errors import EscalaError
from escala.reading import read_text, reading
from escala.workload.asked import of_pbs
from escala.workload.filters import Keep, every
from escala.workload.lines import line_chunks
from escala.workload.slurm import duration

NOTE = "PBS accounting log"
Cores = Literal["allocated", "requested"]
Submission = Literal["submit", "eligible"]

PROPERTY = r"[:+]([A-Za-z]\w*)(?:[:+]|$)"  # of nodes, in `2:ppn=8:bigmem`
RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Z];[^;]*;")


def read_pbs(
    path: Path, cores: Cores = "allocated", submission: Submission = "submit", keep: Keep = every, shapes: bool = False
) -> pl.DataFrame:
    """Records for `clean`. `cores`: the job's slots, or what `nodes` or `select` asked for, first. `submission`: ctime
    or etime. `keep`: takes part of them; `shapes`: with the columns of `asked`; the partition is the queue, the account
    `account`, `project` or `group`."""
    ended = _ended(read_text(path).splitlines())
    if ended.is_empty():
        raise _no_records(path)
    return keep(_records(ended, cores, submission, shapes), 0.0)


def pbs_pieces(path: Path, cores: Cores, submission: Submission, keep: Keep) -> Iterator[pl.DataFrame]:
    """The same some megabytes at a time, in the order of the file, which is that of the jobs' ends."""
    empty = True
    with reading(path) as stream:
        for text, _ in line_chunks(stream, path):
            ended = _ended(text.decode("utf-8", errors="replace").splitlines())
            empty = empty and ended.is_empty()
            yield keep(_records(ended, cores, submission, False), 0.0)
    if empty:
        raise _no_records(path)


def _no_records(path: Path) -> EscalaError:
    return EscalaError(f"{path}: no E (job ended) records: give the accounting log of days on which jobs ended")


def _ended(lines: list[str]) -> pl.DataFrame:
    """The lines that tell the end of a job."""
    return pl.DataFrame({"text": lines}, schema={"text": pl.String}).filter(pl.col("text").str.contains(r"^[^;]*;E;"))


def _records(ended: pl.DataFrame, cores: Cores, submission: Submission, shapes: bool) -> pl.DataFrame:
    """Lines as records for `clean`."""
    if cores not in ("allocated", "requested") or submission not in ("submit", "eligible"):
        raise EscalaError(
            f"cores is {cores!r}, submission {submission!r}: give 'allocated' or 'requested', 'submit' or 'eligible'"
        )
    asked = [_key(r"Resource_List\.nodes"), _key(r"Resource_List\.select")]
    forms = ended.select(pl.coalesce(asked).alias("shape"))["shape"].drop_nulls().unique()
    sizes = pl.DataFrame(
        {"shape": forms, "asked": [_size(form) for form in forms]}, schema={"shape": pl.String, "asked": pl.Float64}
    )
    ended = ended.with_columns(shape=pl.coalesce(asked)).join(sizes, on="shape", how="left", maintain_order="left")
    slots, wanted = _number("total_execution_slots"), pl.coalesce("asked", _number(r"Resource_List\.ncpus"))
    created = pl.coalesce(_number("ctime"), _number("qtime"))
    submit = created if submission == "submit" else pl.coalesce(_number("etime"), created)
    code = _key("Exit_status").cast(pl.Int64, strict=False)
    limit = duration(_key(r"Resource_List\.walltime"))
    ran = _number("end") - _number("start")
    # over a resource limit; 256 + SIGTERM, the server's way to end a job
    over = ((code == -11) | (code == 271)) & (ran >= limit)
    status = (
        pl.when(code == 0)
        .then(pl.lit("COMPLETED"))
        .when(over)
        .then(pl.lit("TIMEOUT"))
        .when(code == 271)
        .then(pl.lit("CANCELLED"))
    )
    late = (_number("etime") - created > 1.0) if submission == "submit" else pl.lit(False)
    gpus = pl.coalesce(
        _key(r"Resource_List\.n?gpus"), _key(r"Resource_List\.(?:nodes|select)").str.extract(r"gpus=(\d+)")
    )
    memory = pl.coalesce(_key(rf"Resource_List\.{name}") for name in ("mem", "pmem", "vmem", "pvmem"))
    more = _asked(ended, gpus) if shapes else {"on_nodes": NODES}
    return ended.select(
        pl.col("text").str.extract(r"^[^;]*;E;([^;]*);").alias("job_id"),
        submit.alias("submit_s"),
        ran.alias("runtime_s"),
        limit.alias("walltime_s"),
        (pl.coalesce(slots, wanted) if cores == "allocated" else pl.coalesce(wanted, slots)).alias("cores"),
        _key("user").alias("user"),
        (_number("start") - submit).alias("wait_s"),
        _key("queue").alias("queue"),
        status.when(code.is_not_null()).then(pl.lit("FAILED")).alias("status"),
        pl.coalesce(_key(name) for name in ("account", "project", "group")).alias("account"),
        gpus.alias("gpus"),
        memory.alias("memory"),
        _key(r"Resource_List\.(?:software|licen[sc]es?)").alias("licences"),
        pl.coalesce(_key(r"(?:Resource_List\.)?features?"), _key(r"Resource_List\.nodes").str.extract(PROPERTY)).alias(
            "constraints"
        ),
        pl.coalesce(_key("resvname"), _key("resvID")).alias("reserved"),
        pl.coalesce(_key(r"(?:Resource_List\.)?depend"), pl.when(late).then(pl.lit("yes"))).alias("waits_for"),
        pl.coalesce(_key(r"Resource_List\.qos"), _key("qos")).alias("qos"),
        _key("group").alias("group"),
        _key("jobname").alias("job_name"),
        **more,
    )


def _asked(ended: pl.DataFrame, gpus: pl.Expr) -> dict[str, pl.Expr]:
    """The columns of `asked`."""
    return of_pbs(ended.select(_key("exec_host")).to_series(), NODES, gpus, _key(r"Resource_List\.mem"))


def _key(name: str) -> pl.Expr:
    """The value of a key; null where it is not there."""
    return pl.col("text").str.extract(rf"[; ](?:{name})=(\S+)")


NODES = pl.coalesce(_key("unique_node_count"), _key(r"Resource_List\.nodect"))


def _number(name: str) -> pl.Expr:
    return _key(name).cast(pl.Float64, strict=False)


def _size(shape: str) -> float:
    """Cores of `2:ppn=8+1:ppn=4:gpus=1`, `node7:ppn=2` (TORQUE) or `2:ncpus=16:mem=4gb` (PBS Pro)."""
    total = 0.0
    for chunk in shape.split("+"):
        first, *rest = chunk.split(":")
        each = next((float(found[2]) for part in rest if (found := re.fullmatch(r"(ppn|ncpus)=(\d+)", part))), 1.0)
        alone = re.fullmatch(r"(ppn|ncpus)=(\d+)", first)
        total += float(alone[2]) if alone else (float(first) if first.isdecimal() else 1.0) * each
    return total
