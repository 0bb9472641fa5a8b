"""The page of a what-if: waits and energy on a site as it is, and changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from escala.calibration.what_if import AS_IT_IS, WhatIf
from escala.report import marks
from escala.report.page import write_report
from escala.report.parts import Section
from escala.report.plots import _WIDTH, figure_legend
from escala.report.quantities import amount, percent, scale
from escala.report.style import INK, policy_colour, styled
from escala.unseen import sentences as unseen

CAUTION = (
    "A what-if is worth what its replay is worth: escala calibrate says whether the replay stands for the cluster."
)


def sentences(found: WhatIf) -> list[str]:
    """For each scheduler the worlds of the least and the most mean wait, beside the site as it is."""
    told = []
    for (scheduler,), rows in found.rows.group_by("scheduler", maintain_order=True):
        base = rows.filter(pl.col("change") == AS_IT_IS).row(0, named=True)
        ordered = rows.filter(pl.col("change") != AS_IT_IS).sort("mean_wait_s").to_dicts()
        ends = [ordered[0], *([ordered[-1]] if len(ordered) > 1 else [])]
        parts = [
            f"{amount('mean_wait_s', row['mean_wait_s'])} with {row['change']}{_change(row, base)}{_refused(row)}"
            for row in ends
        ]
        name = marks.shown(str(scheduler), found.knows)
        told.append(
            f"Under {name} jobs wait {amount('mean_wait_s', base['mean_wait_s'])} in the mean as it is, "
            f"{' and '.join(parts)}."
        )
    refused = found.rows.filter(pl.col("refused") > 0)
    told.append(f"Waits are of the {found.jobs:,} jobs that run in all of these worlds.")
    if refused.height:
        most = refused.sort("refused", descending=True).row(0, named=True)
        told.append(
            f"Jobs are refused in {refused.height:,} of {found.rows.height:,} worlds, up to {most['refused']:,} "
            f"({most['change']})."
        )
    return [*told, *marks.lines(found.knows), *unseen(found.about["unseen"]), CAUTION]


def _refused(row: dict[str, Any]) -> str:
    return f", which refuses {row['refused']:,} jobs" if row["refused"] else ""


def _change(row: dict[str, Any], base: dict[str, Any]) -> str:
    return f" ({percent(row['mean_wait_s'] / base['mean_wait_s'] - 1.0)})" if base["mean_wait_s"] > 0 else ""


def shown(found: WhatIf) -> list[dict[str, str]]:
    """One row a world and scheduler, as texts."""
    bases = {row["scheduler"]: row for row in found.rows.filter(pl.col("change") == AS_IT_IS).iter_rows(named=True)}
    several = found.rows["scheduler"].n_unique() > 1
    rows = []
    for row in found.rows.iter_rows(named=True):
        base = bases[row["scheduler"]]
        told = {
            "change": row["change"],
            **({"scheduler": marks.shown(row["scheduler"], found.knows)} if several else {}),
            "nodes": f"{row['nodes']:,}",
        }
        told["refused"] = f"{row['refused']:,}"
        told |= {
            name.removesuffix("_s").replace("_", " "): amount(name, row[name])
            for name in ("mean_wait_s", "median_wait_s", "p95_wait_s")
        }
        told["mean wait, change"] = "" if row["change"] == AS_IT_IS else _change(row, base).strip(" ()")
        told["utilisation"] = f"{100 * row['utilisation']:.1f} %"
        if "energy_j" in row:
            told["energy"] = amount("energy_j", row["energy_j"])
        rows.append(told)
    return rows


def size_rows(found: WhatIf) -> list[dict[str, str]]:
    """Mean waits by cores of the job, as texts."""
    several = found.sizes["scheduler"].n_unique() > 1
    rows = []
    for row in found.sizes.iter_rows(named=True):
        told = {"change": row.pop("change")}
        scheduler = marks.shown(row.pop("scheduler"), found.knows)
        told |= {"scheduler": scheduler} if several else {}
        rows.append(
            told
            | {f"{size} core{'s' if size != '1' else ''}": amount("mean_wait_s", value) for size, value in row.items()}
        )
    return rows


@styled
def picture(found: WhatIf) -> Figure:
    """Mean wait of each world: a colour a scheduler; the site as it is as a line."""
    worlds = found.rows["change"].unique(maintain_order=True).to_list()
    order = sorted(worlds, key=lambda name: found.rows.filter(pl.col("change") == name)["by"][0])
    divisor, unit = scale("s", float(found.rows["mean_wait_s"].max() or 1.0))  # type: ignore[arg-type]
    figure = Figure(figsize=(_WIDTH, 1.2 + 0.32 * len(order)))
    axes = figure.subplots()
    for k, ((scheduler,), rows) in enumerate(found.rows.group_by("scheduler", maintain_order=True)):
        values = dict(rows.select("change", "mean_wait_s").iter_rows())
        look: dict[str, Any] = {
            "color": policy_colour(k),
            "markersize": 6,
            "markeredgecolor": INK,
            "markeredgewidth": 0.5,
        }
        axes.plot(
            [values[name] / divisor for name in order],
            range(len(order)),
            "o",
            label=marks.shown(scheduler, found.knows),
            **look,
        )
        axes.axvline(values[AS_IT_IS] / divisor, color=policy_colour(k), linewidth=0.9, alpha=0.6)
    axes.set_yticks(range(len(order)), order)
    axes.set(xlabel=f"Mean wait ({unit})", xlim=(0, None))
    axes.margins(y=0.08)
    figure_legend(figure, axes, "outside upper right")
    return figure


def write_page(found: WhatIf, path: Path, about: str) -> None:
    """Write the page."""
    sections = [
        Section("Mean wait", "", [], [(picture(found), "Each point is a replay; the line is the site as it is.")]),
        Section(
            "All worlds",
            "",
            [(pl.DataFrame(shown(found)), "Changes are against the site as it is, under the same scheduler.")],
        ),
        Section("Mean wait by cores of the job", "", [(pl.DataFrame(size_rows(found)), "")]),
    ]
    write_report(path, {}, title="What if", notes=[*sentences(found), about], sections=sections)
