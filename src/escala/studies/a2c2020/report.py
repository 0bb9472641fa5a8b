"""From the cells of `a2c2020` to its claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.studies.a2c2020 import controls, real_logs
from escala.studies.a2c2020.cells import A2C_LIMITS, RULES, printed_cells
from escala.studies.a2c2020.curves import A2C, ALONE, BASELINES, PRINTED, WAYS, best_way, converged_at, write_curves
from escala.studies.lab import open_end
from escala.studies.lab.claims import Claim, write_claims, write_table
from escala.studies.lab.slotted import (
    HOLD_END,
    METRICS,
    QUIETS,
    SHARES,
    UNIT,
    Cells,
    arrays_of,
    claim,
    headroom_claim,
    matrix,
    row_of,
)

AGENT, LOG_ALONE = "recommended", "A2C from nothing"
PAPER = {  # tables 1 and 2: Random, Tetris, SJF, A2cScheduler
    0.9: {
        "slowdown": (5.50, 2.90, 1.81, 2.03),
        "turnaround": (12.51, 8.61, 7.42, 7.20),
        "wait": (8.22, 3.32, 2.21, 2.20),
    },
    0.8: {
        "slowdown": (6.20, 3.25, 2.52, 2.30),
        "turnaround": (14.21, 8.50, 6.50, 6.20),
        "wait": (9.15, 2.10, 1.93, 2.12),
    },
    0.7: {
        "slowdown": (5.05, 3.32, 2.14, 1.91),
        "turnaround": (13.15, 10.02, 7.66, 6.10),
        "wait": (8.32, 4.51, 2.53, 1.82),
    },
    0.6: {
        "slowdown": (3.22, 1.82, 1.56, 1.36),
        "turnaround": (10.0, 5.50, 5.50, 5.50),
        "wait": (8.32, 1.48, 1.48, 1.50),
    },
}
PAPER_LOG = {
    "slowdown": (3.52, 1.82, 1.61, 1.01),
    "turnaround": (10.2, 5.55, 5.51, 2.58),
    "wait": (6.32, 1.25, 1.21, 0.01),
}
PAPER_SD = {  # of A2cScheduler; of all others it prints 0.00
    "0.9": {"slowdown": 0.01, "turnaround": 0.01, "wait": 0.01},
    "0.8": {"slowdown": 0.05, "turnaround": 0.04, "wait": 0.005},
    "0.7": {"slowdown": 0.02, "turnaround": 0.03, "wait": 0.03},
    "0.6": {"slowdown": 0.04, "turnaround": 0.04, "wait": 0.003},
    "log": {"slowdown": 0.02, "turnaround": 0.01, "wait": 0.02},
}
PAPER_NETWORKS = {"fc": None, "conv3-16": 500, "conv3-32": 1100, "conv3-16-pool": 700, "conv3-32-pool": 900}
LIMITS = {0.6: 0.03, 0.7: 0.0, 0.8: 0.0, 0.9: 0.03}
"""How far above SJF the recommended agent may be."""


def learners(scale: Any, rate: float) -> dict[str, list[str]]:
    """Who was trained for a rate: label -> cells, one a seed."""
    kinds = {AGENT: ("agent", scale.seeds), ALONE: ("alone", scale.alone_seeds), A2C: ("a2c", scale.a2c_seeds)}
    found = {label: _names(kind, rate, seeds) for label, (kind, seeds) in kinds.items()} | {
        PRINTED: printed_cells(scale, rate)
    }
    return {label: names for label, names in found.items() if names}


def _names(kind: str, what: Any, seeds: int) -> list[str]:
    """The cells of all seeds. what: None where a kind has one of each seed."""
    return [f"{kind}/{seed}" if what is None else f"{kind}/{what}/{seed}" for seed in range(seeds)]


def write_all(out: Path, scale: Any, cells: Cells, name: str, log: Path | None) -> list[Claim]:
    """Claims, tables and figures of the cells that were done."""
    (out / "figures").mkdir(exist_ok=True)
    claims = rate_claims(scale, cells) + network_claims(scale, cells) + controls.claims(scale.network_rate, cells)
    claims += log_claims(scale, cells, log) + real_logs.claims(cells) + open_end.claims("r2", out, cells)
    rates = rate_frame(scale, cells)
    write_table(out, "tables1and2", rates)
    if scale.networks:
        write_table(out, "table3", network_frame(scale, cells))
    if scale.controls:
        write_table(out, "controls", controls.frame(scale.network_rate, cells))
    write_table(out, "table4", log_frame(scale, cells))
    if len(real := real_logs.frame(cells)):
        write_table(out, "table4-logs", real)
    write_table(out, "paper", paper_frame())
    write_table(out, "seeds", seeds_frame(cells))
    _figures(out, scale, cells, rates, log)
    about = (
        f"Scale {name}. Two resources of 10, dominant demand 3..5, the other 1; 5 slots; 50 steps of arrivals, then "
        "run to completion, every job counted; separate lists for training, validation and test; intervals over "
        "training seeds and episodes. Sampled or likeliest actions (with a way out of silence) are chosen on "
        "validation lists. The printed tables contradict themselves (completion minus wait differs between policies), "
        "so order and size are compared, not digits. The mark for A2C (10 % above SJF at 0.7, 20 % at 0.9) comes from "
        "trials on the compact observation and is held against both, tuned (compact) and as printed (image). A change "
        "of up to 0.1 % counts as none."
    )
    write_claims(out, "a2c2020: A2C with CPU and memory", claims, about)
    return claims


def rate_claims(scale: Any, cells: Cells) -> list[Claim]:
    """Against SJF at each rate: slowdown of all learners, completion and wait of the recommended agent."""
    claims = []
    for rate in scale.rates:
        for label, names in learners(scale, rate).items():
            claims += learner_claims(cells, rate, label, names)
        sjf = np.array(cells[f"rules/{rate}"]["sjf"]["slowdown"], np.float64)
        names = _names("agent", rate, scale.seeds)
        ours = matrix(cells, names, best_way(cells, names), "slowdown")
        for key, rule, about in (
            ("vs_holdback", "hold-back", ""),
            ("vs_holdback_end", HOLD_END, " that knows the end of arrivals"),
        ):
            held = np.array(cells[f"rules/{rate}"][rule]["slowdown"], np.float64)
            text = f"{AGENT}: mean slowdown against hold-back{about}, rate {rate}"
            note = f"hold-back {held.mean():.3f}, tuned on validation lists over {len(QUIETS) * len(SHARES)} settings"
            claims.append(claim(f"r2.{key}.{rate}", text, None, ours, held, 0.0, note))
        claims.append(
            headroom_claim(f"r2.headroom.{rate}", f"{AGENT}, rate {rate}", ours, sjf, cells[f"optimum/{rate}"])
        )
    return claims


def mark_of(label: str, rate: float) -> tuple[float | None, str]:
    """(how far above SJF a learner's slowdown may be, None: a finding; what is held, in words)."""
    if label in (AGENT, ALONE):
        limit = LIMITS.get(rate, 0.0)
        return limit, f"aim: at most {limit:+.0%}"
    found = A2C_LIMITS.get(rate)
    if found is None:
        return None, "a finding, no test"
    known = " (a mark from trials on the compact observation)" if label == PRINTED else ""
    return found, f"aim: at most {found:+.0%}{known}"


def learner_claims(cells: Cells, rate: float, label: str, names: list[str]) -> list[Claim]:
    """One learner of `learners` against SJF at one rate."""
    how, (limit, held) = best_way(cells, names), mark_of(label, rate)
    kind = {AGENT: "slowdown", ALONE: "alone", A2C: "a2c", PRINTED: "printed"}[label]
    claims = []
    for metric, ident in (("slowdown", kind), ("turnaround", "completion"), ("wait", "wait")):
        if label != AGENT and metric != "slowdown":
            continue
        ours, sjf = matrix(cells, names, how, metric), np.array(cells[f"rules/{rate}"]["sjf"][metric], np.float64)
        printed = PAPER[rate][metric]
        note = f"{how} actions: {np.nanmean(ours):.3f} against {sjf.mean():.3f}; {cells[names[0]]['steps']} decisions; "
        note += held if metric == "slowdown" else "shown beside the slowdown; aim: not above SJF"
        allowed, told = limit if metric == "slowdown" else 0.0, printed[3] / printed[2] - 1
        claims.append(
            claim(
                f"r2.{ident}.{rate}", f"{label}: mean {metric} against SJF, rate {rate}", told, ours, sjf, allowed, note
            )
        )
    return claims


def network_claims(scale: Any, cells: Cells) -> list[Claim]:
    """Each network of table 3 against SJF; nothing is held against them."""
    sjf = np.array(cells[f"rules/{scale.network_rate}"]["sjf"]["slowdown"], np.float64)
    claims = []
    for name in scale.networks:
        names = _names("network", name, scale.network_seeds)
        how = best_way(cells, names)
        ours = matrix(cells, names, how, "slowdown")
        epochs = PAPER_NETWORKS[name]
        told = "does not converge" if epochs is None else f"converged after {epochs} epochs"
        note = f"paper: {told}; {cells[names[0]]['steps']} decisions here, {how} actions; a finding, no test"
        claims.append(claim(f"r2.network.{name}",
                            f"A2C with {name}: mean slowdown against SJF, rate {scale.network_rate}", None, ours, sjf,
                            None, note))  # fmt: skip
    return claims


def log_claims(scale: Any, cells: Cells, log: Path | None) -> list[Claim]:
    """Table 4: the agent that begins with a plan of the jobs, and A2C from nothing, as the paper's (a finding)."""
    sjf = np.array(cells["log/rules"]["sjf"]["slowdown"], np.float64)
    told = PAPER_LOG["slowdown"][3] / PAPER_LOG["slowdown"][2] - 1
    what = f"60 jobs of {log.name}" if log is not None else "60 generated jobs"
    kinds: list[tuple[str, str, list[str], float | None, str]] = [
        ("r2.log.slowdown", "agent", _names("log", None, scale.log_seeds), 0.0, "after a plan searched for them"),
    ]
    if scale.curve and scale.curve_seeds:
        names = _names("log-curve", max(scale.curve), scale.curve_seeds)
        kinds.append(
            (
                "r2.log.a2c",
                LOG_ALONE,
                names,
                None,
                f"from nothing, {cells[names[0]]['steps']} decisions; a finding, no test",
            )
        )
    claims = []
    for ident, label, names, limit, how in kinds:
        ours = matrix(cells, names, "sampled", "slowdown")
        note = (
            f"{what}; trained and tested on them, as the paper did, {how}; {np.nanmean(ours):.3f} against {sjf[0]:.3f}"
        )
        by_seed = ", ".join(f"{value:.3g}" for value in matrix(cells, names, "likeliest", "slowdown").mean(axis=1))
        note += f"; likeliest actions, seed by seed: {by_seed}"
        claims.append(claim(ident, f"{label} on one log: mean slowdown against SJF", told, ours, sjf, limit, note))
    return claims


def row_with_sd(load: int, policy: str, values: Mapping[str, np.ndarray], trained: bool) -> dict[str, Any]:
    """A row of a table; its `_sd`: the standard deviation of the mean over training seeds, as the paper prints one.
    Rules are not trained: 0; a single seed has none."""
    row = row_of(load, policy, values)
    for mine, name in METRICS.items():
        means = values[mine].mean(axis=1)
        spread = float(means.std(ddof=1)) if len(means) > 1 and np.isfinite(means).all() else None
        row[f"{name}_sd"] = spread if trained else 0.0
    return row


def rate_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """Tables 1 and 2: one row a rate (in per cent) and policy."""
    rows = []
    for rate in scale.rates:
        rules = cells[f"rules/{rate}"]
        rows += [
            row_with_sd(round(100 * rate), rule, arrays_of(rules[rule]), False)
            for rule in (*RULES, "hold-back", HOLD_END)
        ]
        for label, names in learners(scale, rate).items():
            rows += _learner_rows(cells, rate, label, names)
    return pl.DataFrame(rows).rename({"load": "rate"})


def seeds_frame(cells: Cells) -> pl.DataFrame:
    """The mean slowdown of each recommended agent, seed by seed; none where an episode did not end."""
    rows = []
    for name in (name for name in cells if name.startswith("agent/")):
        kind, rate, seed = name.split("/")
        ways = {how: float(matrix(cells, [name], how, "slowdown").mean()) for how in WAYS}
        rows.append({"kind": kind, "rate": float(rate), "seed": int(seed)} | ways)
    return pl.DataFrame(rows).fill_nan(None)


def _learner_rows(cells: Cells, rate: float, label: str, names: list[str]) -> list[dict[str, Any]]:
    ways = (("sampled", label), ("likeliest", f"{label}, likeliest"))
    return [row_with_sd(round(100 * rate), said, _metrics(cells, names, how), True) for how, said in ways]


def _metrics(cells: Cells, names: list[str], how: str) -> Mapping[str, np.ndarray]:
    return {metric: matrix(cells, names, how, metric) for metric in ("slowdown", "makespan", "turnaround", "wait")}


def network_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """Table 3: one row a network; seconds of its training by the clock, and the decisions at which its return had
    converged (mean over seeds; `converged`: how many of them had), see `a2c2020.curves`."""
    rows = []
    for name in scale.networks:
        names = _names("network", name, scale.network_seeds)
        for how in WAYS:
            row = row_of(round(100 * scale.network_rate), name, _metrics(cells, names, how))
            decisions = cells[names[0]]["steps"]
            seconds = float(np.mean([cells[n]["seconds"] for n in names]))
            settled = [at for at in (converged_at(cells[n]["returns"]) for n in names) if at is not None]
            at = float(np.mean(settled)) if settled else None
            about = {"acting": how, "decisions": decisions, "seeds": len(names), "training_s": seconds}
            rows.append({**about, "converged_at": at, "converged": len(settled), **row})
    return pl.DataFrame(rows).rename({"load": "rate"})


def log_frame(scale: Any, cells: Cells) -> pl.DataFrame:
    """Table 4."""
    rows = [row_with_sd(0, rule, arrays_of(cells["log/rules"][rule]), False) for rule in (*RULES, "hold-back")]
    kinds = {"agent": _names("log", None, scale.log_seeds)}
    if scale.curve and scale.curve_seeds:
        kinds[LOG_ALONE] = _names("log-curve", max(scale.curve), scale.curve_seeds)
    for label, names in kinds.items():
        rows += [row_with_sd(0, f"{label}, {how}", _metrics(cells, names, how), True) for how in WAYS]
    return pl.DataFrame(rows).drop("load")


def paper_frame() -> pl.DataFrame:
    """What the paper prints, with completion minus wait, which would have to be the mean runtime: the same for all
    policies of a row."""
    rows = []
    for where, figures in [*((str(rate), f) for rate, f in PAPER.items()), ("log", PAPER_LOG)]:
        for i, policy in enumerate(("Random", "Tetris", "SJF", "A2cScheduler")):
            values = {metric: figures[metric][i] for metric in ("slowdown", "turnaround", "wait")}
            sd = {f"{metric}_sd": of if policy == "A2cScheduler" else 0.0 for metric, of in PAPER_SD[where].items()}
            rows.append(
                {
                    "rate": where,
                    "policy": policy,
                    **values,
                    **sd,
                    "runtime_implied": values["turnaround"] - values["wait"],
                }
            )
    return pl.DataFrame(rows)


def _as_chosen(scale: Any, cells: Cells, rates: pl.DataFrame) -> list[pl.DataFrame]:
    """Of each learner its rows by the way of acting that validation lists choose, as the claims have it."""
    rows = []
    for rate in scale.rates:
        for label, names in learners(scale, rate).items():
            said = label if best_way(cells, names) == "sampled" else f"{label}, likeliest"
            row = rates.filter((pl.col("rate") == round(100 * rate)) & (pl.col("policy") == said))
            rows.append(row.with_columns(policy=pl.lit(label)))
    return rows


def _figures(out: Path, scale: Any, cells: Cells, rates: pl.DataFrame, log: Path | None) -> None:
    from escala.report import curves, save, study_plots

    rate = scale.network_rate
    write_curves(out, scale, cells, learners(scale, rate), log)
    metrics = ["mean_slowdown", "mean_turnaround_s", "mean_wait_s"]
    shown = pl.concat([rates.filter(pl.col("policy").is_in((*BASELINES, HOLD_END))), *_as_chosen(scale, cells, rates)])
    save(
        study_plots.metric_bars(shown.filter(pl.col("rate") == round(100 * rate)), metrics, time_unit=UNIT),
        out / "figures" / "fig3-bars",
    )
    if len(scale.rates) > 1:
        save(curves.against(shown, "rate", metrics, x_label="Job rate (%)", time_unit=UNIT), out / "figures" / "rates")
    table = log_frame(scale, cells).filter(pl.col("mean_slowdown").is_not_null())
    shown = table.filter(pl.col("policy").is_in((*BASELINES, "agent, sampled", f"{LOG_ALONE}, sampled")))
    save(study_plots.metric_bars(shown, metrics, time_unit=UNIT), out / "figures" / "fig4-bars")
