"""From the cells of `marl2024` to its claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.envs.slots.heuristics import PUBLISHED
from escala.envs.slots.heuristics import TEAM_RULES as RULES
from escala.studies.lab.claims import Claim, write_claims, write_table
from escala.studies.marl2024 import headroom, horizons, learning
from escala.studies.marl2024.claims import chosen, claims_of
from escala.studies.marl2024.figures import write_figures
from escala.studies.marl2024.values import (
    KINDS,
    OVERLOAD,
    Cells,
    best_acting,
    best_of,
    label,
    plain,
    rule_values,
    seeds_of,
    values,
)


def _headroom(scale: Any, found: Cells, cells: Cells) -> tuple[list[Claim], pl.DataFrame]:
    """Claims and table of the shares of what is possible. found: the cells of optima."""
    claims, means = [], {}
    for name in found:
        _, shape, load = name.split("/")
        teams = seeds_of(cells, f"{chosen(cells, shape, scale.loads)}/{shape}")
        if not teams or f"rules/{shape}/{load}" not in cells:
            continue
        ours, sjf = values(cells, teams, int(load), "likeliest"), rule_values(cells, shape, int(load), "sjf")
        claims += headroom.claims(shape, int(load), found[name], ours, sjf, label(int(load)))
        means[name] = {rule: rule_values(cells, shape, int(load), rule) for rule in (*PUBLISHED, "dense")} | {
            "teams": ours
        }
    return claims, headroom.frame(found, means)


def table_of(scale: Any, cells: Cells) -> pl.DataFrame:
    """One row a shape, load and policy: every job counted, run to completion."""
    rows = []
    for name, content in cells.items():
        kind, shape, load = (name.split("/") + [""])[:3]
        if kind == "rules":
            for rule in RULES:
                rows.append(_row(shape, int(load), rule, content[rule], 0))
                for how, told in (("void", "until void"), ("central", "central")):
                    rows.append(_row(shape, int(load), f"{rule}, {told}", content[rule][how], 0))
    for prefix in sorted({name.rsplit("/", 1)[0] for name in cells if not name.startswith("rules/")}):
        kind, shape = prefix.split("/")
        names = seeds_of(cells, prefix)
        for load in [load for load in scale.loads if str(load) in cells[names[0]]]:
            for how in ("likeliest", "sampled"):
                figures = {
                    what: np.concatenate(values(cells, names, load, how, what))
                    for what in ("slowdown", "turnaround", "wait")
                }
                where = shape if "x" in shape else f"{shape}x1"
                rows.append(_row(where, load, f"{KINDS[plain(kind)]}, {how}", figures, len(names)))
    return pl.DataFrame(rows).sort("shape", "load", "policy")


def _row(shape: str, load: int, policy: str, figures: Mapping[str, Any], seeds: int) -> dict[str, Any]:
    columns = {
        what: np.array([np.nan if v is None else float(v) for v in figures[what]])
        for what in ("slowdown", "turnaround", "wait")
    }
    known = ~np.isnan(columns["slowdown"])
    means = {what: float(column[known].mean()) if known.any() else None for what, column in columns.items()}
    half = 1.96 * float(columns["slowdown"][known].std()) / max(np.sqrt(known.sum()), 1)
    runtime = None if means["turnaround"] is None else means["turnaround"] - (means["wait"] or 0.0)
    return {
        "shape": shape, "load": load, "overload": load > OVERLOAD, "policy": policy, "mean_slowdown": means["slowdown"],
        "half_interval":
        half, "mean_turnaround_units": means["turnaround"], "mean_wait_units": means["wait"],
        "mean_runtime_units": runtime, "seeds": seeds, "episodes": len(known), "unfinished": int((~known).sum()),
    }  # fmt: skip


def window_table(scale: Any, cells: Cells) -> pl.DataFrame:
    """The paper's window: cut after 200 units; jobs finished, jobs left, and all submitted jobs with waiting ones as if
    started then."""
    rows = []
    for agents, machines in scale.shapes:
        shape = f"{agents}x{machines}"
        names, taught = seeds_of(cells, f"team/{shape}"), seeds_of(cells, f"ahead/{shape}")
        for load in scale.loads:
            parts = {
                rule: [cells[f"rules/{shape}/{load}"][rule]["cut"]]
                for rule in RULES
                if f"rules/{shape}/{load}" in cells
            }
            parts |= {KINDS["team"]: [cells[name][str(load)]["cut"] for name in names]} if names else {}
            parts |= {KINDS["ahead"]: [cells[name][str(load)]["cut"] for name in taught]} if taught else {}
            local = seeds_of(cells, f"local/{shape}")
            parts |= {KINDS["local"]: [cells[name][str(load)]["cut"] for name in local]} if local else {}
            for policy, found in parts.items():
                means = {what: float(np.mean([np.mean(one[what]) for one in found])) for what in found[0]}
                rows.append(
                    {
                        "shape": shape,
                        "load": load,
                        "policy": policy,
                        **{f"mean_{what}": value for what, value in means.items()},
                    }
                )
    return pl.DataFrame(rows)


def curve_table(cells: Cells) -> pl.DataFrame:
    """Learning curves: one row a rollout."""
    rows = []
    for name, content in cells.items():
        if not name.startswith("rules/"):
            kind, shape, seed = name.split("/")
            about = {"kind": kind, "shape": shape, "seed": int(seed)}
            rows += [
                about | {"step": int(step), "agent": int(agent), "value": value}
                for step, agent, value, _ in content["curve"]
            ]
    schema = {
        "kind": pl.String,
        "shape": pl.String,
        "seed": pl.Int64,
        "step": pl.Int64,
        "agent": pl.Int64,
        "value": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema)


def cost_table(cells: Cells) -> pl.DataFrame:
    """What training took: decisions, seconds by the clock (of whatever else the machine did) and of the processor,
    looks not counted, and after how many decisions its judge liked the weights best, which were kept."""
    schema = {
        "cell": pl.String,
        "decisions": pl.Int64,
        "seconds": pl.Float64,
        "processor_s": pl.Float64,
        "kept": pl.Int64,
    }
    rows = [
        {
            "cell": n,
            "decisions": c["steps"],
            "seconds": c["elapsed_s"],
            "processor_s": c["processor_s"],
            "kept": c["kept"],
        }
        for n, c in cells.items()
        if not n.startswith("rules/")
    ]
    return pl.DataFrame(rows, schema=schema)


def seeds_table(cells: Cells) -> pl.DataFrame:
    """Mean slowdown of every single training by its greedy actions (those of growth: by the actions that do better on
    validation lists), and of the best heuristic in the same turns."""
    rows = []
    for name in sorted(name for name in cells if not name.startswith("rules/")):
        kind, shape, seed = name.split("/")
        where = shape if "x" in shape else f"{shape}x1"
        path = {"void": ("void", "slowdown"), "growth": ("void", "slowdown"), "central": ("central", "slowdown")}.get(
            plain(kind), ()
        )
        loads = [int(key) for key in cells[name] if key.isdigit()]
        how = (
            best_acting(cells, seeds_of(cells, f"{kind}/{shape}"), loads)
            if plain(kind) in ("growth", "central")
            else "likeliest"
        )
        for load in (load for load in loads if f"rules/{where}/{load}" in cells):
            best, theirs = best_of(cells, where, load, *path)
            ours = values(cells, [name], load, how)
            rows.append({
                "kind": KINDS[plain(kind)], "shape": where, "seed": int(seed), "load": load, "acting": how,
                "kept": cells[name]["kept"],
                "mean_slowdown": float(ours.mean()), "best": best, "best_slowdown": float(theirs.mean()),
            })  # fmt: skip
    schema = {"kind": pl.String, "shape": pl.String, "seed": pl.Int64, "load": pl.Int64, "acting": pl.String,
              "kept": pl.Int64,
              "mean_slowdown": pl.Float64, "best": pl.String, "best_slowdown": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def check_runtimes(table: pl.DataFrame) -> None:
    """Policies of a row were judged on the same jobs, all of them."""
    whole = table.filter((pl.col("unfinished") == 0) & ~pl.col("policy").str.ends_with("sampled"))
    gap = (
        whole.group_by("shape", "load")
        .agg(gap=pl.col("mean_runtime_units").max() - pl.col("mean_runtime_units").min())["gap"]
        .max()
    )
    widest = 0.0 if gap is None else float(gap)  # type: ignore[arg-type]
    if widest > 1e-6:
        raise AssertionError(f"mean runtimes of one row differ by {widest}: policies were judged on different jobs")


def write_all(out: Path, scale: Any, cells: Cells, scale_name: str) -> list[Claim]:
    """Claims, tables and figures; the claims."""
    found = {name: cell for name, cell in cells.items() if name.startswith(f"{headroom.KIND}/")}
    sweep = horizons.frame(cells)
    cells = {name: cell for name, cell in cells.items() if name not in found and not name.startswith("horizon/")}
    shares, rooms = _headroom(scale, found, cells)
    claims = claims_of(scale, cells) + shares + horizons.claims(sweep)
    table = table_of(scale, cells)
    check_runtimes(table)
    curve = curve_table(cells)
    write_table(out, "slowdown", table)
    write_table(out, "window", window_table(scale, cells))
    write_table(out, "curves", curve)
    judged = learning.judged_table(cells)
    write_table(out, "learning", judged)
    write_table(out, "cost", cost_table(cells))
    trainings = seeds_table(cells)
    write_table(out, "seeds", trainings)
    write_table(out, "headroom", rooms)
    if len(sweep):
        write_table(out, "horizons", sweep)
    about = (
        f"Scale {scale_name}; one team for all loads of a shape; {scale.test} lists of 200 units of arrivals a load, "
        "run to completion, every job counted; likeliest actions; intervals over episodes and training seeds. Loads "
        "are plain; above 70 % they are overload. Teams begin by imitating our rule dense and go on by PPO in turns; "
        "where the note says so they imitate look-ahead first, and know when arrivals end; what PPO adds is "
        "r4.ppo_gain. Teams that learn from nothing are r4.nothing and r4.growth. Of each training the weights that "
        "do best on lists of their own are kept; after 0 decisions means that none of PPO's were better."
    )
    write_claims(out, "marl2024: several agents, one queue (R4)", claims, about)
    write_figures(out, scale, table, trainings, KINDS)
    learning.write_figures(out, curve, judged)
    return claims
