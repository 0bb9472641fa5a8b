"""Small trainings, what agents that are kept in docs/studies do, and plays of rules."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import escala
from escala.agents import PRESETS, is_team, load_team, search, search_scheduler, train_team
from tests.digests import logs
from tests.digests.digest import Digest, near
from tests.digests.doors import play_slots, play_team, slot_options, team_options, tune_hold_back
from tests.digests.variants import OFF_RESERVATION, SCHEDULING, SLOTS, Variant, arguments

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
DRAWN = ("model", "load", "rate", "window", "demand", "lists", "lists_seed", "limit")
"""Options of the slotted world that job lists are drawn with, or that end an episode early."""
QUICK = {"n_steps": 16, "batch_size": 32, "n_epochs": 2}


def weights(*networks: Any) -> list[Any]:
    """Their arrays, by name."""
    return [value.numpy() for network in networks for _, value in sorted(network.state_dict().items())]


def preset(env_id: str, name: str) -> dict[str, Any]:
    """What a preset says, and the weights after a moment of training with it."""
    digest = Digest()
    digest.take(json.dumps(dataclasses.asdict(PRESETS[env_id, name]), sort_keys=True, default=list))
    taken = {k: v for k, v in QUICK.items() if k in PRESETS[env_id, name].learn}
    agent = escala.train(
        env_id, **arguments(Variant(env_id, {})), preset=name, num_envs=2, steps=32, seed=3, learn=taken
    )
    return {"says": digest.text(), **near(weights(agent.network))}


def trained(env_id: str, **options: Any) -> dict[str, Any]:
    """Weights and learning curve of a small training."""
    how: dict[str, Any] = {
        "num_envs": 8,
        "learn": {"n_steps": 32, "batch_size": 128},
        "steps": 1024,
        "seed": 1,
        "curve": True,
    }
    agent = escala.train(env_id, **arguments(Variant(env_id, {})) | how | options)
    curve = [] if agent.curve is None else [agent.curve.drop_nulls()["value"].to_numpy()]
    return near([*weights(agent.network), *curve])


def imitated(**options: Any) -> dict[str, Any]:
    """Weights after imitating on two short lists."""
    return trained(SLOTS, lists=2, window=12, steps=0, curve=False, **options)


def validated() -> dict[str, Any]:
    """The weights that did best on days that were not learnt from."""
    learnt, judged = logs.days().split_days()[:2], logs.days().split_days()[2:3]
    how: dict[str, Any] = {"num_envs": 8, "learn": {"n_steps": 32, "batch_size": 128}, "steps": 512, "seed": 2}
    agent = escala.train(OFF_RESERVATION, learnt, logs.PLATFORM, validation=judged, patience=2, **how)
    return near([*weights(agent.network), np.array([point[1] for point in agent.manifest["validation"]], float)])


def team(**options: Any) -> dict[str, Any]:
    """Weights of a small training of a team."""
    how: dict[str, Any] = {
        "num_envs": 4,
        "learn": {"n_steps": 32, "batch_size": 64, "n_epochs": 2},
        "steps": 512,
        "seed": 1,
    }
    return near(weights(*train_team(**how | {"lists": 8, "steps": 512, "teacher": None} | options).networks))


def searched(scheduler: bool) -> dict[str, Any]:
    """Weights of a short search by whole days."""
    days = logs.days().split_days()[:2]
    how: dict[str, Any] = {"generations": 2, "population": 6, "seed": 1}
    agent = (
        search_scheduler(days, logs.PLATFORM, price=0.5, limit=0.5, **how)
        if scheduler
        else search(days, logs.PLATFORM, **how)
    )
    return near(weights(agent.network))


def kept() -> list[str]:
    """The agents that studies keep."""
    return sorted(str(one.parent.relative_to(STUDIES)) for one in STUDIES.glob("*/agents/*/manifest.json"))


def judged(name: str) -> dict[str, Any]:
    """Figures of a kept agent on small inputs. (`tests/docs/test_kept_agents.py` has its figures on those of its
    study.)"""
    folder = STUDIES / name
    if is_team(folder):
        return near(figures(team_played(load_team(folder))))
    agent = escala.load_agent(folder)
    if agent.env_id != SLOTS:
        beside = ["timeout:0"] if agent.env_id == OFF_RESERVATION else ["saf"]
        return near(figures(escala.evaluate(agent, logs.days().split_days()[:1], logs.PLATFORM, beside, runs=1)))
    options = agent.env_options
    drawn = {key: value for key, value in options.items() if key in ("model", "arrivals_end")} | {"lists": 6}
    lists = slot_options(
        {"slots": options.get("slots", 10), "horizon": options.get("horizon", 20), **drawn}
    ).job_lists()
    shape = {key: value for key, value in options.items() if key not in DRAWN}
    return near(figures(play_slots(lists, lambda seen, mask: agent.act(seen, mask, None), rescue=50, **shape)))


def team_played(one: Any) -> pl.DataFrame:
    """A kept team on six lists."""
    options = one.options | {"lists": 6, "steps": 60} | ({"arrivals_end": 60} if "arrivals_end" in one.options else {})
    lists = team_options(options).job_lists()
    return play_team(
        lists, one.members(sampled=False), rescue=1, **{key: options[key] for key in set(options) - {"lists"}}
    )


def figures(table: pl.DataFrame) -> list[Any]:
    """The numbers of a table, each column by its own size."""
    return [scaled(column.cast(pl.Float64).fill_null(-1.0).to_numpy()) for column in table if column.dtype.is_numeric()]


def scaled(values: Any) -> Any:
    """As shares of the largest, which stands before them."""
    largest = np.abs(values).max(initial=1e-12)
    return np.concatenate([[np.log10(largest)], values / largest])


def slots_played(rule: str) -> str:
    """A rule on drawn lists of both models."""
    digest = Digest()
    for options in (
        {"slots": 6},
        {"model": "cpu-memory", "slots": 5, "skip": "forced"},
        {"placement": "reserve", "load": 1.5},
    ):
        lists = slot_options({"lists": 12, **options}).job_lists()
        shape = {key: value for key, value in options.items() if key not in ("model", "load")}
        digest.take_table(play_slots(lists, rule, hold=(3, 5, 4), seed=2, **shape))
    return digest.text()


def tuned() -> list[int]:
    """The setting of hold-back that does best on a few lists."""
    return list(tune_hold_back(slot_options({"lists": 12, "load": 1.5}).job_lists(), quiets=(1, 3, 6)))


def team_games(rule: str) -> str:
    """A rule of teams on drawn lists."""
    digest = Digest()
    for options in ({}, {"agents": 2, "machines": 2, "resources": 3, "turns": "until-void", "load": 0.9}):
        lists = team_options({"lists": 8, "steps": 60, **options}).job_lists()
        digest.take_table(play_team(lists, rule, **options))
    return digest.text()


TRAININGS: dict[str, Any] = {
    "slots": lambda: trained(SLOTS),
    "slots, reserve, image": lambda: trained(SLOTS, preset="printed", steps=512),
    "off-reservation": lambda: trained(OFF_RESERVATION),
    "off-reservation, ordered": lambda: trained(OFF_RESERVATION, preset="ordered", steps=512),
    "off-reservation, validated": validated,
    "scheduling": lambda: trained(SCHEDULING),
    "slots, imitates look-ahead": lambda: imitated(teacher={"rollout": [2], "updates": [30]}),
    "search": lambda: searched(scheduler=False),
    "search, scheduler": lambda: searched(scheduler=True),
    "team, turns": lambda: team(mode="turns"),
    "team, simultaneous": lambda: team(mode="simultaneous", preset="printed"),
    "team, shared": lambda: team(mode="shared", preset="from-nothing", agents=2, machines=2),
}

LONG_TRAININGS: dict[str, Any] = {"slots, imitates hold-back": lambda: imitated(teacher=[(3, 6, 0)])}
