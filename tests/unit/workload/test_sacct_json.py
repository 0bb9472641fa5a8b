"""`sacct --json` by the documented forms of its data parsers (written by hand, not recorded): the same jobs as from its
text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from escala import EscalaError, read_workload
from escala.reading import parse_json, read_text
from escala.workload import json_list
from escala.workload.json_list import entries
from escala.workload.slurm_json import is_sacct_json
from escala.workload.to_parquet import convert

TEXT = """\
JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|NNodes|NodeList|ReqMem|AllocTRES|JobName
12|12|ann|bio|cpu|high|COMPLETED|1700000000|1700000000|1700000060|1700000160|100|10|8|2|n[1-2]|2000Mc|cpu=8,mem=16000M,node=2|a
13_4|17|bob|chem|gpu|low|TIMEOUT|1700000100|1700000100|1700000200|1700000800|600|10|4|1|g1|4000Mn|cpu=4,mem=4000M,node=1,gres/gpu=2,gres/gpu:a100=2|b
18|18|bob|chem|gpu|low|PENDING|1700000200|1700000200|Unknown|Unknown|0|UNLIMITED|4|0|None assigned|4000Mn||c
"""


@pytest.mark.parametrize("value", [1e300, 1e20, 1e-7, -5.0, float("inf"), float("nan"), True, "x", [], {}, None])
def test_a_number_that_is_none_breaks_nothing(tmp_path: Path, value: Any) -> None:
    """In any place of a record."""
    path, whole = tmp_path / "jobs.json", json.dumps(_document(_new, True))
    places = [
        ("required", "memory"),
        ("required", "memory_per_node"),
        ("time", "elapsed"),
        ("time", "limit"),
        ("array", "task_id"),
    ]
    for table, name in places:
        document = json.loads(whole)
        document["jobs"][1]["required"] = {"CPUs": 4} if name == "memory" else document["jobs"][1]["required"]
        document["jobs"][1][table][name] = value
        path.write_text(json.dumps(document))
        assert "12" in read_workload(path, shapes=True).jobs["job_id"], f"{name}: the other job is read"


def _old(value: int | None) -> Any:
    return 0 if value is None else value


def _new(value: int | None) -> Any:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def _job(number: Any, listed: bool, **told: Any) -> dict[str, Any]:
    """A record. told: job, user, account, partition, qos, state, times, limit, cpus, nodes, hosts, memory, tres, name,
    array."""
    submit, eligible, start, end, elapsed = told["times"]
    whole, task = told.get("array", (0, None))
    endless = {"set": False, "infinite": True, "number": 0}
    return {
        "account": told["account"], "allocation_nodes": told["nodes"], "job_id": told["job"], "name": told["name"],
        "nodes": told["hosts"],
        "array": {"job_id": whole, "task_id": number(task) if listed else task}, "partition": told["partition"],
        "priority": number(9),
        "association": {"account": told["account"], "cluster": "lab", "partition": None, "user": told["user"]},
        "qos": told["qos"],
        "required": {"CPUs": told["cpus"], **told["memory"]}, "user": told["user"],
        "steps": [{"step": {"id": f"{told['job']}.batch"}}],
        "state": {"current": [told["state"]] if listed else told["state"], "reason": "None"},
        "time": {"submission": submit, "eligible": eligible, "start": start, "end": end, "elapsed": elapsed,
                 "limit": endless if told["limit"] is None else number(told["limit"])},
        "tres": {"allocated": [{"type": a, "name": b, "id": 1, "count": n} for a, b, n in told["tres"]],
                 "requested": []},
    }  # fmt: skip


def _document(number: Any, listed: bool) -> dict[str, Any]:
    core = {"memory_per_cpu": number(2000)} if listed else {"memory": 2**63 + 2000}
    node = {"memory_per_node": number(4000)} if listed else {"memory": 4000}
    t = 1_700_000_000
    common: dict[str, Any] = {"number": number, "listed": listed}
    jobs = [
        _job(**common, job=12, user="ann", account="bio", partition="cpu", qos="high", state="COMPLETED",
             times=(t, t, t + 60, t + 160, 100), limit=10, cpus=8, nodes=2, hosts="n[1-2]", memory=core, name="a",
             tres=[("cpu", "", 8), ("mem", "", 16000), ("node", "", 2)]),
        _job(**common, job=17, user="bob", account="chem", partition="gpu", qos="low", state="TIMEOUT", limit=10,
             cpus=4, nodes=1,
             hosts="g1", times=(t + 100, t + 100, t + 200, t + 800, 600), memory=node, name="b", array=(13, 4),
             tres=[("cpu", "", 4), ("mem", "", 4000), ("node", "", 1), ("gres", "gpu", 2), ("gres", "gpu:a100", 2)]),
        _job(**common, job=18, user="bob", account="chem", partition="gpu", qos="low", state="PENDING",
             times=(t + 200, t + 200, 0, 0, 0),
             limit=None, cpus=4, nodes=0, hosts="None assigned", memory=node, tres=[], name="c"),
    ]  # fmt: skip
    return {
        "meta": {"plugin": {"type": "openapi/dbv0.0.38" if not listed else "data_parser/v0.0.40"}},
        "errors": [],
        "jobs": jobs,
    }


@pytest.mark.parametrize(
    ("number", "listed"), [(_old, False), (_new, True)], ids=["plain numbers", "set, infinite, number"]
)
def test_json_gives_the_jobs_of_the_text(number: Any, listed: bool, tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text(TEXT)
    (tmp_path / "jobs.json").write_text(json.dumps(_document(number, listed), indent=1))
    own, text = (read_workload(tmp_path / f"jobs.{kind}", shapes=True) for kind in ("json", "txt"))
    assert own.jobs.equals(text.jobs), (own.jobs, text.jobs)
    assert own.cleaning == text.cleaning == {"never started": 1}
    assert (
        own.origin_s == 1_700_000_000
        and own.read_as["format"] == "slurm"
        and "job '18', line" in own.first_cleaned["never started"]
    )
    assert own.jobs["job_id"].to_list() == ["12", "13_4"] and own.jobs["gpu_kind"].to_list() == [None, "a100"]
    assert own.jobs.select("memory_mb_per_core", "memory_mb_per_node").rows() == [(2000, None), (None, 4000)]


def test_components_of_heterogeneous_jobs_have_their_ids(tmp_path: Path) -> None:
    document = _document(_new, True)
    for k, job in enumerate(document["jobs"][:2]):
        job |= {
            "het": {"job_id": 12, "job_offset": _new(k)},
            "array": {"job_id": 0, "task_id": _new(None)},
            "time": document["jobs"][0]["time"],
        }
    (tmp_path / "jobs.json").write_text(json.dumps(document))
    log = read_workload(tmp_path / "jobs.json")
    assert log.jobs.select("job_id", "cores").rows() == [("12", 12)]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 22])
def test_a_list_is_read_piece_by_piece_as_the_whole_is(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where texts are damaged: then both are refused, for the same line."""
    monkeypatch.setattr(json_list, "CHUNK_BYTES", chunk)
    path, draw = tmp_path / "jobs.json", random.Random(chunk)
    signs = '{}[],:"\\ \n019.-eu'
    values = [
        {"a": [1, -2.5e3, {"jobs": [3]}]},
        'x\\\u00e9\U0001f600"]',
        [],
        12345678901234567890,
        -0.5,
        None,
        True,
        "\ud83d",
        float("-inf"),
    ]
    document = {"more": {"jobs": [1]}, "jobs": values, "end": 12.25}
    found = {"read": 0, "refused": 0}
    for turn in range(400):
        text = json.dumps(document, indent=draw.choice((None, 1)), ensure_ascii=draw.random() < 0.5)
        at = draw.randrange(len(text))
        change = draw.choice(("", draw.choice(signs), text[at : at + draw.randrange(30)])) if turn else text[at]
        text = text[:at] + change + text[at + draw.choice((0, 1, 1, 5)) :] if turn else text
        path.write_text(text, errors="surrogatepass")
        if text[:1] != "{":
            continue
        whole, why = _said(_whole, path)
        pieces, its = _said(_pieces, path)
        if why is None and isinstance(whole.get("jobs"), list):
            assert pieces == whole["jobs"] and its is None, text
            found["read"] += 1
        else:
            # Python 3.13 and later name the comma, not what stands behind it
            comma = why is not None and "trailing comma" in why
            assert its is not None and (why is None or comma or _line(its) == _line(why)), (text, its, why)
            found["refused"] += 1
    assert min(found.values()) > 50


def _whole(path: Path) -> Any:
    return parse_json(read_text(path), path)


def _pieces(path: Path) -> list[Any]:
    return [entry.value for entry in entries(path, "jobs", "hint")]


def _said(read: Callable[[Path], Any], path: Path) -> tuple[Any, str | None]:
    """What is read, or what is said of it."""
    try:
        return read(path), None
    except EscalaError as error:
        return None, str(error)


def _line(why: str) -> str:
    return why.partition(":")[0]


def test_what_a_list_of_jobs_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_list, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(json_list, "LONGEST", 5000)
    path = tmp_path / "jobs.json"
    head = '{"meta": {"plugin": {}},\n"jobs": ['
    for text, why in (
        (
            head + '{"job_id": 1, "name": "' + "x" * 9000,
            "line 2: not valid JSON .a value of more than 5,000 characters",
        ),
        (head + "[" * 900_000, "nested too deeply|a value of more than"),  # Python 3.14 goes deeper
        (head + "1" * 4500 + "]}", "line 2: a number of thousands of digits"),
        (head + "1, 2]}", "JSON without a list of jobs: export with"),
        ('{"meta": {"plugin": {}},\n"jobs": {"a": 1}}', "JSON without a list of jobs: export with"),
        (head + '{"job_id": 1}],\n"jobs": []}', "names 'jobs' twice"),
        (head + '{"job_id": 1, "job_id": 2}]}', "names 'job_id' twice"),
        (head + " " * (1 << 18) + "\n\0]}", "line 3: a byte 0 in a text"),
        (head + '{"job_id": 1}]}\n{', r"line 3: not valid JSON .Extra data"),
        (head + '{"job_id": 1}', r"line 2: not valid JSON .Expecting ',' delimiter"),
    ):
        path.write_text(text)
        for read in (read_workload, lambda path: convert(path, tmp_path / "out.parquet")):
            with pytest.raises(EscalaError, match=why):
                read(path)
    assert not (tmp_path / "out.parquet").exists()


def test_other_json_is_none_of_sacct(tmp_path: Path) -> None:
    assert not is_sacct_json('{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "profile": "a"}], "profiles": {}}')
    path = tmp_path / "jobs.json"
    for text, why in (
        ('{"meta": {"plugin": {}}, "jobs": []}', "has no jobs"),
        ('{"meta": {"plugin": {}}, "errors": ["no database"]}', "JSON without a list of jobs"),
        ('{"meta": {"plugin": {}}, "jobs": [{"job_id": 1}]}', "no job is left"),
    ):
        path.write_text(text)
        with pytest.raises(EscalaError, match=why):
            read_workload(path)
