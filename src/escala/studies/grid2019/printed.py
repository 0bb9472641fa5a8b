"""PPO from nothing as R1 prints it (image, 20 ReLU units, value clipping as the author's library has it): its claims,
its learning curve, and the distribution over single episodes, as the author's figure is one sampled episode of one
training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.studies.grid2019.cells import CURVE, EASY_WHOLE
from escala.studies.grid2019.published import published_table
from escala.studies.lab.claims import Claim, write_table
from escala.studies.lab.slotted import SEEDS, Cells, claim, matrix

RULES_SHOWN = ("sjf", "sjf-strict", "tetris", "packer", EASY_WHOLE)
ROUNDING = 5e-4
"""Of the author's three decimals."""
LAST, BEST_LOOK = "last", "best look"
SHARES = {"least": 0.0, "p05": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "most": 1.0}


def cells_of(scale: Any, load: int) -> list[str]:
    """The trainings of a load, one a seed."""
    return [f"printed/{load}/{seed}" for seed in range(scale.printed_seeds)]


def _curve_cells(scale: Any) -> list[str]:
    """The trainings that figure 4 shows, one a seed."""
    return cells_of(scale, CURVE) if scale.curve and CURVE in scale.printed_loads else []


def _theirs(author: Path, load: int, policy: str) -> float:
    """The author's own mean slowdown."""
    table = published_table(author)
    return float(table.filter((pl.col("load") == load) & (pl.col("policy") == policy))["mean_slowdown"][0])


def claims(scale: Any, cells: Cells, author: Path) -> list[Claim]:
    """The printed setting against greedy SJF, and what it comes to at load 100 %, look by look and episode by
    episode."""
    found = []
    for load in scale.printed_loads:
        ours = matrix(cells, cells_of(scale, load), "sampled", "slowdown")
        sjf = np.array(cells["published/rules"][str(load)]["sjf"]["slowdown"])
        ppo, told = _theirs(author, load, "PPO"), _theirs(author, load, "PPO") / _theirs(author, load, "SJF") - 1
        text = f"the printed setting (image, 20 ReLU units): mean slowdown against greedy SJF, load {load} %"
        note = (
            f"{np.nanmean(ours):.3f} after {scale.printed} decisions; SJF {sjf[0]:.3f}; author's PPO {ppo:.3f} "
            "(after 2.5 "
        )
        note += "million at 100 %, 9 million at 190 %); aim: below SJF"
        found.append(claim(f"r1.published.printed.{load}", text, told, ours, sjf, 0.0, note))
    if not _curve_cells(scale):
        return found
    sjf, ppo = np.array(cells["published/rules"][str(CURVE)]["sjf"]["slowdown"]), _theirs(author, CURVE, "PPO")
    best = _episodes(scale, cells)[BEST_LOOK]
    text = f"the printed setting, the best look of each training: mean slowdown against greedy SJF, load {CURVE} %"
    note = (
        f"{best.mean():.3f}; of each seed the look with the least mean of its sampled episodes, on the list that "
        "it learns"
    )
    found.append(claim(f"r1.published.printed.best.{CURVE}", text, None, best, sjf, None, note))
    return [*found, _chance(scale, cells, ppo), pass_claim(scale, cells)]


def _episodes(scale: Any, cells: Cells) -> dict[str, np.ndarray]:
    """The mean slowdown of single sampled episodes [seeds, episodes] (infinite where one did not end), of the last look
    and of the best."""
    last, best = [], []
    for name in _curve_cells(scale):
        looks = [_whole(look) for look in (*cells[name]["looks"], cells[name])]
        last.append(looks[-1])
        best.append(min(looks, key=lambda values: float(values.mean())))
    return {LAST: np.array(last), BEST_LOOK: np.array(best)}


def _whole(look: Mapping[str, Any]) -> np.ndarray:
    return np.array([np.inf if value is None else float(value) for value in look["sampled"]["slowdown"]])


def _chance(scale: Any, cells: Cells, ppo: float) -> Claim:
    """How often a single sampled episode is as good as the author's."""
    reached = {look: float((values <= ppo + ROUNDING).mean()) for look, values in _episodes(scale, cells).items()}
    least = min(float(values.min()) for values in _episodes(scale, cells).values())
    text = f"the printed setting: share of single sampled episodes at or below the author's PPO, load {CURVE} %"
    note = (
        f"his figure, {ppo:.3f}, is one sampled episode of one training; of the best looks {reached[BEST_LOOK]:.3f}; "
    )
    note += f"least episode {least:.3f}"
    seeds = len(_curve_cells(scale))
    return Claim(
        f"r1.published.printed.chance.{CURVE}",
        text,
        None,
        reached[LAST],
        None,
        None,
        "share",
        seeds,
        scale.episodes,
        None,
        note,
    )


def episodes_frame(scale: Any, cells: Cells, author: Path) -> pl.DataFrame:
    """One row a seed and look (the last, the best): where the mean slowdowns of single sampled episodes lie."""
    ppo, rows = _theirs(author, CURVE, "PPO"), []
    for look, seeds in _episodes(scale, cells).items():
        for seed, values in enumerate(seeds):
            placed = {name: float(np.quantile(values, share, method="inverted_cdf")) for name, share in SHARES.items()}
            reached = float((values <= ppo + ROUNDING).mean())
            rows.append({"look": look, "seed": seed, "mean": float(values.mean()), **placed, "at_most_author": reached})
    return pl.DataFrame(rows)


def pass_claim(scale: Any, cells: Cells) -> Claim:
    """Decisions until greedy SJF is passed on the published list of load 100, in the printed setting: of each seed the
    first look whose episodes all end, with a lower mean; the median seed, and the range of them."""
    sjf = cells["published/rules"]["100"]["sjf"]["slowdown"][0]
    found, stuck = [], []
    for seed, name in enumerate(_curve_cells(scale)):
        looks = sorted(cells[name]["looks"], key=lambda look: look["steps"])
        passed = [
            look["steps"]
            for look in looks
            if None not in look["sampled"]["slowdown"] and np.mean(look["sampled"]["slowdown"]) < sjf
        ]
        found.append(float(min(passed, default=np.inf)))
        stuck += [f"{look['steps']} (seed {seed})" for look in looks if None in look["sampled"]["slowdown"]]
    median, low, high = (
        None if np.isinf(value) else float(value) for value in (np.median(found), min(found), max(found))
    )
    told = f"; of these left episodes unfinished: {', '.join(stuck)}" if stuck else ""
    holds = median is not None and median <= 250_000 if len(found) >= SEEDS else None
    note = (
        f"the printed setting, sampled actions, looked at after {', '.join(map(str, sorted(scale.curve)))} "
        "decisions (rounded up to "
    )
    note += (
        f"rollouts){told}; the median seed, low and high: range of the seeds; null: it never passes. The paper "
        "does not say whether it "
    )
    note += "counts the decisions of all 24 actors, as we do, or of each"
    text = "decisions of training until greedy SJF is passed, load 100 %"
    return Claim(
        "r1.steps_to_pass_sjf.100",
        text,
        250_000.0,
        median,
        low,
        high,
        "decisions",
        len(found),
        scale.episodes,
        holds,
        note,
    )


def curve_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """Figure 4: one row a look and way of acting; no value where episodes did not end."""
    rows = []
    for seed, name in enumerate(_curve_cells(scale)):
        for look in cells[name]["looks"]:
            for how in ("sampled", "likeliest"):
                found = look[how]["slowdown"]
                left = found.count(None)
                value = None if left else float(np.mean(found))
                rows.append({"line": how, "step": look["steps"], "value": value, "seed": seed, "unfinished": left})
    return pl.DataFrame(rows)


def write(out: Path, scale: Any, cells: Cells, author: Path) -> None:
    """Figure 4, and the tables of the curve and of single episodes."""
    from escala.report import curves, save

    if not _curve_cells(scale):
        return
    points = curve_frame(scale, cells)
    write_table(out, "curve", points)
    write_table(out, "printed_episodes", episodes_frame(scale, cells, author))
    rules = cells["published/rules"][str(CURVE)]
    levels = {rule: rules[rule]["slowdown"][0] for rule in RULES_SHOWN}
    levels |= {f"author's {who}": _theirs(author, CURVE, who) for who in ("EASY", "PPO")}
    shown = points.filter(pl.col("line") == "sampled").drop("line")  # as the paper plays
    label = f"Mean slowdown, published list of load {CURVE} %"
    save(
        curves.learning_curve(curves.Training(shown, levels, label, "The printed setting", less_is_better=True)),
        out / "figures" / "fig4",
    )
