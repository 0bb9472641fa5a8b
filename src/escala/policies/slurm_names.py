"""Names of schedulers with an order of the queue under Slurm's rules:
`slurm:queue=SCORE[:guard=TIME][:order_estimate=ESTIMATE][:every=TIME][:KEY=VALUE...]`.

A path (`score:FILE`, `model:DIR`, `policy:DIR`) may hold colons: it ends where the next key of the name begins. An
order that stays as it is, without any of the other parts, is a setting like others (`escala.slurm.in_name`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from escala.errors import EscalaError, quoted
from escala.policies.score_files import PREFIX as SCORE
from escala.policies.tuned import PREFIX as TUNED
from escala.prediction.folder import PREFIX as MODEL
from escala.scores import FIXED
from escala.slurm.named import FCFS, NAME, is_slurm

QUEUE, EVERY, ESTIMATE = "queue", "every", "order_estimate"
OWN = (QUEUE, "guard", ESTIMATE, EVERY)
PATHS = (SCORE, MODEL, TUNED)
OF_PATH = rf"(?:{QUEUE}|{ESTIMATE})=(?:{'|'.join(PATHS)}).*?(?=:(?:[a-z_]+=|(?:{{flags}})(?::|$))|$)"


def split_slurm(name: str) -> tuple[str, dict[str, str]]:
    """(the name without its order, the parts of the order); where the order is a setting, or there is none, the whole
    name and {}. EscalaError for parts without a queue, and for one that is given twice."""
    rest, found = list[str](), dict[str, str]()
    for part in _parts(name):
        key, equals, value = part.partition("=")
        if key == "estimate" and equals:
            raise EscalaError(
                f"scheduler {quoted(name)}: plans go by limits under Slurm's rules: {ESTIMATE}={value} is of the order "
                "of the queue"
            )
        if not equals or key not in OWN:
            rest.append(part)
            continue
        if key in found:
            raise EscalaError(f"scheduler {quoted(name)}: {key}= is given twice: give it once")
        found[key] = value
    if not found or (set(found) == {QUEUE} and found[QUEUE] in (FCFS, *FIXED)):
        return name, {}
    if QUEUE not in found:
        raise EscalaError(
            f"scheduler {quoted(name)}: {next(iter(found))}= is of an order of the queue: name it too, "
            f"{NAME}:queue=sjf:{':'.join(f'{key}={value}' for key, value in found.items())}"
        )
    if found[QUEUE] == FCFS:
        more = " and ".join(f"{key}=" for key in found if key != QUEUE)
        raise EscalaError(f"scheduler {quoted(name)}: {FCFS} stays as it is: leave {more} out")
    return ":".join(rest), found


def _parts(name: str) -> list[str]:
    """What stands between the colons of a name, paths whole."""
    if not any(f"={path}" in name for path in PATHS):
        return name.split(":")
    from escala.slurm.settings import FLAGS

    found: list[str] = re.findall(rf"(?:^|:)({OF_PATH.format(flags='|'.join(FLAGS))}|[^:]*)", name)
    return found


def tuned_of(name: object) -> str:
    """The tuned policy `policy:DIR` that decides under a name, or in whose order Slurm's queue stands; "" for
    others."""
    if is_slurm(name) and isinstance(name, str):
        name = split_slurm(name)[1].get(QUEUE, "")
    return name if isinstance(name, str) and name.startswith(TUNED) else ""


def with_paths(name: str, change: Callable[[str], str]) -> str:
    """Such a name with its paths changed."""
    rest, parts = split_slurm(name)
    for key, value in parts.items():
        of = next((prefix for prefix in PATHS if value.startswith(prefix)), "")
        parts[key] = of + change(value.removeprefix(of)) if of else value
    return ":".join([rest, *(f"{key}={value}" for key, value in parts.items())]) if parts else name


def slurm_within(name: str, folder: Path) -> str:
    """Such a name with its relative paths in this folder."""
    return with_paths(name, lambda path: os.path.join(folder, path) if path else path)
