"""The verb serve: a desk at a unix socket."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import asked
from escala.cli import options as opt
from escala.cli.policies import POINTER
from escala.cli.replay import policies
from escala.cli.shields import counted
from escala.cli.terminal import progress
from escala.errors import EscalaError

Socket = Annotated[
    Path,
    typer.Option(
        "--socket", metavar="PATH", help="unix socket to listen at, for its owner alone (mode 0600)", show_default=False
    ),
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="what the policies remember: read at the start if it exists, written before each answer",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(asked.asking(serve))


def serve(
    *,
    platform: opt.PlatformSpec,
    options: dict[str, Any],
    socket: Socket,
    state: State = None,
    scheduler: asked.Scheduler = "easy",
    shutdown: asked.Shutdown = "never",
    power: opt.Power = None,
) -> None:
    """Answer snapshots of a machine with what the policies would do now: one line of JSON asks, one line answers.

    It ends at SIGTERM or Ctrl-C, after the decision at hand.
    """
    import escala
    from escala.bridges.answers import Answers
    from escala.bridges.ending import told_to_end
    from escala.bridges.notify import Notify
    from escala.bridges.place import alone_with
    from escala.bridges.serve import serve as stay
    from escala.live.site_desk import desk_of

    if state is not None and not state.parent.is_dir():
        raise EscalaError(f"{state}: there is no folder {state.parent}: make it, or name another file")
    if state is not None and state.resolve() == socket.resolve():
        raise EscalaError(f"--state {state}: is the path of --socket too: name another file")
    with progress() as begin:
        begin("making the desk")
        machine = escala.read_platform(platform, power)
        pair = policies([scheduler], [shutdown])
        desk = desk_of(machine, pair[0][0], pair[1][0], **options)
        desk.warm()
    service = Notify()

    def ready() -> None:
        _tell(f"listening at {socket}: {desk.name}, {machine.n_nodes} nodes")
        service.ready(desk.name)

    with nullcontext() if state is None else alone_with(state), told_to_end() as ending:
        answers = Answers(desk, state)
        stay(socket, answers, ending, ready)
        service.stopping()
    _tell(f"ended: decisions {answers.decisions}, errors {answers.errors}{counted(desk.counts, '; ')}")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
