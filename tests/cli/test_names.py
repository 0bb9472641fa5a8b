"""Every name that an option takes can be found without making an error; starting and ending the program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from escala.cli.policies import SHUTDOWNS, TRAINED
from escala.errors import EscalaError
from escala.options import Options
from escala.policies import SCHEDULERS, SHUTDOWN_FORMS
from escala.policies.compose import shutdown
from escala.policies.queues import QUEUE_FORMS
from escala.policies.rollout_names import OPTIONS
from escala.workload.generate import GENERATORS
from tests.cli.program import Escala


def _listed(escala_: Escala) -> Any:
    outcome = escala_("policies", "--json")
    assert outcome.status == 0 and outcome.err == ""
    return json.loads(outcome.out)


def test_every_policy_is_listed_with_a_line(escala_: Escala) -> None:
    listed = _listed(escala_)
    assert {row["scheduler"] for row in listed["schedulers"]} == {
        *SCHEDULERS,
        *QUEUE_FORMS,
        "slurm",
        "escala",
        "rollout",
        "policy:DIR",
        "agent:DIR",
        "shield:BASE[:KEY=VALUE...]:agent:DIR",
    }
    assert [row["shutdown"] for row in listed["shutdowns"]] == [*SHUTDOWNS, *TRAINED] and [*SHUTDOWN_FORMS] == [
        *SHUTDOWNS
    ]
    assert {row["generator"] for row in listed["generators"]} == set(GENERATORS)
    lines = [row["what"] for rows in listed.values() for row in rows]
    assert all(10 < len(line) < 140 and "\n" not in line and "`" not in line for line in lines)
    shown = escala_("policies")
    assert shown.status == 0 and all(name in shown.out for name in (*SCHEDULERS, *SHUTDOWN_FORMS, *GENERATORS))


def test_options_of_rollout_are_listed_and_taken_by_every_verb(escala_: Escala, log: Path) -> None:
    name, bad = "rollout:4:objective=wait:base=hold-back:0+sjf-fit:horizon=20", "rollout:4:horizn=20"
    listed = [row["option of rollout"].partition("=")[0] for row in _listed(escala_)["rollout"]]
    assert listed == list(OPTIONS)
    for given in (
        ("simulate", "--scheduler"),
        ("compare", "--schedulers"),
        ("bound", "--limit", "0.1", "--schedulers"),
    ):
        verb, *options = given
        outcome = escala_(verb, log, "--platform", "4x1:none", *options, name)
        assert outcome.status == 0, outcome.err
        assert "rollout:4" in outcome.out
        wrong = escala_(verb, log, "--platform", "4x1:none", *options, bad)
        assert wrong.status == 2 and wrong.out == "" and wrong.err.count("\n") == 1
        assert "option 'horizn' is unknown: did you mean horizon?" in wrong.err


def test_help_leads_to_the_names(escala_: Escala) -> None:
    for verb in ("simulate", "compare"):
        assert "escala policies" in escala_(verb, "--help").out
    text = escala_("workload", "generate", "--help").out
    assert all(name in text for name in GENERATORS) and "cluster=orion" in text


@pytest.mark.parametrize("form", [form for form in SHUTDOWN_FORMS if ":" in form])
def test_a_policy_without_its_number_says_what_it_needs(form: str) -> None:
    kind, _, need = form.partition(":")
    with pytest.raises(
        EscalaError, match=rf"'{kind}' needs its {re.split('[+:]', need)[0].lower()}: write {kind}:\d"
    ) as caught:
        shutdown(kind, Options())
    for example in str(caught.value).rpartition("write ")[2].split(" or "):
        assert shutdown(example, Options())[0], "the example works"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("hold:-1", "-1 is out of range (0 to 1e+06)"),
        ("hold:nan", "nan is out of range (0 to 1e+06)"),
        ("hold:a-quarter", "'a-quarter' is not a number"),
        ("hold:0.25:", "'' is neither if-busy, uncapped nor a number of seconds"),
        ("hold:0.25:if_busy", "'if_busy' is neither if-busy, uncapped nor a number of seconds"),
        (
            "hold:0.25:600:if-busy",
            "'if-busy' is too much: write hold:0.25 or hold:0.25:if-busy or hold:0.25:300 or hold:0.25:if-busy:300",
        ),
        ("hold:0.25:if-busy:-600", "-600 is out of range (0 to 1e+10)"),
        ("hold:0.25:nan", "nan is out of range (0 to 1e+10)"),
        ("hold:0.25:inf", "inf is out of range (0 to 1e+10)"),
    ],
)
def test_a_hold_that_makes_no_sense(escala_: Escala, log: Path, name: str, why: str) -> None:
    with pytest.raises(EscalaError) as caught:
        shutdown(name, Options())
    assert str(caught.value) == f"shutdown policy {name!r}: {why}"
    outcome = escala_("simulate", log, "--platform", "4x1:grid5000", "--shutdown", name)
    assert outcome.status == 2 and outcome.out == "" and outcome.err == f"error: {caught.value}\n"


@pytest.mark.parametrize("name", ["never:5", "inertial:5", "random:5", "arrivals-known:5"])
def test_a_policy_with_a_number_that_it_does_not_take(name: str) -> None:
    with pytest.raises(EscalaError, match="takes nothing behind its name, not '5'"):
        shutdown(name, Options())


@pytest.mark.parametrize(("given", "need"), [("days=many", "a whole number|a number"), ("jobs=1.5", "a whole number")])
def test_settings_are_asked_for_in_english(escala_: Escala, tmp_path: Path, given: str, need: str) -> None:
    generator = "grid5000" if given.startswith("days") else "lublin"
    outcome = escala_("workload", "generate", generator, given, "--out", tmp_path / "x.swf")
    assert outcome.status == 2 and re.search(f"{given}: ({need}) is needed", outcome.err)


BEGUN = """
import sys, escala.cli

class Told:
    def find_spec(self, name, path=None, target=None):
        if name == "escala.cli.app":
            print(1, flush=True)

sys.meta_path.insert(0, Told())
sys.argv = ["escala", "policies"]
escala.cli.main()
"""


@pytest.mark.slow
def test_an_interrupt_while_the_program_starts_is_one_line() -> None:
    """From the first import of the program on; before that it is the interpreter that starts."""
    for delay in (0.0, 0.05, 0.1, 0.2, 0.4):
        process = subprocess.Popen(
            [sys.executable, "-c", BEGUN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline() == "1\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        if process.returncode == -signal.SIGINT:  # the verb had ended, and the interpreter with it
            assert "easy" in out and not err
            continue
        assert process.returncode in (0, 130), err
        assert process.returncode == 0 or re.fullmatch(r"error: interrupted[^\n]*\n", err), err


WRAPPED = """
import escala.cli.app

class Named:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt

def program():
    class Begun:
        here = Named()

escala.cli.app.main = program
escala.cli.main()
"""


def test_an_interrupt_while_a_class_is_made_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", WRAPPED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "error: interrupted; nothing was written\n")


def test_closed_standard_streams(log: Path) -> None:
    program = f"{sys.executable} -m escala workload describe {log}"
    for closing in (">&-", ">&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{program} {closing}"], capture_output=True, text=True, timeout=60, env=dict(os.environ)
        )
        assert done.returncode == 2
        assert done.stderr == (
            "" if "2" in closing else "error: standard output is closed: send it somewhere, such as > /dev/null\n"
        )
    silent = subprocess.run(["sh", "-c", f"{program} 2>&-"], capture_output=True, text=True, timeout=60)
    assert silent.returncode == 0 and "jobs" in silent.stdout


def test_a_log_whose_name_is_no_text_is_read_and_its_runs_are_saved(escala_: Escala, log: Path) -> None:
    odd = log.rename(log.with_name(os.fsdecode(b"m\xff.swf")))
    for k, arguments in enumerate((["simulate"], ["compare", "--schedulers", "fcfs,easy"])):
        done = escala_(*arguments, odd, "--platform", "4x1", "--out", log.with_name(str(k)), "--json")
        assert done.status == 0, done.err
        assert escala_("report", log.with_name(str(k))).status == 0
    done = escala_("simulate", odd, "--platform", "4x1", "--out", odd.with_name(os.fsdecode(b"out\xff")))
    assert done.status == 2 and "UTF-8" in done.err and done.err.count("\n") == 1


def test_a_log_is_not_converted_into_itself(escala_: Escala, log: Path) -> None:
    before = log.read_bytes()
    done = escala_("workload", "convert", log, "--first", "1", "--out", log, "--force")
    assert done.status == 2 and "that this run reads" in done.err and log.read_bytes() == before


def test_a_page_does_not_replace_a_part_of_the_run_that_it_shows(escala_: Escala, log: Path) -> None:
    run = log.with_name("run")
    assert escala_("simulate", log, "--platform", "4x1", "--out", run).status == 0
    done = escala_("report", run, "--out", run / "jobs.parquet", "--force")
    assert done.status == 2 and "that this run reads" in done.err
    assert escala_("report", run).status == 0 and escala_("report", run).status == 0, "its page is written again"
