"""The verb predict: a model of run times, fitted to a log's past and judged on its later jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from escala.cli import options as opt
from escala.cli.interrupt import interruptible, keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.policies import POINTER
from escala.cli.reading import read_log
from escala.cli.replay import policies
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError, number_of
from escala.writing import Pieces, output_folder

if TYPE_CHECKING:
    from escala.fitting import Predicted

MOST_FEATURES = 8
COLUMNS = {
    "mean_absolute_error_s": "mean_error_s",
    "median_absolute_error_s": "median_error_s",
    "underestimated": "too_short_share",
    "nearness": "nearness",
    "rank_correlation": "rank_correlation",
}
"""What the accuracies are called in the table."""
_PLATFORM: Any = get_args(opt.PlatformSpec)[1]
PlatformOfReplay = Annotated[str | None, _PLATFORM]
After = Annotated[
    str,
    typer.Option(
        "--after", metavar="SHARE", help="the model is fitted to this share of the log's time, judged on the rest"
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="A,B,...",
        help="columns that the model may go by: user, group, account, queue, partition, qos, executable, job_name "
        "[all that the log has]",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str,
    typer.Option(
        "--scheduler", metavar="NAME", help="under which the log is replayed: what has ended when a job is submitted"
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(opt.reading(opt.replaying(predict)))


def predict(
    *,
    workload: opt.Log,
    platform: PlatformOfReplay = None,
    options: dict[str, Any],
    read: dict[str, Any],
    out: opt.OutNeeded,
    after: After = "60%",
    by: By = None,
    scheduler: Scheduler = "easy",
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Fit a model of run times to a log's past, and judge it on its later jobs, beside requests and last2.

    --estimate model:DIR, and --order-estimate, then plan and order by it. What it sees of a job is known when it is
    submitted. Without --platform the replay, which says what had ended then, is on one pool of the log's cores.
    """
    import escala
    from escala.fitting.predict import check_asked
    from escala.fitting.predicted import VERB, write

    columns = None if by is None else opt.names(by, "--by")
    check_asked(after, columns, {name: value for name, value in options.items() if name != "seed"})
    pieces = Pieces(None, None)
    with output_folder(out, VERB, force=force, keeps=True) as folder:
        assert folder is not None
        with progress() as begin, keeping(lambda: what_is_kept(out, pieces)):
            begin(f"reading {workload}")
            machine = None if platform is None else escala.read_platform(platform)
            chosen = policies([scheduler], [], options["seed"])[0][0]
            log = read_log(workload, read, machine)
            if machine is None and log.max_cores is None:
                raise EscalaError(
                    f"{workload}: does not tell the cores of its machine: name one (--platform NODESxCORES)"
                )
            machine = machine or escala.read_platform(f"1x{log.max_cores}")
            pieces = pieces_of(folder, log, machine, [scheduler], after=after, by=columns, **options)
            how = {"after": after, "by": columns, "scheduler": chosen, "begin": begin, "pieces": pieces}
            predicted = interruptible(lambda: escala.predict(log, machine, **how, **options))
            write(predicted, folder)
            tell_found(pieces)
    about = f"{log.name}: {predicted.about['later_jobs']:,} later jobs of {len(log):,}"
    emit(as_json, {**predicted.as_dict(), "cleaning": log.cleaning}, about, *shown(predicted, out))


def shown(predicted: Predicted, out: Path) -> list[Any]:
    """What was found, for the terminal. out: the model's folder."""
    from escala.prediction.features import FEATURES

    last = predicted.model.stages[-1]
    rows = [
        {"expected by": name, **{COLUMNS[key]: value for key, value in found.items()}}
        for name, found in predicted.accuracy.items()
    ]
    told: list[Any] = [f"Fitted to {last.jobs:,} jobs that had ended. On the later jobs:", rows_table(rows)]
    for what, table in (
        ("the cores of a job", predicted.by_size),
        ("how many jobs its user has in the past", predicted.by_past),
    ):
        if table:
            told += [f"Mean absolute error by {what}:", rows_table(table)]
    if predicted.users is not None:
        users, request, last2 = (
            predicted.users[name] for name in ("users", "nearer_than_request", "nearer_than_last2")
        )
        told.append(
            f"Nearer than the request to {request:.0%} of {number_of(int(users), 'user')} with enough later jobs, than "
            f"last2 to {last2:.0%}."
        )
    gains = [{"goes by": name, "share": share, "which is": FEATURES[name][2]} for name, share in predicted.gain.items()]
    told += ["What the trees explain, by feature:", rows_table(gains[:MOST_FEATURES])]
    return [*told, f"Plan by it with --estimate model:{out}, or order by it alone with --order-estimate model:{out}"]
