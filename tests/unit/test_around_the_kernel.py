"""What a run does before and after its replay: no more than it needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import escala
from escala import estimates
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import CHUNKS_PER_JOB, Simulation
from escala.tables import node_texts

LOG = escala.workload.generate.lublin(jobs=200, cores=16, load=0.8, seed=3)


def test_run_times_are_not_looked_at_where_no_column_is_named() -> None:
    class Untouched:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    assert estimates.foretold(["walltime", "last2"], Untouched()) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(("spec", "a_job"), [("1x16", 1), ("4x4", 4), ("16x1", CHUNKS_PER_JOB)])
def test_room_for_allocations_is_that_of_the_nodes(spec: str, a_job: int) -> None:
    platform, options = escala.read_platform(spec), Options()
    chosen = policies.pair(LOG, "easy", "never", options)
    simulation = Simulation(LOG, platform, chosen.plan, options)
    assert (
        simulation.world.chunk.shape[1]
        - Simulation(LOG, platform, chosen.plan, Options(record=False)).world.chunk.shape[1]
        == 200 * a_job
    )
    policies.run(simulation, 0, chosen)
    assert simulation.result().jobs["nodes"].to_list() == escala.simulate(LOG, platform, "easy").jobs["nodes"].to_list()


def test_times_become_whole_microseconds_half_up() -> None:
    seconds = np.array([0.0, 1.5, 0.0000005, 0.0000004, -0.0000005, 1e9 + 0.25])
    given = seconds.copy()
    assert estimates.microseconds(seconds).tolist() == [0, 1_500_000, 1, 0, 0, 1_000_000_000_250_000]
    assert seconds.tolist() == given.tolist() and isinstance(estimates.microseconds(2), np.int64)
    assert estimates.microseconds([1, 2]).tolist() == [1_000_000, 2_000_000]


def test_jobs_that_never_started_have_no_nodes() -> None:
    chunks = np.array([[0, 2, 2, 5], [3, 0, 4, 1], [3, 1, 6, 1], [1, 1, 1, 1]], np.int64)
    assert node_texts(chunks, 7).to_list() == ["3", "", "0-1 4-6", "", "", "1", ""]
    assert node_texts(chunks[:, :0], 2).to_list() == ["", ""] and node_texts(chunks[:, :0], 0).to_list() == []
    alone = np.array([[1, 3], [0, 0], [0, 0], [5, 2]], np.int64)
    assert node_texts(alone, 4).to_list() == ["", "0", "", "0"]
