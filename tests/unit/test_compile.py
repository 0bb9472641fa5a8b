"""Where compiled code is kept: an edit recompiles what may call it, and nothing else."""

from __future__ import annotations

import subprocess
import sys

from escala.compile import ROOT, sources_of


def names(path: str) -> set[str]:
    return {source.relative_to(ROOT).as_posix() for source in sources_of(ROOT / path)}


def test_callees_count_directly_or_not() -> None:
    assert {"kernel/easy.py", "kernel/queue.py", "kernel/state.py", "kernel/codes.py", "compile.py"} <= names("kernel/easy.py")


def test_whoever_takes_a_simulation_depends_on_its_layout() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        if "escala.kernel.state" in path.read_text() and path.name != "world.py":
            assert "kernel/world.py" in names(str(path.relative_to(ROOT))), path


def test_families_are_apart() -> None:
    assert not {name for name in names("kernel/drive.py") if name.startswith(("envs/", "optimum/", "agents/"))}
    assert not {name for name in names("optimum/prices.py") if name.startswith(("envs/", "kernel/", "agents/"))}
    assert "optimum/prices.py" not in names("envs/slots/step.py")


def test_linear_algebra_of_scipy_comes_when_it_is_used() -> None:
    """Numba would import it with the first function of all; code of others that multiplies matrices works as ever."""
    code = """
import sys
import numba, numpy as np
import escala
escala.simulate(escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [9.0], "cores": [1]}), "2x1", "easy")
print("scipy.linalg" in sys.modules)
one = numba.njit(lambda a: np.kron(a, a) @ np.linalg.inv(np.kron(a, a)))(np.eye(2) + 1)
print(np.allclose(one, np.eye(4)))
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert outcome.stdout.split() == ["False", "True"], outcome.stderr
