"""A rule on the values of a workload's table."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl


class Rule(NamedTuple):
    """`bad` holds for the jobs whose `column` breaks the rule (null: it does not)."""

    column: str
    bad: pl.Expr
    need: str
