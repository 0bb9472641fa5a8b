"""Sites from slurm.conf and site.toml: what is read, what is left, and bad ones in one line."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path

import pytest

import escala
from escala import EscalaError
from escala.platform import site_entries
from escala.platform.hostlist import count_of, hosts_of, in_order
from escala.platform.site_entries import gpus_of, seconds_of
from escala.slurm import settings_of

CONF = """\
# a comment
ClusterName=lab
SelectType=select/cons_tres   # behind a setting too
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=10,bf_window=60,\\
bf_continue,bf_window_linear=20,kill_invalid_depend
PriorityType=priority/multifactor
PriorityMaxAge=1-0
NodeName=DEFAULT RealMemory=8000 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2
NodeName=n[01-03] Features=fast,avx Weight=5
NodeName=g1 CPUs=16 Gres=gpu:a100:2,gpu:t4:1 TmpDisk=100
Include parts.conf
"""
PARTS = """\
PartitionName=DEFAULT MaxTime=2:00:00 State=UP
PartitionName=batch Nodes=n[01-03],g1 Default=YES PriorityTier=2 PowerDownOnIdle=yes
PartitionName=gpu Nodes=g1 MaxTime=INFINITE DefMemPerCPU=100 OverSubscribe=EXCLUSIVE
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "parts.conf").write_text(PARTS)
    path = tmp_path / "slurm.conf"
    path.write_text(CONF)
    return path


def test_slurm_conf_with_include_defaults_and_continued_lines(conf: Path) -> None:
    site = escala.read_site(conf)
    assert site.names == ("n01", "n02", "n03", "g1")
    assert site.cores.tolist() == [32, 32, 32, 16]
    assert site.weights.tolist() == [5, 5, 5, 1]
    assert site.features[0] == ("fast", "avx")
    assert {kind: values.tolist() for kind, values in site.resources.items()} == {
        "memory": [8000] * 4,
        "gpu": [0, 0, 0, 3],
        "gpu:a100": [0, 0, 0, 2],
        "gpu:t4": [0, 0, 0, 1],
    }
    batch, gpu = site.partitions
    assert (batch.nodes, batch.default, batch.tier, batch.max_s) == ((0, 1, 2, 3), True, 2, 7200.0)
    assert (gpu.nodes, gpu.max_s, gpu.memory_mb_per_core, gpu.exclusive) == ((3,), None, 100, True)
    assert any("powerdownonidle" in one for one in site.unread)


def test_settings_are_slurms(conf: Path) -> None:
    settings = settings_of(escala.read_site(conf))
    assert (settings.bf_interval, settings.bf_window, settings.bf_window_linear) == (10, 3600, 20)
    assert (settings.memory, settings.by_core, settings.multifactor, settings.max_age) == (True, True, True, 86400)
    assert settings.unread == ("SchedulerParameters kill_invalid_depend",)


def test_a_site_is_a_platform_everywhere(conf: Path) -> None:
    site = escala.read_platform(str(conf))
    assert isinstance(site, escala.Site)
    assert escala.Platform.from_spec(json.loads(json.dumps(site.spec()))) == site
    assert site.first(3).partitions[0].nodes == (0, 1, 2)
    assert len(site.first(3).partitions) == 1
    jobs = escala.Workload.from_jobs({"submit_s": [0.0, 1.0], "runtime_s": [10.0, 10.0], "cores": [40, 4]})
    assert escala.simulate(jobs, site, "easy").summary()["n_completed"] == 2
    assert escala.simulate(jobs, site.with_power("taurus"), "easy", "timeout:10").totals["joules"].sum() > 0


def test_site_toml_says_the_same(conf: Path, tmp_path: Path) -> None:
    toml = tmp_path / "site.toml"
    toml.write_text(
        """
name = "lab"
[[nodes]]
names = "n[1-4]"
cores = 8
memory_mb = 4000
gpus = {a100 = 2}
features = ["fast"]
power = "blade"
[power.blade]
computing_w = 400
idle_w = 100
can_switch = false
[[partitions]]
name = "batch"
nodes = "n[1-3]"
default = true
max_time = "1-00:00:00"
[[partitions]]
name = "all"
nodes = "ALL"
tier = 2
[slurm]
SchedulerParameters = {bf_interval = 5, bf_busy_nodes = true}
PriorityType = "priority/multifactor"
[qos]
high = 100
"""
    )
    site = escala.read_site(toml)
    assert [one.nodes for one in site.partitions] == [(0, 1, 2), (0, 1, 2, 3)]
    assert site.partitions[0].max_s == 86400
    assert site.profiles[0].computing_w == 400
    assert site.qos == {"high": 100}
    settings = settings_of(site)
    assert (settings.bf_interval, settings.bf_busy_nodes, settings.multifactor) == (5, True, True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("NodeName=n1 CPUs=4\nPartitionName=p\n", "partition 'p' has no node: say Nodes=ALL or a host list"),
        ("NodeName=n1 CPUs=4\nPartitionName=p Nodes=n2\n", "node 'n2' is not described"),
        ("NodeName=n1 CPUs=four\n", "'four' is not a whole number"),
        ("NodeName=n[1-\n", "not closed"),
        ("NodeName=n[3-1] CPUs=1\n", "runs backwards"),
        ("NodeName=n1 CPUs=1\nNodeName=n1 CPUs=2\n", "described twice"),
        ("ClusterName=a\n", "no line NodeName="),
        ("NodeName=n1 CPUs=1\nPartitionName=p Nodes=n1 MaxTime=soon\n", "no span of time"),
        ("NodeName=n1 CPUs=1\nInclude other.conf\n", "other.conf"),
    ],
)
def test_bad_slurm_conf_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    with pytest.raises(EscalaError) as error:
        escala.read_site(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = 'x'\n", "nodes must be a list"),
        ("[[nodes]]\nnames = 'n1'\n", "`cores` is missing"),
        ("[[nodes]]\nnames = 'n1'\ncores = 4\nmemmory_mb = 4\n", "unknown entry `memmory_mb`"),
        ("[[nodes]]\nnames = 'n1'\ncores = 4\n[[partitions]]\nname = 'p'\nnodes = 'n9'\n", "'n9' is not described"),
        ("[[nodes]]\nnames = 'n1'\ncores = 4\n[[partitions]]\nname = 'p'\nnodes = 'n1'\ndefault = 1\n", "neither true"),
        (
            "[[nodes]]\nnames = 'n1'\ncores = 4\n[[partitions]]\nname = 'p'\n",
            'has no node: say nodes = "ALL" or a host list',
        ),
        ("[[nodes]]\nnames = 'n1'\ncores = 4\npower = 'no-such'\n", "no-such"),
        (
            "[[nodes]]\nnames = 'n1'\ncores = 4\n[[partitions]]\nname = 'p'\nnodes = ['ALL']\n",
            "partition 1 (p), nodes: ['ALL']: give one text, such as \"ALL\"",
        ),
        ("[[nodes]]\nnames = ['n1', 'n2']\ncores = 4\n", "names: ['n1', 'n2']: give one text, such as \"n[01-16]\""),
        (
            "[[nodes]]\nnames = 'n1'\ncores = 4\n[[closed]]\nnodes = ['n1']\nfrom = 0\n",
            "closed 1, nodes: ['n1']: give one text, such as \"ALL\"",
        ),
        ("x = [", "TOML"),
    ],
)
def test_bad_site_toml_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "site.toml"
    path.write_text(text)
    with pytest.raises(EscalaError) as error:
        escala.read_site(path)
    assert says in str(error.value)


def test_host_lists_spans_and_gpus() -> None:
    assert hosts_of("a[1-2,05],b,c[1-2]d[8-9]", "here") == ["a1", "a2", "a05", "b", "c1d8", "c1d9", "c2d8", "c2d9"]
    assert count_of("a[1-2,05],b,c[1-2]d[8-9]", "here") == 8 and count_of("n[1-1000000]", "here") == 1_000_000
    spans = {"90": 5400.0, "1:30": 90.0, "1:00:01": 3601.0, "2-12": 216000.0, "1-0:30": 88200.0, "INFINITE": None}
    assert {text: seconds_of(text, "here") for text in spans} == spans
    assert gpus_of("gpu:a100:4(S:0-1),gpu:2,craynetwork:1,gpu:t4", "here") == {"a100": 4, "": 2, "t4": 1}


@pytest.mark.parametrize(
    "text",
    [
        f"n[{','.join(['0-999999'] * 40)}]",
        "n[0-999999][0-999999]",
        ",".join(f"n{k}[0-999999]" for k in range(3)),
        "n" + "[0-9]" * 3000,
    ],
)
def test_a_host_list_that_is_too_long_is_refused_before_it_is_made(text: str) -> None:
    tracemalloc.start()
    with pytest.raises(EscalaError, match="stands for more than 1000000 hosts"):
        hosts_of(text, "here")
    with pytest.raises(EscalaError, match="stands for more than 1000000 hosts"):
        count_of(text, "here")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1e6


def _site_of(tmp_path: Path, lists: list[str]) -> Path:
    """A site.toml of five nodes whose partitions have these."""
    parts = "".join(f'[[partitions]]\nname = "p{k}"\nnodes = "{text}"\n' for k, text in enumerate(lists))
    (tmp_path / "site.toml").write_text(f'name = "x"\n[[nodes]]\nnames = "n[1-5]"\ncores = 4\n{parts}')
    return tmp_path / "site.toml"


def test_a_list_that_many_partitions_share_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 partitions of 100 000 nodes took minutes."""
    made = list[str]()
    once = site_entries.hosts_of
    monkeypatch.setattr(site_entries, "hosts_of", lambda *told: made.append(told[0]) or once(*told))
    monkeypatch.setattr(site_entries, "MOST_LISTED", 14)
    site = escala.read_site(_site_of(tmp_path, ["n[1-4]"] * 300 + ["ALL"] * 300 + ["n[2-5]"]))
    assert made == ["n[1-4]", "n[2-5]"]
    assert [site.partitions[k].nodes for k in (0, 299, 300, 600)] == [(0, 1, 2, 3)] * 2 + [
        (0, 1, 2, 3, 4),
        (1, 2, 3, 4),
    ]
    with pytest.raises(EscalaError, match=r"site\.toml: partition 4 \(p3\).* have more than 14: leave some out"):
        escala.read_site(_site_of(tmp_path, ["n[1-4]", "n[2-5]", "n[1-5]", "n[1-2]"]))
    assert made[2:] == ["n[1-4]", "n[2-5]", "n[1-5]"], "counted before it is made"


def test_the_time_of_a_list_grows_as_its_brackets_do() -> None:
    """300 000 brackets took 8 s."""
    began = time.process_time()
    assert hosts_of("n" + "[1]" * 300_000, "here") == ["n" + "1" * 300_000]
    assert count_of("n" + "[1-2]" + "[1]" * 300_000, "here") == 2
    assert time.process_time() - began < 8


def test_numbers_of_any_length_are_put_in_order() -> None:
    """More than 4 300 digits, or one that is none of ours, ended in a ValueError."""
    long = "9" * 5000
    assert in_order([f"n1{long}", "n²", "n10", f"n{long}", "n09", "n9", "n2"]) == [
        "n2", "n09", "n9", "n10", f"n{long}", f"n1{long}", "n²"
    ]  # fmt: skip


def test_many_brackets_are_one_name_and_odd_ones_a_line() -> None:
    assert hosts_of("n" + "[1]" * 3000, "here") == ["n" + "1" * 3000]
    for odd in ("n]1[2]", "n[1", "n[]", "n[1]]", "n[2-1]", "n[a]"):
        with pytest.raises(EscalaError, match=r"^here: host list"):
            hosts_of(odd, "here")
