"""Agents of clusters (`deepshutdown2020`, `deepscheduler2020`) on held-out days, beside the rules that their tables
hold them against."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from escala.agents import load_agent
from escala.studies.deepscheduler2020 import cells as scheduler
from escala.studies.deepshutdown2020 import cells as shutdown
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.days import simulated
from escala.studies.lab.joint import WAITS, Joint
from escala.studies.lab.resampled import Resampled, table_of
from escala.studies.replay.figures import ERRORS, OTHER, PRINTED, Figure, NotAtHand, Study

Columns = Mapping[str, Any]
NAME = re.compile(r"(?P<input>[a-z0-9]+)-(?P<setting>[0-9.]+(x[0-9]+)?)-(?P<seed>\d+)")
DONE = re.compile(r"(?P<input>[a-z0-9]+)-done-(?P<over>\w+)-(?P<limit>[0-9.]+)-(?P<seed>\d+)")
PARTS = ("validation", "test")


def deepshutdown2020(study: Study, agent: str, seed: int | None) -> Iterator[Figure]:
    """Searched agents, INPUT-PRICE-SEED: energy waste against T(0) and the mean stretch, on days run to completion."""
    name, setting, number = _parts(agent)
    told = study.rows("learners", agent, learner="search", input=name, setting=setting, seed=number)
    one = _days(study, agent, name, seed)
    made = load_agent(study.folder / "agents" / agent)
    for part in PARTS if seed is None else ("test",):
        rows = {row["choices"]: row for row in told if row["part"] == part}
        if not rows:
            continue
        days = getattr(one, part)
        judged = shutdown.judged(made, days, one.platform, number if seed is None else seed, ("drain",))["drain"]
        t0 = _of_rule(name, part, "drain", "saf", "timeout:0", _key(study, name, seed))
        for how, row in rows.items():
            r = Resampled(
                {"ours": table_of([judged[how]]), "theirs": table_of([t0])}, resamples=2 if seed is None else 1000
            )
            for figure, values in (
                ("waste_vs_t0", r.change("ours", "theirs", "waste_j")),
                ("stretch", r.mean("ours", "stretch")),
            ):
                yield Figure(
                    agent, f"{part}, {how}, {figure}", "learners", row[figure], float(values[0]), _near(values, seed)
                )


def deepscheduler2020(study: Study, agent: str, seed: int | None) -> Iterator[Figure]:
    """Searched agents, INPUT-LIMIT-SEED, by their sampled choices: energy waste against EASY and waits against
    First-Fit; and those of days run to completion, INPUT-done-OVER-LIMIT-SEED."""
    if (found := DONE.fullmatch(agent)) is not None:
        yield from _done(study, agent, found, seed)
        return
    name, setting, number = _parts(agent)
    limit, _, strata = setting.partition("x")
    told = study.rows("seeds", agent, input=name, limit=float(limit), strata=strata or 1, seed=number)
    one = _days(study, agent, name, seed)
    made = load_agent(study.folder / "agents" / agent)
    for part, window in product(PARTS if seed is None else ("test",), scheduler.WINDOWS):
        row = next(row for row in told if (row["part"], row["window"]) == (part, window))
        judged = scheduler.judged(made, getattr(one, part), one.platform, number if seed is None else seed, (window,))[
            window
        ]["sampled"]
        rules = {
            rule: _of_rule(name, part, window, rule, scheduler.BENEATH, _key(study, name, seed))
            for rule in ("easy", "first-fit")
        }
        r = Resampled(
            {who: table_of([columns]) for who, columns in {"ours": judged, **rules}.items()},
            resamples=2 if seed is None else 1000,
        )
        changes = {
            "waste_vs_easy": r.change("ours", "easy", "waste_j"),
            "wait_vs_first_fit": r.change("ours", "first-fit", "wait_s"),
        }
        for figure, values in changes.items():
            yield Figure(
                agent, f"{part}, {window}, {figure}", "seeds", row[figure], float(values[0]), _near(values, seed)
            )


def _done(study: Study, agent: str, parts: re.Match[str], seed: int | None) -> Iterator[Figure]:
    """An agent that was searched on days run to completion."""
    name, number = parts["input"], int(parts["seed"])
    told = study.rows("completed", agent, input=name, policy=f"{parts['over']}/{parts['limit']}")
    one, made = _days(study, agent, name, seed), load_agent(study.folder / "agents" / agent)
    for part in PARTS if seed is None else ("test",):
        row = next(row for row in told if row["part"] == part)
        judged = scheduler.judged(made, getattr(one, part), one.platform, number if seed is None else seed, ("drain",))[
            "drain"
        ]["sampled"]
        rules = {
            rule: _of_rule(name, part, "drain", rule, scheduler.BENEATH, _key(study, name, seed))
            for rule in ("easy", "first-fit")
        }
        columns = {who: table_of([values]) for who, values in {"ours": judged, **rules}.items()}
        joint = Joint(columns, resamples=0 if seed is None else 1000)
        changes = {"waste_vs_easy": joint.change("waste", "ours", "easy")}
        changes |= {f"{way}_wait_vs_first_fit": joint.change(way, "ours", "first-fit") for way in WAITS}
        for figure, values in changes.items():
            yield Figure(
                agent, f"{part}, drain, {figure}", "completed", row[figure], float(values[0]), _near(values, seed)
            )


def _parts(agent: str) -> tuple[str, str, int]:
    """(input, setting, seed) of a name such as orion-0.95-0."""
    found = NAME.fullmatch(agent)
    if found is None:
        raise NotAtHand(f"{agent}: no row of its own in the tables")
    return found["input"], found["setting"], int(found["seed"])


def anew(agent: str) -> bool:
    """Does a seed draw other days for this agent? Days of a real log stay."""
    return agent.partition("-")[0] in inputs.GENERATED


def _key(study: Study, name: str, seed: int | None) -> tuple[str, str | None, int, int | None, int]:
    """What `inputs.days` takes; another log is drawn by a seed only where the log is generated."""
    traces = inputs.folder_of_traces()
    place = None if traces is None or name in inputs.GENERATED else str(traces)
    drawn = OTHER + seed if seed is not None and name in inputs.GENERATED else 0
    return name, place, study.settings["generated_days"], study.settings["most"], drawn


def _days(study: Study, agent: str, name: str, seed: int | None) -> inputs.Days:
    if name not in inputs.names(inputs.folder_of_traces()):
        raise NotAtHand(f"{agent}: the log {name} is not at hand (set ESCALA_TRACES)")
    return inputs.days(*_key(study, name, seed))


@lru_cache(maxsize=64)
def _of_rule(
    name: str, part: str, window: str, order: str, switch: str, key: tuple[str, str | None, int, int | None, int]
) -> Columns:
    """Columns of a rule on these days."""
    one = inputs.days(*key)
    rows, _ = simulated(getattr(one, part), one.platform, order, switch, window)
    return {column: [row[column] for row in rows] for column in scheduler.COLUMNS}


def _near(values: np.ndarray, seed: int | None) -> float:
    """The tolerance of a statistic, [1 + resamples] over days."""
    return PRINTED if seed is None else max(PRINTED, ERRORS * float(np.sqrt(2.0) * np.nanstd(values[1:])))
