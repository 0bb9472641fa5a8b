"""requirements.lock names what pyproject.toml asks for, each with a hash, and no place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.lock import locked

ROOT = Path(__file__).parents[2]


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_the_lock_holds_a_hash_for_everything_asked_for() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines), lines
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = {_name(one) for extra in set(extras) - {"ray", "rllib", "share", "track"} for one in [*project["dependencies"], *extras[extra]]}
    assert asked - {_name(line) for line in lines} == {"escala", "torch"}


def test_a_lock_holds_neither_torch_nor_a_folder() -> None:
    def one(name: str, **source: object) -> dict[str, object]:
        return {"metadata": {"name": name, "version": "1.0+cpu"}, "download_info": {"url": "file:///home/me/x", **source}}

    archive = {"archive_info": {"hashes": {"sha256": "ab"}}}
    installed = [one("torch", **archive), one("Zip", **archive), one("escala", dir_info={"editable": True})]
    text = locked({"environment": {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.11"}, "install": installed})
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert pins == ["zip==1.0+cpu --hash=sha256:ab"] and "home" not in text and "# torch==1.0 " in text
