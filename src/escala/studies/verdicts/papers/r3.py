"""What both studies of R3 (Casagrande, dissertation 2020) share: its clusters, and what stands in for their days."""

from __future__ import annotations

from escala.studies.deepshutdown2020.paper import TABLE5

CLUSTERS = {"g5k": "Taurus", "orion": "Orion", "graphite": "Graphite", "econome": "Econome"}
"""Input -> the cluster whose days it has (g5k), or is like."""
AUTHOR = "g5k"
GENERATED = "this cluster's days are not public: days generated to be like them stand in"
CUT, DRAIN = "cut at 24 h", "run to completion"
ABOUT = (
    "Held-out days. Taurus: the author's own days, of an earlier split than the dissertation's; like Orion's, Graphite's or Econome's: "
    "days that are generated to be so. Cut: a day ends after 24 h; run to completion: when all of its jobs have ended."
)
WASTE, SWITCHES, STRETCH = 4, 8, 12
"""Places of the means in a row of table 5; each is followed by deviation, least and most."""


def stands_in(name: str) -> str:
    """Why an input's days are not the paper's; empty for the author's own."""
    return "" if name == AUTHOR else GENERATED


def printed(name: str, policy: str, quantity: int) -> float:
    """A mean of table 5 for an input's cluster."""
    return TABLE5[CLUSTERS[name], policy][quantity]


def printed_change(name: str, policy: str, reference: str, quantity: int) -> float:
    """The relative change between two policies that table 5 prints."""
    return printed(name, policy, quantity) / printed(name, reference, quantity) - 1.0
