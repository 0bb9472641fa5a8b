"""The verb tune: the order of the queue chosen on a log's past, under a promise, and judged on its later weeks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.elsewhere import working
from escala.cli.interrupt import interruptible, keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.policies import POINTER
from escala.cli.reading import read_log
from escala.cli.replay import On, policies
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError, number_of
from escala.writing import PAGE, Pieces

if TYPE_CHECKING:
    from escala.tuning import Several, Tuned

Logs = Annotated[
    list[Path],
    typer.Argument(
        metavar="WORKLOAD...",
        help="job logs: SWF, Batsim JSON, sacct text, CSV or Parquet, plain or gzipped; of several --platform has one "
        "for all, or one a log with commas between",
        show_default=False,
    ),
]
PROMISE = "p99-wait<=1.05*easy, longest-wait<=1.25*easy"
Objective = Annotated[
    str, typer.Option("--objective", metavar="NAME", help="what is made small: slowdown, wait, area-wait or p95-wait")
]
Promise = Annotated[
    str,
    typer.Option(
        "--promise",
        metavar="CONDITIONS",
        help="what may not get worse: FIGURE<=FACTOR*SCHEDULER or FIGURE<=TIME, with commas between; FIGURE is "
        "slowdown, mean-wait, median-wait, p95-wait, p99-wait, longest-wait or area-wait",
    ),
]
After = Annotated[
    str,
    typer.Option(
        "--after", metavar="SHARE", help="rules are chosen on this share of the log's time, judged on the rest"
    ),
]
Present = Annotated[
    str | None,
    typer.Option(
        "--present", metavar="NAME", help="the scheduler that runs today, compared with too", show_default=False
    ),
]
Predictors = Annotated[
    str,
    typer.Option(
        "--predictors",
        metavar="A,B,...",
        help="estimates of run times that are tried in place of requests, by the names of --estimate; model: fitted "
        "to this log's past; none: an empty text",
    ),
]
Scores = Annotated[
    str,
    typer.Option(
        "--scores",
        metavar="A,B,...",
        help="linear scores that are tried as they are: escala, score:FILE; none: an empty text",
    ),
]
Searches = Annotated[
    int,
    typer.Option(
        "--searches",
        metavar="N",
        min=0,
        max=100,
        help="of weights of a score, under each estimate; the policy is their mean",
    ),
]

Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", min=1, help="replays side by side; by default one a core")
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(opt.reading(opt.replaying(tune)))


def tune(
    *,
    workload: Logs,
    platform: opt.PlatformSpec,
    options: dict[str, Any],
    read: dict[str, Any],
    out: opt.OutNeeded,
    objective: Objective = "slowdown",
    promise: Promise = PROMISE,
    after: After = "60%",
    present: Present = None,
    predictors: Predictors = "last2,model",
    scores: Scores = "escala",
    searches: Searches = 3,
    jobs: Jobs = None,
    on: On = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    power: Annotated[str | None, typer.Option("--power", hidden=True)] = None,
) -> None:
    """Choose the order of the queue by replaying a log's own past, under a promise, and judge it on its later weeks.

    The folder holds the policy (policy.toml, which --scheduler policy:DIR runs), a page, and the figures. Of several
    logs one policy is chosen on the pasts of all, and judged on the later weeks of each. With the energy of nodes:
    escala frontier.
    """
    _check_power(power)
    from escala.policies.pairs import digest_of
    from escala.tuning.folder import VERB, write
    from escala.tuning.several import Several

    present = _scheduler(present)
    named, linear = ([one for one in text.split(",") if one] for text in (predictors, scores))
    wanted = {"after": after, "predictors": named, "searches": searches}
    asked = {**wanted, "objective": objective, "promise": promise, "scores": linear, "jobs": jobs}
    pieces = Pieces(None, None)
    with working(out, VERB, force=force, on=on, jobs=jobs) as (folder, where, shared):
        assert folder is not None
        with progress() as begin, keeping(lambda: what_is_kept(out, pieces)):
            today = None if present is None else policies([present], [])[0][0]
            logs = _read(workload, platform, read, begin)
            (log, machine), others = logs[0], [[digest_of(log), machine.spec()] for log, machine in logs[1:]]
            pieces = pieces_of(
                folder, log, machine, [] if present is None else [present], shared, others=others, **wanted, **options
            )
            tuned = interruptible(
                lambda: _tuned(logs, present=today, keep=pieces, begin=begin, on=where, **asked, **options)
            )
            tell_found(pieces)
            begin("writing the page")
            write(tuned, folder)
            _page(tuned, folder / PAGE)
    about = "; ".join(f"{log.name} on {machine.name}: {number_of(len(log), 'job')}" for log, machine in logs)
    found = tuned.as_dict()
    if isinstance(tuned, Several):
        for part, (log, _) in zip(found["logs"], logs, strict=True):
            part["cleaning"] = log.cleaning
        emit(as_json, found, about, *shown_of_several(tuned, out, out / PAGE))
        return
    emit(as_json, {**found, "cleaning": logs[0][0].cleaning}, about, *shown(tuned, out, out / PAGE))


def _check_power(power: str | None) -> None:
    if power is not None:
        raise EscalaError(
            f"--power {power}: tune chooses the order of the queue alone: escala frontier LOG --power chooses both "
            "together"
        )


def _read(paths: list[Path], platform: str, read: dict[str, Any], begin: Any) -> list[tuple[Any, Any]]:
    """Each log and its platform. platform: one for all, or one a log with commas between."""
    import escala

    specs = platform.split(",") if len(paths) > 1 and "," in platform else [platform] * len(paths)
    if len(specs) != len(paths):
        raise EscalaError(
            f"--platform {platform}: {len(specs)} platforms for {len(paths)} logs: give one, or one a log"
        )
    if len({path.resolve() for path in paths}) < len(paths):
        raise EscalaError("a log is named twice: it would count twice; name each once")
    machines = [escala.read_platform(spec) for spec in specs]
    found = []
    for path, machine in zip(paths, machines, strict=True):
        begin(f"reading {path}")
        found.append((read_log(path, read, machine), machine))
    return found


def _tuned(logs: list[tuple[Any, Any]], **asked: Any) -> Any:
    """What was found on one log, or on several."""
    from escala.tuning import tune, tune_several

    return tune(*logs[0], **asked) if len(logs) == 1 else tune_several(logs, **asked)


def _page(tuned: Tuned | Several, path: Path) -> None:
    from escala.report import several
    from escala.report import tuned as alone
    from escala.tuning import Several

    if isinstance(tuned, Several):
        several.write_page(tuned, path)
    else:
        alone.write_page(tuned, path)


def _scheduler(present: str | None) -> str | None:
    """The scheduler that runs today: a file of weights or priorities is EASY in that order."""
    return (
        f"easy:queue=score:{present}"
        if present is not None and present.endswith(".toml") and ":" not in present
        else present
    )


def shown(tuned: Tuned, out: Path, written: Path) -> list[Any]:
    """What was found, for the terminal. out: the policy's folder; written: the page."""
    from escala.report import tuned as page

    waits = [{"scheduler": name, **found} for name, found in page.wait_rows(tuned).items()]
    groups = [found for table in tuned.groups.values() for found in (rows_table(table.to_dicts()),)]
    return [
        page.headline(tuned),
        rows_table(waits),
        "The policy's figures over those of each, with 95 % intervals over whole weeks (below 1: better):",
        rows_table(page.ratio_rows(tuned)),
        "Who pays: waits before, under easy, and under the policy",
        *groups,
        "What each part gives on the later weeks, with one part more in each row:",
        rows_table(page.part_rows(tuned)),
        *page.sentences(tuned)[1:],
        f"Run it as --scheduler policy:{out}; the page: {written}",
    ]


def shown_of_several(tuned: Several, out: Path, written: Path) -> list[Any]:
    """What was found of several logs, for the terminal."""
    from escala.report import several as page

    return [
        page.headline(tuned),
        rows_table(page.log_rows(tuned)),
        *page.sentences(tuned)[1:],
        f"Run it as --scheduler policy:{out}; the page: {written}",
    ]
