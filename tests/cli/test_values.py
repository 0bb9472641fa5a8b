"""Values of the command line are taken as Typer would take them, without what it loads for that."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from escala.cli import verbs
from escala.cli.values import taken_plainly

GIVEN: dict[type, list[Any]] = {
    str: ["", "easy", "-1", "ä", b"raw", 7],
    bool: [True, False, "yes", "no", "", "maybe"],
    int: ["7", "-7", "007", "", " 7", "7.0", "7.5", "1_000", "1e3", "x", "9" * 30, "٣", 3, True, 2.0],
    float: ["7", "-0.5", "007.50", ".5", "5.", "", " 7", "1_0.5", "1e3", "inf", "nan", "x", "9" * 30, "0.1", 3, 0.5],
    Path: [".", "no/such/file", "", "~", "a\0b", Path("x"), 7],
}


def _parameters() -> Iterator[Any]:
    """Of all verbs, as Typer made them."""
    for command in _commands():
        yield from (one for one in command.params if "process_value" not in vars(one))


def _commands() -> Iterator[Any]:
    for module in sorted(set(verbs.MODULES.values())):
        for command in verbs._loaded(module).values():
            yield command
            yield from getattr(command, "commands", {}).values()


def _outcome(parameter: Any, context: Any, value: Any) -> tuple[type, str]:
    try:
        found = parameter.process_value(context, value)
    except Exception as error:
        return type(error), str(error)
    return type(found), repr(found)


@pytest.mark.parametrize("readable", [True, False])
def test_every_option_takes_what_typer_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    (tmp_path / "there").write_text("x")
    monkeypatch.setattr(os, "access", lambda *_: readable)
    seen = 0
    command = next(_commands())
    context = type(command).context_class(command, info_name="x")
    for parameter in _parameters():
        annotation = parameter.type_descriptor.annotation
        kind = getattr(annotation, "__args__", (annotation,))[0]
        values = [None, *GIVEN[kind], str(tmp_path / "there")]
        if parameter.multiple or parameter.nargs == -1:
            values = [None, [], (), *([one] for one in values), values[1:3], "bare"]
        before = [_outcome(parameter, context, value) for value in values]
        taken_plainly(parameter)
        assert "process_value" in vars(parameter), f"{parameter.name}: {annotation} goes Typer's own way"
        assert [_outcome(parameter, context, value) for value in values] == before, parameter.name
        seen += 1
    assert seen > 600


@pytest.mark.parametrize(
    "words", [["simulate", "{log}", "--platform", "1x4"], ["doctor"], ["workload", "describe", "{log}"]]
)
def test_a_run_that_goes_well_needs_no_pydantic(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,runtime_s,cores\n1,0,5,1\n")
    code = "import sys; sys.argv = ['escala', *sys.argv[1:]]; from escala.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass\nprint([one for one in sys.modules if one.startswith('pydantic')])"
    arguments = [one.format(log=tmp_path / "jobs.csv") for one in words]
    outcome = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert outcome.stdout.splitlines()[-1] == "[]", outcome.stderr
