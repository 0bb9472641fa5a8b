"""The two timelines with which Casagrande (dissertation 2020, section 4.2) explains shutdown policies, to the joule: figure 13 (a timeout
that is too short) and figure 14 (an off-reservation beside a timeout). One unit t is a minute; switching off takes three of them and on
one (the figures draw two and one). In figure 14 the other nodes are off at the start, not on their way off."""

from __future__ import annotations

import pytest

import escala
from tests.unit.envs.days import workload

T = 60.0
IDLE, OFF, SWITCHING_OFF, SWITCHING_ON, COMPUTING = 95.0, 9.0, 101.0, 125.0, 190.0  # W


@pytest.mark.parametrize("timeout, start, joules", [(2, 8, [2, 3, 1]), (4, 5, [3, 0, 0])], ids=["13a", "13b"])
def test_figure_13_a_timeout_that_is_too_short_delays_and_wastes(timeout: int, start: int, joules: list[int]) -> None:
    """Both nodes work from 0 to 2t; the second job comes at 5t: while the nodes are on their way off (a timeout of 2t), or idle (4t)."""
    log = workload((0.0, 2 * T, 9 * T, 2), (5 * T, 2 * T, 9 * T, 2))
    run = escala.simulate(log, "2x1", scheduler="easy", shutdown=f"timeout:{timeout * T:g}", until_s=(start + 2) * T)
    assert run.jobs["start_s"].to_list() == [0.0, start * T]
    idle, off, on = joules
    waste = 2 * T * (idle * IDLE + off * SWITCHING_OFF + on * SWITCHING_ON)
    assert run.summary()["waste_j"] == pytest.approx(waste, rel=1e-12)
    assert run.summary()["transitions"] == (4 if off else 0)
    assert run.summary()["energy_j"] == pytest.approx(waste + 2 * T * 4 * COMPUTING, rel=1e-12)


@pytest.mark.parametrize("policy, switched_on", [("timeout:120", 4), ("off-reservation:2", 2)], ids=["14a", "14b"])
def test_figure_14_an_off_reservation_spares_a_start_and_delays_nothing(policy: str, switched_on: int) -> None:
    """Four nodes; the first job works on two until 3t, long before its request ends. The second comes at 2t: a timeout starts the other two
    nodes, which are on at 3t; a reservation of two nodes makes it wait for the first job's, until 3t as well."""
    log = workload((0.0, 2 * T, 9 * T, 2), (2 * T, 2 * T, 9 * T, 2))
    run = escala.simulate(log, "4x1", scheduler="easy", shutdown=policy, start_off=True, until_s=5 * T)
    assert run.jobs["start_s"].to_list() == [T, 3 * T]  # the first two nodes are started for the first job
    waste = run.summary()["waste_j"]
    boots = switched_on * T * SWITCHING_ON
    idle = 2 * T * 2 * IDLE if switched_on == 4 else 0.0  # nodes of the first job, from 3t to the end of what is drawn
    worked, off = (2 * T + 2 * T) * 2 * COMPUTING, (2 * T + (0.0 if switched_on == 4 else 3 * T)) * 2 * OFF
    assert run.summary()["energy_j"] == pytest.approx(boots + idle + worked + off, rel=1e-12)
    assert waste == pytest.approx(boots + idle, rel=1e-12) and run.summary()["transitions"] == switched_on
