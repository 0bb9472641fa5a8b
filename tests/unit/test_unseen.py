"""What jobs ask for and a run does not look at is said in Python too, kept in manifests, and told under tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.errors import EscalaError, EscalaWarning
from escala.platform import Platform
from escala.report import write_report
from escala.unseen import LIMITED, SLURM, sentences
from escala.workload import Workload

ROWS = [{"submit_s": float(k), "runtime_s": 60.0, "walltime_s": 90.0, "cores": 2, "nodes": 1 + k % 2} for k in range(4)]
GPUS = "the platform has no GPUs"
SAID = [
    f"what jobs ask for by gpus_per_node does not count: {GPUS}",
    f"what jobs ask for by reservation does not count: {SLURM}",
]


def log(**more: list[Any]) -> Workload:
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    return Workload.from_jobs({**columns, **more})


ASKING = {"gpus_per_node": [1, None, None, None], "reservation": ["a", None, None, None], "begin_s": [None] * 4}


def said(do: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        do()
    assert all(one.category is EscalaWarning for one in found)
    return sorted(str(one.message) for one in found)


def test_a_replay_warns_of_what_it_does_not_look_at() -> None:
    assert said(lambda: escala.simulate(log(**ASKING), "2x2", "fcfs")) == SAID
    assert said(lambda: escala.simulate(log(), "2x2", "fcfs")) == []
    assert said(lambda: escala.simulate(log(gpus_per_node=[None] * 4), "2x2", "fcfs")) == []
    seeing = Platform.uniform(2, 2, power=None, resources={"gpu": 1})
    assert said(lambda: escala.simulate(log(**ASKING), seeing, "fcfs")) == SAID[1:]


def test_a_comparison_warns_once_and_names_the_runs_that_did_not_look() -> None:
    found: dict[str, Any] = {}

    def run() -> None:
        found["of"] = escala.compare(log(**ASKING), "2x2", ["easy", "saf", "sjf-fit"], jobs=1)

    assert said(run) == SAID
    missed = {"gpus_per_node": GPUS, "reservation": SLURM}
    assert found["of"].unseen == dict.fromkeys(found["of"].results, missed)


def test_frontiers_bounds_and_environments_warn_too() -> None:
    jobs = log(reservation=["a", None, None, None])
    power = "2x2:grid5000"
    pairs = {"schedulers": ["easy", "saf"], "shutdowns": ["never", "timeout:300"], "jobs": 1}
    best: dict[str, Any] = {}
    assert said(lambda: best.update(of=escala.frontier(jobs, power, **pairs))) == SAID[1:]
    assert best["of"].unseen["easy + never"] == {"reservation": SLURM}
    assert best["of"].as_dict()["unseen"]["saf + timeout:300"] == {"reservation": SLURM}
    assert said(lambda: escala.bound(jobs, "2x2", "wait", policies=["easy"], limit_s=1.0)) == SAID[1:]
    gymnasium = pytest.importorskip("gymnasium")
    spread = jobs.with_jobs(jobs.jobs.drop("nodes"))
    env = "escala/Scheduling-v0"
    assert said(lambda: gymnasium.make(env, workload=[spread], platform=power, disable_env_checker=True)) == SAID[1:]


def always(do: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        do()
    return found


JOBS = log(reservation=["a", None, None, None])


@pytest.mark.parametrize(
    "do",
    [
        lambda: escala.simulate(JOBS, "2x2", "fcfs"),
        lambda: escala.compare(JOBS, "2x2", ["easy", "saf", "fcfs"], jobs=1),
        lambda: escala.compare(JOBS, "2x2", ["easy", "saf", "fcfs"], jobs=2),
        lambda: escala.bound(JOBS, "2x2", "wait", policies=["easy", "saf"], limit_s=1.0),
    ],
)
def test_it_is_said_at_the_line_that_asks_for_the_run_and_once_a_call(do: Any) -> None:
    found = always(do)
    assert [str(one.message) for one in found] == SAID[1:]
    assert (found[0].filename, found[0].lineno) == (__file__, do.__code__.co_firstlineno)
    assert len(always(lambda: (do(), do()))) == 2, "each call says it anew"


def test_pythons_own_filter_shows_it_for_each_line_that_calls() -> None:
    def two() -> None:
        escala.simulate(JOBS, "2x2", "fcfs")
        escala.simulate(JOBS, "2x2", "fcfs")

    assert said(two) == SAID[1:] * 2


def test_gpus_without_a_kind_bind_in_total_only_where_nodes_have_several() -> None:
    """A node with one GPU of each of two kinds: a job that names none may be on either, so two others that follow each
    other on a and b cannot both run beside it; the replay counts the total."""
    kinds = {"gpu": 2, "gpu:a": 1, "gpu:b": 1}
    mixed = Platform.uniform(2, 2, power=None, resources=kinds)
    asked: dict[str, list[Any]] = {"gpus_per_node": [1, 1, 1, None], "gpu_kind": [None, "a", "b", None]}
    why = (
        "GPUs without a kind bind in total only: the platform has several kinds on nodes on which some of them may lie"
    )
    with pytest.warns(EscalaWarning, match=f"by gpu_kind does not count: {why}"):
        result = escala.simulate(log(**asked), mixed)
    assert result.unseen == {"gpu_kind": why} and "gpu_kind" in result.manifest["columns"]
    alike = Platform.uniform(2, 2, power=None, resources={"gpu": 1, "gpu:a": 1})
    all_named = asked | {"gpu_kind": ["a", "a", "b", None]}
    none_named = asked | {"gpu_kind": [None] * 4}
    asked["gpu_kind"][2] = "a"
    for columns, platform in ((asked, alike), (all_named, mixed), (none_named, mixed)):
        assert said(lambda: escala.simulate(log(**columns), platform)) == []  # noqa: B023


def test_a_manifest_keeps_it_apart_from_what_counted(tmp_path: Path) -> None:
    with pytest.warns(EscalaWarning):
        result = escala.simulate(log(**ASKING), "2x2", "easy")
    assert result.unseen == result.manifest["unseen"] == {"gpus_per_node": GPUS, "reservation": SLURM}
    assert "nodes" in result.manifest["columns"] and "gpus_per_node" not in result.manifest["columns"]
    result.save(tmp_path / "run")
    with pytest.warns(EscalaWarning):
        again = escala.rerun(tmp_path / "run", log(**ASKING))
    assert again.jobs.equals(result.jobs)
    with pytest.raises(EscalaError, match="column 'nodes' is not that of that run"):
        escala.rerun(tmp_path / "run", log(**ASKING | {"nodes": [1] * 4}))
    assert "unseen" not in escala.simulate(log(), "2x2").manifest


def test_a_page_names_the_runs_that_did_not_look(tmp_path: Path) -> None:
    plain = escala.simulate(log(), "2x2", "easy")
    with pytest.warns(EscalaWarning):
        blind = escala.simulate(log(**ASKING), "2x2", "saf")
    write_report(tmp_path / "page.html", {"easy + never": plain, "saf + never": blind}, title="Two")
    page = " ".join((tmp_path / "page.html").read_text(encoding="utf-8").split())
    assert "What jobs ask for by reservation does not count under saf + never: the scheduler slurm alone" in page


def test_sentences_name_runs_where_they_differ() -> None:
    both = {"a": {"nice": SLURM, "priority": SLURM}, "b": {"nice": SLURM, "priority": SLURM}}
    assert sentences(both) == [f"What jobs ask for by nice, priority does not count: {SLURM}."]
    assert sentences({**both, "slurm": {}}) == [
        f"What jobs ask for by nice, priority does not count under a, b: {SLURM}."
    ]
    assert sentences({"slurm": {}}) == []


def test_a_stream_keeps_it_too(tmp_path: Path) -> None:
    from escala import streaming

    log(gpus_per_node=[1, None, None, None]).jobs.write_parquet(tmp_path / "jobs.parquet")
    with pytest.warns(EscalaWarning, match="gpus_per_node"):
        found = streaming.stream(tmp_path / "jobs.parquet", "2x2", "easy", "never")
    assert found.manifest["unseen"] == {"gpus_per_node": GPUS}


def test_what_a_site_closes_and_limits_is_said_where_slurms_rules_are_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        'name = "s"\n[[nodes]]\nnames = "n[1-2]"\ncores = 2\n[[partitions]]\nname = "p"\nnodes = "ALL"\n'
        "default = true\n"
        '[[closed]]\nnodes = "n1"\nfrom = 0\nuntil = 3600\nkind = "down"\n[qos]\nnormal = {max_jobs_per_user = 1}\n'
    )
    site = escala.read_site(path)
    assert said(lambda: escala.simulate(log(), site, "fcfs")) == [LIMITED]
    assert not escala.simulate(log(), site, "slurm").unseen
