"""No scheduler and no shutdown policy grows faster than it should: steps of compiled code, and rows that a View shows,
are counted; nothing is timed.

The limits are exponents of the steps a job (0: the same for ever; 1: proportional). The aim is 0.15; worlds as
small as these add logarithms and the way from short queues to long ones, hence 0.3. What is allowed more stands below,
each with its reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from escala.cli.policies import scheduler_lines
from escala.policies import SCHEDULERS, SHUTDOWN_FORMS
from escala.policies.queues import QUEUE_FORMS
from tests.growth.axes import AXES, LEFT_OUT, QUEUES, pairs

LIMIT = 0.3
# each decision looks at the nodes that are on, or that were released
WAKING = ("hold", "timeout", "proportional", "arrivals-known")


def limit(scheduler: str, shutdown: str, axis: str) -> float:
    """The largest exponent of the steps a job that this pair may have on this axis."""
    if axis.endswith("by nodes"):
        return _by_nodes(scheduler, shutdown, axis)
    # planned ends move, so all is planned anew; an aim that is not reached
    if scheduler == "conservative:estimate=last2":
        late = {"more jobs": 0.95, "more overload": 1.7, "more nodes": 1.5}
        return {"jobs": 0.52, "overload": 0.67, "waiting": 1.65, "nodes": 0.95, **late}[axis]
    # each plan is looked at after each early end, node by node
    if scheduler.startswith("conservative") and shutdown == "never":
        late = {"more jobs": LIMIT, "more overload": 1.3, "more nodes": 1.0}
        return {"jobs": LIMIT, "overload": 0.36, "waiting": 1.67, "nodes": 0.72, **late}[axis]
    if scheduler.startswith("conservative"):
        return _conservative(shutdown, axis)
    # after each start it looks at all jobs that it may hold, and for each new job at all that run
    if shutdown == "oracle":
        return {"waiting": 0.5, "nodes": 0.65, "more nodes": 0.8}.get(axis, LIMIT)
    if axis == "more jobs" and "multifactor" in scheduler:
        return 0.45  # users' shares, in a queue that grows longer too
    if axis in ("waiting", "overload", "more overload") and (":backfill=" in scheduler or "multifactor" in scheduler):
        return 0.38  # two tournaments, or users' shares; short queues have neither
    if axis == "nodes" and shutdown.startswith(WAKING):
        return 0.45
    if axis == "more nodes" and shutdown.startswith((*WAKING, "random")):
        return 1.2
    return LIMIT


def _by_nodes(scheduler: str, shutdown: str, axis: str) -> float:
    """Where all jobs wait from the beginning: conservative backfilling looks at each reservation after each end;
    oracle, after each start, at all that it may hold."""
    if scheduler.startswith("conservative"):
        return 2.05 if axis.startswith("waiting") else 0.5
    return 0.5 if shutdown == "oracle" and axis.startswith("waiting") else LIMIT


def _conservative(shutdown: str, axis: str) -> float:
    """Just above what is measured with a shutdown policy: a queue that grows to the end at load 1.2 (1.3), or waits
    from the beginning (1.7), and nodes, with which the jobs grow that run or are held (2.6 with hold and oracle). With
    an off-reservation, and where somebody outside switches, the plans of all waiting jobs are made anew."""
    anew = shutdown.startswith(("off-reservation", "inertial", "random"))
    if axis == "jobs":
        return 0.52 if anew else LIMIT
    if axis == "more jobs":
        return 1.4 if shutdown.startswith("off-reservation") else 0.36  # kept off: the queue grows to the end
    if axis == "overload":
        return 0.67 if anew else 0.36
    if axis == "more overload":
        return 1.5 if anew else 1.32
    if axis == "waiting":
        return 1.75
    if axis == "more nodes":
        return 2.65 if shutdown.startswith(("hold", "oracle")) else 1.5 if anew else 1.1
    return 1.75 if shutdown.startswith(("hold", "oracle")) else 0.78


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Every pair on every axis, from a process of its own: this one has the kernel without counters."""
    environment = {**os.environ, "NUMBA_OPT": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.growth"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {(row["scheduler"], row["shutdown"], row["axis"]): row for row in json.loads(done.stdout)}


def test_every_name_is_measured() -> None:
    assert {scheduler for scheduler, _ in pairs()} == {*SCHEDULERS, *QUEUES}
    assert scheduler_lines().keys() - QUEUE_FORMS.keys() - set(SCHEDULERS) == set(LEFT_OUT), (
        "measure it, or say why not"
    )
    kinds = {shutdown.partition(":")[0] for _, shutdown in pairs()}
    assert kinds == {form.partition(":")[0] for form in SHUTDOWN_FORMS}


@pytest.mark.parametrize("axis", AXES)
def test_steps_grow_no_faster_than_they_should(axis: str, measured: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    found = [
        f"{scheduler} + {shutdown}: exponent {row['exponent']:.2f}, limit {limit(scheduler, shutdown, axis)}, most "
        f"steps in {row['most']}"
        for (scheduler, shutdown, where), row in measured.items()
        if where == axis and row["exponent"] > limit(scheduler, shutdown, axis)
    ]
    assert {(s, h) for s, h, a in measured if a == axis} == set(pairs())
    assert not found, "\n".join(found)


@pytest.mark.parametrize("axis", AXES)
def test_the_counter_sees_every_pair_work(axis: str, measured: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    assert all(min(row["steps"]) > 1000 for row in measured.values() if row["axis"] == axis)
