"""What a job asked of OAR: the text behind `oarsub -l`, as `wanted_resources` and `actual_resources` have it, and
`initial_request` as the user wrote it.

`{type = 'default'}/host=2/core=4+{type = 'kavlan'}/vlan=1,walltime=1:0:0`: groups joined by `+`, each a path of levels;
several `-l` are alternatives, of which OAR chose one (man page of oarsub, OAR 2.5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

HOSTS = ("host", "hosts", "node", "nodes", "network_address")
CORES = ("core", "cores", "cpuset", "resource_id", "thread")
MOST = 10**9
LONGEST = 4000  # characters of a text that are looked at

LEVELS = r"/?(?!walltime=)[A-Za-z]\w*=\w+(?:/[A-Za-z]\w*=\w+)*"
GROUP = rf"(?:\{{[^{{}}]*\}})?{LEVELS}"
GROUPS = re.compile(rf"(?:\{{(?P<property>[^{{}}]*)\}})?(?P<levels>{LEVELS})")
ASKED = re.compile(rf"(?P<groups>{GROUP}(?:\+{GROUP})*)?,?(?:walltime=(?P<limit>[\d:]+))?")
BEFORE = re.compile(r"(?:^|\s)(?:-l|--resource)[=\s]*[\\\"']*")
TYPE = re.compile(r"\btype\s*=\s*'?(\w+)'?")
SET_BY_RULES = re.compile(
    r"(?i)\btype\s*=\s*'default'|\b(?:besteffort|deploy|desktop_computing|drain|maintenance)\s*=\s*'(?:yes|no)'"
)
"""Conditions that OAR's admission rules add to those of the user."""
WORDS = ("and", "or", "not", "in", "like", "is", "null")


class Request(NamedTuple):
    """An alternative. units: how many of the smallest things that it names; hosts: of hosts. None: not said, or ALL or
    BEST."""

    units: int | None
    hosts: int | None
    whole: bool  # the smallest thing is a host
    in_cores: bool  # or a core
    one: bool  # a single group: units are the same on each host
    gpus: int | None
    others: int  # resources of other types: VLANs, disks, licences
    licences: int
    features: str | None  # conditions on nodes
    limit_s: float | None


def seconds(text: str) -> float:
    """Of `H`, `H:M` or `H:M:S`; NaN for anything else."""
    parts = text.strip().split(":")
    if len(parts) > 3 or not all(part.isdecimal() and len(part) <= 9 for part in parts):
        return math.nan
    return sum(float(part) * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))


def chosen(text: str, limit_s: float | None) -> Request | None:
    """The alternative of a text that a job with this limit got; None where it says nothing, or not which."""
    found = alternatives(text[:LONGEST])
    if len(found) > 1:
        found = tuple(one for one in found if limit_s is not None and one.limit_s == limit_s)
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=10_000)
def alternatives(text: str) -> tuple[Request, ...]:
    """All of a text."""
    places = [match.end() for match in BEFORE.finditer(text)]
    found = [ASKED.match(text, place) for place in places or ([0] if text[:1] in ("{", "/") else [])]
    return tuple(_request(match["groups"] or "", match["limit"]) for match in found if match and match[0])


def _request(text: str, limit: str | None) -> Request:
    groups = [(match["property"] or "", _levels(match["levels"])) for match in GROUPS.finditer(text)]
    own = [(condition, levels) for condition, levels in groups if _type(condition) == "default"]
    others = [levels for condition, levels in groups if _type(condition) != "default"]
    leaves = [levels[-1][0] for _, levels in own]
    gpus = [_product(levels, lambda name: name.startswith("gpu")) for _, levels in own]
    limit_s = None if limit is None else seconds(limit)
    return Request(
        units=_sum([_product(levels, lambda name: True) for _, levels in own]),
        hosts=_sum([_product(levels, HOSTS.__contains__) for _, levels in own]),
        whole=bool(own) and all(leaf in HOSTS for leaf in leaves),
        in_cores=bool(own) and all(leaf in CORES for leaf in leaves),
        one=len(own) == 1,
        gpus=_sum([count for count in gpus if count is not None]),
        others=sum(_product(levels, lambda name: True) or 0 for levels in others),
        licences=sum(_product(levels, lambda name: name.startswith("licen")) or 0 for levels in others),
        features=conditions(*(condition for condition, _ in own)),
        limit_s=None if limit_s is None or math.isnan(limit_s) else limit_s,
    )


def _type(condition: str) -> str:
    found = TYPE.search(condition)
    return found[1] if found else "default"


def _levels(text: str) -> list[tuple[str, int | None]]:
    """Name and number of each; None for ALL and BEST."""
    pairs = [level.partition("=") for level in text.strip("/").split("/")]
    return [(name.lower(), int(value) if value.isdecimal() and len(value) <= 9 else None) for name, _, value in pairs]


def _product(levels: list[tuple[str, int | None]], wanted: Callable[[str], bool]) -> int | None:
    """How many there are of the last level that is wanted; None where there is none, or a number is not said."""
    last = max((k for k, (name, _) in enumerate(levels) if wanted(name)), default=-1)
    product = 1
    for _, count in levels[: last + 1]:
        if not count:
            return None
        product = min(product * count, MOST)
    return product if last >= 0 else None


def _sum(counts: list[int | None]) -> int | None:
    """None where one is not known, or there is none."""
    known = [count for count in counts if count is not None]
    return min(sum(known), MOST) if known and len(known) == len(counts) else None


def conditions(*texts: str) -> str | None:
    """What of these SQL conditions the user wanted of the nodes; None where there is nothing but what admission rules
    add."""
    text = " ".join(texts)[:LONGEST]
    names = re.findall(r"[A-Za-z_]\w*", SET_BY_RULES.sub("", text))
    return text if any(name.lower() not in WORDS for name in names) else None
