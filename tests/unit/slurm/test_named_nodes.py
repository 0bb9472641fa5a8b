"""Nodes that a job names (--nodelist, --exclude), by hand.

"--nodelist: Request a specific list of hosts. The job will contain all of these hosts and possibly additional hosts as
needed"; "--exclude: Explicitly exclude certain nodes" (https://slurm.schedmd.com/sbatch.html).
"""

from __future__ import annotations

from typing import Any

import pytest

import escala
from tests.unit.slurm.by_hand import jobs, nodes, starts


def test_on_those_that_it_names_and_on_none_of_the_others(site: Any) -> None:
    """The second waits for the first's nodes though others are free, and the last finds room beside both."""
    work = jobs(
        *((0, 100, 120, 2), (1, 20, 60, 2), (2, 20, 60, 1), (3, 300, 360, 1)),
        required_nodes=["n[2-3]", "n[1,3]", None, None],
        excluded_nodes=[None, None, "n[1-3]", "n4"],
    )
    assert nodes(work, site()) == ["1-2", "0 2", "3", "1"]
    first, second, third, last = starts(work, site())
    assert first < 1 and second == pytest.approx(100.8, abs=1) and third < 4
    assert last == pytest.approx(100.8, abs=1)  # n1 is planned for the second, n2 is free behind the first


def test_nodes_outside_of_its_partition_are_none(site: Any) -> None:
    parts = "PartitionName=p Nodes=n[1-2] Default=YES\nPartitionName=q Nodes=n[3-4]"
    work = jobs((0, 10, 60, 1), (0, 10, 60, 1), required_nodes=["n3", "n3"], partition=["p", "p,q"])
    with pytest.raises(escala.EscalaError, match=r"job '1' of workload .* can never run"):
        starts(work, site(partitions=parts))
    assert starts(work, site(partitions=parts), oversized="drop")[0] is None
    assert escala.simulate(work, site(partitions=parts), scheduler="slurm", oversized="drop").jobs["nodes"][1] == "2"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"required_nodes": ["n9"]},
            "workload 'workload': job '1': names node 'n9', which site 'hand' has not: mend its required_nodes or",
        ),
        ({"excluded_nodes": ["n[1"]}, "workload 'workload': job '1': required_nodes or excluded_nodes: host list"),
        ({"required_nodes": ["n[1-2]"]}, "required_nodes are 2 nodes: give as many as nodes"),
    ],
)
def test_bad_names_are_one_line(site: Any, columns: dict[str, Any], said: str) -> None:
    with pytest.raises(escala.EscalaError) as caught:
        starts(jobs((0, 10, 60, 1), **columns), site())
    assert said in str(caught.value) and "\n" not in str(caught.value)
