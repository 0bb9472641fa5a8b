"""Where compiled code is kept: an edit recompiles what may call it, and nothing else."""

from __future__ import annotations

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
