"""Weights of trackable resources, as TRESBillingWeights and PriorityWeightTRES give them:
`CPU=1.0,Mem=0.25G,GRES/gpu=2.0`.

A suffix after a weight says the unit that it is for: `Mem=0.25G` is 0.25 for each GB, so 0.25 / 1024 for each MB. It is
read so for every resource, counted in ones where it has no unit (https://slurm.schedmd.com/slurm.conf.html,
TRESBillingWeights).
"""

from __future__ import annotations

import math
import re

from escala.errors import EscalaError, quoted
from escala.platform.limits import tres_name

_WEIGHT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([kmgtp]?)b?", re.IGNORECASE)
_STEPS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def weights_of(text: str, where: str, unread: list[str] | None = None) -> dict[str, float]:
    """TRES (cpu, node, mem in MB, gpu, gpu:KIND) -> weight. Those of which nothing is known (licences, burst buffers,
    energy) into `unread`, where it is given. EscalaError for a weight that is none."""
    found: dict[str, float] = {}
    for part in (one.strip() for one in text.split(",")):
        if not part or part.lower() == "(null)":
            continue
        name, equals, value = part.partition("=")
        match = _WEIGHT.fullmatch(value.strip())
        if not equals or match is None or not math.isfinite(float(match[1])):
            raise EscalaError(
                f"{where}: {quoted(part)} is no weight; write NAME=NUMBER, as in CPU=1.0,Mem=0.25G,GRES/gpu=2.0"
            )
        try:
            plain = tres_name(name, where)
        except EscalaError:
            if unread is None:
                raise
            unread.append(f"{where}: {part}")
            continue
        steps = _STEPS[match[2].lower()]
        per = max(steps - _STEPS["m"], 0) if plain == "mem" else steps
        found[plain] = float(match[1]) / 1024.0**per
    return found
