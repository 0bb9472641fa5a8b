"""Workloads: jobs as one table, its readers, writers, transforms and generators, and what a workload is like."""

from escala.workload import generate
from escala.workload.batsim import write_batsim
from escala.workload.clean import CleaningRules
from escala.workload.describe import Description, day_group, describe
from escala.workload.read import read_workload
from escala.workload.swf import read_header, write_swf
from escala.workload.table import SCHEMA, Workload
from escala.workload.tabular import read_pack

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
    "write_swf",
]
