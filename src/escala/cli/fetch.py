"""The verb workload fetch: a log of the Parallel Workloads Archive, with its address, its terms and whom to thank."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from escala.cli import options as opt
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError
from escala.writing import output_file


def fetch(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="a log's name, or its beginning", show_default=False)
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="name the logs that are known")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="where to put it [NAME.swf.gz]", show_default=False)
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option("--mirror", metavar="URL", help="another server with the archive's folders", show_default=False),
    ] = None,
    sha256: Annotated[
        str | None, typer.Option("--sha256", metavar="HEX", help="refuse another file than this", show_default=False)
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="allow a mirror without https")] = False,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Load a log of the Parallel Workloads Archive.

    Address, citation and terms are shown first. A log that was loaded before comes from the cache.
    """
    from escala.workload import fetch as archive

    if listed:
        rows = [{"log": log.name, "machine": log.what, "address": log.address(mirror)} for log in archive.LOGS.values()]
        emit(
            as_json,
            rows,
            rows_table([{"log": row["log"], "machine": row["machine"]} for row in rows]),
            f"From {archive.ARCHIVE}/",
        )
        return
    if name is None:
        raise EscalaError(
            "name a log, such as escala workload fetch KTH-SP2-1996-2.1-cln; escala workload fetch --list names all"
        )
    log = archive.find(name)
    facts = {
        "log": log.name,
        "address": log.address(mirror),
        "citation": archive.CITATION,
        "terms": log.terms,
        "thanks": log.thanks,
    }
    if not as_json:
        emit(False, facts, *(f"{what + ':':10} {text}" for what, text in facts.items()))
    target = out or Path(f"{log.name}.swf.gz")
    with output_file(target, force=force) as work, progress() as begin:
        begin(f"loading {log.name}")
        loaded = archive.fetch(log, mirror=mirror, sha256=sha256, insecure=insecure)
        shutil.copyfile(loaded.path, work)
    first = "first load: kept, and compared with every later one"
    checked = "as asked for" if sha256 else ("as at the first load" if loaded.known else first)
    payload = {**facts, "file": str(target), "sha256": loaded.sha256, "acknowledge": loaded.acknowledge}
    emit(as_json, payload, f"{'sha256:':10} {loaded.sha256} ({checked})", f"{'file:':10} {target}")
