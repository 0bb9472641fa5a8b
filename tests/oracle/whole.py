"""Jobs that have nodes of several sizes to themselves, in a world that was drawn without."""

from __future__ import annotations

import random

from tests.oracle.nodes import is_alone
from tests.oracle.oracle import make_nodes
from tests.oracle.partitions import is_possible
from tests.oracle.worlds import Case


def draw_whole(rng: random.Random, case: Case) -> bool:
    """Some jobs ask for whole nodes. Is there one, and are there nodes of several sizes on which it may lie?"""
    share, platform = rng.choice((0.1, 0.3, 0.7)), case.platform
    for job in case.jobs:
        job.setdefault("exclusive", None)
        asked = {**job, "exclusive": True}
        dropped = case.options.get("oversized") == "drop" and not is_possible(job, platform, "never")
        if rng.random() < share and (dropped or is_possible(asked, platform, case.options["shutdown"])):
            job["exclusive"] = True
    nodes = make_nodes(platform, False)
    return any(is_alone(job, nodes, platform.get("partitions", ())) for job in case.jobs)
