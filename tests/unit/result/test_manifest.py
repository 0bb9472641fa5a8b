"""A manifest says enough to run the same thing again: platform, policies and options, through JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

import escala
from escala.options import Options
from tests.unit.result.test_result_totals import OPTIONS, jobs, mixed_platform

MORE: list[dict[str, Any]] = [
    {"scheduler": "easy", "shutdown": "timeout:15", "head": "latest-released", "rules": "batsched"},
    {"scheduler": "conservative", "shutdown": "never", "depth": 3, "rebuild": True},
    {"scheduler": "easy-fast", "shutdown": "hold:0.5", "estimate": "runtime", "plan_margin_s": 2.5},
    {"scheduler": "random", "shutdown": "random", "seed": 7},
    {"scheduler": "f1", "shutdown": "inertial", "start_s": 1.5, "until_s": 4000.0},
    {"scheduler": "sjf-fit", "shutdown": "oracle", "oversized": "drop"},
]


@pytest.mark.parametrize(
    "options", [*OPTIONS, *MORE], ids=lambda options: " ".join(str(value) for value in options.values())
)
def test_the_manifest_repeats_the_run(options: dict[str, Any]) -> None:
    workload = jobs(5, 150)
    first = escala.simulate(workload, mixed_platform(), **options)
    manifest = json.loads(json.dumps(first.manifest))
    platform = escala.Platform.from_spec(manifest["platform"])
    assert platform == mixed_platform()
    again = escala.simulate(
        workload, platform, scheduler=manifest["scheduler"], shutdown=manifest["shutdown"], **manifest["options"]
    )
    for table in ("jobs", "totals", "nodes", "power", "allocations"):
        assert getattr(again, table).equals(getattr(first, table)), table
    ignored = {"elapsed_s"}
    assert {k: v for k, v in again.manifest.items() if k not in ignored} == {
        k: v for k, v in first.manifest.items() if k not in ignored
    }


def test_it_names_every_option_and_the_workload() -> None:
    workload = jobs(5, 20).with_jobs(jobs(5, 20).jobs, name="mine", source="made here", cleaning={"zero runtime": 3})
    manifest = escala.simulate(workload, mixed_platform(), until_s=50.0).manifest
    assert set(manifest["options"]) == set(Options.__dataclass_fields__)
    told = {
        "name": "mine",
        "source": "made here",
        "jobs": 20,
        "cleaning": {"zero runtime": 3},
        "ignored": {},
        "read_as": {},
        "origin_s": 0.0,
        "sha256": workload.digest(),
    }
    assert manifest["workload"] == told
    assert manifest["window"] == {"start_s": 0.0, "end_s": 50.0}
    assert (manifest["n_nodes"], manifest["n_cores"]) == (13, 76)
    assert manifest["escala"] == escala.__version__
