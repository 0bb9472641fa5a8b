"""Options of a wrong kind are refused by name, in one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import escala
from escala.errors import EscalaError
from escala.options import Options

ONE = escala.Workload.from_jobs({"submit_s": [0.0], "cores": [1], "runtime_s": [5.0]})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("depth", value) for value in ("x", 1.5, 0, -1, True, 2**70)),
        *(
            (name, value)
            for name in ("until_s", "plan_margin_s")
            for value in ("x", math.nan, math.inf, 1e300, [1.0], True, -1.0)
        ),
        *(("start_s", value) for value in ("x", None, math.nan)),
        *(("seed", value) for value in ("x", None, 0.5, -1)),
        *((name, value) for name in ("rebuild", "start_off", "record") for value in ("x", None, 1)),
        *((name, value) for name in ("rules", "head", "estimate", "oversized") for value in ("x", None, [1], 5)),
        ("dept", 1),
    ],
)
def test_refused(name: str, value: Any) -> None:
    with pytest.raises(EscalaError, match=name) as caught:
        escala.simulate(ONE, "1x1", **{name: value})
    assert "\n" not in str(caught.value)


def test_numbers_of_numpy_are_taken() -> None:
    options = Options(depth=np.int64(3), until_s=np.float32(5), seed=np.int32(2), rebuild=np.bool_(True))  # type: ignore[arg-type]
    plain = (options.depth, options.until_s, options.seed, options.rebuild)
    assert plain == (3, 5.0, 2, True) and [type(value) for value in plain] == [int, float, int, bool]


@pytest.mark.parametrize("workload", [None, 5, ["a.swf"], {"submit_s": [0.0]}])
def test_what_is_no_workload(workload: Any) -> None:
    with pytest.raises(EscalaError, match="a workload is a Workload or the path of a log"):
        escala.simulate(workload, "1x1")


def test_a_misspelt_word_is_answered_with_the_near_one() -> None:
    with pytest.raises(EscalaError, match="rules='batshced' is not known: did you mean batsched"):
        Options(rules="batshced")
