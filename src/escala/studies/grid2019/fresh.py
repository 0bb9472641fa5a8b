"""What `grid2019` claims of fresh lists: agents of one load and of all, look-ahead, rules, and their shares of the
head-room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from escala.studies.grid2019.cells import RULES
from escala.studies.lab.claims import Claim
from escala.studies.lab.slotted import (
    HOLD_END,
    METRICS,
    Cells,
    arrays_of,
    change,
    claim,
    headroom_claim,
    matrix,
    row_of,
)

ALL, OWN, IMITATED, AHEAD = "agent, all loads", "agent, own load", "imitation alone, own load", "rollout"
BEST = "agent (chosen on validation lists)"
TEN = "ten slots: "
"""Before the names of policies that see R1's own window."""


def fresh_claims(scale: Any, cells: Cells) -> list[Claim]:
    """On test lists that no training has seen. The agent of a load (for all loads, or its own) and how it acts
    (sampled, or likeliest actions) are chosen by its mean on validation lists."""
    claims, worst = [], []
    for load in scale.loads:
        names, how, which = best_agents(scale, cells, load)
        ours = matrix(cells, names, str(load), how, "slowdown")
        rules = cells[f"rules/{load}"]
        against = {
            "vs_strict": ("sjf-strict", "strict SJF"),
            "vs_holdback": ("hold-back", "hold-back"),
            "vs_holdback_end": (HOLD_END, "hold-back that knows the end of arrivals"),
            "slowdown": ("sjf", "greedy SJF"),
        }
        for key, (rule, text) in against.items():
            theirs = np.array(rules[rule]["slowdown"], np.float64)
            note = f"{which}, {how}: {np.nanmean(ours):.3f} against {theirs.mean():.3f}; never worse?"
            said = f"mean slowdown against {text} on fresh lists, load {load} %"
            claims.append(claim(f"r1.fresh.{key}.{load}", said, None, ours, theirs, 0.0, note))
        worst.append(claims[-1])
        sjf = np.array(rules["sjf"]["slowdown"], np.float64)
        claims.append(
            headroom_claim(f"r1.fresh.headroom.{load}", f"load {load} %", ours, sjf, cells[f"optimum/{load}"])
        )
        ahead = arrays_of(cells[f"ahead/{load}"])["slowdown"]
        text = f"{AHEAD} on load {load} %"
        claims.append(
            headroom_claim(f"r1.rollout.headroom.{load}", text, ahead, sjf[: ahead.shape[1]], cells[f"optimum/{load}"])
        )
        claims += other_claims(scale, cells, load)
    least = max(worst, key=lambda c: np.inf if c.ours is None else c.ours)
    text = "the load with the least gain over greedy SJF on fresh lists: its relative change"
    claims.append(
        replace(least, id="r1.fresh.worst_load", claim=text, note=f"load {least.id.rpartition('.')[2]} %; {least.note}")
    )
    return claims


def other_claims(scale: Any, cells: Cells, load: int) -> list[Claim]:
    """One agent for all loads, and PPO alone with R1's ten slots, against greedy SJF with the same slots."""
    claims = []
    told = {
        "all": ("fresh/all", scale.all_seeds, "rules", "one agent for all loads"),
        "ten": ("ten-agent/all", scale.ten_seeds, "ten", "PPO alone, ten slots"),
    }
    for key, (kind, seeds, rules, text) in told.items():
        names = [f"{kind}/{seed}" for seed in range(seeds)]
        if names:
            how = best_way(cells, names, load)[1]
            ours, sjf = (
                matrix(cells, names, str(load), how, "slowdown"),
                np.array(cells[f"{rules}/{load}"]["sjf"]["slowdown"]),
            )
            note = f"{how}: {np.nanmean(ours):.3f} against {sjf.mean():.3f}; never worse?"
            said = f"{text}: mean slowdown against greedy SJF on fresh lists, load {load} %"
            claims.append(claim(f"r1.{key}.slowdown.{load}", said, None, ours, sjf, 0.0, note))
    return claims


def best_way(cells: Cells, names: list[str], load: int) -> tuple[float, str]:
    """(mean on validation lists, "sampled" or "likeliest") of the better way of acting."""
    means = [
        (float(matrix(cells, names, str(load), "validation", how).mean()), how) for how in ("sampled", "likeliest")
    ]
    return min((np.inf if np.isnan(mean) else mean, how) for mean, how in means)


def best_agents(scale: Any, cells: Cells, load: int) -> tuple[list[str], str, str]:
    """(cells, sampled or greedy, name) of the agents of a load, chosen on validation lists."""
    choices = {ALL: [f"fresh/all/{seed}" for seed in range(scale.all_seeds)]}
    if load in scale.own:
        choices[OWN] = [f"fresh/{load}/{seed}" for seed in range(scale.seeds)]
    if scale.imitated(load) >= scale.seeds:
        choices[IMITATED] = [f"imitated/{load}/{seed}" for seed in range(scale.seeds)]
    _, how, which = min((*best_way(cells, names, load), which) for which, names in choices.items())
    return choices[which], how, which


def fresh_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """One row a load and policy on the test lists."""
    rows = []
    for load in scale.loads:
        rules = cells[f"rules/{load}"]
        rows += [row_of(load, rule, arrays_of(rules[rule])) for rule in (*RULES, "hold-back", HOLD_END)]
        kinds = {ALL: ("fresh/all", scale.all_seeds)}
        if load in scale.own:
            kinds[OWN] = f"fresh/{load}", scale.seeds
        kinds[IMITATED] = f"imitated/{load}", scale.imitated(load)
        kinds[f"{TEN}{ALL}"] = ("ten-agent/all", scale.ten_seeds)
        for which, (key, seeds) in kinds.items():
            rows += agent_rows(cells, load, which, [f"{key}/{seed}" for seed in range(seeds)])
        rows += [row_of(load, f"{TEN}{rule}", arrays_of(cells[f"ten/{load}"][rule])) for rule in (*RULES, "hold-back")]
    return pl.DataFrame(rows)


def fresh_seeds_frame(cells: Cells) -> pl.DataFrame:
    """The mean slowdown of each agent of fresh lists, seed by seed; none where an episode did not end. trained: its own
    load, or all."""
    rows = []
    for name, cell in cells.items():
        kind, *about = name.split("/")
        if kind in ("fresh", "imitated", "ten-agent") and len(about) == 2:
            for load in (key for key in cell if key.isdigit()):
                ways = {
                    how: float(matrix(cells, [name], load, how, "slowdown").mean()) for how in ("sampled", "likeliest")
                }
                rows.append({"kind": kind, "trained": about[0], "seed": int(about[1]), "load": int(load)} | ways)
    return pl.DataFrame(rows).fill_nan(None)


def other_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """What the slowdown costs: makespan, turnaround and wait of the agent chosen for each load, against greedy SJF."""
    rows = []
    for load in scale.loads:
        names, how, which = best_agents(scale, cells, load)
        for metric in ("makespan", "turnaround", "wait"):
            ours = matrix(cells, names, str(load), how, metric)
            sjf = np.array(cells[f"rules/{load}"]["sjf"][metric], np.float64)
            value, low, high = change(ours, sjf)
            mean = None if value is None else float(ours.mean())
            rows.append({"load": load, "metric": METRICS[metric], "sjf": float(sjf.mean()), "agent": mean,
                         "change": value,
                         "change_low": low, "change_high": high, "policy": f"{which}, {how}"})  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def best_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """The agent chosen for each load on validation lists, one row a load, as in `fresh_frame`."""
    rows = []
    for load in scale.loads:
        names, how, _ = best_agents(scale, cells, load)
        rows.append(row_of(load, BEST, {mine: matrix(cells, names, str(load), how, mine) for mine in METRICS}))
    return pl.DataFrame(rows)


def agent_rows(cells: Cells, load: int, which: str, names: list[str]) -> list[dict[str, Any]]:
    """Agents sampled, and by their greedy actions; no row where there are none."""
    ways = (("sampled", which), ("likeliest", f"{which}, likeliest")) if names else ()
    return [
        row_of(load, label, {mine: matrix(cells, names, str(load), how, mine) for mine in METRICS})
        for how, label in ways
    ]


def variant_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """The rules and agents of their own under other windows and demands."""
    rows = []
    for load, window, demand in scale.variants:
        name, about = f"{load}/{window}/{demand}", {"steps": window, "demand": demand}
        content = cells[f"rules/{name}"]
        found = [row_of(load, rule, arrays_of(content[rule])) for rule in (*RULES, "hold-back", HOLD_END)]
        found += agent_rows(cells, load, OWN, [f"fresh/{name}/{seed}" for seed in range(scale.variant_seeds)])
        rows += [about | row for row in found]
    return pl.DataFrame(rows)


def headroom_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """One row a load and policy on the first test lists, those whose optimum was searched for: beside look-ahead, best
    found and bound."""
    rows = []
    for load in scale.loads:
        best = cells[f"optimum/{load}"]
        n = len(best["found"])
        names, how, which = best_agents(scale, cells, load)
        shown = ("sjf", "sjf-strict", "hold-back", HOLD_END)
        values = {rule: np.array([cells[f"rules/{load}"][rule]["slowdown"]], np.float64) for rule in shown}
        values |= {
            AHEAD: arrays_of(cells[f"ahead/{load}"])["slowdown"],
            f"{which}, {how}": matrix(cells, names, str(load), how, "slowdown"),
        }
        values |= {"best found": np.array([best["found"]], np.float64), "bound": np.array([best["lower"]], np.float64)}
        some = np.isfinite(values["best found"][0])
        rows += [
            {"load": load, "lists": int(some.sum()), "policy": name, "mean_slowdown": float(x[:, :n][:, some].mean())}
            for name, x in values.items()
        ]
    return pl.DataFrame(rows)


def variant_claims(scale: Any, cells: Cells) -> list[Claim]:
    """Agents under other windows and demands: against greedy SJF, and their share of the head-room."""
    claims = []
    for load, window, demand in scale.variants:
        name, about = f"{load}/{window}/{demand}", f"load {load} %, {window} steps, demand {demand}"
        names = [f"fresh/{name}/{seed}" for seed in range(scale.variant_seeds)]
        how = best_way(cells, names, load)[1]
        ours, sjf = (
            matrix(cells, names, str(load), how, "slowdown"),
            np.array(cells[f"rules/{name}"]["sjf"]["slowdown"]),
        )
        key = name.replace("/", ".")
        note = f"{how}: {np.nanmean(ours):.3f} against {sjf.mean():.3f}; never worse?"
        said = f"mean slowdown against greedy SJF on fresh lists, {about}"
        claims.append(claim(f"r1.variant.slowdown.{key}", said, None, ours, sjf, 0.0, note))
        for rule, ident, words in (
            ("hold-back", "holdback", ""),
            (HOLD_END, "holdback_end", " that knows the end of arrivals"),
        ):
            theirs = np.array(cells[f"rules/{name}"][rule]["slowdown"])
            said = f"mean slowdown against tuned hold-back{words} on fresh lists, {about}"
            note = f"{how}: {np.nanmean(ours):.3f} against {theirs.mean():.3f}; never worse?"
            claims.append(claim(f"r1.variant.vs_{ident}.{key}", said, None, ours, theirs, 0.0, note))
        claims.append(headroom_claim(f"r1.variant.headroom.{key}", about, ours, sjf, cells[f"optimum/{name}"]))
        ahead = arrays_of(cells[f"ahead/{name}"])["slowdown"]
        best = cells[f"optimum/{name}"]
        claims.append(
            headroom_claim(f"r1.variant.rollout.{key}", f"{AHEAD}, {about}", ahead, sjf[: ahead.shape[1]], best)
        )
    return claims
