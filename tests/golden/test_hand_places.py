"""Hand-made schedules: jobs that may lie on some of the nodes only, by features and by name. Times in seconds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.hand import Engine, job

ORDERS = ["fcfs", "first-fit", "sjf", "sjf-fit", "packer", "tetris", "easy", "easy:queue=sjf"]


def one(job_id: str, submit_s: float, runtime_s: float, cores: int = 1, **more: Any) -> dict[str, Any]:
    """A job of one node."""
    return job(job_id, submit_s, runtime_s, cores, nodes=1, **more)


@pytest.mark.parametrize("scheduler", ORDERS)
def test_on_nodes_with_its_features_alone(run: Engine, scheduler: str) -> None:
    """Four nodes of 2 cores. A asks for 3 cores of nodes with x: node 1 whole, and one core of node 3. B needs x and y:
    node 3. C needs x or z: no core of nodes 1 and 3 is free, node 2 has z. D may lie anywhere: node 0."""
    jobs = [job("A", 0, 10, 3, features="x"), one("B", 1, 10, features="x&y"), one("C", 2, 10, features="x|z")]
    got = run([*jobs, one("D", 3, 10)], [2] * 4, scheduler, features=[[], ["x"], ["z"], ["y", "x"]])
    assert got.start == {"A": 0, "B": 1, "C": 2, "D": 3}
    assert got.nodes == {"A": "1 3", "B": "3", "C": "2", "D": "0"}


@pytest.mark.parametrize("scheduler", ORDERS)
def test_on_the_nodes_that_it_names(run: Engine, scheduler: str) -> None:
    """Three nodes of one core. A is to have nodes 0 and 2, B any but these two, C node 0 when A gives it back."""
    jobs = [job("A", 0, 10, 2, nodes=2, required_nodes="n0,n2"), job("B", 1, 20, excluded_nodes="n2,n0")]
    got = run([*jobs, job("C", 2, 5, required_nodes="n0")], [1] * 3, scheduler, features=[[]] * 3)
    assert got.start == {"A": 0, "B": 1, "C": 10} and got.nodes == {"A": "0 2", "B": "1", "C": "0"}


def test_a_strict_head_waits_for_its_feature_and_all_behind_it_wait(run: Engine) -> None:
    """Node 1 alone has x. A has it to 10; H waits for it, and B behind H though node 0 is free. first-fit starts B."""
    jobs = [one("A", 0, 10, features="x"), one("H", 1, 5, features="x"), one("B", 2, 5)]
    assert run(jobs, [1, 1], "fcfs", features=[[], ["x"]]).start == {"A": 0, "H": 10, "B": 10}
    assert run(jobs, [1, 1], "first-fit", features=[[], ["x"]]).start == {"A": 0, "H": 10, "B": 2}


def test_easy_sets_aside_a_node_with_the_feature_of_its_head(run: Engine) -> None:
    """Three nodes of 2 cores; 1 and 2 have x. A has node 1 to 10, B node 2 to 20. Head H needs x: at 10 on node 1. C,
    of 100 s, has node 0, which is no node for H. D, of one core and x, waits: none is free. When B has ended, at 20,
    node 2 is for D."""
    jobs = [one("A", 0, 10, 2, features="x"), one("B", 0, 20, 2, features="x"), one("H", 1, 30, 2, features="x")]
    got = run([*jobs, one("C", 2, 100, 2), one("D", 3, 5, features="x")], [2] * 3, "easy", features=[[], ["x"], ["x"]])
    assert got.start == {"A": 0, "B": 0, "H": 10, "C": 2, "D": 20}
    assert got.nodes == {"A": "1", "B": "2", "H": "1", "C": "0", "D": "2"}


def test_easy_leaves_its_head_the_node_that_it_may_lie_on(run: Engine) -> None:
    """Nodes of 4 cores; node 1 has x, and A 3 cores of it to 10. Head H needs 4 cores with x: node 1 at 10. B, of one
    core and 100 s, may not have the fourth core of node 1, which alone is free; C, of 8 s, may."""
    jobs = [one("F", 0, 200, 4, required_nodes="n0"), one("A", 0, 10, 3, features="x"), one("H", 1, 5, 4, features="x")]
    got = run([*jobs, one("B", 2, 100), one("C", 2, 8)], [4, 4], "easy", features=[[], ["x"]])
    assert got.start == {"F": 0, "A": 0, "H": 10, "B": 15, "C": 2}


def test_what_becomes_free_elsewhere_is_nothing_to_its_head(run: Engine) -> None:
    """Nodes of 4 cores; node 1 has x. F has node 0 whole to 10, A 2 cores of node 1 to 20. Head H needs 4 cores with x:
    not at 10 on node 0, but at 20. B, of 15 s, may have a core of node 1 until then; C, of 100 s, may not."""
    jobs = [one("F", 0, 10, 4), one("A", 0, 20, 2, features="x"), one("H", 1, 5, 4, features="x"), one("B", 2, 15)]
    got = run([*jobs, one("C", 2, 100, features="x")], [4, 4], "easy", features=[[], ["x"]])
    assert got.start == {"F": 0, "A": 0, "H": 20, "B": 2, "C": 25} and got.nodes["B"] == "1"


def test_who_cannot_pass_on_its_nodes_is_no_sign_for_others(run: Engine) -> None:
    """Nodes of 4 cores, 0 with x and 1 with y. H waits for node 0 until 20. B, of 30 s and x, cannot pass. C, of 30 s
    and y, can, for H does without node 1; D, as B, cannot. E, of any node, can on node 1 too."""
    jobs = [one("A", 0, 20, 4, features="x"), one("H", 1, 5, 4, features="x")]
    jobs += [one("B", 2, 30, features="x"), one("C", 2, 30, features="y"), one("D", 2, 30, features="x")]
    got = run([*jobs, one("E", 2, 30)], [4, 4], "easy", features=[["x"], ["y"]])
    assert got.start == {"A": 0, "H": 20, "B": 25, "C": 2, "D": 25, "E": 2}


def test_a_strict_head_wakes_nodes_on_which_it_may_lie(run: Engine) -> None:
    """Four nodes, all off; 1 and 3 have x. Node 0 is woken for A, and has a core to spare. H asks for two nodes with x:
    these are woken, and not node 2."""
    jobs = [job("A", 0, 100), job("H", 50, 10, 2, nodes=2, features="x")]
    features = [[], ["x"], [], ["x"]]
    got = run(jobs, [2] * 4, "fcfs", features=features, shutdown="timeout:200", start_off=True)
    assert got.start == {"A": 20, "H": 70} and got.nodes["H"] == "1 3"
    assert [state for state, _, _ in got.life(2)] == ["off"]


def test_whole_nodes_of_one_size(run: Engine) -> None:
    """Nodes of 8, 4 and 4 cores. A asks for 5 cores on whole nodes with x, which are those of 4: it has both. B, whole
    on any node, has node 0 to itself though it takes one core of it: C (7 cores) and D (one) start once A is gone from
    the others."""
    jobs = [job("A", 0, 10, 5, features="x", exclusive=True), job("B", 1, 10, 1, exclusive=True), job("C", 2, 5, 7)]
    got = run([*jobs, job("D", 3, 5)], [8, 4, 4], "easy", features=[[], ["x"], ["x"]])
    assert got.start == {"A": 0, "B": 1, "C": 10, "D": 10}
    assert got.nodes == {"A": "1-2", "B": "0", "C": "1-2", "D": "2"}


def test_the_fewest_nodes_are_those_that_hold_its_tasks(run: Engine) -> None:
    """Nodes of 8, 4, 4 and 4 cores; 12 tasks with 10 MB of each node. The best node holds 8, and two nodes would each
    need room for 6, which one has. So it has three nodes with 4 cores each. Of nodes with x there are two."""
    asks: dict[str, Any] = {"tasks": 12, "memory_mb_per_node": 10}
    cores, further, features = [8, 4, 4, 4], {"memory": [10] * 4}, [["x"], [], [], ["x"]]
    got = run([job("A", 0, 10, 12, **asks)], cores, "easy", resources=further, features=features)
    assert got.nodes["A"] == "0-2"
    asks |= {"tasks": 6, "features": "x"}
    got = run([job("B", 0, 10, 6, **asks)], cores, "easy", resources=further, features=features)
    assert got.nodes["B"] == "0"


def test_conservative_brings_a_job_forward_past_one_that_asks_for_the_same(run: Engine) -> None:
    """Three nodes of one core; 0 and 2 have x, which all need. A has node 0 to 3, B node 2, as planned to 6. C, of 6 s,
    is to have node 0 at 3, D, of 12 s, node 2 at 6. B ends at 2. C finds no 6 s there before D, and stays. D, with what
    it holds, begins at once."""
    jobs = [one("A", 0, 3, features="x"), one("B", 0, 2, features="x", walltime_s=6)]
    jobs += [one("C", 0, 2, features="x", walltime_s=6), one("D", 0, 1, features="x", walltime_s=12)]
    got = run(jobs, [1] * 3, "conservative", features=[["x"], [], ["x"]])
    assert got.start == {"A": 0, "B": 0, "C": 3, "D": 2} and (got.nodes["C"], got.nodes["D"]) == ("0", "2")
