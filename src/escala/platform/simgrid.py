"""SimGrid platform files as Batsim uses them (XML, platform versions 3 and 4).

What is read: `<host>`, `<peer>`, `<cluster>` and `<cabinet>` (one host for each number of `radical`), in zones
(`<zone>`, `<AS>`) of any depth; attributes `speed` (one value for each pstate; `power` in version 3) and `core`; the
properties `wattage_per_state` and `sleep_pstates` (before SimGrid 3.28 the former was `watt_per_state`) and `role`. Not
read: `wattage_off`, as a sleeping host is in its sleeping pstate and not off in the sense of SimGrid; links and routes,
as Escala has
no network.

- Power. An entry of `wattage_per_state` is `idle:full` or `idle:epsilon:full`, one for each pstate. Computing and idle
  power are the full and idle watts of the computing pstate: the first pstate with a speed above 0 that is neither
  asleep nor a transition (pstate 0 in most files). Epsilon, the step at the first bit of load, is not modelled.
- `sleep_pstates` is a list of triples `sleep:off:on`; the first triple counts. Off power is the idle watts of the
  sleeping pstate. A switch is modelled by the reference engine as one flop computed in the transition's pstate: it
  takes 1 / speed seconds at full watts.
- A host without power data gets the profile `none` (0 W, never switched off); one with power but no sleeping pstate can
  not be switched off.
- Speeds may differ. The one of most cores (of several, the fastest) is the platform's, and relative speed 1.
- Not nodes: hosts named `master_host` or `master` (with or without a number), with the role `master` or `storage`, or
  with a property `excluded` that is true.
- Nodes are numbered in plain string order of the host names, as the reference engine does: host1, host10, host2.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from escala.errors import EscalaError, quoted
from escala.platform.platform import MOST_NODES, Platform, check_size
from escala.platform.power import NONE, PowerProfile

_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_UNITS |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}
_SPEED = re.compile(
    r"((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(" + "|".join(sorted(_UNITS, reverse=True)) + r")(?:flops|f)?"
)
_MASTER = re.compile(r"master(_host)?\d*")  # with a number where the master is a group of one host
_GROUPS = {"cluster", "cabinet"}
_HOSTS = {"host", "peer"}
MOST_TEXT = 100_000_000  # characters of all host names of a cluster


@dataclass(frozen=True)
class _Host:
    """A host as the file describes it: its name, cores, flop/s of one core, and power."""

    name: str
    cores: int
    speed: float
    profile: PowerProfile


def platform_of_xml(data: bytes, name: str, path: str) -> Platform:
    """The platform of a SimGrid file's content. `path` is for messages. Raises EscalaError with one line."""
    if b"<!ENTITY" in data:
        raise EscalaError(f"{path}: defines entities, which no SimGrid platform needs; write out what they stand for")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise EscalaError(f"{path}: not well-formed XML ({error}); mend the file") from None
    except (LookupError, ValueError) as error:  # encoding="utf-7" and the like
        raise EscalaError(f"{path}: an encoding that XML readers do not take ({error}); save it as UTF-8") from None
    if root.tag != "platform":
        raise EscalaError(
            f"{path}: the outermost element is <{root.tag[:60]}>; a SimGrid platform file begins with <platform>"
        )
    if next(root.iter("include"), None) is not None:
        raise EscalaError(f"{path}: <include> is not supported; put the included hosts into one file")
    hosts = sorted(_hosts(root, path), key=lambda host: host.name)
    if not hosts:
        raise EscalaError(f"{path}: no host but the master; a platform needs at least one <host> or <cluster>")
    try:
        return _assemble(hosts, name)
    except EscalaError as error:
        raise EscalaError(f"{path}: {error}") from None


def _assemble(hosts: list[_Host], name: str) -> Platform:
    """Hosts in order -> platform; equal power profiles become one, named after the first host that has it."""
    numbers: dict[PowerProfile, int] = {}
    profile_of = [numbers.setdefault(replace(host.profile, name=""), len(numbers)) for host in hosts]
    firsts = [hosts[k] for k in np.unique(profile_of, return_index=True)[1]]
    speeds = np.array([host.speed for host in hosts])
    cores = np.array([host.cores for host in hosts], np.int64)
    there, which = np.unique(speeds, return_inverse=True)
    usual = max(zip(np.bincount(which, cores), there))[1].item()
    return Platform(
        name=name,
        cores=cores,
        profiles=tuple(_named(host, name if len(firsts) == 1 else f"{name}:{host.name}") for host in firsts),
        profile_of=np.array(profile_of, np.int64),
        names=tuple(host.name for host in hosts),
        speed=usual,
        node_speed=speeds / usual,
    )


def _named(host: _Host, name: str) -> PowerProfile:
    return host.profile if host.profile == NONE else replace(host.profile, name=name)


def _hosts(root: ElementTree.Element, path: str) -> Iterator[_Host]:
    """The computing hosts of the file, in the order of the file."""
    left, cores = MOST_NODES, 0
    for element in root.iter():
        if element.tag not in _HOSTS | _GROUPS:
            continue
        properties = {prop.get("id", ""): prop.get("value", "") for prop in element.findall("prop")}
        named = _names(element, path, left)
        left -= len(named)
        names = [name for name in named if _is_node(name, properties)]
        if names:
            first = _host(element, names[0], properties, f"{path}, host {quoted(names[0])}")
            cores += first.cores * len(names)
            check_size(path, MOST_NODES - left, cores)  # before a million hosts are made
            yield from (replace(first, name=name) for name in names)


def _names(element: ElementTree.Element, path: str, most: int) -> list[str]:
    """The host names that an element stands for: its id, or prefix + number + suffix for each number of the radical;
    `most` at most."""
    too_many = EscalaError(
        f"{path}: <{element.tag}>: more than {MOST_NODES} hosts in all; shorten its radical, no platform is as large"
    )
    if element.tag in _HOSTS:
        if most < 1:
            raise too_many
        return [_attribute(element, ("id",), path)]
    prefix, suffix = element.get("prefix", ""), element.get("suffix", "")
    radical, where = _attribute(element, ("radical",), path), f"{path}: <{element.tag}> {quoted(prefix)}: radical"
    numbers: list[int] = []
    for part in radical.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,12})(?:\s*-\s*([0-9]{1,12}))?\s*", part)
        if not match:
            raise EscalaError(f"{where} {quoted(radical)} is not a list of numbers and ranges such as 0-3,7")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise EscalaError(f"{where} {quoted(part.strip())} runs backwards; give the smaller number first")
        if (
            len(numbers) + last - first + 1 > most
            or (len(numbers) + last - first + 1) * len(prefix + suffix) > MOST_TEXT
        ):
            raise too_many
        numbers.extend(range(first, last + 1))
    return [f"{prefix}{number}{suffix}" for number in numbers]


def _is_node(name: str, properties: dict[str, str]) -> bool:
    roles = {role.strip() for role in properties.get("role", "").split(",")}
    return not (
        _MASTER.fullmatch(name) or roles & {"master", "storage"} or properties.get("excluded", "").lower() == "true"
    )


def _attribute(element: ElementTree.Element, names: tuple[str, ...], where: str) -> str:
    for name in names:
        value = element.get(name)
        if value is not None:
            return value
    raise EscalaError(f"{where}: <{element.tag}> has no attribute {names[0]!r}; add it")


def _host(element: ElementTree.Element, name: str, properties: dict[str, str], where: str) -> _Host:
    speeds = [_speed(text, where) for text in _attribute(element, ("speed", "power"), where).split(",")]
    cores = element.get("core", "1")
    if not re.fullmatch(r"[0-9]{1,9}", cores) or int(cores) < 1:
        raise EscalaError(f"{where}: core is {quoted(cores)}; give a whole number of at least 1")
    triple = _sleep_triple(properties, len(speeds), where)
    computing = next((i for i, speed in enumerate(speeds) if speed > 0 and i not in (triple or ())), None)
    if computing is None:
        raise EscalaError(
            f"{where}: no pstate with a speed above 0 that is not in sleep_pstates; the host could not compute"
        )
    profile = _profile(properties, speeds, triple, computing, where)
    return _Host(name, int(cores), speeds[computing], profile)


def _speed(text: str, where: str) -> float:
    """flop/s of `76.3Mf`, `16.673E9flops`, `1Gf`, `1e6f` or a plain number."""
    match = _SPEED.fullmatch(text.strip())
    if not match:
        raise EscalaError(f"{where}: speed {quoted(text.strip())} is not a number with f, kf, Mf, Gf or Tf")
    return float(match[1]) * _UNITS[match[2]]


def _sleep_triple(properties: dict[str, str], pstates: int, where: str) -> tuple[int, int, int] | None:
    """The first sleeping pstate with its two transitions, or None."""
    text = properties.get("sleep_pstates", "").strip()
    if not text:
        return None
    first = text.split(",")[0].split(":")
    if len(first) != 3 or not all(re.fullmatch(r"[0-9]{1,6}", part.strip()) for part in first):
        raise EscalaError(
            f"{where}: sleep_pstates {quoted(text)} is not a list of sleep:off:on triples such as 13:14:15"
        )
    sleep, off, on = (int(part) for part in first)
    if max(sleep, off, on) >= pstates:
        raise EscalaError(
            f"{where}: sleep_pstates {quoted(text)} names pstate {max(sleep, off, on)}, but `speed` has {pstates}, "
            "numbered from 0"
        )
    return sleep, off, on


def _profile(
    properties: dict[str, str], speeds: list[float], triple: tuple[int, int, int] | None, computing: int, where: str
) -> PowerProfile:
    text = properties.get("wattage_per_state", properties.get("watt_per_state"))
    if text is None:
        return NONE
    watts = _watts(text, len(speeds), where)
    idle_w, computing_w = watts[computing]
    if triple is None:
        return PowerProfile(computing_w=computing_w, idle_w=idle_w, can_switch=False, source="platform file")
    sleep, off, on = triple
    for pstate in (off, on):
        if speeds[pstate] <= 0:
            raise EscalaError(
                f"{where}: the transition pstate {pstate} has speed 0, so the switch would never end; give 1 / seconds"
            )
    return PowerProfile(
        computing_w=computing_w,
        idle_w=idle_w,
        off_w=watts[sleep][0],
        switching_off_w=watts[off][1],
        switching_on_w=watts[on][1],
        switch_off_s=1.0 / speeds[off],
        switch_on_s=1.0 / speeds[on],
        source="platform file",
    )


def _watts(text: str, pstates: int, where: str) -> list[tuple[float, float]]:
    """(idle, full) watts for each pstate."""
    entries = [entry.strip().split(":") for entry in text.split(",")]
    if len(entries) != pstates:
        raise EscalaError(
            f"{where}: {len(entries)} power entries for {pstates} pstates; wattage_per_state needs one for each speed"
        )
    watts = []
    for parts in entries:
        try:
            values = [float(part) for part in parts]
        except ValueError:
            values = []
        if len(values) not in (2, 3) or not all(math.isfinite(value) and value >= 0 for value in values):
            raise EscalaError(
                f"{where}: power entry {quoted(':'.join(parts))} is neither idle:full nor idle:epsilon:full, in watts "
                ">= 0"
            )
        watts.append((values[0], values[-1]))
    return watts
