"""A damaged journal of looks beside Slurm: its report is given, or refused in one line that names the place."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.findings import find
from escala.bridges.slurm.page import write_page
from escala.bridges.slurm.replay import looks
from escala.bridges.slurm.sentences import answers, conditions
from escala.bridges.slurm.story import explain, status
from escala.cli.app import run
from escala.errors import EscalaError
from tests.bridges.slurm.journals import journal

DAMAGE: list[tuple[int, dict[str, Any] | str, str]] = [
    (9, {"lived": 5}, "lived is 5"),
    (9, {"lived": {"off_s": "9"}}, "lived is {'off_s': '9'}"),
    (9, {"lived": {"delays": [["1", "ann"]]}}, "lived is"),
    (9, {"started": [["1", "ann", 0.0, 1.0, "twice", None, None, None]]}, "started is"),
    (9, {"seq": None}, "seq is None"),
    (9, {"t": float("nan")}, "t is nan"),
    (9, {"seen": {"jobs": [[1, 2]]}}, "seen is"),
    (9, {"kind": "book"}, "kind is 'book'"),
    (9, "5", "it is 5"),
    (9, "{}", "kind is None"),
    (9, '{"v":1,"kind":"look","t"', "it is no record"),
    (1, {"platform": None}, "platform is None"),
    (1, {"platform": {"nodes": 3}}, "platform is {'nodes': 3}"),
    (1, {"names": "n1"}, "names is 'n1'"),
]


@pytest.mark.parametrize(("number", "damage", "why"), DAMAGE)
def test_a_damaged_line_is_named_with_its_number(
    number: int, damage: dict[str, Any] | str, why: str, tmp_path: Path
) -> None:
    path = journal(tmp_path / "j")
    lines = path.read_text().splitlines()
    lines[number - 1] = damage if isinstance(damage, str) else json.dumps(json.loads(lines[number - 1]) | damage)
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(EscalaError) as raised:
        find(path)
    assert str(raised.value).startswith(f"{path}, line {number}: damaged ({why}"), raised.value
    assert f"take it out, as by sed -i {number}d" in str(raised.value)


@pytest.mark.parametrize("key", ["policies", "names", "platform", "mode"])
def test_a_first_record_that_lacks_something_is_refused_in_one_line(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = journal(tmp_path / "journal.jsonl")
    first, *others = path.read_text().splitlines()
    path.write_text(
        "\n".join([json.dumps({name: value for name, value in json.loads(first).items() if name != key}), *others])
        + "\n"
    )
    assert run(["beside", "report", str(tmp_path)]) == 2
    assert f"line 1: damaged ({key} is not there): take it out" in capsys.readouterr().err


VALUES: list[Any] = [
    None,
    True,
    -1,
    5,
    1e400,
    float("nan"),
    10**400,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    [None],
    {},
    {"a": 1},
    [["1", "ann", 2.0]],
]


def _damaged(text: str, drawn: random.Random) -> bytes:
    """A journal with some damage: to bytes, to lines, or to a value somewhere in a record."""
    lines = text.splitlines()
    for _ in range(drawn.randint(1, 3)):
        k, how = drawn.choice([0, 1, drawn.randrange(len(lines))]), drawn.randrange(5)
        if how == 0:
            lines[k] = lines[k][: drawn.randrange(len(lines[k]) + 1)]
        elif how == 1:
            at = drawn.randrange(len(lines[k]) + 1)
            lines[k] = lines[k][:at] + chr(drawn.randrange(256)) + lines[k][at + 1 :]
        elif how == 2:
            lines.insert(k, lines[drawn.randrange(len(lines))])
        elif how == 3 and len(lines) > 2:
            del lines[k]
        else:
            lines[k] = _other(lines[k], drawn)
    whole = ("\n".join(lines) + "\n" * drawn.randint(0, 1)).encode(errors="surrogateescape")
    return whole[: drawn.randrange(len(whole))] if drawn.random() < 0.1 else whole


def _other(line: str, drawn: random.Random) -> str:
    """The same record, with something of it missing or of another kind."""
    try:
        told = json.loads(line)
    except ValueError:
        return line
    at = told
    while isinstance(at, dict | list) and at:
        key: Any = drawn.choice(list(at)) if isinstance(at, dict) else drawn.randrange(len(at))
        if not isinstance(at[key], dict | list) or drawn.random() < 0.3:
            if drawn.random() < 0.2:
                del at[key]
            else:
                at[key] = drawn.choice(VALUES)
            break
        at = at[key]
    return json.dumps(told)


def _whole_run(path: Path) -> str:
    """A journal of a few looks with all kinds of records."""
    whole = path.read_text().splitlines()
    begin, first, *looks = whole
    node = ["a", 4, 0, ["IDLE"], None, ["batch"]]
    seen = json.loads(first)["seen"] | {
        "nodes": [node, ["b", *node[1:]]],
        "reservations": [["escala_a", ["a"], 0.0, 9.0, ["ann"]]],
    }
    more = {
        "acted": [["scontrol x", True]],
        "refused": [["off", "b", "spare"]],
        "leases": ["a"],
        "changed": [["1", 0, 5]],
    }
    more |= {
        "expected": {"1": [3.0, None]},
        "added": ["c"],
        "unsure": [0],
        "starts": ["1"],
        "wakes": ["a"],
        "offs": ["b"],
    }
    miss = {"v": 1, "kind": "miss", "t": 3.0, "why": "no answer"}
    told = [
        begin,
        json.dumps(json.loads(first) | {"seen": seen}),
        json.dumps(json.loads(looks[5]) | more),
        json.dumps(miss),
        looks[280],
    ]
    return (
        "\n".join([*told, begin, json.dumps(json.loads(first) | {"seen": seen, "t": 9.0, "seq": 9}), looks[290]]) + "\n"
    )


def _fuzzed(seeds: range, folder: Path) -> int:
    """Each damaged journal gives answers, or one line. How many were refused."""
    text = _whole_run(journal(folder / "whole"))
    path, refused = folder / "journal.jsonl", 0
    for seed in seeds:
        path.write_bytes(_damaged(text, random.Random(seed)))
        for ask in (_reported, status, lambda path: explain(path, "1"), lambda path: list(looks(path))):
            try:
                assert ask(path) is not None
            except EscalaError as error:
                refused += 1
                assert "\n" not in str(error) and str(path) in str(error), error
    return refused


def _reported(path: Path) -> list[str]:
    found = find(path)
    write_page(path.with_name("page.html"), found, "x", 0.3, "EUR", 100.0)
    return [*answers(found, 0.3, "EUR", 100.0), *conditions(found)]


def test_whatever_is_damaged_there_is_a_report_or_one_line(tmp_path: Path) -> None:
    assert _reported(Path(shutil.copy(_intact(tmp_path), tmp_path / "journal.jsonl")))
    refused = _fuzzed(range(150), tmp_path)
    assert 200 < refused < 600


@pytest.mark.long
def test_whatever_is_damaged_five_thousand_times(tmp_path: Path) -> None:
    assert _fuzzed(range(150, 5150), tmp_path) > 5000


def _intact(folder: Path) -> Path:
    path = folder / "intact"
    path.write_text(_whole_run(journal(folder / "whole")))
    return path
