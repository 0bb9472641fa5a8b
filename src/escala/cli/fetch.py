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

    Address, citation and terms are shown first. A log that was loaded before comes from the cache. What is not known
    beforehand is trusted at its first load, and compared with that at every later one.
    """
    from escala.workload import fetch as archive

    if listed:
        _list(mirror, as_json)
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
    payload = {
        **facts,
        "file": str(target),
        "sha256": loaded.sha256,
        "known": loaded.known,
        "acknowledge": loaded.acknowledge,
    }
    checked = _why_trusted(asked=sha256 is not None, known=loaded.known, as_before=loaded.as_before)
    emit(as_json, payload, f"{'sha256:':10} {loaded.sha256} ({checked})", f"{'file:':10} {target}")


def _list(mirror: str | None, as_json: bool) -> None:
    """The logs that Escala can load, and whether it knows what they hold."""
    from escala.workload.fetch import ARCHIVE, LOGS

    logs = LOGS.values()
    rows = [
        {"log": log.name, "machine": log.what, "address": log.address(mirror), "contents": log.contents} for log in logs
    ]
    shown = [{"log": log.name, "machine": log.what, "known": "yes" if log.contents else ""} for log in logs]
    emit(
        as_json,
        rows,
        rows_table(shown),
        f"From {ARCHIVE}/. Of those that are known another content is refused.",
    )


def _why_trusted(asked: bool, known: bool, as_before: bool) -> str:
    """In a few words, why the file is taken for the log."""
    if known:
        return "known: several independent copies hold the same lines"
    if asked:
        return "as asked for"
    return "as at the first load" if as_before else "first load: kept, and compared with every later one"
