"""The account tree of a site: who has how many shares, from a site.toml or from what `sacctmgr show assoc -P` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.platform.site_entries import parsable, whole

ROOT = "root"
ENTRIES = ("parent", "shares", "users")
Accounts = dict[str, dict[str, Any]]
"""Account -> its parent ("root" is above all), shares, and users with their shares: {"parent": str, "shares": int, "users": {str: int}}."""


def accounts_of(table: Any, where: str) -> Accounts:
    """The tree of `[accounts]`: NAME = {parent = "...", shares = 1, users = {NAME = 1}}, each part optional. EscalaError for a bad one."""
    if not isinstance(table, Mapping):
        raise EscalaError(f"{where} must be a table of accounts, not {quoted(table)}")
    found: Accounts = {}
    for name, told in table.items():
        here = f"{where}, account {quoted(name)}"
        if not isinstance(told, Mapping):
            raise EscalaError(f"{here}: write a table, as in {name} = {{shares = 10}}")
        for key in told:
            if key not in ENTRIES:
                raise EscalaError(f"{here}: unknown entry `{key}`; {nearest(key, ENTRIES)}known: {', '.join(ENTRIES)}")
        users = told.get("users", {})
        users = users if isinstance(users, Mapping) else dict.fromkeys(users if isinstance(users, list) else [users], 1)
        found[name] = {
            "parent": str(told.get("parent", ROOT)),
            "shares": whole(told.get("shares", 1), f"{here}, shares"),
            "users": {str(user): whole(shares, f"{here}, user {quoted(user)}") for user, shares in users.items()},
        }
    check_tree(found, where)
    return found


def check_tree(accounts: Accounts, where: str) -> None:
    """EscalaError for a parent that is no account, and for accounts above each other in a circle."""
    if ROOT in accounts and accounts[ROOT]["parent"] != ROOT:
        raise EscalaError(f"{where}: account root has a parent; it is above all others, leave the parent out")
    for name, told in accounts.items():
        parent = told["parent"]
        if parent != ROOT and parent not in accounts:
            raise EscalaError(f"{where}: account {quoted(name)} is under {quoted(parent)}, which is no account: add it, or mend the parent")
        above = name
        for _ in range(len(accounts) + 1):
            if above == ROOT:
                break
            above = accounts[above]["parent"] if above in accounts else ROOT
        else:
            raise EscalaError(f"{where}: account {quoted(name)} is above itself by way of others: break the circle of parents")


def read_associations(text: str, where: str) -> Accounts:
    """The tree that `sacctmgr show assoc -P` prints: columns Account, User, Share, and the parents in ParentName or by `tree`'s blanks.

    EscalaError for two clusters in one file, and for shares that are no number (Fairshare=parent).
    """
    rows = parsable(text, where)
    if len({row.get("cluster") for row in rows}) > 1:
        raise EscalaError(f"{where}: associations of several clusters: export one, with `sacctmgr show assoc cluster=NAME tree -P`")
    found: Accounts = {}
    above: list[tuple[int, str]] = []
    for row in rows:
        name, user = row["account"].strip(), row["user"].strip()
        shares = whole(row.get("share", row.get("fairshare", "")).strip() or 1, f"{where}, share of {quoted(user or name)}")
        if user:
            found.setdefault(name, {"parent": ROOT, "shares": 1, "users": {}})["users"][user] = shares
            continue
        deep = len(row["account"]) - len(row["account"].lstrip(" "))
        while above and above[-1][0] >= deep:
            above.pop()
        parent = row.get("par name", row.get("parentname", above[-1][1] if above else "")).strip()
        above.append((deep, name))
        found.setdefault(name, {"users": {}}).update(parent=parent or ROOT, shares=shares)
    check_tree(found, where)
    return found
