"""Head-room of shutdown policies on whole days: how much less could have been wasted at no longer waits, and the share
of it that each policy saves.

A policy that lets jobs wait wastes less, so every policy is measured at its own waits: of all schedules in which no job
starts later than under the policy or under T(0), whichever is later, none wastes less than a proved bound
(`escala.bounds.waste_bound`). (T(0) - policy) / (T(0) - bound) is then at most the true share. The best of the rules
that keep these limits, chosen day by day in hindsight, gives the other end: (T(0) - policy) / (T(0) - best of the
rules) is at least the true share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.bounds.waste_bound import bound_at
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.foresight import in_words
from escala.optimum import unless_interrupted
from escala.studies.deepshutdown2020.cells import FIXED, TAU, as_published, drawn
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim
from escala.studies.lab.days import Floats, Rows, played, simulated
from escala.studies.lab.resampled import Resampled, interval

T0, SHOWN = "timeout:0", ("timeout:0", "hold:0.1", "hold:0.25", "hold:0.5", "oracle")
LIMIT_S = 10.0  # a day; most take a tenth of a second
Given = dict[str, Any]
Rule = tuple[Rows, list[Floats]]


def cells_of(source: Given, agents: Mapping[int, Path]) -> list[Cell]:
    """The rules, and each searched agent by its seed and folder."""
    rules = Cell(f"headroom/{source['name']}/rules", of_rules, {"source": source}, 3)
    return [rules] + [
        Cell(
            f"headroom/{source['name']}/agent/{seed}",
            of_agent,
            {"source": source, "seed": seed, "folder": str(folder)},
            1,
        )
        for seed, folder in agents.items()
    ]


def of_rules(source: Given) -> dict[str, Any]:
    """Policy of SHOWN -> `possible` on the held-out days, run to completion."""
    one = inputs.days(**source)
    rules = _rules(one)
    return {policy: possible(one, rules[policy], rules) for policy in SHOWN}


def of_agent(source: Given, seed: int, folder: str) -> dict[str, Any]:
    """The same of a searched agent: one run of each day with sampled choices."""
    from escala.agents import load_agent

    one = inputs.days(**source)
    agent = load_agent(folder)
    options = agent.env_options | {"tau": TAU, "drain_days": 7.0, "window": "drain"}
    batch = OffReservationBatch(len(one.test), list(one.test), one.platform, **options)
    rows, starts, _ = played(batch, drawn(agent, seed), one.test)
    return possible(one, (rows, starts), _rules(one))


def _rules(one: inputs.Days) -> dict[str, Rule]:
    return {policy: simulated(one.test, one.platform, "saf", as_published(policy), "drain") for policy in FIXED}


def possible(one: inputs.Days, policy: Rule, rules: Mapping[str, Rule]) -> dict[str, list[float | None]]:
    """Columns [days]: jobs, summed stretch, and the waste in J of T(0), of the policy, of the best rule within the
    limits and of the bound. A day on which a job never started has no bound (None)."""
    out: dict[str, list[float | None]] = {name: [] for name in ("jobs", "stretch", "t0", "waste", "found", "lower")}
    for k, day in enumerate(one.test):
        row, start = policy[0][k], policy[1][k]
        latest = np.maximum(start, rules[T0][1][k])  # NaN where the job never started
        within = [rows[k]["waste_j"] for rows, starts in rules.values() if bool((starts[k] <= latest).all())]
        lower = None if np.isnan(latest).any() else _bound(day, one.platform, latest)
        best = min([row["waste_j"], *within])
        if lower is not None and lower > best * (1 + 1e-6) + 1e-3:
            raise AssertionError(f"{day.name}: bound {lower} J above a simulated waste of {best} J: a defect in Escala")
        values = (row["jobs"], row["stretch"], rules[T0][0][k]["waste_j"], row["waste_j"], best, lower)
        for name, value in zip(out, values, strict=True):
            out[name].append(value)
    return out


def _bound(day: Any, platform: Any, latest_s: Floats) -> float:
    return unless_interrupted(bound_at(day, platform, [latest_s], limit_s=LIMIT_S)[0]).lower_j


def measured(cells: Mapping[str, Any], name: str) -> dict[str, list[Mapping[str, Sequence[float | None]]]]:
    """Policy -> what `possible` gave, a seed; empty where nothing was measured."""
    rules = cells.get(f"headroom/{name}/rules", {})
    out = {policy: [columns] for policy, columns in rules.items()}
    agents = [cells[key] for key in sorted(cells) if key.startswith(f"headroom/{name}/agent/")]
    return out | ({"agent": agents} if agents else {})


def _shares(columns: Sequence[Mapping[str, Sequence[float | None]]]) -> tuple[Resampled, dict[str, Floats]]:
    """(the days that have a bound in every seed, resampled; the two ends of the share, and relative changes against
    T(0))."""
    table = {name: np.array([one[name] for one in columns], np.float64) for name in columns[0]}
    bounded = np.isfinite(table["lower"]).all(axis=0)
    r = Resampled({"policy": table}, resamples=2000, days=bounded)
    t0, waste, found, lower = (r.total("policy", name) for name in ("t0", "waste", "found", "lower"))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = {"proved": (t0 - waste) / (t0 - lower), "of_best_rule": (t0 - waste) / (t0 - found)}
    return r, shares | {"waste_vs_t0": waste / t0 - 1, "best_rule_vs_t0": found / t0 - 1, "bound_vs_t0": lower / t0 - 1}


def claims(cells: Mapping[str, Any], name: str) -> list[Claim]:
    """The proved share of each policy but T(0)."""
    out = []
    for policy, columns in measured(cells, name).items():
        if policy == T0:
            continue
        r, found = _shares(columns)
        value, low, high = interval(found["proved"])
        least, most = found["bound_vs_t0"][0], found["of_best_rule"][0]
        told = (
            f"at most {most:.3f} (the best rule of each day)" if np.isfinite(most) else "no rule was better than T(0)"
        )
        note = (
            f"the true share is at least this and {told}; proved: at these waits nothing wastes less than "
            f"{1 + least:.3f} of T(0)'s"
        )
        text = (
            f"share of what could be saved over T(0) at the waits of {in_words(policy)} that it saves, {r.n} days "
            "run to completion"
        )
        ident = f"r3.headroom.{policy.replace(':', '')}.{name}"
        out.append(Claim(ident, text, None, value, low, high, "share", len(columns), r.n, None, note))
    return out


def frame(cells: Mapping[str, Any], name: str) -> pl.DataFrame:
    """Waste against stretch, and what was possible at each policy's waits: one row a policy."""
    rows = []
    for policy, columns in measured(cells, name).items():
        r, found = _shares(columns)
        row: dict[str, Any] = {
            "input": name,
            "policy": policy,
            "days": r.n,
            "stretch": float(r.mean("policy", "stretch")[0]),
        }
        for what, column in (("waste", "waste"), ("bound", "lower")):
            row[f"{what}_kJ_a_day"] = float(r.total("policy", column)[0] / r.n / 1e3)
        row |= {what: float(values[0]) for what, values in found.items()}
        row["proved"], row["proved_low"], row["proved_high"] = interval(found["proved"])
        rows.append(row)
    return pl.DataFrame(rows).fill_nan(None)
