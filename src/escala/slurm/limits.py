"""Limits of a run: which of a site's limits hold for whom, by Slurm's order of precedence, and the rows in which use is
counted.

The order: QOS of the partition, QOS of the job (or the other way round, with OverPartQOS), then the associations of the
user, its account and the accounts above. What one that comes first says hides the same limit of the later ones; limits
of groups of associations hold at each level. https://slurm.schedmd.com/resource_limits.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.kernel.slurm import tables as t
from escala.platform.accounts import ROOT, inherited
from escala.platform.limits import NO_LIMIT, USUAL_QOS
from escala.platform.site import Partition, Site
from escala.slurm.associations import Tree

Ints = NDArray[np.int64]
COLUMNS = {"node": t.USED_NODES, "cpu": t.USED_CPUS, "mem": t.USED_MEMORY, "gpu": t.USED_GPUS}
SAID = {t.USED_NODES: "nodes", t.USED_CPUS: "cores", t.USED_MEMORY: "MB", t.USED_GPUS: "GPUs"}


class Kept(NamedTuple):
    """What a class of jobs keeps to. links: row of counts -> column -> most. max_s: longest limit of a job, None: any.
    alone: column -> what one job can have at most, and whose limit that is. each: column -> most that a job may have
    where it starts. nodes: no more of them are chosen for a job."""

    number: int
    links: dict[int, dict[int, int]]
    max_s: float | None
    alone: dict[int, tuple[int, str]]
    no_reserve: bool
    each: dict[int, int]
    nodes: int


class Bounded:
    """The limits of a site, and the classes and rows that its jobs need."""

    def __init__(self, site: Site, enforced: bool) -> None:
        told = [
            one
            for account in site.accounts.values()
            for one in (account.get("limits"), *account.get("user_limits", {}).values())
        ]
        limited = [set(bounds) - NO_LIMIT for bounds in site.qos_limits.values()]
        self.any = enforced and bool(any(told) or any(limited))
        self.site, self.tree = site, Tree(site)
        self.names: dict[int, tuple[str, str | None]] = {}
        self.rows: dict[tuple[str, ...], int] = {}
        self.classes: dict[tuple[str | None, str, int], Kept] = {}
        self.columns = t.USED_KINDS + max(len(site.gpu_kinds), 1) + 1
        self._check()

    def _check(self) -> None:
        """EscalaError for GPUs of a kind that the site has not, and for a partition with a QOS that it has not."""
        for where, bounds in self._every():
            for value in (value for value in bounds.values() if isinstance(value, dict)):
                for name in value:
                    kind = name.partition(":")[2]
                    if kind and kind not in self.site.gpu_kinds:
                        known = ", ".join(self.site.gpu_kinds) or "none"
                        raise EscalaError(
                            f"{where} limits GPUs of kind {quoted(kind)}: site {quoted(self.site.name)} has {known}"
                        )
        for part in self.site.partitions:
            if (
                part.own_qos is not None
                and self.site.qos
                and part.own_qos not in {**self.site.qos, **self.site.qos_limits}
            ):
                raise EscalaError(
                    f"partition {quoted(part.name)} has QOS {quoted(part.own_qos)}, which is not under [qos]: add it "
                    "there"
                )

    def _every(self) -> list[tuple[str, Mapping[str, Any]]]:
        found: list[tuple[str, Mapping[str, Any]]] = [
            (f"qos {quoted(name)}", bounds) for name, bounds in self.site.qos_limits.items()
        ]
        for name, account in self.site.accounts.items():
            found.append((f"account {quoted(name)}", account.get("limits", {})))
            found += [(f"user {quoted(user)}", bounds) for user, bounds in account.get("user_limits", {}).items()]
        return found

    def of(self, part: Partition, qos: str | None, account: str | None, user: str | None) -> Kept:
        """What the jobs of this user keep to in a partition."""
        row = self.tree.of(account, user)
        key = (part.own_qos, qos or USUAL_QOS, row)
        if key not in self.classes:
            self.names[row] = (self.tree.home(account, user), user)
            self.classes[key] = self._kept(*key)
        return self.classes[key]

    def _kept(self, own_qos: str | None, qos: str, row: int) -> Kept:
        account, user = self.names[row]
        names = [name for name in (own_qos, qos) if name is not None]
        if len(names) > 1 and "OverPartQOS" in self.site.qos_limits.get(qos, {}).get("flags", ()):
            names.reverse()
        kept = Kept(
            len(self.classes),
            {},
            None,
            {},
            "NoReserve" in self.site.qos_limits.get(qos, {}).get("flags", ()),
            {},
            t.FAR,
        )
        hidden: set[tuple[str, int]] = set()
        times: list[float] = []
        for name in dict.fromkeys(names):
            bounds, where = self.site.qos_limits.get(name, {}), f"qos {quoted(name)}"
            times += [bounds["max_time"]] if "max_time" in bounds else []
            for kind, form, key in (
                ("grp", "grp_{}", ("qos", name)),
                ("user", "max_{}_per_user", ("user", name, user or "")),
                ("account", "max_{}_per_account", ("account", name, account)),
            ):
                limits = _numbers(bounds, form, self.site)
                self._link(
                    kept, key, {column: n for column, n in limits.items() if (kind, column) not in hidden}, where
                )
                hidden |= {(kind, column) for column in limits}
            self._of_each(kept, hidden, bounds, where)
        of_user = self.site.accounts.get(account, {}).get("user_limits", {}).get(user, {})
        own = inherited(self.site.accounts, account)
        own = own | of_user | {"max_tres": own.get("max_tres", {}) | of_user.get("max_tres", {})}
        self._associations(kept, hidden, account, user, own)
        self._of_each(kept, hidden, own, f"the association of user {quoted(user or '')}")
        times += [own["max_time"]] if "max_time" in own else []
        return kept._replace(
            max_s=times[0] if times else None, nodes=self._most_nodes(list(dict.fromkeys(names)), account, of_user, own)
        )

    def _most_nodes(self, names: list[str], account: str, of_user: Mapping[str, Any], own: Mapping[str, Any]) -> int:
        """So many nodes are chosen at most: by the QOS, and by the first group that says less
        (acct_policy_get_max_nodes)."""
        every = [self.site.qos_limits.get(name, {}) for name in names]
        forms = ("max_tres", "max_tres_per_user", "max_tres_per_account", "grp_tres")
        *alone, group = (
            next((one[form]["node"] for one in every if "node" in one.get(form, {})), t.FAR) for form in forms
        )
        most = min(*alone, group)
        for depth, bounds in enumerate([of_user, *(bounds for _, bounds in self._above(account))]):
            here = bounds.get("grp_tres", {}).get("node", t.FAR) if group == t.FAR else t.FAR
            first, most = here < most, min(most, here)
            if depth == 0 and min(alone) == t.FAR:
                most = min(most, own["max_tres"].get("node", t.FAR))
            if first:
                break
        return most

    def _above(self, account: str) -> list[tuple[str, Mapping[str, Any]]]:
        """An account and those above it, with their limits."""
        found = [account]
        while found[-1] != ROOT:
            found.append(self.site.accounts.get(found[-1], {"parent": ROOT})["parent"])
        return [(name, self.site.accounts.get(name, {}).get("limits", {})) for name in found]

    def _of_each(self, kept: Kept, hidden: set[tuple[str, int]], bounds: Mapping[str, Any], where: str) -> None:
        """The TRES that each job may have."""
        limits = _numbers({"grp_tres": bounds.get("max_tres", {})}, "grp_{}", self.site)
        for column, n in limits.items():
            if ("job", column) not in hidden:
                kept.each[column] = n
                if n < kept.alone.get(column, (t.FAR, ""))[0]:
                    kept.alone[column] = (n, where)
        hidden |= {("job", column) for column in limits}

    def _associations(
        self, kept: Kept, hidden: set[tuple[str, int]], account: str, user: str | None, own: Mapping[str, Any]
    ) -> None:
        """The links to a user's association and those above. Its limit of jobs holds where no QOS has one by user or by
        account."""
        mine = {
            column: n
            for column, n in _numbers(own, "max_{}", self.site).items()
            if not {("user", column), ("account", column)} & hidden
        }
        of_user = self.site.accounts.get(account, {}).get("user_limits", {}).get(user, {})
        chain: list[tuple[tuple[str, ...], Mapping[str, Any], dict[int, int]]] = [
            (("association", account, user or ""), of_user, mine)
        ]
        chain += [(("association", name), bounds, {}) for name, bounds in self._above(account)]
        for key, bounds, more in chain:
            group = {
                column: n
                for column, n in _numbers(bounds, "grp_{}", self.site).items()
                if ("grp", column) not in hidden
            }
            group |= {column: min(n, group.get(column, n)) for column, n in more.items()}
            self._link(kept, key, group, f"the association of {quoted(key[-1])}")

    def _link(self, kept: Kept, key: tuple[str, ...], limits: dict[int, int], where: str) -> None:
        """A link to a row, also where this class has no limit there: others may have. What a group has at most, no job
        can have more of."""
        row = self.rows.setdefault(key, len(self.rows))
        kept.links.setdefault(row, {}).update(limits)
        for column, n in limits.items():
            if n < kept.alone.get(column, (t.FAR, ""))[0]:
                kept.alone[column] = (n, where)

    def limits(self, classes: Ints, nodes: int) -> t.Limits:
        """The tables. classes: of each record."""
        kept = list(self.classes.values())
        finite = {row for one in kept for row, limits in one.links.items() if limits}
        number = {row: k for k, row in enumerate(sorted(finite))}
        by_nodes = {row for one in kept for row, limits in one.links.items() if t.USED_NODES in limits}
        first, rows, most = [0], list[int](), list[Ints]()
        for one in kept:
            for row, limits in one.links.items():
                if row in number:
                    rows.append(number[row])
                    most.append(np.full(self.columns, t.FAR, np.int64))
                    most[-1][list(limits)] = list(limits.values())
            first.append(len(rows))
        each = np.full((max(len(kept), 1), self.columns), t.FAR, np.int64)
        for c, one in enumerate(kept):
            each[c, list(one.each)] = list(one.each.values())
        place = np.full(len(number) + 1, t.NONE, np.int64)
        place[[number[row] for row in sorted(by_nodes)]] = np.arange(len(by_nodes))
        return t.Limits(
            of_record=classes,
            first=np.array(first if kept else [0, 0], np.int64),
            row=np.array(rows, np.int64),
            most=np.array(most, np.int64).reshape(-1, self.columns),
            each=each,
            no_reserve=np.array([int(one.no_reserve) for one in kept] or [0], np.int64),
            used=np.zeros((len(number) + 1, self.columns), np.int64),
            place=place,
            on_node=np.zeros((len(by_nodes), nodes), np.int64),
            wanted=np.zeros(self.columns, np.int64),
        )


def _numbers(bounds: Mapping[str, Any], form: str, site: Site) -> dict[int, int]:
    """Column of counts -> most, of the limits whose names have this form."""
    counts = {form.format("jobs"): t.USED_JOBS, form.format("submit"): t.USED_SUBMITTED}
    found = {column: bounds[name] for name, column in counts.items() if name in bounds}
    for tres, count in bounds.get(form.format("tres"), {}).items() if form != "max_{}" else ():
        if tres in COLUMNS:
            found[COLUMNS[tres]] = count
        elif tres.startswith("gpu:"):
            found[t.USED_KINDS + site.gpu_kinds.index(tres.partition(":")[2])] = count
    return found


def over(kept: Kept, shape: Ints, limit_s: int) -> str:
    """Why a job of this shape, limit and class could never run; "" where it could."""
    if kept.max_s is not None and limit_s > kept.max_s:
        return f"a job may ask for {kept.max_s:g} s at most there, not {limit_s}, by the limits of QOS and associations"
    nodes, cores = int(shape[t.MIN_NODES]), int(shape[t.MIN_CORES])
    gpus = nodes * max(int(shape[t.GPUS_NODE]), 0) + int(shape[t.TASKS]) * max(int(shape[t.GPUS_TASK]), 0)
    memory = max(int(shape[t.MEMORY_CORE]), 0) * cores or max(int(shape[t.MEMORY_NODE]), 0) * nodes
    wanted = {
        t.USED_JOBS: 1,
        t.USED_SUBMITTED: 1,
        t.USED_NODES: nodes,
        t.USED_CPUS: cores,
        t.USED_MEMORY: memory,
        t.USED_GPUS: gpus,
    }
    if shape[t.GPU_KIND] >= 0:
        wanted[t.USED_KINDS + int(shape[t.GPU_KIND])] = gpus
    for column, (most, where) in kept.alone.items():
        if wanted.get(column, 0) > most:
            return (
                f"{where} allows {most} {SAID.get(column, 'GPUs of a kind' if column > t.USED_GPUS else 'jobs')}, "
                f"not {wanted[column]}"
            )
    return ""
