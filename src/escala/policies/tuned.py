"""Policies in folders, as `escala tune` writes them: `policy:DIR` is the scheduler that `policy.toml` in this folder
names."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.foresight import SHUTDOWNS
from escala.policies.queues import score_digests, within_folder
from escala.reading import guarded, read_toml

PREFIX = "policy:"
POLICY_FILE = "policy.toml"
FORMAT = 1
RATIO, FIGURE = "ratio_to_easy", "bounded_slowdown"
KEYS = ("guard", "estimate", "order_estimate")
"""What stands behind the formula in a scheduler's name, each a line of `policy.toml`."""
PART = re.compile(rf":({'|'.join(KEYS)})=")


def parts_of(name: str) -> dict[str, str]:
    """The lines of `policy.toml` that say a scheduler's name: its formula, and those of `KEYS` that it has."""
    formula, *rest = PART.split(name)
    return {"formula": formula, **dict(zip(rest[::2], rest[1::2], strict=True))}


def rule_in(name: str) -> str:
    """The scheduler's name that stands in the folder of `policy:DIR`; EscalaError where there is none, or one of
    another version."""
    path = Path(name.removeprefix(PREFIX)) / POLICY_FILE
    with guarded(path, "a tuned policy"):
        told = _read(path)
        if told.get("format") != FORMAT:
            raise EscalaError(
                f"{path}: format {quoted(told.get('format'))} is not {FORMAT}: tune it again with this version of "
                "Escala"
            )
        formula, given = told.get("formula"), {key: told.get(key, "") for key in KEYS}
        if not isinstance(formula, str) or not formula:
            raise EscalaError(
                f'{path}: a formula is needed as a text, such as formula = "easy:queue=saf" beside guard = "24h"'
            )
        if bad := [key for key, value in given.items() if not isinstance(value, str)]:
            raise EscalaError(f'{path}: {bad[0]} = {quoted(given[bad[0]])}: a text is needed, {bad[0]} = "..."')
        if formula.startswith(PREFIX):
            raise EscalaError(
                f"{path}: formula {quoted(formula)} is a folder: name a scheduler, such as easy:queue=saf"
            )
    return within_folder(formula + "".join(f":{key}={value}" for key, value in given.items() if value), path.parent)


def shutdown_in(name: str) -> str:
    """The shutdown policy's name that stands in the folder of `policy:DIR`; EscalaError where there is none, or a
    clairvoyant one."""
    path = Path(name.removeprefix(PREFIX)) / POLICY_FILE
    with guarded(path, "a tuned policy"):
        told = _read(path)
        found = told.get("shutdown")
        if not isinstance(found, str) or not found:
            raise EscalaError(
                f'{path}: names no shutdown policy: add shutdown = "timeout:300", or take one that escala frontier '
                "--after wrote"
            )
        if found.startswith(PREFIX) or found.partition(":")[0] in SHUTDOWNS:
            raise EscalaError(
                f"{path}: shutdown = {quoted(found)}: name a policy that a real machine can have, such as timeout:300"
            )
    return found


def promise_in(name: str) -> tuple[float, float, float] | None:
    """Bounded slowdown over EASY's, with its interval, that the folder of `policy:DIR` says of the weeks it was judged
    by; of several logs the highest. None for other names, and for a folder that says nothing of it."""
    if not name.startswith(PREFIX):
        return None
    path = Path(name.removeprefix(PREFIX)) / POLICY_FILE
    with guarded(path, "a tuned policy"):
        told = _read(path)
        logs = told["log"] if isinstance(told.get("log"), list) else [told]
        found = [one[RATIO][FIGURE] for one in logs if isinstance(one, dict) and FIGURE in one.get(RATIO, ())]
        for values in found:
            if not (
                isinstance(values, list)
                and len(values) == 3
                and all(isinstance(value, int | float) for value in values)
            ):
                raise EscalaError(
                    f"{path}: {RATIO}.{FIGURE} = {quoted(values)}: three numbers are needed, a ratio and its interval"
                )
    return max((float(value), float(low), float(high)) for value, low, high in found) if found else None


def digests_in(name: str) -> dict[str, str]:
    """SHA-256 of the files that say all of a tuned policy `policy:DIR`, or of a scheduler with score files, by path; {}
    for other names."""
    if not name.startswith(PREFIX):
        return score_digests(name)
    path = Path(name.removeprefix(PREFIX)) / POLICY_FILE
    return (
        {str(path): hashlib.sha256(path.read_bytes()).hexdigest(), **score_digests(rule_in(name))}
        if path.is_file()
        else {}
    )


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise EscalaError(f"{path}: no such file: policy:DIR is a folder that escala tune wrote")
    return read_toml(path)
