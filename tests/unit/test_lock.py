"""requirements.lock names what pyproject.toml asks for, each with a hash, and no place; what make setup installs is what it says."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.lock import differences, fits, installed, locked, pins

ROOT = Path(__file__).parents[2]


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _of(extras: dict[str, list[str]], name: str) -> list[str]:
    """What an extra asks for, with that of the extras it names."""
    found = []
    for one in extras[name]:
        inner = Requirement(one)
        found += [wanted for extra in inner.extras for wanted in _of(extras, extra)] if inner.name == "escala" else [one]
    return found


def test_the_lock_holds_a_hash_for_everything_asked_for() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines), lines
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *_of(project["optional-dependencies"], "dev")]
    asked = {_name(one) for one in wanted if (marker := Requirement(one).marker) is None or marker.evaluate({"python_version": "3.11"})}
    assert {"stable-baselines3", "ortools", "sphinx", "pytest"} <= asked and asked - {_name(line) for line in lines} == {"torch"}


def test_a_lock_holds_neither_torch_nor_a_folder() -> None:
    def one(name: str, **source: object) -> dict[str, object]:
        return {"metadata": {"name": name, "version": "1.0+cpu"}, "download_info": {"url": "file:///home/me/x", **source}}

    archive = {"archive_info": {"hashes": {"sha256": "ab"}}}
    installed = [one("torch", **archive), one("Zip", **archive), one("escala", dir_info={"editable": True})]
    text = locked({"environment": {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.11"}, "install": installed})
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert pins == ["zip==1.0+cpu --hash=sha256:ab"] and "home" not in text and "# torch==1.0 " in text


def test_what_is_installed_is_what_the_lock_says() -> None:
    """Where make setup could install it so: on another Python, or where the registry lacks a version, it takes what there is."""
    held = Path(sys.prefix) / "locked.txt"
    if not held.exists():
        pytest.skip("this environment was not installed from requirements.lock")
    text = (ROOT / "requirements.lock").read_text()
    assert fits(text) and held.read_text() == text, "requirements.lock is another than the one installed: make setup"
    assert differences(text, installed()) == [], "the environment was changed: rm -r .venv && make setup; or renew the lock: make lock"


def test_differences_are_found() -> None:
    text = "# torch==2.1.0  without a hash\nzip_it==1.0 --hash=sha256:ab\nother==3.1 --hash=sha256:cd\n"
    assert differences(text, {"torch": "2.1.0+cpu", "Zip.It": "1.0", "other": "3.1"}) == []
    assert differences(text, {"torch": "2.2.0", "Zip.It": "1.0"}) == [
        "torch: 2.1.0 locked, 2.2.0 installed",
        "other: 3.1 locked, none installed",
    ]


def test_the_locked_torch_is_within_the_constraints() -> None:
    low, high = re.findall(r"^torch>=([\d.]+),<([\d.]+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]
    at = [tuple(map(int, one.split("."))) for one in (low, pins((ROOT / "requirements.lock").read_text())["torch"], high)]
    assert at[0] <= at[1] < at[2]


def test_setup_installs_from_the_lock() -> None:
    rule = (ROOT / "Makefile").read_text().partition("$(STAMP): ")[2].partition("\n\n")[0]
    assert "requirements.lock" in rule.splitlines()[0] and "--require-hashes --no-deps -r requirements.lock" in rule
