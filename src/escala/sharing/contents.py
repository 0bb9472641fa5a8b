"""What lies in the folder of a policy, whether it is whole, and whether it is safe to take from others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from escala.envs.exported import load_exported
from escala.errors import EscalaError, quoted
from escala.extras import lacking
from escala.loading import load_agent
from escala.policies.compose import scheduler
from escala.policies.queues import FILE
from escala.policies.tuned import POLICY_FILE, PREFIX, shutdown_in
from escala.reading import read_json, read_toml

MANIFEST = "manifest.json"
EXPORTED = ("exported agent", "exported team")
AGENTS = ("agent", "team", *EXPORTED)
POLICY = "tuned policy"
ENDINGS = (".toml", ".json", ".csv", ".html", ".md", ".txt", ".npz", ".pt")
"""Files of a policy. Those with weights (.npz, .pt) are read as plain numbers: nothing in them is run."""
MOST_FILES, MOST_BYTES = 200, 1 << 30
ASIDE = ("checkpoint.npz", "search.npz")
"""What a training goes on with, and a policy does not need."""
DEEP = 3


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
            parts = [f"{key}={self.manifest[key]}" for key in ("guard", "estimate", "order_estimate") if self.manifest.get(key)]
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
        raise EscalaError(f"{source}: holds {quoted(kind)}, and no policy: give a folder that escala tune, frontier, train or export wrote")
    return Contents(source, str(kind), manifest)


def files_of(folder: Path) -> list[str]:
    """The files that are shared, by their paths in the folder: all but hidden ones and those to go on with a training.

    Raises EscalaError where one is a link, or of a kind that is no part of a policy.
    """
    found = []
    for where, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in [*names, *(one for one in inner if os.path.islink(os.path.join(where, one)))]:
            path = Path(where, name)
            if name.startswith(".") or name in ASIDE:
                continue
            if path.is_symlink():
                raise EscalaError(f"{path}: is a link: only files of the folder itself are shared")
            found.append(path.relative_to(folder).as_posix())
    check_names(str(folder), dict.fromkeys(found, 0))
    return sorted(found)


def check_names(where: str, sizes: Mapping[str, int]) -> None:
    """EscalaError where files (name -> bytes) are of a kind that is no part of a policy, too many, or too large together."""
    for name in sizes:
        if not name.endswith(ENDINGS) or name.startswith("/") or ".." in name.split("/"):
            raise EscalaError(f"{where}: holds {quoted(name)}, which is no part of a policy ({', '.join(ENDINGS)}): leave it out")
    if len(sizes) > MOST_FILES or sum(sizes.values()) > MOST_BYTES:
        raise EscalaError(f"{where}: more than {MOST_FILES} files or {MOST_BYTES >> 20:,} MiB: no policy is that large")


def check(found: Contents) -> None:
    """EscalaError where the policy cannot be used as it lies there: read as --scheduler does, weights by their hash, and nothing is run."""
    if found.kind == POLICY:
        scheduler(f"{PREFIX}{found.folder}")
        if "shutdown" in found.manifest:
            shutdown_in(f"{PREFIX}{found.folder}")
        for file in FILE.findall(str(found.manifest)):
            if Path(file).is_absolute() or ".." in Path(file).parts:
                raise EscalaError(f"{found.folder / POLICY_FILE}: names {quoted(file)} outside its folder: copy that file into it")
    elif found.kind == "team":
        if not lacking("agents"):
            from escala.agents import load_team

            load_team(found.folder)
    elif found.kind in EXPORTED:
        load_exported(found.folder)
    elif not lacking("agents"):
        load_agent(found.folder)


def listed(folder: str | os.PathLike[str] = ".") -> list[Contents]:
    """The policies in a folder and below it, three levels deep, by their paths. EscalaError where there is no such folder."""
    top = Path(folder)
    if not top.is_dir():
        raise EscalaError(f"{top}: no such folder: check the path")
    found = []
    for where, inner, names in os.walk(top):
        path = Path(where)
        inner[:] = sorted(name for name in inner if not name.startswith(".")) if len(path.relative_to(top).parts) < DEEP else []
        if MANIFEST in names or POLICY_FILE in names:
            try:
                found.append(contents(path))
                inner.clear()  # a team's agents, a policy's models
            except EscalaError:
                continue  # another output
    return found
