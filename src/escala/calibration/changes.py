"""Limits of a site, changed for a what-if: of partitions, QOS and accounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from escala.errors import EscalaError, nearest, quoted
from escala.platform import Site
from escala.platform.limits import ASSOCIATION, PREEMPT, PREEMPTION, PRIORITY, QOS, Bounds, bounds_of
from escala.platform.site_entries import seconds_of, whole

OFF = "none"


class Change(NamedTuple):
    """One world: its name, and the site. by: change of the number of nodes of the partition, 0 for the others."""

    name: str
    site: Site
    by: int = 0
    partition: str = ""


def limit_changes(site: Site, text: str) -> list[Change]:
    """The worlds of `PARTITION=TIME,TIME`, its longest run time, or of `ACCOUNT[/USER]:LIMIT=VALUE,VALUE`. Jobs that
    can never run then are refused, and counted."""
    if ":" in text.partition("=")[0]:
        return account_changes(site, text)
    name, equals, wanted = text.partition("=")
    if not equals or not wanted:
        raise EscalaError(f"limit {quoted(text)}: write PARTITION=TIME, such as batch=12:00:00, or ACCOUNT:LIMIT=VALUE")
    part = site.partition(name)
    found = []
    for one in wanted.split(","):
        most = seconds_of(one, f"limit {quoted(text)}")
        usual = part.default_s if most is None or part.default_s is None else min(part.default_s, most)
        changed = replace(part, max_s=most, default_s=most if part.default_s is None else usual)
        others = tuple(changed if entry.name == name else entry for entry in site.partitions)
        found.append(Change(f"{name} at most {one}", replace(site, partitions=others)))
    return found


def qos_changes(site: Site, text: str) -> list[Change]:
    """The worlds of `QOS:LIMIT=VALUE,VALUE`, such as `normal:max_jobs_per_user=5,10,none`; also of its priority."""
    name, key, values = _parts(text, "qos", "QOS:LIMIT=VALUE, such as normal:max_jobs_per_user=5,10,none")
    known = {**dict.fromkeys(site.qos, 0), **site.qos_limits}
    if known and name not in known:
        raise EscalaError(
            f"qos {quoted(text)}: site {quoted(site.name)} has no QOS {quoted(name)}: it has {', '.join(known)}"
        )
    found = []
    for one in values:
        if key == PRIORITY:
            changed = replace(site, qos={**site.qos, name: whole(one, f"qos {quoted(text)}")})
        else:
            bounds = _changed(site.qos_limits.get(name, {}), key, one, QOS, f"qos {quoted(text)}")
            changed = replace(site, qos={name: 0, **site.qos}, qos_limits={**site.qos_limits, name: bounds})
        found.append(Change(f"{name}: {key} {one}", changed))
    return found


def account_changes(site: Site, text: str) -> list[Change]:
    """The worlds of `ACCOUNT:LIMIT=VALUE` and `ACCOUNT/USER:LIMIT=VALUE`; account root is above all."""
    name, key, values = _parts(
        text, "limit", "ACCOUNT:LIMIT=VALUE or ACCOUNT/USER:LIMIT=VALUE, such as root:max_jobs=10,20"
    )
    account, _, user = name.partition("/")
    if account != "root" and account not in site.accounts:
        known = ", ".join(("root", *site.accounts))
        raise EscalaError(
            f"limit {quoted(text)}: site {quoted(site.name)} has no account {quoted(account)}: it has {known}"
        )
    told: dict[str, Any] = site.accounts.get(account, {"parent": "root", "shares": 1, "users": {}})
    found = []
    for one in values:
        if user:
            own: Mapping[str, Bounds] = told.get("user_limits", {})
            mine = _changed(own.get(user, {}), key, one, ASSOCIATION, f"limit {quoted(text)}")
            changed = {**told, "users": {user: 1, **told["users"]}, "user_limits": {**own, user: mine}}
        else:
            changed = {
                **told,
                "limits": _changed(told.get("limits", {}), key, one, ASSOCIATION, f"limit {quoted(text)}"),
            }
        found.append(Change(f"{name}: {key} {one}", replace(site, accounts={**site.accounts, account: changed})))
    return found


def _parts(text: str, what: str, form: str) -> tuple[str, str, list[str]]:
    """(whose, which limit, its values)."""
    head, equals, values = text.partition("=")
    name, _, key = head.rpartition(":")
    if not equals or not name or not key or not values:
        raise EscalaError(f"{what} {quoted(text)}: write {form}")
    return name.strip(), key.strip(), [one.strip() for one in values.split(",")]


def _changed(bounds: Bounds, key: str, value: str, known: Mapping[str, Any], where: str) -> Bounds:
    """The limits with another value of one; `none` takes it away. A limit of TRES is called `grp_tres.cpu`."""
    name, dot, tres = key.partition(".")
    every = (*known, *(PREEMPTION if known is QOS else ()))
    if name not in every or bool(dot) != ("tres" in name):
        names = [f"{one}.cpu" if "tres" in one else one for one in every]
        raise EscalaError(f"{where}: unknown limit {quoted(key)}; {nearest(key, names)}known: {', '.join(names)}")
    if value == OFF and dot:
        return {**bounds, name: {kind: n for kind, n in bounds.get(name, {}).items() if kind != tres}}
    if value == OFF:
        return {one: n for one, n in bounds.items() if one != name}
    found = bounds_of(
        {name: {tres: value} if dot else value.replace("+", ",") if name == PREEMPT else value}, known, where
    )
    return {**bounds, name: {**bounds.get(name, {}), **found[name]}} if dot else {**bounds, **found}
