"""The locks name, for every promised Python, what pyproject.toml asks for, each with hashes, and no place and no CUDA;
what make setup installs is what its lock says."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
APART = re.findall(r"^APART := (.*)$", MAKEFILE, re.MULTILINE)[0].split(",")
LOCKS = {"requirements.lock": ["dev"], "requirements-extras.lock": APART}
PYTHONS = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]


def _of(extras: list[str]) -> list[Requirement]:
    """What the core and extras ask for, with what the extras that these name do."""
    asked, todo, found = PROJECT["optional-dependencies"], list(extras), list(map(Requirement, PROJECT["dependencies"]))
    for extra in todo:
        for one in map(Requirement, asked[extra]):
            if one.name == "escala":
                todo += sorted(one.extras - set(todo))
            else:
                found.append(one)
    return found


def _pins(text: str, **environment: str) -> dict[str, str]:
    """Package -> version, of those for a Python and system."""
    lines = (Requirement(line) for line in re.findall(r"^([^#\s][^\\]*?) \\$", text, re.MULTILINE))
    fitting = (one for one in lines if one.marker is None or one.marker.evaluate(environment))
    return {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in fitting}


def _differences(pins: dict[str, str]) -> list[str]:
    """What is not installed as a lock says. Builds of one version (2.13.0+cpu) are the same."""
    have = {canonicalize_name(found.metadata["Name"]): found.version.partition("+")[0] for found in distributions()}
    return [f"{name}: {pin} locked, {have.get(name)} installed" for name, pin in pins.items() if have.get(name) != pin]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_what_is_asked_for(lock: str, python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    pins = _pins((ROOT / lock).read_text(), **environment)
    asked = [one for one in _of(LOCKS[lock]) if one.marker is None or one.marker.evaluate(environment)]
    assert {"numpy", "stable-baselines3", "torch", "matplotlib"} <= {one.name for one in asked}
    for one in asked:
        assert one.specifier.contains(pins[canonicalize_name(one.name)], prereleases=True), one
    assert [name for name in pins if re.match("nvidia|cuda|triton", name)] == [], "gigabytes: tests/lock.toml"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_a_hash_for_everything_and_no_place(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = re.split(r"\n(?=\S)", text.partition("make lock\n")[2].strip())
    hashed = r"[\w.-]+==[\w.!]+( ; [^\\\n]+)? \\\n( +--hash=sha256:[0-9a-f]{64}( \\\n|$))+"
    assert [one for one in entries if re.fullmatch(hashed, one) is None] == [] and len(entries) > 100
    assert "://" not in text and "index" not in text


def test_what_is_installed_is_what_the_lock_says() -> None:
    """Where make setup could install it so: where the registry lacks a version, it takes what there is."""
    held, text = Path(sys.prefix) / "locked.txt", (ROOT / "requirements.lock").read_text()
    if not held.exists():
        pytest.skip("this environment was not installed from requirements.lock")
    assert held.read_text() == text, "requirements.lock is another than the one installed: make setup"
    assert _differences(_pins(text)) == [], "the environment was changed: rm -r .venv && make setup"


def test_differences_are_found() -> None:
    pins = _pins("pytest==0.1 \\\n    --hash=sha256:ab\nno_such==1.0 \\\ngone==1 ; python_version < '3' \\\n")
    assert pins == {"pytest": "0.1", "no-such": "1.0"}
    other, none = _differences(pins)
    assert other == f"pytest: 0.1 locked, {pytest.__version__} installed"
    assert none == "no-such: 1.0 locked, None installed"


def test_the_locked_torch_is_within_the_constraints() -> None:
    bounds = Requirement(re.findall(r"^torch.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]).specifier
    assert [_pins((ROOT / lock).read_text())["torch"] in bounds for lock in LOCKS] == [True, True]


def test_setup_and_the_extras_install_from_their_locks() -> None:
    """torch first, by a command without hashes, so that the one with them finds it there."""
    how = MAKEFILE.partition("from_lock = ")[2].partition("\n\n")[0]
    assert how.index("grep -o '^torch==[^ ]*' $(2)") < how.index("--require-hashes --no-deps -r $(2)")
    for target, lock in (("$(STAMP): ", "requirements.lock"), ("test-extras:", "requirements-extras.lock")):
        rule = MAKEFILE.partition(f"\n{target}")[2].partition("\n\n")[0]
        assert "$(call from_lock," in rule and f",{lock})" in rule
