"""Ctrl-C and SIGTERM end the program also inside a callback of a compiled library, where Python forgets what they
raise."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, os, signal, sys, time
from escala.cli import app, interrupt

def verb(*_, **__):
    call = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.{signal}))
    with interrupt.keeping("all is kept") if {keeps} else interrupt.contextmanager(lambda: (yield))():
        call()
        {then}

app.app = verb
interrupt.listen_for_termination()
sys.exit(app.run([]))
"""


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("then", ["raise RuntimeError('no compiled object yet')", "time.sleep(300)"])
@pytest.mark.parametrize(("signal", "word", "status"), [("SIGTERM", "terminated", 143), ("SIGINT", "interrupted", 130)])
def test_one_line_and_the_status_of_the_signal(signal: str, word: str, status: int, then: str, keeps: bool) -> None:
    asked = [sys.executable, "-c", PROGRAM.format(signal=signal, then=then, keeps=keeps)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    assert done.stderr == f"error: {word}; {'all is kept' if keeps else 'nothing was written'}\n"
    assert done.returncode == status
