"""The verdict on a printed number or sentence: one rule, from the figures alone.

A paper's figure is held against ours with its 95 % interval [low, high] (without an interval, our value stands for both
ends). What the paper says has a sense: `less` (at most that much), `more` (at least), or `same` (that value). Then, in
this order:

1. the row says that the paper contradicts itself, or why nothing can be known: that is the verdict;
2. no figure, ours or the paper's: cannot be told;
3. the whole interval is as good as the printed figure (`same`: the interval holds it; of a sentence that says "no
   difference": all of it is within the slack), and on the printed figure's side of "no difference", if it has one:
   reproduced;
4. else, the whole interval is on the printed figure's side of no difference: direction only;
5. else, it is on the other side, or worse than printed (`same`: it does not hold the figure): not reproduced;
6. else: cannot be told.

Where other data stand in for the paper's, which nobody but its author has, nothing is reproduced: 3. gives direction
only, or cannot be told where there is no direction. A level, which is held against nothing, cannot be told there at
all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sense = Literal["less", "more", "same"]

REPRODUCED, DIRECTION, NOT, UNKNOWN, CONTRADICTS = VERDICTS = (
    "reproduced",
    "direction only",
    "not reproduced",
    "cannot be told",
    "the paper contradicts itself",
)
SLACK = 1e-3
"""What a figure may be off by rounding: of relative changes, a tenth of a point."""


@dataclass(frozen=True)
class Found:
    """A figure of ours. low, high: its 95 % interval, None: it has none; of: where it stands; seeds, episodes: behind
    it, 0: not said."""

    ours: float | None = None
    low: float | None = None
    high: float | None = None
    of: str = ""
    seeds: int = 0
    episodes: int = 0

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval, or the value twice; None where there is no figure."""
        if self.ours is None:
            return None
        return (self.ours if self.low is None else self.low, self.ours if self.high is None else self.high)


@dataclass(frozen=True)
class Print:
    """What a paper prints. figure: None where it prints none; sense: see above; none: the figure of no difference,
    None: there is none (a level); slack: what rounding of the print leaves open. contradicts, unknown: the reason,
    where the row says so itself.
    stands_in: why other data stand in for the paper's. sentence: the paper says it in words, and the figure is what
    they come to."""

    figure: float | None
    sense: Sense = "less"
    none: float | None = 0.0
    slack: float = SLACK
    contradicts: str = ""
    unknown: str = ""
    stands_in: str = ""
    sentence: bool = False


def sentence(sense: Sense, slack: float = SLACK, unknown: str = "", stands_in: str = "") -> Print:
    """What a paper says in words: that something is at most nothing, more than nothing, or none."""
    return Print(0.0, sense, None, slack, unknown=unknown, stands_in=stands_in, sentence=True)


def reached(printed: Print, found: Found) -> bool | None:
    """Whether our figure is as good as the printed one: yes or no by the whole interval, else None."""
    ends = found.ends
    if printed.figure is None or ends is None:
        return None
    low, high = ends
    if printed.sense == "same":
        near = low - printed.slack <= printed.figure <= high + printed.slack
        whole = printed.figure - printed.slack <= low and high <= printed.figure + printed.slack
        return (True if whole else None if near else False) if printed.sentence else near
    if printed.sense == "more":
        low, high, mark = -high, -low, -printed.figure
    else:
        mark = printed.figure
    if high <= mark + printed.slack:
        return True
    return False if low > mark + printed.slack else None


def side(printed: Print, found: Found) -> int:
    """1: our whole interval is on the printed figure's side of no difference; -1: on the other side; 0: on both, or
    there are no sides."""
    ends = found.ends
    if not has_sides(printed) or ends is None:
        return 0
    above = 1 if ends[0] > printed.none else -1 if ends[1] < printed.none else 0  # type: ignore[operator]
    return above if printed.figure > printed.none else -above  # type: ignore[operator]


def has_sides(printed: Print) -> bool:
    """Whether the printed figure is a difference from something, and not none."""
    return (
        printed.figure is not None and printed.none is not None and abs(printed.figure - printed.none) > printed.slack
    )


def verdict(printed: Print, found: Found) -> str:
    """One of VERDICTS."""
    if printed.contradicts:
        return CONTRADICTS
    level = printed.none is None and not printed.sentence
    if printed.unknown or printed.figure is None or found.ends is None or (printed.stands_in and level):
        return UNKNOWN
    known, way = reached(printed, found), side(printed, found)
    if known and not printed.stands_in and (way == 1 or not has_sides(printed)):
        return REPRODUCED
    if way == 1:
        return DIRECTION
    return NOT if known is False or way == -1 else UNKNOWN


def against(printed: Print, found: Found) -> str:
    """Our figure beside the printed one, in words."""
    ends = found.ends
    if printed.figure is None or ends is None:
        return ""
    low, high = ends[0] - printed.slack, ends[1] + printed.slack
    if low <= printed.figure <= high:
        return "equal" if found.low is None else "the interval holds it"
    above = low > printed.figure
    if printed.sense == "same":
        return "above it" if above else "below it"
    return "worse" if above == (printed.sense == "less") else "better"
