"""Every format that is read in pieces: what a stream makes of it is what reading it whole makes of it."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import random
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.cli.app import run
from escala.errors import EscalaError
from escala.streaming import stream
from escala.workload.known_ids import KnownIds
from escala.workload.lines import _last_end, line_chunks
from escala.workload.ordering import AT, OutOfOrder
from escala.workload.pieces import Pieces
from tests.unit.streaming.alike import same
from tests.unit.streaming.forms import BEGIN, FORMS, JOBS, LOGS, TRACES, batsim_of, date_of, jobs_of, small_chunks


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_chunks(monkeypatch)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_a_log_in_the_order_of_submission(name: str, packed: bool, tmp_path: Path) -> None:
    path, text = tmp_path / name, FORMS[name](jobs_of()).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    rows = same(path, jobs=40, moved=name == "accounting")
    assert rows.height > JOBS / 2
    assert name == "accounting" or rows["job_id"].str.contains("#2").any()


@pytest.mark.parametrize("name", FORMS)
def test_a_log_in_any_order_is_sorted(name: str, tmp_path: Path) -> None:
    jobs = [job._replace(name=str(k)) for k, job in enumerate(jobs_of(2), 1000)]
    random.Random(3).shuffle(jobs)
    (tmp_path / name).write_text(FORMS[name](jobs))
    same(tmp_path / name, jobs=25, moved=True)
    if name.startswith("log"):
        with pytest.raises(OutOfOrder, match="is not in the order of submission"):
            list(Pieces(tmp_path / name, 25))


@pytest.mark.parametrize(
    "part",
    [
        {"partition": "1"},
        {"user": ["2", "3"]},
        {"since": BEGIN + 2500.0},
        {"until": date_of(BEGIN + 7500)},
        {"partition": "0,2", "since": date_of(BEGIN + 1500), "until": BEGIN + 7500.0},
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "log.swf",
        "accounting",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("log.csv", "sacct.txt", "sacct.json", "oar.json")),
    ],
)
def test_parts_of_a_log(name: str, part: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name](jobs_of(4)))
    if name != "log.swf":
        named = {"partition": "p", "user": "u"}
        part = {
            key: ",".join(named[key] + one for one in ",".join(value).split(",") if one) if key in named else value
            for key, value in part.items()
        }
    same(tmp_path / name, jobs=30, reading=part, moved=name == "accounting")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"user": "nobody"}, "no job of user 'nobody'"),
        ({"account": "x"}, "names no account|no job of account"),
        ({"since": 4e9}, "no job submitted since"),
    ],
)
@pytest.mark.parametrize("name", FORMS)
def test_parts_that_are_not_there(name: str, part: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name](jobs_of(5)))
    with pytest.raises(EscalaError, match=message) as whole:
        escala.read_workload(tmp_path / name, **part)
    with pytest.raises(EscalaError) as pieces:
        stream(tmp_path / name, "32x1", jobs=30, out=tmp_path / "out", **part)
    assert str(pieces.value) == str(whole.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", FORMS)
def test_a_log_without_jobs_says_what_it_says_in_memory(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name]([jobs_of()[0]._replace(cores=0)] * 3))
    with pytest.raises(EscalaError) as whole:
        escala.read_workload(tmp_path / name)
    with pytest.raises(EscalaError) as pieces:
        stream(tmp_path / name, "32x1")
    assert str(pieces.value) == str(whole.value)


def test_columns_of_ones_own_and_errors_with_their_lines(tmp_path: Path) -> None:
    lines = ["id;when;ran;procs;set", *(f"{k};{k // 2};{1 + k % 90};{1 + k % 8};{k % 2}" for k in range(1500))]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    columns = {"submit_s": "when", "runtime_s": "ran", "cores": "procs"}
    rows = same(path, jobs=100, reading={"columns": columns, "unit": "min", "select": {"set": "1"}})
    assert rows.height == 750
    with pytest.raises(EscalaError, match="no row has set = '7': values are 0, 1"):
        stream(path, "32x1", columns=columns, select={"set": "7"})
    lines[1200] = "1;2;x;4;1"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(EscalaError, match="line 1201: column 'ran'"):
        stream(path, "32x1", columns=columns)


def test_work_of_batsim_becomes_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By --speed, or by the platform's."""
    path, log = tmp_path / "log.json", str(tmp_path / "log.json")
    path.write_text(batsim_of(jobs_of(), work=True))
    assert same(path, jobs=40, reading={"speed": 2e9}).height == JOBS
    machine = "{name: m, speed_flop_per_s: 1e9, nodes: [{count: 32, cores: 1}]}"
    (tmp_path / "machine.yaml").write_text(machine)
    assert same(path, escala.read_platform(tmp_path / "machine.yaml"), "never", jobs=40).height == JOBS
    with pytest.raises(EscalaError, match="gives work in flop, and platform '32x1' has no speed"):
        stream(path, "32x1")
    assert run(["workload", "convert", log, "--out", str(tmp_path / "log.parquet")]) == 2
    told = "log.json: gives work in flops and no run times: give the flop/s of a core, --speed 1e9"
    assert told in " ".join(capsys.readouterr().err.split())
    assert run(["workload", "convert", log, "--speed", "1e9", "--out", str(tmp_path / "log.parquet")]) == 0
    assert same(tmp_path / "log.parquet").height == JOBS


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"jobs": {}, "profiles": {}}',
        '{"jobs": [], "profiles": {}}',
        '{"jobs": [7], "profiles": {}}',
        '{"jobs": [{"id": 3}], "profiles": {}}',
        '{"jobs": [], "profiles": {}, "jobs": []}',
        '{"jobs": [{"id": 3, "subtime": 0, "res": 1, "profile": "p"}], "profiles": {"p": {"type": "smpi"}}}',
        '{"jobs": [], "profiles": {"a": {}, "a": {}}}',
        '{"jobs": [{"id": 3, "subtime": 0, "res": 1, "profile": "p"}], "profiles": {"p": {"type": "\\ud800"}}}',
        '{"jobs": [1], "profiles": {}, "nb_res": "x"}',
    ],
)
def test_a_batsim_file_that_cannot_be_is_told_as_if_read_whole(text: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(EscalaError) as whole:
        escala.read_workload(tmp_path / "log.json", format="batsim")
    with pytest.raises(EscalaError) as pieces:
        stream(tmp_path / "log.json", "32x1", format="batsim")
    assert str(pieces.value) == str(whole.value)


def test_a_job_of_batsim_that_cannot_be_is_counted_from_the_first_of_the_file(tmp_path: Path) -> None:
    told = json.loads(batsim_of(jobs_of()))
    del told["jobs"][173]["id"]
    (tmp_path / "log.json").write_text(json.dumps(told))
    with pytest.raises(EscalaError, match="job 174 has no") as whole:
        escala.read_workload(tmp_path / "log.json")
    with pytest.raises(EscalaError) as pieces:
        stream(tmp_path / "log.json", "32x1", jobs=40)
    assert str(pieces.value) == str(whole.value)


def test_strict_refuses_what_would_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(FORMS["log.swf"](jobs_of()))
    with pytest.raises(EscalaError, match=r"zero runtime: .* without strict=True"):
        stream(tmp_path / "log.swf", "32x1", strict=True)


def test_known_ids_count_as_a_table_of_all_would() -> None:
    draw, known, times = random.Random(6), KnownIds(), dict[str, int]()
    for _ in range(40):
        ids = [
            str(draw.choice((draw.randrange(300), f"{draw.randrange(50)}_1", "007", f"{10**17 + draw.randrange(9)}")))
            for _ in range(draw.randrange(1, 60))
        ]
        assert known.earlier(pl.Series(ids)).to_list() == [times.get(name, 0) for name in ids]
        for name in ids:
            times[name] = times.get(name, 0) + 1
    ranges = KnownIds()
    for first in range(0, 100_000, 1000):
        ranges.earlier(pl.Series(map(str, range(first, first + 1000))))
    assert sum(len(first) for first, _ in ranges._tables) + len(ranges._blocks) <= 3


def test_ids_with_gaps_take_a_bit_each() -> None:
    """Every third number of three million, in pieces: a million ids in the 8 kB of each of 46 blocks; far apart, in a
    table."""
    known = KnownIds()
    for first in range(0, 3_000_000, 300_000):
        ids = pl.Series(range(first + 7, first + 300_007, 3)).cast(pl.String)
        assert known.earlier(ids).sum() == 0
    assert not known._tables and sum(bits.nbytes for bits in known._blocks.values()) == 46 * 8192
    assert known.earlier(pl.Series(["7", "8", "10", "2999998", "3000007"])).to_list() == [1, 0, 1, 1, 0]
    sparse = KnownIds()
    sparse.earlier(pl.Series(range(0, 10**9, 10**6)).cast(pl.String))
    assert not sparse._blocks and len(sparse._tables[0][0]) == 1000


def test_few_ids_are_merged_again_with_each_piece() -> None:
    """Ids that are texts: a table is merged only into one of its size, so that their number costs no more than n log n;
    and only a part of all is there twice meanwhile."""
    known = KnownIds()
    for piece in range(100):
        ids = pl.Series([f"j{piece}_{k}" for k in range(2000)])
        assert known.earlier(ids).sum() == 0
        sizes = [[len(table) for table in tables] for tables in known._texts]
        assert sum(map(sum, sizes)) == 2000 * (piece + 1)
        assert all(a > 2 * b for part in sizes for a, b in itertools.pairwise(part))
    assert max(map(sum, sizes)) < 2 * min(map(sum, sizes)) and len(sizes) == 64
    assert known.earlier(pl.Series(["j0_0", "j99_1999", "j100_0"])).to_list() == [1, 1, 0]


def test_ids_are_let_go_before_what_comes_after_the_last_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of all jobs take eight bytes a job, as ids that are texts do: never both at once."""
    made = list[weakref.ref[KnownIds]]()

    class Watched(KnownIds):
        def __init__(self) -> None:
            super().__init__()
            made.append(weakref.ref(self))

    monkeypatch.setattr("escala.workload.pieces.KnownIds", Watched)
    (tmp_path / "log.csv").write_text(FORMS["log.csv"](jobs_of()))
    pieces = Pieces(tmp_path / "log.csv", 40)
    assert not any(made[0]() is None for _ in pieces)
    assert len(made) == 1 and made[0]() is None and pieces.cleaning


def test_whole_lines_end_outside_of_quotes() -> None:
    draw = random.Random(5)
    for _ in range(300):
        data = bytes(draw.choice(b'"\nab') for _ in range(draw.randrange(40)))
        ends = [k + 1 for k in range(len(data)) if data[k : k + 1] == b"\n" and data.count(b'"', 0, k) % 2 == 0]
        assert _last_end(data, b'"') == max(ends, default=0)
    unended = line_chunks(io.BytesIO(b'a,b\n1,"2\n'), Path("log.csv"), b'"')
    assert b"".join(text for text, _ in unended) == b'a,b\n1,"2\n'
    stray = b'a,b\n"' + b"1,2\n" * 2_000_000  # each line's quotes are counted once, else this takes an hour
    assert _last_end(stray, b'"') == 4


@pytest.mark.parametrize(("name", "platform", "reading"), LOGS)
def test_real_logs(
    name: str, platform: str | None, reading: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = TRACES / name
    if not path.is_file():
        pytest.skip(f"the shared log {name} is not here")
    monkeypatch.setattr("escala.workload.lines.CHUNK_BYTES", 100_000)
    if platform is None:
        machine = tmp_path / "machine.yaml"
        machine.write_text("name: g\nnodes:\n  - {count: 900, cores: 128000, resources: {memory: 1000000, gpu: 8}}\n")
        platform = str(machine)
    same(
        path,
        escala.read_platform(platform),
        "never",
        jobs=500,
        moved=name.startswith("pbs"),
        reading=reading,
        oversized="drop",
    )


def test_at_is_sorted_and_pieces_are_whole_instants(tmp_path: Path) -> None:
    jobs = [
        job._replace(submit=BEGIN + int(np.random.default_rng(k).integers(0, 90))) for k, job in enumerate(jobs_of())
    ]
    (tmp_path / "log.csv").write_text(FORMS["log.csv"](jobs))
    pieces = list(Pieces(tmp_path / "log.csv", 20, on_disk=True, scratch=tmp_path))
    spans = [(piece.jobs["submit_s"][0], piece.jobs["submit_s"][-1]) for piece in pieces]
    assert len(spans) > 5 and all(end < start for (_, end), (start, _) in itertools.pairwise(spans))
    assert AT not in pieces[0].jobs.columns and [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_table_without_rows_has_no_jobs(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("submit_s,runtime_s,cores\n")
    for read in (escala.read_workload, lambda path: stream(path, "32x1")):
        with pytest.raises(EscalaError, match=r"log\.csv: has no jobs: give a log with at least one"):
            read(tmp_path / "log.csv")
