"""The verb doctor: what is installed, what is missing, where compiled code is kept, how many threads there are."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.tables import facts_table, rows_table
from escala.cli.terminal import emit, progress
from escala.extras import ELSEWHERE, EXTRAS

CORE = ("numpy", "numba", "llvmlite", "polars", "typer", "rich", "PyYAML", "pooch")

Clean = Annotated[
    bool,
    typer.Option(
        "--clean", help="remove what killed runs left in the current folder, and compiled code of other sources"
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(doctor)


def _version(package: str) -> str | None:
    """The installed version of a package, None where it is missing. Nothing is imported."""
    for name in (package.replace("_", "-"), ELSEWHERE.get(package)):
        with suppress(PackageNotFoundError):
            if name is not None:
                return version(name)
    return None


def _cache(clean: bool) -> tuple[dict[str, Any], list[str]]:
    """The folder of compiled code with what lies in it, and what to say of it. clean: remove what no source here
    needs."""
    from escala.cli.compiled import kept, remove_others
    from escala.compile import CACHE_FOLDER

    found, hints = kept(), []
    if CACHE_FOLDER is None:
        hints.append("No cache folder can be written: every process compiles anew. ESCALA_CACHE_DIR names another.")
    if found.others:
        told = "escala doctor --clean removes it"
        if clean:
            left = len(found.others) - len(remove_others(found))
            told = f"removed, but for {left} folders of the last hour, or of others" if left else "removed"
        many = f"Compiled code of {found.versions} or more other versions of Escala"
        hints.append(f"{many}, {found.others_mb:.0f} MB: {told}.")
    now = kept() if clean else found
    folder = None if CACHE_FOLDER is None else str(CACHE_FOLDER)
    return {"folder": folder, "files": now.files, "mb": now.mb, "others_mb": now.others_mb}, hints


def _threads() -> dict[str, Any]:
    """Processors of the machine, those this process may use, and what the environment says."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processors": os.cpu_count(), "usable": usable, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}


def _extras() -> list[dict[str, Any]]:
    """Each optional package: its extra, and its version."""
    return [{"extra": extra, "package": package, "version": _version(package)} for package, extra in EXTRAS.items()]


def _left_behind(clean: bool) -> tuple[list[str], list[str]]:
    """What killed runs left in the current folder, and what to say of them. clean: remove them."""
    from escala.writing.stale import remove_stale, stale

    found = [str(path) for path in (remove_stale if clean else stale)(Path.cwd())]
    if not found:
        return found, []
    told = (
        "removed"
        if clean
        else "the next run of the same target goes on with them or removes them; escala doctor --clean removes them now"
    )
    return found, [f"Left by runs that were ended: {', '.join(found)}: {told}."]


def _warmed(wanted: bool) -> list[str]:
    """What was played so that its code is compiled."""
    if not wanted:
        return []
    import escala.policies  # before the progress begins: it tells of compilation once Numba is there
    from escala.cli.warm import warm

    _ = escala.policies.compare
    with progress() as begin:
        return warm(begin)


def doctor(
    clean: Clean = False,
    warm: Annotated[
        bool,
        typer.Option(
            "--warm", help="compile now, for later runs: simulate, compare, serve, beside, bound, environments"
        ),
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Versions, the cache folder, threads, which extras are there, and what killed runs left in the current folder."""
    import escala

    warmed = _warmed(warm)
    core = {package: _version(package) for package in CORE}
    threads, extras = _threads(), _extras()
    lacking = sorted({entry["extra"] for entry in extras if entry["version"] is None})
    machine = {"escala": escala.__version__, "python": platform.python_version(), "system": platform.platform()}
    stale, hints = _left_behind(clean)
    cache, told = _cache(clean)
    hints += told
    if lacking:
        hints.append(
            f"Extras that are not whole: {', '.join(lacking)}. In Escala's folder: pip install '.[{lacking[0]}]'"
        )
    facts = [*machine.items(), *((name, shown or "missing") for name, shown in core.items())]
    where = [
        ("compiled code", cache["folder"] or "not kept"),
        ("in it", f"{cache['files']} files, {cache['mb']:.1f} MB"),
        ("processors", f"{threads['processors']}, usable {threads['usable']}"),
        ("OMP_NUM_THREADS", threads["OMP_NUM_THREADS"] or "not set"),
    ]
    payload = {
        **machine,
        "packages": core,
        "cache": cache,
        "threads": threads,
        "extras": extras,
        "stale": stale,
        "hints": hints,
    }
    payload |= {"warmed": warmed}
    rows = [{**entry, "version": entry["version"] or "missing"} for entry in extras]
    tables = (
        facts_table([(*fact, "") for fact in facts], values="left"),
        facts_table([(*fact, "") for fact in where], values="left"),
    )
    emit(as_json, payload, *tables, rows_table(rows), *(hints or ["Everything is there."]))
