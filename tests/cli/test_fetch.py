"""Loading logs: from a server on this machine only."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from escala.workload.fetch import ARCHIVE, LOGS, find
from tests.cli.program import LOG, Escala

PACKED = gzip.compress(f"; Acknowledge: A. Giver\n{LOG}".encode(), mtime=0)
SERVED = {
    "/l_ctc_sp2/CTC-SP2-1996-3.1-cln.swf.gz": PACKED,
    "/l_ricc/RICC-2010-2.swf.gz": b"<html>log in first</html>",
    "/l_lcg/LCG-2005-1.swf.gz": PACKED[: len(PACKED) // 2],
    "/l_anl_int/ANL-Intrepid-2009-1.swf.gz": PACKED[:30] + b"\xff" * 8 + PACKED[38:],
}


class _Archive(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = SERVED.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """The address of a small archive, and what it was asked for; an empty cache; an empty folder to work in."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Archive", (_Archive,), {"asked": asked}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("ESCALA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_log_comes_with_its_address_terms_and_thanks(escala_: Escala, archive: tuple[str, list[str]]) -> None:
    address, asked = archive
    outcome = escala_("workload", "fetch", "ctc-sp2", "--insecure", "--mirror", address)
    assert outcome.status == 0, outcome.err
    for shown in (
        f"{address}/l_ctc_sp2/CTC-SP2-1996-3.1-cln.swf.gz",
        "Feitelson",
        "Steve Hotovy",
        hashlib.sha256(PACKED).hexdigest(),
    ):
        assert shown in outcome.out
    assert outcome.out.index("citation") < outcome.out.index("file:"), "terms come before the file"
    assert Path("CTC-SP2-1996-3.1-cln.swf.gz").read_bytes() == PACKED
    assert escala_("workload", "describe", "CTC-SP2-1996-3.1-cln.swf.gz").status == 0
    again = escala_(
        "workload", "fetch", "ctc-sp2", "--insecure", "--mirror", address, "--out", "again.swf.gz", "--json"
    )
    told = json.loads(again.out)
    assert (
        told["file"] == "again.swf.gz" and told["acknowledge"] == ["A. Giver"] and told["address"].startswith(address)
    )
    assert len(asked) == 1, "the second comes from the cache"


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("HPC2N-2002-2.2-cln", (), "the server answers 404"),
        ("RICC-2010-2", (), "no gzipped SWF log"),
        ("LCG-2005-1", (), "no gzipped SWF log"),
        ("ANL-Intrepid-2009-1", (), "no gzipped SWF log"),
        ("CTC-SP2-1996-3.1-cln", ("--sha256", "0" * 64), "its SHA-256 is "),
    ],
)
def test_what_is_not_the_log_is_refused_and_not_kept(
    escala_: Escala, archive: tuple[str, list[str]], name: str, more: tuple[str, ...], says: str
) -> None:
    for _ in range(2):  # a bad file is not in the cache the second time
        outcome = escala_("workload", "fetch", name, "--insecure", "--mirror", archive[0], *more)
        assert outcome.status == 2 and says in outcome.err and outcome.err.count("\n") == 1
        assert not list(Path().iterdir())


def test_without_a_network_one_line_says_so(escala_: Escala, archive: tuple[str, list[str]]) -> None:
    outcome = escala_("workload", "fetch", "KTH-SP2", "--insecure", "--mirror", "http://127.0.0.1:9")
    assert (
        outcome.status == 2
        and outcome.err.startswith("error: http://127.0.0.1:9/l_kth_sp2/")
        and outcome.err.count("\n") == 1
    )
    assert "no connection" in outcome.err and "Traceback" not in outcome.err and not list(Path().iterdir())


def test_a_file_that_is_there_is_not_overwritten(escala_: Escala, archive: tuple[str, list[str]]) -> None:
    Path("mine.swf.gz").write_text("mine")
    outcome = escala_("workload", "fetch", "KTH-SP2", "--insecure", "--mirror", archive[0], "--out", "mine.swf.gz")
    assert (
        outcome.status == 2
        and "exists already" in outcome.err
        and Path("mine.swf.gz").read_text() == "mine"
        and not archive[1]
    )


def test_names_are_found_and_listed(escala_: Escala) -> None:
    listed = json.loads(escala_("workload", "fetch", "--list", "--json").out)
    assert [row["log"] for row in listed] == sorted(LOGS, key=str.lower) and all(
        row["address"].startswith(f"{ARCHIVE}/l_") for row in listed
    )
    assert find("nasa").name == "NASA-iPSC-1993-3.1-cln" == find("NASA-iPSC-1993-3.1-cln.swf.gz").name
    assert "did you mean SDSC-BLUE-2000-4.2-cln or SDSC-" in escala_("workload", "fetch", "sdsc").err
    assert "did you mean KTH-SP2-1996-2.1-cln or " in escala_("workload", "fetch", "KTH-SP2-1996-2.1-cn").err
    assert "name a log" in escala_("workload", "fetch").err


def test_another_file_than_at_the_first_load_is_refused(
    escala_: Escala, archive: tuple[str, list[str]], tmp_path: Path
) -> None:
    given = ("workload", "fetch", "ctc-sp2", "--insecure", "--mirror", archive[0], "--force")
    assert "first load" in escala_(*given).out and "as at the first load" in escala_(*given).out
    cached = next((tmp_path / "cache").rglob("CTC*.gz"))
    other = gzip.compress(f"; changed\n{LOG}".encode(), mtime=0)
    cached.write_bytes(other)
    outcome = escala_(*given)
    assert (
        outcome.status == 2
        and f"that of the first load was {hashlib.sha256(PACKED).hexdigest()}" in outcome.err
        and not cached.exists()
    )
    cached.write_bytes(other)
    assert escala_(*given, "--sha256", hashlib.sha256(other).hexdigest()).status == 0
    assert "as at the first load" in escala_(*given).out


def test_a_mirror_without_https_must_be_asked_for(escala_: Escala, archive: tuple[str, list[str]]) -> None:
    outcome = escala_("workload", "fetch", "ctc-sp2", "--mirror", archive[0])
    assert outcome.status == 2 and "--insecure" in outcome.err and not archive[1]


def test_a_log_larger_than_any_is_refused(
    escala_: Escala, archive: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escala.workload.fetch.MOST_BYTES", 50)
    outcome = escala_("workload", "fetch", "ctc-sp2", "--insecure", "--mirror", archive[0])
    assert outcome.status == 2 and "larger than 50 bytes" in outcome.err and not list(Path().iterdir())


@pytest.mark.parametrize("name", ["CEA-Curie-2011-2.1-cln", "KTH-SP2-1996-2.1-cln", "NASA-iPSC-1993-3.1-cln"])
def test_a_known_log_is_known_from_the_first_load_and_none_other_passes(
    escala_: Escala, archive: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, traces: Path, name: str
) -> None:
    packed = (traces / "swf" / f"{name}.swf.gz").read_bytes()
    served = f"/{LOGS[name].folder}/{name}.swf.gz"
    given = ("workload", "fetch", name, "--insecure", "--mirror", archive[0], "--force")
    monkeypatch.setitem(SERVED, served, packed)
    outcome = escala_(*given)
    assert outcome.status == 0 and "(known: several independent copies" in outcome.out, outcome.err
    assert Path(f"{name}.swf.gz").read_bytes() == packed

    lines = gzip.decompress(packed)
    place = lines.index(b"\n", len(lines) // 2) - 1  # the last field of a job in the middle
    other = gzip.compress(lines[:place] + b"7" + lines[place + 1 :], 1, mtime=0)
    monkeypatch.setitem(SERVED, served, other)
    monkeypatch.setenv("ESCALA_CACHE_DIR", "another")
    for _ in range(2):  # it is not kept
        refused = escala_(*given)
        assert refused.status == 2 and refused.err.count("\n") == 1
        assert "does not hold the" in refused.err and f"--sha256 {hashlib.sha256(other).hexdigest()}" in refused.err
        assert Path(f"{name}.swf.gz").read_bytes() == packed
    asked = escala_(*given, "--sha256", hashlib.sha256(other).hexdigest())
    assert asked.status == 0 and "(as asked for)" in asked.out


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The lines of a log, which `LOGS` knows to be those of LCG-2005-1."""
    lines = f"; Acknowledge: A. Giver\n{LOG}".encode() * 3
    monkeypatch.setitem(LOGS, "LCG-2005-1", replace(LOGS["LCG-2005-1"], contents=hashlib.sha256(lines).hexdigest()))
    return lines


def test_a_known_log_may_be_packed_anew_and_its_lines_ended_otherwise(
    escala_: Escala, archive: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, known: bytes
) -> None:
    monkeypatch.setattr("escala.workload.fetch.CHUNK_BYTES", 7)  # a line's end lies in two pieces
    given = ("workload", "fetch", "lcg", "--insecure", "--mirror", archive[0], "--force", "--json")
    for ways in (known, known.replace(b"\n", b"\r\n")):
        monkeypatch.setitem(SERVED, "/l_lcg/LCG-2005-1.swf.gz", gzip.compress(ways, 1, mtime=0))
        told = json.loads(escala_(*given).out)
        assert told["known"] is True
        for cached in Path("../cache").rglob("LCG*.gz"):
            cached.unlink()  # the next comes from the server, and another file than at the first load


@pytest.mark.parametrize("served", [PACKED, gzip.compress(b"; one\n" * 9_000_000)[:9000], b""])
def test_what_a_known_log_does_not_hold_is_refused(
    escala_: Escala, archive: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, known: bytes, served: bytes
) -> None:
    monkeypatch.setitem(SERVED, "/l_lcg/LCG-2005-1.swf.gz", served)
    outcome = escala_("workload", "fetch", "lcg", "--insecure", "--mirror", archive[0])
    assert outcome.status == 2 and outcome.err.count("\n") == 1 and "the file was not kept" in outcome.err
    assert not list(Path().iterdir()) and not list(Path("../cache").rglob("LCG*"))


def test_the_list_says_which_logs_are_known(escala_: Escala) -> None:
    rows = json.loads(escala_("workload", "fetch", "--list", "--json").out)
    assert {row["log"] for row in rows if row["contents"]} == {
        "CEA-Curie-2011-2.1-cln",
        "KTH-SP2-1996-2.1-cln",
        "LLNL-Thunder-2007-1.1-cln",
        "NASA-iPSC-1993-3.1-cln",
        "SDSC-BLUE-2000-4.2-cln",
    }
    assert escala_("workload", "fetch", "--list").out.count(" yes") == 5
