"""A site: a platform whose nodes differ in memory, GPUs and features, with its partitions and its resource manager's
settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from escala.errors import EscalaError, quoted
from escala.platform.closures import Closure
from escala.platform.platform import Ints, Platform
from escala.reading import first_twin

MEMORY = "memory"
"""The resource kind of memory, MB of a node."""
WHOLE = "all"
"""The one partition of a site that describes none."""
SELECT = "selecttype"
"""Slurm's setting that says how nodes are chosen."""
MOST_FEATURES = 5_000_000
GPU = "gpu"
"""The resource kind of GPUs of any kind; those of a kind have `gpu:KIND` beside it."""


@dataclass(frozen=True)
class Partition:
    """A set of nodes with its limits. Times in seconds; None: no limit.

    nodes: node numbers, rising. tier: partitions of a higher one are looked at first. factor: Slurm's
    PriorityJobFactor. exclusive: a job gets whole nodes. up: may start jobs. memory_mb_per_core, memory_mb_per_node: of
    jobs that ask for none. accounts, qos: who may use it, empty: everybody; denied_accounts, denied_qos: who may not.
    own_qos: the QOS whose limits hold for its jobs.
    tres_billing_weights: what use is charged by, in Slurm's words, None: by CPUs.
    preempt_mode, grace_s: what becomes of jobs that lose their nodes to a higher tier (None: as the site has it), and
    how long after.
    """

    name: str
    nodes: tuple[int, ...]
    default: bool = False
    max_s: float | None = None
    default_s: float | None = None
    max_nodes: int | None = None
    min_nodes: int = 0
    max_cores_per_node: int | None = None
    tier: int = 1
    factor: int = 1
    exclusive: bool = False
    up: bool = True
    memory_mb_per_core: int | None = None
    memory_mb_per_node: int | None = None
    least_loaded: bool = False
    accounts: tuple[str, ...] = ()
    denied_accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    denied_qos: tuple[str, ...] = ()
    own_qos: str | None = None
    tres_billing_weights: str | None = None
    preempt_mode: str | None = None
    grace_s: float = 0.0


PARTITION_FIELDS = tuple(one.name for one in fields(Partition) if one.name not in ("name", "nodes"))


@dataclass(frozen=True, eq=False)
class Site(Platform):
    """A `Platform` with partitions and with the settings of its resource manager; it can be given wherever a Platform
    can.

    partitions: at least one. settings: Slurm's settings under their names in slurm.conf, in lower case -> text.
    features: of each node.
    weights: int64 [nodes], Slurm's: light nodes are taken first. threads: int64 [nodes], CPUs of a core, where cores
    are what is given away. qos: name -> priority, qos_limits: name -> its limits (`escala.platform.limits`). accounts:
    the tree of `escala.platform.accounts`. closed: outages, drains and reservations (`escala.platform.closures`).
    unread: what was in the file and is not modelled.
    """

    partitions: tuple[Partition, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    features: tuple[tuple[str, ...], ...] = ()
    weights: Ints | None = None
    threads: Ints | None = None
    qos: dict[str, int] = field(default_factory=dict)
    qos_limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    closed: tuple[Closure, ...] = ()
    unread: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        put = object.__setattr__
        for name, usual in (("weights", 1), ("threads", 1)):
            given = getattr(self, name)
            values = np.full(self.n_nodes, usual, np.int64) if given is None else np.array(given, np.int64)
            if values.shape != (self.n_nodes,):
                raise EscalaError(
                    f"site {quoted(self.name)}: {name} has {values.size} entries for {self.n_nodes} nodes"
                )
            values.setflags(write=False)
            put(self, name, values)
        put(self, "features", tuple(tuple(one) for one in self.features) or ((),) * self.n_nodes)
        if sum(map(len, self.features)) > MOST_FEATURES:
            raise EscalaError(
                f"site {quoted(self.name)}: its nodes have more than {MOST_FEATURES:,} features together: leave out "
                "those that no job asks for"
            )
        if len(self.features) != self.n_nodes:
            raise EscalaError(
                f"site {quoted(self.name)}: features has {len(self.features)} entries for {self.n_nodes} nodes"
            )
        put(self, "partitions", tuple(self.partitions) or (Partition(WHOLE, tuple(range(self.n_nodes)), default=True),))
        self._check_partitions()

    def _check_partitions(self) -> None:
        where = f"site {quoted(self.name)}"
        twin = first_twin([one.name for one in self.partitions])
        if twin is not None:
            raise EscalaError(f"{where}: two partitions are called {quoted(twin)}; names must differ")
        if sum(one.default for one in self.partitions) > 1:
            raise EscalaError(f"{where}: two partitions are the default; leave one")
        for one in self.partitions:
            if not one.nodes:
                raise EscalaError(
                    f"{where}: partition {quoted(one.name)} has no node; name some, or leave the partition out"
                )
            if not 0 <= min(one.nodes) <= max(one.nodes) < self.n_nodes:
                raise EscalaError(f"{where}: partition {quoted(one.name)} has node {max(one.nodes)} of {self.n_nodes}")

    @property
    def default_partition(self) -> Partition | None:
        """Where a job goes that names none: the default, or the only one."""
        marked = [one for one in self.partitions if one.default]
        return marked[0] if marked else self.partitions[0] if len(self.partitions) == 1 else None

    @property
    def whole_nodes(self) -> bool:
        """Does its Slurm give whole nodes alone (select/linear)?"""
        return self.settings.get(SELECT, "").lower().endswith("linear")

    def partition(self, name: str) -> Partition:
        """The partition of this name; EscalaError for an unknown one."""
        for one in self.partitions:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.partitions)
        hint = "; describe the cluster's own in a site.toml (escala site import)" if known == WHOLE else ""
        raise EscalaError(f"site {quoted(self.name)} has no partition {quoted(name)}: it has {known}{hint}")

    @property
    def gpu_kinds(self) -> tuple[str, ...]:
        """Kinds of GPUs that some node has."""
        return tuple(kind.partition(":")[2] for kind in self.resources if kind.startswith(f"{GPU}:"))

    def first(self, n: int) -> Site:
        """The site of the first `n` nodes; a partition that keeps no node goes."""
        kept = [replace(one, nodes=tuple(node for node in one.nodes if node < n)) for one in self.partitions]
        if not 1 <= n <= self.n_nodes:
            raise EscalaError(f"platform {self.name!r} has {self.n_nodes} nodes; cannot keep the first {n}")
        closed = [one._replace(nodes=tuple(node for node in one.nodes if node < n)) for one in self.closed]
        left = tuple(one for one in closed if one.nodes)
        return replace(
            self, closed=left, partitions=tuple(one for one in kept if one.nodes), **_kept(self, np.arange(n))
        )

    def machine(self, name: str) -> Site:
        """The nodes of one partition as a site of their own, in which they have the numbers from 0."""
        own = self.partition(name)
        alone = replace(own, nodes=tuple(range(len(own.nodes))), default=True)
        number = {node: k for k, node in enumerate(own.nodes)}
        closed = [
            one._replace(nodes=tuple(number[node] for node in one.nodes if node in number)) for one in self.closed
        ]
        left = tuple(one for one in closed if one.nodes)
        return replace(
            self, name=f"{self.name} {name}", closed=left, partitions=(alone,), **_kept(self, np.array(own.nodes))
        )

    def spec(self) -> dict[str, Any]:
        """A plain dict from which `from_spec` makes an equal site."""
        usual = Partition("", ())
        told = [
            {"name": one.name, "nodes": interval_text(one.nodes)}
            | {
                key: list(value) if isinstance(value, tuple) else value
                for key in PARTITION_FIELDS
                if (value := getattr(one, key)) != getattr(usual, key)
            }
            for one in self.partitions
        ]
        more: dict[str, Any] = {
            "partitions": told,
            "settings": dict(self.settings),
            "qos": dict(self.qos),
            "unread": list(self.unread),
        }
        more |= {name: value for name in ("qos_limits", "accounts") if (value := getattr(self, name))}
        more |= {"closed": [_closed(one) for one in self.closed]} if self.closed else {}
        more |= {
            name: values.tolist()
            for name in ("weights", "threads")
            if len(set((values := getattr(self, name)).tolist()) - {1})
        }
        if any(self.features):
            more["features"] = [list(one) for one in self.features]
        return {**super().spec(), "site": more}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Site) and super().__eq__(other) and self.spec()["site"] == other.spec()["site"]

    __hash__ = None

    def __repr__(self) -> str:
        parts = ", ".join(one.name for one in self.partitions)
        return f"Site({self.name!r}, {self.n_nodes} nodes, {self.total_cores} cores, partitions {parts})"


def _kept(site: Site, nodes: Ints) -> dict[str, Any]:
    """Fields of these nodes."""
    assert site.weights is not None and site.threads is not None
    used, profile_of = np.unique(site.profile_of[nodes], return_inverse=True)
    return {
        "cores": site.cores[nodes],
        "profiles": tuple(site.profiles[i] for i in used),
        "profile_of": profile_of,
        "resources": {kind: values[nodes] for kind, values in site.resources.items()},
        "names": tuple(site.names[n] for n in nodes),
        "node_speed": None if site.node_speed is None else site.node_speed[nodes],
        "features": tuple(site.features[n] for n in nodes),
        "weights": site.weights[nodes],
        "threads": site.threads[nodes],
    }


def _closure(nodes: str, *rest: Any) -> Closure:
    plain: list[Any] = [tuple(one) if isinstance(one, list) else one for one in rest]
    return Closure(nodes_of_intervals(nodes), *plain)


def _closed(one: Closure) -> list[Any]:
    own = [one.name, list(one.users), list(one.accounts)] if one.name is not None else []
    return [interval_text(one.nodes), *one[1:5], *own, *([list(one.flags)] if one.flags else [])]


def interval_text(nodes: tuple[int, ...]) -> str:
    """Node numbers as intervals, "0-3 7"."""
    out: list[list[int]] = []
    for node in nodes:
        if out and out[-1][1] == node - 1:
            out[-1][1] = node
        else:
            out.append([node, node])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def nodes_of_intervals(text: str) -> tuple[int, ...]:
    """The reverse of `interval_text`."""
    pairs = [one.partition("-") for one in text.split()]
    return tuple(node for low, _, high in pairs for node in range(int(low), int(high or low) + 1))


def site_of(platform: Platform, more: Mapping[str, Any] | None = None) -> Site:
    """The platform as a site: with what `Site.spec` tells under "site", or with one partition of all nodes and no
    settings."""
    if isinstance(platform, Site):
        return platform
    plain = {one.name: getattr(platform, one.name) for one in fields(Platform)}
    if more is None:
        return Site(**plain)
    told = dict(more)
    partitions = tuple(_partition(one) for one in told.pop("partitions"))
    told["closed"] = tuple(_closure(*one) for one in told.get("closed", ()))
    return Site(**plain, partitions=partitions, **{**told, "unread": tuple(told.get("unread", ()))})


def _partition(told: Mapping[str, Any]) -> Partition:
    fields_: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    return Partition(**{**fields_, "nodes": nodes_of_intervals(told["nodes"])})
