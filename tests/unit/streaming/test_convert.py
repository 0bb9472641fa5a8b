"""`workload convert` writes tables piece by piece: the table, and what is said of it, are those of the log read
whole."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.cli.app import run
from escala.errors import EscalaError
from escala.streaming import stream
from escala.workload import CleaningRules, Workload, read_workload, write_parquet
from escala.workload.to_parquet import convert
from tests.cli.test_parts_of_logs import LOOKED
from tests.unit.streaming.forms import BEGIN, FORMS, LOGS, TRACES, jobs_of, small_chunks
from tests.unit.workload.test_filters import SACCT


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_chunks(monkeypatch)


def _same(path: Path, jobs: int = 40, first: int | None = None, **reading: Any) -> pl.DataFrame:
    """The table that is written piece by piece, which is that of the log read whole, as is all that is told of it."""
    log = read_workload(path, **reading)
    log = log if first is None else log.head(first)
    write_parquet(log, path.with_name("whole.parquet"))
    found = convert(path, path.with_name("pieces.parquet"), first=first, jobs=jobs, **reading)
    tables = [pl.read_parquet(path.with_name(f"{name}.parquet")) for name in ("whole", "pieces")]
    assert tables[0].schema == tables[1].schema == log.jobs.schema
    assert [name for name in tables[0].columns if not tables[0][name].equals(tables[1][name])] == []
    kept = [pl.read_parquet_metadata(path.with_name(f"{name}.parquet"))["escala"] for name in ("whole", "pieces")]
    assert kept[0] == kept[1]
    told = (found.jobs, found.span_s, found.origin_s, found.max_cores, found.cleaning, found.ignored)
    assert told == (len(log), log.span_s, log.origin_s, log.max_cores, log.cleaning, log.ignored)
    assert set(found.first_cleaned) == set(log.first_cleaned)
    if first is None:
        assert read_workload(path.with_name("pieces.parquet")).ignored == log.ignored
    return tables[1]


@pytest.mark.parametrize("order", ["as logged", "any", "packed"])
@pytest.mark.parametrize("name", FORMS)
def test_the_table_is_that_of_the_log_read_whole(name: str, order: str, tmp_path: Path) -> None:
    jobs = jobs_of()
    if order == "any":
        random.Random(3).shuffle(jobs)
    text = FORMS[name](jobs).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if order == "packed" else text)
    rows = _same(tmp_path / name)
    assert rows.height > 150 and "limited" in rows.columns
    assert rows["job_id"].str.contains("#2").any()
    if order != "packed":
        assert _same(tmp_path / name, first=50).height == 50


@pytest.mark.parametrize(
    "reading",
    [
        {"partition": "1", "rules": CleaningRules(zero_runtime_s=None, no_request=3600.0)},
        {"user": ["2", "3"], "until": datetime.fromtimestamp(BEGIN + 7500, UTC).isoformat()},
        {"since": BEGIN + 2500.0, "rules": CleaningRules(no_request="drop")},
    ],
)
@pytest.mark.parametrize("name", FORMS)
def test_parts_of_a_log_and_rules(name: str, reading: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name](jobs_of(4)))
    for option, letter in (("partition", "p"), ("user", "u")):
        if option in reading and name != "log.swf":
            reading = {**reading, option: [letter + one for one in reading[option]]}
    if name == "log.json" and "since" in reading:  # on the clock of the log
        reading = {**reading, "since": reading["since"] - BEGIN}
    assert 25 < _same(tmp_path / name, jobs=30, **reading).height < 200


@pytest.mark.parametrize("reading", [{}, {"since": 100.0}])
def test_partial_executions_of_jobs_in_other_pieces(reading: dict[str, Any], tmp_path: Path) -> None:
    """SWF: lines of status 2 to 4 are left out where the job has a line of its own, wherever it stands."""
    draw, lines = random.Random(5), []
    for k in range(600):
        code = draw.choice((1, 1, 0, 2, 3, 4))
        lines.append(f"{draw.randrange(150)} {k} 3 {1 + k % 9} 1 -1 -1 1 60 -1 {code} 1 1 -1 -1 -1 -1 -1")
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    _same(tmp_path / "log.swf", **reading)
    assert read_workload(tmp_path / "log.swf").cleaning["partial execution"] > 100


def test_columns_of_ones_own_and_what_a_table_has_besides(tmp_path: Path) -> None:
    jobs = pl.DataFrame(
        {
            "when": [k // 2 for k in range(500)],
            "ran": [1 + k % 90 for k in range(500)],
            "procs": [1 + k % 8 for k in range(500)],
            "queue": ["a" if k > 450 else None for k in range(500)],
            "qos": ["", "low"] * 250,
            "gpus": [k % 3 for k in range(500)],
            "group": [None] * 499 + ["g"],
        }
    )
    columns = {"submit_s": "when", "runtime_s": "ran", "cores": "procs", "queue": "queue", "partition": "queue"}
    for path in (tmp_path / "log.csv", tmp_path / "log.parquet"):
        jobs.write_csv(path) if path.suffix == ".csv" else jobs.write_parquet(path)
        rows = _same(path, columns=columns, unit="min")
        assert rows["group"].null_count() == 499 and "partition" not in rows.columns and "gpus" not in rows.columns
    wide = Workload.from_jobs(
        {
            "submit_s": [3.0, 1.0, 2.0] * 40,
            "runtime_s": [5.0] * 120,
            "cores": [1] * 120,
            "single_node": [True] * 120,
            "demand_b": range(120),
            "demand_a": [1] * 120,
            "estimate_x": [4.0] * 120,
            "nodes": [None] * 119 + [1],
            "begin_s": [None] * 60 + [90.0] * 60,
            "array_id": [None] * 120,
        },
        origin_s=1.5e9,
    )
    write_parquet(wide, tmp_path / "wide.parquet")
    assert {"demand_a", "demand_b", "estimate_x", "nodes", "begin_s"} <= set(_same(tmp_path / "wide.parquet").columns)


def test_begin_times_move_with_the_clock(tmp_path: Path) -> None:
    """A table of others begins at 0, whatever its own clock says, and its jobs may begin as long after their
    submissions as before."""
    times = {
        "when": [BEGIN + 10.0 * k for k in range(90)],
        "begin_s": [BEGIN + 10.0 * k + 50.0 if k % 3 else None for k in range(90)],
    }
    pl.DataFrame({**times, "runtime_s": [5] * 90, "cores": [1] * 90}).write_csv(tmp_path / "log.csv")
    rows = _same(
        tmp_path / "log.csv", columns={"submit_s": "when", **{name: name for name in ("runtime_s", "cores", "begin_s")}}
    )
    assert rows["begin_s"].to_list() == [10.0 * k + 50.0 if k % 3 else None for k in range(90)]


@pytest.mark.parametrize(("name", "reading"), [(name, reading) for name, _, reading in LOGS])
def test_real_logs(name: str, reading: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (TRACES / name).is_file():
        pytest.skip(f"the shared log {name} is not here")
    monkeypatch.setattr("escala.workload.lines.CHUNK_BYTES", 100_000)
    (tmp_path / Path(name).name).symlink_to(TRACES / name)
    _same(tmp_path / Path(name).name, jobs=500, **reading)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"user": "nobody"}, "no job of user 'nobody'"),
        ({"since": 4e9}, "no job submitted since"),
        ({"strict": True}, "without strict=True"),
        ({"rules": CleaningRules(longest_s=1e-3, zero_runtime_s=None)}, "no job is left after cleaning"),
    ],
)
@pytest.mark.parametrize("name", FORMS)
def test_errors_are_those_of_the_log_read_whole(
    name: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(FORMS[name](jobs_of(5)))
    for read in (read_workload, lambda path, **how: convert(path, tmp_path / "out.parquet", jobs=30, **how)):
        with pytest.raises(EscalaError, match=message) as told:
            read(tmp_path / name, **options)
        assert name in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_beginning_of_the_log_travels_with_the_table(tmp_path: Path) -> None:
    path, out = tmp_path / "log.swf", tmp_path / "log.parquet"
    text = FORMS["log.swf"](
        [job._replace(submit=job.submit - BEGIN, start=job.start - BEGIN, end=job.end - BEGIN) for job in jobs_of()]
    )
    path.write_text(f"; UnixStartTime: {BEGIN}\n{text}")
    assert run(["workload", "convert", str(path), "--out", str(out)]) == 0
    first, again = read_workload(path), read_workload(out)
    assert again.origin_s == first.origin_s >= BEGIN and again.max_cores == first.max_cores == 32
    assert again.jobs.equals(first.jobs)
    described = [dict(escala.describe(log)) | {"source": "", "quantiles": {}} for log in (again, first)]
    assert described[0] == described[1] and described[0]["years"]
    since = datetime.fromtimestamp(BEGIN + 6000, UTC).isoformat()
    part = read_workload(path, since=since)
    # of the table, where an id that comes again has its number already
    plain = pl.col("job_id").str.replace(r"#\d+$", "")
    kept = read_workload(out, since=since).jobs
    assert kept.select(plain).equals(part.jobs.select(plain)) and 0 < len(part) < len(first)
    assert stream(out, "32x1", jobs=40, since=since).summary["n_jobs"] == len(part)
    rest = read_workload(out, since=since, shift=True)
    assert rest.origin_s == part.origin_s and rest.jobs.with_columns(plain).equals(part.jobs.with_columns(plain))
    path.write_text(text)  # without a date
    assert run(["workload", "convert", str(path), "--out", str(out), "--force"]) == 0
    with pytest.raises(EscalaError, match="the log has no dates"):
        read_workload(out, since=since)


def test_what_no_replay_looks_at_travels_with_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also the columns that the table has not: amounts and priorities. Where part of the jobs is read, those are of the
    whole log."""
    path, out, part = tmp_path / "sacct.txt", tmp_path / "log.parquet", tmp_path / "part.parquet"
    path.write_text(SACCT)
    told = f"the log has what no replay looks at: {LOOKED}"
    assert run(["workload", "convert", str(path), "--out", str(out)]) == 0
    assert capsys.readouterr().err == f"remark: {path}: {told}\n"
    log = read_workload(path)
    assert log.ignored["GPUs"] == {"jobs": 1} and log.ignored["partitions"] == {"jobs": 3, "values": 2}
    for more in ([], ["--stream"], ["--stream", "--out", str(tmp_path / "run")]):
        assert run(["simulate", str(out), "--platform", "1x4", "--json", *more]) == 0
        found = capsys.readouterr()
        assert found.err.startswith(f"remark: {out}: {told}\n") and json.loads(found.out)["ignored"] == log.ignored
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["workload"]["ignored"] == log.ignored
    few = {name: {**log.ignored[name], "whole_log": True} for name in ("GPUs", "memory", "reservations")}
    assert read_workload(out, user="ann").ignored == few
    assert stream(out, "1x4", user="ann").manifest["workload"]["ignored"] == few
    assert run(["workload", "convert", str(path), "--out", str(part), "--first", "1"]) == 0
    assert run(["simulate", str(part), "--platform", "1x4"]) == 0
    assert (
        f"remark: {part}: the log has what no replay looks at: GPUs (1 job of the whole log), memory"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ("{", "metadata 'escala' is '{': no JSON object"),
        ("[" * 5000, "no JSON object"),
        ("[1]", "no JSON object"),
        ('{"origin_s": "x"}', "origin_s = 'x', which cannot be"),
        ('{"origin_s": NaN}', "origin_s = nan, which cannot be"),
        ('{"origin_s": 1e300}', "which cannot be"),
        ('{"origin_s": true}', "origin_s = True, which cannot be"),
        ('{"max_cores": 0.5}', "max_cores = 0.5, which cannot be"),
        ('{"max_cores": -1}', "max_cores = -1, which cannot be"),
        ('{"ignored": [1]}', "ignored = .*, which cannot be"),
        ('{"ignored": {"GPUs": 3}}', "which cannot be"),
        ('{"ignored": {"GPUs": {"values": 3}}}', "which cannot be"),
        ('{"ignored": {"GPUs": {"jobs": -3}}}', "which cannot be"),
        ('{"ignored": {"GPUs": {"jobs": "many"}}}', "which cannot be"),
    ],
)
def test_metadata_that_cannot_be_is_one_line(kept: str, message: str, tmp_path: Path) -> None:
    jobs = pl.DataFrame({"submit_s": [0.0], "runtime_s": [1.0], "cores": [1]})
    jobs.write_parquet(tmp_path / "log.parquet", metadata={"escala": kept})
    for read in (read_workload, lambda path: stream(path, "32x1")):
        with pytest.raises(EscalaError, match=message.replace("[", r"\[")) as told:
            read(tmp_path / "log.parquet")
        assert "log.parquet" in str(told.value)


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text(FORMS["log.csv"](jobs_of()))
    asked = ["workload", "convert", str(tmp_path / "log.csv"), "--json", "--hash-names", "--out"]
    assert run([*asked, str(tmp_path / "a.swf")]) == run([*asked, str(tmp_path / "a.parquet")]) == 0
    out, err = capsys.readouterr()
    whole, pieces = (json.loads(one) | {"file": ""} for one in out.replace("}\n{", "}\n\n{").split("\n\n"))
    assert whole == pieces and pieces["jobs"] > 150 and pieces["cleaning"]
    assert err.splitlines()[: len(err.splitlines()) // 2] == err.splitlines()[len(err.splitlines()) // 2 :] != []
    users = pl.read_parquet(tmp_path / "a.parquet")["user"].to_list()
    plain = read_workload(tmp_path / "log.csv").jobs["user"].to_list()
    assert len(set(zip(users, plain, strict=True))) == len(set(plain)) == 7 and not set(users) & set(plain)
    (tmp_path / "log.csv").write_text("submit_s,runtime_s,walltime_s,cores,flops\n0,,,1,1e9\n")
    assert run([*asked, str(tmp_path / "b.parquet")]) != 0
    assert (
        "log.csv: gives work in flops and no run times: give a column runtime_s in their place"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "b.parquet").exists()
