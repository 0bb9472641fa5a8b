"""Which nodes Slurm gives a job, by hand: cores, memory, GPUs, tasks and whole nodes. Times as in `by_hand`.

The rules are those of Slurm's documentation (slurm.conf, cons_tres) and of tests/golden/slurm.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import escala
from tests.unit.slurm.by_hand import QUICK, jobs, nodes, starts


def test_nodes_the_smallest_run_that_suffices_and_its_lowest(site: Any) -> None:
    """n1-2 and n4-8 are free: two nodes go to n1-2, three to n4-6, and five take the largest run first."""
    wide = site("NodeName=n[1-8] CPUs=1")
    assert nodes(jobs((0, 20, 60, 2), (0, 50, 60, 1), (25, 20, 60, 2)), wide)[2] == "0-1"
    assert nodes(jobs((0, 20, 60, 2), (0, 50, 60, 1), (25, 20, 60, 3)), wide)[2] == "3-5"
    assert nodes(jobs((0, 20, 60, 2), (0, 50, 60, 1), (25, 20, 60, 6)), wide)[2] == "0 3-7"


def test_a_small_job_takes_the_fullest_node_that_suffices(site: Any) -> None:
    shared = site("NodeName=n[1-3] CPUs=4")
    work = jobs((0, 50, 60, 1), (0, 50, 60, 1), (1, 20, 60, 1), tasks=[2, 3, 1])
    assert nodes(work, shared) == ["0", "1", "1"]


def test_tasks_without_nodes_pack_as_they_fit(site: Any) -> None:
    """Three nodes of 4 CPUs with 1, 1 and 3 free: five tasks spread as 1 + 1 + 3."""
    shared = site("NodeName=n1 CPUs=4 Features=a\nNodeName=n2 CPUs=4 Features=b\nNodeName=n3 CPUs=4 Features=c")
    table = {
        "submit_s": [0.0, 0.0, 0.0, 1.0],
        "runtime_s": [50.0] * 4,
        "walltime_s": [60.0] * 4,
        "nodes": [1, 1, 1, None],
        "tasks": [3, 3, 1, 5],
        "features": ["a", "b", "c", None],
    }
    result = escala.simulate(escala.Workload.from_jobs(table), shared, scheduler="slurm")
    assert result.allocations.filter(job_id="4").select("node", "cores").rows() == [(0, 1), (1, 1), (2, 3)]


def test_exclusive_takes_whole_nodes_and_waits_for_empty_ones(site: Any) -> None:
    shared = site("NodeName=n[1-2] CPUs=4")
    work = jobs((0, 50, 60, 1), (1, 20, 60, 2), (2, 5, 60, 1), tasks=[1, 2, 4], exclusive=[False, True, False])
    result = escala.simulate(work, shared, scheduler="slurm")
    assert result.jobs["start_s"][1] > 50
    assert result.allocations.filter(job_id="2")["cores"].to_list() == [4, 4]


def test_memory_is_counted_by_core_with_the_default(site: Any) -> None:
    """4000 MB a node, 1000 MB a CPU by default: a job of 3000 MB a CPU leaves room for one CPU only."""
    shared = site(
        "NodeName=n1 CPUs=4 RealMemory=4000", more=f"SelectTypeParameters=CR_CPU_Memory\nDefMemPerCPU=1000\n{QUICK}"
    )
    work = jobs((0, 50, 60, 1), (1, 20, 60, 1), (2, 20, 60, 1), memory_mb_per_core=[3000, None, None])
    found = starts(work, shared)
    assert found[1] < 2 and found[2] > 20


def test_a_node_without_memory_for_all_tasks_of_one_node_parts_the_run(site: Any) -> None:
    """2 tasks of 1000 MB on one node: n2 has memory for one of them, so it is no neighbour. n1 alone has fewer CPUs
    than n3-4 together."""
    rows = "".join(
        f"NodeName=n{k} CPUs={cpus} RealMemory=4000 Features=f{k}\n" for k, cpus in ((1, 4), (2, 4), (3, 3), (4, 4))
    )
    shared = site(rows, more="SelectTypeParameters=CR_CPU_Memory\n" + QUICK)
    work = jobs(
        (0, 50, 60, 1),
        (1, 20, 60, 1),
        tasks=[1, 2],
        features=["f2", None],
        memory_mb_per_node=[3000, None],
        memory_mb_per_core=[None, 1000],
    )
    assert nodes(work, shared) == ["1", "0"]


def test_tasks_a_node_are_all_that_a_node_offers(site: Any) -> None:
    """n1 is free and n2 half full: with one task a node both offer one CPU, and the first is taken; without, the
    fullest."""
    shared = site("NodeName=n1 CPUs=4 Features=a\nNodeName=n2 CPUs=4 Features=b")
    both = {"tasks": [2, 1], "features": ["b", None]}
    assert nodes(jobs((0, 50, 60, 1), (1, 20, 60, 1), **both, tasks_per_node=[None, 1]), shared) == ["1", "0"]
    assert nodes(jobs((0, 50, 60, 1), (1, 20, 60, 1), **both), shared) == ["1", "1"]


def test_gpus_by_kind_and_task(site: Any) -> None:
    gpus = site("NodeName=n1 CPUs=8 Gres=gpu:a100:2\nNodeName=n2 CPUs=8 Gres=gpu:t4:4")
    work = jobs(
        (0, 50, 60, 1), (1, 20, 60, 1), (2, 20, 60, 1), gpus_per_node=[2, None, 1], gpu_kind=["a100", None, "a100"],
        tasks=[1, 3, 1], gpus_per_task=[None, 1, None],
    )  # fmt: skip
    result = escala.simulate(work, gpus, scheduler="slurm")
    assert result.jobs["nodes"].to_list() == ["0", "1", "0"]
    assert result.jobs["start_s"][2] > 50


def test_of_gpus_beyond_those_of_each_node_nothing_counts_in_the_choice(site: Any) -> None:
    """slurmctld sets nodes with more GPUs at hand before others ("Favor nodes with more co-located GPUs"), but counts
    no more of them than --gpus-per-node asks for: n1 has enough and is the first. To tasks with GPUs all of them count.
    (24.11: gres_select_filter.c)"""
    gpus = site("NodeName=n1 CPUs=8 Gres=gpu:1\nNodeName=n2 CPUs=8 Gres=gpu:4")
    assert nodes(jobs((0, 50, 60, 1), gpus_per_node=[1]), gpus) == ["0"]
    assert nodes(jobs((0, 50, 60, 1), gpus_per_task=[1]), gpus) == ["1"]
    assert nodes(jobs((0, 50, 60, 1), gpus_per_node=[1], exclusive=[True]), gpus) == ["1"]


def test_to_a_job_with_gpus_a_node_offers_the_cpus_of_its_tasks(site: Any) -> None:
    """n2 is half full, and the fullest node that suffices goes to a job of one node. With GPUs each node counts with
    the CPUs of the tasks alone (24.11: gres_filter.c): n1 is as good, and the first."""
    gpus = site("NodeName=n1 CPUs=4 Gres=gpu:2 Features=a\nNodeName=n2 CPUs=4 Gres=gpu:2 Features=b")
    both = {"tasks": [2, 1], "features": ["b", None]}
    assert nodes(jobs((0, 50, 60, 1), (1, 20, 60, 1), **both), gpus) == ["1", "1"]
    assert nodes(jobs((0, 50, 60, 1), (1, 20, 60, 1), **both, gpus_per_node=[None, 1]), gpus) == ["1", "0"]


def test_an_exclusive_job_has_all_gpus_of_its_nodes(site: Any) -> None:
    """sbatch --exclusive: "the job is allocated all CPUs and GRES on all nodes in the allocation". Four of six GPUs are
    in use then."""
    gpus = site("NodeName=n[1-2] CPUs=4 Gres=gpu:4")
    gpus = replace(gpus, qos={"normal": 1}, qos_limits={"normal": {"grp_tres": {"gpu": 6}}})
    work = jobs(
        (0, 50, 60, 1),
        (1, 20, 60, 1),
        (2, 20, 60, 1),
        gpus_per_node=[None, 3, 2],
        exclusive=[True, False, False],
        qos=["normal"] * 3,
    )
    found = starts(work, gpus)
    assert found[1] > 50 and found[2] < 3


def test_to_an_exclusive_job_a_node_offers_whole_tasks(site: Any) -> None:
    """Of 3 CPUs a task of 2 can use 2, as much as on n3: the first of the two runs is taken. All 3 are the job's."""
    shared = site("NodeName=n1 CPUs=3 Features=f\nNodeName=n2 CPUs=1\nNodeName=n3 CPUs=2 Features=f")
    work = jobs((0, 50, 60, 1), tasks=[1], cores_per_task=[2], exclusive=[True], features=["f"])
    result = escala.simulate(work, shared, scheduler="slurm")
    assert result.allocations.select("node", "cores").rows() == [(0, 3)]


def test_the_least_loaded_node_has_the_largest_part_of_its_cores_free(site: Any) -> None:
    """n1 has 4 of 8 cores free, n2 all of its 4 (_eval_nodes_lln of 24.11; NEWS of 22.05)."""
    for more, parts in ((",CR_LLN", ""), ("", " LLN=YES")):
        place = site("NodeName=n1 CPUs=8\nNodeName=n2 CPUs=4", f"PartitionName=p Nodes=ALL Default=YES{parts}")
        place = replace(place, settings={**place.settings, "selecttypeparameters": "CR_CPU" + more})
        assert nodes(jobs((0, 50, 60, 1), (1, 20, 60, 1), tasks=[4, 1]), place) == ["0", "1"]
