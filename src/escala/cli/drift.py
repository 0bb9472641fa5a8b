"""The verb drift: has a log become another one since a policy was chosen?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.interrupt import interruptible
from escala.cli.policies import POINTER
from escala.cli.reading import read_log, read_of
from escala.cli.replay import policies
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress

if TYPE_CHECKING:
    from escala.tuning.unlike import Drift


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(opt.reading(drift))


def drift(
    *,
    workload: opt.Log,
    read: dict[str, Any],
    platform: Annotated[
        str | None, typer.Option("--platform", metavar="SPEC", help="machine on which --scheduler is replayed", show_default=False)
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="NAME", help="a policy that was chosen on the past, such as policy:DIR", show_default=False),
    ] = None,
    after: Annotated[str, typer.Option("--after", metavar="SHARE", help="the share of the log's time that is its past")] = "60%",
    as_json: opt.Json = False,
) -> None:
    """Say whether a log's later weeks are still like its past, and whether it is time to tune again."""
    from escala import tuning
    from escala.platform import read_platform

    chosen = None if scheduler is None else policies([scheduler], [])[0][0]
    with progress() as begin:
        begin(f"reading {workload}")
        machine = None if platform is None else read_platform(platform)
        log = read_log(workload, read, machine)
        begin("comparing weeks")
        found = interruptible(lambda: tuning.drift(log, after, machine, chosen))
    emit(as_json, {**found.as_dict(), **read_of(log)}, f"{log.name}: {len(log):,} jobs", *shown(found))


def shown(found: Drift) -> list[Any]:
    """The answer, and the weeks, for the terminal."""
    from escala.tuning.unlike import FEATURES, LAST

    last = min(LAST, len(found.weeks))
    in_words = ", ".join(FEATURES[name] for name in found.drifted)
    answer = f"The last {last} weeks are unlike the past in {in_words}." if found.drifted else f"The last {last} weeks are like the past."
    if found.last_ratio is not None:
        answer += f" {found.scheduler} has {found.last_ratio:.2f} of EASY's bounded slowdown there, {found.past_ratio:.2f} on the past."
    answer += " Tune again: escala tune." if found.tune_again else " There is no need to tune again."
    rows: list[dict[str, Any]] = [
        {"week": week.number + 1, "jobs": week.jobs, **{name: _marked(week, name) for name in FEATURES}, **_ratio(week.ratio)}
        for week in found.weeks
    ]
    usual: dict[str, Any] = {"week": "usual", "jobs": "", **{name: f"{limit:.2f}" for name, limit in found.limits.items()}}
    rows.append(usual | ({"over easy": f"{found.past_ratio:.2f}"} if found.past_ratio is not None else {}))
    legend = (
        "Each week after the split: how far its jobs are from those of the past (Kolmogorov and Smirnov, 0 to 1); * beyond what 95 % of "
        f"the {found.past_weeks} weeks of the past have (usual). By chance alone one week in twenty is, in each column."
    )
    return [answer, rows_table(rows, text="right"), legend]


def _marked(week: Any, name: str) -> str:
    return f"{week.distance[name]:.2f}{'*' if name in week.unlike else ''}"


def _ratio(ratio: float | None) -> dict[str, str]:
    return {} if ratio is None else {"over easy": f"{ratio:.2f}"}
