"""`escala simulate --stream`: a replay of a log that need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli.remarks import tell_until
from escala.cli.tables import metrics_table
from escala.cli.terminal import Begin, emit, progress, remark
from escala.errors import EscalaError, number_of

Stream = Annotated[
    bool,
    typer.Option("--stream", help="read and replay a window of jobs at a time, for logs that do not fit into memory"),
]

PARTS = ("partition", "user", "account", "since", "until", "select")
"""Options that take part of a log."""


def run(
    workload: Path, machine: tuple[str, str | None], pair: tuple[str, str], options: dict[str, Any],
    read: dict[str, Any], *, export: Any, out: Path | None, force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Replay, and tell the figures that `simulate` tells, as far as a stream knows them."""
    from escala.cli.replay import SHOWN, power_of
    from escala.options import Options
    from escala.partitions import described
    from escala.platform import read_platform
    from escala.platform.site import Site
    from escala.report import recorded
    from escala.streaming import stream
    from escala.streaming.replay import TAKEN
    from escala.workload.clean import remarks
    from escala.workload.ignored import told
    from escala.workload.read import SHAPED, detect

    if export is not None:
        raise EscalaError("--export needs the tables of all nodes: leave out --stream")
    usual = Options()
    for name, value in options.items():
        if name not in TAKEN and value != getattr(usual, name, value):
            raise EscalaError(f"--stream: the option {name} is not known in a stream; known: {', '.join(TAKEN)}")
    platform, (scheduler, shutdown) = read_platform(*machine), pair
    tell_until(read)
    if isinstance(platform, Site) and (read.get("format") or detect(workload, read.get("columns"))) in SHAPED:
        remark("what an accounting log says of nodes, memory and GPUs is not read in a stream: cores of any nodes")
    with progress() as begin:
        begin(f"reading {workload}")
        taken = {name: options[name] for name in TAKEN if name in options}
        how: dict[str, Any] = {"out": out, "force": force, "progress": _ended(begin, workload, read)}
        found = stream(workload, platform, scheduler, shutdown, **how, **taken, **read)
    about = found.manifest["workload"]
    for line in remarks(about["cleaning"], found.first_cleaned, read.get("rules")):
        remark(f"{workload}: {line}")
    text = told(about["ignored"], parted=described(platform))
    if text:
        remark(f"{workload}: {text}")
    summary = found.summary
    title = f"{about['name']} on {platform.name}: {scheduler} + {shutdown}"
    window = f"Streamed in {number_of(found.pieces, 'piece')}, with {number_of(found.most, 'job')} in memory at most."
    document = {**summary, "knows": "", "cleaning": about["cleaning"], "ignored": about["ignored"]}
    document |= {"power": power_of(platform)}
    rows = metrics_table({metric: summary[metric] for metric in SHOWN if metric in summary})
    lines = (
        [] if found.recorded is None else [recorded.means(found.recorded), recorded.sentence({title: found.recorded})]
    )
    waits = [line.replace("\u202f", " ") for line in lines if line]
    document |= {"streamed": found.manifest["streamed"], "recorded_waits": found.recorded}
    emit(as_json, document, title, rows, window, platform.power_line, *waits)


def _ended(begin: Begin, log: Path, read: Mapping[str, Any]) -> Callable[[int], None]:
    """Called with the jobs that have ended: the share done of a whole table in Parquet, whose file knows its rows."""
    from escala.workload.pieces import PIECE
    from escala.workload.table_files import rows_in

    rows = None if any(read.get(name) is not None for name in PARTS) else rows_in(log, PIECE)
    share = begin(f"replaying {number_of(rows, 'job')} of {log}") if rows else None
    if not rows or share is None:
        return lambda n: begin(f"{n:,} jobs have ended") and None
    return lambda n: share(min(n / rows, 1.0))
