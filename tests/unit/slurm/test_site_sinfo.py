"""Sites from what sinfo prints, alone and beside other exports: tables as of a real Slurm 22.05, and JSON of three
forms."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import escala
from escala import EscalaError
from escala.platform import Site
from escala.platform.exports import kind_of, read_exports

LIST = """\
NODELIST|PARTITION|STATE|CPUS|MEMORY|GRES|AVAIL_FEATURES|WEIGHT|S:C:T|TIMELIMIT
n1|batch*|idle|8|64000|(null)|fast,avx|3|2:4:1|2-00:00:00
n2|batch*|down*|8|64000|gpu:a100:2(S:0-1)|(null)|1|2:2:2|2-00:00:00
n1|long|mix|8|64000|(null)|fast,avx|3|2:4:1|infinite
"""
LONG = """\
Mon Nov 30 07:11:54 2026
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON              
n1             1    batch*        idle 4       4:1:1   4000        0      1 fast,avx none                
n2             1    batch*     drained 4       4:1:1   4000        0      1   (null) disk is broken      
"""  # noqa: W291
PLAIN = """\
PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       STATE NODELIST
batch*       up 1-00:00:00 1-infinite   no       NO        all      4        idle n[1-4]
short      down      30:00        1-2   no EXCLUSIV        all      2        idle n[3-4]
"""
CONF = "ClusterName=lab\nNodeName=n[1-4] CPUs=16 RealMemory=1000\nPartitionName=batch Nodes=ALL MaxTime=60\n"


def set_to(number: int | None) -> dict[str, Any]:
    return {"set": number is not None, "infinite": number is None, "number": number or 0}


def group(hosts: list[str], low: int, high: int, state: list[str], partition: str = "batch") -> dict[str, Any]:
    span = {"minimum": low, "maximum": high}
    one = {"minimum": 1, "maximum": 1}
    limits = {"cpus_per_node": set_to(None), "nodes": set_to(4), "time": set_to(90)}
    return {
        "node": {"state": state},
        "nodes": {"total": len(hosts), "nodes": hosts, "hostnames": ["localhost"]},
        "cpus": {**span, "total": 0},
        "memory": {"minimum": 512, "maximum": 512},
        "weight": one,
        "sockets": one,
        "cores": span,
        "threads": one,
        "features": {"total": "fast", "active": "fast"},
        "gres": {"total": "gpu:a100:2", "used": ""},
        "partition": {
            "name": partition,
            "maximums": limits,
            "minimums": {"nodes": 2},
            "defaults": {"time": set_to(10)},
            "priority": {"job_factor": 5, "tier": 7},
            "accounts": {"allowed": "bio,chem", "deny": ""},
            "qos": {"allowed": "", "deny": "", "assigned": ""},
            "partition": {"state": ["UP"]},
        },
    }


def site_of(folder: Path, *texts: str) -> Site:
    paths = [folder / f"export{k}.txt" for k in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return read_exports(paths)


def test_a_table_by_node(tmp_path: Path) -> None:
    site = site_of(tmp_path, LIST)
    assert kind_of(tmp_path / "export0.txt") == "sinfo"
    assert site.names == ("n1", "n2") and site.cores.tolist() == [8, 8]
    assert site.resources["memory"].tolist() == [64000, 64000] and site.resources["gpu:a100"].tolist() == [0, 2]
    assert site.features == (("fast", "avx"), ()) and site.weights is not None and site.weights.tolist() == [3, 1]
    assert site.threads is not None and site.threads.tolist() == [1, 2]
    batch, long = (site.partition(name) for name in ("batch", "long"))
    assert batch.nodes == (0, 1) and batch.default and batch.max_s == 2 * 86400.0
    assert long.nodes == (0,) and not long.default and long.max_s is None
    assert [line for line in site.unread if "n2 is down* at the moment" in line]


def test_the_long_table_cuts_features(tmp_path: Path) -> None:
    site = site_of(tmp_path, LONG)
    assert site.cores.tolist() == [4, 4] and site.features == ((), ())
    assert any("features are cut" in line for line in site.unread)
    assert any("node n2 is drained" in line for line in site.unread)


def test_beside_a_slurm_conf_it_says_what_that_does_not(tmp_path: Path) -> None:
    site = site_of(tmp_path, PLAIN, CONF)
    assert site.cores.tolist() == [16] * 4 and site.name == "lab"
    batch, short = (site.partition(name) for name in ("batch", "short"))
    assert batch.max_s == 3600.0 and batch.default, "the limit of slurm.conf, and the mark of sinfo"
    assert short.nodes == (2, 3) and short.max_s == 1800.0 and (short.min_nodes, short.max_nodes) == (1, 2)
    assert short.exclusive and not short.up


def test_without_memory_none_is_counted(tmp_path: Path) -> None:
    site = site_of(tmp_path, "NODELIST CPUS\nn1 4\n")
    assert "memory" not in site.resources and any("no memory of nodes" in line for line in site.unread)


def test_json_by_groups(tmp_path: Path) -> None:
    groups = [group(["n1", "n2"], 4, 4, ["IDLE"]), group(["n3"], 8, 8, ["DOWN", "NOT_RESPONDING"])]
    site = site_of(tmp_path, json.dumps({"sinfo": groups}))
    assert site.names == ("n1", "n2", "n3") and site.cores.tolist() == [4, 4, 8]
    assert site.resources["gpu:a100"].tolist() == [2, 2, 2] and site.features[0] == ("fast",)
    one = site.partition("batch")
    assert one.nodes == (0, 1, 2) and (one.max_s, one.default_s) == (5400.0, 600.0)
    assert (one.min_nodes, one.max_nodes, one.tier, one.factor, one.accounts) == (2, 4, 7, 5, ("bio", "chem"))
    assert any("n3 is DOWN+NOT_RESPONDING" in line for line in site.unread)
    assert any("no partition that is the default" in line for line in site.unread)


@pytest.mark.parametrize("listed", [True, False])
def test_json_by_nodes(listed: bool, tmp_path: Path) -> None:
    """Of 22.05, where states and features are texts, and of later ones, where they are lists."""
    plain = {"cpus": 4, "real_memory": 100, "weight": 2, "sockets": 1, "cores": 2, "threads": 2, "gres": ""}
    words: Any = ["a", "b"] if listed else "a,b"
    more = {"state": ["IDLE"] if listed else "idle", "state_flags": [], "features": words, "partitions": ["batch"]}
    nodes = [{"name": f"n{k}", "hostname": "localhost", **plain, **more} for k in (1, 2)]
    site = site_of(tmp_path, json.dumps({"meta": {}, "nodes": nodes}, indent=1))
    assert site.names == ("n1", "n2") and site.features == (("a", "b"),) * 2
    assert site.threads is not None and site.threads.tolist() == [2, 2] and site.partition("batch").nodes == (0, 1)


def test_a_site_of_it_runs(tmp_path: Path) -> None:
    site = site_of(tmp_path, LIST)
    log = escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [5.0], "cores": [8], "nodes": [1]})
    assert escala.simulate(log, site, "slurm").jobs["state"].to_list() == ["COMPLETED"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NODELIST|CPUS\nn1|4|5\n", "line 2: 3 fields under 2 heads"),
        ("NODELIST|CPUS\n|4\n", "line 2: names no node"),
        ("NODELIST|CPUS\nn[1-2]|4+\n", "line 2: cpus 4+: these nodes differ"),
        ("NODELIST|CPUS\nn1|4\nn1|8\n", "line 3: node 'n1' has cpus 8 here and 4 before"),
        ("NODELIST|CPUS\nn[1-|4\n", "line 2"),
        ("NODELIST|CPUS\nn1|many\n", "'many' is not a whole number"),
        ("NODELIST|STATE\nn1|idle\n", "node 'n1' has no CPUS: export it again with sinfo -N -o"),
        ("NODELIST|CPUS\n", "no line NodeName= describes a node"),
        ('{"sinfo": [{"nodes": 3}]}', "not a whole JSON of sinfo or scontrol"),
        ('{"nodes": [{"name": "n1"}]}', "not a whole JSON of sinfo or scontrol (KeyError: 'cpus')"),
        (json.dumps({"sinfo": [group(["n1", "n2"], 4, 8, ["IDLE"])]}), "group 1: cpus 4+: these nodes differ"),
        ('{"nodes": [', "JSON"),
    ],
)
def test_bad_exports_are_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match=re.escape(said)) as caught:
        site_of(tmp_path, text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 500


def test_logs_of_jobs_are_none(tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text('{"jobs": [{"nodes": [1]}], "nodes": []}')
    assert kind_of(tmp_path / "jobs.json") is None
