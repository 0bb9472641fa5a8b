"""A streamed replay once more, as its manifest says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from escala.errors import EscalaError
from escala.options import Options, with_options
from escala.platform import Platform
from escala.policies.again import as_read
from escala.policies.files import refuse_other_files
from escala.reading import own
from escala.result import AGAIN, read_manifest
from escala.streaming.replay import TAKEN, Streamed, stream


def rerun(
    run: Any,
    path: str | Path | None = None,
    *,
    out: str | Path | None = None,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Streamed:
    """Stream again what a streamed run's manifest says: the same figures and, in `out`, the same tables, byte by byte.

    run: a `Streamed`, or the folder of a saved one. path: the log, which is read as it was read then, and must hold the
    same jobs; by default where it was, or, for a saved run, the file of its name in the current folder. out, force,
    progress: as for `stream`. EscalaError for a log that is gone or holds other jobs now, other files of policies, and
    a run that was not streamed.
    """
    about = run.manifest if hasattr(run, "manifest") else read_manifest(Path(run))
    if "streamed" not in about:
        raise EscalaError("that run was not streamed: repeat it with escala.rerun")
    with own("the streamed run" if hasattr(run, "manifest") else run, "run", AGAIN):
        told, options = about["workload"], with_options(Options(), **about["options"])
        pair, machine = (str(about["scheduler"]), str(about["shutdown"])), Platform.from_spec(about["platform"])
        jobs, wanted = int(about["streamed"]["jobs_read_at_once"]), str(told["sha256"])
        where, how = as_read(told, path)
        how |= {name: getattr(options, name) for name in TAKEN}
    refuse_other_files(about, options)
    return stream(where, machine, *pair, out=out, force=force, jobs=jobs, progress=progress, sha256=wanted, **how)
