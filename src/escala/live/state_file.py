"""What a desk and its policies remember, as a file: written whole or not at all, and read by the same policies alone."""

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


def told_state(name: str, platform: Platform, carried: Carried, policies: Mapping[str, Any]) -> dict[str, Any]:
    """What is remembered, as plain data. name: of the pair. policies: objects that decide, by what they decide."""
    states = {who: policy.state() for who, policy in policies.items() if hasattr(policy, "state")}
    return {"kind": KIND, "format": FORMAT, "policies": name, "nodes": platform.n_nodes, "carried": carried.told(), "states": states}


def write_state(path: Any, name: str, told: Mapping[str, Any], note: Any = None) -> None:
    """note: of whoever saves, plain data. A sum of it all stands at its end."""
    try:
        text = json.dumps({**told} if note is None else {**told, "note": note})
    except (TypeError, ValueError) as error:
        raise EscalaError(
            f"{name}: state() gives what JSON does not hold ({error}): return plain numbers, texts, lists and dicts"
        ) from None
    write_whole(path, f'{text[:-1]}, "{SUM}": "{_sum(text)}"}}\n')


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_state(told: Any, name: str, platform: Platform) -> None:
    """EscalaError where it is not of these policies on this platform."""
    if not isinstance(told, dict) or told.get("kind") != KIND or told.get("format") != FORMAT:
        raise EscalaError(f"not the state of a desk of format {FORMAT}: begin without the file")
    for what, here in (("policies", name), ("nodes", platform.n_nodes)):
        if told.get(what) != here:
            raise EscalaError(f"{what} {quoted(told.get(what))}, this desk has {quoted(here)}: give its own file, or begin without")


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
        told = read_json(Path(path))
        if isinstance(told, dict) and told.get("format") == FORMAT and told.pop(SUM, None) != _sum(json.dumps(told)):
            raise EscalaError("not as it was written (its sum is another): begin without the file")
        yield told
