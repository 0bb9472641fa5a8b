"""Whoever writes something nearly right is told what would be: every verb and every option of the program, from its own registry."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from escala.cli.app import app
from tests.cli.program import Escala


def _verbs(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    parts = getattr(command, "commands", {})
    return [(path, command), *(found for name, part in parts.items() for found in _verbs(part, (*path, name)))]


VERBS = _verbs(typer.main.get_command(app))


def test_there_are_verbs() -> None:
    assert len(VERBS) > 15


@pytest.mark.parametrize(("path", "command"), VERBS, ids=[" ".join(path) or "escala" for path, _ in VERBS])
def test_help_of_every_verb(path: tuple[str, ...], command: Any, escala_: Escala) -> None:
    outcome = escala_(*path, "--help")
    assert outcome.status == 0 and outcome.err == "" and outcome.out.startswith("Usage: escala")
    assert command.help and command.help.partition(".")[0] in " ".join(outcome.out.split())


@pytest.mark.parametrize("path", [path for path, command in VERBS if hasattr(command, "commands")], ids=str)
def test_nothing_given_is_answered_with_the_verbs(path: tuple[str, ...], escala_: Escala) -> None:
    outcome = escala_(*path)
    assert outcome.status == 0 and "Commands:" in outcome.out and outcome.err == ""


@pytest.mark.parametrize("path", [path for path, _ in VERBS if path], ids=" ".join)
def test_a_misspelt_verb_is_answered_with_the_near_one(path: tuple[str, ...], escala_: Escala) -> None:
    *before, verb = path
    outcome = escala_(*before, verb[:-1])  # without its last letter
    assert outcome.status == 2 and outcome.err.count("\n") == 1
    assert f"'{verb}'" in outcome.err and "did you mean" in outcome.err.lower() and "--help" in outcome.err


@pytest.mark.parametrize(("path", "command"), VERBS, ids=[" ".join(path) or "escala" for path, _ in VERBS])
def test_a_misspelt_option_is_answered_with_the_near_one(path: tuple[str, ...], command: Any, escala_: Escala) -> None:
    for option in (name for parameter in command.params for name in parameter.opts if name.startswith("--")):
        outcome = escala_(*path, f"{option}x")
        assert outcome.status == 2 and outcome.err.count("\n") == 1, outcome.err
        assert option in outcome.err.partition("did you mean ")[2], outcome.err
