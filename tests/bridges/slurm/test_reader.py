"""What Slurm's clients print, recorded from real daemons of five versions, becomes snapshots; what they do not print is
refused."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from escala.bridges.slurm import json_output, shape, text
from escala.bridges.slurm.commands import Clients, Failed, job, name, version
from escala.bridges.slurm.hosts import expand
from escala.bridges.slurm.reader import Reader, uneven
from escala.bridges.slurm.seen import ENDED, PENDING, RUNNING, Reservation, Seen, applied, changes
from escala.bridges.slurm.snapshots import OFF, ON, SINKING, gone, layout, partition_of, power_of, snapshot
from escala.errors import EscalaError
from escala.live import Desk
from tests.bridges.slurm.fake import FakeSlurm
from tests.bridges.slurm.lab import SCRIPT, until

RECORDED = Path(__file__).parent / "recorded"
NOW = 1795592273.0
WHEN = {"22.05": NOW, "23.02": 1795801364.0, "23.11": 1795788184.0, "24.05": 1795789928.0, "24.11": 1795595523.0}


def _read(file: str) -> str:
    return (RECORDED / file).read_text()


def _seen(release: str = "22.05") -> Seen:
    kept = text.reservations(_read(f"reservations-{release}.txt"))
    return Seen(
        WHEN[release], text.jobs(_read(f"squeue-{release}.txt")), text.nodes(_read(f"nodes-{release}.txt")), kept
    )


@pytest.mark.parametrize("release", WHEN)
def test_text_of_a_real_slurm(release: str) -> None:
    """The same jobs on all; priorities are counted down from 2^32 on the first two, and all 1 on the others. 23.11 and
    24.05 give the reason InvalidAccount to a job that they expect to start."""
    seen = _seen(release)
    jobs, nodes = seen.jobs, seen.nodes
    free = {"4", "8", "11_1", "11_2", "11_3", "11_4", "11_5", "12"}
    assert len(jobs) == 17 and {k for k, one in jobs.items() if one.free} == free
    begun, late = jobs["2"].submit_s, 2 if release == "24.05" else 0
    assert (
        jobs["2"][:8] == ("2", RUNNING, begun, begun + late, begun + late + 600, 600.0, 2, 6)
        and begun < seen.now_s < begun + 60
    )
    assert jobs["2"].priority == (4294901758 if release in ("22.05", "23.02") else 1) and jobs["7"].priority == 0
    assert jobs["2"].hosts == ("n3", "n4") and not jobs["2"].whole and jobs["1"].whole and jobs["12"].nice == 50
    later, took, busy = {"23.02": (0, 0, 0), "23.11": (0, 1, 1)}.get(release, (2, 1, 2))
    assert jobs["5"].state == ENDED and (jobs["5"].start_s, jobs["5"].end_s) == (begun + later, begun + later + took)
    assert (jobs["4"].reason == "InvalidAccount") == (release in ("23.11", "24.05")) and jobs["4"].start_s is not None
    assert [power_of(node) for node in nodes.values()] == [ON] * 5 + [ON if release == "24.11" else SINKING, OFF, ON]
    assert nodes["n5"].busy_s == begun + busy and nodes["n7"].busy_s is None and nodes["n4"].allocated == 3
    assert {one: kept.hosts for one, kept in seen.reservations.items()} == {"theirs": ("n8",), "escala_n7": ("n7",)}


def test_a_real_slurm_becomes_a_snapshot_that_a_desk_takes() -> None:
    seen = _seen()
    at = layout(seen, partition_of(seen, None), "taurus")
    told, unsure = snapshot(seen, at)
    columns = told.columns()
    assert columns["jobs"]["job_id"] == ["1", "2", "3", "4", "8", "11_1", "11_2", "11_3", "11_4", "11_5", "12"]
    assert columns["jobs"]["cores"] == [8, 6, 1, 8, 8, 32, 32, 32, 32, 32, 2], "whole nodes count with all their cores"
    assert columns["nodes"]["power"] == ["on"] * 5 + ["switching_off", "off", "on"]
    assert columns["nodes"]["gone"] == [False, False, True, True, False, False, False, True], (
        "n8: reserved by others, n7: by us"
    )
    assert uneven(seen) and unsure.keys() == {2, 3}, "6 CPUs on two nodes lie 4 + 2, and not 3 + 3"
    held = Seen(NOW, seen.jobs, seen.nodes, seen.reservations, parts={"2": (("n3", 4), ("n4", 2))})
    again, unsure = snapshot(held, at)
    assert not unsure and again.columns()["nodes"]["gone"] == [False] * 7 + [True]
    orders = Desk(at.platform, "easy", "never").decide(again)
    assert [(one.job_id, one.waits) for one in orders.starts] == [("4", True)], (
        "five cores are free, and n7 has to be woken"
    )
    assert orders.wakes == (6,)


def test_a_job_whose_account_is_refused_is_held_back() -> None:
    assert not _seen("23.11").jobs["4"]._replace(start_s=None).free and not _seen("23.11").jobs["13"].free


@pytest.mark.parametrize("release", WHEN)
def test_json_of_each_version(release: str) -> None:
    jobs, parts = json_output.jobs(_read(f"squeue-{release}.json"))
    nodes = json_output.nodes(_read(f"nodes-{release}.json"))
    if release != "24.11":
        plain = text.jobs(_read(f"squeue-{release}.txt"))
        same = {k: one._replace(reason="", user="", start_s=None, end_s=None) for k, one in jobs.items()}
        assert same == {k: plain[k]._replace(reason="", user="", start_s=None, end_s=None) for k in same}
        assert len(same) == (9 if release == "22.05" else 8)
        assert parts == {"2": (("n3", 4), ("n4", 2))} | ({"5": (("n4", 1),)} if release == "22.05" else {})
        assert {k: (power_of(one), one.allocated) for k, one in nodes.items()} == {
            "n3": (ON, 4), "n4": (ON, 3), "n6": (SINKING, 0), "n7": (OFF, 0)
        }  # fmt: skip
    else:
        assert {k: (one.state, one.cpus, one.limit_s, one.hosts, one.whole, one.free) for k, one in jobs.items()} == {
            "2": (RUNNING, 2, 180.0, ("n1", "n2"), False, False),
            "3": (PENDING, 8, 300.0, (), True, True),
            "4": (RUNNING, 3, 60.0, ("n3", "n4", "n5"), False, False),
        }
        assert parts["4"] == (("n3", 1), ("n4", 1), ("n5", 1))
        assert [(one.name, one.cpus, one.allocated, one.busy_s) for one in nodes.values()][:1] == [
            ("n1", 1, 1, 1795487271.0)
        ]


@pytest.mark.parametrize(
    "error", [{"description": "function returned NULL list", "error_number": 9000}, {"error": "a"}, "b", 7]
)
def test_an_answer_that_says_itself_that_it_is_not_whole_is_refused(error: object) -> None:
    """As of squeue --json of 23.02 without slurmdbd: one job of thirteen, this error, and status 0."""
    told = json.loads(_read("squeue-23.02.json"))
    part = json.dumps({**told, "jobs": told["jobs"][:1], "errors": [error]})
    assert json_output.jobs(json.dumps({**told, "errors": []}))[0]
    with pytest.raises(
        EscalaError, match=r"its answer is not whole: (function returned NULL list|a|b|7): use --read text"
    ):
        json_output.jobs(part)


@pytest.mark.parametrize("release", WHEN)
def test_what_is_read_may_stand_in_a_journal(release: str) -> None:
    jobs, _ = json_output.jobs(_read(f"squeue-{release}.json"))
    told = Seen(
        NOW, jobs, json_output.nodes(_read(f"nodes-{release}.json")), {"r": Reservation("r", ("n1",), 1.0, math.inf)}
    )
    for seen in (_seen(release), told):
        record = {"kind": "look", "t": NOW, "seq": 1, "seen": changes(None, seen)}
        assert shape.wrong(json.loads(json.dumps(record))) == ""


def test_changes_and_back() -> None:
    seen = _seen()
    whole = changes(None, seen)
    assert applied(None, whole, NOW) == seen
    jobs = {k: one for k, one in seen.jobs.items() if k != "5"} | {
        "12": seen.jobs["12"]._replace(state=RUNNING, hosts=("n5",), start_s=NOW)
    }
    jobs["8"] = jobs["8"]._replace(priority=7, start_s=None)
    later = Seen(NOW + 10, jobs, seen.nodes | {"n5": seen.nodes["n5"]._replace(allocated=2)}, {})
    told = changes(seen, later)
    assert (
        [row[0] for row in told["jobs"]] == ["12"]
        and told["left"] == ["5"]
        and [row[0] for row in told["nodes"]] == ["n5"]
    )
    assert changes(later, later) == {}
    back = applied(seen, told, NOW + 10)
    assert back.nodes == later.nodes and back.reservations == {} and back.jobs["12"] == later.jobs["12"]
    with pytest.raises(EscalaError, match="damaged"):
        applied(seen, {"jobs": [[1, 2]]}, NOW)


def test_lists_of_hosts() -> None:
    assert expand("n[1-3,07-09],gpu1") == ("n1", "n2", "n3", "n07", "n08", "n09", "gpu1")
    assert expand("r[1-2]c[1,3]-ib") == ("r1c1-ib", "r1c3-ib", "r2c1-ib", "r2c3-ib") and expand("") == ()
    for wrong in ("n[1-", "n[3-1]", "n[1-9999999]", "a b", "n[a]", ",", "n]1["):
        with pytest.raises(EscalaError, match="hosts"):
            expand(wrong)


def test_names_that_are_more_than_names_are_refused() -> None:
    assert name("node-1.rack_2") == "node-1.rack_2" and job("12_3") == "12_3"
    for wrong in ("", "-n", "a b", "a;b", "$(x)", "a\n", "n[1-2]", "a=b", "ü", "x" * 200):
        with pytest.raises(EscalaError, match="nothing is done"):
            name(wrong)
    for wrong in ("0", "12_", "1;2", "12 13", "-1", "12_[1-3]"):
        with pytest.raises(EscalaError, match="nothing is done"):
            job(wrong)


def test_garbage_is_refused_and_never_taken_for_something() -> None:
    """A thousand outputs that are cut or have a changed character: what is read without a complaint is a state, and
    nothing else fails."""
    drawn = random.Random(1)
    files = {
        "squeue-22.05.txt": text.jobs,
        "nodes-22.05.txt": text.nodes,
        "reservations-22.05.txt": text.reservations,
        "squeue-24.11.json": json_output.jobs,
        "nodes-22.05.json": json_output.nodes,
    }
    refused = 0
    for file, reading in files.items():
        whole = _read(file)
        for _ in range(200):
            at = drawn.randrange(len(whole))
            broken = (
                whole[:at] if drawn.random() < 0.5 else whole[:at] + chr(drawn.randrange(1, 0x250)) + whole[at + 1 :]
            )
            try:
                reading(broken)
            except EscalaError:
                refused += 1
    assert refused > 400
    half = _read("squeue-22.05.txt")[:-5]
    with pytest.raises(EscalaError, match="ends within a line"):
        text.jobs(half)
    left: list[str] = []
    known = text.jobs(_read("squeue-22.05.txt").replace("|RUNNING|", "|DREAMING|"), left)
    assert known and all(one.state != RUNNING for one in known.values())
    assert left and all("not one that this version" in line for line in left)


def test_states_of_nodes() -> None:
    nodes = text.nodes(_read("nodes-22.05.txt"))
    one = nodes["n1"]
    states = {
        "IDLE": (ON, False),
        "DOWN+POWERED_DOWN+NOT_RESPONDING": (OFF, True),
        "DOWN*": (ON, True),
        "IDLE+DRAIN": (ON, True),
        "MIXED+POWER_DOWN": (ON, False),
        "IDLE+POWER_DOWN": (SINKING, False),
        "IDLE*": (ON, True),
        "IDLE+POWERING_UP+NOT_RESPONDING": ("switching_on", False),
        "IDLE+PLANNED": (ON, False),
        "IDLE+MAINT+RESERVED": (ON, True),
    }
    for state, (power, unusable) in states.items():
        node = one._replace(state=text.flags(state), allocated=2 if "MIXED" in state else 0)
        assert (power_of(node), gone(node, frozenset())) == (power, unusable), state


def test_a_lab_switches_its_nodes_with_the_slurm_that_it_began_with(tmp_path: Path) -> None:
    """Where another Slurm than that of the system comes first on the PATH. Slurm calls what switches nodes with hardly
    any environment."""
    own = tmp_path / "own"
    own.mkdir()
    for program in ("slurmctld", "munged", "scontrol", "slurmd", "sinfo"):
        (own / program).write_text(
            f'#!/bin/sh\necho {program} "$@" >> {own}/called\n[ {program} = sinfo ] && echo n1 idle || echo n1\n'
        )
        (own / program).chmod(0o755)
    environment = {"PATH": f"{own}:/usr/bin:/bin", "LAB_BOOT_S": "0"}
    subprocess.run([SCRIPT, "up", tmp_path / "lab", "1"], env=environment, timeout=60, check=True, capture_output=True)
    subprocess.run([tmp_path / "lab" / "bin" / "resume", "n1"], env={}, timeout=60, check=True)
    assert until(lambda: "slurmd -b -N n1\n" in (own / "called").read_text(), 10)


def test_a_suite_says_what_it_skipped_and_why(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    (tmp_path / "test_two.py").write_text(
        "import pytest\n@pytest.mark.parametrize('k', [1, 2])\ndef test(k): pytest.skip('no Slurm here')\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(root / "pyproject.toml"),
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root, check=True).stdout
    assert re.search(r"SKIPPED \[2\] .*: no Slurm here", said), said


def test_the_reader_asks_for_details_only_where_they_are_needed() -> None:
    slurm = FakeSlurm(4)
    asked: list[str] = []

    def run(client: str, *words: str) -> str:
        asked.append(words[-1])
        if "--details" in words:
            return (
                "JobId=2 ArrayJobId=1 ArrayTaskId=7 x   Nodes=n[1-2] CPU_IDs=0-1,3 Mem=0 GRES=   Nodes=n3 "
                "CPU_IDs=0 Mem=0\n"
            )
        return slurm(client, *words)

    reader = Reader(run, clock=slurm.clock)
    assert reader.known and reader.version == (22, 5) and not reader.read().parts and asked[-1] == "reservations"
    odd = "1_7|RUNNING|1|1|9|5:00|3|7|9|0|OK|ann|batch|n[1-3]|None\n"
    before, slurm._queue = slurm._queue, lambda: iter([odd])  # type: ignore[method-assign]
    assert reader.read().parts == {"1_7": (("n1", 3), ("n2", 3), ("n3", 1))}
    slurm._queue = before  # type: ignore[method-assign]
    slurm.version = "slurm 31.05.1"
    assert not Reader(slurm).known
    with pytest.raises(EscalaError, match="names no version"):
        version(lambda *_: "what?\n")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clients of the test's own on the PATH."""
    for client in ("squeue", "scontrol", "sinfo"):
        (tmp_path / client).write_text('#!/bin/sh\necho $SLURM_TIME_FORMAT $TZ $SQUEUE_FORMAT "$@"\n')
        (tmp_path / client).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    return tmp_path


def test_clients_get_no_shell_a_time_and_a_small_environment(program: Path) -> None:
    assert Clients()("squeue", "$(id)", "a b") == "%s UTC $(id) a b\n"
    (program / "squeue").write_text("#!/bin/sh\necho bad >&2; exit 3\n")
    with pytest.raises(Failed, match="squeue x: status 3: bad"):
        Clients()("squeue", "x")
    (program / "scontrol").write_text("#!/bin/sh\necho slurm_update error: Invalid user id >&2; exit 1\n")
    with pytest.raises(
        Failed, match=r"Invalid user id: Slurm does not let this user do that \(order needs AdminLevel=Operator"
    ):
        Clients()("scontrol", "update")
    (program / "squeue").write_text("#!/bin/sh\nexec sleep 30\n")
    with pytest.raises(Failed, match=r"no answer within 0\.5 s"):
        Clients(0.5)("squeue")
    (program / "squeue").chmod(0o777)
    with pytest.raises(EscalaError, match="everybody may write"):
        Clients()
    (program / "squeue").unlink()
    with (
        pytest.raises(EscalaError, match="no such program")
        if not Path("/usr/bin/squeue").exists()
        else pytest.raises(Failed)
    ):
        Clients()("squeue", "--no-such-option")
