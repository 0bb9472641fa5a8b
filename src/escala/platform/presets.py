"""Named platforms: the nine Grid'5000 clusters of table 2 of R. B. Casagrande's dissertation (2020).

The table gives the cores; nodes x cores of a node follow from the hardware that Grid'5000 lists for those clusters (all
nodes of a cluster are equal). All draw the dissertation's power profile, per node.
"""

from __future__ import annotations

from escala.platform.platform import Platform
from escala.platform.power import GRID5000, PowerProfile

PRESETS: dict[str, tuple[int, int]] = {
    "taurus": (14, 12),
    "hercule": (4, 12),
    "nova": (23, 16),
    "orion": (4, 12),
    "graphite": (4, 16),
    "grimoire": (8, 16),
    "grisou": (51, 16),
    "econome": (22, 16),
    "ecotype": (48, 20),
}
"""name -> (nodes, cores of a node)"""


def preset(name: str, power: PowerProfile | str | None = GRID5000, per_core: bool = False) -> Platform:
    """The preset platform `name` (a key of PRESETS)."""
    nodes, cores = PRESETS[name]
    return Platform.uniform(nodes, cores, power=power, name=name, per_core=per_core)
