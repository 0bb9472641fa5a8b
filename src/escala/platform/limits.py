"""Limits of QOS and associations as a site has them, under names of site.toml: from its tables, and from what `sacctmgr
show -P` prints.

Limits of a QOS hold for its jobs (grp), for those of each user or account in it, or for each job; those of an
association for an account and all below it (grp), or for each user there (max). Rules:
https://slurm.schedmd.com/resource_limits.html.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.platform.site_entries import seconds_of, whole

Bounds = dict[str, Any]
"""Name of a limit -> whole number, or for `..._tres` {TRES: whole number}, or for max_time seconds; `flags`: a tuple of
names."""

PRIORITY, FLAGS, TIME = "priority", "flags", "max_time"
QOS = {
    "grp_jobs": ("grpjobs",),
    "grp_submit": ("grpsubmit",),
    "grp_tres": ("grptres",),
    "max_jobs_per_user": ("maxjobspu", "maxjobsperuser"),
    "max_jobs_per_account": ("maxjobspa", "maxjobsperaccount"),
    "max_submit_per_user": ("maxsubmitpu", "maxsubmitjobsperuser"),
    "max_submit_per_account": ("maxsubmitpa", "maxsubmitjobsperaccount"),
    "max_tres": ("maxtres", "maxtresperjob"),
    "max_tres_per_user": ("maxtrespu", "maxtresperuser"),
    "max_tres_per_account": ("maxtrespa", "maxtresperaccount"),
    TIME: ("maxwall",),
}
ASSOCIATION = {
    "grp_jobs": ("grpjobs",),
    "grp_submit": ("grpsubmit",),
    "grp_tres": ("grptres",),
    "max_jobs": ("maxjobs",),
    "max_submit": ("maxsubmit", "maxsubmitjobs"),
    "max_tres": ("maxtres", "maxtresperjob"),
    TIME: ("maxwall",),
}
"""Limit -> the columns of sacctmgr that tell it."""
USUAL_QOS = "normal"
"""The QOS of a job that names none."""
USAGE_FACTOR = "usage_factor"
"""Of a QOS: by how much more, or less, its jobs count in fair share."""
PREEMPT, MODE, GRACE, EXEMPT = "preempt", "preempt_mode", "grace_time", "exempt_time"
PREEMPTION = {PREEMPT: "preempt", MODE: "preemptmode", GRACE: "gracetime", EXEMPT: "preemptexempttime"}
"""What else a QOS says: whose jobs its jobs may preempt, what becomes of its own, after how many s, in safety for how
long."""
MODES = ("cluster", "cancel", "requeue", "suspend", "gang", "priority", "within", "off")
FLAG_NAMES = ("DenyOnLimit", "NoReserve", "OverPartQOS")
NO_LIMIT = frozenset({USAGE_FACTOR, *PREEMPTION})
NOT_MODELLED = (
    "grptresmins", "grptresrunmins", "grpwall", "maxtrespernode", "maxtresmins", "mintres", "maxtresrunminspu",
    "maxtresrunminspa", "limitfactor", "usagethres",
)  # fmt: skip
_UNITS = {"": 1, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kmgtp]?)b?", re.IGNORECASE)


def tres_name(name: str, where: str) -> str:
    """cpu, node, mem (MB), gpu, gpu:KIND; EscalaError for another one."""
    plain = name.strip().lower().removeprefix("gres/")
    if plain in ("cpu", "node", "mem", "gpu") or plain.startswith("gpu:"):
        # kinds as they are written
        return f"gpu:{name.strip().rpartition(':')[2]}" if plain.startswith("gpu:") else plain
    raise EscalaError(f"{where}: unknown TRES {quoted(name)}; known: cpu, mem (MB), node, gpu, gpu:KIND")


def tres_of(text: str, where: str, unread: list[str] | None = None) -> dict[str, int]:
    """The TRES of Slurm's `cpu=100,mem=2T,gres/gpu:a100=4`; mem in MB. Unknown ones into `unread`, where it is
    given."""
    found: dict[str, int] = {}
    for part in (one for one in text.split(",") if one.strip()):
        name, _, value = part.partition("=")
        match = _COUNT.fullmatch(value.strip())
        try:
            if match is None:
                raise EscalaError(f"{where}: {quoted(part)} is no TRES; write NAME=NUMBER")
            found[tres_name(name, where)] = int(
                float(match[1]) * (_UNITS[match[2].lower()] if name.strip().lower() == "mem" else 1)
            )
        except EscalaError:
            if unread is None:
                raise
            unread.append(f"{where}: {part.strip()}")
    return found


def bounds_of(told: Mapping[str, Any], known: Mapping[str, Any], where: str) -> Bounds:
    """The limits of a table of site.toml. EscalaError for an unknown entry, and for a value of another kind."""
    found: Bounds = {}
    for name, value in told.items():
        here = f"{where}, {name}"
        if name == FLAGS and known is QOS:
            found[name] = tuple(_flag(one, here) for one in (value if isinstance(value, list) else [value]))
        elif name in PREEMPTION and known is QOS:
            found |= preemption_of(name, value, here)
        elif name == USAGE_FACTOR and known is QOS:
            found |= factor_of(value, here)
        elif name not in known:
            names = (*known, *((FLAGS, USAGE_FACTOR, *PREEMPTION) if known is QOS else ()))
            raise EscalaError(f"{where}: unknown entry `{name}`; {nearest(name, names)}known: {', '.join(names)}")
        elif name == TIME:
            seconds = seconds_of(str(value), here)
            found |= {} if seconds is None else {name: seconds}
        elif name.endswith("_tres") or "_tres_" in name:
            if not isinstance(value, Mapping):
                raise EscalaError(f"{here}: write a table, as in {name} = {{cpu = 100}}")
            found[name] = {tres_name(str(kind), here): whole(count, f"{here}, {kind}") for kind, count in value.items()}
        else:
            found[name] = whole(value, here)
    return found


def preemption_of(name: str, value: Any, where: str) -> Bounds:
    """One of `PREEMPTION`, by the value of a site.toml or the text of sacctmgr. EscalaError for a bad one."""
    if name == PREEMPT:
        names = value if isinstance(value, list) else str(value).split(",")
        return {name: tuple(str(one).strip() for one in names if str(one).strip())}
    if name == MODE:
        return {name: mode_of(value, where)}
    if str(value).strip() == "-1":  # none
        return {name: 0}
    seconds = whole(value, where) if isinstance(value, int) or str(value).isdigit() else seconds_of(str(value), where)
    return {name: 2**31 if seconds is None else int(seconds)}


def factor_of(value: Any, where: str) -> Bounds:
    """A UsageFactor, left out where it is 1. EscalaError for what is no number of at least 0."""
    try:
        factor = float(value)
    except (TypeError, ValueError):
        factor = math.nan
    if isinstance(value, bool) or not 0.0 <= factor < math.inf:
        raise EscalaError(f"{where}: {quoted(value)} is no factor: give a number of at least 0")
    return {} if factor == 1.0 else {USAGE_FACTOR: factor}


def mode_of(value: Any, where: str) -> str:
    """A PreemptMode in lower case; EscalaError for a word that is none."""
    text = str(value).strip().lower()
    for word in text.replace("|", ",").split(","):
        if word not in MODES:
            raise EscalaError(f"{where}: unknown mode {quoted(word)}; {nearest(word, MODES)}known: {', '.join(MODES)}")
    return text


def _flag(name: Any, where: str) -> str:
    if name not in FLAG_NAMES:
        raise EscalaError(f"{where}: unknown flag {quoted(name)}; known: {', '.join(FLAG_NAMES)}")
    return str(name)


def bounds_of_row(
    row: Mapping[str, str], known: Mapping[str, tuple[str, ...]], where: str, unread: list[str]
) -> Bounds:
    """The limits of a row that sacctmgr prints with -P; what has no model goes into `unread`."""
    found: Bounds = {}
    for name, columns in known.items():
        text = next((row[one].strip() for one in columns if row.get(one, "").strip()), "")
        here = f"{where}, {columns[0]}"
        if not text:
            continue
        if name == TIME:
            seconds = seconds_of(text, here)
            found |= {} if seconds is None else {name: seconds}
        elif "tres" in name:
            tres = tres_of(text, here, unread)
            found |= {name: tres} if tres else {}
        else:
            found[name] = whole(text, here)
    for column in NOT_MODELLED:
        value = row.get(column, "").strip()
        if value:
            unread.append(f"{where}: {column}={value}")
    if known is QOS:
        for name, column in PREEMPTION.items():
            text = row.get(column, "").strip()
            usual = (
                text.lower() == "cluster"
                if name == MODE
                else name == GRACE and seconds_of(text, f"{where}, {column}") == 0
            )
            if text and not usual:
                found |= preemption_of(name, text, f"{where}, {column}")
        found |= factor_of(row.get("usagefactor", "").strip() or 1, f"{where}, usagefactor")
        words = [one.strip() for one in row.get("flags", "").split(",") if one.strip()]
        flags = tuple(one for one in FLAG_NAMES if one in words)
        unread += [f"{where}: flag {one}" for one in words if one not in FLAG_NAMES]
        found |= {FLAGS: flags} if flags else {}
    return found
