"""Settings of generators and numbers of environments that are no number, or that no memory holds: one line, before
anything is made."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import pytest

from escala.errors import EscalaError
from escala.workload import generate

ABSURD = [10**20, -(10**20), math.inf, math.nan, "ten", True, 1e300]


@pytest.mark.parametrize("name", generate.GENERATORS)
@pytest.mark.parametrize("value", ABSURD, ids=str)
def test_an_absurd_setting_is_one_line(name: str, value: Any) -> None:
    numbers = {
        "bernoulli": ("load", "steps", "rate"),
        "cpu-memory": ("rate", "steps"),
        "lublin": ("jobs", "cores", "load"),
    }
    numbers |= {"multi-resource": ("load", "machines", "capacity", "steps", "p_long"), "grid5000": ("days",)}
    for setting in numbers[name]:
        with pytest.raises(EscalaError, match=rf"setting {setting}=.*(number is needed|at most 1,000,000,000)"):
            generate.by_name(name, **{setting: value})


def test_more_jobs_than_the_memory_holds_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(generate.slots, "bernoulli_model", full)
    with pytest.raises(EscalaError, match="steps=7: needs more memory than there is"):
        generate.bernoulli(steps=7)


def test_days_may_be_a_part_of_one() -> None:
    assert generate.by_name("grid5000", days=0.5).span_s < 43_200


@pytest.mark.parametrize("env", ["escala/Scheduling-v0", "escala/OffReservation-v0", "escala/Slots-v0"])
@pytest.mark.parametrize("count", [10**9, 10**20, 0, -1, 2.5, "x", True], ids=str)
def test_an_absurd_number_of_environments_is_one_line(env: str, count: Any) -> None:
    import escala.envs  # noqa: F401  the ids

    with pytest.raises(EscalaError, match="option num_envs="):
        gymnasium.make_vec(env, num_envs=count)
