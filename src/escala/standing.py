"""How a simulation stands between two instants, as plain arrays: what another one goes on from
(`escala.kernel.resume`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from escala.kernel import codes
from escala.kernel.load import JOBS, NODES, PLACED
from escala.kernel.state import World

ENDED = (codes.PENDING, codes.COMPLETED, codes.KILLED)


class Standing(NamedTuple):
    """Times in us. rows: the kernel's rows of the jobs that live; jobs: JOBS of these, numbered from 0, but for what
    the log says of them;
    nodes: NODES; placed: PLACED, what they hold."""

    rows: Any
    jobs: Any
    nodes: Any
    placed: Any


def standing(w: World, since_us: int = 0) -> Standing:
    """Of simulation 0, as seen from a clock whose 0 is `since_us`."""
    run, node = w.run[0], w.node[0]
    rows = np.flatnonzero(~np.isin(run["state"][: int(w.o["n_jobs"][0, 0])], ENDED))
    jobs = np.zeros(len(rows), JOBS)
    jobs["row"] = np.arange(len(rows))
    jobs["state"], jobs["start"] = run["state"][rows], run["start"][rows] - since_us
    jobs["estimate"] = jobs["order"] = codes.NONE
    nodes = np.zeros(len(node), NODES)
    nodes["since"], nodes["done"], nodes["power"] = node["since"] - since_us, node["done"] - since_us, node["power"]
    placed = [(k, *chunk) for k, row in enumerate(rows.tolist()) for chunk in _chunks(w, row)]
    return Standing(rows, jobs, nodes, np.array(placed, PLACED))


def _chunks(w: World, row: int) -> list[tuple[int, int, int]]:
    """Low node, high node and cores on each, of what a job holds."""
    run, found = w.run[0, row], []
    c = int(run["chunk"]) if run["state"] != codes.QUEUED else codes.NONE
    while c != codes.NONE:
        low, high, per, c = (int(w.chunk[0, c][name]) for name in ("low", "high", "per", "next"))
        found.append((low, high, per))
    return found
