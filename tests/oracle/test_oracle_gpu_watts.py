"""Random worlds whose GPUs have watts: joules of each node and state as the oracle's, which adds up what a node draws
from instant to instant."""

from __future__ import annotations

import random

import pytest

from tests.oracle.engines import differences, run_kernel
from tests.oracle.gpus import draw_watts
from tests.oracle.worlds import ASKED, SCHEDULERS, draw


@pytest.mark.parametrize("shutdown", ["never", "timeout:2", "arrivals-known"])
def test_kernel_equals_oracle_where_gpus_have_watts(shutdown: str) -> None:
    busy = several = 0
    for number in range(1200):
        case = draw(random.Random(f"gpus/{number}"), SCHEDULERS, 10, 0.0, True)
        asking = any(job.get("demand_gpu") or job.get("gpus_per_node") or job.get("gpus_per_task") for job in case.jobs)
        switched = case.options["shutdown"].startswith(("hold", "off-reservation")) or "calls_s" in case.options
        if "gpu" not in case.platform.get("resources", {}) or not asking or switched:
            continue
        draw_watts(random.Random(number), case.platform)
        case.options["shutdown"] = shutdown
        if not any(profile["can_switch"] for profile in case.platform["profiles"]):
            case.options["shutdown"] = "never"
        assert not differences(case), case.program()
        result = run_kernel(case)
        case.options["record"] = False
        counted, whole = run_kernel(case).summary(), result.summary()
        for name in ("energy_j", "gpu_j"):
            assert counted.get(name, 0.0) == pytest.approx(whole.get(name, 0.0), rel=1e-12, abs=1e-9), case.program()
        several += "gpu:a" in case.platform["resources"]
        busy += any(job.get(name) for job in case.jobs for name in ASKED) and whole.get("gpu_j", 0.0) > 0.0
    assert busy > 25 and several > 15, (busy, several)
