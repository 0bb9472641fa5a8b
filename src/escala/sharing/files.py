"""What lies in the folder of a policy, whether it is whole, and whether it is safe to take from others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from escala.described import EXPORTED, MANIFEST, POLICY, Contents, contents
from escala.envs.exported import load_exported
from escala.errors import EscalaError, quoted
from escala.extras import lacking
from escala.loading import load_agent
from escala.policies.compose import scheduler
from escala.policies.queues import FILE
from escala.policies.tuned import POLICY_FILE, PREFIX, shutdown_in

ENDINGS = (".toml", ".json", ".csv", ".html", ".md", ".txt", ".npz", ".pt")
"""Files of a policy. Those with weights (.npz, .pt) are read as plain numbers: nothing in them is run."""
MOST_FILES, MOST_BYTES = 200, 1 << 30
ASIDE = ("checkpoint.npz", "search.npz")
"""What a training goes on with, and a policy does not need."""
DEEP = 3


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
    """EscalaError where files (name -> bytes) are of a kind that is no part of a policy, too many, or too large
    together."""
    for name in sizes:
        if not name.endswith(ENDINGS) or name.startswith("/") or ".." in name.split("/"):
            raise EscalaError(
                f"{where}: holds {quoted(name)}, which is no part of a policy ({', '.join(ENDINGS)}): leave it out"
            )
    if len(sizes) > MOST_FILES or sum(sizes.values()) > MOST_BYTES:
        raise EscalaError(f"{where}: more than {MOST_FILES} files or {MOST_BYTES >> 20:,} MiB: no policy is that large")


def check(found: Contents) -> None:
    """EscalaError where the policy cannot be used as it lies there: read as --scheduler does, weights by their hash,
    and nothing is run."""
    if found.kind == POLICY:
        scheduler(f"{PREFIX}{found.folder}")
        if "shutdown" in found.manifest:
            shutdown_in(f"{PREFIX}{found.folder}")
        for file in FILE.findall(str(found.manifest)):
            if Path(file).is_absolute() or ".." in Path(file).parts:
                raise EscalaError(
                    f"{found.folder / POLICY_FILE}: names {quoted(file)} outside its folder: copy that file into it"
                )
    elif found.kind == "team":
        if not lacking("agents"):
            from escala.agents import load_team

            load_team(found.folder)
    elif found.kind in EXPORTED:
        load_exported(found.folder)
    elif not lacking("agents"):
        load_agent(found.folder)


def listed(folder: str | os.PathLike[str] = ".") -> list[Contents]:
    """The policies in a folder and below it, three levels deep, by their paths. EscalaError where there is no such
    folder."""
    top = Path(folder)
    if not top.is_dir():
        raise EscalaError(f"{top}: no such folder: check the path")
    found = []
    for where, inner, names in os.walk(top):
        path = Path(where)
        inner[:] = (
            sorted(name for name in inner if not name.startswith("."))
            if len(path.relative_to(top).parts) < DEEP
            else []
        )
        if MANIFEST in names or POLICY_FILE in names:
            try:
                found.append(contents(path))
                inner.clear()  # a team's agents, a policy's models
            except EscalaError:
                continue  # another output
    return found
