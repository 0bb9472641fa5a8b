"""Every planted bug has its place in the sources and its tests, and each end of those tests has its word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks import mutants
from tests.attacks.planted import AREAS, BUGS, Bug


def test_every_bug_has_its_place_once_and_a_name_of_its_own() -> None:
    lost = [bug.name for bug in BUGS if not mutants.applies(bug)]
    assert not lost, f"mend tests/attacks/planted.py: {lost}"
    assert len({bug.name for bug in BUGS}) == len(BUGS) and all(bug.old != bug.new for bug in BUGS)


def test_the_tests_of_every_area_are_there() -> None:
    assert {bug.area for bug in BUGS} == set(AREAS)
    assert [path for paths in AREAS.values() for path in paths if not (mutants.ROOT / path).exists()] == []


ENDS = {
    "passed": "assert VALUE == 1",
    "failed": "assert VALUE == 2",
    "not collected": "import escala.nowhere",
    "crash": "import os; os.abort()",
    "timeout": "while True: pass",
}


@pytest.mark.parametrize(("word", "line"), ENDS.items(), ids=ENDS)
def test_how_tests_end_is_one_word(word: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "src" / "escala" / "kernel.py"
    module.parent.mkdir(parents=True)
    (module.parent / "__init__.py").touch()
    module.write_text("VALUE = 1\n")
    inside = "" if word == "not collected" else "def test_it():\n    "
    (tmp_path / "test_it.py").write_text(f"from escala.kernel import VALUE\n{inside}{line}\n")
    monkeypatch.setitem(mutants.AREAS, "kernel", ("test_it.py",))
    assert mutants.outcome("kernel", tmp_path, 1.0 if word == "timeout" else 30.0)[0] == word
    if word == "passed":
        assert 0 < mutants.sound("kernel", tmp_path) < 60
        assert mutants.plant(Bug("kernel", "kernel.py", "= 1", "= 3"), tmp_path, 30.0) == "failed"
        assert module.read_text() == "VALUE = 1\n"
    if word == "failed":
        with pytest.raises(SystemExit, match=r"end without a bug with: failed[\s\S]*test_it"):
            mutants.sound("kernel", tmp_path)


def test_only_failed_tests_and_crashes_count() -> None:
    here = [bug for bug in BUGS if bug.area == "metrics"][: len(ENDS)]
    answers = mutants.answers(here, dict(zip((bug.name for bug in here), ENDS)))
    assert answers["survivors"] == [here[k].name for k, word in enumerate(ENDS) if word not in ("failed", "crash")]
    assert answers["outcomes"] == dict(zip((bug.name for bug in here), ENDS)) and answers["by_area"]["metrics"] == len(
        ENDS
    )  # type: ignore[index]
