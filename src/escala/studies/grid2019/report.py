"""From the cells of `grid2019` to its claims, tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.studies.grid2019 import printed, whole_queue
from escala.studies.grid2019.cells import EASY_WHOLE, LEAST_LOAD, RULES
from escala.studies.grid2019.frames import SLOTS, agent_frames, shown_agent
from escala.studies.grid2019.fresh import (
    BEST,
    best_frame,
    fresh_claims,
    fresh_frame,
    fresh_seeds_frame,
    headroom_frame,
    other_frame,
    variant_claims,
    variant_frame,
)
from escala.studies.grid2019.published import LOADS, PAPER_OF, first_submissions, published_lists, published_table
from escala.studies.grid2019.whole_queue import EASY_SENT
from escala.studies.lab import open_end
from escala.studies.lab.claims import Claim, write_claims, write_table
from escala.studies.lab.slotted import (
    HOLD_END,
    METRICS,
    QUEUE,
    UNIT,
    Cells,
    arrays_of,
    claim,
    headroom_claim,
    matrix,
    row_of,
)

PAPER_COLUMNS = {
    "slowdown": "mean_slowdown",
    "makespan": "makespan",
    "turnaround": "mean_turnaround_time",
    "wait": "mean_waiting_time",
}
AGENT = "agent"


def write_all(out: Path, scale: Any, cells: Cells, author: Path | None, name: str) -> list[Claim]:
    """Claims, tables and figures of the cells that were done."""
    (out / "figures").mkdir(exist_ok=True)
    claims: list[Claim] = []
    if author is not None:
        claims += published_claims(scale, cells, author)
        write_table(out, "published", published_frame(scale, cells, author))
        write_table(out, "queue", whole_queue.frame(cells, author))
    claims += fresh_claims(scale, cells) + variant_claims(scale, cells) + open_end.claims("r1", out, cells, LEAST_LOAD)
    fresh = fresh_frame(scale, cells)
    write_table(out, "fresh", fresh)
    write_table(out, "fresh_other", other_frame(scale, cells))
    write_table(out, "fresh_seeds", fresh_seeds_frame(cells))
    write_table(out, "headroom", headroom_frame(scale, cells))
    if author is not None:
        write_table(out, "published_seeds", seeds_frame(scale, cells))
    if scale.variants:
        write_table(out, "variants", variant_frame(scale, cells))
    _figures(out, scale, cells, author, fresh)
    about = (
        f"Scale {name}. Window: 100 steps of arrivals, then run to completion, every job counted. Author's generator. "
        "Intervals over training seeds and episodes. *published*: train and test on the same list, sampled actions; "
        "the agent imitates a plan searched on that very list and goes on with PPO. *fresh*: separate lists for "
        "training, validation and test; agents imitate look-ahead on training lists (at some loads going on with "
        "PPO); agent and way of acting (sampled, or likeliest actions with a way out of silence) are chosen on "
        f"validation lists; rules and agents see {QUEUE} slots ({2 * QUEUE} in windows of 200 steps), agents and "
        "look-ahead know when arrivals end. Loads are nominal: at most one job a step is 184.5 %, so 190 % is that. A "
        "change of up to 0.1 % counts as none."
    )
    write_claims(out, "grid2019: PPO on a pool of ten", claims, about)
    return claims


def published_claims(scale: Any, cells: Cells, author: Path) -> list[Claim]:
    """Against the author's own table."""
    table, rules = published_table(author), cells["published/rules"]
    claims = [heuristics_claim(scale, cells, author)]
    for load in scale.loads:
        names = [f"published/{load}/{seed}" for seed in range(scale.seeds)]
        ours = matrix(cells, names, "sampled", "slowdown")
        paper = {
            p: table.filter((pl.col("load") == load) & (pl.col("policy") == p))["mean_slowdown"][0]
            for p in ("PPO", "SJF")
        }
        told = paper["PPO"] / paper["SJF"] - 1
        sjf, ppo = np.array(rules[str(load)]["sjf"]["slowdown"]), np.array([paper["PPO"]])
        plan = cells[f"published/plan/{load}"]
        note = f"agent {np.nanmean(ours):.3f} (its plan {plan['planned']:.3f}, {plan['placement']}), SJF {sjf[0]:.3f}; "
        larger = sum(cells[name].get("longer", 1.0) > 1.0 for name in names)
        note += f"{larger} of {len(names)} seeds with larger steps; " if larger else ""
        note += "at or below the paper's change?"
        text = "plan imitated, then PPO: mean slowdown against {}, load {} %"
        claims.append(
            claim(f"r1.published.slowdown.{load}", text.format("greedy SJF", load), told, ours, sjf, told, note)
        )
        note = f"author's PPO {paper['PPO']:.3f}"
        claims.append(
            claim(f"r1.published.vs_author.{load}", text.format("the author's PPO", load), 0.0, ours, ppo, 0.0, note)
        )
        best = dict(plan) | {"found": [min(plan["found"][0], plan["planned"])]}  # the plan is a schedule too
        claims.append(headroom_claim(f"r1.published.headroom.{load}", f"load {load} %", ours, sjf, best))
        names = [f"published/imitated/{load}/{seed}" for seed in range(scale.published_imitated_seeds)]
        if names:
            ours = matrix(cells, names, "sampled", "slowdown")
            said = f"plan imitated, no PPO: mean slowdown against greedy SJF, load {load} %"
            note = f"{np.nanmean(ours):.3f} against {sjf[0]:.3f}; shows what the PPO after it adds"
            claims.append(claim(f"r1.published.imitation.{load}", said, None, ours, sjf, None, note))
    if 190 in scale.loads:
        ours = matrix(cells, [f"published/190/{seed}" for seed in range(scale.seeds)], "sampled", "makespan")
        packer = np.array(rules["190"]["packer"]["makespan"])
        claims.append(claim("r1.published.makespan_vs_packer.190", "makespan against Packer, load 190 %", 0.135, ours,
                            packer,
                             0.135, "the price of the slowdown; aim: no larger than the paper's"))  # fmt: skip
    return claims + alone_claims(scale, cells, author) + printed.claims(scale, cells, author)


def heuristics_claim(scale: Any, cells: Cells, author: Path) -> Claim:
    """Largest relative difference of SJF, Packer and Tetris from the author's table."""
    table, rules = published_table(author), cells["published/rules"]
    first = dict(zip(LOADS, first_submissions(published_lists(author)), strict=True))
    columns = {
        "slowdown": "mean_slowdown",
        "makespan": "makespan",
        "turnaround": "mean_turnaround_time",
        "longest_wait": "max_waiting_time",
    }
    worst = 0.0
    for load in LOADS:
        for rule in ("sjf", "packer", "tetris"):
            row = table.filter((pl.col("load") == load) & (pl.col("policy") == PAPER_OF[rule]))
            for mine, theirs in columns.items():
                value = rules[str(load)][rule][mine][0] + (first[load] if mine == "makespan" else 0)
                told = row[theirs][0]
                gap = abs(value - told)
                worst = max(worst, 0.0 if gap <= 3e-3 else gap / max(abs(told), 1e-9))
    note = (
        "four metrics, seven loads; differences up to 3e-3 are the reference engine's message latency and count as none"
    )
    text = "largest relative difference of SJF, Packer, Tetris from the author's table"
    return Claim(
        "r1.published.heuristics", text, 0.0, worst, None, None, "relative difference", 0, 7, worst == 0.0, note
    )


def alone_claims(scale: Any, cells: Cells, author: Path) -> list[Claim]:
    """PPO from nothing against the author's PPO."""
    table, claims = published_table(author), []
    for load, steps in scale.alone:
        names = [f"alone/{load}/{seed}" for seed in range(scale.alone_seeds)]
        ours = matrix(cells, names, "sampled", "slowdown")
        paper = table.filter((pl.col("load") == load) & (pl.col("policy") == "PPO"))["mean_slowdown"][0]
        text = f"PPO from nothing (preset one-list): mean slowdown against the author's PPO, load {load} %"
        note = f"{np.nanmean(ours):.3f} after {steps} decisions; author's PPO {paper:.3f}"
        claims.append(claim(f"r1.published.alone.{load}", text, 0.0, ours, np.array([paper]), 0.0, note))
    return claims


def published_frame(scale: Any, cells: Cells, author: Path) -> pl.DataFrame:
    """One row a load and policy: ours, and the author's PPO, EASY and Random as he gives them."""
    rows, table = [], published_table(author)
    first = dict(zip(LOADS, first_submissions(published_lists(author)), strict=True))
    for load in scale.loads:
        rules = cells["published/rules"][str(load)]
        rows += [row_of(load, rule, arrays_of(rules[rule])) for rule in (*RULES, EASY_WHOLE, EASY_SENT, "hold-back")]
        names = [f"published/{load}/{seed}" for seed in range(scale.seeds)]
        for how, label in (("sampled", AGENT), ("likeliest", f"{AGENT}, likeliest")):
            rows.append(row_of(load, label, {mine: matrix(cells, names, how, mine) for mine in METRICS}))
        if scale.published_imitated_seeds:
            imitated = [f"published/imitated/{load}/{seed}" for seed in range(scale.published_imitated_seeds)]
            rows.append(
                row_of(load, "imitation alone", {mine: matrix(cells, imitated, "sampled", mine) for mine in METRICS})
            )
        if load in dict(scale.alone):
            alone = [f"alone/{load}/{seed}" for seed in range(scale.alone_seeds)]
            rows.append(
                row_of(load, "PPO from nothing", {mine: matrix(cells, alone, "sampled", mine) for mine in METRICS})
            )
        if load in scale.printed_loads:
            names = printed.cells_of(scale, load)
            rows.append(
                row_of(load, "printed setting", {mine: matrix(cells, names, "sampled", mine) for mine in METRICS})
            )
        for policy in ("PPO", "EASY", "Random"):
            told = table.filter((pl.col("load") == load) & (pl.col("policy") == policy))
            values = {
                mine: np.array([[told[column][0] - (first[load] if mine == "makespan" else 0)]])
                for mine, column in PAPER_COLUMNS.items()
            }
            rows.append(row_of(load, f"author's {policy}", values))
    return pl.DataFrame(rows)


def seeds_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """The mean slowdown of each agent on the author's lists, seed by seed; none where an episode did not end."""
    rows = []
    for load in scale.loads:
        for seed in range(scale.seeds):
            ways = {
                how: matrix(cells, [f"published/{load}/{seed}"], how, "slowdown") for how in ("sampled", "likeliest")
            }
            rows.append({"load": load, "seed": seed} | {how: float(values.mean()) for how, values in ways.items()})
    return pl.DataFrame(rows).fill_nan(None)


SHOWN = ("sjf", "sjf-strict", "packer", "tetris", "hold-back")


def _figures(out: Path, scale: Any, cells: Cells, author: Path | None, fresh: pl.DataFrame) -> None:
    from escala.report import curves, save, study_plots

    figures, metrics, top = out / "figures", list(METRICS.values()), max(scale.loads)
    parts: dict[str, tuple[pl.DataFrame, tuple[str, ...]]] = {}
    parts["fresh"] = (pl.concat([fresh, best_frame(scale, cells)]), (*SHOWN, "easy", HOLD_END, BEST))
    if author is not None:
        parts["published"] = (
            published_frame(scale, cells, author),
            (*SHOWN, EASY_SENT, "author's EASY", AGENT, "author's PPO"),
        )
    for name, (table, policies) in parts.items():
        shown = table.filter(pl.col("policy").is_in(policies))
        look: dict[str, Any] = {
            "x_label": "Offered load, nominal (%)",
            "log": (METRICS["slowdown"],),
            "time_unit": UNIT,
        }
        save(curves.against(shown, "load", metrics, **look), figures / f"fig2-{name}")
        save(
            study_plots.metric_bars(shown.filter(pl.col("load") == top), metrics, time_unit=UNIT),
            figures / f"fig3-{name}",
        )
    if author is not None:
        printed.write(out, scale, cells, author)
    _figure_5(out, scale, author)


def _figure_5(out: Path, scale: Any, author: Path | None) -> None:
    """The trained agent at work: `figures/fig5`, and every job in it (`tables/fig5.csv`)."""
    from escala.report import save, study_plots

    agent, lists, name = shown_agent(out, scale, author)
    pictures, titles, names, table = agent_frames(agent, lists)
    titles[0] = f"{name}, its list: chart and the first {SLOTS} slots. {titles[0]}"
    write_table(out, "fig5", table)
    save(study_plots.frames(pictures, titles, names), out / "figures" / "fig5")
