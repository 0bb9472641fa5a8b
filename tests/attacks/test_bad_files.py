"""Files made to harm: each ends in one clear line that says what, within seconds, and never in another error or a
machine full."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from escala.errors import MOST_CHARACTERS, EscalaError, quoted
from escala.platform import Platform, read_platform
from escala.reading import Unreadable, guarded, read_json
from escala.workload import read_pack, read_workload
from escala.workload.batsim import _Efforts as batsim_profiles
from escala.workload.swf import read_header

SWF_LINE = "1 0 0 10 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1\n"
YAML = "name: {name}\nnodes:\n- {{count: {count}, cores: 1, power: none}}\n"
GOOD = YAML.format(name="x", count=1)
DIGITS = "9" * 5000


def refused(read: Any, path: Path, content: str | bytes, *words: str) -> str:
    """The message: one line of at most 500 characters, of a check that was meant, naming the file, within 64 MB."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    tracemalloc.start()
    try:
        with pytest.raises(EscalaError) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert not isinstance(caught.value, Unreadable), message
    assert message.isprintable() and len(message) <= MOST_CHARACTERS and str(path) in message, message
    assert all(word in message for word in words), message
    return message


def batsim(profiles: dict[str, Any] | None = None, head: dict[str, Any] | None = None, **job: Any) -> str:
    """A Batsim workload of one job."""
    row = {"id": "1", "subtime": 0, "res": 2, "walltime": 9, "profile": "p0", **job}
    return json.dumps(
        {"nb_res": 4, "jobs": [row], "profiles": profiles or {"p0": {"type": "delay", "delay": 5}}, **(head or {})}
    )


def sequence(*parts: str, **more: Any) -> dict[str, Any]:
    return {"type": "composed", "seq": list(parts), **more}


DELAY = {"type": "delay", "delay": 5}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (YAML.format(name="[" * 5000, count=1), ["nested"]),
        (YAML.format(name="{a: " * 3000, count=1), ["nested"]),
        (YAML.format(name="x", count=DIGITS), ["line 3", "no number"]),
        (YAML.format(name="0x" + "f" * 5000, count="0x" + "f" * 5000), ["digits", "2^63"]),
        (YAML.format(name="&a [*a]", count=1), ["line 1", "holds itself"]),
        ("&a\nname: *a\nnodes: *a\n", ["holds itself"]),
        (YAML.format(name="[x, y]", count=1), ["name is ['x', 'y']"]),
        (GOOD + "name: y\n", ["'name' is given twice"]),
        (YAML.format(name="x", count="{" + ", ".join(f"a{k}: 1" for k in range(5_000)) + "}"), ["whole number"]),
        (
            GOOD + "profiles: {p: {computing_w: 1" + "0" * 400 + ", idle_w: 1, can_switch: false}}\n",
            ["number >= 0"],
        ),
        (GOOD + "speed_flop_per_s: 1" + "0" * 400 + "\n", ["speed"]),
        (GOOD + "? {a: 1}\n: 2\n", ["line"]),
        (YAML.format(name="x", count=1).encode("utf-16-le")[:-1], ["YAML"]),
    ],
)
def test_yaml_platforms(tmp_path: Path, content: str | bytes, words: list[str]) -> None:
    refused(read_platform, tmp_path / "p.yaml", content, *words)
    refused(
        read_platform,
        tmp_path / "p.yaml.gz",
        gzip.compress(content.encode() if isinstance(content, str) else content),
        *words,
    )


@pytest.mark.parametrize(
    "use", ["name: *i", "name: x\nnodes: [{count: *i, cores: 1, power: none}]", "name: x\nnodes: *i"]
)
def test_aliases_of_aliases(tmp_path: Path, use: str) -> None:
    anchors = ["a: &a [xxxxxxxxx,xxxxxxxxx,xxxxxxxxx,xxxxxxxxx]"]
    anchors += [f"{here}: &{here} [{', '.join([f'*{before}'] * 9)}]" for before, here in zip("abcdefgh", "bcdefghi")]
    refused(read_platform, tmp_path / "p.yaml", "\n".join([*anchors, use]), "aliases")


@pytest.mark.parametrize("name", ["2024-13-45", "2024-02-30", "0000-01-01", "2024-01-01"])
def test_a_name_like_a_date_is_text(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.yaml").write_text(YAML.format(name=name, count=1))
    assert read_platform(tmp_path / "p.yaml").name == name


@pytest.mark.parametrize("encoding", ["shift_jis_nope", "utf-7", "big5", "utf-16"])
def test_xml_in_strange_encodings(tmp_path: Path, encoding: str) -> None:
    refused(
        read_platform,
        tmp_path / "p.xml",
        f"<?xml version='1.0' encoding='{encoding}'?><platform version='4'></platform>",
        "p.xml",
    )


@pytest.mark.parametrize(
    "body",
    [
        "<cluster prefix='n' suffix='' speed='1f' radical='{}'/>".format(",".join(["0-999999"] * 3000)),
        "".join(f"<cluster prefix='n{k}' suffix='' speed='1f' radical='0-999999'/>" for k in range(20)),
        "<cluster prefix='{}' suffix='' speed='1f' radical='0-999999'/>".format("n" * 10_000),
    ],
)
def test_xml_hosts_are_counted_before_they_are_named(
    tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escala.platform.simgrid.MOST_NODES", 10_000)
    monkeypatch.setattr("escala.platform.simgrid.MOST_TEXT", 10_000_000)
    refused(
        read_platform,
        tmp_path / "p.xml",
        f"<platform version='4'>{body.replace('999999', '9999')}</platform>",
        "10000 hosts",
    )


def test_xml_entities(tmp_path: Path) -> None:
    body = "<!DOCTYPE platform [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><platform version='4'>&b;</platform>"
    refused(read_platform, tmp_path / "p.xml", body, "entities")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (batsim(subtime=10**400), ["subtime", "digits"]),
        (batsim({"p0": sequence("p1", repeat=10**400), "p1": DELAY}), ["repeat", "digits"]),
        (batsim({"p0": sequence("p1", repeat=10**308), "p1": DELAY}), ["repeat"]),
        (batsim(head={"origin_s": 10**400}), ["origin_s", "digits"]),
        (batsim().replace("9,", f"{DIGITS},"), ["line 1", "digits"]),
        (batsim({f"p{k}": sequence(f"p{k + 1}") for k in range(3000)} | {"p3000": DELAY}), ["deep"]),
        (batsim({"p0": sequence("p1"), "p1": sequence("p0")}), ["contains itself"]),
        (batsim({"p" * 1_000_000: {"type": "nothing"}}, profile="p" * 1_000_000), ["type 'nothing'"]),
        (batsim(id={"a": [1]}), ["id is {'a': [1]}"]),
        (batsim(id=None), ["id is None"]),
        (batsim(profile=["p0"]), ["profile is ['p0']"]),
        ("[" * 100_000, ["nested"]),
        ('{"jobs": [], "jobs": []}', ["'jobs' twice"]),
    ],
)
def test_batsim_workloads(tmp_path: Path, content: str, words: list[str]) -> None:
    refused(read_workload, tmp_path / "w.json", content, *words)
    refused(read_workload, tmp_path / "w.json.gz", gzip.compress(content.encode()), *words)


def test_a_chain_of_doublings_is_unfolded_once(tmp_path: Path) -> None:
    """2^60 delays, in two kB and some microseconds."""
    profiles = {f"p{k}": sequence(*[f"p{k + 1}"] * 2) for k in range(60)} | {
        "p60": {"type": "delay", "delay": 2.0**-50}
    }
    (tmp_path / "w.json").write_text(batsim(profiles))
    assert read_workload(tmp_path / "w.json").jobs["runtime_s"].to_list() == [1024.0]


def test_profiles_unfold_again_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What all cores do together is shared out anew among each number of them."""
    monkeypatch.setattr("escala.workload.batsim.MOST_PARTS", 1000)
    shared = {"p0": sequence(*["p1"] * 400), "p1": {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0}}
    refused(read_workload, tmp_path / "w.json", many(shared, 4), "1,000 parts", "other numbers of cores")
    (tmp_path / "w.json").write_text(many(shared, 3))
    assert read_workload(tmp_path / "w.json", speed=1e9).jobs["runtime_s"].to_list() == pytest.approx(
        [400, 200, 400 / 3]
    )


def many(profiles: dict[str, Any], jobs: int) -> str:
    """A Batsim workload of jobs of 1, 2, 3... cores, which share the profile p0."""
    rows = [{"id": str(k), "subtime": 0, "res": k, "walltime": 1e9, "profile": "p0"} for k in range(1, jobs + 1)]
    return json.dumps({"nb_res": jobs, "jobs": rows, "profiles": profiles})


def test_what_a_core_does_is_unfolded_once_for_all_numbers_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfolded = list[str]()
    once = batsim_profiles._unfolded
    monkeypatch.setattr(batsim_profiles, "_unfolded", lambda self, *told: unfolded.append(told[0]) or once(self, *told))
    core = {"type": "parallel_homogeneous", "cpu": 3e9, "com": 0}
    shared = {"p0": sequence("p1", "p2", "p3"), "p1": DELAY, "p2": core, "p3": sequence("p1", "p2")}
    (tmp_path / "w.json").write_text(many(shared, 200))
    assert read_workload(tmp_path / "w.json", speed=1e9).jobs["runtime_s"].to_list() == [16.0] * 200
    assert len(unfolded) == 6, "3 000 jobs that shared 3 000 parts took 23 s"


def test_half_a_pair_of_surrogates(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(batsim(id="\ud800", user="\udfff"))
    assert read_workload(tmp_path / "w.json").jobs.select("job_id", "user").row(0) == ("\ufffd", "\ufffd")


def test_alibaba_pods_with_absurd_demands(tmp_path: Path) -> None:
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    header += "scheduled_time\n"
    rows = [f"p{k},1000,{memory},{gpus},1000,,LS,Running,0,10,5\n" for k, (memory, gpus) in enumerate(ABSURD)]
    (tmp_path / "pods.csv").write_text(header + "".join(rows))
    log = read_workload(tmp_path / "pods.csv")
    assert (len(log), log.cleaning["absurd demand"], log.first_cleaned["absurd demand"]) == (1, 5, "job 'p1'")


ABSURD = [(1, 1), (1, 2**63 - 1), (2**63, 0), (-1, 0), ("", 1), ("nan", 1)]


@pytest.mark.parametrize("size", ["9" * 26, "9" * 400, str(2**31)])
def test_an_absurd_machine_is_passed_over_and_told(tmp_path: Path, size: str) -> None:
    (tmp_path / "log.swf").write_text(f"; MaxProcs: {size}\n; UnixStartTime: {size}\n{SWF_LINE}")
    log = read_workload(tmp_path / "log.swf", strict=True)
    assert (log.max_cores, log.origin_s if len(size) > 11 else 0.0, log.cleaning["note: absurd machine size"]) == (
        None,
        0.0,
        1,
    )
    (tmp_path / "w.json").write_text(batsim(head={"nb_res": int(size)}))
    assert read_workload(tmp_path / "w.json").max_cores is None


@pytest.mark.parametrize("name", ["swf", "sacct", "pbs", "csv"])
def test_nul_bytes_late_in_a_text(tmp_path: Path, name: str) -> None:
    """Beyond the part that the format is found by."""
    kinds = {
        "swf": ("", SWF_LINE),
        "sacct": ("JobID|Submit|State|Elapsed|AllocCPUS\n", "1|2024-03-01T10:00:00|COMPLETED|00:10:00|4\n"),
        "pbs": ("", "10/01/2017 00:01:38;E;5.m1;ctime=1000 start=1060 Resource_List.ncpus=2 end=1160\n"),
        "csv": ("job_id,submit_s,runtime_s,cores\n", "1,0,5,1\n"),
    }
    head, line = kinds[name]
    count = (1 << 18) // len(line) + 10
    body = (head + line * count).encode() + b"\0" * 4 + line.encode()
    where = f"line {count + 1 + bool(head)}"
    refused(read_workload, tmp_path / "log", body, "byte 0", where)
    refused(read_workload, tmp_path / "log", gzip.compress(body), "byte 0", where)


def test_damage_in_a_gzipped_platform(tmp_path: Path) -> None:
    whole = gzip.compress(
        ("#" + "x" * 2000 + "\n" + YAML.format(name="x", count=1)).encode() + os.urandom(400).hex().encode()
    )
    for at in range(12, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        refused(read_platform, tmp_path / "p.yaml.gz", bytes(damaged))


@pytest.mark.parametrize("read", [read_workload, read_platform, read_json, read_header])
def test_gzip_bombs(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("escala.reading.FREE_BYTES", 1 << 20)
    body = (SWF_LINE if read is read_workload else "; Note: x\n").encode() + b" " * 998 + b"\n"
    packed = gzip.compress(body * 20_000)
    refused(read, tmp_path / "x.gz", packed, "unpacks to more than 30 times")
    refused(read, tmp_path / "y.gz", packed + gzip.compress(body), "unpacks to more than 30 times")


@pytest.fixture(scope="module")
def bomb() -> tuple[bytes, bytes]:
    """Packed: a log of millions of lines with noise that does not shrink, which makes the limit wide; a hundred
    lines."""
    lines = "".join(f"{n} {n} -1 10 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1\n" for n in range(1, 101)).encode()
    noise = b"".join(b"; " + os.urandom(1000).hex().encode() + b"\n" for _ in range(4000))
    return gzip.compress(lines * 96_000 + noise, 1), gzip.compress(lines)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("says", ["its size", "that of a small last member", "that of a small first member", "a lie"])
def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, says: str, bomb: tuple[bytes, bytes]) -> None:
    """In a process of its own: what polars holds is seen by the system alone."""
    path, (packed, small) = tmp_path / "bomb.swf.gz", bomb
    whole = {
        "its size": packed,
        "that of a small last member": packed + small,
        "that of a small first member": small + packed,
    }
    path.write_bytes(whole.get(says, packed[:-4] + (1000).to_bytes(4, "little")))
    code = (
        "import escala\n"
        # getrusage knows the parent's, too
        "at = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024\n"
        "from escala.workload.read import read_workload\n"
        "before = at()\n"
        f"try: read_workload({str(path)!r})\n"
        "except escala.EscalaError as error: print(at() - before, error)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    grown, said = outcome.stdout.split(maxsplit=1)
    assert "unpacks to more than 30 times" in said and int(grown) < 300, outcome.stdout


def test_a_parquet_file_of_endless_equal_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("escala.workload.table_files.FREE_ROWS", 1000)
    path = tmp_path / "jobs.parquet"
    pl.DataFrame({"submit_s": [0.0] * 100_000, "runtime_s": [1.0] * 100_000, "cores": [1] * 100_000}).write_parquet(
        path
    )
    refused(read_workload, path, path.read_bytes(), "100,000 rows")


def test_a_table_of_endless_columns(tmp_path: Path) -> None:
    refused(
        read_workload,
        tmp_path / "t.csv",
        ",".join(f"c{k}" for k in range(6000)) + "\n" + ",".join("1" * 6000) + "\n",
        "columns",
    )
    refused(lambda path: read_pack(path, "s"), tmp_path / "t.csv", "a,a ,b\n1,2,3\n", "two columns are called 'a'")


def test_pipes_are_not_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(EscalaError, match="pipe or a device"):
        read_workload(tmp_path / "pipe")


def test_messages_are_short_and_printable() -> None:
    message = str(EscalaError("begin \x1b[2J\ud800\n" + "x" * 10**7 + " end"))
    assert message.isprintable() and len(message) == MOST_CHARACTERS
    assert message.startswith("begin \\x1b[2J\\ud800 xxx") and message.endswith("xxx end")
    assert (
        len(quoted("x" * 10**7)) <= 80 and len(quoted([["x" * 100] * 100] * 100)) <= 80 and "digits" in quoted(10**5000)
    )


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a\nb"),
        KeyError("k"),
        RecursionError(),
        OverflowError("x"),
        UnicodeDecodeError("utf-8", b"", 0, 1, "x"),
    ],
)
def test_what_no_reader_foresaw_is_one_line_and_says_what_it_was(error: Exception) -> None:
    with (
        pytest.raises(Unreadable, match=rf"^f\.swf: cannot be read as a log \({type(error).__name__}") as caught,
        guarded("f.swf", "a log"),
    ):
        raise error
    assert caught.value.__cause__ is error and "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [TypeError("x"), AttributeError("x"), AssertionError("x"), KeyboardInterrupt()])
def test_mistakes_of_our_own_are_not_hidden(error: BaseException) -> None:
    with pytest.raises(type(error)), guarded("f.swf", "a log"):
        raise error


def test_a_refusal_gets_the_name_of_its_file_once() -> None:
    for message in ("job 1 is bad", "f.swf: job 1 is bad"):
        with pytest.raises(EscalaError, match=r"^f\.swf: job 1 is bad$"), guarded("f.swf", "a log"):
            raise EscalaError(message)


def test_a_manifest_s_platform_is_checked_as_a_file_s() -> None:
    with pytest.raises(EscalaError, match="whole number"):
        Platform.from_spec({"name": "x", "nodes": [{"count": {"a": 1}, "cores": 1, "power": "none"}]})
