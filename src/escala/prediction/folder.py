"""The folder of a model of run times, as `escala predict` writes it and `model:DIR` names it. Nothing here is slow to
import."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.reading import guarded, read_all, read_json

PREFIX = "model:"
MANIFEST = "manifest.json"
KIND, FORMAT = "run time model", 1
AGAIN = "fit the model again with this version of Escala (escala predict)"


def is_model(estimate: Any) -> bool:
    """Is this estimate the name of a model?"""
    return isinstance(estimate, str) and estimate.startswith(PREFIX)


def folder_of(estimate: str) -> Path:
    """The folder that `model:DIR` names; EscalaError where it names none."""
    name = estimate.removeprefix(PREFIX)
    if not name:
        raise EscalaError(f"{estimate}: names no folder: write {PREFIX}DIR, the folder that escala predict wrote")
    return Path(name)


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a model's folder; EscalaError, one line, where the folder holds none of this version."""
    path = folder / MANIFEST
    if not path.is_file():
        raise EscalaError(f"{folder}: holds no model of run times: {PREFIX}DIR is a folder that escala predict wrote")
    told = read_json(path)
    if not isinstance(told, dict) or told.get("kind") != KIND:
        raise EscalaError(f"{folder}: is no model of run times: {PREFIX}DIR is a folder that escala predict wrote")
    if told.get("format") != FORMAT:
        raise EscalaError(f"{path}: format {quoted(told.get('format'))} is not {FORMAT}: {AGAIN}")
    return told


def text_of(folder: Path, manifest: dict[str, Any], name: str) -> str:
    """A file of the folder, as it was written; EscalaError where it is gone, or another."""
    path, files = folder / name, manifest.get("files")
    with guarded(path, "trees"):
        if not path.is_file():
            raise EscalaError(f"{path}: is not there: {AGAIN}")
        data = read_all(path)
        wanted = files.get(name) if isinstance(files, dict) else None
        if hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            raise EscalaError(f"{path}: is not what escala predict wrote there ({MANIFEST} has its hash): {AGAIN}")
        return data.decode("utf-8", errors="replace")


def model_digest(estimate: Any) -> dict[str, str]:
    """SHA-256 of the manifest of the model that an estimate names, by its path: it holds the hashes of all that the
    model is. {} for other estimates, and where nothing is there."""
    if not is_model(estimate):
        return {}
    path = folder_of(estimate) / MANIFEST
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest()} if path.is_file() else {}


def model_columns(estimate: Any) -> set[str]:
    """The columns of a log by which the model goes that an estimate names; none for other estimates."""
    return (
        {str(name) for name in manifest_of(folder_of(estimate)).get("columns") or ()} if is_model(estimate) else set()
    )
