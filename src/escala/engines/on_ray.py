"""Pieces of work, such as runs of a campaign, on Ray: a task each, here or on a cluster whose nodes see the same files
and Escala."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from escala.engines.pool import AHEAD, ENDED
from escala.engines.there import made_by, there
from escala.errors import EscalaError, one_line
from escala.extras import missing

ANSWER_S = 5.0
CONNECT_S = 45.0
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
"""How gRPC, which Ray speaks, begins (RFC 9113, section 3.4); the answer begins with a frame of settings, of type 4."""
SETTINGS = 4
CONNECT = """
import logging, sys
import ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
except Exception as error:
    sys.stdout.write(f"{type(error).__name__}: {error}")
    sys.exit(1)
"""
"""A process that does nothing but connect: Ray waits for minutes for a service that speaks as it does and is none, and
writes of it where nobody can keep it from doing so."""


@contextmanager
def cluster(address: str | None) -> Iterator[Callable[..., Iterator[tuple[Any, dict[str, Any]]]]]:
    """Ray, connected inside the block. address: HOST:PORT of a cluster; "auto": the one that this machine is part of;
    None: this machine, or what the process is connected to already.

    Raises EscalaError, one line: Ray is not installed, nothing answers there within seconds, or what answers is no such
    cluster.
    """
    if address is not None and "ray" not in sys.modules:  # else only the processes that it starts would look for one
        use_token()
    try:
        import ray
    except ModuleNotFoundError as error:
        raise missing(error, "--on ray", "ray") or error from error
    own = address not in (None, "auto") or not ray.is_initialized()
    if own:
        if address is not None and address != "auto":
            check_answer(address)
            check_connection(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a Ray that is started here reports nothing to anybody
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        here: dict[str, Any] = {"include_dashboard": False} if address is None else {}
        try:
            ray.init(address=address or "local", **quiet, **here)
        except Exception as error:
            raise _unusable(address, f"{type(error).__name__}: {error}") from error
    try:
        yield partial(each, ray)
    finally:
        if own:
            ray.shutdown()


def _unusable(address: str | None, why: str) -> EscalaError:
    token = "" if address in (None, "auto") else "; if the cluster has a token, give it as RAY_AUTH_TOKEN"
    return EscalaError(f"Ray cannot be used at {address or 'this machine'} (--on ray): {one_line(why)[:200]}{token}")


def use_token() -> None:
    """Have Ray show the cluster the token that is at hand: `ray start` makes one (Ray 2.60), and Ray looks for it in
    this mode alone, which it reads when it is imported."""
    given = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if given or (Path.home() / ".ray" / "auth_token").is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def check_answer(address: str) -> None:
    """EscalaError where no service of Ray's kind answers at HOST:PORT within seconds: Ray itself tries for more than a
    minute."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_S) as line:
            line.settimeout(ANSWER_S)
            line.sendall(HELLO)
            answer = line.recv(9)
    except (OSError, ValueError, OverflowError) as error:
        raise EscalaError(
            f"no Ray cluster answers at {address} (--on ray): {error}: give HOST:PORT as `ray start` told it"
        ) from None
    if len(answer) < 4 or answer[3] != SETTINGS:
        raise EscalaError(
            f"what answers at {address} is no Ray cluster (--on ray): give HOST:PORT as `ray start` told it"
        )


def check_connection(address: str) -> None:
    """EscalaError where another process cannot connect to a cluster at HOST:PORT in time."""
    call = [sys.executable, "-c", CONNECT, address]
    try:
        done = subprocess.run(
            call, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=CONNECT_S
        )
    except subprocess.TimeoutExpired:
        raise EscalaError(
            f"what answers at {address} took no connection in {CONNECT_S:.0f} s, as a Ray cluster does (--on ray): "
            "give HOST:PORT as `ray start` told it"
        ) from None
    if done.returncode:
        raise _unusable(address, done.stdout or "it is no Ray cluster, or one of another version")


def each(ray: Any, pieces: Sequence[Any], job: Callable[[Any], dict[str, Any]]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Every piece of work with what `job` gives, as they end; at most `AHEAD` for each core of the cluster are given to
    Ray at a time."""
    task = ray.remote(num_cpus=1, max_retries=0)(there)
    most = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    with _sent():
        told = {"job": ray.put(job), "folder": os.getcwd(), "program": made_by()}
    waiting, tried, running = deque(pieces), set[str](), dict[Any, Any]()
    try:
        while waiting or running:
            while waiting and len(running) < most:
                run = waiting.popleft()
                with _sent():
                    running[task.remote(run, **told)] = run
            for done in ray.wait(list(running))[0]:
                run = running.pop(done)
                try:
                    yield run, ray.get(done)
                except ray.exceptions.RayError as error:
                    if run.key in tried:
                        died = not isinstance(error, ray.exceptions.RayTaskError)
                        yield run, {"error": ENDED if died else one_line(f"on Ray: {str(error).splitlines()[-1]}")}
                    else:
                        tried.add(run.key)
                        waiting.append(run)
    finally:
        for left in running:
            with suppress(Exception):
                ray.cancel(left)


@contextmanager
def _sent() -> Iterator[None]:
    """EscalaError for what no other process can be given, such as a policy that holds an open file."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, TypeError | AttributeError | ValueError) and type(error).__name__ != "PicklingError":
            raise
        raise EscalaError(f"cannot be sent to another process (--on ray): {one_line(str(error))[:200]}") from error
