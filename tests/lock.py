"""The lock of what is tested: make lock. Reads pip's report of what it would install (standard input), prints requirements.lock."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

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


if __name__ == "__main__":
    sys.stdout.write(locked(json.load(sys.stdin)))
