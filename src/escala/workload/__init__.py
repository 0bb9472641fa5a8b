"""Workloads: jobs as one table, its readers, writers and transforms."""

from escala.workload.table import SCHEMA, Workload

__all__ = ["SCHEMA", "Workload"]
