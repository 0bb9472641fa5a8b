"""The laws of the source: floors, lengths, one way to compile, one way in."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "escala"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 400
VAGUE = {"utils", "helpers", "common", "manager", "base"}
MOST_PARAMETERS = 8
SOLVER = ("optimum/", "bounds/solver/")  # plain loops over arrays of a problem's own
LONGER: set[str] = set()
"""Functions with more parameters by position, as file:name: this list may only shrink."""
ABOVE_THE_API = ("__init__.py", "cli", "studies")


def _identity(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def _is_part(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()


def _imports(path: Path) -> set[str]:
    """Modules named by any import statement of the file, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = {f"{node.module}.{alias.name}" for alias in node.names if node.module == "escala" and _is_part(alias.name)}
            found |= parts or {node.module}
    return found


def test_each_floor_imports_only_floors_below_it() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    outcome = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert outcome.returncode == 0, outcome.stdout[-3000:]


@pytest.mark.parametrize("path", MODULES, ids=_identity)
def test_modules_are_short_or_say_why(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST, f"{len(lines)} lines: split it"


def _by_position(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters may be given by position, `self` and `cls` aside."""
    names = [entry.arg for entry in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_functions_take_few_parameters_by_position() -> None:
    long = {
        f"{_identity(path)}:{node.name}"
        for path in MODULES
        if not _identity(path).startswith(SOLVER)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _by_position(node) > MOST_PARAMETERS
    }
    assert not long - LONGER, "more than 8 parameters by position: a record behind a pointer, a settings class, or keywords behind *"
    assert not LONGER - long, "no longer over 8: take it from the list"


@pytest.mark.parametrize("path", MODULES, ids=_identity)
def test_names_say_something(path: Path) -> None:
    assert not VAGUE & set(path.relative_to(SOURCE).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=_identity)
def test_only_one_module_knows_the_compiler(path: Path) -> None:
    if path == SOURCE / "compile.py":
        return
    known = {name.split(".")[0] for name in _imports(path)}
    allowed = "kernel" in path.parts  # typed containers and intrinsics, never a decorator: see the next assertion
    assert allowed or "numba" not in known, "compile through escala.compile"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    decorators = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for entry in node.decorator_list
        for name in ast.unparse(entry).split(".")
    }
    assert not {name.split("(")[0] for name in decorators} & {"njit", "jit", "vectorize", "guvectorize"}, "compile through escala.compile"


@pytest.mark.parametrize("path", MODULES, ids=_identity)
def test_parts_do_not_reach_through_the_front_door(path: Path) -> None:
    """`import escala` would hide an import of a higher floor from the linter; only what stands above the public names may use them."""
    if path.relative_to(SOURCE).parts[0] not in ABOVE_THE_API:
        assert "escala" not in _imports(path)


def test_every_module_has_a_docstring() -> None:
    without = [_identity(path) for path in MODULES if path.stat().st_size and ast.get_docstring(ast.parse(path.read_bytes())) is None]
    assert not without
