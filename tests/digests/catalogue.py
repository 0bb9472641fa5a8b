"""Every digest by name. A name says what moved when a test fails: the environment and its options, the scheduler, the
agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from escala.envs import ENVIRONMENTS
from tests.digests import learning, readers, rolls, schedules
from tests.digests.doors import SCHEDULERS
from tests.digests.variants import TEAM, variants

STEPS = 1000
LONG_STEPS = 2000
SLOT_RULES = (
    "sjf",
    "sjf-strict",
    "packer",
    "tetris",
    "tetris-normalised",
    "fcfs",
    "easy",
    "hold-back",
    "hold-pile",
    "random",
)
TEAM_RULES = ("sjf", "packer", "tetris", "tetris-normalised", "dense", "random")

Table = dict[str, Callable[[], Any]]


def catalogue() -> Table:
    """What every run of the tests compares."""
    table: Table = {}
    for one in variants():
        table[f"roll: {one.name}"] = lambda one=one: rolls.rolled(one, STEPS)
        if not (one.env == TEAM and one.options.get("observation") == "image"):  # teams see numbers only
            for sampled in (True, False):
                how = "sampled" if sampled else "greedy"
                table[f"act, {how}: {one.name}"] = lambda one=one, sampled=sampled: readers.acted(one, sampled)
    for env_id in ENVIRONMENTS:
        table[f"face: {env_id}"] = lambda env_id=env_id: rolls.single(env_id)
    table |= {"face: several agents in turn": rolls.in_turn, "face: several agents at once": rolls.at_once}
    for name in (*SCHEDULERS, schedules.ROLLOUT):
        table[f"schedule: {name}"] = lambda name=name: schedules.scheduled(name)
    for role in ("scheduler", "shutdown"):
        table[f"view: {role}"] = lambda role=role: schedules.seen(role)
    return table | rules() | learnt()


def rules() -> Table:
    """Rules of the slotted world and of teams: played on lists, and as schedulers."""
    table: Table = {"rule: hold-back, tuned": learning.tuned}
    for rule in SLOT_RULES:
        table[f"rule, played: {rule}"] = lambda rule=rule: learning.slots_played(rule)
        table[f"rule, simulated: {rule}"] = lambda rule=rule: readers.slot_rule(rule)
    for rule in TEAM_RULES:
        table[f"team rule, played: {rule}"] = lambda rule=rule: learning.team_games(rule)
        table[f"team rule, simulated: {rule}"] = lambda rule=rule: readers.team_rule(rule)
    return table


def learnt() -> Table:
    """What needs torch, and is compared nearly."""
    table: Table = {f"training: {name}": run for name, run in learning.TRAININGS.items()}
    for env_id, name in learning.PRESETS:
        table[f"preset: {env_id} {name}"] = lambda env_id=env_id, name=name: learning.preset(env_id, name)
    for name in learning.kept():
        table[f"kept: {name}"] = lambda name=name: learning.judged(name)
    return table


def long() -> Table:
    """What `make fuzz` compares."""
    table: Table = {f"roll: {one.name}": lambda one=one: rolls.rolled(one, LONG_STEPS) for one in variants()}
    for name in SCHEDULERS:
        table[f"schedule: {name}"] = lambda name=name: schedules.scheduled(name, schedules.WORLDS)
    return table | {f"training: {name}": run for name, run in learning.LONG_TRAININGS.items()}
