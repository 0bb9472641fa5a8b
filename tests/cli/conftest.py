"""A small log, and the program run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from escala.cli.app import run
from escala.compiling import LINE
from tests.cli.program import LOG, Escala, Outcome

PASSING = LINE, "progress: "
"""What is said by chance: with a new cache some verb is the first to compile, and a slow machine takes its time."""


@pytest.fixture
def escala_(capfd: pytest.CaptureFixture[str]) -> Escala:
    """Call the program with arguments."""

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        status = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        lines = err.splitlines(keepends=True)
        return Outcome(status, out, "".join(line for line in lines if not line.startswith(PASSING)))

    return call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of four jobs for a machine of four cores."""
    path = tmp_path / "small.swf"
    path.write_text(LOG)
    return path
