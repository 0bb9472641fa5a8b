"""Small sites under Slurm's rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import escala
from tests.unit.slurm.by_hand import QUICK


@pytest.fixture
def site(tmp_path: Path) -> Any:
    def make(
        nodes: str = "NodeName=n[1-4] CPUs=1",
        partitions: str = "PartitionName=p Nodes=ALL Default=YES",
        more: str = QUICK,
    ) -> Any:
        path = tmp_path / "slurm.conf"
        path.write_text(f"ClusterName=hand\nSelectTypeParameters=CR_CPU\n{more}\n{nodes}\n{partitions}\n")
        return escala.read_site(path)

    return make
