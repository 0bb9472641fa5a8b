"""The verb tune: the order of the queue chosen on a log's past, under a promise, and judged on its later weeks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.interrupt import interruptible, keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.policies import POINTER
from escala.cli.reading import read_log
from escala.cli.replay import policies
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.writing import PAGE, Pieces, output_folder

if TYPE_CHECKING:
    from escala.tuning import Tuned

PROMISE = "p99-wait<=1.05*easy, longest-wait<=1.25*easy"
Objective = Annotated[str, typer.Option("--objective", metavar="NAME", help="what is made small: slowdown, wait, area-wait or p95-wait")]
Promise = Annotated[
    str,
    typer.Option(
        "--promise",
        metavar="CONDITIONS",
        help="what may not get worse: FIGURE<=FACTOR*SCHEDULER or FIGURE<=TIME, with commas between; FIGURE is slowdown, mean-wait, "
        "median-wait, p95-wait, p99-wait, longest-wait or area-wait",
    ),
]
After = Annotated[
    str, typer.Option("--after", metavar="SHARE", help="rules are chosen on this share of the log's time, judged on the rest")
]
Present = Annotated[
    str | None,
    typer.Option("--present", metavar="NAME", help="the scheduler that runs today, compared with too", show_default=False),
]
Predictors = Annotated[
    str,
    typer.Option(
        "--predictors",
        metavar="A,B,...",
        help="estimates of run times that are tried in place of requests, by the names of --estimate; model: fitted to this log's past; "
        "none: an empty text",
    ),
]
Scores = Annotated[
    str,
    typer.Option("--scores", metavar="A,B,...", help="linear scores that are tried as they are: escala, score:FILE; none: an empty text"),
]
Searches = Annotated[
    int,
    typer.Option("--searches", metavar="N", min=0, max=100, help="of weights of a score, under each estimate; the policy is their mean"),
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(opt.reading(opt.replaying(tune)))


def tune(
    *,
    workload: opt.Log,
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
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", min=1, help="replays side by side; by default one a core")] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Choose the order of the queue by replaying a log's own past, under a promise, and judge it on its later weeks.

    The folder holds the policy (policy.toml, which --scheduler policy:DIR runs), a page, and the figures.
    """
    import escala
    from escala.report.tuned import write_page
    from escala.tuning.folder import VERB, write

    present = _scheduler(present)
    named, linear = ([one for one in text.split(",") if one] for text in (predictors, scores))
    pieces = Pieces(None, None)
    with output_folder(out, VERB, force=force, keeps=True) as folder:
        assert folder is not None
        with progress() as begin, keeping(lambda: what_is_kept(out, pieces)):
            begin(f"reading {workload}")
            machine = escala.read_platform(platform)
            today = None if present is None else policies([present], [])[0][0]
            log = read_log(workload, read, machine)
            pieces = pieces_of(
                folder, log, machine, [] if present is None else [present], after=after, predictors=named, searches=searches, **options
            )
            tuned = interruptible(
                lambda: escala.tune(
                    log, machine, objective=objective, promise=promise, after=after, present=today, jobs=jobs, predictors=named,
                    scores=linear, searches=searches, keep=pieces, begin=begin,
                    **options,
                )
            )  # fmt: skip
            tell_found(pieces)
            begin("writing the page")
            write(tuned, folder)
            write_page(tuned, folder / PAGE)
    about = f"{log.name} on {machine.name}: {len(log):,} jobs"
    emit(as_json, {**tuned.as_dict(), "cleaning": log.cleaning}, about, *shown(tuned, out, out / PAGE))


def _scheduler(present: str | None) -> str | None:
    """The scheduler that runs today: a file of weights or priorities is EASY in that order."""
    return f"easy:queue=score:{present}" if present is not None and present.endswith(".toml") and ":" not in present else present


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
