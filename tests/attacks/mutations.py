"""Files with random damage: a workload, a platform or one clear line, never another error, a hang, or a machine full.

    python -m tests.attacks.mutations --count 20000 [--seed 0] [--first 0]

prints as JSON what was tried and what held; the exit status is 1 where anything did not. Input k depends on the seed
and k alone. The inputs are read in child processes: one that takes more than `SECONDS` of processor time or `BYTES` of
memory is a find, not an end.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.attacks.undamaged import FILES, MANIFEST, PLATFORMS, TABLES, TOML, TOTALS

SECONDS, WALL_SECONDS = 10.0, 300.0
BYTES = 2 << 30
MOST_BYTES = 1 << 20  # of an input
LONGEST_MESSAGE = 500
PAGE_BYTES = 40  # of a table, where it says how much follows
HELD = ("read", "refused")
CONTENTS = {**{name: text.encode() for name, text in FILES.items()}, **TABLES}

PIECES = [
    b"",
    b"\0",
    b"\n",
    b"\r",
    b" ",
    b"|",
    b";",
    b",",
    b"-",
    b"1e999",
    b"nan",
    b"\xff",
    b"\xed\xa0\x80",
    b'"',
    b"'",
    b"{",
    b"}",
    b"[",
]
PIECES += [
    b"]",
    b":",
    b"&a ",
    b"*b",
    b"<",
    b">",
    b"&",
    b"+",
    b"#",
    b"null",
    b"true",
    b"9" * 30,
    b"-1",
    b"x",
    b".",
    b"\xef\xbb\xbf",
]
NUMBERS = [
    "0",
    "-1",
    "0.5",
    "1e308",
    "1e-320",
    "-1e300",
    "nan",
    "inf",
    "NaN",
    "Infinity",
    "9" * 19,
    "9" * 400,
    "9" * 5000,
    str(2**31),
]
NUMBERS += [
    str(2**53 + 1),
    str(2**63 - 1),
    str(2**63),
    str(2**64),
    "1e18",
    "1_000",
    "0x1F",
    "0o7",
    "1:30:00",
    "2024-13-45",
    "1,5",
    "[1]",
    "{}",
]
ENCODINGS = ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7"]
DEEP = [b"[", b"{a: ", b'{"a":', b"<a>", b"- ", b"(", b"&x [*x, "]


def mutated(chance: random.Random, content: bytes) -> bytes:
    """The content with one to four kinds of damage."""
    kinds = (_bytes, _number, _number, _line, _nested, _word, _swapped, _encoded, _token)
    for _ in range(chance.choice((1, 1, 2, 3, 4))):
        content = chance.choice(kinds)(chance, content)[:MOST_BYTES]
    return content


def _bytes(chance: random.Random, content: bytes) -> bytes:
    at, width = chance.randint(0, len(content)), chance.choice((0, 1, 1, 4, 40))
    return content[:at] + chance.choice(PIECES) + content[at + width :]


def _number(chance: random.Random, content: bytes) -> bytes:
    found = list(re.finditer(rb"\d+(\.\d+)?", content))
    if not found:
        return content
    one = chance.choice(found)
    return content[: one.start()] + chance.choice(NUMBERS).encode() + content[one.end() :]


def _line(chance: random.Random, content: bytes) -> bytes:
    """A line twice, many times, gone, or cut."""
    lines = content.split(b"\n")
    k = chance.randrange(len(lines))
    lines[k : k + 1] = chance.choice(
        ([lines[k]] * 2, [lines[k]] * 300, [], [lines[k][: len(lines[k]) // 2]], [lines[k], b""])
    )
    return b"\n".join(lines)


def _nested(chance: random.Random, content: bytes) -> bytes:
    at = chance.randint(0, len(content))
    return content[:at] + chance.choice(DEEP) * chance.choice((3, 60, 1200, 5000)) + content[at:]


def _word(chance: random.Random, content: bytes) -> bytes:
    """A word in the place of another: keys twice, names of others, references in a circle."""
    found = list(re.finditer(rb"\w+", content))
    if len(found) < 2:
        return content
    one, other = chance.choice(found), chance.choice(found)
    return content[: one.start()] + other[0][:1000] * chance.choice((1, 1, 1, 2, 20_000)) + content[one.end() :]


def _swapped(chance: random.Random, content: bytes) -> bytes:
    """One bit of one byte."""
    if not content:
        return content
    damaged = bytearray(content)
    damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _encoded(chance: random.Random, content: bytes) -> bytes:
    name = chance.choice(ENCODINGS)
    if chance.random() < 0.5:
        return content.replace(b"encoding='utf-8'", f"encoding='{name}'".encode())
    return content.decode("latin-1").encode(name, errors="replace")


def _token(chance: random.Random, content: bytes) -> bytes:
    """A quoted or separated value becomes one of another type."""
    found = list(re.finditer(rb"\"[^\"]*\"|[^\s|,;:]+", content))
    if not found:
        return content
    one = chance.choice(found)
    return (
        content[: one.start()]
        + chance.choice((b"null", b"[]", b"{}", b"true", b'"\\ud800"', b"1.5", b"''", b"~"))
        + content[one.end() :]
    )


def case(seed: int, number: int) -> tuple[str, bytes]:
    """Input `number`: the name of what it was and its bytes; each third is gzipped, and may be damaged once more."""
    chance = random.Random(f"{seed}/{number}")
    name = sorted(CONTENTS)[number % len(CONTENTS)]
    content = CONTENTS[name]
    if name in TABLES and chance.random() < 0.7:
        # most damage by `mutated` moves the end of a table, and is found at once
        head = PAGE_BYTES if chance.random() < 0.5 else len(content)
        content = _swapped(chance, content[:head]) + content[head:]
    else:
        content = mutated(chance, content)
    if number // len(CONTENTS) % 3 == 2:
        content, name = gzip.compress(content, mtime=0), f"{name}.gz"
        if chance.random() < 0.5:
            content = chance.choice((_bytes, _swapped))(chance, content)
    return name, content


def attempt(name: str, path: Path) -> tuple[str, str]:
    """What became of the file: read, refused, unforeseen (the last resort of `guarded`), long message, or another
    error; and its words."""
    from escala.errors import EscalaError
    from escala.platform import read_platform
    from escala.reading import Unreadable
    from escala.workload import read_workload

    kind = name.partition(".")[0]
    try:
        if kind in PLATFORMS:
            read_platform(path)
        elif kind in TOML:
            _toml(kind, path)
        elif kind == "run":
            _run(path)
        else:
            unit = "min" if name.startswith("pack") else None
            read_workload(path, unit=unit)
            _filtered(path, unit)
    except Unreadable as error:
        return "unforeseen", f"{type(error.__cause__).__name__}: {error}"
    except EscalaError as error:
        message = str(error)
        fine = message.isprintable() and len(message) <= LONGEST_MESSAGE and "panic" not in message.lower()
        return ("refused" if fine else "bad message"), message
    except BaseException as error:
        return "another error", f"{type(error).__name__}: {str(error)[:300]}"
    return "read", ""


def _toml(kind: str, path: Path) -> None:
    """A score, a scheduler in a folder, or the options of a site."""
    from escala.cli.site import read_site
    from escala.policies.compose import scheduler
    from escala.policies.score_files import read_score

    if kind == "site":
        read_site(path)
    elif kind == "policy":
        scheduler(f"policy:{path.replace(path.with_name('policy.toml')).parent}")
    else:
        read_score(path)


def _run(path: Path) -> None:
    """A saved run with this table of jobs, signed by whoever wrote it."""
    from escala.result import Result
    from escala.writing.sealing import sealed

    folder = path.with_name("saved")
    folder.mkdir(exist_ok=True)
    files = {"jobs.parquet": path.read_bytes(), "totals.parquet": TOTALS}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    (folder / "manifest.json").write_text(json.dumps(sealed(MANIFEST, "simulate", digests)))
    Result.load(folder).summary()


def _filtered(path: Path, unit: str | None) -> None:
    """Parts of a readable log: read, or refused as such."""
    from escala.errors import EscalaError
    from escala.reading import Unreadable
    from escala.workload import read_workload

    for part in ({"user": "u", "until": "2100-01-01"}, {"partition": "p", "since": 1}):
        try:
            read_workload(path, unit=unit, **part)  # type: ignore[arg-type]
        except Unreadable:
            raise
        except EscalaError as error:
            if len(str(error)) > LONGEST_MESSAGE:
                raise


def work(seed: int, first: int, last: int) -> None:
    """In a child process: one line of JSON for each input, `[number]` before it is read, `[number, name, outcome,
    words]` behind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for name, content in CONTENTS.items():  # all that is compiled and imported, before the limits
            path.write_bytes(content)
            attempt(name, path)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
        for number in range(first, last):
            name, content = case(seed, number)
            path.write_bytes(content)
            print(json.dumps([number]), flush=True)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
            outcome, words = attempt(name, path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(json.dumps([number, name, outcome, words]), flush=True)


def command(seed: int, first: int, last: int) -> list[str]:
    """What a child process runs."""
    asked = {"--seed": seed, "--first": first, "--count": last - first}
    return [
        sys.executable,
        "-m",
        "tests.attacks.mutations",
        *(str(word) for pair in asked.items() for word in pair),
        "--work",
    ]


def outcomes(seed: int, first: int, last: int) -> Iterator[tuple[int, str, str, str]]:
    """(number, name, outcome, words) of each input; a child that a hang or its memory ends is followed by another."""
    while first < last:
        environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
        child = subprocess.Popen(
            command(seed, first, last), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        begun: int | None = None
        done = first
        assert child.stdout is not None
        for line in child.stdout:
            entry = json.loads(line)
            begun = entry[0]
            if len(entry) > 1:
                done = begun + 1
                yield tuple(entry)
        status = child.wait()
        if done < last:
            if begun is None or begun < done:
                raise RuntimeError(f"the child that reads ended with status {status} and no input at work")
            hang = status in (-signal.SIGPROF, -signal.SIGALRM)
            yield begun, case(seed, begun)[0], "hang" if hang else "died", f"status {status}"
            done = begun + 1
        first = done


def tried(count: int, seed: int = 0, first: int = 0) -> dict[str, Any]:
    """What `count` inputs gave: counts of outcomes by kind of file, and each find by its number."""
    table: dict[str, Counter[str]] = {}
    finds = []
    for number, name, outcome, words in outcomes(seed, first, first + count):
        table.setdefault(name, Counter())[outcome] += 1
        if outcome not in HELD:
            finds.append({"number": number, "file": name, "outcome": outcome, "words": words})
    total = sum(table.values(), Counter())
    return {
        "inputs": count,
        "seed": seed,
        "held": sum(total[outcome] for outcome in HELD),
        "outcomes": dict(total),
        "files": {name: dict(counts) for name, counts in sorted(table.items())},
        "finds": finds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Read files with random damage.")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.seed, given.first, given.first + given.count)
        return 0
    result = tried(given.count, given.seed, given.first)
    print(json.dumps(result, indent=1))
    return 1 if result["finds"] else 0


if __name__ == "__main__":
    sys.exit(main())
