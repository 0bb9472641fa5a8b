"""A platform as a plain dict: what `Platform.spec()` gives, what a run's manifest keeps, and what a YAML platform file
holds.

name: my-cluster
profiles:                       # optional, watts of one node; `power` may also name a preset (grid5000, taurus)
  blade: {computing_w: 210, idle_w: 90, off_w: 5, switching_off_w: 100, switching_on_w: 120, switch_off_s: 20,
  switch_on_s: 90}              # and of each GPU: gpu_idle_w: 55, gpu_computing_w: 400, or by kind: {a100: 55}
nodes:
  - {count: 16, cores: 32, power: blade, resources: {memory: 128}}
  - {count: 2, cores: 64, power: grid5000, resources: {memory: 512}}      # `power` left out: no profile, no energy
  - {count: 4, cores: 32, speed: 0.8}                                     # runs jobs 1.25 times as long; 1 by default
host_names: [...]               # optional, one for each node
speed_flop_per_s: 1.0e9         # optional, of one core of a node of speed 1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from escala.errors import EscalaError, quoted
from escala.platform import power as power_profiles
from escala.platform.gpu_watts import FIELDS as OF_GPUS
from escala.platform.platform import Platform, check_resources, check_size, check_speed
from escala.platform.power import SECONDS, WATTS, PowerProfile
from escala.platform.site import site_of

LONGEST_NAME = 200
_NEEDED = {"platform": {"name", "nodes"}, "nodes": {"count", "cores"}}
_ALLOWED = {
    "platform": {"name", "nodes", "profiles", "host_names", "speed_flop_per_s", "site"},
    "nodes": {"count", "cores", "power", "resources", "speed"},
}


def platform_of(spec: Mapping[str, Any]) -> Platform:
    """The platform that `spec` describes. Raises EscalaError with one line on a missing, unknown or ill-typed entry."""
    _check_keys(spec, "platform", "platform file")
    name = _name(spec["name"], "platform file: name")
    profiles = _profiles(spec.get("profiles") or {})
    groups = spec["nodes"]
    if not isinstance(groups, list) or not groups:
        raise EscalaError(f"platform {quoted(name)}: `nodes` must be a list of groups such as {{count: 4, cores: 12}}")
    used: dict[str, int] = {}
    counts, cores, profile_of, speeds, kinds = [], [], [], [], list(_resources(groups[0], name))
    amounts: dict[str, list[int]] = {kind: [] for kind in kinds}
    for number, group in enumerate(groups, start=1):
        where = f"platform {quoted(name)}, node group {number}"
        _check_keys(group, "nodes", where)
        counts.append(_count(group["count"], where, "count"))
        cores.append(_count(group["cores"], where, "cores"))
        profile_of.append(used.setdefault(_name(group.get("power") or "none", f"{where}: power"), len(used)))
        speeds.append(check_speed(group.get("speed", 1.0), where))
        resources = _resources(group, where)
        if set(resources) != set(kinds):
            raise EscalaError(
                f"{where}: resources are {sorted(resources)}, the first group's {sorted(kinds)}; give the same kinds "
                "in every group"
            )
        for kind in kinds:
            amounts[kind].append(_count(resources[kind], where, f"resource {kind!r}", least=0))
    check_size(name, sum(counts), sum(count * each for count, each in zip(counts, cores)))
    check_resources(name, sum(counts), len(amounts))
    plain = Platform(
        name=name,
        cores=np.repeat(np.array(cores, np.int64), counts),
        profiles=tuple(profiles[key] if key in profiles else power_profiles.by_name(key) for key in used),
        profile_of=np.repeat(np.array(profile_of, np.int64), counts),
        resources={kind: np.repeat(np.array(values, np.int64), counts) for kind, values in amounts.items()},
        names=_names(spec.get("host_names"), name),
        speed=_speed(spec.get("speed_flop_per_s"), name),
        node_speed=np.repeat(speeds, counts),
    )
    return site_of(plain, spec["site"]) if "site" in spec else plain


def _check_keys(entry: object, kind: str, where: str) -> None:
    if not isinstance(entry, Mapping):
        raise EscalaError(f"{where}: expected entries {', '.join(sorted(_NEEDED[kind]))}, found {type(entry).__name__}")
    missing = sorted(_NEEDED[kind] - set(entry))
    if missing:
        raise EscalaError(f"{where}: `{missing[0]}` is missing; add it")
    unknown = sorted(map(_shown, set(entry) - _ALLOWED[kind]))
    if unknown:
        raise EscalaError(f"{where}: unknown entry `{unknown[0]}`; known: {', '.join(sorted(_ALLOWED[kind]))}")


def _name(value: object, where: str) -> str:
    """A name: text, or a number that was not quoted."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise EscalaError(f"{where} is {quoted(value)}; give a name")
    if isinstance(value, str) and len(value) > LONGEST_NAME:
        raise EscalaError(f"{where} has {len(value)} characters; give a name of {LONGEST_NAME} at most")
    return value if isinstance(value, str) else quoted(value)


def _shown(key: object) -> str:
    """A key, without the quotes of text."""
    return quoted(key).strip("'")


def _profiles(entries: object) -> dict[str, PowerProfile]:
    if not isinstance(entries, Mapping):
        raise EscalaError("platform file: `profiles` must map names to power profiles")
    named = {_name(key, "platform file: a power profile's name"): entry for key, entry in entries.items()}
    return {name: profile_from(name, entry) for name, entry in named.items()}


def profile_from(name: str, entry: object) -> PowerProfile:
    """The power profile that the entries of a platform file, or of a file with one profile, describe; EscalaError on a
    wrong one."""
    if not isinstance(entry, Mapping):
        raise EscalaError(
            f"power profile {quoted(name)}: expected entries such as computing_w, idle_w; found {quoted(entry)}"
        )
    switching = entry.get("can_switch", True)
    if not isinstance(switching, bool):
        raise EscalaError(f"power profile {quoted(name)}: can_switch is {quoted(switching)}; give true or false")
    needed = WATTS + SECONDS if switching else WATTS[:2]
    missing = [key for key in needed if key not in entry]
    if missing:
        raise EscalaError(
            f"power profile {quoted(name)}: `{missing[0]}` is missing; give it, or can_switch: false with computing_w "
            "and idle_w only"
        )
    unknown = sorted(map(_shown, set(entry) - {*WATTS, *SECONDS, *OF_GPUS, "can_switch", "source"}))
    if unknown:
        raise EscalaError(f"power profile {quoted(name)}: unknown entry `{unknown[0]}`")
    if not isinstance(entry.get("source", ""), str):
        raise EscalaError(f"power profile {quoted(name)}: source is {quoted(entry['source'])}; give text")
    return PowerProfile(name=name, **entry)


def _resources(group: object, where: str) -> Mapping[str, Any]:
    resources = group.get("resources") if isinstance(group, Mapping) else None
    if resources is None:
        return {}
    if not isinstance(resources, Mapping):
        raise EscalaError(f"{where}: resources must map a kind to its capacity, such as {{memory: 64}}")
    return {_name(kind, f"{where}: a kind of resource"): capacity for kind, capacity in resources.items()}


def _count(value: object, where: str, what: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise EscalaError(f"{where}: {what} is {quoted(value)}; give a whole number of at least {least}")
    if value >= 2**63:
        raise EscalaError(f"{where}: {what} is {quoted(value)}; give a number below 2^63")
    return value


def _names(value: object, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise EscalaError(f"platform {quoted(name)}: host_names must be a list of names, one for each node")
    return tuple(_name(host, f"platform {quoted(name)}: a host name") for host in value)


def _speed(value: object, name: str) -> float | None:
    if value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]  # a YAML 1e9 without a point is text
    except (TypeError, ValueError, OverflowError):
        raise EscalaError(f"platform {quoted(name)}: speed_flop_per_s is {quoted(value)}; give a number") from None
