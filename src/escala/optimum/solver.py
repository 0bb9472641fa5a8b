"""One solver in a process of its own (`prover.py`): what it said counts, whether it ended by itself, at its limit or by
Ctrl-C."""

from __future__ import annotations

import importlib.util
import io
import json
import math
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from escala.errors import EscalaError

GRACE_S = 3.0  # a solver that has not stopped by itself this long after its limit is ended
# a line of HiGHS's table of nodes: [mark] done open leaves explored% best-bound ...
LOG_BOUND = re.compile(r"^\s*[A-Za-z]?\s*\d+\s+\d+\s+\d+\s+[\d.]+%\s+(-?\d[\d.e+-]*)\s")


Report = Callable[[float], None]


class Run(NamedTuple):
    """One solver's messages: its last bound in its own units, its solution, the word it ended on and its version."""

    bound: float
    solution: list[float] | None
    done: str
    version: str
    interrupted: bool


def installed(package: str) -> bool:
    """Whether a package of the extra `optimum` is there."""
    return importlib.util.find_spec(package) is not None


def solve(solver: str, data: dict[str, Any], limit_s: float, report: Report = lambda bound: None) -> Run:
    """Run `prover.py`; Ctrl-C here ends it there, and what it had said counts."""
    packed = io.BytesIO()
    np.savez(packed, **data)
    bound, solution, done, version, interrupted, ended = -math.inf, None, "", "", False, False
    started = time.monotonic()
    command = [sys.executable, "-P", str(Path(__file__).with_name("prover.py")), solver, f"{limit_s:.3f}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # a session of its own: Ctrl-C in a terminal reaches this process alone, which then ends the solver
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []
    threading.Thread(target=_read, args=(child, lines), daemon=True).start()
    teller = threading.Thread(target=_complaints, args=(child, errors), daemon=True)
    teller.start()
    try:
        assert child.stdin is not None
        child.stdin.write(packed.getvalue())
        child.stdin.close()
        while True:
            line = lines.get(timeout=max(0.01, started + limit_s + GRACE_S - time.monotonic()))
            if line is None:
                ended = True
                break
            message = _message(line)
            if message.get("bound", -math.inf) > bound:
                bound = message["bound"]
                report(bound)
            solution, done, version = (
                message.get("solution", solution),
                message.get("done", done),
                message.get("version", version),
            )
            if done:
                break
    except queue.Empty:
        pass  # past its limit: ended below, and what it had said counts
    except KeyboardInterrupt:
        interrupted = True
    except BrokenPipeError:
        ended = True
    finally:
        if not ended:
            child.kill()
        code = child.wait()
        teller.join(1.0)
    if ended and not done and bound == -math.inf:
        last = [f"exit code {code}", *"".join(errors).strip().splitlines()][-1]
        raise EscalaError(f"exact: the solver '{solver}' failed: {last}; leave out exact, or mend the installation")
    return Run(bound, solution, done, version, interrupted)


def _read(child: subprocess.Popen[bytes], lines: queue.Queue[str | None]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line.decode(errors="replace"))
    lines.put(None)


def _complaints(child: subprocess.Popen[bytes], errors: list[str]) -> None:
    assert child.stderr is not None
    errors.append(child.stderr.read().decode(errors="replace"))


def _message(line: str) -> dict[str, Any]:
    """A line of the solver as a message. A bound from HiGHS's log has ten digits, so it is lowered by more than their
    rounding."""
    if line.startswith("{"):
        message: dict[str, Any] = json.loads(line)
        return message
    found = LOG_BOUND.match(line)
    if not found:
        return {}
    value = float(found.group(1))
    return {"bound": value - 1e-8 * max(1.0, abs(value))}
