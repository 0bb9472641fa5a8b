"""The laws of the source: floors, lengths, one way to compile, one way in."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "escala"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST = 400
COLUMNS = 120
VAGUE = {"utils", "helpers", "common", "manager", "base"}
MOST_PARAMETERS = 8
MOST_LINES = 60
"""Of a function, signature and docstring counted."""
FAMILIES = {"platform/site", "workload/generate"}
"""What could be a folder: a file with two sisters or more whose names begin with its own. This list may only shrink."""
TUPLES = {"_replace", "_asdict", "_fields", "_make"}
FOREIGN = {
    # Stable-Baselines3 has no other door
    "agents/checkpoint.py": {"_n_updates", "_last_obs", "_last_episode_starts", "_setup_learn"},
    "agents/rllib/timed.py": {"_learner_connector"},  # where RLlib's learner keeps what computes its advantages
    "agents/rllib/runner.py": {  # what RLlib's own runners of a vector environment count and draw by
        "_increase_sampled_metrics",
        "_log_env_steps",
        "_log_episode_metrics",
        "_metrics_num_env_steps_sampled",
        "_seed",
    },
    "agents/training/team/train.py": {"_setup_learn"},
    "engines/pool.py": {"_exit"},
    "cli/__init__.py": {"_exit", "_run_exitfuncs"},  # as Python itself would call at its end what was asked for
    "cli/app.py": {"_exit"},
    "envs/slots/team/pettingzoo.py": {"_accumulate_rewards", "_was_dead_step"},
    "compile/ahead.py": {"_exit"},
    "compile/translation.py": {  # where Numba keeps functions, what it links callers with, how it numbers functions
        "_cache",
        "_get_module_for_linking",
        "_unique_ids",
    },
    "compile/whole.py": {  # Numba's libraries and caches have no other door
        "_cache_file",
        "_codegen",
        "_ensure_finalized",
        "_final_module",
        "_finalize_dynamic_globals",
        "_finalized",
        "_get_module_for_linking",
        "_impl",
        "_index_key",
        "_linking_libraries",
        "_load_data",
        "_raise_if_finalized",
        "_save_data",
        "_shared_module",
    },
    "compile/pointer_code.py": {"_getvalue"},
}
"""Private names of other libraries, and `os._exit`."""
ABOVE_THE_API = ("__init__.py", "cli", "studies")


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _identity(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def _is_part(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()


@functools.cache
def _imports(path: Path) -> set[str]:
    """Modules named by any import statement of the file, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = {
                f"{node.module}.{alias.name}"
                for alias in node.names
                if node.module == "escala" and _is_part(alias.name)
            }
            found |= parts or {node.module}
    return found


def test_each_floor_imports_only_floors_below_it() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    outcome = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert outcome.returncode == 0, outcome.stdout[-3000:]


def test_modules_are_short() -> None:
    lengths = {_identity(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert len(lengths) > 500
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST}, "more than 400 lines: split it"


def test_lines_are_short() -> None:
    """Also those that the linter leaves out: with a word for the type checker at their end, or without a space."""
    wide = {
        f"{path.relative_to(ROOT)}:{number}"
        for path in (*MODULES, *(ROOT / "bench").glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > COLUMNS
    }
    assert not wide, "more than 120 columns: cut them"


def _by_position(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters may be given by position, `self` and `cls` aside."""
    names = [entry.arg for entry in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in MODULES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{_identity(path)}:{node.name}", node


def test_functions_take_few_parameters_by_position() -> None:
    long = {name for name, node in _functions() if _by_position(node) > MOST_PARAMETERS}
    assert not long, "more than 8 parameters by position: a record behind a pointer, a settings class, or keywords"


def test_functions_are_short() -> None:
    lengths = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in _functions()}
    assert not {name: lines for name, lines in lengths.items() if lines > MOST_LINES}, "more than 60 lines: split it"


def test_tests_are_short_too() -> None:
    trees = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in TESTS}
    assert len(trees) > 300
    assert not [name for name, text in trees.items() if len(text.splitlines()) > LONGEST], "split it by subject"
    long = {
        f"{name}:{node.name}"
        for name, text in trees.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES
    }
    assert not long, "more than 60 lines: split it"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _part(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def _given_names(tree: ast.AST) -> Iterator[str]:
    """Names of functions, classes, parameters, variables and attributes that a file makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) in ("self", "cls")
        ):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_private_names_stay_in_their_part() -> None:
    trees = {path: _tree(path) for path in MODULES}
    own: dict[str, set[str]] = {}
    for path, tree in trees.items():
        own.setdefault(_part(path), set()).update(filter(_is_private, _given_names(tree)))
    taken = set()
    for path, tree in trees.items():
        allowed = own[_part(path)] | TUPLES | FOREIGN.get(_identity(path), set())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in allowed:
                taken.add(f"{_identity(path)}: {ast.unparse(node)}")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[:2] != ["escala", _part(path)]:
                private = [alias.name for alias in node.names if _is_private(alias.name)]
                taken |= {f"{_identity(path)}: from {node.module} import {name}" for name in private}
    assert not taken, "a private name of another part: give it a public one, or move what needs it"


def test_names_say_something() -> None:
    assert not [_identity(path) for path in MODULES if VAGUE & set(path.relative_to(SOURCE).with_suffix("").parts)]


def test_a_file_with_sisters_of_its_name_is_a_folder() -> None:
    first = [path.with_name(path.stem.split("_")[0]) for path in MODULES if "_" in path.stem.strip("_")]
    found = {
        str(path.relative_to(SOURCE)) for path in first if first.count(path) > 1 and path.with_suffix(".py").exists()
    }
    assert found == FAMILIES


def _decorators(path: Path) -> set[str]:
    """Names in the decorators of the functions of a file."""
    functions = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef)]
    names = {name for node in functions for entry in node.decorator_list for name in ast.unparse(entry).split(".")}
    return {name.split("(")[0] for name in names}


def test_only_one_module_knows_the_compiler() -> None:
    """The kernel has typed containers and intrinsics of Numba's, and never a decorator."""
    others = [path for path in MODULES if path.parent != SOURCE / "compile"]
    numba = {path for path in others if "numba" in {name.split(".")[0] for name in _imports(path)}}
    decorated = [path for path in others if _decorators(path) & {"njit", "jit", "vectorize", "guvectorize"}]
    known = [_identity(path) for path in (*numba, *decorated) if "kernel" not in path.parts or path in decorated]
    assert numba and not known, "compile through escala.compile"


def test_parts_do_not_reach_through_the_front_door() -> None:
    """`import escala` would hide an import of a higher floor from the linter; only what stands above the public names
    may use them."""
    below = [path for path in MODULES if path.relative_to(SOURCE).parts[0] not in ABOVE_THE_API]
    assert not [_identity(path) for path in below if "escala" in _imports(path)]


def test_every_module_has_a_docstring() -> None:
    without = [
        _identity(path)
        for path in MODULES
        if path.stat().st_size and ast.get_docstring(ast.parse(path.read_bytes())) is None
    ]
    assert not without


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Two of one name in folders that are no packages cannot both be collected."""
    loose = [path.name for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert sorted(loose) == sorted(set(loose))
