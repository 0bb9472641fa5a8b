"""Sending a policy's folder to a hub of models, and taking one from there. Tokens and addresses are huggingface_hub's
own: HF_TOKEN, HF_ENDPOINT, `hf auth login`."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from escala.described import MANIFEST, Contents, contents
from escala.errors import EscalaError, one_line, quoted
from escala.extras import missing
from escala.sharing.card import FILE, card
from escala.sharing.files import check, check_names, files_of
from escala.writing import output_folder
from escala.writing.sealing import foreign, sign

SHARED, PULLED = "policy push", "policy pull"
REPO = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
LICENCE = re.compile(r"[a-z0-9.-]{1,40}")
T = TypeVar("T")


def push(folder: str | os.PathLike[str], repo: str, *, licence: str | None = None, private: bool = False) -> str:
    """Send a policy's folder with its card and the hash of every file to the repository OWNER/NAME, which is made where
    it is not there.

    Returns the revision. EscalaError, one line: no policy, files that are no part of one, no such owner, no right to
    write, no answer.
    """
    hub = _hub()
    _check_repo(repo)
    if licence is not None and LICENCE.fullmatch(licence) is None:
        raise EscalaError(f"licence {quoted(licence)}: give its short name, such as mit, apache-2.0 or cc-by-4.0")
    found = contents(folder)
    with tempfile.TemporaryDirectory() as aside:
        work = staged(found, repo, licence, Path(aside) / "policy")

        def send() -> str:
            api = hub.HfApi()
            api.create_repo(repo, private=private, exist_ok=True)
            done = api.upload_folder(
                repo_id=repo, folder_path=work, commit_message=f"A {found.kind} of Escala {found.version}"
            )
            return str(done.oid)

        return _asked(hub, repo, send)


def staged(found: Contents, repo: str, licence: str | None, work: Path) -> Path:
    """What is sent, in a folder of its own: the files, the card, and the hash of each in the manifest."""
    for name in files_of(found.folder):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found.folder / name, work / name)
    check(Contents(work, found.kind, found.manifest))
    (work / FILE).write_text(card(found, repo, licence), encoding="utf-8")
    sign(work, SHARED)
    return work


def pull(
    repo: str, out: str | os.PathLike[str], *, revision: str | None = None, force: bool = False
) -> tuple[Contents, str]:
    """Take the policy of the repository OWNER/NAME into a new folder, all of it or nothing; gives what it is, and the
    commit.
    revision: a branch, tag or commit.

    Every file must be of a kind that policies have, and as its hash in the manifest says; then it is read as a policy,
    and nothing in it is run. EscalaError, one line: it is not, no such repository or revision, no answer, a folder that
    holds something else.
    """
    hub = _hub()
    _check_repo(repo)
    with output_folder(Path(out), PULLED, force=force) as work, tempfile.TemporaryDirectory() as aside:
        assert work is not None

        def take() -> str:
            about = hub.HfApi().model_info(repo, revision=revision, files_metadata=True)
            names = {one.rfilename: int(one.size or 0) for one in about.siblings if not one.rfilename.startswith(".")}
            check_names(repo, names)
            for name in names:
                hub.hf_hub_download(repo, name, revision=about.sha, local_dir=aside)
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(aside) / name, work / name)
            return str(about.sha)

        sha = _asked(hub, repo, take)
        with _named(work, repo):
            if (why := foreign(work, SHARED, strict=True)) is not None:
                raise EscalaError(
                    f"{work}: {why}: it was not sent by escala policy push, or was changed since: ask its author"
                )
            check(contents(work))
        _note(work / MANIFEST, repo, sha)
    return contents(out), sha


def _note(manifest: Path, repo: str, sha: str) -> None:
    """Where it was taken from, in the manifest."""
    told = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(
        json.dumps({**told, "pulled": {"repository": repo, "revision": sha}}, indent=1) + "\n", encoding="utf-8"
    )


@contextmanager
def _named(work: Path, repo: str) -> Iterator[None]:
    """Errors name the repository, and no folder that is gone when they are read."""
    try:
        yield
    except EscalaError as error:
        raise EscalaError(str(error).replace(str(work), repo)) from error


def _hub() -> Any:
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise missing(error, "sharing", "share") or error from error
    return huggingface_hub


def _check_repo(repo: str) -> None:
    if REPO.fullmatch(repo) is None:
        raise EscalaError(f"repository {quoted(repo)}: give OWNER/NAME, as it stands on the hub")


def _asked(hub: Any, repo: str, ask: Callable[[], T]) -> T:
    """What the hub gives; EscalaError, one line, where it refuses or does not answer."""
    known = (
        ("RevisionNotFoundError", "has no such revision: check --revision"),
        ("GatedRepoError", "is open to those whom its owner lets in: ask there, and log in with hf auth login"),
        (
            "RepositoryNotFoundError",
            "no such repository, or it is not open to you: check the name, log in with hf auth login",
        ),
    )
    try:
        return ask()
    except EscalaError:
        raise
    except Exception as error:  # of the library, of the ones it stands on, of the network
        for name, why in known:
            if isinstance(error, getattr(hub.errors, name)):
                raise EscalaError(f"{repo}: {why}") from error
        raise EscalaError(
            f"{repo}: the hub did not do it ({type(error).__name__}: {one_line(str(error))[:160]})"
        ) from error
