"""slurm.conf as text: its settings, node lines and partition lines, includes followed; what is not known is listed,
never an error."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from escala.errors import EscalaError, quoted
from escala.platform.hostlist import count_of, hosts_of
from escala.reading import guarded, read_text

DEEPEST = 10  # includes within one another
MOST_GRES = 5_000_000  # nodes in all lines of a gres.conf
MOST_INCLUDES = 1000  # in all
LINES = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")
NODE_KEYS = frozenset(
    re.findall(
        r"\w+",
        "nodename nodehostname nodeaddr bcastaddr port cpus sockets boards socketsperboard corespersocket "
        "threadspercore realmemory memspeclimit corespeccount cpuspeclist feature gres weight state reason tmpdisk "
        "parameters topology",
    )
)
PARTITION_KEYS = frozenset(
    re.findall(
        r"\w+",
        "partitionname nodes default maxtime defaulttime maxnodes minnodes maxcpuspernode prioritytier "
        "priorityjobfactor priority state oversubscribe allowaccounts denyaccounts allowqos denyqos qos defmempercpu "
        "defmempernode lln hidden preemptmode gracetime tresbillingweights",
    )
)
"""What is read, or does not matter; other keys are told as unread."""
_ENTRY = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z0-9_]+)\s*=\s*(\"[^\"]*\"|'[^']*'|\S*)")


@dataclass
class Conf:
    """What slurm.conf says. settings: key in lower case -> value. nodes, partitions: lines in their order, keys in
    lower case.
    unread: what was not understood, as `file, line N: KEY`."""

    settings: dict[str, str] = field(default_factory=dict)
    nodes: list[dict[str, str]] = field(default_factory=list)
    partitions: list[dict[str, str]] = field(default_factory=list)
    sets: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def read_conf(path: Path) -> Conf:
    """The file, and what it includes. EscalaError for one that cannot be read, and for includes in a circle."""
    conf = Conf()
    _read(path, conf, [], itertools.count())
    return conf


def _read(path: Path, conf: Conf, within: list[Path], read: Iterator[int]) -> None:
    if path in within or len(within) >= DEEPEST:
        raise EscalaError(f"{path}: included within itself, or more than {DEEPEST} deep")
    if next(read) > MOST_INCLUDES:
        raise EscalaError(f"{path}: one of more than {MOST_INCLUDES} files that are included: leave some out")
    with guarded(path, "a slurm.conf"):
        text = read_text(path)
    for number, line in _lines(text):
        words = line.split(None, 1)
        if words[0].lower() == "include":
            if len(words) < 2:
                raise EscalaError(f"{path}, line {number}: Include without a file")
            inside = Path(words[1].strip().strip('"'))
            _read(inside if inside.is_absolute() else path.parent / inside, conf, [*within, path], read)
        else:
            _take(line, f"{path.name}, line {number}", conf)


def read_gres(path: Path) -> dict[str, str]:
    """Node -> its GPUs as a Gres of slurm.conf, from a gres.conf; those of lines without NodeName under ""."""
    with guarded(path, "a gres.conf"):
        text = read_text(path)
    found: dict[str, str] = {}
    listed = 0
    for number, line in _lines(text):
        told = {key.lower(): value.strip("\"'") for key, value in _ENTRY.findall(line)}
        if told.get("name", "").lower() != "gpu":
            continue
        where = f"{path.name}, line {number}"
        count = told.get("count") or len(hosts_of(told.get("file", "one"), where))
        entry = ":".join(part for part in ("gpu", told.get("type", ""), str(count)) if part)
        listed += count_of(told.get("nodename", ""), where)
        if listed > MOST_GRES:
            raise EscalaError(f"{where}: with its nodes there are more than {MOST_GRES:,} in all lines: leave some out")
        for host in hosts_of(told["nodename"], where) if "nodename" in told else [""]:
            found[host] = f"{found[host]},{entry}" if host in found else entry
    return found


def _lines(text: str) -> list[tuple[int, str]]:
    """(number, text) of each line that says something: comments gone, lines that end in a backslash joined."""
    found, held, begun = list[tuple[int, str]](), "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
        begun = begun if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        if whole := (held + line).strip():
            found.append((begun, whole))
        held = ""
    if held.strip():
        found.append((begun, held.strip()))
    return found


def _take(line: str, where: str, conf: Conf) -> None:
    entries = [(key.lower(), value.strip("\"'")) for key, value in _ENTRY.findall(line)]
    if not entries:
        conf.unread.append(f"{where}: {quoted(line)}")
        return
    kind = entries[0][0]
    if kind not in LINES:
        conf.settings.update(entries)
        return
    plural = {"feature": "feature", "features": "feature", "procs": "cpus", "shared": "oversubscribe"}
    told = {plural.get(key, key): value for key, value in entries}
    if kind == "nodename":
        conf.unread += [f"{where}: {key}" for key in told if key not in NODE_KEYS]
        conf.nodes.append({"where": where, **told})
    elif kind == "partitionname":
        conf.unread += [f"{where}: {key}" for key in told if key not in PARTITION_KEYS]
        conf.partitions.append({"where": where, **told})
    elif kind == "nodeset" and "nodes" in told:
        conf.sets[told["nodeset"]] = told["nodes"]
    else:
        conf.unread.append(f"{where}: {kind}")
