"""What Escala does is what it did: see `tests.digests`."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import pytest

import escala
import escala.envs
from tests.digests import catalogue as table
from tests.digests.digest import same
from tests.digests.doors import SHUTDOWN_FORMS, SlotPolicy, TeamPolicy
from tests.digests.schedules import SHUTDOWNS
from tests.digests.store import read
from tests.digests.variants import TEAM, arguments, variants

NOW, LONG = table.catalogue(), table.long()
KEPT, KEPT_LONG = read("short"), read("long")
LEARNT = ("training", "preset", "kept")


def marked(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.learn if name.startswith(LEARNT) else ())


@pytest.mark.parametrize("name", [marked(name) for name in NOW])
def test_it_is_what_it_was(name: str) -> None:
    now = NOW[name]()
    assert same(KEPT.get(name), now), f"{name}: kept {KEPT.get(name)}, now {now}"


@pytest.mark.long
@pytest.mark.parametrize("name", list(LONG))
def test_it_is_what_it_was_in_the_long_run(name: str) -> None:
    assert same(KEPT_LONG.get(name), LONG[name]())


def test_every_digest_that_is_kept_is_compared() -> None:
    assert sorted(KEPT) == sorted(NOW)
    assert sorted(KEPT_LONG) == sorted(LONG)


def said(call: Any) -> list[str]:
    """What an error names as possible."""
    with pytest.raises(escala.EscalaError) as error:
        call()
    found = re.search(r"use one of (.*?)(?:, or a .*)?$", str(error.value))
    return found[1].split(", ") if found else []


def made(env: str, **options: Any) -> Any:
    return escala.envs.multi.slots(**options) if env == TEAM else gymnasium.make(env, **options)


@pytest.mark.parametrize("env", [*escala.envs.ENVIRONMENTS, TEAM])
def test_every_option_is_used_and_every_choice(env: str) -> None:
    """The environment tells its options and choices itself; an option that is new needs a variant."""
    own = [arguments(one) for one in variants() if one.env == env]
    used = {name for one in own for name in one}
    options = said(lambda: made(env, nothing=1))
    assert options and not set(options) - used
    for name in options:
        chosen = {one[name] for one in own if isinstance(one.get(name), str)}
        if chosen:
            choices = set(said(lambda name=name: made(env, **{name: "?"}))) - {"None"}
            assert len(choices - chosen) <= 1, f"option {name}: of {choices} only the default may be left out"


def test_an_option_that_is_changed_moves_the_digest() -> None:
    """Else its digest would not notice that the option is lost. Minutes for units of time give the same play of
    units."""
    own = [name for name in KEPT if name.startswith("roll") and "(minutes)" not in name]
    twins = [[name for name in own if KEPT[name] == value] for value in {KEPT[name] for name in own}]
    assert [pair for pair in twins if len(pair) > 1] == []


def test_every_rule_and_every_form_of_shutdown_is_used() -> None:
    assert sorted(said(lambda: SlotPolicy("?"))) == sorted(table.SLOT_RULES)
    assert sorted(said(lambda: TeamPolicy("?", agents=2))) == sorted(table.TEAM_RULES)
    assert {form.partition(":")[0] for form in SHUTDOWN_FORMS} == {name.partition(":")[0] for name in SHUTDOWNS}
    assert len(SHUTDOWNS) >= len(SHUTDOWN_FORMS)
