"""How slotted agents hold up where arrivals go on for longer, or shorter, than in their training: every horizon beside
three rules.

An agent is told when arrivals end, if it was trained so; "endless" are the longest lists, whose end it is not shown (it
is told one far away). Rules never know the end. They see nearly the whole queue, and hold-back is tuned for each load
and horizon, on lists of its own; greedy SJF that sees no more than the agent stands beside. Everything runs to
completion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from escala.agents import load_agent
from escala.envs.slots.lists import JobLists, draw_lists
from escala.envs.slots.options import RESCUE, shaping
from escala.envs.slots.playing import play, tune_hold_back
from escala.metrics.bootstrap import paired
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim, at_most
from escala.studies.lab.slotted import QUIETS, SHARES, queue_slots
from escala.workload.generate_slots import bernoulli_model, cpu_memory_model

HORIZONS = (50, 100, 200, 400, 1000)
"""Steps of arrivals."""
ENDLESS, FAR = "endless", 1_000_000
"""The longest lists with their end not shown; the end that an agent is told then, in steps."""
RULES = ("sjf", "sjf-strict", "hold-back")
SEEN = "sjf-seen"
"""Greedy SJF that sees the agent's slots, not the whole queue."""
VALIDATION, TEST = 12, 13
"""Seeds of the lists; no list of one set is in another, nor in those of the studies."""
STEPS, TRIED = 20_000, 4_000
"""Of arrivals in all lists of a horizon: to judge on, and to tune on; at least LEAST lists."""
LEAST = (20, 10)
PATIENCE = 40_000
Cells = Mapping[str, Any]


def lists_of(world: str, load: float, steps: int, count: int, seed: int) -> JobLists:
    """Fresh lists. world: "pool" (R1, load in per cent) or "cpu-memory" (R2, a rate)."""
    model = bernoulli_model(load / 100, steps, "author") if world == "pool" else cpu_memory_model(load, steps)
    return draw_lists(model, count, seed)


def counts(steps: int) -> tuple[int, int]:
    """Lists to judge on, and to tune on."""
    return max(LEAST[0], STEPS // steps), max(LEAST[1], TRIED // steps)


def rules(world: str, load: float, steps: int, seed: int = TEST) -> dict[str, Any]:
    """Mean slowdowns of the three rules on every list of a horizon, and the setting of hold-back. seed: of the
    lists."""
    (count, few), slots = counts(steps), queue_slots(steps)
    lists = lists_of(world, load, steps, count, seed)
    hold = tune_hold_back(lists_of(world, load, steps, few, VALIDATION), QUIETS, SHARES, slots=slots)
    played = {
        rule: play(lists, rule, hold=hold, slots=slots, patience=PATIENCE)["slowdown"].to_list() for rule in RULES
    }
    return played | {"hold": list(hold)}


def agent(folder: str, world: str, load: float, steps: int, endless: bool) -> dict[str, Any]:
    """Mean slowdowns of a kept agent's greedy actions on the same lists, null where a run did not end; and of greedy
    SJF in its slots."""
    made, lists = load_agent(folder), lists_of(world, load, steps, counts(steps)[0], TEST)
    seen = {name: made.env_options[name] for name in ("slots", "queue") if name in made.env_options}
    beside = play(lists, "sjf", patience=PATIENCE, **seen)["slowdown"].to_list()
    return {"slowdown": played(made, world, load, steps, endless), SEEN: beside}


def played(
    made: Any, world: str, load: float, steps: int, endless: bool = False, seed: int = TEST
) -> list[float | None]:
    """Mean slowdowns of an agent's greedy actions on the lists of a horizon; None where a run did not end. seed: of the
    lists."""
    shaped = shaping(made.env_options)
    if shaped.get("arrivals_end", 0) > 0:
        shaped["arrivals_end"] = FAR if endless else steps
    lists = lists_of(world, load, steps, counts(steps)[0], seed)
    found = play(lists, lambda seen, mask: made.act(seen, mask, None), patience=PATIENCE, rescue=RESCUE, **shaped)
    return found["slowdown"].to_list()


def cells_of(agents: Mapping[str, tuple[str, Sequence[float]]], world: str, horizons: Sequence[int]) -> list[Cell]:
    """Everything to do. agents: name -> (folder, loads)."""
    loads = sorted({load for _, own in agents.values() for load in own})
    found = [
        Cell(f"horizon/rules/{load}/{steps}", rules, {"world": world, "load": load, "steps": steps}, steps / 50)
        for load in loads
        for steps in horizons
    ]
    for name, (folder, own) in agents.items():
        for load in own:
            for steps, endless in [*((steps, False) for steps in horizons), (max(horizons), True)]:
                given = {"folder": folder, "world": world, "load": load, "steps": steps, "endless": endless}
                found.append(Cell(f"horizon/{name}/{load}/{ENDLESS if endless else steps}", agent, given, steps / 100))
    return found


def frame(cells: Cells) -> pl.DataFrame:
    """One row an agent, load and horizon: means of the rules and of the agent, and the agent's relative excess over the
    best of the three there, with its interval over lists; null where a run did not end."""
    rows = []
    for key, name, load, horizon, steps in runs_of(cells):
        rules = cells[f"horizon/rules/{load}/{steps}"]
        row = against_best(cells[key]["slowdown"], {rule: rules[rule] for rule in RULES}, {SEEN: cells[key][SEEN]})
        rows.append({"agent": name, "load": float(load), "horizon": horizon, "steps": steps} | row)
    return pl.DataFrame(rows, infer_schema_length=None)


def runs_of(cells: Cells) -> Iterator[tuple[str, str, str, str, int]]:
    """Key, agent, load, horizon and steps of every run of an agent; the endless ones are as long as the longest of the
    rules."""
    longest = max((int(key.rsplit("/", 1)[1]) for key in cells if key.startswith("horizon/rules/")), default=0)
    for key in cells:
        if key.startswith("horizon/") and not key.startswith("horizon/rules/"):
            _, name, load, horizon = key.split("/")
            yield key, name, load, horizon, longest if horizon == ENDLESS else int(horizon)


def against_best(
    slowdowns: Sequence[float | None],
    rules: Mapping[str, Sequence[float]],
    beside: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, Any]:
    """Means of rules and agent, and its relative excess over the best of them with its interval over lists; null where
    a run did not end.
    beside: rules that are shown, and not among them."""
    means = {rule: float(np.mean(values)) for rule, values in rules.items()}
    shown = means | {rule: float(np.mean(values)) for rule, values in (beside or {}).items()}
    best = min(means, key=lambda rule: means[rule])
    ours = np.array(slowdowns, np.float64)
    row: dict[str, Any] = {"lists": len(ours), **shown, "best": best, "unfinished": int(np.isnan(ours).sum())}
    row |= dict.fromkeys(("mean_slowdown", "excess", "low", "high"))
    if not row["unfinished"]:
        found = paired(ours[None], np.array(rules[best], np.float64), resamples=4000)
        row |= {
            "mean_slowdown": float(ours.mean()),
            "excess": float(found.value),
            "low": float(found.low),
            "high": float(found.high),
        }
    return row


def worst_claim(
    ident: str, table: pl.DataFrame, agents: Sequence[str], about: str, aim: float = 0.0, rules: str = "three rules"
) -> list[Claim]:
    """The largest excess of these agents over the best of the rules, over all loads and horizons of the table; none
    where it has none of them. Where a run did not end there is no figure, and the note says so. aim: the largest that
    is meant to be."""
    rows = table.filter(pl.col("agent").is_in(agents)).to_dicts() if len(table) else []
    if not rows:
        return []
    text = f"largest relative excess of mean slowdown over the best of {rules}, {about}, over all loads and horizons"
    stuck = [row for row in rows if row["unfinished"]]
    seeds, mark = 1, f"aim: at most {100 * aim:g}{' %' if aim else ''}; one training seed: the true interval is wider"
    if stuck:
        note = (
            f"{sum(row['unfinished'] for row in stuck)} runs did not end, the first at load {stuck[0]['load']:g}, "
            f"{stuck[0]['horizon']}"
        )
        return [
            Claim(
                ident,
                text,
                None,
                None,
                None,
                None,
                "relative change",
                seeds,
                rows[0]["lists"],
                False,
                f"{note}; {mark}",
            )
        ]
    at = max(rows, key=lambda row: row["excess"])
    note = (
        f"at load {at['load']:g}, {at['horizon']} ({at['steps']} steps): {at['mean_slowdown']:.3f} against "
        f"{at[at['best']]:.3f}"
    )
    note += f" of {at['best']}"
    value, low, high = (float(at[name]) for name in ("excess", "low", "high"))
    meets = at_most(aim)(value, low, high)
    return [Claim(ident, text, None, value, low, high, "relative change", seeds, at["lists"], meets, f"{note}; {mark}")]
