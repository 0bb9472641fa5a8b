"""R4 (Gergely, ICAART 2024): what it says, and what became of it. It prints no figures of results: its sentences have
marks."""

from __future__ import annotations

from escala.studies.verdicts.figures import span
from escala.studies.verdicts.kept import Kept, change, worst
from escala.studies.verdicts.papers.horizons import swept
from escala.studies.verdicts.row import CHANGE, Paper, Row
from escala.studies.verdicts.rule import Found, Print, sentence

LOADS = (10, 30, 50, 70, 90, 110, 120)
LEARNT = (50, 90)
SHAPE = "3x1"
GIVEN = "3 x 1, 200 units"
RULES = "as printed: rules"
OTHERWISE = "otherwise: look-ahead is imitated, end of arrivals shown, then PPO in turns"
BETTER = "PPO's mean slowdown is at or below the best heuristic's, load {} %"
LEVEL = 0.05
"""What "no significant difference" is taken for: five per cent."""


def rows(kept: Kept) -> dict[str, list[Row]]:
    """All rows."""
    return {
        "Slowdown against the best heuristic": _slowdown(kept),
        "Rules of several agents": _scaling(kept),
        "Local and global information": _information(kept),
        "The loads": _world(),
    }


def _world() -> list[Row]:
    square = (
        "a job comes with probability q a unit, so that the offered load grows with q; its square is another "
        "load than the axis says"
    )
    unread = "figure 4 has no numbers, and its curves were not read off"
    return [
        Row(
            "r4.load",
            "4.3",
            "The offered load of a machine is q squared times mean demand times mean length over capacity",
            Print(None, contradicts=square),
            Found(),
            "plain loads (q, not its square)",
            "generator",
        ),
        Row(
            "r4.figure4",
            "6.2, figure 4",
            "Mean slowdowns of all policies against load",
            Print(None, unknown=unread),
            Found(),
            given=GIVEN,
        ),
    ]


def _slowdown(kept: Kept) -> list[Row]:
    by = (
        f"as printed: PPO in turns from nothing, one team for all loads; {kept.decisions('printed_steps')}, greedy "
        "actions"
    )
    below = sentence("less")
    own = [f"r4.nothing.printed.{load}" for load in LOADS]
    taught = [f"r4.vs_best_heuristic.{SHAPE}.{load}" for load in LOADS]
    found = []
    for idents, way in ((own, by), (taught, OTHERWISE)):
        for load, ident in zip(LOADS, idents, strict=True):
            found.append(Row(ident, "6.2, 7, figure 4", BETTER.format(load), below, kept.claim(ident), way, GIVEN))
    largest = "r4.worst_against_best_heuristic"
    says = "PPO agents match or beat the heuristics: the largest change over all shapes and loads"
    every = "two and three agents of one and two machines"
    return [
        *found,
        Row(
            largest,
            "7",
            says,
            below,
            kept.claim(largest),
            "otherwise: a rule or look-ahead is imitated, then PPO",
            every,
        ),
    ]


def _scaling(kept: Kept) -> list[Row]:
    """ "Packer and SJF do not scale": worse than Tetris, the third rule, at every load from where they differ."""
    busy = [load for load in LOADS if load >= LEARNT[0]]

    def least(policy: str, against: str) -> Found:
        changes = [change(_mean(kept, load, policy), _mean(kept, load, against).ours) for load in busy]
        return worst(changes, largest=False)

    worse, given = sentence("more"), f"{GIVEN}; loads from {LEARNT[0]} %"
    words = "{} does not scale to several agents: worse than Tetris at every load; the least change"
    return [
        Row("r4.scale.sjf", "6.2", words.format("SJF"), worse, least("sjf", "tetris"), RULES, given),
        Row("r4.scale.packer", "6.2", words.format("Packer"), worse, least("packer", "tetris"), RULES, given),
        Row(
            "r4.scale.sjf_normalised",
            "6.2",
            words.format("SJF") + ", against normalised Tetris",
            worse,
            least("sjf", "tetris-normalised"),
            RULES,
            given,
        ),
    ]


def _mean(kept: Kept, load: int, policy: str) -> Found:
    found = kept.value("slowdown", "mean_slowdown", shape=SHAPE, load=load, policy=policy)
    return Found(found, of="slowdown.csv")


def _information(kept: Kept) -> list[Row]:
    found = []
    by = f"as printed, but a team a load: PPO in turns from nothing; {kept.decisions('nothing_steps')}"
    for load in LEARNT:
        ident = f"r4.nothing.local_vs_global.{load}"
        found.append(
            Row(
                ident,
                "6.2, 7",
                f"Local or global information makes no large difference to slowdown, load {load} % (within 5 %)",
                sentence("same", LEVEL),
                kept.claim(ident),
                by,
                GIVEN,
            )
        )
    for load in LEARNT:
        local, whole = (kept.claim(f"r4.nothing.early.{kind}.{load}") for kind in ("local", "global"))
        found.append(
            Row(
                f"r4.faster.{load}",
                "6.2, 7, figures 2, 3",
                f"Global information learns faster: slowdown early in training, global against local, load {load} %",
                sentence("less"),
                _apart(whole, local),
                by,
                GIVEN,
            )
        )
    return found


def _apart(one: Found, other: Found) -> Found:
    """The relative change between two means of few seeds: the ends of both put together as widely as can be."""
    if None in (one.ours, one.low, one.high, other.ours, other.low, other.high):
        return Found(of=one.of)
    low, high = one.low / other.high - 1.0, one.high / other.low - 1.0  # type: ignore[operator]
    return Found(one.ours / other.ours - 1.0, low, high, one.of, one.seeds)  # type: ignore[operator]


FIRST = """
**What the paper claims.** Several agents that share a queue and own machines each learn by PPO, one at a time, to
schedule as well as SJF, Packer and Tetris or better, at loads from {value:low} to {value:high}. Packer and SJF do not
scale to several agents. Global information makes learning faster; the final slowdown differs little. The paper prints
no figures of results.

**What came out.** As printed, from nothing, a team does not reach the best heuristic: {both:r4.nothing.printed.50} at
50 % and {both:r4.nothing.printed.90} at 90 %. A team for one load comes level at 50 % by greedy actions, and not at
90 %. Teams that imitate look-ahead first are at or below the best heuristic nearly everywhere:
{both:r4.vs_best_heuristic.3x1.50} at 50 %; the largest change over all shapes and loads is
{both:r4.worst_against_best_heuristic}. SJF scales: its least change against Tetris is {ours:r4.scale.sjf}. That global
information learns faster is not shown: early in training it is at {both:r4.faster.50} of local information's slowdown
at 50 %, and at {both:r4.faster.90} at 90 %.

**Why.** What teams that imitate reach is what they imitate: PPO adds nothing to those that begin with a rule. From
nothing, a team of separate networks is still far off at 90 % when its budget ends. The paper's axis of loads squares
the arrival rate; ours is plain. {value:horizons}
"""


HORIZONS = (
    "Arrivals go on for longer, or shorter, than the 200 units of the trainings, and all jobs run to completion. "
    "Figures are a team's mean slowdown against the best of R4's heuristics (SJF, Packer, both Tetris, Random) as a "
    "team of the same shape on the same lists. Teams whose name begins with ahead are shown when arrivals end, and "
    "endless are the longest lists with their end not shown; to the others, and to the heuristics, no end is ever "
    "shown: for them these are the same runs. One training seed, greedy actions, intervals over lists. Above 70 % "
    "more jobs come than can be run, and the queue grows with the horizon."
)


def _more(kept: Kept) -> dict[str, str]:
    ends = {"low": f"{LOADS[0]} %", "high": f"{LOADS[-1]} %", "horizons": ""}
    found = kept.claim("r4.horizon.worst")
    if found.ours is not None:
        ends["horizons"] = (
            "Over all horizons, shapes and loads of the sweep teams that imitate are at worst at "
            f"{span(found, CHANGE)}."
        )
    return ends


PAPER = Paper(
    "marl2024",
    "R4",
    "Several agents, one queue",
    "Gergely: Multi-agent deep reinforcement learning for collaborative task scheduling, ICAART 2024",
    FIRST,
    rows,
    "3 x 1, 200 units: three agents of one machine; lists of so many units of arrivals, run until every job has "
    "ended. Loads are plain.",
    _more,
    lambda kept: swept(kept, " %", HORIZONS),
)
