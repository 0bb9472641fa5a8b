"""The page of one policy for several logs: what it gives on the later weeks of each, and how it was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.report import tuned as alone
from escala.report.page import write_report
from escala.report.parts import Section
from escala.report.quantities import amount
from escala.tuning import Several, Tuned
from escala.tuning.judge import RATIOS
from escala.tuning.measures import OBJECTIVES
from escala.tuning.tuned import POLICY, RULE
from escala.unseen import sentences as unseen

EASY = "easy"


def headline(found: Several) -> str:
    """The gain over all logs in one sentence, or that there is none."""
    figure, logs = OBJECTIVES[found.objective], found.logs
    name, mean = alone.figure_name(figure), found.ratio()
    if found.chosen == EASY:
        return (
            f"No rule that keeps the promise on the past of all {len(logs)} logs was better than easy there: keep easy."
        )
    if mean is None:
        return f"On the later weeks of {len(logs)} logs {name} is 0 under easy: there is nothing to gain."
    ratio = next(ratio for ratio, of in RATIOS.items() if of == figure)
    ends = sorted((one for one in logs if one.gain[0] is not None), key=lambda one: one.gain[0] or 0.0)
    span = " to ".join(f"{alone.ratio_text(one.gain)} on {_name(one)}" for one in (ends[0], ends[-1]))
    told = (
        f"{found.chosen} has {mean:.2f} times easy's {name} on the later weeks of {len(logs)} logs (geometric "
        f"mean): {span}."
    )
    against = found.ratio(RULE, ratio)
    rule = "" if against is None else f" Against the best rule of each log alone it has {against:.2f}."
    behind = [_name(one) for one in logs if one.behind]
    worse = f" It is behind easy by the whole interval on {', '.join(behind)}." if behind else ""
    return f"{told}{rule}{worse}"


def sentences(found: Several) -> list[str]:
    """What was found, in plain sentences."""
    kept = found.kept
    missed = [_name(one) for one, held in zip(found.logs, kept, strict=True) if not held]
    where = f"; it is missed on {', '.join(missed)}" if missed else ""
    promise = (
        f"The promise, {found.logs[0].promise}, is kept on the later weeks of {sum(kept)} of {len(kept)} logs{where}."
    )
    few = [_name(one) for one in found.logs if one.about["split"]["later_weeks"] < alone.SHORT_WEEKS]
    narrow = (
        [f"Intervals of {', '.join(few)} rest on less than {alone.SHORT_WEEKS} weeks, and are narrower than the truth."]
        if few
        else []
    )
    ignored = {name: why for one in found.logs for name, why in one.about["unseen"].items()}
    return [headline(found), promise, *alone.beyond(found), *narrow, *unseen({"": ignored})]


def log_rows(found: Several) -> list[dict[str, Any]]:
    """One row for each log: the objective on its later weeks, as texts."""
    figure = OBJECTIVES[found.objective]
    ratio = next(ratio for ratio, of in RATIOS.items() if of == figure)
    rows = []
    for one, kept in zip(found.logs, found.kept, strict=True):
        wait = {} if ratio == "wait" else {"wait / easy": alone.ratio_text(one.ratio[EASY]["wait"])}
        rows.append(
            {
                "log": _name(one),
                "platform": one.about["platform"],
                "later weeks": str(one.about["split"]["later_weeks"]),
                "easy": amount(figure, one.later[EASY][figure]),
                "policy": amount(figure, one.later[POLICY][figure]),
                "policy / easy": alone.ratio_text(one.gain),
                **wait,
                "best rule alone": one.rule,
                "policy / best": alone.ratio_text(one.ratio[RULE][ratio]),
                "promise": "kept" if kept else "missed",
            }
        )
    return rows


def _name(one: Tuned) -> str:
    return str(one.about["workload"]["name"])


def sections(found: Several) -> list[Section]:
    """The parts of the page."""
    rows = [(pl.DataFrame(log_rows(found)), _LOGS.format(alone.figure_name(OBJECTIVES[found.objective])))]
    steps = [(pl.DataFrame(tried), alone.STEPS)] if (tried := alone.step_rows(found.steps)) else []
    best = sorted(found.rules, key=lambda rule: (rule.excess > 0.0, rule.excess, rule.value))[: alone.RULES_SHOWN]
    rules = pl.DataFrame([_rule(found, rule) for rule in best])
    kept = sum(rule.excess == 0.0 for rule in found.rules)
    text = (
        f"{len(found.rules)} rules were replayed on the past of every log; {kept} keep the promise on all. The "
        f"best {len(best)}:"
    )
    return [
        Section("Each log", "", rows),
        *(part for one in found.logs for part in _of_log(one)),
        *([Section("Beyond the rules", "", steps)] if steps else []),
        Section(
            "The rules on the pasts", text, [(rules, "Changes against easy: the mean over the logs, and on each.")]
        ),
    ]


def _rule(found: Several, rule: Any) -> dict[str, Any]:
    each = {f"on {_name(one)}": alone.change_text(on.value) for one, on in zip(found.logs, rule.on, strict=True)}
    return {
        "rule": rule.name,
        "against easy": alone.change_text(rule.value),
        "kept": "no" if rule.excess else "yes",
        **each,
    }


def _of_log(one: Tuned) -> Sequence[Section]:
    """What the page of one log shows of its later weeks."""
    return [Section(f"{_name(one)}: {part.title}", part.text, part.tables) for part in alone.on_later_weeks(one)]


_LOGS = (
    "The policy's {} on the later weeks of each log, over easy's and over that of the rule that is best on the past "
    "of this log alone; 95 % intervals from 1 000 resamples of whole weeks, paired. Below 1: better."
)


def write_page(found: Several, path: Path) -> None:
    """Write the page of one policy for several logs."""
    names, asked = ", ".join(map(_name, found.logs)), found.logs[0].about["asked"]
    how = (
        f"One policy for {names}: chosen on the first part of each ({asked['after']} of its time), for the least "
        f"{alone.figure_name(OBJECTIVES[found.objective])}, each log counting alike; judged once on the jobs after it."
    )
    title = f"One queue order for {len(found.logs)} logs: {found.chosen}"
    write_report(path, {}, title=title, notes=[*sentences(found), how], sections=sections(found))
