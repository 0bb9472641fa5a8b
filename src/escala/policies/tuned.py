"""Policies in folders, as `escala tune` writes them: `policy:DIR` is the scheduler that `policy.toml` in this folder names."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.policies.queues import score_digests, within_folder
from escala.reading import guarded, read_text

PREFIX = "policy:"
POLICY_FILE = "policy.toml"
FORMAT = 1
GUARD = ":guard="


def parts_of(name: str) -> tuple[str, str]:
    """(formula, guard) of a scheduler's name; the guard is "" where it has none."""
    formula, _, guard = name.partition(GUARD)
    return formula, guard


def rule_in(name: str) -> str:
    """The scheduler's name that stands in the folder of `policy:DIR`; EscalaError where there is none, or one of another version."""
    path = Path(name.removeprefix(PREFIX)) / POLICY_FILE
    with guarded(path, "a tuned policy"):
        told = _read(path)
        if told.get("format") != FORMAT:
            raise EscalaError(f"{path}: format {quoted(told.get('format'))} is not {FORMAT}: tune it again with this version of Escala")
        formula, guard = told.get("formula"), told.get("guard", "")
        if not isinstance(formula, str) or not isinstance(guard, str) or not formula:
            raise EscalaError(f'{path}: formula and guard are needed as texts, such as formula = "easy:queue=saf" and guard = "24h"')
        if formula.startswith(PREFIX):
            raise EscalaError(f"{path}: formula {quoted(formula)} is a folder: name a scheduler, such as easy:queue=saf")
    return within_folder(formula + (f"{GUARD}{guard}" if guard else ""), path.parent)


def digests_in(name: str) -> dict[str, str]:
    """SHA-256 of the files that say all of a tuned policy `policy:DIR`, or of a scheduler with score files, by path; {} for other names."""
    if not name.startswith(PREFIX):
        return score_digests(name)
    path = Path(name.removeprefix(PREFIX)) / POLICY_FILE
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest(), **score_digests(rule_in(name))} if path.is_file() else {}


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise EscalaError(f"{path}: no such file: policy:DIR is a folder that escala tune wrote")
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise EscalaError(f"{path}: not valid TOML ({error}): mend the file") from None
