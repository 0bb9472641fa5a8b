"""What accounting says that a job asked for, as the columns of `shapes`, and where it ran: nodes, memory, GPUs, hosts.

Slurm writes memory per node (`4Gn`), per core (`2000Mc`) or, since 21.08, of the whole job (`8G`); a number over 2^31
MB is one per core, less 2^31. What is told of a whole job is taken as spread evenly over its nodes, rounded up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import polars as pl

from escala.errors import EscalaError
from escala.workload.columns import MEASURED
from escala.workload.ignored import NOTHING
from escala.workload.shapes import BEGIN

PER_CORE_MB = 2**31
LATE_S = 1.0  # Slurm notes a job's eligibility up to a second after its submission
ARRAY = r"^(\d+)_\d+$"  # JobID of a task
THROTTLE = r"\s(?:--array[= ]|-a ?)\S*%(\d+)"
DEPENDENCY = r"\s(?:--dependency[= ]|-d ?)(\S+)"
ONE_MORE = r"(?:singleton|after(?:any|ok|notok|corr)?(?::\d+(?:_\d+)?(?:\+[1-9]\d{0,8})?)+)"
NICE = r"\s--nice(?:=(-?\d{1,10}))?(?:\s|$)"
USUAL_NICE = "100"  # of --nice alone
CONSTRAINT = r"\s--constraint[= ](\S+)"
FEATURE = r"[\w.:@/+=~^%#-]+"
GROUP = rf"(?:{FEATURE}|\({FEATURE}(?:[&|,]{FEATURE})*\))"
MOST_SLOTS = 100_000  # of one job
MOST_WRITTEN = 300_000_000  # characters of the hosts of all jobs
MOST_JOULES = 1e15  # Slurm writes 2^64 - 2 where it does not know
_SLOTS = re.compile(r"([0-9]{1,12})-([0-9]{1,12})")
SIZES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
FIELDS = ("nnodes", "allocnodes", "reqnodes")


def of_sacct(have: set[str], submission: str) -> dict[str, pl.Expr]:
    """From the text fields of a sacct listing, and its times as seconds. have: the fields that there are. A job that
    became eligible after its submission (by a begin time, a dependency or a hold) may not begin before, where that is
    not taken as its submission. Text of features and dependencies that these rules do not know is null."""
    nodes = nodes_of(have)
    tres = [_text(name, have) for name in ("alloctres", "reqtres")]
    asked = _text("reqmem", have)
    amount, unit = _megabytes(asked), asked.str.extract(r"([nc])$")
    by_core = (unit == "c") | (amount >= PER_CORE_MB)
    per_core = pl.when(by_core.fill_null(False)).then(
        amount - pl.when(amount >= PER_CORE_MB).then(PER_CORE_MB).otherwise(0.0)
    )
    whole = pl.coalesce(
        pl.when(unit.is_null()).then(amount), *(_megabytes(text.str.extract(r"(?:^|,)mem=([^,]+)")) for text in tres)
    )
    per_node = pl.when(~by_core.fill_null(False)).then(
        pl.when(unit == "n").then(amount).otherwise(whole / nodes.fill_null(1))
    )
    gpus = pl.coalesce(
        *(_positive(text.str.extract(_tres("gres/gpu"))) for text in tres),
        *(_positive(text.str.extract(_kind(2))) for text in tres),
    )
    kind = pl.coalesce(*(text.str.extract(_kind(1)) for text in tres))
    hosts = _text("nodelist", have)
    joules = pl.coalesce(
        _positive(_text("consumedenergyraw", have)),
        _positive(_text("alloctres", have).str.extract(_tres("energy"))),
    )
    line, array = _text("submitline", have), pl.col("job_id").str.extract(ARRAY)
    throttle = pl.coalesce(_text("arraytaskthrottle", have), line.str.extract(THROTTLE)).cast(pl.Int64, strict=False)
    eligible = pl.col("eligible_at")
    late = (eligible - pl.col("submit_at") > LATE_S) & (eligible <= pl.col("start_at"))
    return {
        "nodes": nodes.cast(pl.Int64),
        "memory_mb_per_core": _some(per_core),
        "memory_mb_per_node": _some(per_node),
        "gpus_per_node": _some(gpus / nodes.fill_null(1)),
        "gpu_kind": pl.when(gpus > 0).then(kind),
        "features": _features(pl.coalesce(_text("constraints", have), line.str.extract(CONSTRAINT))),
        "nice": pl.when(line.str.contains(NICE)).then(
            line.str.extract(NICE).fill_null(USUAL_NICE).cast(pl.Int64, strict=False)
        ),
        "dependency": _dependency(pl.coalesce(_text("dependency", have), line.str.extract(DEPENDENCY))),
        "array_id": array,
        "array_limit": pl.when(array.is_not_null() & (throttle > 0)).then(throttle),
        "reservation": _text("reservation", have),
        BEGIN: pl.when(late & pl.lit(submission == "submit")).then("eligible_at"),
        MEASURED: pl.when(joules <= MOST_JOULES).then(joules),
        "hosts": pl.when(~hosts.str.to_lowercase().is_in(["none assigned", "unknown", "none"])).then(hosts),
    }


def _features(text: pl.Expr) -> pl.Expr:
    """The features of nodes where they are joined by & and |, with parentheses; null where they are counted, or in
    brackets."""
    return pl.when(text.str.contains(rf"^{GROUP}(?:[&|,]{GROUP})*$") & ~text.str.contains(NOTHING)).then(text)


def _dependency(text: pl.Expr) -> pl.Expr:
    """For whom a job waited. As it did start, the others had ended as it wanted them to: that they end is left. (An
    array of `aftercorr` is left as it is: of it, one task counts.)"""
    plain = text.str.replace_all(r"\(\w+\)|_\*", "")
    known = plain.str.contains(rf"^{ONE_MORE}(?:,{ONE_MORE})*$")
    return pl.when(known).then(plain.str.replace_all("after(?:ok|notok):", "afterany:"))


def nodes_of(have: set[str]) -> pl.Expr:
    """How many nodes a job had, or asked for where it had none; null where a sacct listing does not say."""
    fields = (_positive(_text(name, have)) for name in FIELDS)
    return pl.coalesce(*fields, _positive(_text("alloctres", have).str.extract(_tres("node"))))


def of_pbs(exec_host: pl.Series, nodes: pl.Expr, gpus: pl.Expr, memory: pl.Expr) -> dict[str, pl.Expr]:
    """From the keys of an E record: exec_host (`c3/30+c3/31`, `c3/0-7+c4/0-7`), unique_node_count or nodect, GPUs and
    memory of the job. EscalaError where the slots of all jobs are too many."""
    count = _positive(nodes)
    return {
        "nodes": count.cast(pl.Int64),
        "memory_mb_per_node": _some(_megabytes(memory.str.to_uppercase().str.strip_suffix("B")) / count.fill_null(1)),
        "gpus_per_node": _some(gpus.cast(pl.Float64, strict=False) / count.fill_null(1)),
        "hosts": pl.lit(pl.Series(_of_all(exec_host), dtype=pl.String)),
    }


def _of_all(texts: pl.Series) -> Iterator[str | None]:
    written = 0
    for text in texts:
        hosts = None if text is None else _hosts(text, MOST_WRITTEN - written)
        written += len(hosts or "")
        yield hosts


def _hosts(text: str, most: int) -> str:
    """`c3/0-3+c4/7-8` -> c3,c3,c4: a name for each slot, or for as many as each host has a multiple of. EscalaError for
    more than `most` characters."""
    given: dict[str, int] = {}
    left = MOST_SLOTS
    for part in text.split("+"):
        host, _, slots = part.partition("/")
        runs = [_SLOTS.fullmatch(one) for one in slots.split("*")[0].split(",")]
        count = sum(max(int(run[2]) - int(run[1]) + 1, 0) if run else 1 for run in runs)
        count = min(max(count, 1), left)
        left -= count
        given[host] = given.get(host, 0) + count
    each = max(math.gcd(*given.values()), 1)
    times = {host: count // each for host, count in given.items()}
    if sum((len(host) + 1) * count for host, count in times.items()) > most:
        raise EscalaError(
            f"exec_host: the slots of all jobs take more than {MOST_WRITTEN:,} characters as names of hosts: read a "
            "part of the log"
        )
    return ",".join(host for host, count in times.items() for _ in range(count))


def _text(name: str, have: set[str]) -> pl.Expr:
    return pl.col(name).replace("", None) if name in have else pl.lit(None, dtype=pl.String)


def _positive(text: pl.Expr) -> pl.Expr:
    number = text.cast(pl.Float64, strict=False)
    return pl.when(number > 0).then(number)


def _some(amount: pl.Expr) -> pl.Expr:
    """Rounded up; null where it is nothing."""
    return pl.when(amount > 0).then(amount.ceil()).cast(pl.Int64)


def _megabytes(text: pl.Expr) -> pl.Expr:
    """MB of `62.50G`, `4Gn`, `2000M`; a number alone is MB."""
    number = text.str.extract(r"^([\d.]+)").cast(pl.Float64, strict=False)
    unit = text.str.extract(r"^[\d.]+([KMGTP])").fill_null("M")
    return number * unit.replace_strict(SIZES, default=None, return_dtype=pl.Float64)


def _tres(name: str) -> str:
    return rf"(?:^|,){name}=(\d+)"


def _kind(group: int) -> str:
    return r"gres/gpu:([^=,]+)=\d+" if group == 1 else r"gres/gpu:[^=,]+=(\d+)"
