"""From the cells of `marl2024` to its claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.envs.multi_rules import PUBLISHED, RULES
from escala.studies import marl2024_headroom as headroom
from escala.studies import marl2024_learning as learning
from escala.studies.claims import Claim, write_claims, write_table
from escala.studies.marl2024_figures import write_figures
from escala.studies.marl2024_values import KINDS, OVERLOAD, Cells, best_of, claim, label, rule_values, seeds_of, values


def chosen(cells: Cells, shape: str, loads: Sequence[int]) -> str:
    """The kind of team, in turns or taught by look-ahead, that is better on the validation lists of all loads together."""

    def score(kind: str) -> float:
        tried = [values(cells, seeds_of(cells, f"{kind}/{shape}"), load, "validation").mean() for load in loads]
        return np.inf if np.isnan(tried).any() else float(np.mean(np.log(tried)))

    return min((kind for kind in ("team", "ahead") if seeds_of(cells, f"{kind}/{shape}")), key=score, default="team")


def claims_of(scale: Any, cells: Cells) -> list[Claim]:
    """All claims."""
    out: list[Claim] = []
    for agents, machines in scale.shapes:
        shape = f"{agents}x{machines}"
        kind = chosen(cells, shape, scale.loads)
        names = seeds_of(cells, f"{kind}/{shape}")
        for load in scale.loads:
            if not names or f"rules/{shape}/{load}" not in cells:
                continue
            about = label(load) if kind == "team" else f"; {KINDS[kind]}, better on validation lists{label(load)}"
            ours = values(cells, names, load, "likeliest")
            best, theirs = best_of(cells, shape, load)
            text = f"mean slowdown of {agents} agents x {machines} machines against the best of R4's heuristics, load {load} %"
            out.append(claim(f"r4.vs_best_heuristic.{shape}.{load}", text, ours, theirs, 0.02, f"best: {best}{about}"))
            dense = rule_values(cells, shape, load, "dense")
            text = f"the same against our rule dense, which teams in turns imitate first, load {load} %"
            out.append(claim(f"r4.vs_dense.{shape}.{load}", text, ours, dense, 0.02, f"not in the paper{about}"))
            if load in (50, 90):
                tetris = rule_values(cells, shape, load, "tetris-normalised")
                text = f"the same against normalised Tetris, load {load} %"
                out.append(claim(f"r4.vs_tetris.{shape}.{load}", text, ours, tetris, -0.05, f"best job and best machine{about}"))
                ours, tetris = values(cells, names, load, "cut"), rule_values(cells, shape, load, "tetris-normalised", "cut", "slowdown")
                text = f"the same in the paper's window, cut after 200 units (jobs that wait count as started then), load {load} %"
                out.append(claim(f"r4.vs_tetris_cut.{shape}.{load}", text, ours, tetris, -0.05, f"beside the claim before it{about}"))
    out += _worst(out)
    out += _by_kind(scale, cells) + _information(scale, cells) + _modes(scale, cells) + _growth(scale, cells)
    out += learning.claims(scale.loads, cells)
    return out


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
        means[name] = {rule: rule_values(cells, shape, int(load), rule) for rule in (*PUBLISHED, "dense")} | {"teams": ours}
    return claims, headroom.frame(found, means)


def _worst(found: list[Claim]) -> list[Claim]:
    rows = [c for c in found if c.id.startswith("r4.vs_best_heuristic.")]
    known = [c for c in rows if c.ours is not None]
    text = "largest relative change of mean slowdown against the best heuristic, over all shapes and loads"
    if not known:
        return [Claim("r4.worst_against_best_heuristic", text, None, None, None, None, "relative change", 0, 0, None, "not measured")]
    worst = max(known, key=lambda c: c.ours or 0.0)
    verdicts = {c.holds for c in rows}
    holds = False if False in verdicts else None if None in verdicts else True
    seeds, episodes = min(c.seeds for c in known), min(c.episodes for c in known)
    note = f"at {worst.id.removeprefix('r4.vs_best_heuristic.')}; seeds: the fewest of any shape"
    return [
        Claim(
            "r4.worst_against_best_heuristic",
            text,
            None,
            worst.ours,
            worst.low,
            worst.high,
            "relative change",
            seeds,
            episodes,
            holds,
            note,
        )
    ]


def _by_kind(scale: Any, cells: Cells) -> list[Claim]:
    """Both kinds of teams for themselves: those that learnt in turns, and those that imitate look-ahead and learnt no further."""
    out = []
    kinds = [("turns", "team", "that learnt in turns", scale.shapes), ("ahead", "ahead", "taught by look-ahead, no PPO", scale.ahead)]
    for ident, kind, told, shapes in kinds:
        for agents, machines in shapes:
            shape = f"{agents}x{machines}"
            names = seeds_of(cells, f"{kind}/{shape}")
            for load in scale.loads if names else ():
                if f"rules/{shape}/{load}" not in cells:
                    continue
                ours = values(cells, names, load, "likeliest")
                best, theirs = best_of(cells, shape, load)
                text = f"mean slowdown of {shape} agents x machines {told} against the best of R4's heuristics, load {load} %"
                out.append(claim(f"r4.{ident}.vs_best_heuristic.{shape}.{load}", text, ours, theirs, 0.02, f"best: {best}{label(load)}"))
                if load in (50, 90):
                    tetris = rule_values(cells, shape, load, "tetris-normalised")
                    text = f"the same against normalised Tetris, load {load} %"
                    note = f"best job and best machine{label(load)}"
                    out.append(claim(f"r4.{ident}.vs_tetris.{shape}.{load}", text, ours, tetris, -0.05, note))
    return out


def _information(scale: Any, cells: Cells) -> list[Claim]:
    ours, theirs = seeds_of(cells, "local/3x1"), seeds_of(cells, "team/3x1")
    if not ours or not theirs:
        return []
    text = "mean slowdown with local information and rewards against global, 3 x 1, load {} %"
    note = "the paper: no large difference; holds: at most 5 % worse"
    out = []
    for load in scale.loads:
        local, whole = (values(cells, names, load, "likeliest") for names in (ours, theirs))
        if not np.isnan(whole).any():
            out.append(claim(f"r4.local_vs_global.{load}", text.format(load), local, whole, 0.05, f"{note}{label(load)}"))
    return out


def _modes(scale: Any, cells: Cells) -> list[Claim]:
    out = []
    for kind in ("shared", "simultaneous", "printed"):
        names = seeds_of(cells, f"{kind}/3x1")
        for load in [load for load in scale.loads if load in (50, 90, 120)] if names else []:
            best, theirs = best_of(cells, "3x1", load)
            text = f"mean slowdown, {KINDS[kind]}, against the best heuristic, 3 x 1, load {load} %"
            ours = values(cells, names, load, "likeliest")
            out.append(claim(f"r4.{kind}.3x1.{load}", text, ours, theirs, 0.02, f"best: {best}{label(load)}"))
    return out


def _growth(scale: Any, cells: Cells) -> list[Claim]:
    out = []
    for agents in scale.growth:
        names, central = seeds_of(cells, f"growth/{agents}"), seeds_of(cells, f"central/{agents}")
        for load in [load for load in scale.loads if load in (50, 90)]:
            if names and f"rules/{agents}x1/{load}" in cells:
                best, theirs = best_of(cells, f"{agents}x1", load)
                text = f"mean slowdown of {agents} agents with shared parameters against the best heuristic, load {load} %"
                ours = values(cells, names, load, "likeliest")
                out.append(claim(f"r4.growth.{agents}.{load}", text, ours, theirs, 0.02, f"best: {best}; beyond the paper{label(load)}"))
            if names and central:
                ours = values(cells, names, load, "likeliest")
                text = f"mean slowdown of {agents} agents against one central learner of all machines, load {load} %"
                one = values(cells, central, load, "likeliest")
                if not np.isnan(one).any():
                    out.append(claim(f"r4.team_vs_central.{agents}.{load}", text, ours, one, 0.02, f"beyond the paper{label(load)}"))
    return out


def table_of(scale: Any, cells: Cells) -> pl.DataFrame:
    """One row a shape, load and policy: every job counted, run to completion."""
    rows = []
    for name, content in cells.items():
        kind, shape, load = (name.split("/") + [""])[:3]
        if kind == "rules":
            for rule in RULES:
                for how in ("team", "central"):
                    figures = content[rule] if how == "team" else content[rule]["central"]
                    rows.append(_row(shape, int(load), rule if how == "team" else f"{rule}, central", figures, 0))
    for prefix in sorted({name.rsplit("/", 1)[0] for name in cells if not name.startswith("rules/")}):
        kind, shape = prefix.split("/")
        names = seeds_of(cells, prefix)
        for load in [load for load in scale.loads if str(load) in cells[names[0]]]:
            for how in ("likeliest", "sampled"):
                figures = {what: np.concatenate(values(cells, names, load, how, what)) for what in ("slowdown", "turnaround", "wait")}
                where = shape if "x" in shape else f"{shape}x1"
                rows.append(_row(where, load, f"{KINDS.get(kind, kind)}, {how}", figures, len(names)))
    return pl.DataFrame(rows).sort("shape", "load", "policy")


def _row(shape: str, load: int, policy: str, figures: Mapping[str, Any], seeds: int) -> dict[str, Any]:
    columns = {what: np.array([np.nan if v is None else float(v) for v in figures[what]]) for what in ("slowdown", "turnaround", "wait")}
    known = ~np.isnan(columns["slowdown"])
    means = {what: float(column[known].mean()) if known.any() else None for what, column in columns.items()}
    half = 1.96 * float(columns["slowdown"][known].std()) / max(np.sqrt(known.sum()), 1)
    runtime = None if means["turnaround"] is None else means["turnaround"] - (means["wait"] or 0.0)
    return {
        "shape": shape, "load": load, "overload": load > OVERLOAD, "policy": policy, "mean_slowdown": means["slowdown"], "half_interval":
        half, "mean_turnaround_units": means["turnaround"], "mean_wait_units": means["wait"], "mean_runtime_units": runtime, "seeds": seeds,
        "episodes": len(known), "unfinished": int((~known).sum()),
    }  # fmt: skip


def window_table(scale: Any, cells: Cells) -> pl.DataFrame:
    """The paper's window: cut after 200 units; jobs finished, jobs left, and all submitted jobs with waiting ones as if started then."""
    rows = []
    for agents, machines in scale.shapes:
        shape = f"{agents}x{machines}"
        names, taught = seeds_of(cells, f"team/{shape}"), seeds_of(cells, f"ahead/{shape}")
        for load in scale.loads:
            parts = {rule: [cells[f"rules/{shape}/{load}"][rule]["cut"]] for rule in RULES if f"rules/{shape}/{load}" in cells}
            parts |= {KINDS["team"]: [cells[name][str(load)]["cut"] for name in names]} if names else {}
            parts |= {KINDS["ahead"]: [cells[name][str(load)]["cut"] for name in taught]} if taught else {}
            for policy, found in parts.items():
                means = {what: float(np.mean([np.mean(one[what]) for one in found])) for what in found[0]}
                rows.append({"shape": shape, "load": load, "policy": policy, **{f"mean_{what}": value for what, value in means.items()}})
    return pl.DataFrame(rows)


def curve_table(cells: Cells) -> pl.DataFrame:
    """Learning curves: one row a rollout."""
    rows = []
    for name, content in cells.items():
        if not name.startswith("rules/"):
            kind, shape, seed = name.split("/")
            about = {"kind": kind, "shape": shape, "seed": int(seed)}
            rows += [about | {"step": int(step), "agent": int(agent), "value": value} for step, agent, value, _ in content["curve"]]
    schema = {"kind": pl.String, "shape": pl.String, "seed": pl.Int64, "step": pl.Int64, "agent": pl.Int64, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def cost_table(cells: Cells) -> pl.DataFrame:
    """What training took: decisions, seconds (of whatever else the machine did)."""
    schema = {"cell": pl.String, "decisions": pl.Int64, "seconds": pl.Float64}
    rows = [{"cell": n, "decisions": c["steps"], "seconds": c["elapsed_s"]} for n, c in cells.items() if not n.startswith("rules/")]
    return pl.DataFrame(rows, schema=schema)


def check_runtimes(table: pl.DataFrame) -> None:
    """Policies of a row were judged on the same jobs, all of them."""
    whole = table.filter((pl.col("unfinished") == 0) & ~pl.col("policy").str.ends_with("sampled"))
    gap = whole.group_by("shape", "load").agg(gap=pl.col("mean_runtime_units").max() - pl.col("mean_runtime_units").min())["gap"].max()
    widest = 0.0 if gap is None else float(gap)  # type: ignore[arg-type]
    if widest > 1e-6:
        raise AssertionError(f"mean runtimes of one row differ by {widest}: policies were judged on different jobs")


def write_all(out: Path, scale: Any, cells: Cells, scale_name: str) -> list[Claim]:
    """Claims, tables and figures; the claims."""
    found = {name: cell for name, cell in cells.items() if name.startswith(f"{headroom.KIND}/")}
    cells = {name: cell for name, cell in cells.items() if name not in found}
    shares, rooms = _headroom(scale, found, cells)
    claims = claims_of(scale, cells) + shares
    table = table_of(scale, cells)
    check_runtimes(table)
    curve = curve_table(cells)
    write_table(out, "slowdown", table)
    write_table(out, "window", window_table(scale, cells))
    write_table(out, "curves", curve)
    judged = learning.judged_table(cells)
    write_table(out, "learning", judged)
    write_table(out, "cost", cost_table(cells))
    write_table(out, "headroom", rooms)
    about = (
        f"Scale {scale_name}; one team for all loads of a shape; {scale.test} lists of 200 units of arrivals a load, run to completion, "
        "every job counted; likeliest actions; intervals over episodes and training seeds. Loads are plain; above 70 % they are overload. "
        "Teams begin by imitating our rule dense, then learn by PPO; where the note says so they imitate look-ahead, and know when "
        "arrivals end."
    )
    write_claims(out, "marl2024: several agents, one queue (R4)", claims, about)
    write_figures(out, scale, table, KINDS)
    learning.write_figures(out, curve, judged)
    return claims
