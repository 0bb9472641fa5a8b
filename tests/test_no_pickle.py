"""Nothing that Escala reads can run code: no pickle is read anywhere in the sources."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "escala"
PICKLING = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal", "jsonpickle"}
SAFE = {"torch.load": ("weights_only", "True"), "np.load": ("allow_pickle", "False")}


def faults(text: str) -> list[str]:
    """What in a source could run code that a file holds."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [f"import {name.name}" for name in node.names if name.name.split(".")[0] in PICKLING]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PICKLING:
            found.append(f"from {node.module}")
        if isinstance(node, ast.Call):
            found += _call(node)
    return found


def _call(node: ast.Call) -> list[str]:
    told = ast.unparse(node.func)
    given = {word.arg: ast.unparse(word.value) for word in node.keywords}
    wrong = [
        f"{name}={value}"
        for name, value in given.items()
        if (name, value) in {("weights_only", "False"), ("allow_pickle", "True")}
    ]
    if told in SAFE and given.get(SAFE[told][0]) != SAFE[told][1]:
        wrong.append(f"{told} without {SAFE[told]}")
    if told.split(".")[-1] in {"load_from_zip_file", "read_pickle", "unsafe_load", "full_load"} or told in {
        "joblib.load",
        "eval",
        "exec",
    }:
        wrong.append(told)
    if told in {"yaml.load", "yaml.load_all"} and "Safe" not in ast.unparse(node):
        wrong.append(told)
    return wrong


def test_no_source_reads_a_pickle() -> None:
    found = {path.name: wrong for path in SOURCES.rglob("*.py") if (wrong := faults(path.read_text(encoding="utf-8")))}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "import pickle",
            "from pickle import loads",
            "torch.load(path, weights_only=False)",
            "torch.load(path)",
            "np.load(path)",
        ),
        *(
            "np.load(f, allow_pickle=True)",
            "joblib.load(path)",
            "PPO.load_from_zip_file(path)",
            "yaml.load(text)",
            "eval(text)",
        ),
    ],
)
def test_the_search_finds_what_it_looks_for(text: str) -> None:
    assert faults(text)
