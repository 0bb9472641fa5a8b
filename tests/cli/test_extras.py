"""What is not installed is asked for once, all at once, by the verb that needs it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import escala
from escala import extras
from escala.cli.verbs import EXAMPLES, EXTRAS
from tests.cli.program import Escala

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("verb", sorted(EXTRAS))
def test_a_verb_names_all_its_extras_in_one_line(verb: str, escala_: Escala, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "found", lambda package: False)
    outcome = escala_(*EXAMPLES[verb].split()[1:])
    assert outcome.status == 2 and outcome.out == "" and outcome.err.count("\n") == 1, outcome.err
    assert f"[{','.join(EXTRAS[verb])}]" in outcome.err and f"escala {verb} needs" in outcome.err


TRAIN = "train ENV --workload x.swf --platform 4x1 --out x"
BROUGHT = {
    "campaign x.toml --out x --on ray": "report,ray",
    "frontier x.swf --platform 4x1 --on ray:host:6379": "report,ray",
    "study run marl2024 --out x --on ray": "agents,report,ray",
    "export x --out x.ONNX": "agents,onnx",
    "export x --out x": "agents",
    f"{TRAIN} --algorithm rllib-ppo": "agents,rllib",
    f"{TRAIN} --track mlflow --seeds 1,2 --on ray": "agents,ray,track",
    f"{TRAIN} --trials 2": "agents,optuna",
    f"{TRAIN} --track tensorboard:x --on ray": "agents",
}
"""A call -> the extras that it needs."""


@pytest.mark.parametrize("call", BROUGHT)
def test_extras_of_options_are_asked_for_with_those_of_the_verb(
    call: str, escala_: Escala, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "found", lambda package: False)
    told = escala_(*call.split())
    assert told.status == 2 and told.err.count("\n") == 1 and f" [{BROUGHT[call]}] of Escala" in told.err


def test_of_trackers_one_is_enough(escala_: Escala, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "found", lambda package: package != "mlflow")
    assert "unknown environment 'ENV'" in escala_(*TRAIN.split(), "--track", "wandb:x").err
    assert "needs the extras [agents,track]" in escala_(*TRAIN.split(), "--track", "mlflow").err


def test_train_and_demo_ask_for_what_they_need() -> None:
    assert EXTRAS["train"] == ("agents",) and EXTRAS["demo"] == ("agents", "report")


def test_what_is_there_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "found", lambda package: package != "torch")
    assert extras.lacking("report") == [] and extras.lacking("agents") == ["torch"] == extras.lacking("all")
    extras.need("this", "report")


def test_python_is_told_the_extra_of_the_name_it_asks_for() -> None:
    """Without Gymnasium `escala.train` needs [agents], not [envs] first and [agents] then."""
    code = (
        "import sys; sys.modules.update(gymnasium=None, torch=None, stable_baselines3=None)\n"
        "import escala\n"
        "try: escala.train\n"
        "except escala.EscalaError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (
        done.stdout.startswith("escala.train needs the extra [agents] of Escala, of which")
        and done.stdout.count("\n") == 1
    ), done.stderr


def test_packages_and_extras_are_those_of_the_project() -> None:
    told = {name: " ".join(wanted) for name, wanted in PROJECT["optional-dependencies"].items()}
    for package, extra in extras.EXTRAS.items():
        assert package.replace("_", "-") in told[extra], package


def test_nothing_is_required_that_no_line_imports() -> None:
    sources = Path(escala.__file__).parent
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources.rglob("*.py"))
    imported = {"PyYAML": "yaml"}
    for wanted in PROJECT["dependencies"]:
        package = wanted.partition(">")[0]
        assert f"import {imported.get(package, package)}" in text or f"from {package}" in text, package


def test_the_types_of_the_package_are_public() -> None:
    assert (Path(escala.__file__).parent / "py.typed").exists()
