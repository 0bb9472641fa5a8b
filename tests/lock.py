"""The lock of what is tested, requirements.lock.

`python -m tests.lock renew` reads pip's report of what it would install (standard input) and prints the lock: make lock. `fits` says by its
status whether this Python and machine are those of the lock; `torch` prints the one pin without a hash, of the torch that is there if one
is; `holds` prints how what is installed differs from the lock: make setup.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "requirements.lock"

HEAD = """# What the tests run with, by version and hash: made by `make lock`, for {system} and Python {python}. Do not edit.
# To install exactly this: first the torch named below, then
#   pip install --require-hashes --no-deps -r requirements.lock && pip install --no-deps -e .
"""
TORCH = "# {pin}  without a hash: its builds for CPU and CUDA, from several indexes, share a version"


def locked(report: Mapping[str, Any]) -> str:
    """The text of requirements.lock: each package but Escala itself, by name."""
    lines, environment = [], report["environment"]
    for found in sorted(report["install"], key=lambda found: found["metadata"]["name"].lower()):
        about, source = found["metadata"], found["download_info"]
        pin = f"{about['name'].lower()}=={about['version']}"
        if about["name"] == "torch":
            lines.append(TORCH.format(pin=pin.partition("+")[0]))
        elif "dir_info" not in source:
            lines.append(f"{pin} --hash=sha256:{source['archive_info']['hashes']['sha256']}")
    system = f"{environment['sys_platform']} on {environment['platform_machine']}"
    return "\n".join([HEAD.format(system=system, python=environment["python_version"]), *lines]) + "\n"


def fits(text: str) -> bool:
    """Was a lock made for this Python and this kind of machine?"""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"for {sys.platform} on {platform.machine()} and Python {python}." in text


def pins(text: str) -> dict[str, str]:
    """Package -> version, torch among them."""
    return dict(re.findall(r"^(?:# )?([\w.-]+)==(\S+) ", text, re.MULTILINE))


def installed() -> dict[str, str]:
    """Package -> version of this environment."""
    return {found.metadata["Name"]: found.version for found in distributions()}


def differences(text: str, found: Mapping[str, str]) -> list[str]:
    """What is not installed as a lock says, a line each. found: package -> version. Builds of one version (2.13.0+cpu) are the same."""
    have = {_plain(name): version for name, version in found.items()}
    both = ((name, version, have.get(_plain(name), "none")) for name, version in pins(text).items())
    return [f"{name}: {version} locked, {other} installed" for name, version, other in both if other.partition("+")[0] != version]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(asked: list[str]) -> int:
    text = LOCK.read_text(encoding="utf-8")
    if asked == ["fits"]:
        return 0 if fits(text) else 1
    if asked == ["torch"]:
        sys.stdout.write(f"torch=={installed().get('torch', pins(text)['torch'])}\n")
    elif asked == ["holds"]:
        found = differences(text, installed()) if fits(text) else ["it is of another Python or machine"]
        sys.stdout.write("".join(f"setup: not as requirements.lock says: {one}\n" for one in found))
        return 1 if found else 0
    elif asked == ["renew"]:
        sys.stdout.write(locked(json.load(sys.stdin)))
    else:
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
