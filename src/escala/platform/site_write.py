"""A site as the text of a site.toml, which `read_site` reads back as an equal site."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any

from escala.errors import EscalaError
from escala.platform import limits
from escala.platform import power as power_profiles
from escala.platform.closures import entry_of
from escala.platform.hostlist import folded
from escala.platform.power import SECONDS, WATTS, PowerProfile
from escala.platform.site import GPU, MEMORY, PARTITION_FIELDS, Partition, Site
from escala.platform.site_toml import GRACE

SPANS = {"max_s": "max_time", "default_s": "default_time"}


def site_text(site: Site, notes: Iterable[str] = ()) -> str:
    """The text of a site.toml. notes: lines that go above it as comments. What the format has no place for is an
    EscalaError: `unread`, flop/s, resources other than memory and GPUs."""
    _refuse_homeless(site)
    head = [f"# {line}" for note in notes for line in note.splitlines()]
    parts = [
        f"name = {_value(site.name)}",
        *_nodes(site),
        *_power(site),
        *(_partition(site, one) for one in site.partitions),
    ]
    parts += [_section("slurm", site.settings)] if site.settings else []
    parts += (
        [_section("qos", {name: _qos(site, name) for name in {**site.qos, **site.qos_limits}})]
        if site.qos or site.qos_limits
        else []
    )
    parts += (
        [_section("accounts", {name: _account(told) for name, told in site.accounts.items()})] if site.accounts else []
    )
    parts += [
        _lines("[[closed]]", {"nodes": folded([site.names[k] for k in one.nodes]), **entry_of(one)})
        for one in site.closed
    ]
    return "\n\n".join((["\n".join(head)] if head else []) + parts) + "\n"


def _refuse_homeless(site: Site) -> None:
    other = [kind for kind in site.resources if kind not in (MEMORY, GPU) and not kind.startswith(f"{GPU}:")]
    wrong = other[:1] or (["speed in flop/s"] if site.speed is not None else []) or (["unread"] if site.unread else [])
    if wrong:
        raise EscalaError(
            f"site {site.name!r}: a site.toml has no place for {wrong[0]}: leave it out before the site is written"
        )


def _nodes(site: Site) -> list[str]:
    """One table for each run of equal nodes, in their order."""
    groups = groupby(range(site.n_nodes), key=partial(_node, site))
    return [_lines("[[nodes]]", {"names": folded([site.names[k] for k in same]), **told}) for told, same in groups]


def _node(site: Site, k: int) -> dict[str, Any]:
    """What is said of node k, without what is usual; values that compare."""
    assert site.weights is not None and site.threads is not None
    told: dict[str, Any] = {"cores": int(site.cores[k])}
    if MEMORY in site.resources:
        told["memory_mb"] = int(site.resources[MEMORY][k])
    kinds = {kind: int(site.resources[f"{GPU}:{kind}"][k]) for kind in site.gpu_kinds}
    kinds |= {"": int(site.resources[GPU][k]) - sum(kinds.values())} if GPU in site.resources else {}
    gpus = tuple((kind, count) for kind, count in kinds.items() if count)
    if gpus:
        told["gpus"] = gpus[0][1] if [kind for kind, _ in gpus] == [""] else gpus
    usual = {"features": (), "weight": 1, "threads_per_core": 1, "speed": 1.0, "power": "none"}
    more = {
        "features": site.features[k],
        "weight": int(site.weights[k]),
        "threads_per_core": int(site.threads[k]),
        "speed": 1.0 if site.node_speed is None else float(site.node_speed[k]),
        "power": site.profiles[site.profile_of[k]].name,
    }
    return told | {name: value for name, value in more.items() if value != usual[name]}


def _power(site: Site) -> list[str]:
    """The profiles that are no presets."""
    return [
        _lines(f"[power.{_key(one.name)}]", _watts(one))
        for one in site.profiles
        if power_profiles.PROFILES.get(one.name) != one
    ]


def _watts(profile: PowerProfile) -> dict[str, Any]:
    names = (*WATTS, *SECONDS) if profile.can_switch else WATTS[:2]
    told: dict[str, Any] = {name: getattr(profile, name) for name in names}
    return (
        told
        | ({} if profile.can_switch else {"can_switch": False})
        | {name: tuple(w.items()) if isinstance(w, dict) else w for name, w in profile.of_gpus.items()}
        | ({"source": profile.source} if profile.source else {})
    )


def _partition(site: Site, one: Partition) -> str:
    usual = Partition("", ())
    whole = one.nodes == tuple(range(site.n_nodes))
    told: dict[str, Any] = {"name": one.name, "nodes": "ALL" if whole else folded([site.names[k] for k in one.nodes])}
    for field in PARTITION_FIELDS:
        value = getattr(one, field)
        if field == "default_s":
            told |= {} if value == one.max_s else {SPANS[field]: _span(value)}
        elif field == GRACE:
            told |= {limits.GRACE: int(value)} if value else {}
        elif value != getattr(usual, field):
            told[SPANS.get(field, field)] = _span(value) if field in SPANS else value
    return _lines("[[partitions]]", told)


def _qos(site: Site, name: str) -> Any:
    """The priority alone, or with the limits as a table."""
    bounds = site.qos_limits.get(name)
    return site.qos.get(name, 0) if bounds is None else (("priority", site.qos.get(name, 0)), *_bounds(bounds))


def _account(told: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    own: dict[str, Any] = told.get("user_limits", {})
    used: dict[str, float] = told.get("usage", {})
    users = tuple(
        (user, (("shares", shares), *more, *_bounds(own.get(user, {}))) if user in own or more else shares)
        for user, shares in told["users"].items()
        for more in [(("usage", used[user]),) if user in used else ()]
    )
    first = (("parent", told["parent"]), ("shares", told["shares"]), *_bounds(told.get("limits", {})))
    return (*first, ("users", users)) if users else first


def _bounds(bounds: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Limits as pairs; TRES as pairs within."""
    shown = {name: _span(value) if name == limits.TIME else value for name, value in bounds.items()}
    return tuple((name, tuple(value.items()) if isinstance(value, dict) else value) for name, value in shown.items())


def _span(seconds: float | None) -> str:
    """As Slurm writes it, days-hours:minutes:seconds."""
    if seconds is None:
        return "infinite"
    minutes, rest = divmod(round(seconds), 60)
    days, minutes = divmod(minutes, 1440)
    return f"{days}-{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"


def _section(name: str, entries: Mapping[str, Any]) -> str:
    return _lines(f"[{name}]", entries)


def _lines(head: str, entries: Mapping[str, Any]) -> str:
    return "\n".join([head, *(f"{_key(key)} = {_value(value)}" for key, value in entries.items())])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    """A value of TOML: its texts between quotes are those of JSON; pairs are a table in a line."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "{" + ", ".join(f"{_key(name)} = {_value(inner)}" for name, inner in value) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
