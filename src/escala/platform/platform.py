"""The platform: how many nodes, with how many cores and further resources each, and what power they draw."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from escala.errors import EscalaError, quoted
from escala.platform import power as power_profiles
from escala.platform.gpu_watts import Drawn, drawn_of
from escala.platform.power import PowerProfile
from escala.platform.sharers import SHARERS
from escala.reading import first_twin

Ints = NDArray[np.int64]
MOST_NODES = 1_000_000
MOST_AMOUNTS = 20_000_000  # of further kinds of resources, a number for each kind and node
MOST_CORES = 1_000_000_000
"""More than any machine that was ever built (some 160 thousand nodes, some 40 million cores), and than a cluster of a
million cores in thousandths; beyond, a typing error. Sums of cores stay below 2^31."""
SLOWEST, FASTEST = 1e-3, 1e3
"""Relative speeds of nodes; beyond, a typing error."""


def check_size(name: str, nodes: int, cores: int) -> None:
    """EscalaError where a platform is larger than Escala can simulate; `cores`: of all nodes together."""
    if nodes > MOST_NODES:
        raise EscalaError(
            f"platform {quoted(name)} has {min(nodes, 10**300):.10g} nodes; at most {MOST_NODES} are possible"
        )
    if cores > MOST_CORES:
        raise EscalaError(
            f"platform {quoted(name)} has {min(cores, 10**300):.10g} cores; at most {MOST_CORES} are possible"
        )


def check_resources(name: str, nodes: int, kinds: int) -> None:
    """EscalaError where so many nodes have too many kinds of resources."""
    if nodes * kinds > MOST_AMOUNTS:
        raise EscalaError(
            f"platform {quoted(name)} has {kinds} kinds of resources on {nodes} nodes, more than {MOST_AMOUNTS:,} "
            "numbers: leave out kinds that no job asks for"
        )


def _whole(values: ArrayLike, what: str, least: int) -> Ints:
    """A read-only int64 array of one dimension with no entry below `least`."""
    array = np.array(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise EscalaError(f"platform: {what} must be a list of whole numbers, one for each node")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise EscalaError(f"platform: {what} must be below 2^63")
    array = array.astype(np.int64)
    if array.size and array.min() < least:
        node = int(np.flatnonzero(array < least)[0])
        raise EscalaError(f"platform: {what} of node {node} is {array[node]}; it must be at least {least}")
    array.setflags(write=False)
    return array


@functools.lru_cache(maxsize=8)
def _default_names(nodes: int) -> tuple[str, ...]:
    return tuple(f"node{i}" for i in range(nodes))


@dataclass(frozen=True, eq=False)
class Platform:
    """Nodes, their cores, further resources and power profiles. Immutable: the arrays are read-only.

    name: what it is called in reports. cores: int64 [nodes], >= 1. profiles: the distinct power profiles, each with its
    own name.
    profile_of: int64 [nodes], the index into `profiles`. resources: kind -> int64 [nodes], capacity of each further
    resource (say `memory`). names: host names [nodes]. speed: flop/s of one core of a node of relative speed 1, or None
    where it is unknown. node_speed: float64 [nodes], 0.001 to 1000: how fast each computes, 1 where the log's run times
    hold; None: 1 everywhere.
    """

    name: str
    cores: Ints
    profiles: tuple[PowerProfile, ...]
    profile_of: Ints
    resources: dict[str, Ints] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    speed: float | None = None
    node_speed: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "cores", _whole(self.cores, "cores", 1))
        nodes = self.cores.size
        if nodes == 0:
            raise EscalaError(f"platform {self.name!r} has no node; give at least one")
        # any size alone may be absurd, and their sum overflow
        check_size(self.name, nodes, sum(set(self.cores.tolist())))
        check_size(self.name, nodes, self.total_cores)
        put(self, "profiles", tuple(self.profiles))
        put(self, "profile_of", _whole(self.profile_of, "profile_of", 0))
        put(self, "resources", {kind: _whole(values, kind, 0) for kind, values in self.resources.items()})
        put(self, "names", tuple(self.names) or _default_names(nodes))
        if self.node_speed is not None:
            put(self, "node_speed", _speeds(self.node_speed, f"platform {quoted(self.name)}", nodes))
        self._check(nodes)

    def _check(self, nodes: int) -> None:
        sizes = {"profile_of": self.profile_of.size, "names": len(self.names)} | {
            k: v.size for k, v in self.resources.items()
        }
        for what, size in sizes.items():
            if size != nodes:
                raise EscalaError(f"platform {self.name!r}: {what} has {size} entries for {nodes} nodes")
        if not self.profiles or self.profile_of.max() >= len(self.profiles):
            raise EscalaError(
                f"platform {self.name!r}: profile_of names profile {self.profile_of.max()} of {len(self.profiles)}"
            )
        _refuse_twins(
            [profile.name for profile in self.profiles], f"platform {self.name!r}: two power profiles are called"
        )
        _refuse_twins(self.names, f"platform {self.name!r}: two hosts are called")
        if "cores" in self.resources:
            raise EscalaError(f"platform {self.name!r}: 'cores' is the first resource and not one of the further kinds")
        if SHARERS in self.resources:
            raise EscalaError(f"platform {self.name!r}: no kind of resource can be called {SHARERS!r}: choose another")
        if any(profile.gpu_idle_w for profile in self.profiles):
            drawn_of(self)
        if self.speed is not None and not (isinstance(self.speed, Real) and np.isfinite(self.speed) and self.speed > 0):
            raise EscalaError(f"platform {self.name!r}: speed is {self.speed!r}; give flop/s > 0 or leave it out")

    @classmethod
    def uniform(
        cls,
        nodes: int,
        cores: int = 1,
        power: PowerProfile | str | None = None,
        name: str | None = None,
        resources: Mapping[str, int] | None = None,
        per_core: bool = False,
        speed: float | None = None,
    ) -> Platform:
        """`nodes` equal nodes of `cores` cores. `power`: a profile or its name; without one no energy is counted and
        nodes stay on.
        `resources`: capacity of one node for each further kind.

        With `per_core` the profile's watts are those of one core, and a node draws `cores` times as much.
        """
        for count, what in ((nodes, "nodes"), (cores, "cores of a node")):
            if isinstance(count, bool) or not isinstance(count, Integral):
                raise EscalaError(f"platform: the number of {what} is {count!r}; give a whole number")
        nodes, cores = int(nodes), int(cores)
        check_size(name if name is not None else f"{nodes}x{cores}", nodes, nodes * cores)
        if nodes < 1 or cores < 1:
            raise EscalaError(f"a platform of {nodes} nodes x {cores} cores is not possible; give at least 1 of each")
        profile = _profile(power)
        if per_core:
            profile = profile.per_core(cores)
        return cls(
            name=name if name is not None else f"{nodes}x{cores}",
            cores=np.full(nodes, cores, np.int64),
            profiles=(profile,),
            profile_of=np.zeros(nodes, np.int64),
            resources={kind: np.full(nodes, capacity) for kind, capacity in (resources or {}).items()},
            speed=speed,
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.cores.size)

    def alike(self) -> Self:
        """The same nodes, all of one speed."""
        return self if self.node_speed is None else replace(self, node_speed=None)

    @property
    def slowest(self) -> float:
        """The least relative speed of a node."""
        return 1.0 if self.node_speed is None else float(self.node_speed.min())

    @property
    def asleep_w(self) -> float:
        """Watts of the platform while all nodes that can switch are off and the others idle."""
        watts = [profile.off_w if profile.can_switch else profile.idle_w for profile in self.drawn.profiles]
        return float(sum(watts[kind] for kind in self.drawn.profile_of))

    @functools.cached_property
    def total_cores(self) -> int:
        """Number of cores of all nodes together."""
        return int(self.cores.sum())

    @property
    def has_energy(self) -> bool:
        """False where some node has no watts: a sum that leaves it out would be too small, so none is told."""
        return all(profile.has_watts for profile in self._used)

    @property
    def has_profile(self) -> bool:
        """False where no node has a power profile, neither watts nor the times of a switch."""
        return any(profile.has_watts or profile.can_switch for profile in self._used)

    @property
    def has_switches(self) -> bool:
        """False where no profile says anything of switching off: neither that its nodes can, nor what it takes."""
        told = (*power_profiles.WATTS[2:], *power_profiles.SECONDS)
        return any(profile.can_switch or any(getattr(profile, name) for name in told) for profile in self._used)

    @functools.cached_property
    def drawn(self) -> Drawn:
        """What the nodes draw, with their GPUs."""
        return drawn_of(self)

    @property
    def _used(self) -> list[PowerProfile]:
        """The profiles that some node has."""
        return (
            list(self.profiles)
            if len(self.profiles) == 1
            else [self.profiles[i] for i in sorted(set(self.profile_of.tolist()))]
        )

    @property
    def power_line(self) -> str:
        """One line for people: the watts of each profile, or how to give one."""
        from escala.platform.told import power_line

        return power_line(self)

    def first(self, n: int) -> Platform:
        """The platform of the first `n` nodes."""
        if not 1 <= n <= self.n_nodes:
            raise EscalaError(f"platform {self.name!r} has {self.n_nodes} nodes; cannot keep the first {n}")
        used, profile_of = np.unique(self.profile_of[:n], return_inverse=True)
        return replace(
            self,
            cores=self.cores[:n],
            profiles=tuple(self.profiles[i] for i in used),
            profile_of=profile_of,
            resources={kind: values[:n] for kind, values in self.resources.items()},
            names=self.names[:n],
            node_speed=None if self.node_speed is None else self.node_speed[:n],
        )

    def with_power(self, profile: PowerProfile | str | None, per_core: bool = False) -> Platform:
        """The same nodes, all with this power profile (a profile, its name, or None for none); `per_core`: its watts
        are of a core."""
        given = _profile(profile)
        sizes, profile_of = (
            np.unique(self.cores, return_inverse=True) if per_core else (np.ones(1), np.zeros(self.n_nodes, np.int64))
        )
        return replace(self, profiles=tuple(given.per_core(int(cores)) for cores in sizes), profile_of=profile_of)

    def spec(self) -> dict[str, Any]:
        """A plain dict (JSON, YAML) from which `from_spec` makes an equal platform; runs of equal nodes are one entry.
        Nodes without a power profile have no entry `power`."""
        groups: list[dict[str, Any]] = []
        speeds = [] if self.node_speed is None else [self.node_speed.view(np.int64)]
        columns = np.stack([self.cores, self.profile_of, *self.resources.values(), *speeds])
        for i, end in pairwise(
            [0, *(np.flatnonzero((columns[:, 1:] != columns[:, :-1]).any(axis=0)) + 1).tolist(), self.n_nodes]
        ):
            profile = self.profiles[self.profile_of[i]]
            entry: dict[str, Any] = {"cores": int(self.cores[i])} | (
                {} if profile == power_profiles.NONE else {"power": profile.name}
            )
            if self.resources:
                entry["resources"] = {kind: int(values[i]) for kind, values in self.resources.items()}
            if self.node_speed is not None and self.node_speed[i] != 1.0:
                entry["speed"] = float(self.node_speed[i])
            if groups and {**groups[-1], "count": 0} == {"count": 0, **entry}:
                groups[-1]["count"] += end - i
            else:
                groups.append({"count": end - i} | entry)
        profiles = {p.name: p.spec() for p in self.profiles if p != power_profiles.NONE}
        spec: dict[str, Any] = {"name": self.name, "profiles": profiles, "nodes": groups}
        if self.names != _default_names(self.n_nodes):
            spec["host_names"] = list(self.names)
        if self.speed is not None:
            spec["speed_flop_per_s"] = self.speed
        return spec

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Platform:
        """The platform that a `spec()` dict or a YAML platform file describes; EscalaError on a missing or unknown
        key."""
        from escala.platform.spec import platform_of

        return platform_of(spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Platform):
            return NotImplemented
        mine = [self.profiles[i] for i in self.profile_of]
        theirs = [other.profiles[i] for i in other.profile_of]
        return (
            (self.name, self.names, self.speed) == (other.name, other.names, other.speed)
            and np.array_equal(self.cores, other.cores)
            and mine == theirs
            and self.resources.keys() == other.resources.keys()
            and all(np.array_equal(values, other.resources[kind]) for kind, values in self.resources.items())
            and _listed(self.node_speed) == _listed(other.node_speed)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        profiles = ", ".join(profile.name for profile in self.profiles)
        return f"Platform({self.name!r}, {self.n_nodes} nodes, {self.total_cores} cores, power {profiles})"


def _listed(speeds: NDArray[np.float64] | None) -> list[float]:
    return [] if speeds is None else speeds.tolist()


def _speeds(given: Any, where: str, nodes: int) -> NDArray[np.float64] | None:
    """Relative speeds [nodes], read-only; None where all are 1. EscalaError for what is none."""
    try:
        array = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise EscalaError(f"{where}: node_speed is {quoted(given)}; give a number for each node") from None
    if array.shape != (nodes,):
        raise EscalaError(f"{where}: node_speed has {array.size} entries for {nodes} nodes")
    for value in set(array.tolist()):
        check_speed(value, where)
    array.setflags(write=False)
    return None if (array == 1.0).all() else array


def check_speed(value: Any, where: str) -> float:
    """The relative speed of a node; EscalaError for what is no number from 0.001 to 1000."""
    number: Any = value
    if isinstance(value, bool) or not isinstance(value, Real) or not SLOWEST <= number <= FASTEST:
        raise EscalaError(
            f"{where}: a speed of {quoted(value)}; give a number from {SLOWEST:g} to {FASTEST:g}: 1 where run times "
            "are as in the log, 0.8 where a job runs 1.25 times as long"
        )
    return float(value)


def _profile(power: PowerProfile | str | None) -> PowerProfile:
    if power is None:
        return power_profiles.NONE
    return power_profiles.by_name(power) if isinstance(power, str) else power


def _refuse_twins(names: Sequence[str], what: str) -> None:
    twin = first_twin(names)
    if twin is not None:
        raise EscalaError(f"{what} {quoted(twin)}; names must differ")
