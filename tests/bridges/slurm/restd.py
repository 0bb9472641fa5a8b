"""A slurmrestd that is none: it answers one version of the interface with what was recorded, at a unix socket, or with
faults."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
Answer = Callable[[str], tuple[int, bytes] | None]
"""What is asked (jobs, nodes, ...) -> status and body; None: half an answer, and then the end."""


def recorded(slurm: str) -> dict[str, bytes]:
    """What a version of Slurm said. Of 24.11, its clients' JSON, which has the same form, and reservations put in that
    form here."""
    if slurm == "22.05":
        return {
            what: (RECORDED / f"rest-{what}-22.05.json").read_bytes()
            for what in ("ping", "jobs", "nodes", "reservations")
        }
    found = {
        "jobs": (RECORDED / "squeue-24.11.json").read_bytes(),
        "nodes": (RECORDED / "nodes-24.11.json").read_bytes(),
    }
    release = {"version": {"major": "24", "micro": "5", "minor": "11"}, "release": "24.11.5"}
    kept = [
        {
            "name": "maint",
            "node_list": "n8",
            **{key: _number(k) for k, key in enumerate(("start_time", "end_time"), 1_800_000_000)},
        }
    ]
    found["ping"] = json.dumps({"meta": {"slurm": release}, "errors": []}).encode()
    return found | {"reservations": json.dumps({"reservations": kept, "errors": []}).encode()}


def _number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


def from_recorded(slurm: str) -> Answer:
    """Answers as recorded."""
    told = recorded(slurm)
    return lambda what: (200, told[what]) if what in told else (404, b"Unable find requested URL")


@contextmanager
def restd(path: Path, api: str, answer: Answer) -> Iterator[list[str]]:
    """It listens as long as it is entered. Gives what it was asked, as it comes."""
    asked: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as here:
        here.bind(str(path))
        here.listen(8)
        thread = threading.Thread(target=_serve, args=(here, api, answer, asked), daemon=True)
        thread.start()
        yield asked
        here.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _serve(here: socket.socket, api: str, answer: Answer, asked: list[str]) -> None:
    while True:
        try:
            there, _ = here.accept()
        except OSError:
            return
        with there:
            line = there.recv(65536).decode().splitlines()[0]
            what = line.split()[1]
            asked.append(what)
            _, _, version, last = what.split("/")
            told = answer(last) if version == api else (404, b"Unable find requested URL")
            status, body = told or (200, b'{"jobs": [')
            length = len(body) + (0 if told else 1000)
            head = [f"HTTP/1.1 {status} x", f"Content-Length: {length}", "Content-Type: application/json"]
            head += ["Connection: Close"] * (status != 200)  # as the real one says
            there.sendall("\r\n".join([*head, "", ""]).encode() + body)
