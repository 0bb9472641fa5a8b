"""The page of a campaign: which policies are best on each log by each metric, and all runs."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from escala.campaigns.campaign import TEXTS, Campaign
from escala.errors import number_of
from escala.metrics.recorded import resembles
from escala.report import marks
from escala.report.page import write_report
from escala.report.parts import Section
from escala.report.quantities import amount, quantity
from escala.report.tables import Cell, Table

METRICS = (
    "mean_bounded_slowdown",
    "mean_wait_s",
    "p95_wait_s",
    "p99_wait_s",
    "longest_wait_s",
    "area_weighted_wait_s",
    "utilisation",
)
POWERED = ("energy_j", "waste_j")
WORDS = ("logs", "platforms", "schedulers", "shutdown policies")
MOST_ROWS = 300
FAILED_SHOWN = 50
UNLIKE_SHOWN = 5
REMARKS_SHOWN = 10
CAUTION = (
    "Chosen and judged on the same jobs: the best of many policies gains less on the next log. Clairvoyant "
    "policies are never the best."
)


def policies(found: Campaign) -> pl.DataFrame:
    """Each log, platform and choice of policies and options: `policy` in words, the number of runs, and means of the
    figures over seeds."""
    words: list[pl.Expr] = [pl.col("scheduler")]
    if found.runs["shutdown"].n_unique() > 1:
        words.append(pl.lit(" + ") + pl.col("shutdown"))
    named = found.runs.with_columns(policy=pl.concat_str([*words, *choice(found)])).filter(pl.col("error").is_null())
    figures = [name for name in (*METRICS, *POWERED) if name in named.columns]
    keys = ["log", "platform", "policy", *(name for name in (*TEXTS[2:], *found.options)), "knows"]
    means = [pl.col(name).mean() for name in figures]
    return (
        named.group_by(keys, maintain_order=True)
        .agg(pl.len().alias("n_runs"), *means)
        .select(*keys, "n_runs", *figures)
    )


def choice(found: Campaign) -> list[pl.Expr]:
    """In words, a text an option: its value, where the runs of the same scheduler and shutdown policy differ in it."""
    return [
        pl.when(pl.col(name).n_unique().over("scheduler", "shutdown") > 1)
        .then(pl.lit(f", {name} ") + pl.col(name).cast(pl.String).fill_null("none"))
        .otherwise(pl.lit(""))
        for name in found.options
    ]


def best(found: Campaign) -> pl.DataFrame:
    """log, platform, metric, policy, value, n_ties: the best policy that does not know the future; `n_ties` others have
    the same value."""
    honest = policies(found).filter(pl.col("knows") == "")
    rows = []
    for (log, platform), group in honest.group_by("log", "platform", maintain_order=True):
        for metric in (name for name in (*METRICS, *POWERED) if name in honest.columns):
            values = group.filter(pl.col(metric).is_not_null())
            if values.is_empty():
                continue
            top = values[metric].max() if quantity(metric).better == "more" else values[metric].min()
            first = values.filter(pl.col(metric) == top)
            rows.append((log, platform, metric, first["policy"][0], top, first.height - 1))
    schema = {
        "log": pl.String,
        "platform": pl.String,
        "metric": pl.String,
        "policy": pl.String,
        "value": pl.Float64,
        "n_ties": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def sentences(found: Campaign) -> list[str]:
    """How many runs there are, how many failed, and what is told of them."""
    runs = found.runs
    failed = runs["error"].is_not_null().sum()
    shape = ", ".join(f"{word}: {runs[name].n_unique():,}" for name, word in zip(TEXTS, WORDS, strict=True))
    told = [f"{number_of(runs.height, 'run')} ({shape})."]
    told += [f"{line[:1].upper()}{line[1:]}." for line in found.power]
    if failed:
        told.append(f"{failed:,} of them failed, left out of all means.")
    return [*told, *_unlike(found), CAUTION, *_read(found)]


def _read(found: Campaign) -> list[str]:
    """What was done to the logs when they were read, some lines of it."""
    more = len(found.remarks) - REMARKS_SHOWN
    return [
        *found.remarks[:REMARKS_SHOWN],
        *([f"... and {number_of(more, 'more such line')} of logs"] if more > 0 else []),
    ]


def _unlike(found: Campaign) -> list[str]:
    """The logs, each on its platform, that no replay resembles (the rule of `metrics.recorded`)."""
    waits = found.runs.filter(pl.col("recorded_wait_s").is_not_null()).select(
        "log", "platform", "recorded_wait_s", "mean_wait_of_these_s"
    )
    unlike = []
    for (log, platform), group in waits.group_by("log", "platform", maintain_order=True):
        pairs = [(float(own), float(ours)) for own, ours in group.drop("log", "platform").iter_rows()]
        if not any(resembles(own, ours) for own, ours in pairs):
            own, ours = min(pairs, key=lambda pair: abs(pair[0] - pair[1]))
            unlike.append(
                f"{log} on {platform} ({amount('mean_wait_s', own)} in the log, {amount('mean_wait_s', ours)} in the "
                "nearest replay)"
            )
    if not unlike:
        return []
    more = f", and {len(unlike) - UNLIKE_SHOWN} more" if len(unlike) > UNLIKE_SHOWN else ""
    shown = "; ".join(unlike[:UNLIKE_SHOWN])
    return [
        f"No replay resembles the log by its mean wait: {shown}{more}. What they say of waits may not hold for that "
        "machine."
    ]


def _best_table(found: Campaign) -> Table:
    """A row for each log and platform, a column a metric; under each policy its value."""
    table = best(found)
    metrics = table["metric"].unique(maintain_order=True).to_list()
    headers = [("Log", "", ""), ("Platform", "", ""), *((quantity(m).name, "", quantity(m).meaning) for m in metrics)]
    rows = []
    for (log, platform), group in table.group_by("log", "platform", maintain_order=True):
        cells = {row["metric"]: row for row in group.iter_rows(named=True)}
        rows.append(
            [
                Cell(str(log), plain=True),
                Cell(str(platform), plain=True),
                *(_winner(cells.get(metric)) for metric in metrics),
            ]
        )
    return Table(headers, rows, "The best policy by each metric, and its mean over seeds.")


def _winner(row: dict[str, object] | None) -> Cell:
    if row is None:
        return Cell("–", plain=True)
    ties = f", and {row['n_ties']} more" if row["n_ties"] else ""
    return Cell(f"{row['policy']}{ties}", amount(str(row["metric"]), float(str(row["value"]))), plain=True)


def sections(found: Campaign) -> list[Section]:
    """The parts of the page, the winners first."""
    parts = (
        [Section("The best by log and metric", "", [_best_table(found)])] if found.runs["error"].is_null().any() else []
    )
    table = policies(found)
    knows = dict(table.select("policy", "knows").iter_rows())
    shown = marks.in_frame(table, knows).drop(*TEXTS[2:], *found.options, "knows")
    rest = "" if shown.height <= MOST_ROWS else f" The first {MOST_ROWS} of {shown.height:,}; runs.parquet has all."
    legend = marks.legend(knows)
    parts.append(Section("All policies", "", [(shown.head(MOST_ROWS), f"Means over seeds.{rest} {legend}".strip())]))
    failed = found.runs.filter(pl.col("error").is_not_null()).select(*TEXTS, *found.options, "seed", "error")
    if failed.height:
        parts.append(
            Section(f"Failed runs: {failed.height:,}", "", [(failed.head(FAILED_SHOWN), "Each was tried twice.")])
        )
    return parts


def write_page(found: Campaign, path: Path) -> None:
    """Write the page."""
    title = f"Campaign of {number_of(found.runs.height, 'run')}"
    write_report(path, {}, title=title, notes=sentences(found), sections=sections(found))
