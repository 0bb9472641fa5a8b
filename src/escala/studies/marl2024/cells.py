"""The pieces of the study `marl2024`: rules on lists, training and judging a team. Each gives plain lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from escala.envs.slots.heuristics import TEAM_RULES as RULES
from escala.envs.slots.lists import JobLists
from escala.envs.slots.team.options import options_of
from escala.envs.slots.team.playing import RESCUE, play

TRAINING, VALIDATION, TEST, LOOKED_AT = 1, 3, 5, 7  # seeds of the job lists; no list of one set is in another
STEPS = 200  # units of arrivals
FIGURES = ("slowdown", "turnaround", "wait", "finished")
JUDGED, LOOKS = (50, 90), 5
CUT = ("finished_slowdown", "finished_runtime", "left", "submitted", "slowdown")


def lists_of(machines: int, load: int, count: int, seed: int = TEST, steps: int = STEPS) -> JobLists:
    """Fresh lists of one load (in per cent) for so many machines in all. steps: units of arrivals."""
    given = {
        "agents": machines,
        "machines": 1,
        "load": load / 100,
        "formula": "plain",
        "lists": count,
        "lists_seed": seed,
        "steps": steps,
    }
    return options_of(given).job_lists()


def _kept(frame: Any, names: tuple[str, ...]) -> dict[str, list[Any]]:
    return {name: frame[name].to_list() for name in names}


def rules(agents: int, machines: int, load: int, test: int) -> dict[str, Any]:
    """Every rule as a team, one choice a turn and until the no-op, and as one central scheduler that chooses until the
    no-op: run to completion; one choice a turn also cut after the arrivals."""
    lists = lists_of(agents * machines, load, test)
    out: dict[str, Any] = {}
    for rule in RULES:
        team: dict[str, Any] = {"agents": agents, "machines": machines}
        whole: dict[str, Any] = {"agents": 1, "machines": agents * machines, "turns": "until-void"}
        out[rule] = _kept(play(lists, rule, **team), FIGURES)
        out[rule]["cut"] = _kept(play(lists, rule, **team, limit=STEPS), CUT)
        out[rule]["void"] = _kept(play(lists, rule, **team, turns="until-void"), FIGURES)
        out[rule]["central"] = _kept(play(lists, rule, **whole), FIGURES)
    return out


def seen_by(made: Any) -> dict[str, Any]:
    """The options of the game that a team is judged in: its shape, and what it was trained to see."""
    trained = {"skip": made.options.get("skip", "none"), "arrivals_end": made.options.get("arrivals_end", 0)}
    return {name: made.options[name] for name in ("agents", "machines", "information", "turns")} | trained


def by_greedy(made: Any, lists: JobLists, **otherwise: Any) -> dict[str, list[Any]]:
    """A team on lists by its greedy actions: what its figures are. otherwise: options of the game that it was not
    trained with."""
    return _kept(play(lists, made.members(sampled=False), rescue=RESCUE, **{**seen_by(made), **otherwise}), FIGURES)


def _judge_of(machines: int, loads: list[int], validation: int, sampled: bool) -> Callable[[Any], float]:
    """Asks how a team does against SJF on lists of their own, of loads 50 and 90 %."""
    from escala.agents import against_sjf

    return against_sjf(
        *[lists_of(machines, load, validation, LOOKED_AT) for load in JUDGED if load in loads], sampled=sampled
    )


def team(
    *,
    agents: int,
    machines: int,
    mode: str,
    information: str,
    seed: int,
    loads: list[int],
    steps: int,
    test: int,
    sampled: int,
    validation: int,
    keep: str,
    preset: str = "tuned",
    turns: str = "single",
) -> dict[str, Any]:
    """Train one team on all loads, or go on with it, and judge it on each: greedy actions on `test` and `validation`
    lists, sampled ones on the first `sampled` and on `validation` lists. While it learns it is judged on further lists
    (`LOOKS` times, by its greedy actions) and the best weights are kept; without a teacher (presets "from-nothing" and
    R4's own, "printed") sampled ones are judged, more often."""
    from escala.agents import load_team, train_team
    from escala.agents.checkpoint import ended

    shape: dict[str, Any] = {"agents": agents, "machines": machines, "turns": turns}
    shape |= {"information": information, "rewards": information}
    if ended(keep):
        made = load_team(keep)
    else:
        given: dict[str, Any] = {"load": [load / 100 for load in loads], "lists_seed": TRAINING}
        given |= {"steps": steps, "mode": mode, "seed": seed}
        if preset in ("from-nothing", "printed"):
            given |= {"judge": _judge_of(agents * machines, loads, validation, True)}
        elif steps:
            given |= {"judge": _judge_of(agents * machines, loads, validation, False), "looks": LOOKS}
        made = train_team(**given, **shape, preset=preset, out=keep, resume=(Path(keep) / "checkpoint.npz").is_file())
    told = {"curve": "curve", "steps": "steps_done", "elapsed_s": "elapsed_s", "processor_s": "processor_s"}
    out: dict[str, Any] = {name: made.manifest[key] for name, key in told.items()}
    out["judged"] = made.manifest.get("judged", [])
    known = [(value, step) for step, value in out["judged"] if value is not None]
    out["kept"] = min(known)[1] if known else made.manifest["steps_done"]
    seen = seen_by(made)
    for load in loads:
        lists = lists_of(agents * machines, load, test)
        tried = lists_of(agents * machines, load, validation, VALIDATION)
        out[str(load)] = {
            "likeliest": by_greedy(made, lists),
            "sampled": _kept(play(lists.part(range(sampled)), made.members(seed=seed), **seen), FIGURES),
            "cut": _kept(play(lists, made.members(sampled=False), limit=STEPS, **seen), CUT),
            "validation": _kept(play(tried, made.members(sampled=False), rescue=RESCUE, **seen), ("slowdown",)),
            "validation_sampled": _kept(play(tried, made.members(seed=seed), **seen), ("slowdown",)),
        }
    return out
