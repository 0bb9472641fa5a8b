"""Batsim's hosts as the nodes of a platform, and their power states.

Batsim tells names, states and properties of its hosts, but no speeds, so not how long a switch takes. Where nodes shall
switch the platform has to be given beside it. A node is a host, and has one core: Batsim's jobs ask for hosts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from escala.bridges.batsim.messages import Event
from escala.errors import EscalaError, quoted
from escala.platform import Platform

PSTATE = re.compile(r"[0-9]{1,4}")
WATTS = ("wattage_per_state", "watt_per_state")  # the second before SimGrid 3.28


class States(NamedTuple):
    """on, off: the power states (pstates) of a host, as Batsim counts them, None where it cannot sleep. on is where it
    computes; computing: all states in which it does, None where it has but one."""

    on: str
    off: str | None
    computing: frozenset[str] | None


@dataclass(frozen=True)
class Hosts:
    """ids: Batsim's number of each node, ascending. asleep: is it so at the beginning?"""

    ids: list[int]
    names: list[str]
    states: list[States]
    asleep: list[bool]

    @classmethod
    def told(cls, event: Event) -> Hosts:
        """From SIMULATION_BEGINS; EscalaError where it is not that of Batsim 4."""
        found = event.has("compute_resources", list)
        if not found:
            raise EscalaError("Batsim: the platform has no compute resource: give it hosts")
        for host in found:
            if (
                not isinstance(host, dict)
                or type(host.get("id")) is not int
                or not isinstance(host.get("properties", {}), dict)
            ):
                raise EscalaError(
                    f"Batsim: {quoted(host)} is no compute resource: this is not the protocol of Batsim 4"
                )
            if host.get("state", "idle") not in ("idle", "sleeping"):
                raise EscalaError(
                    f"Batsim: host {host['id']} is {quoted(host['state'])} : begin with hosts that are idle or asleep"
                )
        found = sorted(found, key=lambda host: host["id"])
        ids = [host["id"] for host in found]
        if ids[0] < 0 or len(set(ids)) < len(ids):
            raise EscalaError(f"Batsim: the hosts have the numbers {quoted(ids)}: each has one of its own, from 0")
        states = [_states(str(host.get("name", host["id"])), host.get("properties", {})) for host in found]
        names = [str(host.get("name", host["id"])) for host in found]
        return cls(ids, names, states, [host.get("state") == "sleeping" for host in found])

    def platform(self, given: Platform | None) -> Platform:
        """The nodes: those of `given`, if they are these hosts; without it nodes that are never off. EscalaError where
        they differ."""
        n = len(self.ids)
        if given is None:
            if any(self.asleep):
                raise EscalaError(
                    "Batsim: hosts sleep at the beginning, and nothing is known of their switches: give --platform FILE"
                )
            return replace(Platform.uniform(n, name="Batsim"), names=tuple(self.names))
        if given.n_nodes != n:
            raise EscalaError(
                f"Batsim: {n} hosts compute, platform {quoted(given.name)} has {given.n_nodes} nodes: give "
                f"{given.name}#{n}"
            )
        own = given.names != tuple(f"node{k}" for k in range(n))
        for k, (name, told) in enumerate(zip(self.names, given.names, strict=True)):
            if own and name != told:
                raise EscalaError(
                    f"Batsim: host {k} is {quoted(name)}, in the platform {quoted(told)}: give the same file to both"
                )
            what = "can sleep" if self.states[k].off else "cannot sleep"
            if given.profiles[given.profile_of[k]].can_switch != (self.states[k].off is not None):
                raise EscalaError(
                    f"Batsim: host {quoted(name)} {what}, not so in the platform: give the same file to both"
                )
        return replace(given, cores=np.ones(n, np.int64), names=tuple(self.names))


def _states(name: str, properties: dict[str, Any]) -> States:
    """The power states of a host, from its properties. The first triple of sleep_pstates (asleep:off:on) counts."""
    asleep = str(properties.get("sleep_pstates", "")).strip()
    if not asleep:
        return States("0", None, None)
    triples = [[part.strip() for part in triple.split(":")] for triple in asleep.split(",")]
    if any(len(triple) != 3 or not all(PSTATE.fullmatch(part) for part in triple) for triple in triples):
        raise EscalaError(
            f"Batsim: host {quoted(name)} has sleep_pstates {quoted(asleep)}, which is no list of triples such as "
            "13:14:15"
        )
    watts = next((str(properties[key]) for key in WATTS if key in properties), "")
    used = {part for triple in triples for part in triple}
    most = max(watts.count(",") + 1, max(map(int, used)) + 1)
    computing = [str(k) for k in range(most) if str(k) not in used]
    if not computing:
        raise EscalaError(
            f"Batsim: host {quoted(name)} has no state but those of sleep_pstates {quoted(asleep)}: it cannot compute"
        )
    return States(computing[0], triples[0][0], frozenset(computing))
