"""The shutdown policies hold, with its options, and arrivals-known: what they are equal to, and where their names
work."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.errors import EscalaError
from escala.kernel import codes
from escala.policies import hold
from tests.laws.laws import check, rows
from tests.oracle.engines import run_kernel
from tests.oracle.worlds import SCHEDULERS, Case, draw

NAMES = ("hold:0.5", "hold:0.5:if-busy", "hold:0.5:3", "hold:0.5:if-busy:3", "arrivals-known")
TABLES = ("jobs", "allocations", "nodes", "power")


def worlds(n: int) -> list[Case]:
    """Every third a scheduler's; nodes may switch."""
    return [draw(random.Random(f"hold-{k}"), (SCHEDULERS[k % len(SCHEDULERS)],), 20) for k in range(n)]


def played(case: Case, shutdown: str) -> dict[str, Any]:
    case.options["shutdown"] = shutdown
    result = run_kernel(case)
    check(result, case.jobs, case.platform, case.options.get("until_s"))
    return {name: rows(getattr(result, name)) for name in TABLES}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hold:0", "timeout:0"),
        ("hold:0:if-busy", "timeout:0"),
        ("hold:1:0", "timeout:0"),
        ("hold:1:if-busy:0", "timeout:0"),
        ("hold:0.5:1000000", "hold:0.5:uncapped"),
        ("hold:0.5:if-busy:1000000", "hold:0.5:if-busy:uncapped"),
        ("hold:0.5:3600", "hold:0.5"),
    ],
)
def test_an_option_at_its_end_is_the_policy_without_it(one: str, other: str) -> None:
    for case in worlds(len(SCHEDULERS)):
        assert played(case, one) == played(case, other), case.program()


def test_the_options_make_a_difference() -> None:
    """Else the test before proves nothing."""
    found = dict.fromkeys(NAMES[1:], 0)
    for case in worlds(len(SCHEDULERS)):
        plain = played(case, "hold:0.5")
        for name in found:
            found[name] += played(case, name) != plain
    assert all(count > 5 for count in found.values()), found


def test_nodes_that_switch_at_no_cost_stay_on_for_no_arrival() -> None:
    for case in worlds(len(SCHEDULERS)):
        for profile in case.platform["profiles"]:
            profile |= {"switching_off_w": 0.0, "switching_on_w": 0.0}
        assert played(case, "arrivals-known") == played(case, "timeout:0"), case.program()


def test_names_from_numbers() -> None:
    assert hold(0.25) == hold(0.25, if_busy=False) == "hold:0.25"
    assert hold(0.25, cap_s=math.inf) == "hold:0.25:uncapped" and hold(0.25, cap_s=3600) == "hold:0.25:3600"
    assert hold(0.25, if_busy=True, cap_s=600) == "hold:0.25:if-busy:600"
    assert hold(1, cap_s=0.5) == "hold:1:0.5"
    for bad in (
        {"fraction": -1},
        {"fraction": math.nan},
        {"fraction": "x"},
        {"fraction": 1, "cap_s": math.nan},
        {"fraction": 1, "cap_s": -1},
    ):
        with pytest.raises(EscalaError, match=r"^shutdown policy 'hold:"):
            hold(**bad)  # type: ignore[arg-type]


def _log() -> escala.Workload:
    return escala.workload.generate.grid5000(cluster="orion", days=1, seed=3)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_run_runs_again(name: str, tmp_path: Path) -> None:
    how = {"start_off": True, "until_s": 86400.0}
    first = escala.simulate(_log(), "orion", "saf", name, **how)
    assert first.manifest["shutdown"] == name
    first.save(tmp_path / "run")
    again = escala.rerun(tmp_path / "run", workload=_log())
    for table in TABLES:
        assert rows(getattr(again, table)) == rows(getattr(first, table))


def test_compare_takes_them_all() -> None:
    found = escala.compare(_log(), "orion", schedulers=["easy"], shutdowns=list(NAMES))
    assert list(found.results) == [f"easy + {name}" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_beneath_a_policy_in_python(name: str) -> None:
    """A policy that does nothing, over one of the kernel's, is the kernel's."""

    class Nothing:
        beneath = name
        before_scheduler = True

        def decide(self, view: Any, act: Any) -> None: ...

    alone, over = (escala.simulate(_log(), "orion", "saf", shutdown) for shutdown in (name, Nothing()))
    for table in TABLES:
        assert rows(getattr(over, table)) == rows(getattr(alone, table))


@pytest.mark.parametrize("name", NAMES)
def test_a_scheduler_in_python_is_held_as_the_kernels_are(name: str) -> None:
    def first_fit(view: Any, act: Any) -> None:
        for job in view.queue:
            act.start(job)

    theirs, ours = (escala.simulate(_log(), "orion", scheduler, name) for scheduler in (first_fit, "first-fit"))
    for table in TABLES:
        assert rows(getattr(theirs, table)) == rows(getattr(ours, table))


def test_random_off_reservations_follow_their_seed_and_end() -> None:
    """One draw a minute of 0 .. all nodes; a job that needs the whole platform starts in a minute in which none is kept
    off."""
    log = escala.Workload.from_jobs(
        {"submit_s": [30, 90], "runtime_s": [600, 600], "walltime_s": [900, 900], "cores": [4, 1]}
    )
    kept: dict[int, list[tuple[float, float]]] = {}
    for seed in (0, 0, 1):
        result = escala.simulate(log, "4x1:taurus", "easy", "random", seed=seed, decisions=True, start_off=True)
        assert (result.jobs["state"] == "COMPLETED").all()
        assert result.decisions is not None
        drawn = list(result.decisions.select("time_s", "value").iter_rows())
        assert kept.setdefault(seed, drawn) == drawn
        assert [time for time, _ in drawn] == [60.0 * k for k in range(len(drawn))]
        given = result.jobs["start_s"][0] - 150.0  # all its nodes take 150 s to switch on
        assert given >= 60 and [k for time, k in drawn if time <= given][-1] == 0
    assert kept[0] != kept[1] and {a for _, a in kept[0] + kept[1]} == set(range(5))


def test_codes_of_shutdown_policies_differ() -> None:
    kinds = [
        codes.NEVER,
        codes.TIMEOUT,
        codes.PROPORTIONAL,
        codes.OFF_RESERVATION,
        codes.HOLD,
        codes.POWER_EXTERNAL,
        codes.ORACLE,
    ]
    assert len({*kinds, codes.ARRIVALS}) == len(kinds) + 1


@pytest.mark.parametrize(("walltime_s", "woken"), [(4000.0, 0), (3800.0, 1)])
def test_oracle_holds_a_job_for_cores_that_are_free_by_its_last_moment(walltime_s: float, woken: int) -> None:
    """A has node 0 to 3000. B comes at 1000 and may wait for half of its request: to 3000, when A has just ended, or to
    2900: too soon."""
    log = escala.Workload.from_jobs(
        {"submit_s": [0.0, 1000.0], "runtime_s": [3000.0, 500.0], "walltime_s": [6000.0, walltime_s], "cores": [1, 1]}
    )
    result = escala.simulate(log, "2x1:grid5000", "fcfs", "oracle:0.5")
    assert result.nodes.filter(node=1, state="switching_on").height == woken
    assert woken or result.jobs["start_s"].to_list() == [0.0, 3000.0]
