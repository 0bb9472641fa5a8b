"""Options of `rollout` behind its name: the same as given to the class, wherever a scheduler is named; nonsense is one
line."""

from __future__ import annotations

from typing import Any

import pytest

import escala
from escala.errors import EscalaError
from escala.policies import Rollout
from escala.policies.rollout import BASES
from escala.policies.rollout_names import OPTIONS, rollout_of
from escala.workload.generate_slots import bernoulli_model

PLATFORM = "10x1:none"
LOG = bernoulli_model(load=1.9, steps=50, demand="clip10").workload(3)

NAMES: dict[str, dict[str, Any]] = {
    "rollout": {},
    "rollout:5": {"futures": 5},
    "rollout:objective=wait": {"objective": "wait"},
    "rollout:128:objective=slowdown:base=hold-back:0+sjf-fit:horizon=60": {
        "futures": 128,
        "objective": "slowdown",
        "base": ("hold-back:0", "sjf-fit"),
        "horizon": 60,
    },
    "rollout:8:base=easy+hold-back:1.5": {"futures": 8, "base": ("easy", "hold-back:1.5")},
    "rollout:base=fcfs:depth=7:choices=3:optimism=0.5:every=60": {
        "base": ("fcfs",),
        "depth": 7,
        "choices": 3,
        "optimism": 0.5,
        "every_s": 60.0,
    },
}
DEFAULTS = {
    "futures": 32,
    "objective": "bounded-slowdown",
    "base": BASES,
    "horizon": 40,
    "depth": 100,
    "choices": 10,
    "optimism": 0.0,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_what_the_class_is_given(name: str) -> None:
    policy = rollout_of(name, 7)
    assert policy is not None and policy.name == name and policy.seed == 7
    for option, value in ({**DEFAULTS, "every_s": None} | NAMES[name]).items():
        assert getattr(policy, "bases" if option == "base" else option) == value, option


def test_every_option_stands_in_some_name() -> None:
    assert all(any(f"{key}=" in name for name in NAMES) for key in OPTIONS)
    assert rollout_of("sjf-fit", 0) is None


def test_a_run_by_name_is_the_run_of_the_object() -> None:
    name = "rollout:8:objective=slowdown:base=hold-back:0+sjf-fit:horizon=20"
    by_name = escala.simulate(LOG, PLATFORM, name)
    by_hand = escala.simulate(LOG, PLATFORM, Rollout(8, ("hold-back:0", "sjf-fit"), objective="slowdown", horizon=20))
    assert by_name.jobs.equals(by_hand.jobs)
    assert not by_name.jobs.equals(escala.simulate(LOG, PLATFORM, "rollout:8:objective=slowdown:base=first-fit").jobs)
    assert by_name.manifest["scheduler"] == name
    assert escala.rerun(by_name, LOG).jobs.equals(by_name.jobs)
    assert f"{name} + never" in escala.compare(LOG, PLATFORM, ["easy", name]).table()["policy"].to_list()


def test_a_bound_gives_its_objective_to_names_that_say_none() -> None:
    names = ["rollout:8", "rollout:8:base=sjf-fit", "rollout:8:objective=wait"]
    told = escala.bound(LOG, PLATFORM, "slowdown", policies=names, limit_s=0.05).policies
    given: list[dict[str, Any]] = [
        {"objective": "slowdown"},
        {"objective": "slowdown", "base": "sjf-fit"},
        {"objective": "wait"},
    ]
    assert list(told) == names
    for name, options in zip(names, given, strict=True):
        expected = escala.simulate(LOG, PLATFORM, Rollout(8, **options)).summary()["mean_slowdown"]
        assert told[name] == pytest.approx(expected, rel=1e-12)
    assert len(set(told.values())) == 3  # so the options matter on this list


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("rollout:", "'' is no number of futures: use rollout or rollout:128"),
        ("rollout:0", "'0' is no number of futures"),
        ("rollout:1000000", "'1000000' is no number of futures"),
        ("rollout:many:objective=wait", "'many' is no number of futures"),
        ("rollout:8:", "'' is no option: write KEY=VALUE, as in rollout:128:objective=wait"),
        ("rollout:8:wait", "'wait' is no option: write KEY=VALUE"),
        ("rollout:8:objectiv=wait", "option 'objectiv' is unknown: did you mean objective? known are objective, base"),
        ("rollout:8:=wait", "option '' is unknown: known are objective, base"),
        ("rollout:8:arrivals=x", "option 'arrivals' is unknown: known are objective, base"),
        ("rollout:horizon=4:horizon=5", "horizon is given twice: give it once"),
        ("rollout:objective=makespan", "objective is 'makespan': use slowdown, bounded-slowdown, wait"),
        ("rollout:objective=wait:sure", "objective is 'wait:sure': use slowdown, bounded-slowdown, wait"),
        ("rollout:base=", "base is '': join names of bases by +, as in hold-back:0+sjf-fit"),
        ("rollout:base=sjf-fit++easy", "base is 'sjf-fit++easy': join names of bases by +"),
        ("rollout:base=easy+easy", "base is 'easy+easy': name each base once"),
        ("rollout:base=packer", "base is 'packer': base 'packer' is none of its bases: hold-back, and strict"),
        (
            "rollout:base=hold-back:x+easy",
            "base is 'hold-back:x+easy': base 'hold-back:x': 'x' is no number of mean walltimes: use",
        ),
        ("rollout:horizon=1.5", "horizon is '1.5': give a whole number from 1 to 100000"),
        ("rollout:depth=0", "depth is '0': give a whole number from 1 to 100000"),
        ("rollout:choices=-1", "choices is '-1': give a whole number from 1 to 100000"),
        ("rollout:optimism=2", "optimism is '2': give a share from 0 to 1"),
        ("rollout:optimism=nan", "optimism is 'nan': give a share from 0 to 1"),
        ("rollout:every=0", "every is '0': give seconds above 0"),
        ("rollout:every=inf", "every is 'inf': give seconds above 0"),
    ],
)
def test_bad_options_are_one_clear_line(name: str, why: str) -> None:
    with pytest.raises(EscalaError) as error:
        escala.simulate(LOG, PLATFORM, name)
    told = str(error.value)
    assert told.startswith(f"scheduler {name!r}: {why}") and "\n" not in told
