"""The two timelines with which Casagrande (dissertation 2020, section 4.2) explains shutdown policies, whole and to the
joule: figure 13 (a timeout that is too short) and figure 14 (an off-reservation beside a timeout).

Read from the text of section 4.2, which tells both figures instant by instant (the drawings are not in it): who works
when, that switching off takes 2t (figure 13a: from t4 to t6) and switching on 1t (t6 to t7; figure 14a: t2 to t3), and
the watts of figure 12, whose own 180 and 60 s the drawings do not keep. Ours, because no text tells them: t is a
minute, figure 13 has two nodes, the second job works for 2t there, and the first job's request ends long after it does
("inesperadamente").
"""

from __future__ import annotations

import pytest

import escala
from escala import PowerProfile
from tests.unit.envs.days import workload

T = 60.0
WATTS = {"idle": 95.0, "off": 9.0, "switching_off": 101.0, "switching_on": 125.0, "computing": 190.0}
PROFILE = PowerProfile(**{f"{state}_w": watts for state, watts in WATTS.items()}, switch_off_s=2 * T, switch_on_s=T)

Life = list[tuple[str, int]]
"""(state, until when in t), one behind the other from t0."""


def lives(run: escala.Result, t0: float) -> list[Life]:
    """Of every node from the figure's t0 on; neighbours of one state are one."""
    out: dict[int, Life] = {}
    for node, until, state in run.nodes.sort("node", "from_s").select("node", "to_s", "state").iter_rows():
        life = out.setdefault(node, [])
        if life and life[-1][0] == state:
            life.pop()
        if until > t0:
            assert (until - t0) % T == 0.0
            life.append((state, round((until - t0) / T)))
    return [out[node] for node in sorted(out)]


def joules(drawn: list[Life], states: tuple[str, ...] = tuple(WATTS)) -> float:
    """Energy of these states over what is drawn."""
    total = 0.0
    for life in drawn:
        since = [0, *(until for _, until in life[:-1])]
        total += sum(
            WATTS[state] * (until - begin) * T
            for (state, until), begin in zip(life, since, strict=True)
            if state in states
        )
    return total


WASTE = ("idle", "switching_off", "switching_on")
FIGURE_13: dict[str, tuple[int, int, Life]] = {  # the timeout, when the second job starts, the life of both nodes
    # "until t4 ... switching off, complete at t6"; the second job comes at t5; "switched on, complete at t7"
    "13a": (2, 7, [("computing", 2), ("idle", 4), ("switching_off", 6), ("switching_on", 7), ("computing", 9),
                   ("idle", 11), ("switching_off", 13), ("off", 14)]),
    # "idle until the submission at t5 ... starts immediately"; "if no other process is submitted ... they will be
    # switched off"
    "13b": (4, 5, [("computing", 2), ("idle", 5), ("computing", 7), ("idle", 11), ("switching_off", 13), ("off", 14)]),
}  # fmt: skip


def figure_13(figure: str) -> escala.Result:
    """Both nodes work from t0 to t2; the second job comes at t5, while they are on their way off (a timeout of 2t) or
    idle (4t)."""
    log = workload((0.0, 2 * T, 9 * T, 2), (5 * T, 2 * T, 9 * T, 2))
    nodes = escala.Platform.uniform(2, power=PROFILE)
    return escala.simulate(
        log, nodes, scheduler="easy", shutdown=f"timeout:{FIGURE_13[figure][0] * T:g}", until_s=14 * T
    )


@pytest.mark.parametrize("figure", FIGURE_13)
def test_figure_13_a_timeout_that_is_too_short_delays(figure: str) -> None:
    _, start, life = FIGURE_13[figure]
    run = figure_13(figure)
    assert run.jobs["start_s"].to_list() == [0.0, start * T]
    assert lives(run, 0.0) == [life, life]
    assert run.summary()["energy_j"] == pytest.approx(joules([life, life]), rel=1e-12)
    assert run.summary()["waste_j"] == pytest.approx(joules([life, life], WASTE), rel=1e-12)
    assert run.summary()["transitions"] == 2 * sum(state.startswith("switching") for state, _ in life)


def test_figure_13_a_timeout_that_is_too_short_wastes() -> None:
    """As the text sums it up. By hand, for each of two nodes: 2t of switching off and 1t of switching on more, 3t of
    idling less."""
    short, long = (figure_13(figure).summary()["energy_j"] for figure in FIGURE_13)
    assert short - long == pytest.approx(2 * T * (2 * 101.0 + 125.0 - 3 * 95.0), rel=1e-12)


# the policy, how long nodes have idled before t0, lives of r1 and r2, r3 and r4
FIGURE_14: dict[str, tuple[str, int, list[Life]]] = {
    # At t0 r1 and r2 work and r3 and r4 begin to switch off; the second job comes at t2, r3 and r4 are on at t3, when
    # it starts and the first ends; it ends at t5; r1 and r2 are switched off at t5, r3 and r4 at t7.
    "14a": ("timeout:120", 2, [
        [("computing", 3), ("idle", 5), ("switching_off", 7), ("off", 10)],
        [("switching_off", 2), ("switching_on", 3), ("computing", 5), ("idle", 7), ("switching_off", 9), ("off", 10)],
    ]),
    # r3 and r4 are reserved, which switches them off at once; the second job waits until r1 and r2 are released. That
    # these idle after it is our rule of an off-reservation, no text's.
    "14b": ("off-reservation:2", 0, [[("computing", 5), ("idle", 10)], [("switching_off", 2), ("off", 10)]]),
}  # fmt: skip


def figure_14(figure: str, until: int) -> escala.Result:
    """Four nodes. The figure begins with r3 and r4 on their way off: under the timeout all four have idled for 2t when
    the first job takes two, the reservation is made at t0. Until t`until`."""
    policy, before, _ = FIGURE_14[figure]
    log = workload((before * T, 3 * T, 9 * T, 2), ((before + 2) * T, 2 * T, 9 * T, 2))
    nodes = escala.Platform.uniform(4, power=PROFILE)
    return escala.simulate(log, nodes, scheduler="easy", shutdown=policy, until_s=(before + until) * T)


@pytest.mark.parametrize("figure", FIGURE_14)
def test_figure_14_an_off_reservation_delays_nothing(figure: str) -> None:
    _, before, (first, second) = FIGURE_14[figure]
    run, drawn = figure_14(figure, 10), [first, first, second, second]
    assert run.jobs["start_s"].to_list() == [before * T, (before + 3) * T]
    assert lives(run, before * T) == drawn
    idled = 4 * before * T * 95.0  # before t0
    assert run.summary()["energy_j"] - idled == pytest.approx(joules(drawn), rel=1e-12)
    assert run.summary()["waste_j"] - idled == pytest.approx(joules(drawn, WASTE), rel=1e-12)
    assert run.summary()["transitions"] == sum(state.startswith("switching") for life in drawn for state, _ in life)


def test_figure_14_an_off_reservation_spares_the_restart() -> None:
    """Until t5, when the second job ends: r3 and r4 are not switched on, r1 and r2 do not idle for 2t."""
    waste = {
        figure: figure_14(figure, 5).summary()["waste_j"] - 4 * FIGURE_14[figure][1] * T * 95.0 for figure in FIGURE_14
    }
    assert waste["14a"] - waste["14b"] == pytest.approx(2 * T * (125.0 + 2 * 95.0), rel=1e-12)
