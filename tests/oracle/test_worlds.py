"""Random small worlds: the kernel gives what the oracle gives, and obeys the laws."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from escala.policies import SCHEDULERS as REGISTRY
from tests.laws.laws import check
from tests.oracle.engines import differences, run_kernel
from tests.oracle.worlds import EASY, GREEDY, SCHEDULERS, STRICT, Case, worlds

FAMILIES = {"strict": STRICT, "greedy": GREEDY, "easy": EASY, "easy-fast": ("easy-fast",), "conservative": ("conservative",)}
assert set(SCHEDULERS) == {name for names in FAMILIES.values() for name in names}
COMMON = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("family", FAMILIES)
def test_kernel_equals_oracle(family: str) -> None:
    @settings(COMMON, max_examples=40)
    @given(case=worlds(FAMILIES[family]))
    def compare(case: Case) -> None:
        assert not differences(case), case.program()

    compare()


def test_every_scheduler_with_a_name_is_in_the_worlds() -> None:
    assert set(SCHEDULERS) == set(REGISTRY)


@pytest.mark.parametrize("shutdown", ["oracle", "oracle:0.25", "inertial", "random"])
def test_the_laws_hold_under_policies_that_the_oracle_does_not_know(shutdown: str) -> None:
    @settings(COMMON, max_examples=25)
    @given(case=worlds())
    def obey(case: Case) -> None:
        case.options["shutdown"] = shutdown
        check(run_kernel(case), case.jobs, case.platform, case.options.get("until_s"))

    obey()


@settings(COMMON, max_examples=60)
@given(case=worlds())
def test_the_kernel_obeys_the_laws(case: Case) -> None:
    check(run_kernel(case), case.jobs, case.platform, case.options.get("until_s"))
