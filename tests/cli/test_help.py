"""Whoever writes something nearly right is told what would be: every verb and every option of the program, from its own
registry."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import escala
from escala.cli.app import app
from escala.cli.verbs import EXAMPLES, MODULES
from tests.cli.program import Escala

SOURCES = Path(escala.__file__).parent


def _verbs(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    parts = command.list_commands(None) if hasattr(command, "list_commands") else []
    return [
        (path, command),
        *(found for name in parts for found in _verbs(command.get_command(None, name), (*path, name))),
    ]


VERBS = _verbs(typer.main.get_command(app))
PATHS = {" ".join(path): command for path, command in VERBS if path}


def test_there_are_verbs() -> None:
    assert len(VERBS) > 15 and all(command is not None for _, command in VERBS)


def test_no_verb_is_left_out() -> None:
    """Whatever a module of the command line adds to the program stands in the table of verbs."""
    for path in (SOURCES / "cli").glob("*.py"):
        if "def add_to(" in path.read_text():
            assert path.stem in MODULES.values(), path


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_import_no_verb(arguments: list[str]) -> None:
    code = (
        "import sys, escala.cli\n"
        f"sys.argv = ['escala', *{arguments}]\n"
        "try: escala.cli.main()\n"
        "except SystemExit as ended: assert not ended.code\n"
        "print([m for m in sys.modules if m in {'rich', 'numpy', 'numba', 'polars'}], 'escala.cli.replay' in "
        "sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("[] False\n"), done.stderr


def test_the_names_of_policies_are_told_without_the_compiler() -> None:
    code = (
        "import sys; from escala.cli.app import run\n"
        "assert run(['policies', '--json']) == 0\n"
        "print([m for m in sys.modules if m in {'numba', 'escala.optimum', 'escala.kernel.state'}], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == "[]\n" and '"easy-wfp3"' in done.stdout


def test_every_public_name_of_the_policies_is_there() -> None:
    assert all(getattr(escala.policies, name) is not None for name in escala.policies.__all__)
    assert set(dir(escala.policies)) == set(escala.policies.__all__)
    with pytest.raises(AttributeError, match=r"'escala\.policies' has no attribute 'simulat'"):
        _ = escala.policies.simulat


@pytest.mark.parametrize(
    "path", [" ".join(path) for path, command in VERBS if path and not hasattr(command, "commands")]
)
def test_every_verb_ends_its_help_with_an_example_that_is_understood(path: str, escala_: Escala) -> None:
    example = EXAMPLES[path]
    assert f"Example:\n  {example}\n" in escala_(*path.split(), "--help").out
    words = shlex.split(example)
    assert words[0] == "escala" and " ".join(words[1 : 1 + len(path.split())]) == path
    # raises where an option is unknown or one is missing
    PATHS[path].make_context(path, words[1 + len(path.split()) :])


def test_options_stand_in_groups(escala_: Escala) -> None:
    told = escala_("simulate", "--help").out
    assert re.findall(r"^(\w+):$", told, re.MULTILINE)[:5] == ["Arguments", "Options", "Output", "Rules", "Reading"]
    assert told.index("\nReading:") < told.index("--no-request")


def test_help_is_a_word_too(escala_: Escala) -> None:
    assert escala_("help") == escala_("--help") and escala_("help", "simulate") == escala_("simulate", "--help")
    assert "did you mean --help" in escala_("--hlep").err


def test_a_verb_of_a_group_is_found_without_its_group(escala_: Escala) -> None:
    assert "Did you mean 'workload describe'?" in escala_("describe").err
    assert "Did you mean 'help'?" in escala_("hlep").err
    assert "Did you mean 'simulate'?" in escala_("sim").err, "the beginning of a word goes before its like"
    assert "Did you mean 'report' or 'study replay'?" in escala_("rep").err


def _named(text: str) -> set[str]:
    """What stands behind the program's name, in quotes of code or as a sentence of help: one word, or two."""
    return {found.strip() for found in re.findall(r"\bescala ((?:[a-z]+(?:-[a-z]+)*(?![\w.]) ?){1,2})", text)}


def test_every_verb_that_is_named_exists() -> None:
    """In the messages and help texts of the program, and between the quotes of the pages."""
    wrong = []
    for path in sorted(SOURCES.rglob("*.py")):
        for text in re.findall(r'"([^"\n]*\bescala [^"\n]*)"', path.read_text(encoding="utf-8")):
            wrong += [f"{path.name}: {text}" for named in _named(text) if not _exists(named)]
    root = SOURCES.parents[1]
    pages = [root / "README.md", *(path for path in (root / "docs").rglob("*.md") if "_build" not in path.parts)]
    for path in pages:
        for text in re.findall(r"`(escala [^`\n]+)`", path.read_text(encoding="utf-8")):
            wrong += [f"{path.name}: {text}" for named in _named(text) if not _exists(named)]
    assert not wrong


def _exists(named: str) -> bool:
    """A verb, a group, or a verb of a group."""
    first, _, second = named.partition(" ")
    return first in PATHS and (not hasattr(PATHS[first], "commands") or not second or named in PATHS)


@pytest.mark.parametrize(("path", "command"), VERBS, ids=[" ".join(path) or "escala" for path, _ in VERBS])
def test_help_of_every_verb(path: tuple[str, ...], command: Any, escala_: Escala) -> None:
    outcome = escala_(*path, "--help")
    assert outcome.status == 0 and outcome.err == "" and outcome.out.startswith("Usage: escala")
    assert command.help and " ".join(command.help.partition(".")[0].split()) in " ".join(outcome.out.split())


@pytest.mark.parametrize("path", [path for path, command in VERBS if hasattr(command, "commands")], ids=str)
def test_nothing_given_is_answered_with_the_verbs(path: tuple[str, ...], escala_: Escala) -> None:
    outcome = escala_(*path)
    assert outcome.status == 0 and outcome.err == ""
    assert all(verb in outcome.out for verb in dict(VERBS)[path].list_commands(None))


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
