"""What runs on a submission and what runs on a push are the same; what is published is small, and has its place."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from escala.compile.sources import source_hash
from tests.bounded import unmade
from tests.release import MOST_BYTES, NEEDED, faults

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_workflow_makes_all_that_ci_makes() -> None:
    """The suite, the documentation, what is published, and the suite with checked bounds."""
    lines = re.findall(r"^make (.*)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    made = {word for line in lines for word in line.partition(" -")[0].split()}
    jobs = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    assert {"check", "test", "test-bounds", "docs", "dist"} <= made
    assert made - {"check"} - set(re.findall(r"run: make ([\w-]+)", jobs)) == set(), "make test checks first"


def test_bounds_are_checked_of_every_compiled_function(tmp_path: Path) -> None:
    """Or `make test-bounds` ends with its name: code of all is looked for, inner functions and those that Python
    calls."""
    recipe = re.search(r"^test-bounds:.*((?:\n\t.*)*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None and recipe[1].endswith(
        " ESCALA_CACHE_DIR=$(VENV)/bounds-cache $(BIN)/python -m tests.bounded"
    )
    every = list(unmade(tmp_path))
    marked = sum(
        len(re.findall(r"^ *@(?:compiled|lean|inlined|summed)\b", path.read_text(encoding="utf-8"), re.MULTILINE))
        for path in (ROOT / "src" / "escala").rglob("*.py")
    )
    assert len(every) == marked > 800
    lanes = tmp_path / f"lanes-{source_hash(ROOT / 'src' / 'escala' / 'kernel' / 'lanes.py')}" / "kernel_0"
    lanes.mkdir(parents=True)
    for file in ("lanes.join.inner-58.py311-0.nbc", "lanes.leave-71.py311.nbi"):
        (lanes / file).touch()
    assert set(every) - set(unmade(tmp_path)) == {"kernel/lanes.py: join", "kernel/lanes.py: leave"}


def test_the_workflow_tries_the_slurm_that_ci_installs_and_later_ones() -> None:
    packages = re.search(r'^packages="(.*)"$', (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    job = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8").partition("\n  slurm:\n")[2]
    assert packages is not None and packages[1] in " ".join(job.split()) and "run: make test-slurm" in job
    (asked,) = re.findall(r"^test-slurm:.*\n\t(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert asked.startswith("ESCALA_SLURM=need $(PYTEST) -m slurm ") and asked.endswith(
        " $$(grep -rlw 'mark\\.slurm' tests --include=test_*.py)"
    ), "all tests of this mark, wherever they stand"
    images = re.findall(r"image: (\S+)\n +optional: (\w+)", job)
    assert images == [("debian:12", "false"), ("ubuntu:24.04", "true"), ("debian:13", "true")]


def test_what_takes_too_long_for_each_push_runs_once_a_week() -> None:
    workflow = (ROOT / ".github" / "workflows" / "fuzz.yml").read_text(encoding="utf-8")
    (when,) = re.findall(r'cron: "(.*)"', workflow)
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", when) and "run: make fuzz\n" in workflow
    assert re.search(r"^fuzz: ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_workflow_has_every_python_that_is_promised() -> None:
    promised = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert json.loads(workflow.partition("python: ")[2].partition("\n")[0]) == promised


def test_every_extra_is_installed_somewhere_and_tested() -> None:
    """Most by make setup; the others in an environment of their own."""
    extras = PROJECT["optional-dependencies"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    apart = re.search(r"\nAPART := (.*)(?:\n.*)*?\ntest-extras:((?:\n\t.*)*)", makefile)
    assert apart is not None and "[$(APART)]" in apart[2] and "test_rllib.py" in apart[2]
    todo, found = ["dev", *apart[1].split(",")], set()
    while todo:
        found.add(extra := todo.pop())
        todo += [name for one in extras[extra] if one.startswith("escala[") for name in re.findall(r"\w+", one)[1:]]
    assert found == set(extras)
    assert "run: make test-extras" in (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")


def test_no_extra_asks_for_a_package_that_a_promised_python_lacks() -> None:
    """pygame has no wheel for Python 3.14; pygame-ce, which is imported by the same name, has."""
    asked = {one.replace(" ", "") for one in PROJECT["optional-dependencies"]["envs"] if one.startswith("pygame")}
    assert {one.partition(";")[2] for one in asked} == {"python_version<'3.14'", "python_version>='3.14'"}


def _archives(folder: Path, *, more: str = "", large: int = 0) -> Path:
    """A source archive and a wheel with what is needed."""
    folder.mkdir()
    (folder / "big").write_bytes(random.Random(1).randbytes(large))
    with tarfile.open(folder / "escala-1.tar.gz", "w:gz") as archive:
        for name in [*NEEDED[".tar.gz"], *([more] if more else [])]:
            archive.add(folder / "big", f"escala-1/{name}")
    with zipfile.ZipFile(folder / "escala-1-py3-none-any.whl", "w") as wheel:
        for name in [*NEEDED[".whl"], *([more] if more else [])]:
            wheel.write(folder / "big", name)
    return folder


def test_what_is_published_is_small_and_whole(tmp_path: Path) -> None:
    assert faults(_archives(tmp_path / "right")) == []
    kept = faults(_archives(tmp_path / "kept", more="docs/studies/marl2024/agent.npz"))
    assert kept[0].partition(": ")[2] == "holds docs/studies/marl2024/agent.npz" and len(kept) == 3
    large = faults(_archives(tmp_path / "large", large=MOST_BYTES[".tar.gz"] // 4 + 1000))
    assert [told.partition(", ")[2] for told in large] == ["more than 3,000,000"]
    (tmp_path / "none").mkdir()
    assert len(faults(tmp_path / "none")) == 2


def test_an_image_is_made_of_the_package_alone() -> None:
    """What `COPY . /src` takes is listed: no .venv, no .git; extras and files are there."""
    image = (ROOT / "Containerfile").read_text(encoding="utf-8")
    taken = [
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    ]
    assert taken[0] == "*" and {line[1:] for line in taken if line.startswith("!")} == {
        "src", "pyproject.toml", "constraints.txt", PROJECT["readme"], "LICENSE",
    }  # fmt: skip
    (extras,) = re.findall(r"\[([\w,]+)\]", image)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    build, run = re.findall(r"podman (?:build|run) [^&]+", image.partition("\n")[0])
    job = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8").partition("\n  image:\n")[2]
    assert f"run: {build.strip()}\n" in job and run.partition(" escala ")[0] in job, "built as its first line has it"


def _versions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("versions", ROOT / "docs" / "versions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_version_of_the_documentation_has_a_folder(tmp_path: Path) -> None:
    put, built, site = _versions().put, tmp_path / "built", tmp_path / "site"
    built.mkdir()
    (built / "index.html").write_text("first")
    (built / "gone.html").write_text("")
    for name in ("main", "0.9.0", "0.10.0rc1", "0.10.0"):
        names = put(site, built, name)
    assert names == ["0.10.0", "0.10.0rc1", "0.9.0", "main"] == json.loads((site / "versions.json").read_text())
    assert "url=0.10.0/" in (site / "index.html").read_text()
    (built / "gone.html").unlink()
    (built / "index.html").write_text("second")
    assert put(site, built, "main") == names
    assert (site / "main" / "index.html").read_text() == "second" and not (site / "main" / "gone.html").exists()
    assert (site / "0.9.0" / "index.html").read_text() == "first"
    for bad, place in (("../main", built), ("", built), ("main", tmp_path / "nothing")):
        with pytest.raises(ValueError):
            put(site, place, bad)
