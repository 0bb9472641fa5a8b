"""Generated workloads: each generator by name, seeded; the same seed gives the same jobs."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from escala.errors import EscalaError
from escala.workload import generate_slots as slots
from escala.workload.generate_grid5000 import grid5000
from escala.workload.generate_lublin import lublin
from escala.workload.settings import checked
from escala.workload.table import Workload

__all__ = ["GENERATORS", "bernoulli", "by_name", "cpu_memory", "grid5000", "lublin", "multi_resource"]

Seed = int | np.random.Generator


@checked
def bernoulli(
    load: float = 1.0, steps: int = 100, demand: str = "author", rate: float | None = None, seed: Seed = 0
) -> Workload:
    """One pool of 10 cores, at most one job a step (see `generate_slots`). `demand`: author, clip10, six-to-ten. `rate`
    replaces `load`."""
    return slots.bernoulli_model(load, steps, demand, rate).workload(seed)


@checked
def cpu_memory(rate: float = 0.9, steps: int = 50, seed: Seed = 0) -> Workload:
    """Cores and memory, 10 of each on one node; `rate` jobs a step (see `generate_slots`)."""
    return slots.cpu_memory_model(rate, steps).workload(seed)


@checked
def multi_resource(
    load: float = 0.5,
    formula: str = "plain",
    machines: int = 3,
    resources: int = 2,
    capacity: int = 10,
    horizon: int = 20,
    p_long: float = 0.2,
    steps: int = 200,
    *,
    seed: Seed = 0,
) -> Workload:
    """Several machines with several resources; `formula`: plain or printed (see `generate_slots`)."""
    return slots.multi_resource_model(load, formula, machines, resources, capacity, horizon, p_long, steps).workload(
        seed
    )


GENERATORS: dict[str, Callable[..., Workload]] = {
    "bernoulli": bernoulli,
    "cpu-memory": cpu_memory,
    "multi-resource": multi_resource,
    "lublin": lublin,
    "grid5000": grid5000,
}
"""Name -> generator; every one takes `seed`, and all arguments have defaults."""


def by_name(name: str, **options: Any) -> Workload:
    """The workload of the named generator. Raises EscalaError on an unknown name or option."""
    generator = GENERATORS.get(name)
    if generator is None:
        raise EscalaError(f"unknown generator {name!r}{_hint(name, list(GENERATORS))}; known: {', '.join(GENERATORS)}")
    known = list(inspect.signature(generator).parameters)
    for option in options:
        if option not in known:
            raise EscalaError(
                f"generator {name!r} has no option {option!r}{_hint(option, known)}; known: {', '.join(known)}"
            )
    return generator(**options)


def _hint(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
