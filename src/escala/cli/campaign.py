"""The verb campaign: logs x platforms x schedulers x shutdown policies x options x seeds as one table of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.interrupt import grown, interruptible, keeping
from escala.cli.policies import POINTER
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.errors import number_of
from escala.writing import INDEX

if TYPE_CHECKING:
    from escala.campaigns import Campaign

FAILED = 1
FAILED_SHOWN = 5


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(campaign)


def campaign(
    *,
    definition: Annotated[
        Path, typer.Argument(metavar="FILE", help="the campaign as TOML: its logs, platforms, schedulers, ...")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="folder of its runs; those in it are not made again", show_default=False
        ),
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="ENGINE",
            help="local (a process for each core), local:N, ray, ray:HOST:PORT, slurm[:KEY=VALUE...]",
        ),
    ] = "local",
    as_json: opt.Json = False,
) -> None:
    """Replay logs on platforms under schedulers, shutdown policies, options and seeds: one table of runs, and one page.

    Nothing is run twice: the same command goes on with an interrupted campaign, and makes only what is new in FILE.
    Failed runs are named in the table, and give exit status 1.
    """
    import escala
    from escala.report.campaign import best, write_page

    array = " (and its array on Slurm, which works on, is taken up)" if on.startswith("slurm") else ""
    kept = keeping(lambda: grown(out, f"finished runs are kept in {out}: the same command goes on{array}"))
    with progress() as begin, kept:
        found = interruptible(lambda: escala.campaign(definition, out, on, begin=begin))
        begin("writing the page")
        write_page(found, out / INDEX)
    counts = {"done": found.done, "kept": found.kept, "failed": found.failed, "others": found.others}
    document = {**counts, "power": found.power, "remarks": found.remarks, "best": best(found), "runs": found.runs}
    emit(as_json, document, *shown(found, out))
    if found.failed:
        raise typer.Exit(FAILED)


def shown(found: Campaign, out: Path) -> list[Any]:
    """What was found, for the terminal."""
    import polars as pl

    from escala.campaigns.campaign import TEXTS
    from escala.report.campaign import best, choice, sentences
    from escala.report.quantities import amount, quantity

    winners = [
        {
            "log": row["log"],
            "platform": row["platform"],
            "metric": quantity(row["metric"]).name,
            "best": row["policy"] + (f", and {row['n_ties']} more" if row["n_ties"] else ""),
            "value": amount(row["metric"], row["value"]),
        }
        for row in best(found).iter_rows(named=True)
    ]
    seeds = [pl.format(", seed {}", "seed").fill_null("")] if found.runs["seed"].n_unique() > 1 else []
    words = pl.concat_str([pl.format("{}, {}, {} + {}", *TEXTS), *choice(found), *seeds])
    failed = found.runs.with_columns(words=words).filter(pl.col("error").is_not_null())
    told = [f"{words}: {error}" for words, error in failed.select("words", "error").iter_rows()]
    more = [f"... and {len(told) - FAILED_SHOWN:,} more, in the column error"] if len(told) > FAILED_SHOWN else []
    return [
        rows_table(winners, ["log", "platform", "metric", "best", "value"]),
        *sentences(found),
        *(f"failed: {line}" for line in told[:FAILED_SHOWN]),
        *more,
        *(
            [f"{out}: kept from another definition or version of Escala, in no table: {found.others:,}"]
            if found.others
            else []
        ),
        f"{number_of(found.done, 'simulation')} made now, {found.kept:,} before; "
        f"the table: {out / 'runs.parquet'}; the page: {out / INDEX}",
    ]
