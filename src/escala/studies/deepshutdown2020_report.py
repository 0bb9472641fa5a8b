"""From the cells of `deepshutdown2020` to its claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.metrics.jobs import by_class
from escala.studies import deepshutdown2020_headroom as headroom
from escala.studies import deepshutdown2020_inputs as inputs
from escala.studies.claims import Claim, by_policy, write_claims, write_table
from escala.studies.deepshutdown2020_cells import VARIANTS
from escala.studies.deepshutdown2020_claims import AGENT, FRONTIER, LIKELIEST, all_claims, read_idle_watts, seeds_of, tables
from escala.studies.resampled import Floats, Resampled, interval

Cells = Mapping[str, Any]
SHOWN = ("timeout:0", "timeout:300", "oracle", "hold:0.25")
EDGES_MIN = (0, 5, 10, 30, 60)


def write_all(out: Path, scale: Any, cells: Cells, name: str) -> list[Claim]:
    """Claims, tables and figures of the cells that were done."""
    (out / "figures").mkdir(exist_ok=True)
    every = [key.split("/")[1] for key in cells if key.startswith("about/")]
    claims = all_claims(cells)
    about = (
        f"Scale {name}. Held-out days, all nodes off at their start, SAF beneath every policy; sampled choices, {scale.seeds} training "
        f"seeds on the author's days and {scale.other_seeds} elsewhere; intervals over days and seeds. `.drain`: days run to completion, "
        "else cut at 24 h. Relative changes are of sums over days. Other inputs than g5k: read the change of stretch, not its level."
    )
    write_claims(out, "deepshutdown2020: learnt shutdown policies", claims, about)
    write_table(out, "table2-inputs", inputs_frame(cells, every))
    logs, years = logs_frames(cells, every)
    write_table(out, "table2-logs", logs)
    write_table(out, "fig11-years", years)
    write_table(out, "table3-groups", groups_frame(cells, every))
    write_table(out, "table5-policies", policies_frame(cells, every))
    write_table(out, "frontier", frontier_frame(cells, every))
    write_table(out, "learners", learners_frame(cells))
    if inputs.AUTHOR in every:
        write_table(out, "groups", author_groups_frame(cells))
        if f"headroom/{inputs.AUTHOR}/rules" in cells:
            write_table(out, "headroom", headroom.frame(cells, inputs.AUTHOR))
    write_table(out, "score", score_frame(cells, every))
    _figures(out, cells, every, years)
    return claims


def inputs_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """R3 table 2: jobs, cores, period, utilisation, sequential share; by part."""
    rows = []
    for name in every:
        about = cells[f"about/{name}"]
        for part in ("train", "validation", "test"):
            p = about[part]
            jobs = np.array(p["jobs"], np.float64)
            rows.append({
                "input": name, "part": part, "nodes": about["nodes"], "cores": about["cores"], "days": p["days"], "jobs": int(jobs.sum()),
                "jobs_a_day": float(jobs.mean()), "users_a_day": float(np.mean(p["users"])), "load": float(np.mean(p["load"])),
                "sequential_share": float(np.array(p["sequential"]) @ jobs / jobs.sum()),
            })  # fmt: skip
    return pl.DataFrame(rows)


def logs_frames(cells: Cells, every: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The whole logs (R3 table 2), and their years (figure 11): shares of sequential submissions and of jobs that ended in error."""
    logs, years = [], []
    for name in every:
        found = dict(cells[f"years/{name}"])
        for year, shares in found.pop("years", {}).items():
            years.append({"input": name, "year": year, **shares})
        if found:
            logs.append({"input": name, **found})
    schema = {"input": pl.String, "year": pl.String, "jobs": pl.Int64, "sequential": pl.Float64, "error": pl.Float64}
    return pl.DataFrame(logs, infer_schema_length=None), pl.DataFrame(years, schema=schema)


def groups_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """R3 table 3: days by their share of sequential submissions, #1 (0, 25 %) ... #4 [75, 100), #5 100 %."""
    rows = []
    for name in every:
        for part in ("train", "validation", "test"):
            p = cells[f"about/{name}"][part]
            jobs = np.array(p["jobs"], np.float64)
            share = np.array(p["sequential"]) * jobs / np.maximum(jobs - 1, 1)
            group = np.where(share >= 1.0, 5, np.minimum(np.floor(share * 4), 3) + 1).astype(int)
            rows.append({"input": name, "part": part, **{f"#{g}": int((group == g).sum()) for g in range(1, 6)}})
    return pl.DataFrame(rows)


def _spread(values: Floats, what: str) -> dict[str, float]:
    day = values.mean(axis=0)
    return {what: float(day.mean()), f"{what}_sd": float(day.std()), f"{what}_min": float(day.min()), f"{what}_max": float(day.max())}


def policies_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """R3 table 5: a day's delay, waste (W min, as its author prints it), switches and stretch: mean, deviation, least, most over days; with
    changes against T(0) and their intervals."""
    rows = []
    for name in every:
        for window in ("cut", "drain"):
            found = tables(cells, name, window)
            r = Resampled(found, resamples=500)
            for policy, t in found.items():
                change, low, high = interval(r.change(policy, "timeout:0", "waste_j"))
                rows.append({
                    "input": name, "window": window, "policy": policy,
                    "waste_vs_t0": change, "waste_vs_t0_low": low, "waste_vs_t0_high": high,
                    "waste_vs_t300": float(r.change(policy, "timeout:300", "waste_j")[0]),
                    **_spread(t["waste_j"] / 60.0, "waste_Wmin"), **_spread(t["transitions"], "transitions"),
                    **_spread(t["delay_s"] / t["jobs"] / 60.0, "delay_min"), **_spread(t["stretch"] / t["jobs"], "day_stretch"),
                    "stretch": float(r.mean(policy, "stretch")[0]), "wait_min": float(r.mean(policy, "wait_s")[0] / 60.0),
                    "unstarted_share": float(r.mean(policy, "unstarted")[0]),
                })  # fmt: skip
    return pl.DataFrame(rows)


def _worths(cells: Cells, name: str) -> list[str]:
    return sorted({key.split("/")[2] for key in cells if key.startswith(f"search/{name}/")}, key=float)


def frontier_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """Waste against stretch for hold(x), its variants, and every learnt policy."""
    rows = []
    for name in every:
        for window in ("cut", "drain"):
            points = {policy: (policy, "1") for policy in (*FRONTIER, *VARIANTS, "timeout:300", "oracle")}
            for worth in _worths(cells, name):
                points[f"agent, waiting at {worth} prices"] = (AGENT, worth)
                points[f"agent, likeliest, waiting at {worth} prices"] = (LIKELIEST, worth)
            for label, (policy, worth) in points.items():
                r = Resampled(tables(cells, name, window, worth=worth), resamples=500)
                value, low, high = interval(r.against_frontier(policy, FRONTIER))
                rows.append({
                    "input": name, "window": window, "policy": label, "stretch": float(r.mean(policy, "stretch")[0]),
                    "waste_kJ_a_day": float(r.total(policy, "waste_j")[0] / r.n / 1e3),
                    "waste_vs_t0": float(r.change(policy, "timeout:0", "waste_j")[0]),
                    "against_hold": value, "against_hold_low": low, "against_hold_high": high,
                })  # fmt: skip
    return pl.DataFrame(rows)


def learners_frame(cells: Cells) -> pl.DataFrame:
    """Every learner that was tried, on validation and on held-out days, drained: what it took, and what it gave."""
    rows = []
    for key, cell in cells.items():
        if not key.startswith(("search/", "ppo/")):
            continue
        kind, name, setting, seed = key.split("/")
        for part in ("validation", "test"):
            fixed = f"fixed/{name}" if part == "test" else "fixed/validation"
            if fixed not in cells or (part == "validation" and name != inputs.AUTHOR):
                continue
            t0 = cells[fixed]["drain"]["timeout:0"]
            for how in ("sampled", "likeliest"):
                columns = cell[part]["drain"][how]
                stretch = sum(columns["stretch"]) / sum(columns["jobs"])
                rows.append({
                    "learner": kind, "input": name, "setting": setting, "seed": int(seed), "part": part, "choices": how,
                    "decisions": cell["steps_done"], "seconds": cell["elapsed_s"],
                    "waste_vs_t0": sum(columns["waste_j"]) / sum(t0["waste_j"]) - 1, "stretch": stretch,
                    "stretch_minus_t0": stretch - sum(t0["stretch"]) / sum(t0["jobs"]),
                })  # fmt: skip
    return pl.DataFrame(rows)


def author_groups_frame(cells: Cells) -> pl.DataFrame:
    """Each of the author's groups of held-out days: changes of waste against T(0)."""
    groups, rows = np.array(cells["about/g5k"]["groups"]), []
    for window in ("cut", "drain"):
        for group in sorted(set(groups.tolist())):
            r = Resampled(tables(cells, inputs.AUTHOR, window), resamples=500, days=groups == group)
            for policy in (*FRONTIER, *VARIANTS, "oracle", "timeout:300", AGENT, LIKELIEST):
                value, low, high = interval(r.change(policy, "timeout:0", "waste_j"))
                rows.append({"window": window, "group": group, "days": r.n, "policy": policy, "waste_vs_t0": value, "low": low,
                             "high": high, "stretch": float(r.mean(policy, "stretch")[0])})  # fmt: skip
    return pl.DataFrame(rows)


def score_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """The searched weights: in steps of the choice, so that they can be read."""
    rows = []
    for name in every:
        for seed, cell in enumerate(seeds_of(cells, name)):
            rows += [{"input": name, "seed": seed, "number": what, "weight": weight} for what, weight in cell["score"].items()]
    return pl.DataFrame(rows)


def _figures(out: Path, cells: Cells, every: list[str], years: pl.DataFrame) -> None:
    from escala.report import curves, plots, save, study_plots

    figures = out / "figures"
    if years.height:
        save(study_plots.yearly_shares(years), figures / "fig11")
    for name in every:
        frame = frontier_frame(cells, [name]).filter((pl.col("window") == "drain") & ~pl.col("policy").is_in(["timeout:300"]))
        points = {row["policy"]: (row["stretch"], 1e3 * row["waste_kJ_a_day"]) for row in frame.iter_rows(named=True)}
        save(plots.frontier_of(points, "mean_stretch", "waste_j"), figures / f"frontier-{name}")
        _classes_of_jobs(cells, name, out)
    if inputs.AUTHOR not in every:
        return
    train, test = cells["fixed/train"]["cut"], tables(cells, inputs.AUTHOR, "cut")
    first = seeds_of(cells, inputs.AUTHOR)[0]["train"]["cut"]["sampled"]["waste_j"]
    sums = {policy: [*train[policy]["waste_j"], *test[policy]["waste_j"].mean(axis=0)] for policy in SHOWN}
    sums[AGENT] = [*first, *test[AGENT]["waste_j"].mean(axis=0)]
    write_table(out, "fig20", pl.DataFrame({"held_out": [k >= len(first) for k in range(len(sums[AGENT]))], **sums}))
    save(curves.accumulated(sums, "waste_j", split=len(first)), figures / "fig20")
    _curve(cells, out)
    if f"headroom/{inputs.AUTHOR}/rules" in cells:
        _possible(cells, inputs.AUTHOR, figures)


def _possible(cells: Cells, name: str, figures: Path) -> None:
    """Waste against stretch of each policy, and below it what no policy with the same waits can be below. Days run to completion."""
    from escala.report import plots, save

    rows = headroom.frame(cells, name).to_dicts()
    points = {row["policy"]: (row["stretch"], 1e3 * row["waste_kJ_a_day"]) for row in rows}
    points |= {f"bound at the waits of {row['policy']}": (row["stretch"], 1e3 * row["bound_kJ_a_day"]) for row in rows}
    save(plots.frontier_of(points, "mean_stretch", "waste_j"), figures / f"headroom-{name}")


def _curve(cells: Cells, out: Path) -> None:
    """R3 figure 24: the validation days while searching, and the levels of constant choices in the very same environment."""
    from escala.report import curves, save

    searched = seeds_of(cells, inputs.AUTHOR)
    rows = [
        {"step": int(step), "value": value, "seed": k}
        for k, cell in enumerate(searched)
        for step, _, value in cell["curve"]
        if value is not None
    ]
    points = pl.DataFrame(rows)
    write_table(out, "curve", points)
    cost, idle_j = searched[0]["cost"], 60.0 * read_idle_watts(inputs.AUTHOR, cells)
    found = cells["levels/validation"]["seen"].items()
    every = {p: float(-np.mean(np.array(c["waste_j"]) / idle_j + cost * np.array(c["waited"]))) for p, c in found}
    write_table(out, "fig24-levels", pl.DataFrame({"policy": list(every), "value": list(every.values())}))
    best = max(every, key=lambda policy: every[policy])
    levels = {"timeout:0": every["hold:0"], "hold:0.25": every["hold:0.25"], f"{best}, the best constant": every[best]}
    label = "Return a validation day\n(idle minutes of the platform)"
    save(curves.learning_curve(curves.Training(points, levels, label, "Search by whole days")), out / "figures" / "fig24")


def _classes_of_jobs(cells: Cells, name: str, out: Path) -> None:
    """R3 figures 22 and 23: slowdown by inter-arrival class; runtimes of the 10 000 most slowed jobs. Held-out days, cut."""
    from escala.report import curves, save

    about = cells[f"about/{name}"]
    gap, runtime = np.array(about["gap_s"]) / 60.0, np.array(about["runtime_s"])
    slow = {policy: np.array(values) for policy, values in cells[f"fixed/{name}"]["jobs"].items()}
    slow[AGENT] = np.array(seeds_of(cells, name)[0]["test"]["jobs"])
    names = [f"[{a}, {b}) min" for a, b in pairwise(EDGES_MIN)] + [f">= {EDGES_MIN[-1]} min", "first of the day"]
    place = np.where(gap < 0, len(names) - 1, np.searchsorted(EDGES_MIN, gap, side="right") - 1)
    classes = pl.Series(np.array(names)[place], dtype=pl.Enum(names))
    kinds = ["< 1 min", "1 to 5 min", "5 to 30 min", "30 min to 2 h", "> 2 h"]
    lengths = np.array(kinds)[np.searchsorted([60.0, 300.0, 1800.0, 7200.0], runtime, side="right")]
    by_gap, by_length = {}, {}
    for policy, values in slow.items():
        started = values >= 0
        by_gap[policy] = by_class(pl.Series(values[started]), classes.filter(pl.Series(started)))
        worst = np.argsort(-values, kind="stable")[: min(10_000, max(1, len(values) // 4))]
        by_length[policy] = by_class(pl.Series(values[worst]), pl.Series(lengths[worst], dtype=pl.Enum(kinds)))
    write_table(out, f"fig22-{name}", by_policy(by_gap))
    write_table(out, f"fig23-{name}", by_policy(by_length))
    save(curves.by_class(by_gap, "bounded_slowdown", log=True), out / "figures" / f"fig22-{name}")
    save(curves.by_class(by_length, "bounded_slowdown", share=True), out / "figures" / f"fig23-{name}")
