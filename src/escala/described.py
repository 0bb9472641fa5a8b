"""What the folder of a policy says of itself: trained agents and teams by their manifests, tuned policies by
policy.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.policies.tuned import POLICY_FILE
from escala.reading import read_json, read_toml

MANIFEST = "manifest.json"
EXPORTED = ("exported agent", "exported team")
AGENTS = ("agent", "team", *EXPORTED)
POLICY = "tuned policy"


@dataclass(frozen=True)
class Contents:
    """A policy's folder. kind: one of AGENTS, or POLICY; manifest: of an agent, or policy.toml as a dictionary."""

    folder: Path
    kind: str
    manifest: Mapping[str, Any]

    @property
    def what(self) -> str:
        """What it is, in a few words."""
        if self.kind == POLICY:
            parts = [
                f"{key}={self.manifest[key]}"
                for key in ("guard", "estimate", "order_estimate")
                if self.manifest.get(key)
            ]
            return ":".join([str(self.manifest.get("formula")), *parts])
        made = ", ".join(str(self.manifest[key]) for key in ("env_id", "algorithm", "preset") if self.manifest.get(key))
        return made or "no more is said"

    @property
    def trained_on(self) -> str:
        """The jobs behind it, in a few words."""
        log = self.manifest.get("log" if self.kind == POLICY else "workload")
        if not isinstance(log, Mapping) or not log:
            return "lists of jobs that were drawn" if self.kind != POLICY else "not said"
        where = self.manifest.get("platform") if self.kind != POLICY else log.get("platform")
        on = where.get("name") if isinstance(where, Mapping) else where
        name = log.get("name") or " to ".join(str(log[key]) for key in ("first", "last") if key in log)
        return f"{name or 'a log'}, {log.get('jobs', '?')} jobs{f', on {on}' if on else ''}"

    @property
    def version(self) -> str:
        """Of Escala, when it was made."""
        versions = self.manifest.get("versions")
        own = versions.get("escala") if isinstance(versions, Mapping) else None
        return str(own or self.manifest.get("escala") or "not said")

    @property
    def pulled_from(self) -> str:
        """Where `escala policy pull` took it from, OWNER/NAME@REVISION; "" where it did not."""
        path = self.folder / MANIFEST
        told = read_json(path) if path.is_file() else None
        noted = told.get("pulled") if isinstance(told, dict) else None
        return f"{noted.get('repository')}@{noted.get('revision')}" if isinstance(noted, Mapping) else ""


def contents(folder: str | os.PathLike[str]) -> Contents:
    """What lies in a folder; EscalaError where that is no policy, agent or team."""
    source = Path(folder)
    if (source / POLICY_FILE).is_file():
        return Contents(source, POLICY, read_toml(source / POLICY_FILE))
    if not (source / MANIFEST).is_file():
        raise EscalaError(f"{source}: holds no policy: give a folder that escala tune, frontier, train or export wrote")
    manifest = read_json(source / MANIFEST)
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind not in AGENTS:
        raise EscalaError(
            f"{source}: holds {quoted(kind)}, and no policy: give a folder that escala tune, frontier, train or "
            "export wrote"
        )
    return Contents(source, str(kind), manifest)
