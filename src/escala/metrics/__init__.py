"""Metrics over the tables of a Result: jobs, energy, machine, and honest comparison. They read tables only, never a
live simulator."""

from escala.metrics import compare, energy, jobs, machine
from escala.metrics.bill import Prices, Series, bill, read_series
from escala.metrics.compare import table
from escala.metrics.headroom import headroom
from escala.metrics.promises import Promises, promises
from escala.metrics.summary import summarise

__all__ = [
    "Prices",
    "Promises",
    "Series",
    "bill",
    "compare",
    "energy",
    "headroom",
    "jobs",
    "machine",
    "promises",
    "read_series",
    "summarise",
    "table",
]
