"""Limits of QOS and associations by hand, as https://slurm.schedmd.com/resource_limits.html has them, and the files
that tell of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala import EscalaError
from escala.platform.exports import read_exports
from escala.platform.site_write import site_text
from escala.slurm import settings_of

SITE = """\
name = "limits"
[[nodes]]
names = "n[1-4]"
cores = 4
memory_mb = 8000
gpus = {a = 2}
[[partitions]]
name = "p"
nodes = "ALL"
default = true
[[partitions]]
name = "q"
nodes = "ALL"
own_qos = "part"
[slurm]
SelectTypeParameters = "CR_CPU_Memory"
SchedulerParameters = "bf_interval=1,sched_interval=2,bf_resolution=1,batch_sched_delay=0"
"""


def site(tmp_path: Path, text: str, slurm: str = "") -> Any:
    path = tmp_path / "site.toml"
    text = text if "part =" in text or "[qos]" not in text else text.replace("[qos]\n", "[qos]\npart = 0\n")
    path.write_text(f"{SITE}{slurm}\n{text}\n")
    return escala.read_site(path)


def jobs(n: int = 4, **columns: Any) -> escala.Workload:
    """n jobs of one core and 100 MB, a second apart, of 50 s each."""
    table: dict[str, Any] = {
        "submit_s": [float(k) for k in range(n)],
        "runtime_s": [50.0] * n,
        "walltime_s": [60.0] * n,
        "cores": [1] * n,
    }
    table |= {"memory_mb_per_core": [100] * n, "user": ["ann"] * n, "qos": ["normal"] * n}
    return escala.Workload.from_jobs({**table, **columns}, origin_s=1_800_000_000.0)


def rounds(workload: escala.Workload, place: Any, **options: Any) -> list[int | None]:
    """In which round of 50 s each job started."""
    result = escala.simulate(workload, place, scheduler="slurm:started=-2.5:tick=0.4", **options)
    return [None if one is None else int(one // 50) for one in result.jobs["start_s"]]


def test_jobs_of_a_user_in_a_qos(tmp_path: Path) -> None:
    """MaxJobsPerUser holds each user apart; jobs of another QOS do not count."""
    place = site(tmp_path, "[qos]\nnormal = {max_jobs_per_user = 2}\nhigh = 5")
    assert rounds(jobs(), place) == [0, 0, 1, 1]
    assert rounds(jobs(user=["ann", "ann", "bob", "ann"]), place) == [0, 0, 0, 1]
    assert rounds(jobs(qos=["high", "high", "normal", "normal"]), place) == [0, 0, 0, 0]


def test_jobs_of_a_qos_and_of_an_account_in_it(tmp_path: Path) -> None:
    assert rounds(jobs(user=["a", "b", "c", "d"]), site(tmp_path, "[qos]\nnormal = {grp_jobs = 3}")) == [0, 0, 0, 1]
    by_account = site(tmp_path, "[qos]\nnormal = {max_jobs_per_account = 1}")
    assert rounds(jobs(account=["x", "x", "y", "z"], user=["a", "b", "c", "d"]), by_account) == [0, 1, 0, 0]


@pytest.mark.parametrize("tres", ["cpu = 2", "mem = 250", "node = 1", "gpu = 2", "'gres/gpu:a' = 2"])
def test_tres_of_a_group(tmp_path: Path, tres: str) -> None:
    """Jobs of one core, 100 MB and, where GPUs are counted, one GPU: two at a time. Nodes: all on one, which counts
    once."""
    place = site(tmp_path, f"[qos]\nnormal = {{grp_tres = {{{tres}}}}}")
    work = jobs(gpus_per_node=[1] * 4, nodes=[1] * 4, gpu_kind=["a"] * 4) if "gpu" in tres else jobs()
    assert rounds(work, place) == ([0, 0, 0, 0] if "node" in tres else [0, 0, 1, 1])


def test_tres_of_a_user_and_of_an_account(tmp_path: Path) -> None:
    place = site(tmp_path, "[qos]\nnormal = {max_tres_per_user = {cpu = 3}, max_tres_per_account = {cpu = 4}}")
    work = jobs(cores=[2, 2, 2, 2], user=["a", "a", "b", "c"], account=["x", "x", "x", "x"])
    assert rounds(work, place) == [0, 1, 0, 1]


def test_the_documented_order(tmp_path: Path) -> None:
    """The example of the page: MaxJobs=20 in the partition's QOS, 4 in the user's association, MaxSubmitJobs=50 there:
    20 and 50 hold."""
    users = "[accounts.root]\nusers = {ann = {max_jobs = 1, max_submit = 3}}"
    place = site(tmp_path, f"[qos]\npart = {{max_jobs_per_user = 2}}\nnormal = 0\n{users}")
    assert rounds(jobs(partition=["q"] * 4), place) == [0, 0, 1, None], (
        "by the partition's QOS two run; the fourth is refused"
    )
    assert rounds(jobs(), place) == [0, 1, 2, None]


def test_over_part_qos_turns_the_order(tmp_path: Path) -> None:
    text = "[qos]\npart = {grp_tres = {cpu = 1, mem = 10000}}\nnormal = {grp_tres = {cpu = 3}FLAGS}\n"
    work = jobs(partition=["q"] * 4)
    assert rounds(work, site(tmp_path, text.replace("FLAGS", ""))) == [0, 1, 2, 3]
    assert rounds(work, site(tmp_path, text.replace("FLAGS", ", flags = ['OverPartQOS']"))) == [0, 0, 0, 1]


@pytest.mark.parametrize(("flags", "starts_at"), [("", 20), (", flags = ['OverPartQOS']", 100)])
def test_over_part_qos_turns_the_order_of_exempt_times_too(tmp_path: Path, flags: str, starts_at: int) -> None:
    """Job 1 keeps the nodes for 10 s by the QOS of its partition, or 100 s by its own; job 2 is there from 20 s on."""
    text = (
        f"[qos]\npart = {{exempt_time = 10}}\nlow = {{exempt_time = 100{flags}}}\nhigh = {{priority = 9, preempt = "
        f"['low']}}\n"
    )
    place = site(tmp_path, text, 'PreemptType = "preempt/qos"\nPreemptMode = "cancel"')
    two = {"submit_s": [0.0, 20.0], "runtime_s": [150.0] * 2, "walltime_s": [180.0] * 2, "cores": [16] * 2}
    started = escala.simulate(jobs(2, **two, qos=["low", "high"], partition=["q"] * 2), place, scheduler="slurm").jobs[
        "start_s"
    ]
    assert started[0] < 3 and starts_at <= started[1] < starts_at + 5


def test_associations_in_a_tree(tmp_path: Path) -> None:
    """Limits of groups hold at each level; those of users come from the nearest account that has one."""
    place = site(
        tmp_path, "[accounts]\nx = {max_jobs = 2}\ny = {parent = 'x', grp_jobs = 3, users = {bob = {max_jobs = 1}}}"
    )
    work = jobs(6, user=["ann", "bob", "bob", "ann", "ann", "cat"], account=["y"] * 6)
    assert rounds(work, place) == [0, 0, 1, 0, 1, 1]


def test_a_group_limit_of_a_qos_hides_that_of_associations(tmp_path: Path) -> None:
    place = site(tmp_path, "[qos]\nnormal = {grp_jobs = 3}\nfree = 0\n[accounts]\nx = {grp_jobs = 1}")
    assert rounds(jobs(account=["x"] * 4), place) == [0, 0, 0, 1]
    assert rounds(jobs(account=["x"] * 4, qos=["free"] * 4), place) == [0, 1, 2, 3]


def test_a_job_at_its_limit_holds_up_nobody(tmp_path: Path) -> None:
    """By default others of the partition pass it; with assoc_limit_stop they do not, where there is no backfill."""
    text = "[qos]\nnormal = {max_jobs_per_user = 1}"
    work = jobs(user=["ann", "ann", "bob", "cat"])
    assert rounds(work, site(tmp_path, text)) == [0, 1, 0, 0]
    strict = SITE.replace("batch_sched_delay=0", "batch_sched_delay=0,assoc_limit_stop")
    (tmp_path / "strict.toml").write_text(
        f"{strict}SchedulerType = 'sched/builtin'\n[qos]\npart = 0\nnormal = {{max_jobs_per_user = 1}}\n"
    )
    assert rounds(work, escala.read_site(tmp_path / "strict.toml")) == [0, 1, 1, 1]


def test_a_job_at_a_limit_gets_no_reservation(tmp_path: Path) -> None:
    """ann's wide job waits for a limit and reserves nothing, so that bob's, which would outlast it, starts at once.
    Without the limit the wide one has the nodes first."""
    work = jobs(
        3, user=["ann", "ann", "bob"], cores=[8, 16, 8], walltime_s=[60.0, 60.0, 600.0], runtime_s=[50.0, 50.0, 500.0]
    )
    held = site(tmp_path, "[qos]\nnormal = {max_jobs_per_user = 1}")
    assert rounds(work, held)[2] == 0
    assert rounds(work, site(tmp_path, "[qos]\nnormal = 0"))[2] == 2


def test_jobs_that_no_limit_would_ever_let_run(tmp_path: Path) -> None:
    for text, why in (
        ("[qos]\nnormal = {max_tres = {cpu = 2}}", "allows 2 cores, not 3"),
        ("[qos]\nnormal = {grp_tres = {cpu = 2}}", "allows 2 cores, not 3"),
        ("[qos]\nnormal = {max_time = '0:30'}", "may ask for 30 s"),
        ("[accounts.root]\nmax_tres = {mem = 200}", "allows 200 MB, not 300"),
    ):
        place = site(tmp_path, text)
        work = jobs(1, cores=[3])
        with pytest.raises(EscalaError, match=why):
            rounds(work, place)
        assert rounds(work, place, oversized="drop") == [None]


def test_without_enforcement_limits_are_let_be(tmp_path: Path) -> None:
    place = site(tmp_path, "[qos]\nnormal = {grp_jobs = 1}", 'AccountingStorageEnforce = "associations"')
    assert rounds(jobs(), place) == [0, 0, 0, 0]
    assert any("AccountingStorageEnforce" in one for one in settings_of(place).unread)


def test_a_refused_job_is_a_row(tmp_path: Path) -> None:
    place = site(tmp_path, "[qos]\nnormal = {max_submit_per_user = 2}")
    result = escala.simulate(jobs(dependency=[None, None, None, "after:3"]), place, scheduler="slurm")
    assert result.jobs["state"].to_list()[:3] == ["COMPLETED", "COMPLETED", "REJECTED"]


QOS = """\
Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|GrpTRESMins|GrpJobs|GrpSubmit|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxJobsPA|MaxSubmitPA|MinTRES
normal|0|00:00:00||cluster|||1.000000|||||||||||||
gpu|50|00:00:00||cluster|DenyOnLimit,OverPartQOS||2.000000|cpu=640,gres/gpu:a=8,mem=2T,license/x=3|cpu=100|20|||1-00:00:00|gres/gpu=4|5|100||||
"""
ASSOC = """\
Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|GrpTRESMins|MaxJobs|MaxTRES|MaxSubmit|MaxWall|QOS|Def QOS
lab|root|||1|||||||||||normal|
lab| physics|||30|||cpu=64||||10||||normal|
lab|  physics|ann||3|||||||10||||normal|
lab|  physics|bob||1|||||||4|cpu=8|50||normal|
"""  # noqa: E501


def test_limits_of_sacctmgr(tmp_path: Path) -> None:
    """What users have from their account, as sacctmgr repeats it, stands at the account; what is not modelled is
    told."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=lab\nAccountingStorageEnforce=limits,qos\nNodeName=n[1-2] CPUs=4 Gres=gpu:a:2\n"
        "PartitionName=p Nodes=ALL Default=YES QOS=gpu\n"
    )
    (tmp_path / "qos.txt").write_text(QOS)
    (tmp_path / "assoc.txt").write_text(ASSOC)
    place = read_exports([tmp_path / name for name in ("slurm.conf", "qos.txt", "assoc.txt")])
    assert place.qos_limits == {
        "gpu": {
            "grp_jobs": 20,
            "grp_tres": {"cpu": 640, "gpu:a": 8, "mem": 2 * 1024 * 1024},
            "max_jobs_per_user": 5,
            "max_submit_per_user": 100,
            "max_tres_per_user": {"gpu": 4},
            "max_time": 86400.0,
            "usage_factor": 2.0,
            "flags": ("DenyOnLimit", "OverPartQOS"),
        }
    }
    assert place.accounts["physics"] == {
        "parent": "root",
        "shares": 30,
        "users": {"ann": 3, "bob": 1},
        "limits": {"grp_tres": {"cpu": 64}, "max_jobs": 10},
        "user_limits": {"bob": {"max_jobs": 4, "max_submit": 50, "max_tres": {"cpu": 8}}},
    }
    assert place.partitions[0].own_qos == "gpu"
    for what in ("license/x=3", "grptresmins=cpu=100"):
        assert any(what in one for one in place.unread), what
    written = tmp_path / "written.toml"
    written.write_text(site_text(escala.read_site(_plain(place, written))))
    again = escala.read_site(written)
    assert (again.qos, again.qos_limits, again.accounts) == (place.qos, place.qos_limits, place.accounts)
    assert again.partitions == place.partitions


def _plain(place: Any, path: Path) -> Path:
    from dataclasses import replace

    path.write_text(site_text(replace(place, unread=())))
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[qos]\nx = {max_job = 3}", "unknown entry `max_job`"),
        ("[qos]\nx = {grp_tres = 3}", "write a table"),
        ("[qos]\nx = {grp_tres = {cores = 3}}", "unknown TRES"),
        ("[qos]\nx = {grp_jobs = -1}", "out of range"),
        ("[qos]\nx = {flags = ['NoLimit']}", "unknown flag"),
        ("[accounts]\nx = {max_jobs_per_user = 3}", "unknown entry"),
        ("[accounts]\nx = {users = {a = {max_job = 3}}}", "unknown entry"),
    ],
)
def test_bad_limits_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EscalaError, match=message) as caught:
        site(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_limits_of_what_the_site_has_not(tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match="GPUs of kind 'b'"):
        rounds(jobs(), site(tmp_path, "[qos]\nnormal = {grp_tres = {'gpu:b' = 3}}"))
    with pytest.raises(EscalaError, match="not under \\[qos\\]"):
        rounds(jobs(), site(tmp_path, "[qos]\nnormal = 3  # no part ="))


def test_without_limits_nothing_changes(tmp_path: Path) -> None:
    """Limits that nobody reaches give the schedule of a site without."""
    free, wide = (
        site(tmp_path, text)
        for text in ("", "[qos]\nnormal = {grp_jobs = 99, grp_tres = {cpu = 99, node = 9}}\npart = 0")
    )
    work = jobs(20, cores=[1, 2, 3, 4] * 5, runtime_s=[30.0 + k for k in range(20)])
    one, other = (escala.simulate(work, place, scheduler="slurm").jobs for place in (free, wide))
    assert one.equals(other)
    assert one.select(pl.col("wait_s").max()).item() > 10


def test_no_more_nodes_are_chosen_than_a_limit_allows(tmp_path: Path) -> None:
    """3 tasks would go to three nodes of neighbours; two are allowed, and n3 has room for two
    (acct_policy_get_max_nodes)."""
    text = "[accounts]\nx = {grp_tres = {node = 2}, users = {ann = 1}}\n"
    place = site(tmp_path, text)
    path = tmp_path / "site.toml"
    path.write_text(
        path.read_text()
        .replace('names = "n[1-4]"\ncores = 4', 'names = "n[1-2]"\ncores = 1')
        .replace("gpus = {a = 2}", GROWN)
    )
    place = escala.read_site(path)
    work = escala.Workload.from_jobs(
        {"submit_s": [0.0], "runtime_s": [9.0], "walltime_s": [60.0], "tasks": [3], "account": ["x"]}
    )
    assert escala.simulate(work, place, scheduler="slurm").jobs["nodes"].to_list() == ["0 2"]


GROWN = """gpus = {a = 2}
[[nodes]]
names = "n3"
cores = 2
memory_mb = 8000
"""


def test_a_job_gets_no_more_than_one_job_may_have(tmp_path: Path) -> None:
    """MaxTRES is looked at again once nodes are chosen: an exclusive job has all four cores of its node."""
    place = site(tmp_path, "[qos]\nnormal = {max_tres = {cpu = 3}}")
    assert rounds(jobs(2, exclusive=[True, False]), place) == [None, 0]


def test_max_tres_is_handed_down_by_resource(tmp_path: Path) -> None:
    place = site(tmp_path, "[accounts]\nx = {max_tres = {node = 1}, users = {ann = {max_tres = {cpu = 9}}}}")
    with pytest.raises(EscalaError, match="allows 1 nodes, not 2"):
        rounds(jobs(1, account=["x"], nodes=[2]), place)


def test_a_job_that_can_never_run_is_submitted_for_ever(tmp_path: Path) -> None:
    """The second waits for the first to go badly, which has gone well before: it counts (MaxSubmitJobs) as the third
    comes."""
    place = site(tmp_path, "[qos]\nnormal = {max_submit_per_user = 1}")
    work = jobs(3, submit_s=[0.0, 60.0, 61.0], dependency=[None, "afternotok:1", None])
    result = escala.simulate(work, place, scheduler="slurm")
    assert result.jobs["state"].to_list() == ["COMPLETED", "REJECTED", "REJECTED"]


def test_who_finds_no_nodes_and_is_over_a_limit_too_holds_up_nobody(tmp_path: Path) -> None:
    """Three nodes are in use, and the second job needs two: with 12 + 8 cores of its QOS it would be over 19, and
    closes no partition ("Replacing scheduling error code"); but not over 20."""
    for most, third in ((19, 0), (20, 1)):
        place = site(
            tmp_path, f"[qos]\nnormal = {{grp_tres = {{cpu = {most}}}}}\nhigh = 5", 'SchedulerType = "sched/builtin"'
        )
        assert rounds(jobs(3, nodes=[3, 2, 1], cores=[12, 8, 1], qos=["normal", "normal", "high"]), place) == [
            0,
            1,
            third,
        ]


def test_memory_that_is_not_given_away_does_not_count(tmp_path: Path) -> None:
    """With CR_CPU jobs run side by side whatever memory they ask for (job_get_tres_mem: memory_allocated is 0)."""
    place = site(tmp_path, "[qos]\nnormal = {grp_tres = {mem = 150}}")
    assert rounds(jobs(2), place) == [0, 1]
    path = tmp_path / "site.toml"
    path.write_text(path.read_text().replace("CR_CPU_Memory", "CR_CPU"))
    assert rounds(jobs(2), escala.read_site(path)) == [0, 0]


@pytest.mark.parametrize("limit", ["max_jobs_per_user = 3", "grp_jobs = 9"])
def test_nodes_of_unknown_memory_do_not_exhaust_a_limit(tmp_path: Path, limit: str) -> None:
    """Where memory is given away, and nodes do not say how much they have, two of them are no more than there is."""
    path = tmp_path / "site.toml"
    path.write_text(SITE.replace("memory_mb = 8000\n", "") + f"[qos]\npart = 0\nnormal = {{{limit}}}\n")
    none = {"memory_mb_per_core": [None] * 3, "nodes": [2, 1, 2], "cores": [2, 1, 2]}
    result = escala.simulate(jobs(3, **none), escala.read_site(path), scheduler="slurm")
    assert result.jobs["state"].to_list() == ["COMPLETED"] * 3
