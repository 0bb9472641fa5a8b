"""Sites written as site.toml and read back, and sites from what Slurm's commands print, from a gres.conf, and from a
log."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import escala
from escala import EscalaError
from escala.calibration import inferred
from escala.calibration.measured import watts_of
from escala.platform import Partition, PowerProfile, Site
from escala.platform.closures import Closure
from escala.platform.exports import read_exports
from escala.platform.hostlist import folded, hosts_of, in_order
from escala.platform.site_write import site_text

NODES = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=4
   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.10
   AvailableFeatures=fast,avx
   Gres=(null)
   NodeAddr=n1 NodeHostName=n1 Version=22.05.8
   OS=Linux 6.1.0-13-amd64 #1 SMP (2023-09-29)
   RealMemory=64000 AllocMem=0 FreeMem=9 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=3 Owner=N/A MCS_label=N/A
   Partitions=batch

NodeName=n2 Arch=x86_64 CoresPerSocket=4
   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.10
   AvailableFeatures=(null)
   Gres=gpu:a100:2(S:0-1)
   RealMemory=64000 Sockets=2 Boards=1
   State=DOWN+DRAIN ThreadsPerCore=1 Weight=1
   Reason=disk is broken [root@2026-01-01T00:00:00]
"""
PARTITIONS = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=bio,chem AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-2]
   PriorityJobFactor=10 PriorityTier=2 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE
   State=UP TotalCPUs=16 TotalNodes=2 SelectTypeParameters=NONE
   DefMemPerCPU=100 MaxMemPerNode=UNLIMITED
PartitionName=old
   State=UP TotalCPUs=0 TotalNodes=0 Nodes=(null)
"""
CONFIG = """\
Configuration data as of 2026-11-20T10:00:00
ClusterName             = lab
SlurmctldHost[0]        = secret(10.0.0.1)
SchedulerParameters     = bf_interval=10,bf_window=60
PriorityType            = priority/multifactor
SlurmUser               = root(0)
"""


HOSTS = st.from_regex(r"[a-c]{1,2}-?[0-9]{0,3}[a-b]?(\.[ab][0-9]{0,2}\.org)?", fullmatch=True)


@given(st.lists(HOSTS, min_size=1, max_size=30))
def test_a_folded_list_stands_for_its_names_in_their_order(names: list[str]) -> None:
    assert hosts_of(folded(names), "here") == names


def test_lists_are_short_and_counted_as_people_count() -> None:
    assert folded(["n1", "n2", "n3", "n7", "m07", "m08"]) == "n[1-3,7],m[07-08]"
    assert (
        folded(["n8", "n9", "n10"]) == "n[8-10]"
        and folded(["n09", "n10"]) == "n[09-10]"
        and folded(["n9", "n09"]) == "n[9,09]"
    )
    assert in_order(["n10", "n2", "b-1", "n1"]) == ["b-1", "n1", "n2", "n10"]


def test_of_several_numbers_the_one_that_counts_is_folded() -> None:
    assert folded([f"n{k}.lyon.grid5000.fr" for k in (1, 2, 3, 7)]) == "n[1-3,7].lyon.grid5000.fr"
    assert folded(["n1.a2.org", "n2.a2.org", "n2.a3.org"]) == "n[1-2].a2.org,n2.a3.org"
    assert folded(["r1n1", "r1n2", "r2n1", "r2n2"]) == "r1n[1-2],r2n[1-2]"
    assert folded(["n1-ib0", "n2-ib0", "n2-ib0"]) == "n[1-2]-ib0,n2-ib0"


def _site() -> Site:
    """One with something in every field that the format has."""
    watts = PowerProfile(400.0, 150.0, can_switch=False, name="old blade", source="measured")
    full = PowerProfile(300.0, 100.0, 5.0, 80.0, 90.0, 20.0, 60.0, name="new")
    every = Partition(
        "odd", (0, 2, 3), max_s=90061.0, default_s=3600.0, max_nodes=3, min_nodes=1, max_cores_per_node=7, tier=4,
        factor=9, exclusive=True,
        up=False, memory_mb_per_core=10, memory_mb_per_node=None, least_loaded=True, accounts=("a",),
        denied_accounts=("b", 'c"d'),
        qos=("high",), denied_qos=("low",), own_qos="high", tres_billing_weights="CPU=1.0,Mem=0.25G",
        preempt_mode="requeue", grace_s=60.0,
    )  # fmt: skip
    return Site(
        "a \"site\" in Zürich", np.array([8, 8, 16, 16, 4]), (watts, full, escala.platform.power.NONE),
        np.array([0, 0, 1, 1, 2]),
        {"memory": np.array([1, 1, 2, 2, 3]), "gpu": np.array([0, 0, 3, 3, 2]), "gpu:a100": np.array([0, 0, 1, 1, 0])},
        ("n1", "n2", "g01", "g02", "login"), partitions=(every, Partition("all", tuple(range(5)), default=True,
                                                                          memory_mb_per_node=5)),
        settings={"schedulerparameters": "bf_interval=30,bf_window=2880"},
        features=(("x", "y"), ("x", "y"), (), (), ("z",)), node_speed=np.array([0.8, 0.8, 1.0, 1.0, 1.25]),
        weights=np.array([1, 1, 5, 5, 1]), threads=np.array([2, 2, 1, 1, 1]), qos={"high": 10, "of the night": 0},
        closed=(Closure((0, 1), 5.5, 1e11, "drain"), Closure((4,), 1.8e9, 1.8e9 + 60, "down", False)),
        qos_limits={
            "high": {"preempt": ("of the night",), "preempt_mode": "cancel", "grace_time": 30, "exempt_time": 90},
            "of the night": {"grp_tres": {"cpu": 3, "gpu:a": 2}, "max_time": 90.0, "flags": ("NoReserve",)},
        },
        accounts={
            "physics": {"parent": "root", "shares": 30, "users": {}},
            "of the night": {"parent": "physics", "shares": 0, "users": {"ann": 3, "b.o": 0}},
        },
    )  # fmt: skip


def test_a_written_site_reads_back_equal(tmp_path: Path) -> None:
    site = _site()
    usual = Site("usual", site.cores, site.profiles[:1], np.zeros(5, np.int64))
    names = [one.name for one in fields(Site) if one.name not in ("unread", "speed")]
    same = [name for name in names if np.array_equal(getattr(site, name), getattr(usual, name))]
    assert same == ["cores"], "each field of a site is in this test"
    assert {
        one.name for one in fields(Partition) if all(getattr(p, one.name) == one.default for p in site.partitions)
    } == set()
    path = tmp_path / "site.toml"
    path.write_text(site_text(site, ["two\nlines"]), encoding="utf-8")
    assert escala.read_site(path) == site and path.read_text(encoding="utf-8").startswith("# two\n# lines\n\nname")
    assert path.read_text(encoding="utf-8").count("[[nodes]]") == 3


def test_what_the_format_has_no_place_for_is_refused() -> None:
    site = _site()
    for wrong, named in ((replace(site, unread=("x",)), "unread"), (replace(site, speed=1e9), "speed")):
        with pytest.raises(EscalaError, match=f"no place for {named}"):
            site_text(wrong)


def test_a_site_from_what_scontrol_prints(tmp_path: Path) -> None:
    texts = {
        "nodes.txt": NODES,
        "partitions.txt": PARTITIONS,
        "config.txt": CONFIG,
        "qos.txt": "Name|Priority|GraceTime\nhigh|100|0\nlow||0\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    site = read_exports([tmp_path / name for name in texts])
    assert (
        site.name == "lab"
        and site.names == ("n1", "n2")
        and site.cores.tolist() == [8, 8]
        and site.weights.tolist() == [3, 1]
    )
    assert site.features == (("fast", "avx"), ()) and site.resources["gpu:a100"].tolist() == [0, 2]
    assert site.qos == {"high": 100, "low": 0}
    assert set(site.settings) == {"schedulerparameters", "prioritytype"}, "no hosts, no users"
    (batch,) = site.partitions
    assert (batch.max_s, batch.default_s, batch.tier, batch.factor, batch.exclusive) == (172800.0, 3600.0, 2, 10, True)
    assert batch.accounts == ("bio", "chem") and batch.memory_mb_per_core == 100 and batch.default
    assert any("n2 is DOWN+DRAIN at the moment: kept" in line for line in site.unread)
    assert any("partition old has no node: left out" in line for line in site.unread)


def test_kinds_of_gpus_come_from_the_gres_conf_beside(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=g[1-3] CPUs=8 Gres=gpu:2\nNodeName=g4 CPUs=8 Gres=gpu:4\n")
    (tmp_path / "gres.conf").write_text(
        "AutoDetect=off\nNodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1]\nNodeName=g4 Name=gpu Type=t4 "
        "Count=2\n"
    )
    site = escala.read_site(tmp_path / "slurm.conf")
    assert site.resources["gpu"].tolist() == [2, 2, 2, 4] and site.resources["gpu:a100"].tolist() == [2, 2, 0, 0]
    assert site.gpu_kinds == ("a100",), "g4 has four by slurm.conf and two by gres.conf: the kinds are not taken"


def test_strange_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(EscalaError, match=r"neither a slurm\.conf nor what scontrol"):
        read_exports([tmp_path / "x"])
    (tmp_path / "p").write_text(PARTITIONS)
    with pytest.raises(EscalaError, match="no line NodeName= describes"):
        read_exports([tmp_path / "p"])


QOS = "Name|Priority|GraceTime\nhigh|100|0\nlow||0\n"
ACCOUNTS = "Cluster|Account|User|Share\nlab|root||1\nlab|root|root|1\nlab| bio||30\nlab|  cells||2\nlab|  cells|ann|3\n"
GRES = "AutoDetect=off\nNodeName=n2 Name=gpu Type=a100 File=/dev/nvidia[0-1]\n"


def test_damaged_exports_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """A line is lost, cut, doubled or scrambled; both ends of it happen."""
    texts = {
        "nodes": NODES,
        "partitions": PARTITIONS,
        "config": CONFIG,
        "qos": QOS,
        "associations": ACCOUNTS,
        "gres": GRES,
    }
    chance = np.random.default_rng(5)
    ends = {True: 0, False: 0}
    for _ in range(300):
        paths = []
        for name, text in texts.items():
            lines = text.splitlines()
            k = int(chance.integers(len(lines)))
            at = int(chance.integers(len(lines[k]) + 1))
            other = chance.choice(
                [
                    "",
                    lines[k][:at],
                    lines[k] + lines[k],
                    lines[k][:at] + "|=,[9-1]\u00e9"[int(chance.integers(8)) :] + lines[k][at:],
                ]
            )
            lines[k : k + 1] = [str(other)] if chance.random() < 0.3 else lines[k : k + 1]
            (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
            paths.append(tmp_path / name)
        try:
            site = replace(read_exports(paths), unread=())
            (tmp_path / "site.toml").write_text(site_text(site), encoding="utf-8")
            assert escala.read_site(tmp_path / "site.toml") == site
            ends[True] += 1
        except EscalaError as error:
            assert "\n" not in str(error) and len(str(error)) <= 500
            ends[False] += 1
    assert min(ends.values()) > 30


SACCT = "JobID|Partition|Submit|Start|End|State|AllocCPUS|NNodes|NodeList|AllocTRES|ReqMem\n" + "".join(
    f"{job}|{partition}|2024-01-01T00:00:00|2024-01-01T00:0{begun}:00|2024-01-01T00:0{ended}:00|COMPLETED|{cores}|{nodes}|{hosts}|{tres}|{memory}\n"
    for job, partition, begun, ended, cores, nodes, hosts, tres, memory in (
        (1, "cpu", 1, 3, 4, 1, "n1", "cpu=4,node=1", "4Gn"),
        (2, "cpu", 2, 4, 8, 2, "n[1-2]", "cpu=8,node=2", "2000Mc"),
        # 3000 MB a core, as Slurm 16.05 wrote it; begins as job 1 ends
        (3, "cpu", 3, 5, 4, 1, "n1", "cpu=4,node=1", "2147486648Mn"),
        (4, "gpu", 1, 2, 6, 2, "g[09-10]", "cpu=6,gres/gpu:a100=4,gres/gpu=4,mem=8G,node=2", ""),
    )
)


def test_a_site_from_where_jobs_ran(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    log = escala.read_workload(path, shapes=True)
    assert log.jobs.select("nodes", "memory_mb_per_core", "memory_mb_per_node", "gpus_per_node", "gpu_kind").rows() == [
        (1, None, 4096, None, None), (2, 2000, None, None, None), (1, 3000, None, None, None),
        (2, None, 4096, 2, "a100")
    ]  # fmt: skip
    assert "hosts" not in escala.read_workload(path).jobs.columns
    found = inferred(log)
    site = found.site
    assert dict(zip(site.names, site.cores.tolist())) == {"n1": 8, "n2": 4, "g09": 3, "g10": 3}
    assert dict(zip(site.names, site.resources["gpu:a100"].tolist())) == {"n1": 0, "n2": 0, "g09": 2, "g10": 2}
    parts = {one.name: [site.names[k] for k in one.nodes] for one in site.partitions}
    assert {name: sorted(hosts) for name, hosts in parts.items()} == {"cpu": ["n1", "n2"], "gpu": ["g09", "g10"]}
    result = escala.simulate(log, site, scheduler="slurm")
    assert result.jobs["state"].unique().to_list() == ["COMPLETED"], "the log can run on what was inferred from it"
    with pytest.raises(EscalaError, match="names no nodes on which jobs ran"):
        inferred(log.with_jobs(log.jobs.drop("hosts")))


ENERGY = "JobID|Partition|Submit|Start|End|State|AllocCPUS|NNodes|NodeList|AllocTRES|ConsumedEnergyRaw\n" + "".join(
    f"{job}|cpu|2024-01-01T00:00:00|2024-01-01T0{job}:00:00|2024-01-01T0{job}:{ran:02}:00|COMPLETED|{cores}|{nodes}|{hosts}|{tres}|{joules}\n"
    for job, ran, cores, nodes, hosts, tres, joules in (
        (1, 10, 8, 2, "n[1-2]", "cpu=8", 2 * 600 * 300),
        (2, 10, 4, 1, "n1", "cpu=4,energy=198000,node=1", ""),
        (3, 10, 2, 1, "n1", "cpu=2", 90_000),  # others may have been there
        (4, 10, 4, 1, "n2", "cpu=4", 2**64 - 2),  # Slurm's word for unknown
        (5, 0, 4, 1, "n2", "cpu=4", 50),
        (6, 10, 6, 1, "b1", "cpu=6", 600 * 450),
    )
)


def test_measured_joules_say_what_a_node_draws(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(ENERGY)
    log = escala.read_workload(path, shapes=True)
    assert log.jobs["measured_joules"].to_list() == [360_000.0, 198_000.0, 90_000.0, None, 50.0, 270_000.0]
    found = inferred(log)
    assert watts_of(log, found.site) == {4: [300.0, 330.0], 6: [450.0]}
    told = next(note for note in found.notes if "of 4 cores" in note)
    assert "draws 315 W" in told and "2 jobs" in told and "computing_w = 315" in found.notes[-1]
    plain = escala.read_workload(path)
    assert "measured_joules" not in plain.jobs.columns
    assert watts_of(log.with_jobs(log.jobs.drop("measured_joules")), found.site) == {}
    assert not any("Measured" in note for note in inferred(log.with_jobs(log.jobs.drop("measured_joules"))).notes)


def _placed(tmp_path: Path, lists: list[str]) -> escala.Workload:
    """A log whose jobs, one after the other, ran on these lists of hosts."""
    head, first, *_ = SACCT.splitlines()
    rows = [first.replace("|n1|", f"|{text}|").replace("1|", f"{k}|", 1) for k, text in enumerate(lists, 1)]
    (tmp_path / "placed.txt").write_text("\n".join([head, *rows]) + "\n")
    return escala.read_workload(tmp_path / "placed.txt", shapes=True)


def test_a_log_that_names_too_many_hosts_in_all_is_refused_before_any_is_made(tmp_path: Path) -> None:
    log = _placed(tmp_path, ["n0[0-999999]"] * 20 + [f"n[{k}-{k + 499999}]" for k in range(21)])
    tracemalloc.start()
    with pytest.raises(EscalaError, match=r"placed: hosts: the lists .*more than 30,000,000 hosts: export fewer days"):
        inferred(log)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5e6


def test_a_job_on_very_many_hosts_is_read_in_a_time_that_grows_as_they_do(tmp_path: Path) -> None:
    log, pieces, shares = _placed(tmp_path, ["n[1-200000]", "n7"]), list[str](), list[float]()

    def begin(what: str) -> Callable[[float], None]:
        pieces.append(what)
        return shares.append

    began = time.process_time()
    site = inferred(log, begin).site
    assert time.process_time() - began < 60, "minutes where the hosts are counted anew for each of them"
    assert site.n_nodes == 200_000 and site.cores[site.names.index("n7")] == 5 and site.total_cores == 200_004
    assert pieces == ["reading where jobs ran", "inferring the site"] and shares == [0.5, 1.0], "and says how far it is"


def test_slots_of_torque_are_counted_node_by_node(tmp_path: Path) -> None:
    path = tmp_path / "pbs.log"
    hosts = ("c1/0+c1/1+c1/2+c2/0", "c1/3-5")
    path.write_text("".join(
        f"01/01/2024 00:10:00;E;{k}.m;user=a queue=q ctime=1704067200 start=1704067{k}00 exec_host={text} "
        f"Resource_List.nodect=2 Resource_List.mem=4gb total_execution_slots={4 - k % 2} "
        f"unique_node_count={2 - k % 2} end=1704067{k + 5}00 Exit_status=0\n"
        for k, text in zip((2, 3), hosts, strict=True)
    ))  # fmt: skip
    log = escala.read_workload(path, shapes=True)
    assert log.jobs["memory_mb_per_node"].to_list() == [2048, 4096] and log.jobs["hosts"].to_list() == [
        "c1,c1,c1,c2",
        "c1",
    ]
    assert dict(zip(inferred(log).site.names, inferred(log).site.cores.tolist())) == {"c1": 6, "c2": 1}


def test_slots_beyond_any_job_are_cut_before_they_are_made(tmp_path: Path) -> None:
    path = tmp_path / "pbs.log"
    path.write_text(
        "01/01/2024 00:10:00;E;1.m;user=a ctime=1704067200 start=1704067200 exec_host=c1/0-1+c2/0-999999999+c3/7 "
        "Resource_List.nodect=2 total_execution_slots=4 end=1704067500 Exit_status=0\n"
    )
    tracemalloc.start()
    hosts = escala.read_workload(path, shapes=True).jobs["hosts"][0]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert hosts == ",".join(["c1"] + ["c2"] * 49_999) and most < 16e6, "8 GB, of which nearly all was thrown away"


def test_components_of_a_heterogeneous_job_ask_for_no_shape(tmp_path: Path) -> None:
    path = tmp_path / "het.txt"
    head, first, *_ = SACCT.splitlines()
    path.write_text("\n".join([head, re.sub(r"^1\|", "7+0|", first), re.sub(r"^1\|", "7+1|", first), first]) + "\n")
    jobs = escala.read_workload(path, shapes=True).jobs.sort("job_id")
    assert (
        jobs.select("job_id", "nodes", "cores").rows() == [("1", 1, 4), ("7", None, 8)]
        and jobs.schema["nodes"] == pl.Int64
    )
