"""Random small worlds: the kernel gives what the oracle gives, and obeys the laws."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings

from escala.policies import SCHEDULERS as REGISTRY
from escala.policies.queues import WAYS
from escala.scores import CHANGING, FIXED
from tests.laws.laws import check
from tests.laws.outages import check_outages
from tests.oracle.engines import differences, run_kernel
from tests.oracle.outages import draw_outages
from tests.oracle.whole import draw_whole
from tests.oracle.worlds import ASKED, CONSERVATIVE, EASY, GREEDY, PRIORITY, SCHEDULERS, STRICT, Case, draw, worlds

FAMILIES = {
    "strict": STRICT,
    "greedy": GREEDY,
    "easy": EASY,
    "priority": PRIORITY,
    "easy-fast": ("easy-fast",),
    "conservative": CONSERVATIVE,
}
assert set(SCHEDULERS) == {name for names in FAMILIES.values() for name in names}
COMMON = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel_equals_oracle(family: str) -> None:
    @settings(COMMON, max_examples=40)
    @given(case=worlds(FAMILIES[family], shaped=True))
    def compare(case: Case) -> None:
        assert not differences(case), case.program()

    compare()


@pytest.mark.parametrize("family", ["strict", "greedy", "easy", "priority", "easy-fast"])
def test_kernel_equals_oracle_where_jobs_ask_for_nodes(family: str) -> None:
    """Of 800 worlds of each family those in which some do."""
    found = bound = parted = 0
    for number in range(800):
        case = draw(random.Random(f"nodes/{family}/{number}"), FAMILIES[family], 12, 0.0, True)
        if any(job.get(name) is not None for job in case.jobs for name in ASKED):
            found += 1
            bound += "features" in case.platform and any(job.get("features") for job in case.jobs)
            parted += "partitions" in case.platform
            assert not differences(case), case.program()
            check(run_kernel(case), case.jobs, case.platform, case.options.get("until_s"))
    assert found > 60 and bound > 20 and parted > 20


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel_equals_oracle_where_nodes_go_and_come_back(family: str) -> None:
    """80 worlds of each family, some of many jobs, some with nodes to themselves."""
    lost = cut = 0
    for number in range(80):
        rng = random.Random(f"outages/{family}/{number}")
        case = draw(rng, FAMILIES[family], 16, 0.05, True, 0.1)
        if number % 4 == 3:
            draw_whole(rng, case)
        draw_outages(rng, case.jobs, case.platform)
        assert not differences(case), case.program()
        if "closed" in case.platform:
            result = run_kernel(case)
            check_outages(result, case.jobs, case.platform, case.options.get("until_s"))
            lost += (result.jobs["lost_s"] > 0).any()
            cut += (result.jobs["state"] == "KILLED").any()
    assert lost >= 5 and cut >= 5


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel_equals_oracle_where_jobs_have_unlike_nodes_to_themselves(family: str) -> None:
    """Of 240 worlds of each family, some of many jobs, those in which some do."""
    found = 0
    for number in range(240):
        case = draw(random.Random(f"whole/{family}/{number}"), FAMILIES[family], 16, 0.05, True, 0.1)
        if draw_whole(random.Random(f"whole/{family}/{number}/jobs"), case):
            found += 1
            assert not differences(case), case.program()
            check(run_kernel(case), case.jobs, case.platform, case.options.get("until_s"))
    assert found > 20


@pytest.mark.parametrize("family", ["strict", "greedy", "easy", "priority", "easy-fast", "packing"])
def test_kernel_equals_oracle_where_hundreds_of_jobs_of_nodes_wait(family: str) -> None:
    """Queues that are searched, not walked: most jobs arrive at once."""
    schedulers = ("packer", "tetris") if family == "packing" else FAMILIES[family]
    found, number = 0, 0
    while found < 8:
        number += 1
        case = draw(random.Random(f"long/{family}/{number}"), schedulers, 25, 1.0, True, 0.3)
        by_nodes = any(job.get(name) is not None for job in case.jobs for name in (*ASKED, "single_node"))
        whole = case.options.get("until_s") is None
        if by_nodes and whole and len(case.jobs) > 150 and len(case.platform["cores"]) < 20:
            found += 1
            case = Case(case.platform, [{**job, "submit_s": job["submit_s"] // 50} for job in case.jobs], case.options)
            assert not differences(case), case.program()
            check(run_kernel(case), case.jobs, case.platform)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel_equals_oracle_where_partitions_share_no_node(family: str) -> None:
    """Worlds with queues of their own, some of many jobs."""
    found = 0
    for number in range(120):
        case = draw(random.Random(f"apart/{family}/{number}"), FAMILIES[family], 25, 0.05, True, 1.0)
        found += "partitions" in case.platform
        assert not differences(case), case.program()
        check(run_kernel(case), case.jobs, case.platform, case.options.get("until_s"))
    assert found > 60


def test_what_sleeps_is_not_planned_with_before_the_end_of_the_hold() -> None:
    """Conservative under hold: the third job, held until 140 s, may begin at 70 s on what jobs leave by then. But the
    first of them is planned on those cores a little later, and the sleeping ones beside them are no substitute yet."""
    watts = {"computing_w": 154.0, "idle_w": 86.0, "off_w": 6.0, "switching_off_w": 115.0, "switching_on_w": 117.0}
    profile = watts | {"switch_off_s": 20.0, "switch_on_s": 20.0, "can_switch": True}
    platform = {"cores": [4] * 6, "profiles": [profile], "profile_of": [0] * 6}
    columns = ("submit_s", "runtime_s", "walltime_s", "cores")
    rows = [(20.0, 10.0, 20.0, 2), (20.0, 20.0, 30.0, 2), (20.0, 120.0, 120.0, 2), (30.0, 10.0, 90.0, 1)]
    rest = {"load": 1.0, "single_node": False, "user": None}
    jobs = [{"job_id": str(k), **dict(zip(columns, row, strict=True)), **rest} for k, row in enumerate(rows)]
    case = Case(platform, jobs, {"scheduler": "conservative", "shutdown": "hold:1.0"})
    assert not differences(case), case.program()


def test_a_switch_that_ends_a_residue_after_a_planned_end_is_not_free_with_it() -> None:
    """EASY with exact residues: the head's time is the later of a planned end and the end of a switch-off, which are of
    one microsecond; the last job just ends before it, and so may pass."""
    watts = {"computing_w": 166.0, "idle_w": 79.0, "off_w": 0.0, "switching_off_w": 119.0, "switching_on_w": 66.0}
    profile = watts | {"switch_off_s": 3e-6, "switch_on_s": 5e-6, "can_switch": True}
    platform = {"cores": [1] * 6, "profiles": [profile], "profile_of": [0] * 6}
    columns = ("submit_s", "runtime_s", "walltime_s", "cores")
    rows = [(16, 6, 6, 4), (21, 1, 1, 1), (28, 12, 12, 6), (28, 3, 2, 2), (28, 4, 6, 3), (31, 1, 4, 1)]
    rest = {"load": 1.0, "single_node": False, "user": None}
    jobs = [
        {"job_id": str(k), **{name: value * 1e-6 for name, value in zip(columns[:3], row, strict=False)}, **rest}
        | {"cores": row[3]}
        for k, row in enumerate(rows)
    ]
    options = {"scheduler": "easy:queue=saf:guard=2e-06", "shutdown": "arrivals-known", "rules": "batsched"}
    case = Case(platform, jobs, options | {"plan_margin_s": 1e-6, "estimate": "runtime"})
    assert not differences(case), case.program()
    assert run_kernel(case).jobs["start_s"].to_list()[-1] == pytest.approx(31e-6)


def test_every_scheduler_with_a_name_is_in_the_worlds() -> None:
    assert set(SCHEDULERS) == {*REGISTRY, *(f"{way}:queue={score}" for way in WAYS for score in (*FIXED, *CHANGING))}


def test_exact_plan_times_tell_microseconds_apart() -> None:
    """The doubles nearest to some microseconds differ from these by less than 2^-60 s."""
    columns = ("runtime_s", "walltime_s", "cores")
    rows = [(9, 9, 4), (5, 4, 3), (4, 9, 4), (11, 12, 3), (3, 3, 1), (4, 4, 1), (10, 9, 1), (1, 1, 4), (1, 2, 2)]
    jobs = [
        {
            "job_id": ident,
            "submit_s": 4e-6,
            **dict(zip(columns, (round(r * 1e-6, 6), round(w * 1e-6, 6), n), strict=True)),
        }
        for ident, (r, w, n) in zip(("1", *map(str, range(32, 38)), "47", "48"), rows, strict=True)
    ]
    profile = {"switch_off_s": 1e-6, "switch_on_s": 1e-6, "can_switch": True}
    watts = dict.fromkeys(("computing_w", "idle_w", "off_w", "switching_off_w", "switching_on_w"), 10.0)
    platform = {"cores": [4], "profiles": [profile | watts], "profile_of": [0]}
    assert not differences(Case(platform, jobs, {"scheduler": "easy-f4", "shutdown": "hold:1.0", "rules": "batsched"}))


@pytest.mark.parametrize("shutdown", ["oracle", "oracle:0.25", "inertial", "random"])
def test_the_laws_hold_under_policies_that_the_oracle_does_not_know(shutdown: str) -> None:
    @settings(COMMON, max_examples=25)
    @given(case=worlds(shaped=True, apart=0.3))
    def obey(case: Case) -> None:
        case.options["shutdown"] = shutdown
        check(run_kernel(case), case.jobs, case.platform, case.options.get("until_s"))

    obey()


@settings(COMMON, max_examples=60)
@given(case=worlds(shaped=True))
def test_the_kernel_obeys_the_laws(case: Case) -> None:
    check(run_kernel(case), case.jobs, case.platform, case.options.get("until_s"))


@pytest.mark.parametrize("number, submit_s", [(10, 1.0), (12, 0.0)])
def test_a_planned_start_that_a_residue_parts_from_every_end_is_an_event(number: int, submit_s: float) -> None:
    """Jobs of a microsecond under exact plan times: holes between plans are too short by a residue, so jobs go behind
    the others."""
    watts = dict.fromkeys(("computing_w", "idle_w", "switching_off_w", "switching_on_w"), 10.0) | {"off_w": 0.0}
    profile = watts | {"switch_off_s": 0.0, "switch_on_s": 0.0, "can_switch": True}
    platform = {"cores": [1], "profiles": [profile], "profile_of": [0]}
    job = {
        "submit_s": submit_s,
        "runtime_s": 1e-06,
        "walltime_s": 1e-06,
        "cores": 1,
        "load": 1.0,
        "single_node": False,
        "user": None,
    }
    jobs = [{"job_id": str(k + 1), **job} for k in range(number)]
    for scheduler in ("conservative", "conservative:queue=sjf"):
        case = Case(
            platform, jobs, {"scheduler": scheduler, "shutdown": "never", "rules": "batsched", "plan_margin_s": 0.0}
        )
        assert not differences(case), case.program()
