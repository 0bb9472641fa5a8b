"""On which nodes jobs may lie: what they ask for, where that counts, and who is refused in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import escala
from escala import allowed
from escala.envs.slots.team.policy import TeamPolicy
from escala.errors import EscalaError
from escala.kernel import codes
from escala.options import Options
from escala.parts import Parts, counting, parts_of
from escala.platform import Platform, Site
from escala.platform.sharers import SHARERS
from escala.platform.site import Partition
from escala.policies.run import pair
from escala.simulation import Simulation
from escala.unseen import COUNTS, UNEVEN

PLAIN = Platform.uniform(4, 8)
SITE = Site(
    "four", PLAIN.cores, PLAIN.profiles, PLAIN.profile_of, names=("a1", "a2", "b1", "b2"),
    features=(("x",), ("x", "y"), ("y",), ()),
)  # fmt: skip
ONE_PARTITION = replace(SITE, partitions=(Partition("all", (0, 1, 2, 3), default=True),))
UNLIKE = Site("unlike", [8, 8, 4, 4], PLAIN.profiles, PLAIN.profile_of, names=SITE.names, features=SITE.features)  # type: ignore[arg-type]
TIMES = {"submit_s": 0.0, "runtime_s": 10.0, "walltime_s": 10.0, "cores": 2}
PLACES = ("features", "required_nodes", "excluded_nodes")


def log(*rows: dict[str, Any]) -> escala.Workload:
    return escala.Workload.from_jobs([{**TIMES, "single_node": False, **dict.fromkeys(PLACES), **row} for row in rows])


def nodes(found: Parts, row: int = 0) -> list[str]:
    assert found.allowed is not None
    mask = found.allowed.mask(int(found.which[row]), SITE.n_nodes)
    return [name for name, may in zip(SITE.names, mask, strict=True) if may]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"features": "x"}, "a1 a2"),
        ({"features": "x&y"}, "a2"),
        ({"features": "x , y"}, "a2"),
        ({"features": "x|y"}, "a1 a2 b1"),
        ({"features": "x|y&x"}, "a1 a2"),
        ({"features": "x|(y&x)"}, "a1 a2"),
        ({"features": "y&( x | y )"}, "a2 b1"),
        ({"features": "x|y&(y)"}, "a2 b1"),
        ({"features": "(" * 98 + "x&((y)|(x&y))" + ")" * 98}, "a2"),
        ({"features": "y", "excluded_nodes": "a[1-2]"}, "b1"),
        ({"required_nodes": "b[1-2]", "nodes": 2}, "b1 b2"),
        ({"required_nodes": "b1", "features": "x"}, ""),
    ],
)
def test_nodes_that_a_job_asks_for(asked: dict[str, Any], expected: str) -> None:
    found = parts_of(log(asked, {}), SITE)
    assert found is not None and nodes(found) == expected.split()
    assert found.single.tolist() == [2, 0] and found.which.tolist() == [1, 0]


@pytest.mark.parametrize("scheduler", ["easy", "slurm"])
@pytest.mark.parametrize("text", ["x&", "&", "|x", "x||y", "x|,y", " ", "(x", "x)", "()", "x(y)", "(x)y", "(x&)", ")("])
def test_what_is_no_expression_of_features_is_one_line(text: str, scheduler: str) -> None:
    with pytest.raises(EscalaError) as caught:
        escala.simulate(log({"features": text}), ONE_PARTITION, scheduler)
    said = f"workload 'workload': job '1': features {text!r} are no expression: join names by & and |"
    assert str(caught.value).startswith(said)
    deep = log({"features": "(" * 101 + "x" + ")" * 101})
    with pytest.raises(EscalaError, match="at most 100 inside one another"):
        escala.simulate(deep, ONE_PARTITION, scheduler)


@pytest.mark.parametrize("scheduler", ["easy", "conservative", "slurm"])
def test_parentheses_come_first_under_every_scheduler(scheduler: str) -> None:
    rows = [{"features": "y&(x|y)"}, {"features": "x|(x&y)"}, {"features": "y|x&(y&x)"}]
    found = [escala.simulate(log({**row, "cores": 1}), ONE_PARTITION, scheduler).jobs["nodes"][0] for row in rows]
    assert found == ["1", "0", "1"]


def test_more_nodes_than_any_machine_has_are_not_given_as_another_number() -> None:
    with pytest.raises(EscalaError, match="needs more than 2,147,483,647 nodes with 1 core each"):
        escala.simulate(log({"nodes": 10**12, "tasks": 10**12, "cores": 1}), PLAIN)


def test_a_blank_inside_a_feature_joins_nothing() -> None:
    with pytest.raises(EscalaError, match="needs feature 'x y', which no node"):
        escala.simulate(log({"features": "x y"}), SITE)


def test_cores_of_any_nodes_with_a_feature_are_tasks_of_one_core() -> None:
    found = parts_of(log({"features": "x", "cores": 12}, {"features": "x", "single_node": True}), SITE)
    assert found is not None and (found.parts.tolist(), found.most.tolist()) == ([12, 1], [12, 1])
    assert found.share.tolist() == [1, 2] and found.single.tolist() == [2, 2]


def test_equal_sets_are_one_and_the_set_of_all_is_none() -> None:
    rows = [{"features": "x"}, {"excluded_nodes": "b2,b1"}, {"excluded_nodes": "b1,b2"}, {"features": ""}]
    found = parts_of(log(*rows, {"required_nodes": "a1,a2,b1,b2", "nodes": 4, "cores": 4}), SITE)
    assert found is not None and found.which.tolist() == [1, 1, 1, 0, 0] and found.sets.shape == (2, 1)
    assert found.sets[:, 0].tolist() == [0b1111, 0b0011]
    many = Platform.uniform(130, 1)
    named = Site("m", many.cores, many.profiles, many.profile_of, names=[f"n{k}" for k in range(130)])  # type: ignore[arg-type]
    wide = parts_of(log({"excluded_nodes": "n[1-129]"}), named)
    assert wide is not None and wide.sets[1].tolist() == [1, 0, 0]


def test_they_count_where_the_platform_has_features_and_names() -> None:
    asking = log({"features": "x", "excluded_nodes": "a1"})
    assert counting(asking.jobs, SITE) == {"features": "", "excluded_nodes": ""}
    why = {"features": "has no features of nodes", "excluded_nodes": "has no names of nodes"}
    assert counting(asking.jobs, PLAIN) == why and parts_of(asking, PLAIN) is None
    named = Platform("named", PLAIN.cores, PLAIN.profiles, PLAIN.profile_of, names=("a1", "a2", "a3", "a4"))
    assert counting(asking.jobs, named) == {"features": why["features"], "excluded_nodes": ""}
    assert escala.simulate(asking, named).jobs["nodes"].to_list() == ["1"]


def test_whole_nodes_of_one_size_are_had_with_their_cores_and_others_with_all_that_share_them() -> None:
    """x is of nodes of 8 cores, y of one of 8 and one of 4."""
    rows = [{"exclusive": True, "features": "x"}, {"exclusive": True, "features": "y"}, {"exclusive": None}]
    found = parts_of(log(*rows), UNLIKE)
    assert found is not None and found.held.tolist() == [8, 2, 2]
    assert found.parts.tolist() == [1, 1, 2] and found.anywhere.tolist() == [False, False, True]
    assert found.demands[SHARERS].tolist() == [1, 8, 1] and found.single.tolist() == [2, 2, 2]
    assert counting(log(*rows).jobs, UNLIKE)["exclusive"] == ""
    alike = parts_of(log(rows[0], rows[2]), UNLIKE)
    assert alike is not None and alike.demands == {} and alike.parts.tolist() == [1, 0]


def test_who_cannot_be_dealt_out_evenly_shares_nodes_of_several_sizes_and_that_is_said() -> None:
    """21 cores do not fit evenly on any nodes of 8, 8, 4 and 4, which have 24: such a job packs. 16 have two nodes to
    themselves."""
    asking = log({"exclusive": True, "cores": 16}, {"exclusive": True, "cores": 21}, {})
    found = parts_of(asking, UNLIKE)
    assert found is not None and found.uneven and found.demands[SHARERS].tolist() == [8, 1, 1]
    assert found.parts.tolist() == [2, 21, 2] and found.anywhere.tolist() == [False, True, True]
    with pytest.warns(escala.EscalaWarning, match=f"^{UNEVEN}$"):
        run = escala.simulate(asking, UNLIKE, "easy")
    assert run.unseen == {"exclusive": UNEVEN} and run.jobs["nodes"].to_list() == ["0-1", "0-3", "2"]
    named = log({"exclusive": True, "cores": 12, "nodes": 3})
    assert parts_of(named, UNLIKE).uneven is False  # type: ignore[union-attr]


def test_a_run_in_which_whole_nodes_did_not_count_is_run_again_with_a_remark() -> None:
    asking = log({"exclusive": True}, {})
    run = escala.simulate(asking, UNLIKE, "easy")
    escala.rerun(run, asking)
    kept = {name: told for name, told in run.manifest["columns"].items() if name != "exclusive"}
    old = {**run.manifest, "columns": kept, "unseen": {"exclusive": "the platform has nodes of several sizes"}}
    with pytest.warns(escala.EscalaWarning, match=f"^{COUNTS}$"):
        again = escala.rerun(replace(run, manifest=old), asking)
    assert again.jobs.equals(run.jobs)


def test_a_team_of_slots_gives_no_job_nodes_of_several_sizes_to_itself() -> None:
    machine = Platform("three", [8, 8, 4], PLAIN.profiles, [0, 0, 0])  # type: ignore[arg-type]
    asking = log({"single_node": True, "exclusive": True}, {"single_node": True})
    with pytest.raises(EscalaError, match="sjf gives no job nodes of several sizes to itself: leave out the column"):
        escala.simulate(asking, machine, TeamPolicy("sjf", agents=3))


def test_who_shares_cannot_be_a_resource_of_a_platform() -> None:
    with pytest.raises(EscalaError, match=r"^platform '1x1': no kind of resource can be called 'jobs beside': choose"):
        Platform.uniform(1, 1, resources={SHARERS: 1})


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "packer", "conservative"])
def test_cores_of_any_nodes_that_there_are_not_are_refused_as_such_beside_whole_nodes(scheduler: str) -> None:
    asking = log({"exclusive": True}, {"cores": 25})
    with pytest.raises(EscalaError, match=r"^job '2' .* needs 25 cores, and platform 'unlike' has 24: use a larger"):
        escala.simulate(asking, UNLIKE, scheduler)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown feature": ({"features": "z"}, "job '1' .* needs feature 'z', which no node of platform 'four' has:"),
    "one of two": ({"features": "x|z"}, "needs feature 'z', which no node"),
    "too few": (
        {"features": "x", "nodes": 3, "cores": 3},
        "needs 3 nodes with 1 core each, which platform 'four' does not have among the 2 of its 4 nodes open to it",
    ),
    "too small": (
        {"features": "x&y", "cores": 9},
        "among the 1 of its 4 nodes open to it .features 'x&y'.: ask for others",
    ),
    "one node": (
        {"required_nodes": "b2", "features": "y", "single_node": True},
        "among the 0 of its 4 nodes open to it .features 'y', required_nodes 'b2'.",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "sjf-fit"])
def test_what_fits_none_of_its_nodes_is_refused_in_one_line(scheduler: str, what: str) -> None:
    job, said = REFUSED[what]
    two = log({"nodes": None, **job}, {"nodes": None})
    with pytest.raises(EscalaError, match=f"^[^\n]*{said}[^\n]*drop such jobs"):
        escala.simulate(two, SITE, scheduler)
    assert escala.simulate(two, SITE, scheduler, oversized="drop").jobs["state"].to_list() == ["REJECTED", "KILLED"]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"required_nodes": "c1"}, "names node 'c1', which site 'four' has not"),
        ({"excluded_nodes": "a[1"}, "required_nodes or excluded_nodes: host list 'a[1' has a [ that is not closed"),
        (
            {"required_nodes": "a[1-2]"},
            "required_nodes are 2 nodes: give as many as nodes; others beside them",
        ),
    ],
)
def test_names_that_are_none_are_one_line_as_under_slurm(job: dict[str, Any], said: str) -> None:
    for scheduler in ("easy", "slurm"):
        with pytest.raises(EscalaError) as caught:
            escala.simulate(log(job), SITE, scheduler, oversized="drop")
        assert str(caught.value).startswith(f"workload 'workload': job '1': {said}") and "\n" not in str(caught.value)


def test_too_many_sets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed, "MOST_WORDS", 2)
    asking = log({"features": "x"}, {"features": "y"})
    with pytest.raises(EscalaError, match="more than 2 different sets of the 4 nodes of platform 'four': leave out"):
        escala.simulate(asking, SITE)


def test_orders_and_slurm_agree_on_where_jobs_lie() -> None:
    """Each alone on the machine: the nodes that it may have are the same."""
    rows = [{"features": "x"}, {"features": "y&x"}, {"excluded_nodes": "a1"}, {"required_nodes": "b[1-2]", "nodes": 2}]
    for row in rows:
        alone = log({**row, "cores": 2})
        by_slurm, by_easy = (escala.simulate(alone, SITE, name).jobs["nodes"][0] for name in ("slurm", "easy"))
        assert by_slurm == by_easy


def test_simulations_of_one_batch_have_their_own_sets() -> None:
    """Of one some jobs may lie on some nodes, of another all jobs on others, of the third all on all."""
    logs = [log({"features": "y"}, {}), log({"excluded_nodes": "a1"}, {"features": "x&y"}), log({}, {"nodes": 1})]
    batch = Simulation(logs, SITE, [pair(one, "easy", "never", Options()).plan for one in logs])
    for i, one in enumerate(logs):
        assert batch.advance(i) == codes.DONE
        assert batch.result(i).jobs["nodes"].to_list() == escala.simulate(one, SITE, "easy").jobs["nodes"].to_list()
    assert batch.result(0).jobs["nodes"].to_list() == ["1", "0"]


def test_a_view_shows_where_jobs_may_lie_and_commands_keep_to_it() -> None:
    seen: dict[str, Any] = {}

    def look(view: escala.View, act: escala.Commands) -> None:
        if not seen:
            seen["sets"] = [view.node_sets[job.node_set].tolist() for job in view.queue]
            seen["room"] = [view.room_for(job).tolist() for job in view.queue]
            first, last = view.queue
            act.start(last)
            seen["refused"] = act.start_on(first, 0), act.refusal
            with pytest.raises(EscalaError, match="node 0 has no room for job 0 now"):
                act.start_on(first, [0])
            act.start_on(first, 2)

    result = escala.simulate(log({"features": "y", "cores": 4}, {"cores": 1}), SITE, look)
    assert seen["sets"] == [[False, True, True, False], [True] * 4]
    assert seen["room"] == [[0, 4, 4, 0], [1, 1, 1, 1]]
    assert seen["refused"][0] is False and result.jobs["nodes"].to_list() == ["2", "0"]
