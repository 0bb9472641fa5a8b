"""Closures of a site as tables of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from escala.kernel.slurm import tables as t
from escala.platform.closures import FLEX, KINDS
from escala.platform.site import Site
from escala.slurm.columns import as_words


def names_of(site: Site) -> dict[str, int]:
    """The names of its reservations as numbers."""
    return {name: k for k, name in enumerate(dict.fromkeys(one.name for one in site.closed if one.name is not None))}


def closed_of(site: Site, origin_s: float) -> t.Closed:
    """The tables; moments before the clock's zero come at the first one."""
    names = names_of(site)
    name = [t.NONE if one.name is None else names[one.name] for one in site.closed]
    many = len(site.closed)
    masks = np.zeros((many, site.n_nodes), bool)
    for k, one in enumerate(site.closed):
        masks[k, list(one.nodes)] = True
    turns = [(one.from_s, k, 0) for k, one in enumerate(site.closed)] + [
        (one.until_s, k, 1) for k, one in enumerate(site.closed)
    ]
    moments = [(round((at - origin_s) * t.SECOND), k, ends) for at, k, ends in turns]

    def ints(values: Sequence[float]) -> NDArray[np.int64]:
        return np.array(values, np.int64)

    return t.Closed(
        moment=np.array(sorted(moments, key=lambda one: (one[0], -one[2], one[1])), np.int64).reshape(-1, 3),
        nodes=as_words(masks),
        kind=ints([KINDS.index(one.kind) for one in site.closed]),
        requeue=ints([int(one.requeue) for one in site.closed]),
        begin_s=ints([np.floor(one.from_s) for one in site.closed]),
        end_s=ints([np.ceil(one.until_s) for one in site.closed]),
        name=ints(name),
        gone_us=ints([t.FAR] * many),
        flex=ints([int(FLEX in one.flags) for one in site.closed]),
        failed=ints([t.NONE] * len(names)),
        on=np.zeros(many, np.int64),
        gone=np.zeros(as_words(np.zeros((1, site.n_nodes), bool)).shape[1], np.int64),
    )
