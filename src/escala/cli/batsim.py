"""The verb batsim: policies as a decision process of Batsim."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import asked
from escala.cli.policies import POINTER
from escala.cli.replay import policies
from escala.cli.shields import counted
from escala.cli.terminal import progress, remark
from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.bridges.batsim.process import Process

ENDPOINT = "tcp://127.0.0.1:28000"
LOOPBACK = ("tcp://127.0.0.1:", "tcp://localhost:", "tcp://[::1]:", "ipc://", "inproc://")

Endpoint = Annotated[
    str,
    typer.Option(
        "--endpoint", metavar="ADDRESS", help="where Batsim finds it, as ZeroMQ writes it; tcp://*:28000: from anywhere"
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--platform",
        metavar="SPEC",
        help="the platform file that Batsim is given: how long switches take; needed by all shutdown policies but "
        "never",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(asked.asking(batsim))


def batsim(
    *,
    options: dict[str, Any],
    scheduler: asked.Scheduler = "easy",
    shutdown: asked.Shutdown = "never",
    platform: Nodes = None,
    endpoint: Endpoint = ENDPOINT,
    lost: Annotated[
        str,
        typer.Option(
            "--lost",
            metavar="WHAT",
            help="jobs on hosts that become unavailable: stay (they run on), kill, requeue (anew)",
        ),
    ] = "stay",
) -> None:
    """Decide for Batsim 4, the reference simulator: a process of its protocol, for one simulation.

    Start it first, then Batsim; it ends with the simulation.
    """
    import escala
    from escala.bridges.batsim.listen import listen
    from escala.bridges.batsim.lost import WAYS
    from escala.bridges.batsim.process import Process
    from escala.live import Desk

    if lost not in WAYS:
        raise EscalaError(f"--lost {lost}: give one of {', '.join(WAYS)}")
    if shutdown != "never" and platform is None:
        raise EscalaError(
            f"--shutdown {shutdown}: Batsim does not tell how long nodes take to switch: give its --platform FILE too"
        )
    with progress() as begin:
        begin("making the desk")
        machine = None if platform is None else escala.read_platform(platform)
        pair = policies([scheduler], [shutdown])

        def make(nodes: Any) -> Desk:
            return Desk(nodes, pair[0][0], pair[1][0], **options)

        _warmed(make, machine or escala.Platform.uniform(1))
    if not endpoint.startswith(LOOPBACK):
        remark(f"--endpoint {endpoint}: whoever reaches this machine's network can talk to it")
    process = Process(make, machine, lost)
    listen(endpoint, process, lambda: _tell(f"listening at {endpoint}: {scheduler} + {shutdown}"))
    told = (process.messages, process.started, process.rejected, process.switches)
    _tell(
        "ended: messages {}, jobs started {}, rejected {}, nodes switched {}".format(*told)
        + _lost(process)
        + counted(process.counts, "; ")
    )


def _lost(process: Process) -> str:
    """What became of jobs whose hosts became unavailable; "" for none."""
    lost = process.lost
    if not lost.killed:
        return ""
    done = f", {sum(lost.done) / len(lost.done):.0%} of their work done on average" if lost.done else ""
    return f", killed {lost.killed}{done}, requeued {lost.requeued}"


def _warmed(make: Any, machine: Any) -> None:
    """Compile now what a decision needs, and refuse policies that cannot be asked."""
    from escala.live import Snapshot

    make(machine).decide(Snapshot.of(0.0, {}, {"power": ["on"] * machine.n_nodes}))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
