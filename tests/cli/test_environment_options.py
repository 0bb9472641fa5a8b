"""The options of environments are told by the help and the documentation, from the same lines."""

from __future__ import annotations

import pytest

from escala.cli.episode import MULTI, NAMES, OFF_RESERVATION, SCHEDULING, SLOTS, option_lines
from escala.envs import multi
from escala.envs.rjms.off_reservation import OffReservation
from escala.envs.rjms.scheduling import Scheduling
from escala.envs.slots import Slots
from tests.cli.conftest import Escala

ENVIRONMENTS = {SLOTS: Slots, OFF_RESERVATION: OffReservation, SCHEDULING: Scheduling}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_stands_in_the_help(name: str, escala_: Escala) -> None:
    lines = option_lines(name)
    assert len(lines) > 10 and all(about and allowed for _, about, allowed in lines)
    told = "".join(escala_("render", "--help").out.split())
    assert not [
        option for option, about, allowed in lines if "".join(f"{option}{about}[{allowed}]".split()) not in told
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_stands_in_the_documentation(name: str) -> None:
    if name == MULTI:  # a function that loads its environment when it is called
        assert not [
            option for option, *_ in option_lines(name) if option.split("=")[0] not in (multi.slots.__doc__ or "")
        ]
        return
    told = (ENVIRONMENTS[name].__doc__ or "").splitlines()
    assert not [
        option for option, about, allowed in option_lines(name) if f"- `{option}`: {about}; {allowed}" not in told
    ]
