"""The verb `demo`: the main job end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from escala.cli import frontier as energy
from escala.cli import options as opt
from escala.cli import tune as order
from escala.cli.interrupt import keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.reading import read_log, read_of
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError
from escala.writing import PAGE, Pieces, output_folder

if TYPE_CHECKING:
    from escala.studies.demo import Findings


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(opt.reading(demo))


def demo(
    *,
    read: dict[str, Any],
    workload: Annotated[
        Path | None,
        typer.Option(
            "--workload", metavar="FILE", help="job log [twelve generated weeks of a cluster]", show_default=False
        ),
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(
            "--platform", metavar="SPEC", help="machine of the log: see simulate --help [taurus]", show_default=False
        ),
    ] = None,
    power: opt.Power = None,
    price: opt.Price = None,
    carbon: opt.Carbon = None,
    currency: opt.Currency = "",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="folder for the page, the policy, the agent and the figures")
    ] = Path("demo-out"),
    minutes: Annotated[float, typer.Option("--minutes", min=0.0, help="how long to train an agent; 0: none")] = 1.0,
    seed: opt.Seed = 0,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Choose the order of a log's queue on its past, judge it on later weeks, see what switching nodes off saves, and
    write one page."""
    from escala.studies import demo as study

    if (workload is None) != (platform is None):
        raise EscalaError(
            "give --workload and --platform together, or neither for the built-in weeks of the cluster taurus"
        )
    opt.check_price(price, currency, carbon)
    pieces, plan = Pieces(None, None), replace(study.Settings(), train_minutes=minutes, seed=seed)
    kept = keeping(lambda: what_is_kept(out, pieces))
    with output_folder(out, study.KIND, force=force, keeps=True) as folder, progress() as begin, kept:
        assert folder is not None
        log, machine = _given(workload, platform, power, read, seed)
        pieces = pieces_of(folder, log, machine, (), **plan.__dict__)
        findings = study.run(log, machine, plan, begin, pieces)
        tell_found(pieces)
        begin("writing the page")
        study.write(findings, folder, price=price, carbon=carbon, currency=currency)
    found = {
        "tuned": findings.tuned.as_dict(),
        "frontier": None if findings.frontier is None else findings.frontier.as_dict(),
    }
    told = {
        "report": out / PAGE,
        **found,
        "training": findings.training,
        "description": findings.description,
        **read_of(log),
    }
    emit(as_json, told, *tables(findings, out), f"The whole story, with figures: {out / PAGE}")


def _given(
    workload: Path | None, platform: str | None, power: str | None, read: dict[str, Any], seed: int
) -> tuple[Any, Any]:
    import escala
    from escala.studies.demo import built_in

    if workload is None or platform is None:
        if read or power is not None:
            raise EscalaError(
                "--power and the options of reading are of a log of yours: give --workload and --platform with them"
            )
        return built_in(seed)
    machine = escala.read_platform(platform, power)
    return read_log(workload, read, machine), machine


def tables(findings: Findings, out: Path) -> list[RenderableType]:
    """The findings for the terminal."""
    from escala.studies.demo import learnt

    found = findings.frontier
    switched = [] if found is None else ["2. Switching nodes off, the whole log", *energy.shown(found)]
    return [
        f"1. The order of the queue: {findings.workload.name} on {findings.platform.name}, {len(findings.workload):,} "
        "jobs",
        *order.shown(findings.tuned, out / "policy", out / PAGE),
        *switched,
        findings.platform.power_line,
        learnt(findings),
    ]
