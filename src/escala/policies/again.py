"""Running again what a manifest says, on the log of then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from escala.admit import met
from escala.errors import EscalaError, quoted
from escala.options import Options, with_options
from escala.partitions import taking
from escala.platform import Platform
from escala.policies.files import refuse_other_files
from escala.policies.run import Progress, simulate_loaded
from escala.result import Result, read_manifest
from escala.unseen import COUNTS, OUTAGES, of_all, warn
from escala.workload import CleaningRules, Workload, read_workload


def rerun(run_: Any, workload: Any = None, *, progress: Progress | None = None) -> Result:
    """Run again what a Result's manifest says.

    run_: a Result, or the folder of a saved one. workload: the log, or its path, which is then read as it was read for
    that run; it must hold the same jobs. Without it the file that was read then is read again; a saved manifest keeps
    its name only, which is looked for in the current folder. Raises EscalaError: policies that were objects, a log that
    is gone or holds other jobs now, and a run that was streamed, which `escala.streaming.rerun` repeats.
    """
    about = run_.manifest if hasattr(run_, "manifest") else read_manifest(Path(run_))
    if "streamed" in about:
        where = "RUN" if hasattr(run_, "manifest") else repr(str(run_))
        raise EscalaError(
            f"that run was streamed: repeat it with escala.streaming.rerun({where}), or simulate the log anew"
        )
    if not isinstance(run_, Result):
        about = Result.load(run_).manifest
    told = about["workload"]
    for role in about.get("objects", ()):
        name = quoted(about.get(role, about["options"].get(role)))
        raise EscalaError(
            f"the {role} of that run was an object ({name}), which no manifest holds: give it to simulate"
        )
    log = workload if isinstance(workload, Workload) else _read_again(told, workload)
    machine = Platform.from_spec(about["platform"])
    log = met(log, machine)
    if log.digest() != told["sha256"]:
        raise EscalaError(
            f"workload {log.name!r} does not hold the jobs of that run (manifest: sha256): give the workload that was "
            "simulated"
        )
    if log.origin_s != told.get("origin_s", log.origin_s):
        raise EscalaError(
            f"workload {log.name!r}: its clock begins at {log.origin_s} s since 1970, that of the log of that run at "
            f"{told['origin_s']} s (manifest: origin_s): give that log"
        )
    kept = about.get("columns", {})
    unseen = about.get("unseen")
    missed = of_all(unseen) if isinstance(unseen, dict) else ()
    names = {name for name in kept if name in log.jobs.columns}.union(taking(log.jobs, machine))
    now = log.column_digests(names, missed)
    for name in {**kept, **now}:
        if kept.get(name) != now.get(name):
            raise EscalaError(
                f"workload {log.name!r}: its column {quoted(name)} is not that of that run (manifest: columns): give "
                "that log"
            )
    options = with_options(Options(), **about["options"])
    refuse_other_files(about, options)
    result = simulate_loaded(log, machine, about["scheduler"], about["shutdown"], options, progress, False)
    warn([{name: COUNTS for name in missed if name in result.manifest.get("columns", {})}])
    if isinstance(unseen, dict) and "closed" in unseen and "closed" not in result.manifest.get("unseen", {}):
        warn([{"closed": OUTAGES}])
    return result


def _read_again(told: Mapping[str, Any], path: Any) -> Workload:
    """The log that a manifest tells of, from `path` or, by default, from where it was; read with the options of
    then."""
    where, how = as_read(told, path)
    return read_workload(where, **how)


def as_read(told: Mapping[str, Any], path: Any) -> tuple[Path, dict[str, Any]]:
    """Where the log lies that a manifest tells of, `path` or by default where it was, and the options with which it was
    read then."""
    how = dict(told["read_as"])
    kept, name = how.pop("path", None), how.pop("file", None)
    if path is None:
        path = kept or name
        if path is None:
            raise EscalaError(f"workload {told['name']!r} was not read from a file: give it to rerun")
        if not Path(path).is_file():
            raise EscalaError(
                f"the log {Path(path).name!r} of that run is not here: give it to rerun, as rerun(run, PATH)"
            )
    if "rules" in how:
        how["rules"] = CleaningRules(**how["rules"])
    return Path(path), how
