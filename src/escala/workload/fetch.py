"""Logs of the Parallel Workloads Archive: where they lie, whom to thank, and loading them (`escala workload fetch`).

The archive states no checksums. What some logs hold is known all the same, as independent copies agree: another content
is refused. Of all others the first load can only be tested for being a gzipped SWF log; its SHA-256 is kept beside the
cache, and every later load must have the same (trust on first use).
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from escala.errors import EscalaError
from escala.reading import CHUNK_BYTES, GZIP_MAGIC, read_head, reading
from escala.writing import write_whole

ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload"
CITATION = (
    "D. G. Feitelson, D. Tsafrir, D. Krakov: Experience with using the Parallel Workloads Archive. "
    "Journal of Parallel and Distributed Computing 74(10):2967-2982, 2014"
)
TERMS = "free for research; work that uses a log names the archive, its paper, and the people who gave the log"
SDSC_TERMS = (
    "copyright 2000 The Regents of the University of California: educational, research and non-profit use; "
    "see the log's header"
)
TIMEOUT_S = 30.0
MOST_BYTES = 2 << 30  # of a packed log: the largest of the archive have some hundred MB
HASHES = "sha256.json"  # beside the logs: name -> the hash of the first load


@dataclass(frozen=True)
class ArchivedLog:
    """folder: of the archive; name: of the file, without its endings; what: the machine; thanks: who gave it, where
    known beforehand; contents: `contents_sha256` of the log, where two or more copies that were loaded and kept apart
    from each other (as data of other projects) agree."""

    folder: str
    name: str
    what: str
    thanks: str = "the people named in the log's header"
    terms: str = TERMS
    contents: str | None = None

    def address(self, mirror: str | None = None) -> str:
        """Where the file lies; mirror: another server with the archive's folders."""
        return f"{(mirror or ARCHIVE).rstrip('/')}/{self.folder}/{self.name}.swf.gz"


_LOGS = (
    ArchivedLog("l_anl_int", "ANL-Intrepid-2009-1", "ANL Intrepid, Blue Gene/P, 163 840 cores"),
    ArchivedLog(
        "l_cea_curie",
        "CEA-Curie-2011-2.1-cln",
        "CEA Curie, 93 312 cores",
        "Joseph Emeras, CEA/CNRS",
        contents="b732a04aea71e2f154c8feee580be549d0bba1462bc91ec581944cb3dd6d442d",
    ),
    ArchivedLog("l_ctc_sp2", "CTC-SP2-1996-3.1-cln", "Cornell Theory Center, IBM SP2", "Dan Dwyer and Steve Hotovy"),
    ArchivedLog("l_hpc2n", "HPC2N-2002-2.2-cln", "HPC2N Seth, 120 nodes of 2", "Ake Sandgren"),
    ArchivedLog("l_kit_fh2", "KIT-FH2-2016-1", "KIT ForHLR II"),
    ArchivedLog(
        "l_kth_sp2",
        "KTH-SP2-1996-2.1-cln",
        "KTH, IBM SP2, 100 nodes",
        "Lars Malinowsky",
        contents="fba36494c4e4257f72182e8b629ebb0bcb054b3b82851ef957445bd627adcc87",
    ),
    ArchivedLog("l_lanl_cm5", "LANL-CM5-1994-4.1-cln", "LANL, CM-5, 1024 nodes", "Curt Canada"),
    ArchivedLog("l_lcg", "LCG-2005-1", "LCG grid, jobs of one core"),
    ArchivedLog(
        "l_llnl_thunder",
        "LLNL-Thunder-2007-1.1-cln",
        "LLNL Thunder",
        contents="aad5a3120a6adf0342d46fb4830e022121cdfbd3de9ecdd9cf10145b8864b6a5",
    ),
    ArchivedLog("l_metacentrum2", "METACENTRUM-2013-3", "MetaCentrum, the Czech national grid"),
    ArchivedLog(
        "l_nasa_ipsc",
        "NASA-iPSC-1993-3.1-cln",
        "NASA Ames, iPSC/860, 128 nodes",
        "Bill Nitzberg",
        contents="9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
    ),
    ArchivedLog("l_pik_iplex", "PIK-IPLEX-2009-1", "PIK iPlex"),
    ArchivedLog("l_ricc", "RICC-2010-2", "RIKEN Integrated Cluster of Clusters"),
    ArchivedLog(
        "l_sdsc_blue",
        "SDSC-BLUE-2000-4.2-cln",
        "SDSC Blue Horizon",
        contents="13892839f430583231a14bb811fd50a31b5b529eb37faacdbbefb71e73390e3e",
    ),
    ArchivedLog("l_sdsc_ds", "SDSC-DS-2004-2.1-cln", "SDSC DataStar"),
    ArchivedLog("l_sdsc_sp2", "SDSC-SP2-1998-4.2-cln", "SDSC, IBM SP2, 128 nodes", "Victor Hazlewood", SDSC_TERMS),
    ArchivedLog("l_unilu_gaia", "UniLu-Gaia-2014-2", "University of Luxembourg, Gaia"),
)
LOGS: dict[str, ArchivedLog] = {log.name: log for log in _LOGS}
"""Logs that Escala can load, by name."""


@dataclass(frozen=True)
class Fetched:
    """A loaded log: where it lies in the cache, the SHA-256 of the file, whom its header asks to thank, whether it
    holds what this log is known to hold, and whether an earlier load had this hash."""

    path: Path
    sha256: str
    acknowledge: list[str]
    known: bool = False
    as_before: bool = False


def find(name: str) -> ArchivedLog:
    """The log of this name, with or without its endings, or of a beginning that only one has; upper and lower case are
    the same.

    Raises:
        EscalaError: none, or several.
    """
    asked = name.lower().removesuffix(".gz").removesuffix(".swf")
    by_name = {known.lower(): log for known, log in LOGS.items()}
    begun = [known for known in by_name if asked and known.startswith(asked)]
    if asked in by_name or len(begun) == 1:
        return by_name[asked if asked in by_name else begun[0]]
    near = begun or difflib.get_close_matches(asked, by_name, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(by_name[known].name for known in near)}? " if near else ""
    raise EscalaError(f"unknown log {name!r}: {hint}escala workload fetch --list names all")


def cache_folder() -> Path:
    """Where loaded logs are kept: below ESCALA_CACHE_DIR or the user's cache folder."""
    given = os.environ.get("ESCALA_CACHE_DIR")
    home = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "escala"
    return home / "workloads"


class _Limit:
    """Ends a download that is too large; pooch calls it as a progress bar."""

    def __init__(self, address: str) -> None:
        self.address, self.total, self.seen = address, 0, 0

    def update(self, size: int) -> None:
        """So many bytes more have come."""
        self.seen += size
        if self.seen > MOST_BYTES:
            raise EscalaError(
                f"{self.address}: larger than {MOST_BYTES:,} bytes, which no log of the archive is; it was not kept"
            )

    def reset(self) -> None:
        """All has come."""
        self.seen = 0

    def close(self) -> None:
        """Nothing to close."""


def fetch(
    log: ArchivedLog,
    *,
    mirror: str | None = None,
    sha256: str | None = None,
    folder: Path | None = None,
    insecure: bool = False,
) -> Fetched:
    """Load a log into the cache, or find it there.

    sha256: refuse another file than this (64 hexadecimal digits). insecure: allow a mirror without https.

    Raises:
        EscalaError: no network, no such file on the server, not a log, too large, another checksum than asked for,
            other contents than are known, or another file than the first load brought.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    address = log.address(mirror)
    if not insecure and not address.lower().startswith("https://"):
        raise EscalaError(
            f"--mirror {mirror}: anybody on the way could change the log: give an https address, or say --insecure"
        )
    place = folder or cache_folder()
    try:
        loader = pooch.HTTPDownloader(timeout=TIMEOUT_S, progressbar=_Limit(address))
        path = Path(pooch.retrieve(address, None, f"{log.name}.swf.gz", place, downloader=loader))
    except EscalaError:  # a ValueError too
        raise
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else "an error"
        raise EscalaError(
            f"{address}: the server answers {status}; look for the log at {ARCHIVE}/ and give its file"
        ) from None
    except (requests.RequestException, ValueError) as error:
        why = "the server does not answer in time" if isinstance(error, requests.Timeout) else "no connection"
        raise EscalaError(
            f"{address}: {why}; load the file where there is a network, and give it to any verb as it is, or try "
            "--mirror URL"
        ) from None
    loaded = _checked(path, address, sha256)
    if log.contents is not None:
        loaded = _as_known(loaded, log, address, asked=sha256 is not None)
    return _as_before(loaded, log, address, trusted=loaded.known or sha256 is not None)


def contents_sha256(path: Path) -> str:
    """The SHA-256 of what a log holds: unpacked, each line ended by a line feed alone, so that another way of packing
    it changes nothing.

    Raises:
        EscalaError: it cannot be read, or unpacks to beyond all reason.
    """
    digest, held = hashlib.sha256(), b""
    with reading(path) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            chunk = held + chunk
            held = b"\r" if chunk.endswith(b"\r") else b""  # its line feed may follow
            digest.update(chunk[: len(chunk) - len(held)].replace(b"\r\n", b"\n"))
    digest.update(held)
    return digest.hexdigest()


def _as_known(loaded: Fetched, log: ArchivedLog, address: str, asked: bool) -> Fetched:
    """The log, which holds what it is known to hold, or was asked for by its hash."""
    try:
        found = contents_sha256(loaded.path)
    except EscalaError:  # damaged
        found = "none: it cannot be unpacked"
    if found != log.contents and not asked:
        loaded.path.unlink()
        raise EscalaError(
            f"{address}: it does not hold the {log.name} that is known (SHA-256 of its lines {found}, not "
            f"{log.contents}); the file was not kept. If the archive has changed the log, ask for the new one with "
            f"--sha256 {loaded.sha256}"
        )
    return replace(loaded, known=found == log.contents)


def _as_before(loaded: Fetched, log: ArchivedLog, address: str, trusted: bool) -> Fetched:
    """The same file as at the first load, whose hash is kept; one trusted for another reason takes its place."""
    path = loaded.path.with_name(HASHES)
    try:
        hashes = json.loads(path.read_text(encoding="utf-8"))
        before = hashes.get(log.name)
    except (OSError, ValueError, AttributeError, RecursionError):
        hashes, before = {}, None
    if before is not None and before != loaded.sha256 and not trusted:
        loaded.path.unlink()
        raise EscalaError(
            f"{address}: its SHA-256 is {loaded.sha256}, that of the first load was {before}; the file was not kept. "
            "If the archive has changed the log, ask for the new one with --sha256"
        )
    if before != loaded.sha256:
        write_whole(path, json.dumps({**hashes, log.name: loaded.sha256}, indent=1) + "\n")
    return replace(loaded, as_before=before == loaded.sha256)


def _checked(path: Path, address: str, sha256: str | None) -> Fetched:
    """The loaded file; removed from the cache where it is not what was asked for."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if sha256 is not None and found != sha256.lower():
        path.unlink()
        raise EscalaError(f"{address}: its SHA-256 is {found}, not {sha256}; the file was not kept")
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == GZIP_MAGIC
        head = read_head(path).decode("utf-8", errors="replace").splitlines() if packed else []
    except EscalaError:  # damaged
        head = []
    thanks = [
        line.partition(":")[2].strip()
        for line in head
        if line.startswith(";") and line.lstrip("; ").lower().startswith("acknowledge")
    ]
    if not head or not (head[0].startswith(";") or len(head[0].split()) >= 18):
        path.unlink()
        raise EscalaError(f"{address}: what came is no gzipped SWF log (a page of a proxy?); the file was not kept")
    return Fetched(path, found, thanks)
