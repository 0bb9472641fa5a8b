"""Where compiled code is kept: an edit recompiles what may call it, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from escala.compile import CHECKED, compiled, machine
from escala.compile.sources import ROOT, sources_of
from tests.unit.translated import SEEN


def names(path: str) -> set[str]:
    return {source.relative_to(ROOT).as_posix() for source in sources_of(ROOT / path)}


def test_callees_count_directly_or_not() -> None:
    assert {"kernel/easy.py", "kernel/queue.py", "kernel/state.py", "kernel/codes.py", "compile/__init__.py"} <= names(
        "kernel/easy.py"
    )


def test_whoever_takes_a_simulation_depends_on_its_layout() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        if "escala.kernel.state" in path.read_text() and path.name != "world.py":
            assert "kernel/world.py" in names(str(path.relative_to(ROOT))), path


def test_how_code_is_made_counts_too() -> None:
    """Translation is imported where something must be translated, so no file names it at its top."""
    assert {"compile/translation.py", "compile/whole.py", "compile/machine.py"} <= names("kernel/easy.py")


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
one = numba.njit(lambda a: a @ np.linalg.inv(a))(np.eye(2) + 1)
print(np.allclose(one, np.eye(2)))
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert outcome.stdout.split() == ["False", "True"], outcome.stderr


@compiled
def read(row: Any, table: Any, i: int) -> tuple[int, int, int]:
    return row[i], table[0, i], row[-1]


@compiled
def write(row: Any, table: Any, i: int) -> None:
    row[i] = 7
    table[0, i] += 8


def test_an_index_that_is_computed_counts_from_the_beginning() -> None:
    """Asking at each access whether it counts from the end took a fifth of a replay's time. Before each of these arrays
    stands another number; -1, as it is written, is the last."""
    numbers, cells = np.arange(10, 15), np.arange(20, 26)
    row, table = numbers[1:], cells[1:5].reshape(2, 2)
    if CHECKED:
        for call in (read, write):
            with pytest.raises(IndexError):
                call(row, table, -1)
        return
    assert read(row, table, -1) == (10, 20, 14)
    write(row, table, -1)
    assert numbers.tolist() == [7, 11, 12, 13, 14] and cells.tolist() == [28, 21, 22, 23, 24, 25]


PARTS = """
from escala.compile import compiled, lean

@lean
def low(a, i):
    if i < 0:
        raise ValueError("below 0")
    return a[i]

@lean
def middle(a, i):
    return low(a, i) + max(i, 1)

@compiled
def one(a, i):
    return middle(a, i)

@compiled
def other(a, i):
    return 2 * middle(a, i)
"""
SAYS_WHAT_IS_TRANSLATED = (
    """
import sys
import numpy as np
import parts

translated = []
"""
    + SEEN
    + """
called = getattr(parts, sys.argv[1])
found = [called(np.arange(3), 2)]
try:
    called(np.arange(3), -1)
except ValueError as error:
    found.append(str(error))
print(found, [name for name in translated if name in ("low", "middle", "one", "other")])
"""
)


def test_what_a_process_translated_serves_other_callers_in_others(tmp_path: Path) -> None:
    """A function that compiled code calls is kept as it was translated: another process translates the new caller
    alone, and gets the same results and errors."""
    (tmp_path / "parts.py").write_text(PARTS)
    environment = {
        **os.environ,
        "ESCALA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }

    def told(name: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", SAYS_WHAT_IS_TRANSLATED, name],
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert told("one") == "[4, 'below 0'] ['one', 'middle', 'low']"
    assert told("other") == "[8, 'below 0'] ['other']"
    assert told("one") == "[4, 'below 0'] []"


def test_a_process_that_loses_compiled_code_compiles_it_again(tmp_path: Path) -> None:
    """As beside `escala doctor --clean`: what it has loaded it has, and the folder is there again with the rest."""
    (tmp_path / "parts.py").write_text(PARTS)
    code = """
import shutil
import numpy as np
import parts
from escala.compile import CACHE_FOLDER

for name in ("one", "other", "one"):
    print(getattr(parts, name)(np.arange(3), 2), [path.name[:6] for path in CACHE_FOLDER.glob("parts-*")])
    if name == "one":
        [shutil.rmtree(path) for path in CACHE_FOLDER.glob("parts-*")]
"""
    more = {"ESCALA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=os.environ | more
    )
    assert done.stdout.splitlines() == ["4 ['parts-']", "8 ['parts-']", "4 ['parts-']"], done.stderr


def test_a_thread_waits_for_what_another_one_is_loading() -> None:
    """The first calls of all, in two threads: what reads machine code is half made for a while."""
    code = """
import importlib.machinery, sys, threading, time
from escala.kernel.bits import population

class Slowly(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target) if name == "escala.compile.machine" else None
        if spec is not None:
            whole = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (time.sleep(0.5), whole(module))
        return spec

def call():
    try:
        said.append(int(population(5)))
    except AttributeError as error:
        said.append(error)

sys.meta_path.insert(0, Slowly)
said = []
threads = [threading.Thread(target=call) for _ in range(2)]
for thread in threads:
    thread.start()
    time.sleep(0.1)
for thread in threads:
    thread.join()
print(said)
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert outcome.stdout.strip() == "[2, 2]", outcome.stdout + outcome.stderr


MODULE = """
import math
from escala.compile import compiled
import numpy as np


@compiled
def total(table, times, scale, halve):
    found = 0.0
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            found += math.log1p(table[i, k]) * times * scale
    return found / 2 if halve else found


@compiled
def shift(column, by):
    for i in range(column.shape[0]):
        column[i] += by


@compiled
def ends(column):
    return column[0], column[-1]


@compiled
def fresh(n):
    return np.arange(n).sum()
"""
USE = """
import sys
from pathlib import Path
import numpy as np
from escala import compile as front
from escala.compile import CHECKED, compiled, machine
import told

kept, keep = [], machine.keep
machine.keep = lambda *given: (kept.append(given[1]), keep(*given))
table = np.arange(12).reshape(3, 4)
if "brought" in sys.argv:
    machine.BROUGHT = Path(sys.argv[-1])
if "often" in sys.argv:
    front.OFTEN = told.total._calls = 2
if "rarely" in sys.argv:
    front.RARE_S = 0.0
answers = [told.total(table, 3, 0.5, True) for _ in range(4)]
answers += [told.total(one, 3, 0.5, False) for one in (table[:, ::2], table[::-1, 1:3])]
told.shift(table[1], np.int64(5))
told.shift(table[:, 2], 1)
anew = told.fresh(5) if "fresh" in sys.argv else 10
print(*answers, *table.ravel(), *told.ends(table[2]), anew, "numba" in sys.modules, len(kept))
"""


@pytest.fixture
def use(tmp_path: Path) -> Callable[..., list[str]]:
    """Play USE in a new process, with the cache folder `cache` and further variables."""
    (tmp_path / "told.py").write_text(MODULE)
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT.parent)])

    def play(*words: str, cache: str = "cache", **more: str) -> list[str]:
        here = env | {"ESCALA_CACHE_DIR": str(tmp_path / cache)} | more
        outcome = subprocess.run(
            [sys.executable, "-c", USE, *words], capture_output=True, text=True, timeout=300, env=here
        )
        assert outcome.returncode == 0, outcome.stderr
        *said, kept = outcome.stdout.split()
        assert int(kept) <= len(MODULE.split("@compiled")) + 2, "code is kept once for each kind of arguments"
        return said

    return play


def test_kept_machine_code_is_called_without_numba(use: Callable[..., list[str]], tmp_path: Path) -> None:
    *first, translated = use()
    table = np.arange(12).reshape(3, 4)
    assert translated == "True" and np.isclose(float(first[0]), np.log1p(table).sum() * 1.5 / 2, rtol=1e-12)
    assert use() == [*first, "False"]
    assert use("often") == [*first, "True"], "after many calls Numba's own way is quicker"
    assert use("often", "rarely") == [*first, "False"], "but not where they are rare"
    assert use("fresh") == [*first, "True"], "a function that makes arrays is Numba's"
    kept = sorted((tmp_path / "cache").rglob("*.machine"))
    assert {path.name.split("-")[0] for path in kept} == {"ends", "total", "shift"} and len(kept) == 5
    for path, damage in zip(
        kept, (lambda b: b[:-7], lambda b: b"", lambda b: b.replace(b"processor", b"professor"), lambda b: b"{}\n")
    ):
        path.write_bytes(damage(path.read_bytes()))
    assert use() == [*first, "True"], "damaged files are made anew"
    assert use() == [*first, "False"]


def test_machine_code_of_a_wheel_runs_on_the_processors_it_is_made_for(
    use: Callable[..., list[str]], tmp_path: Path
) -> None:
    family = next(
        (name for name in machine.FAMILIES if any(known.endswith(f" {name}") for known in machine._run_here())), None
    )
    if family is None:
        pytest.skip(f"this processor is none of {', '.join(machine.FAMILIES)}")
    *first, _ = use(cache="wheel", NUMBA_CPU_NAME=family, NUMBA_CPU_FEATURES="")
    (brought,) = (tmp_path / "wheel").iterdir()
    assert use("brought", str(brought), cache="mine") == [*first, "False"]
    for path in brought.rglob("*.machine"):
        path.write_bytes(path.read_bytes().replace(family.encode(), b"another", 1))
    assert use("brought", str(brought), cache="mine") == [*first, "True"], "code of another processor is not run"


def test_kinds_of_arguments() -> None:
    table = np.zeros((2, 3), np.float32)
    frozen = np.zeros(3, np.int64)
    frozen.flags.writeable = False
    assert machine.kind_of((1, 1.5, True, np.int64(1))) == ("i", "f", "b", "i")
    assert machine.kind_of((table, table.T, table[:, ::2], frozen)) == ("C2<f4", "F2<f4", "A2<f4", "C1r<i8")
    assert (
        machine.kind_of(("word",)) is None
        and machine.kind_of((np.uint64(1),)) is None
        and machine.kind_of(([1],)) is None
    )


def test_arguments_of_two_kinds_are_never_taken_for_one() -> None:
    """What is seen of arguments at a call tells as much apart as their kinds."""
    table = np.zeros((3, 3), np.int64)
    frozen = table.copy()
    frozen.flags.writeable = False
    row, records = table[0], np.zeros(3, [("a", "i8")])
    rows = [row, row[::2], row.astype(float), row.astype(">i8"), records]
    several = [table, table.T, table[:, ::2], frozen, *rows, 1, 1.0, True, np.int64(1)]
    seen: dict[Any, Any] = {}
    for first in several:
        for second in several:
            told, words = machine.words_of((first, second))
            assert seen.setdefault(told, machine.kind_of((first, second))) == machine.kind_of((first, second))
            assert words == [
                id(one) + machine._BEHIND if isinstance(one, np.ndarray) else one for one in (first, second)
            ]
            assert len(words) == len(machine.kind_of((first, second)) or ())
