"""What policies know of the future: the one place that says so.

A policy is *clairvoyant* if it is told what no scheduler of a real machine can know: `arrivals` (when jobs to come will
be submitted, and their cores) or `runtimes` (how long jobs will really run). What a run knows is told in words: "",
"arrivals", "runtimes" or "arrivals and runtimes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

ARRIVALS, RUNTIMES = "arrivals", "runtimes"
RUNTIME = "runtime"
"""The estimate (`escala.estimates`) that is the future."""

SHUTDOWNS = {"arrivals-known": ARRIVALS, "oracle": RUNTIMES}
"""Name of a shutdown policy, without what stands behind its colon -> what it knows; all others are honest."""
IN_NAMES = tuple(f"{option}={RUNTIME}" for option in ("estimate", "order_estimate"))
"""Parts of a scheduler's name that say so; all others are honest."""


Given = TypeVar("Given")


def plain(given: Given) -> Given:
    """A name as plain text, whatever class its text is of; all else as it is. What is run and how it is marked both go
    by this one text."""
    return str.__str__(given) if isinstance(given, str) else given  # type: ignore[return-value]


@dataclass(frozen=True)
class Said:
    """What a policy object says of itself, asked once: what it is shown and how it is marked both go by this one
    answer."""

    clairvoyant: bool
    beneath: Any  # name of the kernel's shutdown policy that works beneath it; None: none


def said_by(policy: Any) -> Said:
    """Ask a policy object. What it says later, in the run or after it, is another answer: ask once, and keep this."""
    return Said(clairvoyant(policy), plain(getattr(policy, "beneath", None)))


def clairvoyant(policy: Any) -> bool:
    """Does this object say that it knows the future?"""
    return bool(getattr(policy, "clairvoyant", False))


def known_to(scheduler: Any, shutdown: Any, *estimates: Any) -> str:
    """What a scheduler, a shutdown policy (names, objects or what these said) and the options `estimate` and
    `order_estimate` know together."""
    found = {*_known(scheduler, {}), *_known(shutdown, SHUTDOWNS)}
    found |= {RUNTIMES for estimate in map(plain, estimates) if estimate == RUNTIME or clairvoyant(estimate)}
    return " and ".join(word for word in (ARRIVALS, RUNTIMES) if word in found)


def known_by_name(name: str) -> str:
    """What a pair ("scheduler + shutdown") or a shutdown policy of this name knows: for tables that keep names
    alone."""
    scheduler, _, shutdown = name.rpartition(" + ")
    return known_to(scheduler, shutdown)


def in_words(name: str) -> str:
    """A policy's name in a sentence: "oracle (clairvoyant: knows runtimes)"; an honest one's alone."""
    return f"{name} (clairvoyant: knows {what})" if (what := known_by_name(name)) else name


def known_in(manifest: Mapping[str, Any]) -> str:
    """What the policies of a run's manifest knew; those of earlier versions do not say so themselves."""
    if "knows" in manifest:
        return str(manifest["knows"])
    return known_to(manifest.get("scheduler"), manifest.get("shutdown"), manifest.get("options", {}).get("estimate"))


def _known(policy: Any, names: Mapping[str, str]) -> list[str]:
    if isinstance(policy := plain(policy), str):
        told = [RUNTIMES for part in policy.split(":") if part in IN_NAMES]
        return [names[kind], *told] if (kind := policy.partition(":")[0]) in names else told
    below = getattr(policy, "beneath", None)  # a shutdown policy's own, by name
    return [RUNTIMES] * clairvoyant(policy) + ([] if below is None else _known(below, names))
