"""What policies know of the future: the one place that says so.

A policy is *clairvoyant* if it is told what no scheduler of a real machine can know: `arrivals` (when jobs to come will be submitted, and
their cores) or `runtimes` (how long jobs will really run). What a run knows is told in words: "", "arrivals", "runtimes" or
"arrivals and runtimes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ARRIVALS, RUNTIMES = "arrivals", "runtimes"

SHUTDOWNS = {"arrivals-known": ARRIVALS, "oracle": RUNTIMES}
"""Name of a shutdown policy, without what stands behind its colon -> what it knows; all others are honest, and so is every scheduler."""


def clairvoyant(policy: Any) -> bool:
    """Does this object say that it knows the future?"""
    return bool(getattr(policy, "clairvoyant", False))


def known_to(scheduler: Any, shutdown: Any, estimate: str = "walltime") -> str:
    """What a scheduler, a shutdown policy (names or objects) and the option `estimate` know together."""
    found = {*_known(scheduler, {}), *_known(shutdown, SHUTDOWNS), *([RUNTIMES] if estimate == "runtime" else [])}
    return " and ".join(word for word in (ARRIVALS, RUNTIMES) if word in found)


def known_by_name(name: str) -> str:
    """What a pair ("scheduler + shutdown") or a shutdown policy of this name knows: for tables that keep names alone."""
    return known_to("", name.rpartition(" + ")[2])


def in_words(name: str) -> str:
    """A policy's name in a sentence: "oracle (clairvoyant: knows runtimes)"; an honest one's alone."""
    return f"{name} (clairvoyant: knows {what})" if (what := known_by_name(name)) else name


def known_in(manifest: Mapping[str, Any]) -> str:
    """What the policies of a run's manifest knew; those of earlier versions do not say so themselves."""
    if "knows" in manifest:
        return str(manifest["knows"])
    return known_to(manifest.get("scheduler"), manifest.get("shutdown"), manifest.get("options", {}).get("estimate", "walltime"))


def _known(policy: Any, names: Mapping[str, str]) -> list[str]:
    if isinstance(policy, str):
        return [names[kind]] if (kind := policy.partition(":")[0]) in names else []
    below = getattr(policy, "beneath", None)  # a shutdown policy's own, by name
    return [RUNTIMES] * clairvoyant(policy) + ([] if below is None else _known(below, names))
