"""`escala.toml`: every shared option is a key, flags go before it, and a wrong file is one line with its name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from escala.cli import options, site
from escala.cli.app import app
from tests.cli.program import Escala

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "site.md"
EXAMPLES = {str: '"s"', bool: "true", int: "7", float: "2.5", list[str]: '["a=b"]'}
OUTPUT = {"out", "force", "json"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _verbs(command: Any, path: str = "") -> dict[str, Any]:
    parts = command.list_commands(None) if hasattr(command, "list_commands") else []
    inner = {
        name: found
        for part in parts
        for name, found in _verbs(command.get_command(None, part), f"{path} {part}".strip()).items()
    }
    return inner or {path: command}


VERBS = _verbs(typer.main.get_command(app))
ALL = "".join(f"{name} = {EXAMPLES[key.kind]}\n" for name, key in site.KEYS.items())


def test_every_shared_option_is_a_key() -> None:
    shared = {site.name_of(found) for entry in vars(options).values() if (found := site.option_of(entry)) is not None}
    assert shared - set(site.KEYS) == OUTPUT and {
        "platform",
        "price",
        "carbon",
        "currency",
        "unit",
        "column",
        "rules",
    } <= set(site.KEYS)
    Path("all.toml").write_text(ALL)
    assert set(site.read_site(Path("all.toml"))) == set(site.KEYS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_from_the_file_what_it_shares(verb: str) -> None:
    """Where a verb has an option of the file's keys, it reads the file; options of the same name but another meaning
    stay their own."""
    command, (arguments, own) = VERBS[verb], CALLS.get(verb, ([], set()))
    by_flag = {option[2:]: entry.name for entry in command.params for option in entry.opts if option[2:] in site.KEYS}
    if "config" not in {entry.name for entry in command.params}:
        assert set(by_flag) <= own, "a verb that shares an option has --config"
        return
    Path(site.FILE).write_text(ALL)
    context = command.make_context(verb, list(arguments))
    from_file = {name for name, found in by_flag.items() if context.get_parameter_source(found).name == "DEFAULT_MAP"}
    assert from_file == set(by_flag) - own
    for name in from_file:
        assert context.params[by_flag[name]] in ("s", True, 7, 2.5, "2.5", ["a=b"])


CALLS: dict[str, tuple[list[str], set[str]]] = {
    "demo": ([], {"platform"}),
    "simulate": (["x"], set()),
    "compare": (["x"], set()),
    "calibrate": (["x"], set()),
    "what-if": (["x"], set()),
    "tune": (["x", "--out", "x"], {"power"}),  # which it refuses: frontier takes it
    "predict": (["x", "--out", "x"], set()),
    "drift": (["x"], {"platform"}),
    "frontier": (["x"], set()),
    "bill": (["x"], {"price", "carbon"}),
    "bound": (["x"], set()),
    "serve": (["--socket", "x"], set()),
    "batsim": ([], {"platform"}),
    "beside slurm": ([], {"partition"}),
    "beside report": ([], set()),
    "train": (["x", "--workload", "x", "--out", "x"], set()),
    "evaluate": (["x", "x"], {"platform"}),
    "render": (["x"], {"platform"}),
    "site import": (["x", "--out", "x"], set()),
    "workload describe": (["x"], set()),
    "workload convert": (["x", "--out", "x"], set()),
    "workload generate": (["x", "--out", "x"], {"speed"}),
    "workload from-slurm": ([], {"partition"}),
    "report": (["x"], set()),
    "study run": (["x", "--out", "x"], set()),
    "study replay": (["x"], {"seed"}),
}
"""Verb -> arguments that it must have, and its own options that are called as a key (an agent has the machine of its
training; the partition to export)."""


def test_flags_go_before_the_file_which_is_told(escala_: Escala, log: Path) -> None:
    Path(site.FILE).write_text('platform = "4x1:none"\nstrict = true\nprice = 0.25\n')
    told = escala_("workload", "describe", log, "--json")
    assert told.err == "remark: from escala.toml: platform = 4x1:none, strict = true\n" and json.loads(told.out)
    other = escala_("workload", "describe", log, "--platform", "8x1", "--json")
    assert other.err == "remark: from escala.toml: strict = true\n" and other.out != told.out
    assert escala_("workload", "describe", log, "--config", "none").err == ""
    Path("other.toml").write_text('platform = "8x1"\n')
    assert (
        escala_("workload", "describe", log, "--config", "other.toml", "--json").err
        == "remark: from other.toml: platform = 8x1\n"
    )


def test_a_needed_platform_may_come_from_the_file(escala_: Escala, log: Path) -> None:
    assert "Missing option '--platform'" in escala_("simulate", log).err
    Path(site.FILE).write_text('platform = "4x1:none"\n')
    outcome = escala_("simulate", log, "--out", "run")
    assert outcome.status == 0 and outcome.err.startswith("remark: from escala.toml: platform = 4x1:none\n"), (
        outcome.err
    )
    assert json.loads(Path("run/manifest.json").read_text())["platform"]["name"] == "4x1:none"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('platfrm = "4x1"', "unknown key 'platfrm': did you mean platform?"),
        ("[reading]\nunit = 's'", "unknown key 'reading': known: account, carbon"),
        ('out = "x"', "unknown key 'out'"),
        ("platform = 4", "platform: a text between quotes is needed, not 4"),
        ("seed = -1", "seed: a whole number of at least 0 is needed, not -1"),
        ("seed = true", "seed: a whole number of at least 0 is needed, not True"),
        ("price = nan", "price: a number of at least 0 is needed, not nan"),
        ("strict = 1", "strict: true or false is needed, not 1"),
        ('column = "a=b"', "column: a list of texts (as [\"name=value\"]) is needed, not 'a=b'"),
        ("seed", "not valid TOML"),
        ("seed = 1\nseed = 2", "not valid TOML"),
        ("seed = " + "9" * 5000, "a number of thousands of digits"),
        ("seed = " + "[" * 20_000, "TOML nested too deeply"),
        ("seed = 1\0", "a byte 0 in a text"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_name(escala_: Escala, log: Path, text: str, why: str) -> None:
    Path(site.FILE).write_text(text)
    outcome = escala_("workload", "describe", log)
    assert outcome.status == 2 and outcome.out == "" and outcome.err.count("\n") == 1
    assert outcome.err.startswith("error: escala.toml") and why in outcome.err
    assert escala_("workload", "describe", "--help").status == 0 and escala_("policies").status == 0


def test_what_is_no_file(escala_: Escala, log: Path) -> None:
    assert (
        escala_("workload", "describe", log, "--config", "no.toml").err
        == "error: no.toml: no such file: check the path\n"
    )
    Path(site.FILE).mkdir()
    assert escala_("workload", "describe", log).err == "error: escala.toml: is a folder: give one file in it\n"
    Path(site.FILE).rmdir()
    Path(site.FILE).symlink_to("gone")
    assert escala_("workload", "describe", log).err == "error: escala.toml: no such file: check the path\n"


def test_the_page_shows_a_file_that_is_read_and_names_every_key() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    Path(site.FILE).write_text(shown)
    assert len(site.read_site(Path(site.FILE))) > 4
    assert set(re.findall(r"`([a-z-]+)`", text.partition("The keys are")[2].partition("\n\n")[0])) == set(site.KEYS)


def test_help_of_the_program_reads_no_file() -> None:
    Path(site.FILE).write_text("wrong")
    done = subprocess.run([sys.executable, "-m", "escala", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
