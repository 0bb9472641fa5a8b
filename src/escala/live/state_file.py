"""What a desk and its policies remember, as a file: written whole or not at all, and read by the same policies
alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.live.carried import Carried
from escala.platform import Platform
from escala.reading import guarded, read_json
from escala.writing import write_whole

KIND = "desk of escala.live"
FORMAT = 2
SUM = "sha256"
MEND = "mend the file"  # what else is said of JSON that is none


MODE = 0o640
"""Of the file: it names jobs, and may name users."""


def told_state(name: str, platform: Platform, carried: Carried, policies: Mapping[str, Any]) -> dict[str, Any]:
    """What is remembered, as plain data. name: of the pair. policies: objects that decide, by what they decide."""
    states = {who: policy.state() for who, policy in policies.items() if hasattr(policy, "state")}
    return {**whose(name, platform), "carried": carried.told(), "states": states}


def whose(name: str, platform: Platform) -> dict[str, Any]:
    """Of which policies on which machine a state is."""
    return {"kind": KIND, "format": FORMAT, "policies": name, "nodes": platform.n_nodes, "machine": _machine(platform)}


def _machine(platform: Platform) -> str:
    """A sum of the cores, the further resources and the power of all nodes."""
    profiles = [
        sorted((name, value) for name, value in one.spec().items() if name != "source") for one in platform.profiles
    ]
    found = hashlib.sha256(json.dumps([profiles, sorted(platform.resources)]).encode())
    for column in (
        platform.cores,
        platform.profile_of,
        *(platform.resources[kind] for kind in sorted(platform.resources)),
    ):
        found.update(column.astype("<i8").tobytes())  # at every save: no text of many nodes is made
    return found.hexdigest()[:16]


def write_state(path: Any, name: str, told: Mapping[str, Any], note: Any = None) -> None:
    """note: of whoever saves, plain data. A sum of it all stands at its end."""
    try:
        text = json.dumps({**told} if note is None else {**told, "note": note})
    except (TypeError, ValueError) as error:
        raise EscalaError(
            f"{name}: state() gives what JSON does not hold ({error}): return plain numbers, texts, lists and dicts"
        ) from None
    write_whole(path, f'{text[:-1]}, "{SUM}": "{_sum(text)}"}}\n', MODE)


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_state(told: Any, name: str, platform: Platform) -> None:
    """EscalaError where it is not of these policies on this platform."""
    if not isinstance(told, dict) or told.get("kind") != KIND or told.get("format") != FORMAT:
        raise EscalaError(f"not the state of a desk of format {FORMAT}: begin without the file")
    for what, here in (("policies", name), ("nodes", platform.n_nodes)):
        if told.get(what) != here:
            raise EscalaError(
                f"{what} {quoted(told.get(what))}, this desk has {quoted(here)}: give its own file, or begin without"
            )
    if told.get("machine", here := _machine(platform)) != here:  # older files do not say
        raise EscalaError(
            "of nodes with other cores, resources or power than those of this desk: give its own file, or begin without"
        )


def take_state(told: Any, name: str, platform: Platform, policies: Mapping[str, Any]) -> Carried:
    """What was carried; the policies are brought to where they were."""
    check_state(told, name, platform)
    carried = Carried.read(told.get("carried"))
    states = told.get("states")
    for who, policy in policies.items():
        if hasattr(policy, "restore"):
            if not isinstance(states, dict) or who not in states:
                raise EscalaError(f"no state of the {who} policy: begin without the file")
            policy.restore(states[who])
    return carried


@contextmanager
def reading_state(path: Any) -> Iterator[Any]:
    """What such a file holds, its sum checked; what is wrong with it is told with its name."""
    with guarded(path, "the state of a desk"):
        try:
            told = read_json(Path(path))
        except EscalaError as error:
            raise EscalaError(
                f"{str(error).removesuffix(MEND)}remove it, and begin anew: what the policies remember is lost"
            ) from None
        if isinstance(told, dict) and told.get("format") == FORMAT and told.pop(SUM, None) != _sum(json.dumps(told)):
            raise EscalaError("not as it was written (its sum is another): begin without the file")
        yield told
