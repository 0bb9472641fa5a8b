"""The verb what-if: waits and energy on a site with other nodes or limits."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.elsewhere import working
from escala.cli.interrupt import interruptible, keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.policies import POINTER
from escala.cli.reading import read_log, read_of, with_shapes
from escala.cli.replay import On, policies, power_of
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, plain, progress
from escala.errors import number_of
from escala.writing import PAGE, Pieces

if TYPE_CHECKING:
    from escala.calibration import WhatIf

Nodes = Annotated[
    list[str] | None,
    typer.Option("--nodes", metavar="PART=RANGE",
                 help="change of its nodes: batch=-10%..+10%, or batch=-2,+4; -10%..+10%: of all; repeat",
                 show_default=False),
]  # fmt: skip
Limits = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="PART=TIME,...",
                 help="its longest run time, such as batch=12:00:00; or a limit of an account or of a "
                 "user in it, such as root:max_jobs=10,none or physics/ann:grp_tres.cpu=64; repeat",
                 show_default=False),
]  # fmt: skip
Qos = Annotated[
    list[str] | None,
    typer.Option("--qos", metavar="QOS:LIMIT=VALUE,...", help="another limit or priority of a QOS, such as "
                 "normal:max_jobs_per_user=5,10,none; repeat", show_default=False),
]  # fmt: skip
Schedulers = Annotated[
    str, typer.Option("--schedulers", metavar="A,B,...", help="slurm, slurm:bf_interval=60, easy, ...")
]


Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", min=1, help="replays side by side; by default one a core")
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("what-if", epilog=POINTER)(opt.reading(what_if))


def what_if(
    *,
    workload: opt.Log,
    platform: opt.PlatformSpec,
    read: dict[str, Any],
    nodes: Nodes = None,
    limit: Limits = None,
    qos: Qos = None,
    schedulers: Schedulers = "slurm",
    power: opt.Power = None,
    jobs: Jobs = None,
    on: On = None,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Replay a log on its site with more or fewer nodes, or other limits: who waits how long, and what energy it
    takes."""
    import escala
    from escala.calibration import what_if as tried
    from escala.report.what_if import write_page

    names = opt.names(schedulers, "--schedulers")
    pieces = Pieces(None, None)
    with working(out, "what-if", force=force, on=on, jobs=jobs) as (folder, where, shared):
        with progress() as begin, keeping(lambda: what_is_kept(out, pieces)):
            begin(f"reading {workload}")
            machine = escala.read_platform(platform, power)
            chosen = policies(names, [])[0]
            log = read_log(workload, with_shapes(read, names), machine)
            share = begin(f"replaying {len(log)} jobs on each site")
            changes = {"nodes": nodes or (), "limits": limit or (), "qos": qos or ()}
            pieces = pieces_of(folder, log, machine, names, shared, **changes)
            run = partial(
                tried, log, machine, **changes, schedulers=chosen, progress=share, jobs=jobs, on=where, keep=pieces
            )
            found = interruptible(run)
            tell_found(pieces)
        about = f"{log.name} on {machine.name}: {number_of(len(log), 'job')}."
        document = found.as_dict() | read_of(log) | {"power": power_of(machine)}
        if folder is not None:
            (folder / "what-if.json").write_text(json.dumps(plain(document), indent=1) + "\n", encoding="utf-8")
            write_page(found, folder / PAGE, f"{about} {machine.power_line[:1].upper()}{machine.power_line[1:]}")
    emit(
        as_json,
        document,
        about,
        *shown(found),
        machine.power_line,
        *([f"The page: {out / PAGE}"] if out is not None else []),
    )


def shown(found: WhatIf) -> list[Any]:
    """The answer and the tables, for the terminal."""
    from escala.report import what_if as page

    said = [line.replace("\u202f", " ") for line in page.sentences(found)]
    return [
        *said,
        rows_table(page.shown(found), text="right"),
        "Mean wait by cores of the job",
        rows_table(page.size_rows(found), text="right"),
    ]
