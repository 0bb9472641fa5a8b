"""The findings as one self-contained page."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from escala.bridges.slurm.findings import Findings, answers, by_user, conditions
from escala.report import Section, write_report


def write_page(
    path: Path, found: Findings, title: str, price: float | None = None, currency: str = "", carbon: float | None = None
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
    sections = [Section("Starts of Slurm, as the policy takes them", "", [(starts, "Each job that started while it was watched.")])]
    rows = by_user(found)
    if rows:
        users = pl.DataFrame(rows, schema=["user", "jobs", "mean_wait_s", "max_wait_s"], orient="row")
        sections.append(Section("Who would have waited for nodes to wake", "", [(users, "Further wait of jobs on nodes that were off.")]))
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
    write_report(path, {}, title=title, notes=answers(found, price, currency, carbon), sections=sections)
