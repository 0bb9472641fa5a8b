"""Of `deepscheduler2020` agents that are searched, chosen and judged on days run to completion, as R3's days are
(section 5.2.4): over nodes that go off after 5 idle minutes, as printed, and over nodes that go off at once; beside all
pairs of a rule and a shutdown policy.

An agent is held against the joint hull of the rules: what can be had by tossing a coin for each day between two of
them, at its mean wait, and at its wait as R3 shows it (over days between the 10th and the 90th percentile). The hull is
drawn on the days that are judged, in hindsight, which favours the rules. Which limit of waiting counts is decided on
validation days: the least waste against their hull there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import polars as pl

from escala.agents.direct_search.queue_play import whole_days
from escala.agents.direct_search.scheduler_search import PLACES, rules, search_scheduler
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.studies.deepscheduler2020.cells import AT_ONCE, BENEATH, Given, columns_of, judged, price_of
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.cells import Cell
from escala.studies.lab.claims import Claim, at_most
from escala.studies.lab.days import simulated
from escala.studies.lab.joint import WAITS, Joint
from escala.studies.lab.resampled import Floats, interval, table_of

Cells = Mapping[str, Any]
ORDERS = ("first-fit", "easy", "saf", "sjf-fit")
SWITCHES = (
    "timeout:0",
    "timeout:60",
    "timeout:300",
    "timeout:900",
    *(f"hold:{x:g}:uncapped" for x in (0.05, 0.1, 0.25, 0.5, 1.0)),
)
SEEN: dict[str, Any] = {"window": "drain", "drain_days": 7.0}
PARTS = ("validation", "test")
OVER = {"5min": BENEATH, "0": AT_ONCE}
"""What lies beneath an agent, by the name in its cells."""
EASY, FIRST_FIT, SHORTEST = f"easy + {BENEATH}", f"first-fit + {BENEATH}", f"sjf-fit + {AT_ONCE}"


def pairs(source: Given, part: str) -> dict[str, Any]:
    """Every order over every shutdown policy, and over both of OVER the rules that searches may begin with: name ->
    columns [days]."""
    one = inputs.days(**source)
    days = getattr(one, part)
    out: dict[str, Any] = {f"{order} + {switch}": columns_of(simulated(days, one.platform, order, switch, "drain")[0])
                           for order, switch in product(ORDERS, SWITCHES)}  # fmt: skip
    jobs = out[EASY]["jobs"]
    for switch in OVER.values():
        batch = SchedulingBatch(len(days), list(days), one.platform, waits=True, places=PLACES, shutdown=switch, **SEEN)
        for name, weights in rules().items():
            waste, wait, _ = whole_days(weights, batch)
            out[f"{name} + {switch}"] = {"waste_j": waste.tolist(), "wait_s": wait.tolist(), "jobs": jobs}
    return out


def searched(source: Given, over: str, limit: float, seed: int, search: Mapping[str, Any], keep: str) -> dict[str, Any]:
    """Search an agent on days run to completion, over nodes that are switched off as `over` says, and judge it on such
    days. limit: of the waits, as a share of First-Fit's over the same."""
    one, shutdown = inputs.days(**source), OVER[over]
    agent = search_scheduler(one.train, one.platform, price=price_of(one), limit=limit, validation=one.validation,
                             seed=seed, out=keep, shutdown=shutdown, **search, **SEEN)  # fmt: skip
    out: dict[str, Any] = {
        part: judged(agent, getattr(one, part), one.platform, seed, ("drain",))["drain"]["sampled"] for part in PARTS
    }
    return out | {"score": agent.manifest["score"], "elapsed_s": agent.manifest["elapsed_s"]}


def cells_of(scale: Any, name: str, one: Mapping[str, Any], search: Mapping[str, int], agents: Any) -> list[Cell]:
    """Everything to do on an input; nothing at a scale without limits. one: how its days are found."""
    found = (
        [Cell(f"joint/{name}/{part}", pairs, {**one, "part": part}, 90) for part in PARTS] if scale.completed else []
    )
    cost = 2e-3 * search["population"] * search["generations"] * search["days_each"]
    for over, limit, seed in product(OVER, scale.completed, range(scale.completed_seeds)):
        keep = str(agents / f"{name}-done-{over}-{limit:g}-{seed}")
        given = {**one, "over": over, "limit": limit, "seed": seed, "search": dict(search), "keep": keep}
        found.append(Cell(f"done/{name}/{over}/{limit:g}/{seed}", searched, given, cost))
    return found


def tables(cells: Cells, name: str, part: str) -> tuple[dict[str, dict[str, Floats]], list[str]]:
    """All rules and agents on a part of an input -> columns [seeds, days]; and the names of the rules. Agents:
    OVER/LIMIT."""
    found = {rule: table_of([columns]) for rule, columns in cells[f"joint/{name}/{part}"].items()}
    known = list(found)
    for over, limit in dict.fromkeys(tuple(key.split("/")[2:4]) for key in cells if key.startswith(f"done/{name}/")):
        keys = sorted(key for key in cells if key.startswith(f"done/{name}/{over}/{limit}/"))
        found[f"{over}/{limit}"] = table_of([cells[key][part] for key in keys])
    return found, known


def chosen(cells: Cells, name: str) -> dict[str, str]:
    """What lies beneath -> the agent that counts: the least waste against the joint hull on validation days, at its
    mean wait there."""
    found, known = tables(cells, name, "validation")
    joint = Joint(found, resamples=0)
    over = {agent: float(joint.against_hull(agent, known, "mean")[0]) for agent in found if agent not in known}
    return {key: min((a for a in over if a.startswith(f"{key}/")), key=lambda a: over[a]) for key in OVER}


def inputs_of(cells: Cells) -> list[str]:
    """The inputs on which such agents were searched."""
    return list(dict.fromkeys(key.split("/")[1] for key in cells if key.startswith("done/")))


def claims(cells: Cells) -> list[Claim]:
    """Of the agent that counts, over each of OVER: waste and waits against EASY and First-Fit as printed, and waste
    against the hull."""
    out = []
    for name in inputs_of(cells):
        found, known = tables(cells, name, "test")
        joint = Joint(found)
        for over, agent in chosen(cells, name).items():
            about = f"agent searched on completed days over {OVER[over]}"
            rows: list[tuple[str, str, Floats, float | None]] = [
                (
                    "waste_vs_easy",
                    "energy waste against EASY over timeout:300",
                    joint.change("waste", agent, EASY),
                    -0.07,
                ),
                ("waste_vs_shortest", f"energy waste against {SHORTEST}", joint.change("waste", agent, SHORTEST), 0.0),
            ]
            for way, words in WAITS.items():
                rows += [
                    (f"{way}_wait_vs_first_fit", f"{words} against First-Fit over timeout:300",
                     joint.change(way, agent, FIRST_FIT), 0.0),
                    (f"{way}_wait_vs_easy", f"{words} against EASY over timeout:300", joint.change(way, agent, EASY),
                     None),
                    (f"{way}_wait_vs_shortest", f"{words} against {SHORTEST}", joint.change(way, agent, SHORTEST),
                     None),
                    (f"{way}_hull", f"energy waste against the joint hull of rules at equal {words}",
                     joint.against_hull(agent, known, way), 0.0),
                ]  # fmt: skip
            for key, text, values, mark in rows:
                value, low, high = interval(values)
                verdict = None if mark is None else at_most(mark, 0.0)(value, low, high)
                note = f"limit {agent.split('/')[1]} of First-Fit's wait, chosen on validation days; {len(known)} rules"
                out.append(Claim(f"r3.done.{key}.{over}.{name}", f"{about}: {text}, days run to completion", None,
                                 value, low, high,
                                 "relative change", len(found[agent]["waste_j"]), joint.days, verdict,
                                 note))  # fmt: skip
    return out


def frame(cells: Cells, parts: Sequence[str] = PARTS) -> pl.DataFrame:
    """One row an input, part of its days, and rule or agent."""
    rows = []
    for name, part in product(inputs_of(cells), parts):
        found, known = tables(cells, name, part)
        joint, counts = Joint(found, resamples=0), chosen(cells, name).values()
        for policy in found:
            among = [one for one in known if one != policy]
            row: dict[str, Any] = {
                "input": name,
                "part": part,
                "policy": policy,
                "agent": policy not in known,
                "chosen": policy in counts,
            }
            row["waste_vs_easy"] = float(joint.change("waste", policy, EASY)[0])
            for way in WAITS:
                row[f"{way}_wait_min"] = float(joint.wait[way][policy][0] / 60.0)
                row[f"{way}_wait_vs_first_fit"] = float(joint.change(way, policy, FIRST_FIT)[0])
                row[f"{way}_hull"] = float(joint.against_hull(policy, among, way)[0])
            rows.append(row)
    return pl.DataFrame(rows)
