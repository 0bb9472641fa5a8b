"""The verbs under `policy`: folders of policies with a card, sent to a hub of models, taken from there, and listed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escala.cli import options as opt
from escala.cli.interrupt import interruptible
from escala.cli.tables import rows_table
from escala.cli.terminal import emit

if TYPE_CHECKING:
    from escala.sharing import Contents

Repository = Annotated[str, typer.Argument(metavar="REPO", help="OWNER/NAME on the hub", show_default=False)]


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `policy`."""
    group = typer.Typer(
        help="Folders of policies: sent to a hub, taken from there, listed.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.callback()(lambda: None)
    group.command("push")(push)
    group.command("pull")(pull)
    group.command("list")(list_)
    app.add_typer(group, name="policy")


def push(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="a tuned policy, an agent or a team", show_default=False)
    ],
    repo: Repository,
    licence: Annotated[
        str | None, typer.Option("--license", metavar="NAME", help="its licence by its short name, such as mit")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="a new repository is shown to its owner alone")] = False,
    as_json: opt.Json = False,
) -> None:
    """Send a policy's folder to the Hugging Face hub, with a card made from what the folder says of itself.

    Files to go on with a training stay here. Log in first with hf auth login, or set HF_TOKEN.
    """
    from escala import sharing

    revision = interruptible(lambda: sharing.push(folder, repo, licence=licence, private=private))
    emit(
        as_json,
        {"repository": repo, "revision": revision},
        f"Sent to {repo} as {revision}: escala policy pull {repo} --out DIR",
    )


def pull(
    repo: Repository,
    out: opt.OutNeeded,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="R", help="a branch, tag or commit", show_default=False)
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Take a policy from the Hugging Face hub into a folder: every file by its hash, and nothing in it is run."""
    from escala import sharing

    found, taken = interruptible(lambda: sharing.pull(repo, out, revision=revision, force=force))
    row = _row(found)
    emit(
        as_json,
        {**row, "repository": repo, "revision": taken},
        rows_table([row]),
        f"What is known of it: {out / 'README.md'}",
    )


def list_(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="searched three levels deep")] = Path("."),
    as_json: opt.Json = False,
) -> None:
    """List the policies in folders here: tuned policies, agents, teams."""
    from escala.sharing import listed

    rows = [_row(found) for found in listed(folder)]
    emit(as_json, rows, rows_table(rows) if rows else f"No policies in {folder} and three levels below.")


def _row(found: Contents) -> dict[str, str]:
    told = {"folder": str(found.folder), "kind": found.kind, "what": found.what, "trained on": found.trained_on}
    return {**told, "escala": found.version}
