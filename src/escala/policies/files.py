"""The files in which a part of what is run stands: a run is the same again only while they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from escala.errors import EscalaError
from escala.options import Options
from escala.policies.plugins import GROUPS, code_of, is_installed, is_plugin, origins
from escala.policies.queues import FILE
from escala.policies.slurm_names import ESTIMATE, QUEUE, split_slurm, with_paths
from escala.policies.tuned import PREFIX, digests_in
from escala.prediction.folder import model_digest
from escala.registry import is_trained, trained_digests
from escala.slurm.named import is_slurm

AGENT = "agent:"


def policy_files(scheduler: Any, shutdown: Any, options: Options) -> dict[str, str]:
    """SHA-256 of the files in which a part of what is run stands (score files, tuned policies, trained agents, models
    of run times), by path; and the versions of other packages' policies, by name."""
    estimates = options.estimate, options.order_estimate
    found = {path: digest for one in (scheduler, shutdown) for path, digest in digests_of(one).items()}
    return {
        **found,
        **origins(scheduler, shutdown),
        **{path: digest for one in estimates for path, digest in model_digest(one).items()},
    }


def digests_of(name: Any) -> dict[str, str]:
    """SHA-256 of the files that say all of a policy of this name, by path; {} for others. EscalaError where an agent's
    cannot be read."""
    if not isinstance(name, str):
        return {}
    if is_slurm(name):
        parts = split_slurm(name)[1]
        score = parts.get(QUEUE, "")
        own = digests_in(score if score.startswith(PREFIX) else f"easy:queue={score}")
        return {**own, **model_digest(parts.get(ESTIMATE))}
    return trained_digests(name) if is_trained(name) else digests_in(name)


def identity(name: Any, role: str) -> list[Any] | None:
    """All that decides under a name, wherever its files lie: the name without folders, the hashes of what they hold,
    and of another package's policy its version and its code. None for an option without a value. role: of
    `escala.policies.plugins.GROUPS`.

    EscalaError where a file or a package is not there."""
    if is_plugin(name):
        return [name, *code_of(name, role)]
    if not isinstance(name, str):
        return None
    digests = list((model_digest(name) if role == "predictor" else digests_of(name)).values())
    if (role == "predictor" and digests) or name.startswith(PREFIX):
        return [name.partition(":")[0], *digests]
    if is_trained(name):
        return [name[: name.rindex(AGENT)], *digests]
    return [with_paths(name, lambda path: "") if is_slurm(name) else FILE.sub("", name), *digests]


def identities(names: Iterable[str]) -> dict[str, str]:
    """Of those names that do not say all of a policy: the hashes of the files, the version and the code that do. A name
    of what is not there has none: it is refused where it is made."""
    found = dict[str, str]()
    for name in names:
        with suppress(EscalaError):
            told = [part for role in GROUPS if is_installed(name, role) for part in code_of(name, role)] or [
                *digests_of(name).values()
            ]
            if told:
                found[name] = " ".join(told)
    return found


def refuse_other_files(about: Mapping[str, Any], options: Options) -> None:
    """EscalaError where such a file is not what it was in the run of this manifest."""
    files = policy_files(about["scheduler"], about["shutdown"], options)
    for path, digest in about.get("policy_files", {}).items():
        if files.get(path) != digest:
            raise EscalaError(
                f"{path} is not what it was in that run (manifest: policy_files): give it back its content, or "
                "simulate anew"
            )
