"""Pieces of verbs that work for minutes: the same command goes on with those that an ended run has finished."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from escala.cli.replay import models_in
from escala.cli.terminal import remark
from escala.writing import Pieces


def pieces_of(
    folder: Path | None, log: Any, machine: Any, policies: Sequence[str], shared: bool = False, **told: Any
) -> Pieces:
    """Pieces beside an output folder. policies: names that stand for what may change (trained agents); shared: see
    `Pieces`; told: the other options."""
    from escala.policies.files import identities
    from escala.policies.pairs import digest_of
    from escala.source import source_digest

    about = {
        "source": source_digest(),
        "jobs": digest_of(log),
        "platform": machine.spec(),
        "identity": identities(policies),
    }
    about |= {"models": models_in(told)}
    return Pieces(folder, about | told, shared)


def what_is_kept(out: Path | None, pieces: Pieces) -> str | None:
    """For a verb that was ended from outside: what of it is kept, and how to go on; None: nothing of this run."""
    if not pieces.done:
        return None
    return f"what was finished (pieces: {len(pieces.done)}) is kept beside {out}: the same command goes on"


def tell_found(pieces: Pieces) -> None:
    """A remark on what an interrupted run had finished."""
    if pieces.found:
        remark(f"pieces kept from an interrupted run: {len(pieces.found)}")
