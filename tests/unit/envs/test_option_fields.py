"""Options of environments: each is checked and told from its one line."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from escala.envs.core.options import EnvOptions, choice, documented, flag, nonnegative, option, seconds, weight, whole
from escala.envs.rjms.off_reservation import OffReservationOptions
from escala.envs.rjms.scheduling import SchedulingOptions
from escala.envs.slots.options import SlotOptions
from escala.envs.slots.team.options import MultiOptions
from escala.errors import EscalaError

CLASSES: tuple[type[EnvOptions], ...] = (SlotOptions, OffReservationOptions, SchedulingOptions, MultiOptions)
CHECKED = [
    pytest.param(options, entry.name, id=f"{options.__name__}-{entry.name}")
    for options in CLASSES
    for entry in fields(options)
    if entry.metadata["check"] is not None
]


@dataclass(frozen=True)
class _Made(EnvOptions):
    env = "made up"
    word: str = choice("one", "two", about="a word")
    maybe: str | None = choice(None, "three", about="a word or none")
    many: int = whole(3, 1, 9, about="a number of things")
    wait_s: float = seconds(1.0, about="a time")
    price: float = nonnegative(0.0, about="a price")
    pull: float = weight(-1.0, about="a weight")
    on: bool = flag(True, about="a switch")
    off: bool | None = flag(None, about="a switch or none")
    free: Any = option((1, 2), "anything", "what is checked elsewhere")


def test_plain_values_are_kept_and_defaults_stand() -> None:
    made = _Made.of({"word": "two", "many": np.int64(9), "on": np.bool_(False), "off": True, "free": "x", "pull": 2})
    assert (made.word, made.maybe, made.many, made.on, made.off, made.free, made.pull) == (
        "two",
        None,
        9,
        False,
        True,
        "x",
        2,
    )
    assert type(made.many) is int and type(made.on) is bool
    assert _Made() == _Made.of({})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"word": "three"}, "option word='three' is not known: use one of one, two"),
        ({"word": None}, "option word=None is not known: use one of one, two"),
        ({"word": np.zeros(2)}, "is not known: use one of one, two"),
        ({"maybe": "one"}, "option maybe='one' is not known: use one of None, three"),
        ({"many": 0}, "option many=0: give a whole number >= 1"),
        ({"many": 10}, "option many=10: at most 9"),
        ({"many": 2.0}, "option many=2.0: give a whole number >= 1"),
        ({"many": True}, "option many=True: give a whole number >= 1"),
        ({"wait_s": 0.0}, "option wait_s=0.0: give seconds, at least 1e-6"),
        ({"wait_s": "60"}, "option wait_s='60': give seconds, at least 1e-6"),
        ({"price": -0.1}, "option price=-0.1: give a number of at least 0"),
        ({"price": 2e9}, "option price=2000000000.0: give a number of at least 0, at most 1e\\+09"),
        ({"pull": float("nan")}, "option pull=nan: give a finite number"),
        ({"pull": float("-inf")}, "option pull=-inf: give a finite number"),
        ({"on": None}, "option on=None: give True or False"),
        ({"off": 1}, "option off=1: give True or False"),
        ({"words": "one"}, "unknown option 'words' of made up: use one of word, maybe, many"),
    ],
)
def test_wrong_values_are_refused_in_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(EscalaError, match=said) as refused:
        _Made.of(given)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("options", "name"), CHECKED)
def test_every_option_of_an_environment_refuses_what_it_cannot_be(options: type[EnvOptions], name: str) -> None:
    options.of({})
    for nonsense in (object(), [1], "no such word", float("nan")):
        with pytest.raises(EscalaError, match=f"option {name}="):
            options.of({name: nonsense})


def test_options_that_are_not_told_cannot_be_made() -> None:
    @dataclass(frozen=True)
    class Bare(EnvOptions):
        untold: int = 3

    with pytest.raises(KeyError):
        Bare()


def test_documentation_is_written_where_it_is_wanted() -> None:
    @documented(_Made)
    class World:
        """A world.

        ## Arguments
        {options}

        ## Version history
        v0: first.
        """

    lines = (World.__doc__ or "").splitlines()
    assert lines[:4] == ["A world.", "", "## Arguments", "- `word=one`: a word; one or two"] and lines[-2:] == [
        "## Version history",
        "v0: first.",
    ]
