"""The tables of a finished run are freed with it: hundreds of replays of a large log follow one another."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import escala
from escala.policies import run


class SelfMade:
    role = "scheduler"

    def decide(self, view: Any, act: Any) -> None:
        for job in view.queue:
            act.start(job)


class Predictor:
    def estimate(self, view: Any, job: Any) -> float:
        return float(job.walltime_s) / 2


@pytest.mark.parametrize(
    "scheduler, options",
    [
        ("easy", {}),
        ("conservative", {}),
        ("easy:queue=escala", {"estimate": "last2"}),
        ("easy", {"estimate": Predictor()}),
        (SelfMade(), {}),
    ],
    ids=["easy", "conservative", "last2", "predictor", "self-made"],
)
def test_a_finished_run_leaves_no_simulation_behind(
    scheduler: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[weakref.ref[Any]]()

    class Seen(run.Simulation):
        def __init__(self, *given: Any, **more: Any) -> None:
            made.append(weakref.ref(self))
            super().__init__(*given, **more)

    monkeypatch.setattr(run, "Simulation", Seen)
    log = escala.Workload.from_jobs(
        [{"job_id": str(k), "submit_s": k, "runtime_s": 3.0, "walltime_s": 5.0, "cores": 1} for k in range(9)]
    )
    gc.collect()
    gc.disable()
    try:
        result = escala.simulate(log, "2x1:none", scheduler, **options)
        left = [one for one in made if one() is not None]
    finally:
        gc.enable()
    assert len(made) == 1 and not left
    assert len(result.nodes) > 0  # made from what was copied
