"""From the cells of `deepshutdown2020` to its claims, tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.studies.deepshutdown2020 import headroom, longer, returns
from escala.studies.deepshutdown2020.cells import VARIANTS
from escala.studies.deepshutdown2020.claims import all_claims
from escala.studies.deepshutdown2020.figures import write_figures
from escala.studies.deepshutdown2020.paper import beside
from escala.studies.deepshutdown2020.tables import (
    AGENT,
    FRONTIER,
    LEARNERS,
    LIKELIEST,
    Cells,
    learners_of,
    seeds_of,
    tables,
    worths_of,
)
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.claims import Claim, write_claims, write_table
from escala.studies.lab.resampled import Floats, Resampled, interval


def write_all(out: Path, scale: Any, cells: Cells, name: str) -> list[Claim]:
    """Claims, tables and figures of the cells that were done."""
    (out / "figures").mkdir(exist_ok=True)
    every = [key.split("/")[1] for key in cells if key.startswith("about/")]
    claims = all_claims(cells)
    about = (
        f"Scale {name}. Held-out days, all nodes off at their start, SAF beneath every policy; sampled choices, "
        f"{scale.seeds} training seeds on the author's days and {scale.other_seeds} elsewhere (other prices of "
        f"waiting 1, MaskablePPO {scale.ppo_seeds}); intervals over days and seeds. `.drain`: days run to completion, "
        "else cut at 24 h. Relative changes are of sums over days. Other inputs than g5k: read the change of stretch, "
        "not its level."
    )
    write_claims(out, "deepshutdown2020: learnt shutdown policies", claims, about)
    write_table(out, "table2-inputs", inputs_frame(cells, every))
    logs, years = logs_frames(cells, every)
    write_table(out, "table2-logs", logs)
    write_table(out, "fig11-years", years)
    write_table(out, "table3-groups", groups_frame(cells, every))
    write_table(out, "table5-policies", policies_frame(cells, every))
    frontier = frontier_frame(cells, every)
    write_table(out, "frontier", frontier)
    write_table(out, "returns", returns.frame(cells, every))
    write_table(out, "learners", learners_frame(cells))
    if inputs.AUTHOR in every:
        write_table(out, "delay", delay_frame(cells))
        write_table(out, "groups", author_groups_frame(cells))
        if f"headroom/{inputs.AUTHOR}/rules" in cells:
            write_table(out, "headroom", headroom.frame(cells, inputs.AUTHOR))
    write_table(out, "score", score_frame(cells, every))
    if len(sweep := longer.frame(cells)):
        write_table(out, "lengths", sweep)
    write_figures(out, cells, every, years, frontier)
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
                "input": name, "part": part, "nodes": about["nodes"], "cores": about["cores"], "days": p["days"],
                "jobs": int(jobs.sum()),
                "jobs_a_day": float(jobs.mean()), "users_a_day": float(np.mean(p["users"])),
                "load": float(np.mean(p["load"])),
                "sequential_share": float(np.array(p["sequential"]) @ jobs / jobs.sum()),
            })  # fmt: skip
    return pl.DataFrame(rows)


def logs_frames(cells: Cells, every: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The whole logs (R3 table 2), and their years (figure 11): shares of sequential submissions and of jobs that ended
    in error, of both kinds of submissions."""
    logs, years = [], []
    for name in (*every, *(name for name in inputs.ANALYSED if f"years/{name}" in cells)):
        found = dict(cells[f"years/{name}"])
        own = found.pop("years", {})
        years += [{"input": name, "year": year, **shares} for year, shares in own.items() if name in every]
        if found:
            logs.append({"input": name, **found})
    shares = ("sequential", "error", "error_of_sequential", "error_of_others")
    schema = {"input": pl.String, "year": pl.String, "jobs": pl.Int64} | dict.fromkeys(shares, pl.Float64)
    return pl.DataFrame(logs, infer_schema_length=None), pl.DataFrame(years, schema=schema)


def groups_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """R3 table 3: days by their share of sequential submissions, #1 [0, 25 %) ... #4 [75, 100), #5 100 %."""
    rows = []
    for name in every:
        for part in ("train", "validation", "test"):
            group = cells[f"about/{name}"][part]["group"]
            rows.append({"input": name, "part": part, **{f"#{g}": group.count(g) for g in range(1, 6)}})
    return pl.DataFrame(rows)


def _spread(values: Floats, what: str) -> dict[str, float]:
    day = values.mean(axis=0)
    return {
        what: float(day.mean()),
        f"{what}_sd": float(day.std()),
        f"{what}_min": float(day.min()),
        f"{what}_max": float(day.max()),
    }


def policies_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """R3 table 5: a day's delay (of all its jobs, and `delayed`, of the delayed ones, as is printed), waste (W min, as
    its author prints it), switches and stretch: mean, deviation, least, most over days; with changes against T(0) and
    their intervals. Days cut at 24 h have R3's printed figures beside them (`paper_*`)."""
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
                    "energy_kWh": float(t["energy_j"].mean() / 3.6e6),
                    "energy_vs_t0": float(r.change(policy, "timeout:0", "energy_j")[0]),
                    **_spread(t["waste_j"] / 60.0, "waste_Wmin"), **_spread(t["transitions"], "transitions"),
                    **_spread(t["delay_s"] / t["jobs"] / 60.0, "delay_min"),
                    **_spread(t["delay_each_s"] / 60.0, "delayed_min"),
                    **_spread(t["stretch"] / t["jobs"], "day_stretch"),
                    "stretch": float(r.mean(policy, "stretch")[0]), "wait_min": float(r.mean(policy,
                                                                                             "wait_s")[0] / 60.0),
                    "unstarted_share": float(r.mean(policy, "unstarted")[0]),
                    **beside(name if window == "cut" else "", policy),
                })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def delay_frame(cells: Cells) -> pl.DataFrame:
    """R3's delay on all of the author's days, cut at 24 h: a day's mean over its delayed jobs, and over all of its
    jobs, in minutes."""
    rows = []
    for policy, columns in cells[f"delay/{inputs.AUTHOR}"].items():
        each, every = (
            np.array([columns["delay_each_s"]]) / 60.0,
            np.array([columns["delay_s"]]) / np.array([columns["jobs"]]) / 60.0,
        )
        rows.append(
            {"policy": policy, "days": each.size, **_spread(each, "delayed_min"), **_spread(every, "delay_min")}
        )
    return pl.DataFrame(rows)


def frontier_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """Waste against stretch for hold(x), other rules, and every learnt policy. kind: hold, rule, searched, likeliest or
    ppo; mark: what it is labelled by in the picture (x, the price of waiting, or a name). against_hold: at the same
    stretch."""
    rows = []
    for name in every:
        for window in ("cut", "drain"):
            points = {policy: (policy, "1", "hold", policy.removeprefix("hold:")) for policy in FRONTIER}
            points |= {policy: (policy, "1", "rule", policy) for policy in (*VARIANTS, "timeout:300", "oracle")}
            for worth in worths_of(cells, name):
                points[f"agent, waiting at {worth} prices"] = (AGENT, worth, "searched", worth)
                points[f"agent, likeliest, waiting at {worth} prices"] = (LIKELIEST, worth, "likeliest", worth)
            points |= {LEARNERS[preset]: (LEARNERS[preset], "1", "ppo", preset) for preset in learners_of(cells, name)}
            found = {worth: tables(cells, name, window, worth=worth) for worth in worths_of(cells, name)}
            for label, (policy, worth, kind, mark) in points.items():
                r = Resampled(found[worth], resamples=500)
                value, low, high = interval(r.against_frontier(policy, FRONTIER))
                change, change_low, change_high = interval(r.change(policy, "timeout:0", "waste_j"))
                rows.append({
                    "input": name, "window": window, "policy": label, "kind": kind, "mark": mark,
                    "seeds": r.tables[policy]["waste_j"].shape[0], "stretch": float(r.mean(policy, "stretch")[0]),
                    "waste_kJ_a_day": float(r.total(policy, "waste_j")[0] / r.n / 1e3),
                    "waste_vs_t0": change, "waste_vs_t0_low": change_low, "waste_vs_t0_high": change_high,
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
                rows.append({"window": window, "group": group, "days": r.n, "policy": policy, "waste_vs_t0": value,
                             "low": low, "high": high, "stretch": float(r.mean(policy, "stretch")[0])})  # fmt: skip
    return pl.DataFrame(rows)


def score_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """The searched weights: in steps of the choice, so that they can be read."""
    rows = []
    for name in every:
        for seed, cell in enumerate(seeds_of(cells, name)):
            rows += [
                {"input": name, "seed": seed, "number": what, "weight": weight}
                for what, weight in cell["score"].items()
            ]
    return pl.DataFrame(rows)
