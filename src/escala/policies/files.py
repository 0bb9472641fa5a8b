"""The files in which a part of what is run stands: a run is the same again only while they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from escala.errors import EscalaError
from escala.options import Options
from escala.policies.plugins import origins
from escala.policies.tuned import digests_in
from escala.prediction.folder import model_digest


def policy_files(scheduler: Any, shutdown: Any, options: Options) -> dict[str, str]:
    """SHA-256 of the files in which a part of what is run stands (score files, tuned policies, models of run times), by path; and the
    versions of other packages' policies, by name."""
    estimates = options.estimate, options.order_estimate
    found = {path: digest for one in (scheduler, shutdown) if isinstance(one, str) for path, digest in digests_in(one).items()}
    return {**found, **origins(scheduler, shutdown), **{path: digest for one in estimates for path, digest in model_digest(one).items()}}


def refuse_other_files(about: Mapping[str, Any], options: Options) -> None:
    """EscalaError where such a file is not what it was in the run of this manifest."""
    files = policy_files(about["scheduler"], about["shutdown"], options)
    for path, digest in about.get("policy_files", {}).items():
        if files.get(path) != digest:
            raise EscalaError(f"{path} is not what it was in that run (manifest: policy_files): give it back its content, or simulate anew")
