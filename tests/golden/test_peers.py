"""Published and measured values of other simulators on the same 10 000 jobs (lublin_256, 256 processors, requested time
= runtime).

FCFS: RLScheduler, CQGym, AccaSim and Alea agree to the digit. SJF (the first job blocks): AccaSim and Alea. EASY: a
plain reference in Python with both of EASY's rules, by count of processors, all events of one instant before one
decision. first-fit is what AccaSim calls EASY; sjf-fit is sched-rl-gym's SJF.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import escala

VALUES = {  # scheduler: (mean wait s, mean bounded slowdown, makespan s)
    "fcfs": (2_388_443.76, 66_502.4755, 12_482_549),
    "sjf": (275_304.22, 53.5435, 11_359_058),
    "sjf-fit": (47_503.32, 31.1919, 9_694_517),
    "easy": (97_155.99, 590.0538, 8_730_698),
    "first-fit": (63_772.64, 764.4134, 8_966_268),
}


@pytest.fixture(scope="module")
def lublin(traces: Path) -> escala.Workload:
    return escala.read_workload(traces / "swf-synthetic" / "lublin_256.swf.gz")


@pytest.mark.parametrize("scheduler", sorted(VALUES))
def test_a_pool_of_256_gives_what_other_simulators_give(lublin: escala.Workload, scheduler: str) -> None:
    summary = escala.simulate(lublin, "1x256", scheduler).summary()
    wait, slowdown, makespan = VALUES[scheduler]
    assert summary["mean_wait_s"] == pytest.approx(wait, abs=0.006)
    assert summary["mean_bounded_slowdown"] == pytest.approx(slowdown, abs=6e-5)
    assert summary["makespan_s"] == pytest.approx(makespan, abs=0.6)


def test_naming_the_released_processors_last_equals_counting_them(lublin: escala.Workload) -> None:
    """On nodes of one core, a head that reserves the nodes released last is textbook EASY."""
    pool = escala.simulate(lublin, "1x256", "easy").jobs["start_s"]
    nodes = escala.simulate(lublin, "256x1", "easy", head="latest-released").jobs["start_s"]
    assert pool.equals(nodes)
