"""Beside a process that translates, a second one: it begins with what the first comes to last, see
`escala.compile.ahead`."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path

DONE = 0
"""How it ends where nothing was left to do; else no other is begun by this process."""

_begun: list[subprocess.Popen[bytes]] = []


def ask(module: str, name: str, kind: tuple[str, ...], folder: Path | None) -> None:
    """A function of Escala's is about to be translated: let the second process translate what it calls. folder: where
    code is kept. Where there is none, or where no second process can be begun, nothing happens."""
    if folder is None or not module.startswith("escala."):
        return
    try:
        if not _begun or _begun[0].poll() == DONE:
            _begun[:] = _begin(folder)
        for process in _begun:
            if process.poll() is None and process.stdin is not None:
                process.stdin.write(f"{json.dumps([module, name, kind])}\n".encode())
                process.stdin.flush()
    except OSError:
        pass  # it ended meanwhile, or none can be begun


def _begin(folder: Path) -> list[subprocess.Popen[bytes]]:
    """The process; none where there is no processor for it, or where this program is not Python's own."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if usable < 2 or not Path(sys.executable or "").name.startswith("python"):
        return []
    alone = "-I" if sys.flags.isolated else "-P"  # nothing from the folder where it happens to begin
    command = [sys.executable, alone, "-m", "escala.compile.ahead", str(Path(__file__).parent), str(folder)]
    quiet = subprocess.DEVNULL
    return [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet)]


@atexit.register
def end() -> None:
    """The second process ends with the first; where the first is killed, with its input."""
    for process in _begun:
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
    _begun.clear()
