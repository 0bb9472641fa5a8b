"""The verb calibrate: does a replay stand for the cluster whose log it is?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.interrupt import interruptible, keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.policies import POINTER
from escala.cli.reading import read_log, read_of
from escala.cli.replay import policies
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, plain, progress
from escala.writing import PAGE, Pieces, output_folder

if TYPE_CHECKING:
    from escala.calibration import Calibration

SHOWN = 12
Scheduler = Annotated[
    str, typer.Option("--scheduler", metavar="NAME", help="whose order the site has: slurm, easy, ...")
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(opt.reading(calibrate))


def calibrate(
    *,
    workload: opt.Log,
    platform: opt.PlatformSpec,
    read: dict[str, Any],
    scheduler: Scheduler = "slurm",
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Replay a log on a site, and say whether the replay stands for the cluster: its waits beside those that the log
    recorded."""
    import escala
    from escala.calibration import calibrate as held_against
    from escala.policies.kept_pieces import keep_runs
    from escala.report.calibration import write_page

    pieces = Pieces(None, None)
    with output_folder(out, "calibrate", force=force, keeps=True) as folder:
        with progress() as begin, keeping(lambda: what_is_kept(out, pieces)):
            begin(f"reading {workload}")
            machine = escala.read_platform(platform)
            chosen = policies([scheduler], [])[0][0]
            log = read_log(workload, {**read, "shapes": True}, machine)
            share = begin(f"replaying {len(log)} jobs under {scheduler}")
            pieces = pieces_of(folder, log, machine, [scheduler])
            found = interruptible(lambda: held_against(log, machine, chosen, progress=share, keep=keep_runs(pieces)))
            tell_found(pieces)
        document = found.as_dict() | read_of(log)
        if folder is not None:
            (folder / "calibration.json").write_text(json.dumps(plain(document), indent=1) + "\n", encoding="utf-8")
            for name, table in found.groups.items():
                table.write_csv(folder / f"{name}.csv")
            write_page(found, folder / PAGE)
    emit(as_json, document, *shown(found), *([f"The page: {out / PAGE}"] if out is not None else []))


def shown(found: Calibration) -> list[Any]:
    """The answer, the tables, and what does not fit, for the terminal."""
    from escala.report import calibration as page

    said: list[Any] = [page.answer(found), *page.sentences(found)]
    for name, table in found.groups.items():
        rest = f"; the first {SHOWN} of {table.height:,}" if table.height > SHOWN else ""
        said += [
            f"{page.NAMES[name]} (error: replay less log{rest})",
            rows_table(page.shown(table.head(SHOWN)), text="right"),
        ]
    return [*(one.replace("\u202f", " ") if isinstance(one, str) else one for one in said), page.RULE, page.FROM_ITSELF]
