"""The account tree of a site: who has how many shares and which limits, from a site.toml or from what `sacctmgr show
assoc -P` and `sshare -a -P` print."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from escala.errors import EscalaError, nearest, quoted
from escala.platform.limits import ASSOCIATION, Bounds, bounds_of, bounds_of_row
from escala.platform.site_entries import parsable, whole

ROOT = "root"
MOST_USED = 1e18
DEEPEST = 200
"""Accounts above one another."""
ENTRIES = ("parent", "shares", "users")
Accounts = dict[str, dict[str, Any]]
"""Account -> its parent ("root" is above all), shares, and users with their shares: {"parent": str, "shares": int,
"users": {str: int}}; with limits (`escala.platform.limits`) also "limits" and "user_limits", and with use from before
"usage", CPU seconds as decayed by then, of each user that has some."""


def accounts_of(table: Any, where: str) -> Accounts:
    """The tree of `[accounts]`: NAME = {parent = "...", shares = 1, users = {NAME = 1}}, each part optional, with
    limits of the account; a user with limits of its own is a table too, {shares = 1, max_jobs = 10}. EscalaError for a
    bad one."""
    if not isinstance(table, Mapping):
        raise EscalaError(f"{where} must be a table of accounts, not {quoted(table)}")
    found: Accounts = {}
    for name, told in table.items():
        here = f"{where}, account {quoted(name)}"
        if not isinstance(told, Mapping):
            raise EscalaError(f"{here}: write a table, as in {name} = {{shares = 10}}")
        for key in told:
            if key not in (*ENTRIES, *ASSOCIATION):
                known = (*ENTRIES, *ASSOCIATION)
                raise EscalaError(f"{here}: unknown entry `{key}`; {nearest(key, known)}known: {', '.join(known)}")
        users = told.get("users", {})
        users = users if isinstance(users, Mapping) else dict.fromkeys(users if isinstance(users, list) else [users], 1)
        own = {str(user): _user(value, f"{here}, user {quoted(user)}") for user, value in users.items()}
        found[name] = {
            "parent": str(told.get("parent", ROOT)),
            "shares": whole(told.get("shares", 1), f"{here}, shares"),
            "users": {user: shares for user, (shares, _, _) in own.items()},
        }
        _use(found[name], {user: used for user, (_, used, _) in own.items()})
        bounds = bounds_of({key: value for key, value in told.items() if key not in ENTRIES}, ASSOCIATION, here)
        _limit(found[name], bounds, {user: limits for user, (_, _, limits) in own.items() if limits})
    check_tree(found, where)
    return found


def _user(value: Any, where: str) -> tuple[int, float, Bounds]:
    """(shares, usage, limits) of a user."""
    told = dict(value) if isinstance(value, Mapping) else {"shares": value}
    shares, used = whole(told.pop("shares", 1), where), _used(told.pop("usage", 0), f"{where}, usage")
    return shares, used, bounds_of(told, ASSOCIATION, where)


def _used(value: Any, where: str) -> float:
    """CPU seconds."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if isinstance(value, bool) or not 0 <= found < MOST_USED:
        raise EscalaError(f"{where}: {quoted(value)} is no number of CPU seconds, 0 or more")
    return found


def _use(account: dict[str, Any], used: Mapping[str, float]) -> None:
    """Put usage in, where there is some."""
    some = {user: value for user, value in used.items() if value > 0}
    account |= {"usage": some} if some else {}


def _limit(account: dict[str, Any], bounds: Bounds, of_users: dict[str, Bounds]) -> None:
    """Put limits in, where there are some."""
    account |= {key: value for key, value in (("limits", bounds), ("user_limits", of_users)) if value}


def check_tree(accounts: Accounts, where: str) -> None:
    """EscalaError for a parent that is no account, and for accounts above each other in a circle."""
    if ROOT in accounts and accounts[ROOT]["parent"] != ROOT:
        raise EscalaError(f"{where}: account root has a parent; it is above all others, leave the parent out")
    for name, told in accounts.items():
        parent = told["parent"]
        if parent != ROOT and parent not in accounts:
            raise EscalaError(
                f"{where}: account {quoted(name)} is under {quoted(parent)}, which is no account: add it, or mend the "
                "parent"
            )
        above = name
        for _ in range(DEEPEST):
            if above == ROOT:
                break
            above = accounts[above]["parent"] if above in accounts else ROOT
        else:
            raise EscalaError(
                f"{where}: account {quoted(name)} is above itself by way of others, or more than {DEEPEST} deep: break "
                "the circle of parents"
            )


def read_associations(text: str, where: str, unread: list[str]) -> Accounts:
    """The tree that `sacctmgr show assoc -P` prints: columns Account, User, Share, and the parents in ParentName or by
    `tree`'s blanks.

    Limits of users that their account or one above it has too, as sacctmgr repeats them, are left to those. What has no
    model goes into `unread`. EscalaError for two clusters in one file, and for shares that are no number
    (Fairshare=parent).
    """
    rows = parsable(text, where)
    if len({row.get("cluster") for row in rows}) > 1:
        raise EscalaError(
            f"{where}: associations of several clusters: export one, with `sacctmgr show assoc cluster=NAME tree -P`"
        )
    return _tree(rows, where, unread)


def with_shares(accounts: Accounts, text: str, where: str) -> Accounts:
    """The tree with what each user has used so far, as `sshare -a -P` prints it: columns Account, User, RawUsage; where
    there is no tree yet, it is that of RawShares and the blanks before Account. EscalaError for numbers that are
    none."""
    rows = [{**row, "account": row["account"].rstrip(), "user": row["user"].strip()} for row in parsable(text, where)]
    found = accounts or _tree([{**row, "share": row.get("rawshares", "")} for row in rows], where, [])
    used: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["user"]:
            here = f"{where}, RawUsage of {quoted(row['user'])}"
            used.setdefault(row["account"].strip(), {})[row["user"]] = _used(row["rawusage"], here)
    for name, some in used.items():
        if name not in found:
            raise EscalaError(f"{where}: account {quoted(name)} is not among the associations: export both anew")
        for user in some:
            found[name]["users"].setdefault(user, 1)
        _use(found[name], some)
    return found


def _tree(rows: list[dict[str, str]], where: str, unread: list[str]) -> Accounts:
    """The accounts of rows with account, user and share, parents by name or by the blanks before the account."""
    found: Accounts = {}
    above: list[tuple[int, str]] = []
    for row in rows:
        name, user = row["account"].strip(), row["user"].strip()
        shares = whole(
            row.get("share", row.get("fairshare", "")).strip() or 1, f"{where}, share of {quoted(user or name)}"
        )
        bounds = bounds_of_row(row, ASSOCIATION, f"{where}, {quoted(user or name)}", unread)
        if user:
            account = found.setdefault(name, {"parent": ROOT, "shares": 1, "users": {}})
            account["users"][user] = shares
            if bounds:
                account.setdefault("user_limits", {})[user] = bounds
            continue
        deep = len(row["account"]) - len(row["account"].lstrip(" "))
        while above and above[-1][0] >= deep:
            above.pop()
        parent = row.get("par name", row.get("parentname", above[-1][1] if above else "")).strip()
        above.append((deep, name))
        found.setdefault(name, {"users": {}}).update(parent=parent or ROOT, shares=shares)
        _limit(found[name], bounds, found[name].get("user_limits", {}))
    check_tree(found, where)
    return _without_repeats(found)


def _without_repeats(found: Accounts) -> Accounts:
    """Without the limits that an account or a user only has from above."""
    above = {name: told["parent"] for name, told in found.items()}
    plain = {}
    for name, told in found.items():
        own = told.get("limits", {})
        users = {user: _unlike(bounds, inherited(found, name)) for user, bounds in told.get("user_limits", {}).items()}
        kept = {key: value for key, value in told.items() if key not in ("limits", "user_limits")}
        _limit(
            kept,
            _unlike(own, inherited(found, above[name])) if name != ROOT else own,
            {user: one for user, one in users.items() if one},
        )
        plain[name] = kept
    return plain


def _unlike(bounds: Bounds, usual: Bounds) -> Bounds:
    return {name: value for name, value in bounds.items() if name not in usual or usual[name] != value}


def inherited(accounts: Mapping[str, Mapping[str, Any]], name: str) -> Bounds:
    """The limits that a user of an account has from it, or from the next account above that has one: all but those of
    groups."""
    found: Bounds = {}
    while True:
        told = accounts.get(name, {"limits": {}, "parent": ROOT})
        for key, value in told.get("limits", {}).items():
            if not key.startswith("grp_"):
                found[key] = value | found[key] if key in found and isinstance(value, dict) else found.get(key, value)
        if name == ROOT:
            return found
        name = told["parent"]
