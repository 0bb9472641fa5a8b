"""A desk: what it orders, what it refuses, and what it remembers."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.live import Desk, Orders, Refused, Snapshot
from escala.live.state_file import write_state
from tests.live.asked import WATTS, state_at

ROOT = Path(__file__).resolve().parents[2]


def _platform(spec: str = "4x1") -> escala.Platform:
    return escala.read_platform(spec, WATTS)


def _told(**changes: Any) -> dict[str, Any]:
    """`state_at` with other parts, or PART__COLUMN of it."""
    told = state_at()
    for name, value in changes.items():
        part, _, column = name.partition("__")
        if column:
            told[part] = {**told[part], column: value}
        else:
            told[part] = value
    return told


def _snapshot(**changes: Any) -> Snapshot:
    return Snapshot.from_json(json.dumps(_told(**changes)))


def test_the_page_runs_and_says_what_is_so(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "how-to" / "ask.md").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0], found)
    orders = found["orders"]
    assert [(start.job_id, start.nodes, start.waits) for start in orders.starts] == [("73", ((2, 2, 1),), False)]
    assert orders.offs == (3,) and orders.wakes == ()
    assert "Planned(job_id='73', start_s=1000.0)" in capsys.readouterr().out


def test_a_job_is_given_nodes_that_are_off() -> None:
    snapshot = _snapshot(nodes__power=["on", "on", "off", "off"], nodes__idle_since_s=[None] * 4)
    orders = Desk(_platform(), "easy", "timeout:300").decide(snapshot)
    assert [(s.job_id, s.waits) for s in orders.starts] == [("c", True)] and orders.wakes == (2,)


def test_nodes_that_are_gone_are_left_alone() -> None:
    desk = Desk(_platform(), "easy", "timeout:300")
    orders = desk.decide(_snapshot(nodes__gone=[False, False, True, False]))
    assert [s.nodes for s in orders.starts] == [((3, 3, 1),)] and orders.offs == ()
    orders = desk.decide(_snapshot(nodes__gone=[True, False, True, True], now_s=1001.0))
    assert orders == Orders(1001.0)


def test_jobs_that_could_never_run_are_refused_and_hold_back_nobody() -> None:
    """By hand: five cores of four. Under fcfs nothing would ever start behind it."""
    desk = Desk(_platform(), "fcfs")
    orders = desk.decide(_snapshot(jobs__cores=[2, 5, 1]))
    assert [s.job_id for s in orders.starts] == ["c"]
    assert orders.refused == (Refused("b", "it needs 5 cores, and platform '4x1' has 4"),)
    assert orders.told()["refused"] == [{"job_id": "b", "why": "it needs 5 cores, and platform '4x1' has 4"}]
    assert Orders.read(json.loads(json.dumps(orders.told()))) == orders
    assert [one.job_id for one in desk.plan(_snapshot(jobs__cores=[2, 5, 1], now_s=1001.0))] == ["c"]
    assert desk.decide(_snapshot(now_s=1002.0)).refused == () and Orders.read({**Orders(1.0).told()}).refused == ()
    later = _snapshot(now_s=1003.0, nodes__gone=[False, False, True, True])
    assert desk.decide(later) == Orders(1003.0), "nodes that are gone may come back: b waits for them, and c behind it"


def test_jobs_that_no_node_could_hold_are_refused() -> None:
    platform = escala.Platform(
        "two", cores=[2, 8], profiles=_platform().profiles, profile_of=[0, 0], resources={"memory": [64, 16]}
    )
    told = {
        "job_id": ["a", "b", "c"],
        "submit_s": [0.0] * 3,
        "walltime_s": [60.0] * 3,
        "cores": [4, 9, 2],
        "state": ["queued"] * 3,
    }
    told |= {"single_node": [True, True, True], "demand_memory": [32, 0, 64]}
    orders = Desk(platform, "fcfs").decide(Snapshot.of(1.0, told, {"power": ["on"] * 2}))
    assert [(s.job_id, s.nodes) for s in orders.starts] == [("c", ((0, 0, 2),))]
    assert [one.why for one in orders.refused] == [
        "it needs 4 cores, 32 memory on one node, and no node of platform 'two' has as much",
        "it needs 9 cores on one node, and no node of platform 'two' has as much",
    ]


def test_plan_promises_starts() -> None:
    planned = Desk(_platform(), "fcfs").plan(_snapshot(), first=5)
    assert [(one.job_id, one.start_s) for one in planned] == [("b", 3610.0), ("c", 4210.0)]
    with pytest.raises(escala.EscalaError, match="first=0: give 1"):
        Desk(_platform()).plan(_snapshot(), first=0)
    with pytest.raises(escala.EscalaError, match="only policies inside the kernel"):
        Desk(_platform(), lambda view, act: None).plan(_snapshot())


def test_a_plan_is_no_decision() -> None:
    """Asked for plans in between, a desk decides as one that was not."""
    plain, asked = (Desk(_platform(), "easy-fast", "off-reservation:1") for _ in range(2))
    for now in (1000.0, 1001.0, 1002.0):
        asked.plan(_snapshot(now_s=now))
        assert asked.decide(_snapshot(now_s=now)) == plain.decide(_snapshot(now_s=now))


def test_the_journal_gives_the_same_snapshot() -> None:
    snapshot = _snapshot(jobs__user=["u", None, "v"], nodes__gone=[False, False, False, True])
    again = Snapshot.from_json(snapshot.to_json())
    assert again.to_json() == snapshot.to_json() and again.columns() == snapshot.columns()


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    _snapshot().save(path)
    assert Snapshot.load(path).to_json() == _snapshot().to_json()
    path.write_text("[]")
    with pytest.raises(escala.EscalaError, match=r"now.json: snapshot: schema None is not 1"):
        Snapshot.load(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 2}, "schema 2 is not 1"),
        ({"schema": True}, "schema True is not 1"),
        ({"now_s": 10**400}, "give seconds from 0 to 1e+11"),
        ({"now_s": "soon"}, "now_s is 'soon': give seconds"),
        ({"now_s": float("nan")}, "now_s is nan: give seconds"),
        ({"jobs": []}, "jobs is []: give its columns"),
        ({"more": {}}, "'more' is no part of it"),
        ({"jobs__job_id": ["a", "a", "b"]}, "jobs.job_id has 'a' twice"),
        ({"jobs__job_id": ["a", 5, "b"]}, "jobs.job_id[1] is 5: give a text"),
        ({"jobs__cores": [2, 0, 1]}, "jobs.cores[1] is 0: give 1 or more"),
        ({"jobs__cores": [2, 1.5, 1]}, "jobs.cores[1] is 1.5: give a whole number"),
        ({"jobs__cores": [2, 2**31, 1]}, "jobs.cores[1] is 2147483648: give a whole number"),
        ({"jobs__cores": [2, 4]}, "jobs.cores has 2 entries, the columns before it 3"),
        (
            {"jobs__state": ["running", "asleep", "queued"]},
            "jobs.state[1] is 'asleep': give one of queued, given, running",
        ),
        ({"jobs__state": ["running\nqueued", "queued", "queued"]}, "jobs.state[0] is 'running\\nqueued': give one of"),
        ({"jobs__state": ["running", "queued", "\ud800"]}, "give one of queued, given, running"),
        ({"jobs__state": ["running", None, "queued"]}, "jobs.state[1] is None: give one of queued, given, running"),
        ({"jobs__cores": np.array(2)}, "a column of jobs is an array without dimensions: give a list"),
        ({"jobs__cores": np.ones((3, 2), int)}, "jobs.cores holds no plain numbers: give a list of them"),
        ({"jobs__cores": {2, 4, 1}}, "give a list"),
        ({"jobs__cores": set()}, "give a list"),
        ({"jobs__single_node": np.zeros((3, 1), bool)}, "jobs.single_node is no plain list"),
        ({"jobs__user": ["u", None, 5]}, "jobs.user[2] is 5: give a text, or null"),
        ({"jobs": None}, "jobs is None: give its columns"),
        ({"jobs__submit_s": "10"}, "jobs.submit_s is '10': give a list"),
        ({"jobs__submit_s": [10.0, 20.0, 1001.0]}, "jobs.submit_s[2] is 1001.0: it is later than now_s"),
        ({"jobs__walltime_s": [3600.0, 600.0, None]}, "jobs.walltime_s[2] is None: give seconds"),
        ({"jobs__walltime_s": [3600.0, True, 60.0]}, "jobs.walltime_s[1] is True: give a number"),
        ({"jobs__walltime_s": [3600.0, 1e30, 60.0]}, "give seconds from 0 to 1e+11"),
        ({"jobs__start_s": [None, None, None]}, "jobs.start_s[0] is None: a running job has started"),
        ({"jobs__wall_s": [1, 1, 1]}, "jobs.wall_s is no column: did you mean"),
        ({"jobs__demand_gpu": [0, 1, 0]}, "jobs.demand_gpu[1] is 1: give 0, or more for single_node jobs"),
        ({"nodes__power": ["on"] * 3 + ["dead"]}, "nodes.power[3] is 'dead': give one of on,"),
        ({"nodes__gone": [0, 0, 0, 1]}, "nodes.gone[0] is 0: give true or false"),
        ({"nodes__idle_since_s": [None, None, 2000.0, 0.0]}, "nodes.idle_since_s[2] is 2000.0: it is later than now_s"),
        ({"nodes__power": ["on", "on\non", "on", ""]}, "nodes.power[1] is 'on\\non': give one of on,"),
        ({"placed__cores": [2**62]}, "placed.cores[0] is 4611686018427387904: give a whole number"),
        ({"placed__last": [4]}, "placed.last[0] is 4: there are 4 nodes"),
        (
            {"placed__first": [1], "placed__last": [4], "jobs__cores": [4, 4, 1]},
            "placed.last[0] is 4: there are 4 nodes",
        ),
        (
            {"placed": {"job": [0, 7], "first": [0, 2], "last": [1, 2], "cores": [1, 1]}},
            "placed.job[1] is 7: give the place of a job",
        ),
        ({"placed__job": [1]}, "placed.job[0] is 1: that job is queued"),
        ({"placed__job": [7]}, "placed.job[0] is 7: give the place of a job"),
        ({"placed__last": [0]}, "job 'a' has 2 cores, and holds 1 in placed"),
        ({"ended": {"job_id": ["z"], "start_s": [5.0], "end_s": [4.0]}}, "ended.end_s[0] is 4.0: it is before start_s"),
    ],
)
def test_bad_snapshots_are_refused_in_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(escala.EscalaError) as caught:
        Snapshot.from_plain(_told(**changes))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_switch_that_is_late_is_late_in_its_json_too() -> None:
    """It is not taken for one whose end nobody tells."""
    told = _told(
        nodes__power=["on", "on", "switching_on", "off"],
        nodes__switch_end_s=[None, None, 900.0, None],
        nodes__idle_since_s=[None] * 4,
    )
    snapshot = Snapshot.from_plain(told)
    again = Snapshot.from_json(snapshot.to_json())
    assert (
        snapshot.nodes["done"].tolist() == [-1, -1, 900_000_000, -1]
        and again.nodes.tobytes() == snapshot.nodes.tobytes()
    )
    untold = Snapshot.from_plain(
        _told(nodes__power=["on", "on", "switching_on", "off"], nodes__idle_since_s=[None] * 4)
    )
    assert Snapshot.from_json(untold.to_json()).nodes.tobytes() == untold.nodes.tobytes() and untold.survey.untold == 1
    desk = [Desk(_platform(), "conservative", "timeout:300", rebuild=True) for _ in range(2)]
    assert desk[0].decide(snapshot) == desk[1].decide(again)


def test_names_may_be_texts_of_any_kind() -> None:
    names = [*np.array(["u", "v"]), None]
    assert Snapshot.from_plain(_told(jobs__user=names)).users == ["u", "v", None]


def test_lists_and_arrays_of_any_kind_say_the_same() -> None:
    """Also read-only ones, every second number of a longer one, and whole numbers as floats."""
    plain = _snapshot()

    def read_only(values: Any) -> Any:
        array = np.array(values)
        array.flags.writeable = False
        return array

    ways = (
        np.array,
        lambda v: np.array(v, object),
        read_only,
        lambda v: np.repeat(v, 2)[::2],
        lambda v: np.array(v, np.float32),
    )
    for way in ways:
        told = {f"jobs__{name}": way(plain.columns()["jobs"][name]) for name in ("submit_s", "walltime_s", "cores")}
        found = Snapshot.from_plain(
            _told(**told, placed__job=way([0]), jobs__single_node=way([False] * 3).astype(bool))
        )
        assert found.jobs.tobytes() == plain.jobs.tobytes() and found.placed.tobytes() == plain.placed.tobytes()
        assert found.nodes.tobytes() == plain.nodes.tobytes() and found.survey == plain.survey


@pytest.mark.parametrize("text", ["", "nonsense", "[" * 100_000, "null", '{"schema": 1}'])
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(escala.EscalaError, match="snapshot: "):
        Snapshot.from_json(text)


def test_damaged_snapshots_are_refused_or_answered() -> None:
    """Whatever a snapshot holds: orders, or one clear error."""
    rng, whole = random.Random(5), _snapshot(jobs__user=["u", None, "v"]).to_json()
    desk, refused = Desk(_platform(), "easy", "timeout:300"), 0
    for _ in range(1500):
        k = rng.randrange(len(whole))
        text = whole[:k] + rng.choice('0123456789-.,"[]{}netru') + whole[k + rng.randint(0, 2) :]
        try:
            desk.decide(Snapshot.from_json(text))
        except escala.EscalaError:
            refused += 1
    assert refused > 500


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": {"power": ["on"] * 5}}, "5 nodes, platform '4x1' has 4"),
        ({"jobs__state": ["running"] * 2 + ["queued"], "jobs__start_s": [10.0, 30.0, None]}, "holds 0 in placed"),
        ({"placed__cores": [2], "jobs__cores": [4, 4, 1]}, "jobs hold 1 more cores of node 0 than the 1 that it has"),
        ({"placed__cores": [50], "jobs__cores": [100, 4, 1]}, "jobs hold more cores in placed than the platform's 4"),
        ({"nodes__power": ["off", "on", "on", "on"]}, "jobs run on node 0, which is not on"),
    ],
)
def test_snapshots_that_cannot_be_of_the_machine(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(escala.EscalaError, match=re.escape(words)):
        Desk(_platform(), "easy", "timeout:300").decide(_snapshot(**changes))


@pytest.mark.parametrize("submit_s", [[30.0, 20.0, 40.0], [10.0, 30.0, 20.0], [40.0, 30.0, 20.0]])
def test_jobs_in_any_order_of_their_submission(submit_s: list[float]) -> None:
    """Three jobs of a whole machine, of which the one that was submitted first starts, whatever place it has."""
    columns = {
        "job_id": ["a", "b", "c"],
        "submit_s": submit_s,
        "walltime_s": [60.0] * 3,
        "cores": [4] * 3,
        "state": ["queued"] * 3,
    }
    snapshot = Snapshot.of(50.0, columns, {"power": ["on"] * 4})
    assert snapshot.survey.late == int(submit_s[0] > submit_s[1]) + int(submit_s[1] > submit_s[2])
    assert [start.job_id for start in Desk(_platform(), "fcfs").decide(snapshot).starts] == [
        "abc"[submit_s.index(min(submit_s))]
    ]


def test_time_goes_forwards() -> None:
    desk = Desk(_platform())
    desk.decide(_snapshot())
    with pytest.raises(escala.EscalaError, match=r"of 999.0 s, and the last was of 1000.0 s"):
        desk.decide(_snapshot(now_s=999.0))


@pytest.mark.parametrize(
    ("scheduler", "shutdown", "options", "words"),
    [
        ("conservative", "never", {}, "give rebuild=True"),
        ("random", "never", {}, "a machine has no log"),
        ("easy", "oracle", {}, "knows runtimes"),
        ("easy", "arrivals-known", {}, "knows arrivals"),
        ("easy:estimate=runtime", "never", {}, "knows runtimes"),
        ("easy", "never", {"estimate": "estimate_s"}, "cannot be told by a snapshot"),
        ("easy", "never", {"until_s": 5.0}, "option until_s: it is about a whole run"),
        ("easy", "never", {"untill": 5.0}, "unknown option 'untill'"),
        ("nonsense", "never", {}, "unknown scheduler 'nonsense'"),
        ("easy:queue=score:tests/oracle/score_files/multifactor.toml", "never", {}, "fair_share"),
    ],
)
def test_policies_that_cannot_be_asked(scheduler: Any, shutdown: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(escala.EscalaError, match=re.escape(words)):
        Desk(_platform(), scheduler, shutdown, **options)


def test_a_machine_that_cannot_switch() -> None:
    with pytest.raises(escala.EscalaError, match="needs a power profile"):
        Desk("4x1", "easy", "timeout:300")


def test_state_files_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "desk.json"
    Desk(_platform(), "easy", "timeout:300").save(path)
    with pytest.raises(
        escala.EscalaError, match=r"desk.json: policies 'easy \+ timeout:300', this desk has 'saf \+ never'"
    ):
        Desk(_platform(), "saf").restore(path)
    with pytest.raises(escala.EscalaError, match="nodes 4, this desk has 5"):
        Desk(_platform("5x1"), "easy", "timeout:300").restore(path)
    for other in (_platform("4x2"), "4x1:grid5000"):
        with pytest.raises(
            escala.EscalaError,
            match=r"desk\.json: of nodes with other cores, resources or power than those of this desk",
        ):
            Desk(other, "easy", "timeout:300").restore(path)
    told = json.loads(path.read_text())
    older = {name: value for name, value in told.items() if name not in ("machine", "sha256")}
    write_state(tmp_path / "older.json", "", older)
    Desk(_platform(), "easy", "timeout:300").restore(tmp_path / "older.json")
    whole = path.read_text()
    path.write_text(whole[:50])
    with pytest.raises(escala.EscalaError, match="remove it, and begin anew: what the policies remember is lost"):
        Desk(_platform(), "easy", "timeout:300").restore(path)
    for text in (whole[:50], "[]", whole.replace('"held": []', '"held": 5'), whole.replace('"held"', '"hold"')):
        path.write_text(text)
        with pytest.raises(escala.EscalaError, match=r"desk\.json"):
            Desk(_platform(), "easy", "timeout:300").restore(path)


def test_more_jobs_than_there_was_room_for() -> None:
    n = 700
    jobs = {
        "job_id": [str(k) for k in range(n)],
        "submit_s": [0.0] * n,
        "walltime_s": [9.0] * n,
        "cores": [1] * n,
        "state": ["queued"] * n,
    }
    for scheduler in ("easy", "saf", "easy++", lambda view, act: [act.start(job) for job in view.queue[:4]]):
        desk = Desk(_platform(), scheduler, "hold:0.5")
        for now in (0.0, 1.0):
            orders = desk.decide(Snapshot.of(now, jobs, {"power": ["on"] * 4}))
            assert [start.job_id for start in orders.starts] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("shutdown", ["timeout:300", "random", "hold:0.5"])
def test_compiling_beforehand_leaves_no_trace(shutdown: str, tmp_path: Path) -> None:
    desk = Desk(_platform(), "easy++", shutdown)
    desk.save(tmp_path / "before.json")
    desk.warm()
    desk.save(tmp_path / "after.json")
    assert (tmp_path / "before.json").read_text() == (tmp_path / "after.json").read_text()
    assert desk.decide(_snapshot(now_s=0.0, jobs={}, placed={})) == Desk(_platform(), "easy++", shutdown).decide(
        _snapshot(now_s=0.0, jobs={}, placed={})
    )
