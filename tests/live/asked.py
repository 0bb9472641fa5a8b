"""A desk, and what tests ask it."""

from __future__ import annotations

import json
from typing import Any

import escala
from escala.live import Desk

WATTS = "computing=200,idle=100,off=10,switching_off=120,switching_on=150,switch_off_s=30,switch_on_s=60"


def desk_of(scheduler: str = "easy", shutdown: str = "timeout:300") -> Desk:
    return Desk(escala.read_platform("4x1", WATTS), scheduler, shutdown)


def state_at(now_s: float = 1000.0, **columns: Any) -> dict[str, Any]:
    """Two nodes of four hold job a; b (4 cores) and c wait. columns: of the jobs, beside or in place of these."""
    jobs: dict[str, Any] = {
        "job_id": ["a", "b", "c"],
        "submit_s": [10.0, 20.0, 30.0],
        "walltime_s": [3600.0, 600.0, 60.0],
        "cores": [2, 4, 1],
        "state": ["running", "queued", "queued"],
        "start_s": [10.0, None, None],
    }
    nodes = {"power": ["on"] * 4, "idle_since_s": [None, None, 0.0, 0.0]}
    placed = {"job": [0], "first": [0], "last": [1], "cores": [1]}
    return {"schema": 1, "now_s": now_s, "jobs": jobs | columns, "nodes": nodes, "placed": placed, "ended": {}}


def line_of(told: Any) -> bytes:
    return json.dumps(told).encode() + b"\n"
