"""R3's DeepScheduler (Casagrande, dissertation 2020): what is printed, and what became of it."""

from __future__ import annotations

from typing import Any

import polars as pl

from escala.studies.lab.joint import WAITS
from escala.studies.verdicts.figures import number, span
from escala.studies.verdicts.kept import Kept, change
from escala.studies.verdicts.papers.r3 import ABOUT, AUTHOR, CLUSTERS, CUT, DRAIN, stands_in, swept, tenth
from escala.studies.verdicts.row import CHANGE, Paper, Row, Table
from escala.studies.verdicts.rule import Found, Print, sentence

BUDGET = 25_000_000
"""Decisions that R3 trained for."""
SEARCHED = "otherwise: two linear scores searched by whole days"
COMPLETED = "otherwise: two linear scores searched and chosen on days run to completion"
RULES = "as printed: rules"
WASTE = {"orion": -0.065, "graphite": -0.070, "econome": 0.029}
"""R3 5.3.2: waste against EASY and SAF."""
WAIT = {"first_fit": ("First-Fit", -0.058), "easy": ("EASY", -0.27)}
"""R3 5.3.2: mean wait over all clusters, against."""
MEAN = "the paper's figure is a mean over its clusters, ours is of one"
SIMILAR = 0.02
"""What "similar" is taken for: two per cent."""
FOLLOWS, OTHERS = "less than 5 min after the last", "others"


def rows(kept: Kept) -> dict[str, list[Row]]:
    """All rows."""
    return {
        "The printed network": _printed(kept),
        "Waste": _waste(kept),
        "Wait": _wait(kept),
        "Fairness": _fairness(kept),
        "Which jobs wait": _behaviour(kept),
    }


def _given(name: str, window: str = DRAIN) -> str:
    return f"{window}, Taurus" if name == AUTHOR else f"{window}, like {CLUSTERS[name]}'s"


def _printed(kept: Kept) -> list[Row]:
    """The printed network."""
    by = f"as printed: three GRUs, PPO; {kept.decisions('printed')}, of {BUDGET:,} in the paper"
    none = "it was trained on Taurus, for which the paper prints no figure"
    found = Found(kept.value("printed", "waste_vs_easy", part="test", preset="printed"), of="printed.csv")
    waits = Found(kept.value("printed", "wait_vs_first_fit", part="test", preset="printed"), of="printed.csv")
    return [
        Row(
            "r3.scheduler.printed.waste",
            "5.3.2",
            "DeepScheduler's waste against EASY's",
            Print(None, unknown=none),
            found,
            by,
            _given(AUTHOR),
        ),
        Row(
            "r3.scheduler.printed.wait",
            "5.3.2",
            "DeepScheduler's mean wait against First-Fit's",
            Print(WAIT["first_fit"][1], stands_in=MEAN),
            waits,
            by,
            _given(AUTHOR),
        ),
    ]


def _waste(kept: Kept) -> list[Row]:
    found = []
    for name, figure in WASTE.items():
        for key, other in (("easy", "EASY"), ("saf", "SAF")):
            ident = f"r3.waste_vs_{key}.{name}.drain"
            found.append(
                Row(
                    ident,
                    "5.3.2, figure 21",
                    f"{CLUSTERS[name]}: DeepScheduler's waste against {other}'s",
                    Print(figure, stands_in=stands_in(name)),
                    kept.claim(ident),
                    SEARCHED,
                    _given(name),
                )
            )
    for policy, words in (("first-fit", "First-Fit"), ("saf", "SAF")):
        measured = kept.cell("policies", "waste_vs_easy", input=AUTHOR, window="drain", policy=policy)
        found.append(
            Row(
                f"r3.scheduler.similar.{policy}",
                "5.3.2",
                f"{words} wastes about what EASY does (taken as: within 2 %)",
                sentence("same", SIMILAR),
                measured,
                RULES,
                _given(AUTHOR),
            )
        )
    return found


def _wait(kept: Kept) -> list[Row]:
    """Mean waits, as sums over all days and as the paper shows them: days between the 10th and the 90th percentile."""
    found = []
    for name in CLUSTERS:
        for key, (words, figure) in WAIT.items():
            ident = f"r3.wait_vs_{key}.{name}.drain"
            other = MEAN if not stands_in(name) else f"{MEAN}; {stands_in(name)}"
            says = f"{CLUSTERS[name]}: DeepScheduler's mean wait against {words}'s"
            found.append(
                Row(ident, "5.3.2", says, Print(figure, stands_in=other), kept.claim(ident), SEARCHED, _given(name))
            )
    for name in CLUSTERS:
        for key, (words, figure) in WAIT.items():
            other = MEAN if not stands_in(name) else f"{MEAN}; {stands_in(name)}"
            says = (
                f"{CLUSTERS[name]}: the same against {words}'s, over days between the 10th and 90th percentile of "
                "each policy"
            )
            found.append(
                Row(
                    f"r3.trimmed_wait_vs_{key}.{name}",
                    "5.3.2, figure 21",
                    says,
                    Print(figure, stands_in=other),
                    _trimmed(kept, name, key.replace("_", "-")),
                    SEARCHED,
                    _given(name, CUT),
                )
            )
    return [*found, *_done(kept)]


def _done(kept: Kept) -> list[Row]:
    """Waits of the agent that was searched and chosen on days run to completion, over nodes that go off after 5 idle
    minutes."""
    found = []
    for way, words in WAITS.items():
        for key, (other, figure) in WAIT.items():
            ident = f"r3.done.{way}_wait_vs_{key}.5min.{AUTHOR}"
            if ident in kept.claims:
                says = f"{CLUSTERS[AUTHOR]}: DeepScheduler's {words} against {other}'s"
                printed = Print(figure, stands_in=MEAN)
                where = "5.2.4, 5.3.2" + (", figure 21" if way == "usual" else "")
                found.append(Row(ident, where, says, printed, kept.claim(ident), COMPLETED, _given(AUTHOR)))
    return found


def _trimmed(kept: Kept, name: str, against: str) -> Found:
    """The mean of the days' mean waits that figure 21 shows of the held-out days."""
    table = kept.table(f"fig21-{name}")
    if table is None:
        return Found()
    held = table.filter(pl.col("held_out").cast(pl.String) == "true")
    means = [held.filter(pl.col("policy") == policy)["mean_wait_s"].mean() for policy in ("agent", against)]
    ours, theirs = (float(mean) if isinstance(mean, float) else None for mean in means)
    return change(Found(ours, of=f"fig21-{name}.csv"), theirs)


def _fairness(kept: Kept) -> list[Row]:
    found = []
    for name in CLUSTERS:
        ident = f"r3.pp_slowdown_vs_first_fit.{name}.drain"
        says = f"{CLUSTERS[name]}: per-processor slowdown is like First-Fit's (taken as: within 2 %)"
        found.append(
            Row(
                ident,
                "5.3.2",
                says,
                sentence("same", SIMILAR, stands_in=stands_in(name)),
                kept.claim(ident),
                SEARCHED,
                _given(name),
            )
        )
    return found


def _behaviour(kept: Kept) -> list[Row]:
    """Section 5.4.2: which jobs wait (figures 25, 26)."""

    def undelayed(policy: str) -> float | None:
        return kept.value("fig25-g5k", "share", policy=policy, **{"class": "1"})

    def upper(policy: str, kind: str) -> float | None:
        return kept.value("fig26-g5k", "q3", policy=policy, **{"class": kind})

    rules = [share for share in map(undelayed, ("first-fit", "easy", "saf")) if share is not None]
    fewer = change(Found(undelayed("agent"), of="fig25-g5k.csv"), min(rules, default=None))
    most = [value for value in (upper(policy, FOLLOWS) for policy in ("first-fit", "easy", "saf")) if value is not None]
    held = change(Found(upper("agent", FOLLOWS), of="fig26-g5k.csv"), max(most, default=None))
    likely = change(Found(upper("agent", FOLLOWS), of="fig26-g5k.csv"), upper("agent", OTHERS))
    given = _given(AUTHOR, CUT)
    return [
        Row(
            "r3.scheduler.undelayed",
            "5.4.2, figure 25",
            "DeepScheduler has the smallest share of jobs that do not wait",
            sentence("less"),
            fewer,
            SEARCHED,
            given,
        ),
        Row(
            "r3.scheduler.sequential",
            "5.4.2, figure 26",
            "Of sequential submissions DeepScheduler's slowdown is the largest (upper quartile against the rules')",
            sentence("more"),
            held,
            SEARCHED,
            given,
        ),
        Row(
            "r3.scheduler.likely",
            "5.4.2, figure 26",
            "It is sequential submissions that are held most (upper quartile against others')",
            sentence("more"),
            likely,
            SEARCHED,
            given,
        ),
    ]


def _beyond(kept: Kept) -> list[Table]:
    """The agent beside a rule that learns nothing, over nodes that go off at once."""
    cells = []
    table = kept.table("at_once")
    for name in table["input"].unique(maintain_order=True).to_list() if table is not None else ():
        rule = [_rule(kept, name, column) for column in ("waste_vs_easy", "wait_vs_first_fit")]
        agent = [kept.claim(f"r3.{ident}.{name}.drain") for ident in ("waste_vs_easy", "wait_vs_first_fit")]
        cells.append([name, *(span(one, CHANGE) for one in (agent[0], rule[0], agent[1], rule[1]))])
    says = (
        "Held-out days run to completion. The rule is greedy SJF over nodes that go off as soon as they are idle "
        "(sjf-fit with timeout:0); the agent decides over nodes that go off after 5 idle minutes, as R3's does. Waste "
        "is against EASY, the mean wait against First-Fit, both over nodes that go off after 5 idle minutes. g5k are "
        "the author's days of Taurus."
    )
    head = ["input", "agent's waste", "the rule's waste", "agent's wait", "the rule's wait"]
    beside = [Table("Beside a rule that learns nothing", says, head, cells)] if cells else []
    return [*_joint(kept), *beside, *swept(kept, LENGTHS_SAY, SWEPT)]


LENGTHS_SAY = (
    "Waste is against EASY and the mean wait against First-Fit, both over nodes that go off after 5 idle minutes, on "
    "the same episodes. The rule is greedy SJF over nodes that go off at once (sjf-fit with timeout:0)."
)
SWEPT = [
    ("agent", "waste_vs_easy", CHANGE, "agent's waste"),
    ("sjf-fit + timeout:0", "waste_vs_easy", CHANGE, "the rule's waste"),
    ("agent", "wait_vs_first_fit", CHANGE, "agent's wait"),
    ("sjf-fit + timeout:0", "wait_vs_first_fit", CHANGE, "the rule's wait"),
]


OVER = {"5min": "timeout:300", "0": "timeout:0"}
"""What lies beneath the agents of completed days, by the name in their claims."""
BESIDE = (
    *(f"{order} + timeout:300" for order in ("easy", "first-fit", "sjf-fit")),
    *(f"{order} + timeout:0" for order in ("first-fit", "sjf-fit")),
    *(f"sjf-fit + hold:{share}:uncapped" for share in ("0.05", "0.25", "1")),
)
"""Rules that stand beside them."""
JOINT = (
    "The author's held-out days, run to completion. The agents were searched on such days, and which limit of waiting "
    "counts was decided on such validation days; one decides over nodes that go off after 5 idle minutes, as R3's "
    "does, the other over nodes that go off at once. Waste is against EASY, waits against First-Fit, both over nodes "
    "that go off after 5 idle minutes. Usual: days between the 10th and the 90th percentile, as R3 shows waits. The "
    "hull is that of all {rules} pairs of a rule and a shutdown policy: the least waste at that wait by tossing a "
    "coin each day between two of them, drawn on these very days, which favours the rules; a rule is held against the "
    "others. Above nothing means that rules do better."
)
COLUMNS = ("waste_vs_easy", "mean_wait_vs_first_fit", "usual_wait_vs_first_fit", "mean_hull", "usual_hull")


def _joint(kept: Kept) -> list[Table]:
    """Agents and rules on days run to completion; nothing where no agent was searched there."""
    rows = _of_completed(kept)
    agents = {
        over: row["policy"] for over in OVER for row in rows if row["chosen"] and row["policy"].startswith(f"{over}/")
    }
    cells = []
    for over, policy in agents.items():
        claims = [kept.claim(f"r3.done.{column}.{over}.{AUTHOR}") for column in COLUMNS]
        cells.append(
            [f"agent over {OVER[over]} (limit {policy.split('/')[1]})", *(span(one, CHANGE) for one in claims)]
        )
    known = {row["policy"]: row for row in rows}
    cells += [
        [policy, *(number(known[policy][column], CHANGE) for column in COLUMNS)] for policy in BESIDE if policy in known
    ]
    says = JOINT.format(rules=sum(not row["agent"] for row in rows))
    head = [
        "policy",
        "waste",
        "mean wait",
        "usual wait",
        "waste against the hull, at equal mean wait",
        "at equal usual wait",
    ]
    return [Table("Searched and judged on days run to completion", says, head, cells)] if agents else []


def _of_completed(kept: Kept) -> list[dict[str, Any]]:
    """The rows of the author's held-out days."""
    table = kept.table("completed")
    return [] if table is None else table.filter(input=AUTHOR, part="test").to_dicts()


def _rule(kept: Kept, name: str, column: str) -> Found:
    return kept.cell("at_once", column, input=name, window="drain", policy="sjf-fit + timeout:0")


FIRST = """
**What the paper claims.** An agent with three GRUs, trained by PPO, chooses which job starts next and wastes less
energy than EASY and SAF: {printed:r3.waste_vs_easy.orion.drain} on Orion, {printed:r3.waste_vs_easy.graphite.drain} on
Graphite, and {printed:r3.waste_vs_easy.econome.drain} on Econome. Its mean wait is
{printed:r3.wait_vs_first_fit.g5k.drain} against First-Fit's and {printed:r3.wait_vs_easy.g5k.drain} against EASY's.

**What came out.** The printed network learnt nothing that saves energy in {value:budget}:
{ours:r3.scheduler.printed.waste} waste against EASY. A pair of linear scores, searched by whole days, wastes less:
{value:waste} on the author's days run to completion. It saves more than printed on days like Orion's
({both:r3.waste_vs_easy.orion.drain}) and Graphite's ({both:r3.waste_vs_easy.graphite.drain}). Its waits are not
shorter: {both:r3.wait_vs_first_fit.g5k.drain} against First-Fit. A rule that learns nothing does better on both:
greedy SJF over nodes that go off at once (`sjf-fit` with `timeout:0`) has {value:rule_waste} waste and
{value:rule_wait} wait. As the paper shows waits, without the least and the most crowded days, they are far longer:
{ours:r3.trimmed_wait_vs_first_fit.g5k}, {verdict:r3.trimmed_wait_vs_first_fit.g5k}.

**Why.** The agent shortens waits by hours on few crowded days, and lets jobs wait for minutes on the many quiet ones,
which are the days that the paper shows. That search was judged on days that are cut at their end; the paper's days end
when all jobs have run. {value:completed} The printed network had {value:share} of its budget, in one seed. A tenth of
it in three seeds was not run: it is {value:tenth}.
"""


def _completed(kept: Kept) -> str:
    """What came out where search, choice and judgement are all of completed days, and whether rules are enough."""

    def of(column: str, over: str) -> Found:
        return kept.claim(f"r3.done.{column}.{over}.{AUTHOR}")

    hulls = {over: [of(f"{way}_hull", over) for way in WAITS] for over in OVER}
    if any(one.ours is None for some in hulls.values() for one in some):
        return ""
    waste, wait, shown = (span(of(column, "5min"), CHANGE) for column in COLUMNS[:3])
    told = (
        f"Searched, chosen and judged on such days, an agent has {waste} waste, {wait} mean wait, and {shown} as "
        "the paper shows waits. "
    )
    ends = [
        f"{span(mean, CHANGE)} at equal mean wait, {span(usual, CHANGE)} at equal wait as shown"
        for mean, usual in hulls.values()
    ]
    told += (
        f"Against the hull of all pairs of a rule and a shutdown policy its waste is {ends[0]}; of one over nodes "
        "that go off at once "
    )
    told += f"it is {ends[1]}. "
    better = {over: [one.high is not None and one.high < 0.0 for one in some] for over, some in hulls.items()}
    if all(all(some) for some in better.values()):
        return told + "So both are below what rules can do."
    if not any(any(some) for some in better.values()):
        return told + "None of these intervals is below nothing: rules are enough."
    return told + "Where an interval is not below nothing, rules are enough."


def _more(kept: Kept) -> dict[str, str]:
    share = f"{kept.settings.get('printed', 0) / BUDGET:.1%}".replace("%", " %")
    waste = span(kept.claim("r3.waste_vs_easy.g5k.drain"), "relative change")
    rule = {
        f"rule_{key}": span(_rule(kept, AUTHOR, column), CHANGE)
        for key, column in (("waste", "waste_vs_easy"), ("wait", "wait_vs_first_fit"))
    }
    rule |= {"tenth": tenth(kept, "printed", BUDGET), "completed": _completed(kept)}
    return {"budget": kept.decisions("printed"), "share": share, "waste": waste} | rule


PAPER = Paper(
    "deepscheduler2020",
    "R3",
    "DeepScheduler, a learnt scheduler",
    "Casagrande: energy-aware management of resources and jobs in grids by deep reinforcement learning, dissertation, "
    "UDESC 2020",
    FIRST,
    rows,
    ABOUT,
    _more,
    _beyond,
)
