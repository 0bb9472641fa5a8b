"""Workloads: jobs as one table, its readers, writers, transforms and generators, and what a workload is like."""

from typing import TYPE_CHECKING

from escala.lazy import loaded_when_used
from escala.workload.clean import CleaningRules
from escala.workload.columns import SCHEMA
from escala.workload.describe import Description, day_group, describe
from escala.workload.read import read_workload
from escala.workload.swf import read_header, write_swf
from escala.workload.table import Workload
from escala.workload.tabular import read_pack
from escala.workload.to_batsim import write_batsim

if TYPE_CHECKING:
    from escala.workload import generate
    from escala.workload.to_parquet import write_parquet

__all__ = [
    "SCHEMA",
    "CleaningRules",
    "Description",
    "Workload",
    "day_group",
    "describe",
    "generate",
    "read_header",
    "read_pack",
    "read_workload",
    "write_batsim",
    "write_parquet",
    "write_swf",
]

__getattr__ = loaded_when_used(
    __name__, {"generate": "escala.workload.generate", "write_parquet": "escala.workload.to_parquet"}
)
