"""Learnt policies inside `escala.simulate`: agents whose choice hangs on every bit that they are shown, so that nothing
shown can change without the schedule."""

from __future__ import annotations

import zlib
from typing import Any

import gymnasium
import numpy as np
import torch

import escala
from escala.agents import Team
from tests.digests import logs
from tests.digests.digest import Digest
from tests.digests.doors import SlotPolicy, TeamPolicy
from tests.digests.variants import OFF_RESERVATION, SLOTS, TEAM, Variant, arguments, slot_log, slot_machine


class Reading:
    """Chooses among what a mask allows by the bits of what it sees (and the number of the question, so that it does not
    wait for ever in one state), and keeps a digest of both."""

    def __init__(self) -> None:
        self.digest = Digest()
        self.asked = 0

    def choose(self, seen: Any, mask: Any) -> int:
        """One choice."""
        self.digest.take(seen, mask)
        self.asked += 1
        allowed = np.flatnonzero(mask)
        return int(allowed[(zlib.crc32(np.ascontiguousarray(seen).tobytes()) + self.asked) % len(allowed)])


class Reader(escala.Agent):
    """An agent without a network."""

    def __init__(self, variant: Variant, reading: Reading) -> None:
        env = gymnasium.make(variant.env, **arguments(variant))
        about = {"algorithm": "reading", "env_id": variant.env, "env_options": dict(variant.options)}
        shape = {"observation_shape": list(env.observation_space.shape), "actions": int(env.action_space.n)}
        super().__init__(torch.nn.Identity(), about | shape)
        self.reading = reading

    def act(self, observation: Any, mask: Any, random: Any) -> Any:
        if random is not None:
            self.reading.digest.take(random.random())
        return np.array([self.reading.choose(*one) for one in zip(observation, mask, strict=True)])


class ReadingTeam(Team):
    """A team without networks."""

    def __init__(self, options: dict[str, Any], reading: Reading) -> None:
        super().__init__([], {"mode": "reading", "options": options, "agents": options.get("agents", 3)})
        self.reading = reading

    def members(self, sampled: bool = True, seed: int = 0) -> list[Any]:
        def member(seen: Any, mask: Any) -> Any:
            return np.array([self.reading.choose(*one) for one in zip(seen, mask, strict=True)])

        return [member] * int(self.manifest["agents"])


def acted(variant: Variant, sampled: bool) -> dict[str, Any]:
    """What the agent of a variant is shown inside a simulation, and the schedule that it makes."""
    reading = Reading()
    if variant.env == TEAM:
        policy = ReadingTeam(variant.options, reading).policy(sampled)
        log, machine = team_log(variant), team_machine(variant)
        result = escala.simulate(log, machine, scheduler=policy)
    else:
        policy = Reader(variant, reading).policy(sampled)
        result = simulated(variant, policy)
    schedule = Digest()
    schedule.take_result(result)
    return {"asked": reading.asked, "shown": reading.digest.text(), "schedule": schedule.text()}


def simulated(variant: Variant, policy: Any) -> Any:
    """Its run."""
    if variant.env == SLOTS:
        return escala.simulate(slot_log(variant), slot_machine(variant), scheduler=policy)
    pair = (
        {"scheduler": "saf", "shutdown": policy}
        if variant.env == OFF_RESERVATION
        else {"scheduler": policy, "shutdown": "timeout:300"}
    )
    return escala.simulate(logs.one_day(), logs.PLATFORM, **pair, start_off=True, until_s=float(logs.DAY_S))


def team_log(variant: Variant) -> Any:
    """Jobs for a team, some of which end early."""
    return logs.shared(variant.options.get("resources", 2), early=True)


def team_machine(variant: Variant) -> Any:
    """Machines of ten units of each resource."""
    nodes = variant.options.get("agents", 3) * variant.options.get("machines", 1)
    further = dict.fromkeys(logs.kinds(variant.options.get("resources", 2)), 10)
    return escala.Platform.uniform(nodes, 10, power=None, resources=further)


def slot_rule(rule: str) -> str:
    """A rule of the slotted world as a scheduler, on a pool and on a node."""
    digest = Digest()
    for variant in (
        Variant(SLOTS, {"slots": 5}),
        Variant(SLOTS, {"placement": "reserve"}),
        Variant(SLOTS, {"slots": 4}, "memory"),
    ):
        digest.take_result(simulated(variant, SlotPolicy(rule, hold=(3, 4, 5), seed=2, **variant.options)))
    return digest.text()


def team_rule(rule: str) -> str:
    """A rule of teams as a scheduler."""
    digest = Digest()
    for options in ({}, {"agents": 2, "machines": 2, "resources": 3, "turns": "until-void"}):
        variant = Variant(TEAM, options)
        digest.take_result(
            escala.simulate(team_log(variant), team_machine(variant), scheduler=TeamPolicy(rule, **options))
        )
    return digest.text()
