"""Tables small enough to work out by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hand_tables import job_table


@pytest.fixture
def table() -> Any:
    return job_table


@pytest.fixture
def jobs() -> pl.DataFrame:
    """Two cores. A runs [0, 10) on both; B (submitted at 2, walltime 8, killed) [10, 18) on one; C (at 4) [10, 14) on
    one; D can never run; E and F are cut.
    """
    return job_table(
        [
            (0.0, 0.0, 10.0, 2, 20.0, "COMPLETED"),
            (2.0, 10.0, 18.0, 1, 8.0, "KILLED"),
            (4.0, 10.0, 14.0, 1, 40.0, "COMPLETED"),
            (5.0, None, None, 9, 40.0, "REJECTED"),
            (6.0, 14.0, None, 1, 40.0, "RUNNING"),
            (7.0, None, None, 1, 40.0, "QUEUED"),
        ]
    )


@pytest.fixture
def power() -> pl.DataFrame:
    """Two nodes over 20 s: node 0 computes 18 s at 190 W and idles 2 s at 95 W; node 1 computes 14 s, switches off for
    1 s at 101 W, is off for 5 s at 9 W.
    """
    rows = [
        (0, "computing", 18.0, 3420.0, 0),
        (0, "idle", 2.0, 190.0, 0),
        (1, "computing", 14.0, 2660.0, 0),
        (1, "switching_off", 1.0, 101.0, 1),
        (1, "off", 5.0, 45.0, 0),
    ]
    return pl.DataFrame(rows, schema=["node", "state", "seconds", "joules", "transitions"], orient="row")


@pytest.fixture
def nodes() -> pl.DataFrame:
    """The node intervals behind `power`."""
    rows = [
        (0, 0.0, 18.0, "computing"),
        (0, 18.0, 20.0, "idle"),
        (1, 0.0, 14.0, "computing"),
        (1, 14.0, 15.0, "switching_off"),
        (1, 15.0, 20.0, "off"),
    ]
    return pl.DataFrame(rows, schema=["node", "from_s", "to_s", "state"], orient="row")
