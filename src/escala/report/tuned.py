"""The page of a tuned policy: what it gains on later weeks, whether its promise is kept, and who pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.errors import number_of
from escala.report import recorded
from escala.report.page import write_report
from escala.report.parts import Section
from escala.report.quantities import amount, count, quantity
from escala.report.tables import metrics_table
from escala.tuning import Several, Tuned, judge
from escala.tuning.measures import FIGURES, OBJECTIVES
from escala.tuning.steps import PARTS, Step, best_of
from escala.tuning.tuned import POLICY, RULE
from escala.unseen import sentences as unseen

EASY = "easy"
RULES_SHOWN = 15
STEPS_SHOWN = 3
SHOWN = ("bounded_slowdown", "wait")
SHORT_WEEKS = 8
"""With fewer weeks intervals over weeks leave out the truth more often than they say."""


def headline(tuned: Tuned) -> str:
    """The gain and its interval in one sentence, or that there is none."""
    split, figure = tuned.about["split"], OBJECTIVES[tuned.objective]
    on = f"On the {split['later_weeks']} later weeks ({split['later_jobs']:,} jobs)"
    value, low, high = tuned.gain
    if tuned.chosen == EASY:
        return (
            "No rule that keeps the promise was better than easy on the log's past: keep easy. "
            f"{_under_easy(tuned, figure)}"
        )
    if value is None or low is None or high is None:
        return f"{on} {figure_name(figure)} is 0 under easy: there is nothing to gain."
    own, easy = (amount(figure, tuned.later[who][figure]) for who in (POLICY, EASY))
    told = (
        f"{value:.2f} times easy's {figure_name(figure)} (95 % interval {low:.2f} to {high:.2f}): {own} in place "
        f"of {easy}"
    )
    if tuned.ahead:
        return f"{on} {tuned.chosen} has {told}."
    if tuned.behind:
        return f"{on} {tuned.chosen} is behind easy: it has {told}. Keep easy."
    return f"{on} {tuned.chosen} is not ahead of easy: it has {told}; what is gained may be chance."


def _under_easy(tuned: Tuned, figure: str) -> str:
    return f"On the later weeks {figure_name(figure)} is {amount(figure, tuned.later[EASY][figure])} under it."


def figure_name(figure: str) -> str:
    """What a figure is called within a sentence."""
    name = quantity(figure).name
    return f"mean {name.lower()}" if figure == "bounded_slowdown" else name[:1].lower() + name[1:]


def sentences(tuned: Tuned) -> list[str]:
    """What was found, in plain sentences: the gain, the promise, who pays, what is chance."""
    told = [headline(tuned), promised(tuned), *_worse(tuned), *_users(tuned), *beyond(tuned), *_perfect(tuned)]
    told += [*_chance(tuned), *few_weeks(tuned.about["split"]["later_weeks"]), *unseen({"": tuned.about["unseen"]})]
    return [*told, *filter(None, [recorded.verdict({EASY: tuned.recorded} if tuned.recorded else {})])]


def promised(tuned: Tuned) -> str:
    """Whether the promise is kept on the later weeks too."""
    told = [
        f"{c['clause']} ({amount(c['figure'], c['value'])}, promised {amount(c['figure'], c['bound'])})"
        for c in tuned.clauses
    ]
    missed = [text for text, c in zip(told, tuned.clauses, strict=True) if not c["kept"]]
    if missed:
        return f"The promise was kept on the past; on the later weeks it is missed: {'; '.join(missed)}."
    return f"The promise is kept on the later weeks too: {'; '.join(told)}."


def _users(tuned: Tuned) -> list[str]:
    found = tuned.users
    if found is None:
        return []
    better, worse = 100 * found["better"], 100 * found["worse"]
    return [
        f"Of {number_of(int(found['users']), 'user')} with at least {judge.LEAST_JOBS} later jobs {better:.0f} % wait "
        f"less than under easy by more than an hour in the mean, {worse:.0f} % wait longer by more than an hour."
    ]


def _worse(tuned: Tuned) -> list[str]:
    """What is worse than under easy by the whole interval."""
    found = [
        f"{figure_name(judge.RATIOS[name])} ({value:.2f} times easy's, {low:.2f} to {high:.2f})"
        for name, (value, low, high) in tuned.ratio[EASY].items()
        if value is not None and low is not None and high is not None and low > 1.0
    ]
    return [f"Worse than under easy by the whole interval: {', '.join(found)}."] if found else []


def _chance(tuned: Tuned) -> list[str]:
    pairs = judge.undecided(tuned.ratio)
    if not pairs:
        return []
    told = ", ".join(f"{figure_name(judge.RATIOS[name])} against {against}" for against, name in pairs)
    return [f"Not told apart from chance (the interval holds 1): {told}."]


def beyond(tuned: Tuned | Several) -> list[str]:
    """What came of what was tried beyond the rules."""
    kept = next((step for step in tuned.steps if step.name == tuned.chosen), None)
    best = [
        f"{part} {step.name} ({ratio_text(step.ratio)})"
        for part in PARTS
        if (step := best_of([one for one in tuned.steps if one.part == part])) and step.ratio[0] is not None
    ]
    told = [tuned.without] if tuned.without else []
    if kept is not None:
        told.append(_kept(kept, tuned.rule))
    elif tuned.steps:
        nearest = f" Against it, on weeks of the past: {'; '.join(best)}." if best else ""
        told.append(f"Nothing tried beyond the rules was kept in the place of {tuned.rule}.{nearest}")
    return told


def _kept(step: Step, rule: str) -> str:
    """Why it is the policy."""
    if not step.held:
        return f"{step.name} was ahead of the best rule, {rule}, on weeks of the past that its choice had not seen."
    own = "" if step.ratio[0] is None else f": {ratio_text(step.ratio)} of the rule's figure, by weeks"
    proof = "its weeks show it too" if step.ahead else "its weeks alone do not prove it"
    return (
        f"On the past {step.name} was better than the best rule, {rule}, or even with it (within 2 %); {proof}{own}. "
        "Its kind was ahead on the pasts of eight logs, in the mean of bounded slowdown."
    )


def _perfect(tuned: Tuned) -> list[str]:
    """What perfect runtimes would give."""
    figure = next(name for name, of in judge.RATIOS.items() if of == OBJECTIVES[tuned.objective])
    perfect = [part.easy[figure] for part in tuned.parts if part.clairvoyant]
    return [
        f"With run times known beforehand (clairvoyant) it would have {ratio_text(one)} of easy's." for one in perfect
    ]


def part_rows(tuned: Tuned) -> list[dict[str, Any]]:
    """One row for each part of the policy: what it gives on the later weeks, as texts."""
    rows = []
    for part in tuned.parts:
        ratios = {"against easy": part.easy, "against the part before": part.before}
        found = {
            f"{figure_name(judge.RATIOS[name])}, {how}": ratio_text(each[name])
            for how, each in ratios.items()
            for name in SHOWN
        }
        rows.append(
            {"with": part.part + (" (clairvoyant)" if part.clairvoyant else ""), "scheduler": part.name} | found
        )
    return rows


def step_rows(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The best of what was tried beyond the rules."""
    keeping = sorted((s for s in steps if s.excess == 0.0), key=lambda step: step.worth if step.held else step.fit)
    return [
        {
            "part": step.part,
            "scheduler": step.name,
            "against the best rule": ratio_text(step.ratio),
            "ahead": "yes" if step.ahead else "no",
        }
        for part in PARTS
        for step in [one for one in keeping if one.part == part][:STEPS_SHOWN]
    ]


def few_weeks(weeks: int) -> list[str]:
    """What is to be said of intervals over so few weeks, if anything."""
    few = f"The intervals rest on {weeks} weeks only, and are narrower than the truth: judge by a longer log."
    return [few] if weeks < SHORT_WEEKS else []


def ratio_rows(tuned: Tuned) -> list[dict[str, Any]]:
    """One row for each scheduler that the policy is compared with: its figures over theirs, with intervals, as
    texts."""
    return [
        {"against": against} | {figure_name(judge.RATIOS[name]): ratio_text(found) for name, found in each.items()}
        for against, each in tuned.ratio.items()
        if against != RULE
    ]


def ratio_text(found: judge.Ratio) -> str:
    """A ratio with its interval."""
    value, low, high = found
    return "–" if value is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def wait_rows(tuned: Tuned) -> dict[str, dict[str, float]]:
    """Scheduler -> its figures on the later weeks, the chosen one first."""
    return {tuned.chosen: tuned.later[POLICY]} | {name: found for name, found in tuned.later.items() if name != POLICY}


def promise_rows(tuned: Tuned) -> list[dict[str, Any]]:
    """One row for each condition, on the later weeks."""
    return [
        {
            "condition": c["clause"],
            "later weeks": amount(c["figure"], c["value"]),
            "promised": amount(c["figure"], c["bound"]),
            "kept": "yes" if c["kept"] else "no",
        }
        for c in tuned.clauses
    ]


def sections(tuned: Tuned) -> list[Section]:
    """The parts of the page."""
    rules = sorted(tuned.tried, key=lambda rule: (rule.excess > 0.0, rule.excess, rule.value))[:RULES_SHOWN]
    kept = sum(rule.excess == 0.0 for rule in tuned.tried)
    tried = pl.DataFrame(
        [
            {"rule": t.name, "against_easy_change": _change(t.value), "kept": "no" if t.excess else "yes", **t.figures}
            for t in rules
        ]
    )
    return [
        *on_later_weeks(tuned),
        *_parts(tuned),
        Section(
            "The rules on the past",
            f"{len(tuned.tried)} rules were replayed on the jobs before the split; {kept} keep the promise there. The "
            f"best {len(rules)}:",
            [
                (
                    tried,
                    "Against easy: half of all jobs together, half of the weeks weighted by the square root of their "
                    "jobs.",
                )
            ],
        ),
    ]


def on_later_weeks(tuned: Tuned) -> list[Section]:
    """Waits, who pays, and the promise."""
    waits = wait_rows(tuned)
    pays = [
        (table, f"Waits {by}: before, under easy; then under {tuned.chosen}.") for by, table in tuned.groups.items()
    ]
    return [
        Section(
            "Waits on the later weeks",
            "One continuous replay of the whole log under each scheduler; measured on the jobs submitted after the "
            "split.",
            [metrics_table(waits, reference=EASY, metrics=FIGURES), (pl.DataFrame(ratio_rows(tuned)), _RATIOS)],
        ),
        Section("Who pays", " ".join(_users(tuned)), pays),
        Section("The promise", promised(tuned), [(pl.DataFrame(promise_rows(tuned)), "")]),
    ]


def _parts(tuned: Tuned) -> list[Section]:
    """What each part gives, and what was tried beyond the rules."""
    tried = [(pl.DataFrame(rows), STEPS)] if (rows := step_rows(tuned.steps)) else []
    text = " ".join([*beyond(tuned), *_perfect(tuned)])
    return [Section("What each part gives", text, [(pl.DataFrame(part_rows(tuned)), _PARTS), *tried])]


_PARTS = (
    "On the later weeks, each with one part more; the last knows run times beforehand, and says what better "
    "predictions could give."
)
STEPS = (
    "Tried beyond the rules, each judged on weeks of the past beside the rule that is best on the others: the "
    "geometric mean over weeks, with its interval. Orders by a model and given scores are kept if they keep the "
    "promise and are better on the whole past. All else has to be ahead by the whole interval, and in all weeks "
    "together, too."
)
_RATIOS = (
    "The policy's figure over each scheduler's, with 95 % intervals from 1 000 resamples of whole weeks, "
    "paired. Below 1: better."
)


def _change(value: float) -> float:
    """A change of a figure from the logarithm of its ratio."""
    return math.expm1(value)


def change_text(value: float) -> str:
    """The same as a text."""
    return f"{100 * _change(value):+.1f} %"


def write_page(tuned: Tuned, path: Path) -> None:
    """Write the page of a tuned policy."""
    about = tuned.about
    split = about["split"]
    days = (split["at_s"] - split["first_s"]) / 86400.0
    asked = about["asked"]
    name = about["workload"]["name"]
    least = figure_name(OBJECTIVES[tuned.objective])
    how = (
        f"{name} on {about['platform']}: {count(about['workload']['jobs'])} jobs. Chosen on the first {days:.0f} days, "
        f"for the least {least}, under the promise {asked['promise']}; judged once on the jobs after them."
    )
    write_report(
        path,
        {},
        title=f"A queue order for {name}: {tuned.chosen}",
        notes=[*sentences(tuned), how],
        sections=sections(tuned),
    )
