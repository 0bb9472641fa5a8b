"""What users, administrators and later versions may put into Slurm's answers: it costs the job or the node that it is
of, and no look."""

from __future__ import annotations

import json
import math
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm import commands, json_output, text
from escala.bridges.slurm.commands import Clients, Failed
from escala.bridges.slurm.hosts import expand
from escala.bridges.slurm.journal import records
from escala.bridges.slurm.loop import JOURNAL
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.seen import Seen
from escala.bridges.slurm.shape import LOOK, MISS
from escala.bridges.slurm.snapshots import gone, layout, snapshot
from escala.bridges.slurm.story import status
from escala.errors import EscalaError
from escala.live import Desk
from tests.bridges.slurm.fake import EPOCH, FakeJob, FakeSlurm
from tests.bridges.slurm.shadow import beside_of
from tests.bridges.slurm.world import World

NOW = 1_800_000_100.0
SEVEN = "7|RUNNING|1800000000|1800000000|N/A|10:00|2|3|10|0|OK|ann|batch|n[1-2]|None\n"
EIGHT = "8|PENDING|1800000000|N/A|N/A|10:00|1|1|10|0|OK|bob|batch||Priority\n"
DETAILS = (
    "JobId=7 JobName={} UserId=ann(1) JobState=RUNNING "
    "  Nodes=n1 CPU_IDs=0-1 Mem=0 GRES=   Nodes=n2 CPU_IDs=0 Mem=0 GRES= MinCPUsNode=1 {}\n"
)


def _node(number: int, allocated: int, state: str = "IDLE", cpus: int = 4, usable: int | None = None) -> str:
    counts = f"CPUAlloc={allocated} CPUEfctv={cpus if usable is None else usable} CPUTot={cpus}"
    return (
        f"NodeName=n{number} Arch=x {counts} OS=Linux State={state} ThreadsPerCore=1 Partitions=batch "
        "LastBusyTime=1800000000\n"
    )


NODES = _node(1, 2, "MIXED") + _node(2, 1, "MIXED") + _node(3, 0)


def _seen(
    queue: str = SEVEN, nodes: str = NODES, details: str = "", kept: str = "No reservations in the system\n"
) -> Seen:
    """One look at a Slurm that prints these."""

    def run(client: str, *words: str) -> str:
        if "--version" in words:
            return "slurm-wlm 22.05.8\n"
        return (
            queue if client == "squeue" else nodes if "nodes" in words else kept if "reservations" in words else details
        )

    return Reader(run, clock=lambda: NOW).read()


def _asked(seen: Seen) -> tuple[list[str], list[bool], dict[int, str]]:
    """Starts that a desk would give, nodes that are left alone, and those of which nothing is certain."""
    at = layout(seen, "batch", None)
    told, unsure = snapshot(seen, at)
    starts = [one.job_id for one in Desk(at.platform, "easy", "never").decide(told).starts]
    return starts, told.columns()["nodes"]["gone"], unsure


FAKED = "Nodes=n1 CPU_IDs=0 Mem=0 GRES=   Nodes=n2 CPU_IDs=0-2 Mem=0 GRES="
TEXTS = (
    *(
        "Nodes=n1 CPU_IDs=,",
        "Nodes=n1 CPU_IDs=-",
        "Nodes=[ CPU_IDs=1",
        "Nodes=n1 CPU_IDs=0-999",
        "Nodes=n1 CPU_IDs=9-0",
    ),
    *(
        "Nodes=n1 CPU_IDs=, Mem=0 GRES=",
        "Nodes=[ CPU_IDs=1 Mem=0",
        "Nodes=n1 CPU_IDs=0-999 Mem=0 GRES=",
        "Nodes=n1 CPU_IDs=9-0 Mem=0",
    ),
    *(
        "Nodes=n[1-2] CPU_IDs=0-999 Mem=0 GRES=",
        "Nodes=n[1-999999] CPU_IDs=1 Mem=0",
        FAKED,
        "JobId=9",
        "a\nb",
        "a\u2028b",
        "a\rb\x0bc",
    ),
    *(
        "ArrayJobId=77 ArrayTaskId=3",
        "x\nJobId=9 JobName=y",
        "CPU_IDs=" + "9" * 5000,
        "\x1b[31mred",
        "|",
        "Nodes=" * 1000,
    ),
)


@pytest.mark.parametrize("told", TEXTS, ids=range(len(TEXTS)))
def test_free_text_of_a_job_is_no_detail_of_it(told: str) -> None:
    """Name in front of the details, comment behind them; one of a job that waits."""
    waiting = f"JobId=8 JobName={told} UserId=bob(2) JobState=PENDING\n"
    for name, comment, more in ((told, "", ""), ("x", f"Comment={told}", ""), ("x", "", waiting)):
        if "\nJobId" in told and name == told:
            continue  # cut in two by what looks like another job
        seen = _seen(SEVEN + EIGHT, details=DETAILS.format(name, comment) + more)
        assert seen.parts == {"7": (("n1", 2), ("n2", 1))} or (told == FAKED and not more and not seen.parts)
        assert _asked(seen)[0] == ["8"]


def test_a_job_that_looks_like_two_costs_itself_alone() -> None:
    for told in ("a\nJobId=9 JobName=b", f"a\nJobId=7 JobName=b {FAKED}", f"a {FAKED} MinCPUsNode=1"):
        seen = _seen(SEVEN + EIGHT, details=DETAILS.format(told, ""))
        starts, left_alone, unsure = _asked(seen)
        assert (
            seen.parts in ({}, {"7": (("n1", 2), ("n2", 1))})
            and starts == ["8"]
            and not left_alone[2]
            and not unsure.keys() - {0, 1}
        )


def test_components_and_tasks_have_their_details() -> None:
    queue = "".join(SEVEN.replace("7|", f"{name}|", 1) for name in ("20+0", "20+1", "7_3"))
    heads = (
        "JobId=20 HetJobId=20 HetJobOffset=0",
        "JobId=21 HetJobId=20 HetJobOffset=1",
        "JobId=9 ArrayJobId=7 ArrayTaskId=3",
    )
    printed = "".join(DETAILS.replace("JobId=7", head).format("x", "") for head in heads)
    jobs = text.jobs(queue)
    assert text.parts(printed, jobs) == dict.fromkeys(jobs, (("n1", 2), ("n2", 1)))


def test_a_list_of_hosts_is_refused_before_it_is_built() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(20):
        with pytest.raises(EscalaError, match="more than 8 names"):
            expand(f"z{k}[1-999999]", 8)
        with pytest.raises(EscalaError, match="more than"):
            expand(f"z{k}" + "[1-99999]" * 300)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    assert len(expand("n[1-90000]")) == 90000 and expand("n[1-3]") == ("n1", "n2", "n3")
    with pytest.raises(EscalaError, match="more than 2 names"):
        expand("n[1-3]", 2)


@pytest.mark.parametrize(
    "state",
    [
        *(
            "MAINTENANCE",
            "REBOOT_REQUESTED",
            "REBOOT_ISSUED",
            "BLOCKED",
            "DYNAMIC_FUTURE",
            "DRAIN",
            "FAIL",
            "INVALID_REG",
            "UNDRAIN",
        ),
        *("RESUME", "EXTERNAL", "POWER_DRAIN", "SOMETHING_NEW"),
    ],
)
def test_a_node_with_a_flag_that_is_not_known_to_be_harmless_is_left_alone(state: str) -> None:
    for told in (f"IDLE+{state}", f"IDLE+CLOUD+{state}", f"{state}"):
        assert _asked(_seen("", _node(1, 0) + _node(2, 0, told)))[1] == [False, True]
        (node,) = json_output.nodes(
            json.dumps({"nodes": [{"name": "n1", "cpus": 4, "state": told.split("+")}]})
        ).values()
        assert gone(node, frozenset())


@pytest.mark.parametrize(
    ("told", "unusable"), [("INVAL", True), ("IDLE$", True), ("IDLE@", True), ("IDLE^", True), ("IDLE-", False)]
)
def test_states_and_signs(told: str, unusable: bool) -> None:
    assert _asked(_seen("", _node(1, 0) + _node(2, 0, told)))[1] == [False, unusable]


def test_nothing_switches_a_node_that_is_to_be_rebooted(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    slurm.nodes["n2"].flags, slurm.nodes["n3"].flags = "REBOOT_REQUESTED", "MAINTENANCE"
    world = World(slurm, tmp_path, "power")
    world.go(4)
    assert {name for name, node in slurm.nodes.items() if node.power} == {"n1", "n4"}


class _Faulty:
    """A policy with a fault of its own."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self.wrong = desk, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)

    def decide(self, asked: Any) -> Any:
        return 1 // 0 if self.wrong else self._desk.decide(asked)


def test_a_fault_of_the_program_is_a_missed_look_and_acting_stops(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    world = World(slurm, tmp_path, "power")
    faulty = _Faulty(world.beside._desk)
    world.beside._desk = faulty  # type: ignore[assignment]
    faulty.wrong = True
    world.go(2)
    missed = [one["why"] for one in records(tmp_path / JOURNAL) if one["kind"] == MISS]
    assert len(missed) == 2 and "ZeroDivisionError at test_odd.py:" in missed[0]
    faulty.wrong = False
    world.go(1)
    assert world.told("refused") == [["all", "", "errors"]] and slurm.commands == []
    world.go(4)
    assert slurm.commands and world.beside.failures == 0 and world.beside.misses == 2
    faulty.decide = lambda asked: (_ for _ in ()).throw(KeyboardInterrupt())  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.go(1)


SHARED = SEVEN.replace("|2|3|", "|1|4|").replace("n[1-2]", "n1")


def test_a_node_with_more_cpus_held_than_it_has_is_left_alone_and_said(tmp_path: Path) -> None:
    nodes = _node(1, 4, "ALLOCATED") + _node(2, 0)
    seen = _seen(SHARED + SHARED.replace("7|", "6|", 1) + EIGHT, nodes)
    assert _asked(seen) == (["8"], [True, False], {0: "overfull"})
    asleep = _seen(SHARED + SHARED.replace("7|RUNNING", "6|SUSPENDED", 1) + EIGHT, nodes)
    assert _asked(asleep) == (["8"], [True, False], {0: "suspended"})
    alone = _seen(SHARED.replace("RUNNING", "SUSPENDED"), _node(1, 0) + _node(2, 0))
    assert _asked(alone) == ([], [True, False], {0: "suspended"}), "switched off, it would lose the job"
    slurm = FakeSlurm(2, [FakeJob(1, EPOCH + 1, 1, 500)])
    slurm.advance(3)
    queue = slurm._queue
    slurm._queue = lambda: iter([*queue(), *(line.replace("1|", "2|", 1) for line in queue())])  # type: ignore[method-assign]
    beside = beside_of(slurm, tmp_path)
    beside.cycle()
    said = ["node n1: jobs have more CPUs than it has: it is left alone"]
    assert beside.misses == 0 and beside.last["left_out"] == said
    found = status(tmp_path / JOURNAL)
    assert found["unsure_nodes"] == ["n1"] and found["left_out"] == said


def _json(**more: Any) -> str:
    number = {"set": True, "infinite": False, "number": 1}
    jobs = [
        {"job_id": k, "job_state": ["PENDING"], "submit_time": number, "cpus": 1, "priority": number} for k in (1, 2)
    ]
    jobs[0] |= more
    return json.dumps({"jobs": jobs})


INFINITE = {"set": True, "infinite": True, "number": 0}


@pytest.mark.parametrize(
    "key", ["priority", "cpus", "node_count", "nice", "job_id", "submit_time", "array_job_id", "array_task_id"]
)
@pytest.mark.parametrize(
    "value", [INFINITE, math.inf, math.nan, 10**400, 1e30], ids=["infinite", "inf", "nan", "digits", "large"]
)
def test_a_job_with_an_infinite_number_is_left_out(key: str, value: Any) -> None:
    left: list[str] = []
    more = {"array_job_id": 1} if key == "array_task_id" else {}
    jobs, _ = json_output.jobs(_json(**{**more, key: value}), left=left)
    assert list(jobs) == ["2"] and len(left) == 1


@pytest.mark.parametrize("key", ["cpus", "alloc_cpus", "last_busy"])
def test_a_node_with_an_infinite_number_is_left_alone(key: str) -> None:
    left: list[str] = []
    good = {"name": "n1", "cpus": 4, "alloc_cpus": 0, "state": "IDLE", "partitions": ["batch"]}
    nodes = json_output.nodes(json.dumps({"nodes": [good, good | {"name": "n2", key: INFINITE}]}), left=left)
    assert not gone(nodes["n1"], frozenset()) and gone(nodes["n2"], frozenset()) and len(left) == 1


def test_cpus_that_are_kept_for_the_system_are_nobodys() -> None:
    nodes = _node(1, 3, "ALLOCATED", usable=3) + _node(2, 3, "ALLOCATED", usable=3)
    seen = _seen(SEVEN.replace("|2|3|", "|2|6|") + EIGHT, nodes)
    assert seen.nodes["n1"].cpus == 3 and _asked(seen) == ([], [False, False], {}), "they are full"
    old = {"name": "n1", "cpus": 4, "state": "idle", "tres": "cpu=3,mem=4000M,billing=3"}
    new = {"name": "n2", "cpus": 4, "state": ["IDLE"], "effective_cpus": 3}
    assert {one.cpus for one in json_output.nodes(json.dumps({"nodes": [old, new]})).values()} == {3}


ODD = {
    "a reason with a bar": EIGHT.replace("Priority", "Priority|x"),
    "a reason of two lines": EIGHT.replace("Priority", "Priority\nand more"),
    "a state of a later version": EIGHT.replace("PENDING", "EXPEDITING").replace("8|", "9|", 1) + EIGHT,
    "no CPUs that are a number": EIGHT.replace("|1|1|", "|1|x|").replace("8|", "9|", 1) + EIGHT,
    "more CPUs than any machine has": EIGHT.replace("|1|1|", f"|1|{2**31}|").replace("8|", "9|", 1) + EIGHT,
    "digits without end": EIGHT.replace("|1|1|", f"|1|{'9' * 5000}|").replace("8|", "9|", 1) + EIGHT,
    "millions of CPUs": EIGHT.replace("|1|1|", "|1|1M|").replace("8|", "9|", 1) + EIGHT,
    "a limit of thousands of years": EIGHT.replace("10:00", "1200000-00:00:00"),
    "a limit without end": EIGHT.replace("10:00", "99999999999-00:00:00"),
    "no time": EIGHT.replace("8|PENDING|1800000000", "9|PENDING|nan") + EIGHT,
    "a time without end": EIGHT.replace("8|PENDING|1800000000", "9|PENDING|1e400") + EIGHT,
    "hosts that are no list": SHARED.replace("|n1|", "|n[1-|").replace("7|", "9|", 1) + EIGHT,
    "a user of two lines": EIGHT.replace("bob", "b\nb").replace("8|", "9|", 1) + EIGHT,
    "a user that no terminal shows": EIGHT.replace("bob", "b\x0bb").replace("8|", "9|", 1) + EIGHT,
    "a number that is none": EIGHT.replace("8|", "x9|", 1) + EIGHT,
    "a warning of the client": "squeue: warning: something\n" + EIGHT,
    "a heterogeneous job": EIGHT.replace("8|PENDING", "20+0|PENDING") + EIGHT.replace("|10|0|OK", "|0|0|OK"),
}


@pytest.mark.parametrize("told", ODD)
def test_an_odd_record_of_squeue_costs_itself(told: str) -> None:
    seen = _seen(SEVEN + ODD[told], details=DETAILS.format("x", ""))
    starts, left_alone, unsure = _asked(seen)
    assert starts in (["8"], ["20+0"]) and left_alone == [False] * 3 and not unsure
    assert len(seen.left_out) <= 2 and all("\n" not in line for line in seen.left_out)


def test_odd_lines_of_scontrol_cost_themselves() -> None:
    nodes = (
        f"scontrol: warning: x\n{NODES}\nNode x not found\n"
        + _node(4, 0).replace("n4", "n4;$(id)")
        + _node(5, 0, cpus=0)
    )
    seen = _seen(nodes=nodes + _node(6, 0).replace("LastBusyTime=1800000000", "LastBusyTime=nan"))
    assert list(seen.nodes) == ["n1", "n2", "n3", "n5", "n6"] and len(seen.left_out) == 5
    assert layout(seen, "batch", None).names == ("n1", "n2", "n3")
    kept = "ReservationName=a StartTime=1 EndTime=1900000000 Nodes=n1 Users=x\n"
    kept += "ReservationName=b StartTime=1 EndTime=Unknown Nodes=n3 Users=x\n"
    seen = _seen(kept=f"scontrol: warning: x\n{kept}")
    assert _asked(seen)[1][2] and len(seen.left_out) == 2, "a reservation whose end is not known counts"
    with pytest.raises(EscalaError, match="is no reservation"):
        _seen(kept=kept + "ReservationName=c StartTime=1\n")


def test_what_is_left_out_is_in_the_journal_and_the_next_look_goes_on(tmp_path: Path) -> None:
    slurm = FakeSlurm(4, [FakeJob(k, EPOCH + 1, 1, 500) for k in range(1, 60)])
    slurm.advance(3)
    beside = beside_of(slurm, tmp_path)
    beside.cycle()
    queue, slurm.state = slurm._node, "IDLE+SOMETHING"
    slurm._node = lambda node: queue(node).replace("CPUTot=4", "CPUTot=x") if node.name == "n4" else queue(node)  # type: ignore[method-assign]
    for job in slurm.jobs:
        job.user = "a\tb" if job.state == "PENDING" else job.user
    for _ in range(2):
        slurm.advance(10)
        beside.cycle()
    looks = [one for one in records(tmp_path / JOURNAL) if one["kind"] == LOOK]
    assert beside.misses == 0 and len(looks) == 3 and "left_out" not in looks[0]
    said = looks[2]["left_out"]
    assert len(said) == 21 and said[-1] == "and 36 more" and beside.left_out == 56
    assert status(tmp_path / JOURNAL)["left_out"] == said


def test_a_client_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for client in ("squeue", "scontrol", "sinfo"):
        (tmp_path / client).write_text("#!/bin/sh\nexec yes\n")
        (tmp_path / client).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(commands, "MOST_BYTES", 1 << 22)
    begun = time.monotonic()
    with pytest.raises(Failed, match="squeue: printed more than 4 MiB"):
        Clients(60.0)("squeue")
    assert time.monotonic() - begun < 50.0
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec yes >&2\n")
    with pytest.raises(Failed, match="printed more than 4 MiB"):
        Clients(60.0)("squeue")
    (tmp_path / "squeue").write_text("#!/bin/sh\nexec >&- 2>&-; exec sleep 30\n")
    with pytest.raises(Failed, match=r"no answer within 0\.5 s"):
        Clients(0.5)("squeue")
