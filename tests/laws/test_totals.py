"""Joules by state, as the kernel counts them, are the sums over the nodes' lives, to the last digits: nothing counts
before
the first submission."""

from __future__ import annotations

import numpy as np
import pytest

import escala
from escala.metrics.energy import joules


@pytest.mark.parametrize("seed", range(4))
def test_counted_joules_are_those_of_the_nodes(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n = 40
    log = escala.Workload.from_jobs(
        {
            "submit_s": np.sort(draw.integers(0, 400, n)).astype(float) + 100.0 * seed,
            "runtime_s": draw.integers(1, 60, n).astype(float),
            "walltime_s": np.full(n, 60.0),
            "cores": draw.integers(1, 13, n),
            "load": draw.choice([0.25, 0.5, 1.0], n),
        }
    )
    result = escala.simulate(log, "4x4:grid5000", "easy", "timeout:5")
    counted, nodes = result.summary(), joules(result.power)
    for state, energy in nodes.items():
        assert counted[f"{state}_j"] == pytest.approx(energy, rel=1e-12, abs=1e-9), state
    assert nodes["computing"] > 0 and nodes["switching_on"] > 0
    alone = escala.simulate(log, "4x4:grid5000", "easy", "timeout:5", record=False).summary()
    recorded = int(result.power["transitions"].sum())
    assert alone["transitions"] == counted["transitions"] == recorded > 0, (
        "switches counted by the kernel are those that were recorded"
    )
