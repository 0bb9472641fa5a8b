"""The verb doctor, and completion by the shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import escala
from escala import compile
from escala.cli import compiled, doctor
from escala.extras import EXTRAS
from escala.kernel.lanes import has_lanes
from escala.writing import output_folder
from tests.cli.program import Escala


def test_doctor_tells_versions_cache_threads_and_extras(escala_: Escala) -> None:
    outcome = escala_("doctor", "--json")
    told = json.loads(outcome.out)
    assert (
        outcome.status == 0 and told["escala"] == escala.__version__ and told["packages"]["polars"] == version("polars")
    )
    assert told["threads"]["processors"] == os.cpu_count() >= told["threads"]["usable"] >= 1
    assert {row["package"]: row["extra"] for row in told["extras"]} == EXTRAS
    shown = escala_("doctor").out
    assert all(package in shown for package in (*EXTRAS, *doctor.CORE))


def test_doctor_says_what_is_missing(escala_: Escala, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda package: None if package == "torch" else "1")
    for module in (compile, compiled):
        monkeypatch.setattr(module, "CACHE_FOLDER", None)
    outcome = escala_("doctor")
    assert outcome.status == 0 and "pip install '.[agents]'" in outcome.out and "ESCALA_CACHE_DIR" in outcome.out
    assert len(json.loads(escala_("doctor", "--json").out)["hints"]) == 2


def test_doctor_finds_a_package_that_another_distribution_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip install '.[track]' brings mlflow-skinny, and '.[envs]' pygame-ce on Python 3.14."""

    def only(name: str) -> str:
        if name not in ("mlflow-skinny", "pygame-ce"):
            raise PackageNotFoundError(name)
        return "3.1"

    monkeypatch.setattr(doctor, "version", only)
    assert {row["package"] for row in doctor._extras() if row["version"] is not None} == {"mlflow", "pygame"}


def test_doctor_names_and_removes_what_killed_runs_left(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (".killed.partial", ".mine.partial"):
        (tmp_path / name / "new").mkdir(parents=True)
        (tmp_path / name / "new" / "half").write_text("half")
    (tmp_path / ".killed.partial" / "verb").write_text("simulate")
    with output_folder(tmp_path / "live", "simulate"):
        for more in ((), ("--clean",)):
            assert json.loads(escala_("doctor", "--json", *more).out)["stale"] == [str(tmp_path / ".killed.partial")]
        assert (tmp_path / ".live.partial").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.partial", "live"]
    assert json.loads(escala_("doctor", "--json").out)["stale"] == []


def test_doctor_names_and_removes_compiled_code_that_no_source_needs(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this version of Numba and of others, but neither what is needed, nor what is just being written, nor anything
    that is no folder of compiled code."""
    here = tmp_path / "compiled-numba-1.2"
    lanes = compile.Compiled(has_lanes.function, {})._place()  # type: ignore[attr-defined]
    needed = [f"{folder}/{lanes}" for folder in ("compiled-numba-1.2", "compiled-numba-1.2-checked")]
    others = [f"compiled-numba-1.2/drive-{k:016x}" for k in range(3)]
    others += [
        f"compiled-numba-1.2/lanes-{0:016x}",
        f"compiled-numba-1.20/{lanes}",
        f"compiled-numba-1.2/a-{0:016x}.going",
    ]
    foreign = ["compiled-numba-1.2/notes", "workloads/lanes-0000000000000000"]
    fresh = f"compiled-numba-1.2/fresh-{0:016x}"  # all but the folder below is as old
    for name in (*needed, *others, *foreign, fresh):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below" / "code").write_bytes(bytes(1_000_000))
        for place in (tmp_path / name, *([tmp_path / name / "below"] if name != fresh else [])):
            os.utime(place, (0, 0))
    (tmp_path / "kept").mkdir()
    (tmp_path / "compiled-numba-2").symlink_to(tmp_path / "kept")
    (tmp_path / "kept" / f"linked-{0:016x}").mkdir()
    monkeypatch.chdir(tmp_path)
    for module in (compile, compiled):
        monkeypatch.setattr(module, "CACHE_FOLDER", here)
    what = "Compiled code of 3 or more other versions of Escala, 7 MB: "
    assert what + "escala doctor --clean removes it.\n" in escala_("doctor").out
    told = json.loads(escala_("doctor", "--json").out)["cache"]
    assert told == {"folder": str(here), "files": 10, "mb": 10.0, "others_mb": 7.0}
    assert what + "removed, but for 1 folders of the last hour, or of others.\n" in escala_("doctor", "--clean").out
    assert sorted(str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("below")) == sorted(
        [*needed, *foreign, fresh]
    )
    assert (tmp_path / "kept" / f"linked-{0:016x}").is_dir()
    assert json.loads(escala_("doctor", "--json").out)["cache"]["others_mb"] == 1.0


def test_doctor_imports_no_extra() -> None:
    code = (
        "import sys; from escala.cli.app import run; run(['doctor', '--json']); print('torch' in sys.modules, "
        "'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("False False\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "at", "expected"),
    [
        ("escala sim", 1, ["simulate"]),
        ("escala workload ", 2, ["convert", "describe", "fetch", "from-slurm", "generate"]),
        ("escala doctor --js", 2, ["--json"]),
    ],
)
def test_the_shell_completes_verbs_and_options(words: str, at: int, expected: list[str], tmp_path: Path) -> None:
    asked = {"_ESCALA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at), "HOME": str(tmp_path)}
    code = "import sys; sys.argv = ['escala']; from escala.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, **asked}
    )
    assert sorted(done.stdout.split()) == expected, done.stderr
