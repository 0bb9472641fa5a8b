"""Energy from recorded node states: the reference engine's state changes, put through the oracle's ledgers, give its
joules."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tests.golden.compare import relative
from tests.golden.runs import numbers, read_jobs, read_platform, rows_of, totals
from tests.oracle.energy import ledgers
from tests.oracle.world import OFF, ON, SWITCHING_OFF, SWITCHING_ON, Node, Profile, World, microseconds

SHUTDOWN_RUNS = ("easy_subpart5", "inertial_opportunistic_shutdown", "opportunistic_shutdown")
STATE_OF = {"0": ON, "13": OFF, "-2": SWITCHING_OFF, "-1": SWITCHING_ON}


def joules(profile: Profile, hosts: int, changes: list[tuple[float, int, str]], begin_s: float, end_s: float) -> float:
    """Joules over a window of hosts that start on and change state as told; nothing computes (delay jobs draw idle
    power)."""
    nodes = [Node(n, 1, profile, {}, label="idle", watts=Fraction(profile.idle_w)) for n in range(hosts)]
    world = World([], nodes, "escala", 0.0, ("walltime", "walltime"), ())
    for time, host, state in changes:
        world.now = microseconds(time)
        nodes[host].power = state
        world.changed(nodes[host])
    _, power = ledgers(world, microseconds(begin_s), microseconds(end_s))
    return float(sum(row["joules"] for row in power))


@pytest.mark.parametrize("name", SHUTDOWN_RUNS)
def test_state_changes_give_the_joules(name: str, traces: Path) -> None:
    """Measured from the first submission to the last finish: a trailing switch-off does not count. Times are printed
    with 6 digits."""
    folder = traces / "batsim" / "golden-medium_late"
    platform = read_platform(folder / "platform.xml.gz", 32)
    changes = [
        (float(row["time"]), host, STATE_OF[row["new_pstate"]])
        for row in rows_of(folder / name / "out_pstate_changes.csv")
        for host in numbers(row["machine_id"])
    ]
    summary = totals(folder / name / "out_schedule.csv")
    first = min(job["submit_s"] for job in read_jobs(folder / name / "out_jobs.csv").values())
    ours = joules(Profile(**platform["profiles"][0]), 32, changes, first, summary["makespan"])
    assert relative(ours, summary["consumed_joules"]) < 1e-6


def test_micro_example() -> None:
    """Two hosts of the stock platform; host 1 told to sleep at 0 and to wake at 30; jobs at 5 (to 25) and 10 (181.52 to
    211.52)."""
    stock = Profile(190.738, 95.0, 9.75, 100.996721311, 125.1743849, 1 / 0.16393442623, 1 / 0.00659978880676)
    changes = [(0.0, 1, SWITCHING_OFF), (6.1, 1, OFF), (30.0, 1, SWITCHING_ON), (181.52, 1, ON)]
    for begin, end, printed in ((0, 5, 979.984), (0, 6.1, 1195.58), (0, 181.52, 37059.9), (0, 211.52, 42759.9)):
        assert joules(stock, 2, changes, begin, end) == pytest.approx(printed, rel=1e-5)
    assert joules(stock, 2, changes, 5, 211.52) == pytest.approx(41779.944193, rel=1e-9)
