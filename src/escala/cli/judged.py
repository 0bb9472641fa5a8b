"""The table of policies judged over days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from escala.cli.tables import rows_table

if TYPE_CHECKING:
    import polars as pl

CHANGES_OF = {"energy_j": "energy", "mean_wait_s": "wait"}


def judged_table(judged: pl.DataFrame, more: Mapping[str, Mapping[str, str]] | None = None) -> list[Table | str]:
    """One row per policy: the changes of energy and wait (of what there is) against the reference, with their
    intervals, and the mean of every metric; under it the legend of clairvoyant policies, where there are any.

    judged: as `metrics.compare.episodes` gives it. more: further columns, name -> policy -> text.
    """
    from escala.report import marks

    knows = marks.known(judged)
    means = judged.pivot("metric", index="policy", values="mean", maintain_order=True).to_dicts()
    changes = {(row["metric"], row["policy"]): row for row in judged.to_dicts()}
    reference = next((policy for (_, policy), row in changes.items() if row["difference"] is None), "")
    told = {word: metric for metric, word in CHANGES_OF.items() if (metric, reference) in changes}
    added = {} if more is None else more
    rows = [
        {"policy": row["policy"]}
        | {
            f"{word} against {marks.shown(reference, knows)}": interval(changes[metric, row["policy"]])
            for word, metric in told.items()
        }
        | {name: texts[row["policy"]] for name, texts in added.items()}
        | row
        for row in means
    ]
    return [rows_table(marks.in_rows(rows, knows), text="right"), *marks.lines(knows)]


def interval(row: dict[str, Any]) -> str:
    """A change in percent with its interval."""
    if row["change"] is None:
        return "-"
    return f"{100 * row['change']:+.1f} % [{100 * row['change_low']:+.1f}, {100 * row['change_high']:+.1f}]"
