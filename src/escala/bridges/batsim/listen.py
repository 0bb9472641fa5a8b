"""The process at a ZeroMQ socket, where Batsim finds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import zmq

from escala.bridges.batsim.messages import write
from escala.bridges.batsim.process import Process
from escala.bridges.place import cleared
from escala.errors import EscalaError

LONGEST_BYTES = 1 << 30
IPC = "ipc://"
LINGER_MS = 2000
WAIT_MS = 500


def listen(endpoint: str, process: Process, ready: Callable[[], None]) -> None:
    """Reply to Batsim until its simulation is over. ready: called once it may be started.

    Raises:
        EscalaError: the endpoint cannot be had; a message makes no sense. Batsim is sent a reply then that it cannot
            read, so that it ends too, and does not wait for ever.
    """
    named = endpoint.removeprefix(IPC)
    if endpoint.startswith(IPC) and not named.startswith(("@", "*")):  # ZeroMQ replaces whatever stands at the path
        cleared(Path(named))
    context = zmq.Context()
    here = context.socket(zmq.REP)
    here.setsockopt(zmq.MAXMSGSIZE, LONGEST_BYTES)
    here.setsockopt(zmq.LINGER, LINGER_MS)
    try:
        try:
            here.bind(endpoint)
        except zmq.ZMQError as error:
            raise EscalaError(
                f"--endpoint {endpoint}: cannot be had ({str(error).lower()}): give one that is free, as "
                "tcp://127.0.0.1:28001"
            ) from None
        ready()
        while not process.over:
            if not here.poll(WAIT_MS):
                continue
            data = here.recv()
            try:
                here.send(process.answer(data))
            except Exception as error:
                here.send(write(0.0, [("REFUSED_BY_ESCALA", {"why": str(error)})]))
                raise
    finally:
        here.close()
        context.term()
