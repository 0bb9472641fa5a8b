"""The verb drift: has a log become another one since a policy was chosen?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.interrupt import interruptible
from escala.cli.policies import POINTER
from escala.cli.reading import read_log, read_of
from escala.cli.replay import policies
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress, remark
from escala.errors import EscalaError, number_of

if TYPE_CHECKING:
    from escala.tuning.unlike import Drift


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(opt.reading(drift))


def drift(
    *,
    workload: Annotated[
        Path,
        typer.Argument(metavar="WORKLOAD", help="a job log, or the folder of escala beside slurm", show_default=False),
    ],
    read: dict[str, Any],
    platform: Annotated[
        str | None,
        typer.Option(
            "--platform",
            metavar="SPEC",
            help="machine on which --scheduler is replayed [a journal's]",
            show_default=False,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="NAME",
            help="a policy that was chosen on the past, such as policy:DIR [a journal's]",
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str, typer.Option("--after", metavar="SHARE", help="the share of the log's time that is its past")
    ] = "60%",
    as_json: opt.Json = False,
) -> None:
    """Say whether a log's later weeks are like its past, whether a policy keeps what it promised, and whether to tune
    again."""
    from escala import tuning
    from escala.platform import read_platform

    chosen = None if scheduler is None else policies([scheduler], [])[0][0]
    with progress() as begin:
        begin(f"reading {workload}")
        machine = None if platform is None else read_platform(platform)
        if workload.is_dir() or workload.suffix == ".jsonl":
            log, nodes, name = _journal(workload, read)
            machine, chosen = machine or nodes, chosen or _of_journal(name)
        else:
            log = read_log(workload, read, machine)
        begin("comparing weeks")
        found = interruptible(lambda: tuning.drift(log, after, machine, chosen))
    emit(as_json, {**found.as_dict(), **read_of(log)}, f"{log.name}: {number_of(len(log), 'job')}", *shown(found))


def _journal(path: Path, read: dict[str, Any]) -> tuple[Any, Any, str]:
    """The jobs of a journal of escala beside, its nodes, and the scheduler that was asked."""
    from escala.bridges.slurm.loop import JOURNAL
    from escala.bridges.slurm.replay import about, log_of

    if read:
        raise EscalaError(f"{path}: a journal is read as it is: leave --{next(iter(read)).replace('_', '-')} out")
    path = path / JOURNAL if path.is_dir() else path
    return *log_of(path), about(path)["policies"].rpartition(" + ")[0]


def _of_journal(name: str) -> Any:
    """The scheduler that a journal names; None, with a remark, where it is not to be had here."""
    try:
        return policies([name], [])[0][0]
    except EscalaError as error:
        remark(f"the journal's scheduler is not judged: {error}")
        return None


def shown(found: Drift) -> list[Any]:
    """The answer, and the weeks, for the terminal."""
    from escala.report import marks
    from escala.tuning.unlike import FEATURES, LAST

    last, knows = min(LAST, len(found.weeks)), {found.scheduler: found.knows}
    in_words = ", ".join(FEATURES[name] for name in found.drifted)
    answer = (
        f"The last {last} weeks are unlike the past in {in_words}."
        if found.drifted
        else f"The last {last} weeks are like the past."
    )
    if found.last_ratio is not None:
        answer += (
            f" {marks.shown(found.scheduler, knows)} has {found.last_ratio:.2f} of EASY's bounded slowdown there, "
            f"{found.past_ratio:.2f} on the past."
        )
        answer += _evidence(found)
    answer += " Tune again: escala tune." if found.tune_again else " There is no need to tune again."
    rows: list[dict[str, Any]] = [
        {
            "week": week.number + 1,
            "jobs": week.jobs,
            **{name: _marked(week, name) for name in FEATURES},
            **_ratio(week.ratio),
        }
        for week in found.weeks
    ]
    usual: dict[str, Any] = {
        "week": "usual",
        "jobs": "",
        **{name: f"{limit:.2f}" for name, limit in found.limits.items()},
    }
    rows.append(usual | ({"over easy": f"{found.usual_ratio:.2f}"} if found.usual_ratio is not None else {}))
    legend = (
        "Each week after the split: how far its jobs are from those of the past (Kolmogorov and Smirnov, 0 to 1); * "
        f"beyond what 95 % of the {found.past_weeks} weeks of the past have (usual). By chance alone one week in "
        "twenty is, in each column."
    )
    return [answer, *marks.lines(knows), rows_table(rows, text="right"), legend]


def _evidence(found: Drift) -> str:
    """What the policy's folder says of it, and whether that still holds."""
    told = "" if found.promised is None else " Its folder says {:.2f} [{:.2f}, {:.2f}].".format(*found.promised)
    beyond = "what 95 % of the past's weeks had" + (", and what its folder says" if found.promised is not None else "")
    return told + (f" In three of these weeks it is beyond {beyond}." if found.worse else "")


def _marked(week: Any, name: str) -> str:
    return f"{week.distance[name]:.2f}{'*' if name in week.unlike else ''}"


def _ratio(ratio: float | None) -> dict[str, str]:
    return {} if ratio is None else {"over easy": f"{ratio:.2f}"}
