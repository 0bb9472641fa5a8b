"""The front door: what `import escala` gives, and what it does not cost."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import escala

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {
    "torch",
    "stable_baselines3",
    "sb3_contrib",
    "gymnasium",
    "pettingzoo",
    "matplotlib",
    "jinja2",
    "numba",
    "polars",
    "ortools",
}
OPTIONAL = {
    "torch",
    "stable_baselines3",
    "sb3_contrib",
    "gymnasium",
    "pettingzoo",
    "matplotlib",
    "jinja2",
    "ortools",
    "highspy",
    "scipy",
    "tensorboard",
}


def _python(code: str, timeout_s: float = 120.0) -> str:
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout_s, cwd=ROOT)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    return outcome.stdout


def test_public_names_are_listed_sorted_and_there() -> None:
    assert escala.__all__ == sorted(escala.__all__)
    assert dir(escala) == escala.__all__
    for name in escala.__all__:
        assert getattr(escala, name) is not None, name


def test_list_and_lazy_table_agree() -> None:
    assert set(escala.__all__) == set(escala._HOME) | set(escala._PARTS) | {"__version__"}
    for name, home in escala._HOME.items():
        module = importlib.import_module(home)
        assert name in getattr(module, "__all__", vars(module)), f"{home} does not list {name}"


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(escala.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == escala._HOME | dict.fromkeys(escala._PARTS, "escala")


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = escala.simulat


def test_import_loads_nothing_heavy() -> None:
    loaded = set(
        json.loads(_python("import json, sys, escala; print(json.dumps([m.split('.')[0] for m in sys.modules]))"))
    )
    assert not loaded & HEAVY


def test_help_loads_nothing_heavy() -> None:
    code = "import json, sys; from escala.cli.app import run; run(['--help']); print(); "
    loaded = set(
        json.loads(_python(code + "print(json.dumps([m.split('.')[0] for m in sys.modules]))").splitlines()[-1])
    )
    assert not loaded & HEAVY


def test_a_replay_loads_neither_generators_nor_slurm() -> None:
    code = """
import json, sys, escala
workload = escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [9.0], "walltime_s": [9.0], "cores": [1]})
escala.simulate(workload, "2x1:grid5000", shutdown="timeout:60")
before = sorted(sys.modules)
escala.workload.generate.lublin(jobs=10), escala.slurm.ensemble
print(json.dumps([before, sorted(sys.modules)]))
"""
    before, after = map(set, json.loads(_python(code).splitlines()[-1]))
    late = {"escala.workload.generate", "escala.slurm.settings", "escala.slurm.run", "escala.kernel.slurm.tables"}
    assert not late & before and late <= after


def test_the_core_works_without_optional_packages() -> None:
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Absent())
import escala
jobs = {{'submit_s': [0.0, 1.0], 'runtime_s': [10.0, 5.0], 'walltime_s': [20.0, 9.0], 'cores': [2, 1]}}
workload = escala.Workload.from_jobs(jobs)
result = escala.simulate(workload, escala.read_platform('2x1:grid5000'), scheduler='easy', shutdown='timeout:60')
print(result.jobs['start_s'].to_list())
"""
    assert _python(code).split("\n")[0] == "[0.0, 10.0]"


@pytest.mark.parametrize("needs", ["agents", "report"])
def test_what_is_missing_is_named(needs: str) -> None:
    """Asking for a part whose packages are not installed is one clear error that names the extra."""
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Absent())
import escala
try:
    escala.{"train" if needs == "agents" else "report.write_report"}
except escala.EscalaError as error:
    print(error)
"""
    assert f"[{needs}]" in _python(code)


def test_version_is_that_of_the_package() -> None:
    assert (
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"] == escala.__version__
    )


def test_python_m_escala_is_the_program() -> None:
    outcome = subprocess.run([sys.executable, "-m", "escala", "--version"], capture_output=True, text=True, timeout=60)
    assert outcome.stdout == f"escala {escala.__version__}\n"
