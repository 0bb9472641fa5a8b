"""From the cells of `grid2019` to its claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.envs.batch import new_turn
from escala.envs.slots import SlotsBatch
from escala.studies.claims import Claim, write_claims, write_table
from escala.studies.grid2019_cells import RULES
from escala.studies.published import LOADS, PAPER_OF, first_submissions, published_lists, published_table
from escala.studies.slotted import METRICS, Cells, arrays_of, claim, matrix, row_of

PAPER_COLUMNS = {"slowdown": "mean_slowdown", "makespan": "makespan", "turnaround": "mean_turnaround_time", "wait": "mean_waiting_time"}
AGENT, ALL, OWN = "agent", "agent, all loads", "agent, own load"


def write_all(out: Path, scale: Any, cells: Cells, author: Path | None, name: str) -> list[Claim]:
    """Claims, tables and figures of the cells that were done."""
    (out / "figures").mkdir(exist_ok=True)
    claims: list[Claim] = []
    if author is not None:
        claims += published_claims(scale, cells, author)
        write_table(out, "published", published_frame(scale, cells, author))
    claims += fresh_claims(scale, cells)
    fresh = fresh_frame(scale, cells)
    write_table(out, "fresh", fresh)
    if scale.variants:
        write_table(out, "variants", variant_frame(scale, cells))
    _figures(out, scale, cells, author, fresh)
    about = (
        f"Scale {name}. Window: 100 steps of arrivals, then run to completion, every job counted. Author's generator. Intervals over "
        "training seeds and episodes. *published*: train and test on the same list, sampled actions; the agent imitates a plan searched "
        "on that very list and goes on with PPO. *fresh*: separate lists for training, validation and test; agent and way of acting "
        "(sampled, or likeliest actions with a way out of silence) are chosen on validation lists."
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
        paper = {p: table.filter((pl.col("load") == load) & (pl.col("policy") == p))["mean_slowdown"][0] for p in ("PPO", "SJF")}
        told = paper["PPO"] / paper["SJF"] - 1
        sjf, ppo = np.array(rules[str(load)]["sjf"]["slowdown"]), np.array([paper["PPO"]])
        planned = cells[f"published/plan/{load}"]["planned"]
        note = f"agent {np.nanmean(ours):.3f} (its plan {planned:.3f}), SJF {sjf[0]:.3f}; at or below the paper's change?"
        claims.append(claim(f"r1.published.slowdown.{load}", f"mean slowdown against greedy SJF, load {load} %", told, ours, sjf,
                             lambda v, low, high, told=told: v <= told + 1e-3, note))  # fmt: skip
        claims.append(claim(f"r1.published.vs_author.{load}", f"mean slowdown against the author's PPO, load {load} %", 0.0, ours, ppo,
                             lambda v, low, high: v <= 1e-3, f"author's PPO {paper['PPO']:.3f}"))  # fmt: skip
        claims.append(headroom_claim(f"r1.published.headroom.{load}", load, ours, sjf, cells[f"published/plan/{load}"]))
    if 190 in scale.loads:
        ours = matrix(cells, [f"published/190/{seed}" for seed in range(scale.seeds)], "sampled", "makespan")
        packer = np.array(rules["190"]["packer"]["makespan"])
        claims.append(claim("r1.published.makespan_vs_packer.190", "makespan against Packer, load 190 %", 0.135, ours, packer,
                             lambda v, low, high: v <= 0.135, "the price of the slowdown; holds: no larger than the paper's"))  # fmt: skip
    claims += alone_claims(scale, cells, author)
    if scale.curve:
        claims.append(pass_claim(scale, cells))
    return claims


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
    note = "four metrics, seven loads; differences up to 3e-3 are the reference engine's message latency and count as none"
    text = "largest relative difference of SJF, Packer, Tetris from the author's table"
    return Claim("r1.published.heuristics", text, 0.0, worst, None, None, "relative difference", 0, 7, worst == 0.0, note)


def headroom_claim(ident: str, load: int, ours: np.ndarray, sjf: np.ndarray, optimum: Mapping[str, Any]) -> Claim:
    """Share of the way from greedy SJF to the best clairvoyant schedule found."""
    found = np.array(optimum["found"], np.float64)
    n = len(found) if ours.shape[1] >= len(found) > 1 else ours.shape[1]
    room = float(np.mean(np.broadcast_to(sjf, (ours.shape[1],))[:n])) - float(found.mean())
    gained = float(np.mean(np.broadcast_to(sjf, (ours.shape[1],))[:n])) - float(ours[:, :n].mean())
    share = gained / room if room > 1e-9 and np.isfinite(gained) else None
    note = f"optimum found {found.mean():.3f} (bound {np.mean(optimum['lower']):.3f}) on {len(found)} list(s)"
    text = f"share of the head-room between greedy SJF and the clairvoyant optimum, load {load} %"
    return Claim(ident, text, None, share, None, None, "share", ours.shape[0], n, None, note)


def pass_claim(scale: Any, cells: Cells) -> Claim:
    """The least training budget whose agents, on average, pass greedy SJF on the published list of load 100."""
    sjf = cells["published/rules"]["100"]["sjf"]["slowdown"][0]
    passed = None
    for budget in sorted(scale.curve):
        values = matrix(cells, [f"curve/{budget}/{seed}" for seed in range(scale.curve_seeds)], "sampled", "slowdown")
        if passed is None and np.isfinite(values).all() and values.mean() < sjf:
            passed = float(max(cells[f"curve/{budget}/{seed}"]["steps"] for seed in range(scale.curve_seeds)))
    tried = ", ".join(str(b) for b in sorted(scale.curve))
    holds = passed is not None and passed <= 250_000
    note = f"whole trainings of {tried} decisions (rounded up to rollouts), preset one-list; null: none of them passed"
    return Claim("r1.steps_to_pass_sjf.100", "decisions of training until greedy SJF is passed, load 100 %", 250_000.0, passed, None, None,
                 "decisions", scale.curve_seeds, scale.episodes, holds, note)  # fmt: skip


def alone_claims(scale: Any, cells: Cells, author: Path) -> list[Claim]:
    """PPO from nothing against the author's PPO."""
    table, claims = published_table(author), []
    for load in scale.alone_loads:
        names = [f"alone/{load}/{seed}" for seed in range(scale.alone_seeds)]
        ours = matrix(cells, names, "sampled", "slowdown")
        paper = table.filter((pl.col("load") == load) & (pl.col("policy") == "PPO"))["mean_slowdown"][0]
        text = f"PPO from nothing (preset one-list): mean slowdown against the author's PPO, load {load} %"
        note = f"{np.nanmean(ours):.3f} after {scale.alone} decisions; author's PPO {paper:.3f}"
        claims.append(claim(f"r1.published.alone.{load}", text, 0.0, ours, np.array([paper]), lambda v, low, high: v <= 1e-3, note))
    return claims


def fresh_claims(scale: Any, cells: Cells) -> list[Claim]:
    """On test lists that no training has seen. The agent of a load (for all loads, or its own) and how it acts (sampled, or likeliest
    actions) are chosen by its mean on validation lists."""
    claims, worst = [], []
    for load in scale.loads:
        names, how, which = best_agents(scale, cells, load)
        ours = matrix(cells, names, str(load), how, "slowdown")
        rules = cells[f"rules/{load}"]
        against = {"slowdown": ("sjf", "greedy SJF"), "vs_strict": ("sjf-strict", "strict SJF"), "vs_holdback": ("hold-back", "hold-back")}
        for key, (rule, text) in against.items():
            theirs = np.array(rules[rule]["slowdown"], np.float64)
            note = f"{which}, {how}: {np.nanmean(ours):.3f} against {theirs.mean():.3f}; never worse?"
            said = f"mean slowdown against {text} on fresh lists, load {load} %"
            claims.append(claim(f"r1.fresh.{key}.{load}", said, None, ours, theirs, lambda v, low, high: v <= 1e-3, note))
        value = claims[-3].ours
        worst.append((np.inf if value is None else value, load))
        sjf = np.array(rules["sjf"]["slowdown"], np.float64)
        claims.append(headroom_claim(f"r1.fresh.headroom.{load}", load, ours, sjf, cells[f"optimum/{load}"]))
    change, load = max(worst)
    text = "the load with the least gain over greedy SJF on fresh lists: its relative change"
    finite = float(change) if np.isfinite(change) else None
    claims.append(Claim("r1.fresh.worst_load", text, None, finite, None, None, "relative change", scale.seeds, scale.test,
                        None if finite is None else finite <= 1e-3, f"load {load} %"))  # fmt: skip
    return claims


def best_agents(scale: Any, cells: Cells, load: int) -> tuple[list[str], str, str]:
    """(cells, sampled or likeliest, name) of the agents of a load, chosen on validation lists."""
    choices = {ALL: [f"fresh/all/{seed}" for seed in range(scale.all_seeds)]}
    if load in scale.own:
        choices[OWN] = [f"fresh/{load}/{seed}" for seed in range(scale.seeds)]
    mean = {}
    for which, names in choices.items():
        for how in ("sampled", "likeliest"):
            value = float(matrix(cells, names, str(load), "validation", how).mean())
            mean[which, how] = np.inf if np.isnan(value) else value
    which, how = min(mean, key=lambda key: mean[key])
    return choices[which], how, which


def published_frame(scale: Any, cells: Cells, author: Path) -> pl.DataFrame:
    """One row a load and policy: ours, and the author's PPO, EASY and Random as he gives them."""
    rows, table = [], published_table(author)
    first = dict(zip(LOADS, first_submissions(published_lists(author)), strict=True))
    for load in scale.loads:
        rules = cells["published/rules"][str(load)]
        rows += [row_of(load, rule, arrays_of(rules[rule])) for rule in (*RULES, "hold-back")]
        names = [f"published/{load}/{seed}" for seed in range(scale.seeds)]
        for how, label in (("sampled", AGENT), ("likeliest", f"{AGENT}, likeliest")):
            rows.append(row_of(load, label, {mine: matrix(cells, names, how, mine) for mine in METRICS}))
        if load in scale.alone_loads:
            alone = [f"alone/{load}/{seed}" for seed in range(scale.alone_seeds)]
            rows.append(row_of(load, "PPO from nothing", {mine: matrix(cells, alone, "sampled", mine) for mine in METRICS}))
        if load in scale.printed_loads:
            printed = [f"printed/{load}/{seed}" for seed in range(scale.printed_seeds)]
            rows.append(row_of(load, "printed setting", {mine: matrix(cells, printed, "sampled", mine) for mine in METRICS}))
        for policy in ("PPO", "EASY", "Random"):
            told = table.filter((pl.col("load") == load) & (pl.col("policy") == policy))
            values = {
                mine: np.array([[told[column][0] - (first[load] if mine == "makespan" else 0)]]) for mine, column in PAPER_COLUMNS.items()
            }
            rows.append(row_of(load, f"author's {policy}", values))
    return pl.DataFrame(rows)


def fresh_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """One row a load and policy on the test lists."""
    rows = []
    for load in scale.loads:
        rules = cells[f"rules/{load}"]
        rows += [row_of(load, rule, arrays_of(rules[rule])) for rule in (*RULES, "hold-back")]
        kinds = {ALL: ("all", scale.all_seeds)} | ({OWN: (str(load), scale.seeds)} if load in scale.own else {})
        for which, (key, seeds) in kinds.items():
            names = [f"fresh/{key}/{seed}" for seed in range(seeds)]
            for how, label in (("sampled", which), ("likeliest", f"{which}, likeliest")):
                rows.append(row_of(load, label, {mine: matrix(cells, names, str(load), how, mine) for mine in METRICS}))
    return pl.DataFrame(rows)


def variant_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """The rules and agents of their own under other windows and demands."""
    rows = []
    for name, content in cells.items():
        kind, *rest = name.split("/")
        if kind == "variant":
            load, window, demand = rest
            about = {"steps": int(window), "demand": demand}
            rows += [about | row_of(int(load), rule, arrays_of(content[rule])) for rule in (*RULES, "hold-back")]
            names = [f"variant-agent/{load}/{window}/{demand}/{seed}" for seed in range(scale.variant_seeds)]
            for how, label in (("sampled", OWN), ("likeliest", f"{OWN}, likeliest")):
                rows.append(about | row_of(int(load), label, {mine: matrix(cells, names, load, how, mine) for mine in METRICS}))
    return pl.DataFrame(rows)


SHOWN = ("sjf", "sjf-strict", "packer", "tetris", "easy", "hold-back")


def _figures(out: Path, scale: Any, cells: Cells, author: Path | None, fresh: pl.DataFrame) -> None:
    from escala.report import curves, save, study_plots

    figures, metrics, top = out / "figures", list(METRICS.values()), max(scale.loads)
    parts = {"fresh": (fresh, (*SHOWN, ALL, OWN))}
    if author is not None:
        parts["published"] = (published_frame(scale, cells, author), (*SHOWN, AGENT, "author's PPO"))
    for name, (table, policies) in parts.items():
        shown = table.filter(pl.col("policy").is_in(policies))
        save(curves.against(shown, "load", metrics, x_label="Offered load, nominal (%)"), figures / f"fig2-{name}")
        save(study_plots.metric_bars(shown.filter(pl.col("load") == top), metrics), figures / f"fig3-{name}")
    if author is not None and scale.curve:
        points = [
            {"step": cells[f"curve/{b}/{s}"]["steps"], "value": float(np.mean(cells[f"curve/{b}/{s}"]["sampled"]["slowdown"])), "seed": s}
            for b in scale.curve
            for s in range(scale.curve_seeds)
            if None not in cells[f"curve/{b}/{s}"]["sampled"]["slowdown"]
        ]
        write_table(out, "curve", pl.DataFrame(points))
        levels = {rule: cells["published/rules"]["100"][rule]["slowdown"][0] for rule in ("sjf", "sjf-strict", "tetris", "packer", "easy")}
        training = curves.Training(pl.DataFrame(points), levels, "Mean slowdown, published list of load 100 %", "Whole trainings")
        save(curves.learning_curve(training), figures / "fig4")
    pictures, titles = _frames()
    save(study_plots.frames(pictures, titles), figures / "fig5")


def _frames() -> tuple[list[np.ndarray], list[str]]:
    """Four consecutive looks at a slotted world with reservations (R1 figure 5)."""
    batch = SlotsBatch(1, load=1.0, lists=1, lists_seed=5, placement="reserve")
    turn = new_turn(batch)
    batch.restart(np.zeros(1, np.int64), turn, {"list": 0})
    rng = np.random.default_rng(1)
    pictures, titles = [], []
    for k in range(44):
        if k >= 40:
            pictures.append(batch.frame(0))
            titles.append(f"time {int(batch.memory['row'][0])}: chart, slots 1 to 10, backlog")
        valid = np.flatnonzero(turn.mask[0])
        batch.step(np.array([valid[rng.integers(len(valid))]]), turn)
    return pictures, titles
