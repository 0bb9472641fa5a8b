"""How Escala knows its own output from what a user changed, added or put in its place: by a hash of each file, never by
names."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MARK = "manifest.json"
SEAL = ("verb", "files")  # what `sign` notes in a manifest
PAGE, INDEX = "report.html", "index.html"  # the latter of campaigns and entries
JUDGED = "judged.json"
_SEAL = re.compile(rb"\n<!-- written by escala, sha256 ([0-9a-f]{64}) -->\n\Z")


def entries(folder: Path) -> list[str]:
    """All files and links below a folder, by their relative paths; links are not followed."""
    found = []
    for where, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(where, name))]
        found += [os.path.relpath(os.path.join(where, name), folder) for name in (*files, *links)]
    return sorted(Path(name).as_posix() for name in found)


def stray(folder: Path) -> str | None:
    """Something below a folder that leads out of it, or is no file: a link, a second name of a file, a pipe; None where
    nothing is."""
    for name in entries(folder):
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(folder / name)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                return name
    return None


def digest(path: Path) -> str:
    """SHA-256 of a file; of a link, of where it points to."""
    if path.is_symlink():
        return hashlib.sha256(b"link " + os.fsencode(os.readlink(path))).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_of_manifest(manifest: dict[str, Any]) -> str:
    told = {name: value for name, value in manifest.items() if name != "files"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def sign(work: Path, verb: str) -> None:
    """Note in the manifest who wrote what: verb, and the hash of each file (of the manifest, of all but these
    hashes)."""
    path = work / MARK
    manifest = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    signed = sealed(manifest, verb, {name: digest(work / name) for name in entries(work) if name != MARK})
    path.write_text(json.dumps(signed, indent=1) + "\n", encoding="utf-8")


def sealed(manifest: Mapping[str, Any], verb: str, files: Mapping[str, str]) -> dict[str, Any]:
    """A manifest with what `sign` notes in it. files: their hashes, by their relative paths."""
    told = {"escala": _version(), **manifest, "verb": verb}
    told.pop("files", None)
    return {**told, "files": {**files, MARK: _digest_of_manifest(told)}}


def _version() -> str:
    from importlib.metadata import version

    return version("escala")


def foreign(folder: Path, verb: str, strict: bool = False) -> str | None:
    """Why the folder is not an untouched output of this verb; None if it is. strict: what Escala writes into it later,
    and knows by itself, has to be as the manifest says, too."""
    try:
        manifest = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return "holds files that Escala did not write"
    if not isinstance(manifest, dict) or not _ours(manifest):
        return "holds files that Escala did not write"
    files, wrote = manifest.get("files"), f"escala {str(manifest.get('verb'))[:40]}"
    if not isinstance(files, dict):
        return "keeps no hashes of its files (an older version wrote it), so that changed ones could not be told"
    if files.get(MARK) != _digest_of_manifest(manifest):
        return f"holds a {MARK} that was changed since {wrote} wrote it"
    for name in entries(folder):
        if name == MARK or (not strict and name in _LATER and _LATER[name](folder / name)):
            continue
        if name not in files:
            return f"holds {name[:200]!r}, which {wrote} did not write there"
        if digest(folder / name) != files[name]:
            return f"holds {name[:200]!r}, which was changed since {wrote} wrote it"
    return None if manifest.get("verb") == verb else f"holds what {wrote} wrote"


def written(folder: Path) -> set[str]:
    """The files below a folder that Escala wrote, and nobody has changed since."""
    try:
        manifest = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        manifest = None
    known = manifest.get("files") if isinstance(manifest, dict) and _ours(manifest) else None
    files: dict[str, Any] = known if isinstance(known, dict) else {}
    found = {
        name for name in entries(folder) if name != MARK and name in files and digest(folder / name) == files[name]
    }
    found |= {name for name, is_own in _LATER.items() if is_own(folder / name)}
    return found | ({MARK} if files and files.get(MARK) == _digest_of_manifest(manifest) else set())


def _ours(manifest: Mapping[str, Any]) -> bool:
    """Is it a manifest of Escala's? Agents of older versions name it among their packages."""
    packages = manifest.get("versions")
    return "escala" in manifest or (isinstance(packages, dict) and "escala" in packages)


def sealed_text(page: str) -> str:
    """A page with a last line that holds its own hash, by which it is known to be unchanged."""
    body = page.rstrip("\n")
    return f"{body}\n<!-- written by escala, sha256 {hashlib.sha256(body.encode()).hexdigest()} -->\n"


def own_page(path: Path) -> bool:
    """Is this a page of `escala report` that nobody changed? It can be written again."""
    if path.is_symlink() or not path.is_file():
        return False
    text = path.read_bytes()
    seal = _SEAL.search(text[-200:])
    return (
        seal is not None and hashlib.sha256(text[: len(text) - len(seal.group())]).hexdigest() == seal.group(1).decode()
    )


def sealed_document(told: Mapping[str, Any]) -> dict[str, Any]:
    """A document with its own hash, by which it is known to be unchanged."""
    plain = {name: value for name, value in told.items() if name != "sha256"}
    return {**plain, "sha256": hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()}


def own_document(path: Path) -> bool:
    """Is this a document of `sealed_document` that nobody changed?"""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        told = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and "sha256" in told and sealed_document(told) == told


_LATER = {PAGE: own_page, JUDGED: own_document}
"""What Escala writes into a folder that is whole already, and knows by itself: it can be written again."""
