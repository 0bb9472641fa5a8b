"""Names of queues in order of priority: what they mean, how they are written, and one line for each mistake."""

from __future__ import annotations

import math

import pytest

import escala
from escala.errors import EscalaError
from escala.kernel import codes
from escala.kernel.state import OPTIONS
from escala.options import SPANS
from escala.policies.compose import scheduler
from escala.policies.queues import queue

JOBS = escala.Workload.from_jobs({"submit_s": [0.0, 0.0, 1.0], "runtime_s": [5.0, 3.0, 2.0], "cores": [1, 2, 1]})


@pytest.mark.parametrize(
    ("span", "seconds"),
    [("73h", 262_800), ("30m", 1800), ("2d", 172_800), ("90", 90), ("90s", 90), ("1.5h", 5400), ("0", 0)],
)
def test_a_span_has_a_unit(span: str, seconds: float) -> None:
    assert scheduler(f"easy:queue=sjf:guard={span}").guard_s == seconds
    assert scheduler(f"sjf:guard={span}").guard_s == seconds


def test_what_a_name_means() -> None:
    found = scheduler("easy:guard=24h:queue=saf")
    assert (found.queueing, found.ordering, found.guard_s) == (codes.EASY_PRIORITY, codes.BY_RANK, 86400)
    assert found.score is scheduler("saf").score
    assert scheduler("conservative:queue=wfp3").ordering == codes.BY_WFP3
    pair = scheduler("easy:queue=saf:backfill=xfactor")
    assert (pair.queueing, pair.ordering, pair.passing) == (codes.EASY_PRIORITY, codes.BY_PLACE, codes.BY_XFACTOR)
    assert scheduler("easy:queue=sjf:backfill=sjf") == scheduler("easy:queue=sjf")
    assert scheduler("sjf").guard_s == math.inf


def test_each_span_of_a_name_is_an_option_of_the_kernel() -> None:
    assert "guard" in SPANS and {f"{key}_us" for key in SPANS} <= set(OPTIONS.names or ())


def test_a_name_from_its_parts() -> None:
    assert queue("sjf") == "easy:queue=sjf"
    assert queue("saf", 73 * 3600.0) == "easy:queue=saf:guard=73h"
    assert queue("wfp3", 90.0, "conservative") == "conservative:queue=wfp3:guard=90s"
    assert queue("xfactor", 3600.0, backfill="sjf") == "easy:queue=xfactor:backfill=sjf:guard=1h"
    assert scheduler(queue("sjf", 5400)) == scheduler("easy:queue=sjf:guard=90m")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("easy:queue=sfj", "'sfj' is no score: did you mean sjf?"),
        ("easy:que=sjf", "did you mean queue=?"),
        ("easy:queue=sjf:gard=3h", "did you mean guard=?"),
        ("easy:queue=sjf:backfill=sfj", "'sfj' is no score: did you mean sjf?"),
        ("conservative:queue=sjf:backfill=saf", "it takes queue=, guard="),
        ("easy:backfill=sjf", "name an order too, easy:queue=sjf:backfill=sjf"),
        ("easy:queue=sjf:guard=3w", "guard=3w is no span of time: write it as 24h, 30m, 2d or 90 (seconds)"),
        ("easy:queue=sjf:guard=", "guard= is no span"),
        ("easy:queue=sjf:guard=-1", "guard=-1 is no span"),
        ("easy:queue=sjf:guard=nan", "guard=nan is no span"),
        ("easy:queue=sjf:queue=saf", "queue= is given twice"),
        ("easy:guard=3h", "name an order too, easy:queue=sjf:guard=3h"),
        ("easy:", "is no part that it takes"),
        ("fcfs:guard=3h", "fcfs takes nothing behind its name"),
        ("easy-sjf:guard=3h", "easy-sjf takes nothing behind its name"),
        ("sjf:queue=saf", "it takes guard="),
        ("esy:queue=sjf", "unknown scheduler 'esy:queue=sjf': did you mean"),
    ],
)
def test_a_wrong_name_is_one_line(name: str, line: str) -> None:
    with pytest.raises(EscalaError) as error:
        escala.simulate(JOBS, "2x1", name)
    assert line in str(error.value) and "\n" not in str(error.value)


def test_a_depth_needs_a_plan_made_anew() -> None:
    with pytest.raises(EscalaError, match="give rebuild=True"):
        escala.simulate(JOBS, "2x1", "conservative:queue=sjf", depth=1)
    assert len(escala.simulate(JOBS, "2x1", "conservative:queue=sjf", depth=1, rebuild=True).jobs) == 3
