"""Trainings of a second on a few generated days."""

from __future__ import annotations

import functools
from typing import Any

import torch

import escala
from escala.agents import Agent

SMALL: dict[str, Any] = {"num_envs": 8, "learn": {"n_steps": 32, "batch_size": 128}, "steps": 2048, "seed": 1}


@functools.cache
def days() -> list[escala.Workload]:
    return escala.workload.generate.grid5000(cluster="orion", days=6, seed=3).split_days()


def equal(a: Agent, b: Agent) -> bool:
    """Have both the same weights?"""
    one, other = a.network.state_dict(), b.network.state_dict()
    return all(torch.equal(one[name], other[name]) for name in one)
