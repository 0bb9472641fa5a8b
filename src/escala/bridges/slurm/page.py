"""The findings as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from escala.bridges.slurm.findings import Findings, Waits, waits_by
from escala.bridges.slurm.sentences import LONGER_S, answers, conditions
from escala.report import Section, write_report

MOST_ROWS = 50
COLUMNS = (
    *("jobs", "earlier", "same", "later", "change_unknown"),
    *("median_change_s", "longest_further_wait_s", "longest_spared_wait_s"),
)

WHOSE = (
    "Jobs whose start the policy was asked about, or that started on nodes that it had off. A change above 0 is a "
    "longer wait."
)


def write_page(
    path: Path,
    found: Findings,
    title: str,
    price: float | None = None,
    currency: str = "",
    carbon: float | None = None,
    longer_s: float = LONGER_S,
) -> None:
    """Write the page to a file: the answer first, then whom it concerns, then what the figures leave out."""
    how = found.how
    words = ("same", "earlier", "later", "unasked")
    meaning = {
        "same": "the policy would have started it too",
        "earlier": "it would have started it before",
        "later": "it would not have started it yet",
        "unasked": "the job had ended before the next look",
    }
    starts = pl.DataFrame({"start": [meaning[word] for word in words], "jobs": [how[word] for word in words]})
    sections = [
        Section(
            "Starts of Slurm, as the policy takes them", "", [(starts, "Each job that started while it was watched.")]
        )
    ]
    users, partitions = waits_by(found, "user"), waits_by(found, "partition")
    if users:
        shown = [_table(users, "user"), *([_table(partitions, "partition")] if len(partitions) > 1 else [])]
        sections.insert(0, Section("Whose waits would have changed", WHOSE, shown))
    about = found.about
    what = pl.DataFrame(
        {
            "what": ["Slurm", "partition", "nodes", "mode", "seconds between looks at most", "processes"],
            "value": [
                *(str(about.get(key)) for key in ("slurm", "partition")),
                str(len(about["names"])),
                *(str(about.get(key)) for key in ("mode", "period_s")),
                str(found.begun),
            ],
        }
    )
    sections.append(Section("What these figures leave out", " ".join(conditions(found)), [(what, "")]))
    write_report(path, {}, title=title, notes=answers(found, price, currency, carbon, longer_s), sections=sections)


def _table(rows: list[Waits], whose: str) -> tuple[pl.DataFrame, str]:
    """With what it leaves out."""
    left = f"The {MOST_ROWS} that would have waited longest, of {len(rows)}." if len(rows) > MOST_ROWS else ""
    return pl.DataFrame([one.row() for one in rows[:MOST_ROWS]], schema=[whose, *COLUMNS], orient="row"), left


def figures(found: Findings) -> dict[str, Any]:
    """The figures for JSON, with all rows of the tables."""
    told: dict[str, Any] = {name: round(value, 3) for name, value in found.sums.items()}
    told |= {
        "starts": dict(found.how),
        "delayed_jobs": len(found.delays),
        "looks": found.n_looks,
        "missed": found.n_missed,
    }
    for whose in ("user", "partition"):
        told[f"by_{whose}"] = [dict(zip((whose, *COLUMNS), one.row(), strict=True)) for one in waits_by(found, whose)]
    if found.acting is not None:
        told["acting"] = {name: round(value, 3) for name, value in found.acting.sums.items()} | {
            "looks": found.acting.n_looks
        }
    return told | {"counts": dict(found.counts)}
