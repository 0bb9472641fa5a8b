"""Users and accounts of a run as the rows of fair share: those that the site names, and those that only the jobs
name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escala.kernel.slurm import tables as t
from escala.platform.accounts import ROOT
from escala.platform.site import Site
from escala.slurm.columns import Columns
from escala.slurm.settings import Settings
from escala.slurm.tres import billing_of, usage_factors
from escala.workload import Workload

Key = tuple[str, str | None]


class Tree:
    """Rows of accounts and users, parents before children."""

    def __init__(self, site: Site) -> None:
        self.row: dict[Key, int] = {(ROOT, None): 0}
        self.parent, self.shares, self.user, self.depth = [-1], [1.0], [0], [0]
        self.site = site
        self.homes: dict[str, str] = {}  # the first account that names a user
        for name, told in site.accounts.items():
            self.account(name)
            for user in told["users"]:
                self.homes.setdefault(user, name)
                self.of(name, user)

    def _add(self, key: Key, parent: int, shares: float) -> int:
        self.row[key] = len(self.parent)
        self.parent.append(parent)
        self.shares.append(shares)
        self.user.append(int(key[1] is not None))
        self.depth.append(self.depth[parent] + 1)
        return self.row[key]

    def account(self, name: str) -> int:
        """The row of an account; one that the site does not name goes under the root with a share of 1."""
        if (name, None) not in self.row:
            told = self.site.accounts.get(name, {"parent": ROOT, "shares": 1})
            self._add((name, None), self.account(told["parent"]), told["shares"])
        return self.row[name, None]

    def home(self, account: str | None, user: str | None) -> str:
        """The account in which a job counts."""
        return (
            account
            if account in self.site.accounts and account is not None
            else self.homes.get(user or "", account or ROOT)
        )

    def of(self, account: str | None, user: str | None) -> int:
        """The row of a user in an account; without one, or in one that the site does not name, in the first that names
        the user; else right under the root, or in the job's account there."""
        name = self.home(account, user)
        key = (name, user or "")
        if key not in self.row:
            shares = self.site.accounts.get(name, {"users": {}})["users"].get(user, 1)
            self._add(key, self.account(name), shares)
        return self.row[key]


def shares_of(workload: Workload, site: Site, settings: Settings, kinds: int) -> t.Shares:
    """The rows, with the usage that the site has; the root alone where fair share does not count. kinds: of GPUs."""
    tree = Tree(site)
    of_job = np.zeros(len(workload), np.int64)
    if settings.fair_share:
        pairs = zip(Columns(workload.jobs).texts("account"), workload.jobs["user"].to_list(), strict=True)
        of_job[:] = [tree.of(account, user) for account, user in pairs]
    parent, shares, user = np.array(tree.parent, np.int64), np.array(tree.shares), np.array(tree.user, np.int64)
    among = np.bincount(parent[1:], shares[1:], minlength=len(parent)) if len(parent) > 1 else np.zeros(1)
    leaf = np.flatnonzero(user)
    billed, bill = billing_of(site, settings, kinds)

    used = [site.accounts.get(name, {}).get("usage", {}).get(user, 0.0) for name, user in tree.row]

    def zeros() -> NDArray[np.float64]:
        return np.zeros(len(parent))

    return t.Shares(
        parent=parent,
        user=user,
        depth=np.array(tree.depth, np.int64),
        shares=shares,
        among=np.where(parent >= 0, among[np.maximum(parent, 0)], 1.0),
        usage=np.array(used, float),
        level=zeros(),
        factor=zeros(),
        effective=zeros(),
        leaf=leaf,
        path=np.zeros((len(leaf), max(tree.depth))),
        row=np.zeros((len(leaf), max(tree.depth)), np.int64),
        order=np.zeros(len(leaf), np.int64),
        of_job=of_job,
        billed=billed,
        bill=bill,
        usage_factor=usage_factors(workload, site),
    )
