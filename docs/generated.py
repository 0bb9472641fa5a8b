"""Pages written from the program itself: its names, and the help of its verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import typer

from escala.cli.app import app
from escala.cli.episode import NAMES, option_lines
from escala.cli.policies import (
    IN_FOLDERS,
    LETTERS,
    ROLLOUT_EXAMPLE,
    ROLLOUT_OPTIONS,
    SHUTDOWNS,
    TRAINED,
    generator_lines,
    scheduler_lines,
)
from escala.foresight import known_by_name


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows])


def _example(line: str) -> str:
    """A line whose last word is code."""
    words, _, code = line.rpartition(" ")
    return f"{words} `{code}`."


def _policies() -> str:
    schedulers = [(f"`{name}`", what) for name, what in (scheduler_lines() | IN_FOLDERS).items()]
    options = [(f"`{name}`", what) for name, what in ROLLOUT_OPTIONS.items()]
    shutdowns = [(f"`{name}`", known_by_name(name), what) for name, what in (SHUTDOWNS | TRAINED).items()]
    generators = [(f"`{name}`", what, f"`{settings}`") for name, (what, settings) in generator_lines().items()]
    return "\n\n".join(
        (
            *("## Schedulers", LETTERS + ".", _table(("name", "what"), schedulers)),
            *("## Options of rollout", _example(ROLLOUT_EXAMPLE), _table(("option", "what"), options)),
            *("## Shutdown policies", _table(("name", "knows of the future", "what"), shutdowns)),
            *("## Generators", _table(("name", "what", "settings"), generators)),
        )
    )


def _environments() -> str:
    head = ("option", "what it is for", "what it may be")
    tables = {name: [(f"`{option}`", *words) for option, *words in option_lines(name)] for name in NAMES}
    return "\n\n".join(f"### Options of {name}\n\n{_table(head, rows)}" for name, rows in tables.items())


def _verbs(command: Any, path: str) -> list[tuple[str, str]]:
    """Every verb below `command`, and its help."""
    context = click.Context(
        command, info_name=path, terminal_width=100, max_content_width=100, help_option_names=["-h", "--help"]
    )
    found = [(path, command.get_help(context))]
    for name, part in getattr(command, "commands", {}).items():
        found += _verbs(part, f"{path} {name}")
    return found


def _command_line() -> str:
    verbs = _verbs(typer.main.get_command(app), "escala")
    return "\n\n".join(f"## {path}\n\n```text\n{help_}\n```" for path, help_ in verbs)


def write(folder: Path) -> None:
    """Write the pages into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policies.md").write_text(_policies() + "\n", encoding="utf-8")
    (folder / "environments.md").write_text(_environments() + "\n", encoding="utf-8")
    (folder / "command-line.md").write_text(_command_line() + "\n", encoding="utf-8")
