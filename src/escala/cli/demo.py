"""The verb `demo`: the main job end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from escala.cli import options as opt
from escala.cli.interrupt import keeping
from escala.cli.judged import judged_table
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.reading import read_log, read_of
from escala.cli.replay import compared
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError
from escala.writing import Pieces, output_folder

if TYPE_CHECKING:
    from escala.studies.demo import Findings


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(opt.reading(demo))


def demo(
    *,
    read: dict[str, Any],
    workload: Annotated[
        Path | None, typer.Option("--workload", metavar="FILE", help="job log [a generated Grid'5000-like month]", show_default=False)
    ] = None,
    platform: Annotated[
        str | None, typer.Option("--platform", metavar="SPEC", help="machine of the log: see simulate --help [orion]", show_default=False)
    ] = None,
    power: opt.Power = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="folder for the report, the tables, the runs and the agent")] = Path(
        "demo-out"
    ),
    minutes: Annotated[float, typer.Option("--minutes", min=0.0, help="how long to train")] = 1.0,
    seed: opt.Seed = 0,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Describe a log, compare policies on it, train one, judge it on days it has not seen, and write one page about it."""
    from escala.studies import demo as study

    if (workload is None) != (platform is None):
        raise EscalaError("give --workload and --platform together, or neither for the built-in month of the cluster orion")
    pieces, plan = Pieces(None, None), replace(study.Settings(), train_minutes=minutes, seed=seed)
    kept = keeping(lambda: what_is_kept(out, pieces))
    with output_folder(out, "demo", force=force, keeps=True) as folder, progress() as begin, kept:
        assert folder is not None
        log, machine = _given(workload, platform, power, read, seed)
        pieces = pieces_of(folder, log, machine, (), **plan.__dict__)
        findings = study.run(log, machine, plan, begin, pieces)
        tell_found(pieces)
        begin("writing the report")
        study.write(findings, folder)
    page = out / "report.html"
    payload = {"report": page, "training": findings.training, "judged": findings.judged, "description": findings.description}
    emit(as_json, {**payload, **read_of(log)}, *tables(findings), f"The whole story, with figures: {page}")


def _given(workload: Path | None, platform: str | None, power: str | None, read: dict[str, Any], seed: int) -> tuple[Any, Any]:
    import escala
    from escala.studies.demo import built_in

    if workload is None or platform is None:
        if read or power is not None:
            raise EscalaError("--power and the options of reading are of a log of yours: give --workload and --platform with them")
        return built_in(seed)
    machine = escala.read_platform(platform, power)
    return read_log(workload, read, machine), machine


def tables(findings: Findings) -> list[RenderableType]:
    """The findings for the terminal."""
    from escala.cli.logs import description_tables
    from escala.studies.demo import FAIR

    training = findings.training
    return [
        f"1. The log: {findings.workload.name} on {findings.platform.name}",
        description_tables(findings.description, findings.workload.cleaning)[1],
        "2. Schedulers, all nodes on, the whole log",
        *compared(findings.schedulers, findings.schedulers.table()),
        f"3. Shutdown policies under {findings.settings.beneath}, the whole log",
        *compared(findings.shutdowns, findings.shutdowns.table()),
        f"4. {training['judged_days']} later days, not seen in training: means over days, changes with their 95 % intervals",
        *judged_table(findings.judged),
        findings.platform.power_line,
        *([training["how"], FAIR] if training["trained"] else [training["why"]]),
    ]
