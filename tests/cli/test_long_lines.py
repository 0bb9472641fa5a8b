"""No line on stderr is longer than 500 characters, or more than one, whatever stands in a file or behind an option."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from escala.cli import terminal
from escala.errors import MOST_CHARACTERS, EscalaWarning
from tests.cli.program import Escala


@pytest.mark.parametrize(
    "content",
    ["column = [" + ", ".join(['"a=b"'] * 200_000) + "]", 'user = "' + "u" * 400_000 + '"'],
    ids=["list", "text"],
)
def test_what_a_site_says_is_told_shortly(escala_: Escala, log: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "site.toml").write_text(content)
    told = escala_("simulate", log, "--platform", "4x1", "--config", tmp_path / "site.toml").err
    assert told.startswith(f"remark: from {tmp_path / 'site.toml'}: ") and "\nerror: " in told
    assert max(map(len, told.splitlines())) <= MOST_CHARACTERS


def test_every_kind_of_line_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x\x1b\n" * 300_000
    terminal.fail(long)
    terminal.remark(long)
    with terminal.remarking():
        warnings.warn(long, EscalaWarning, stacklevel=1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["error", "remark", "remark"]
    assert all(len(line) <= MOST_CHARACTERS and line.isprintable() for line in lines)
