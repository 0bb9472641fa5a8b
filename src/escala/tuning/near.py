"""Schedulers near the best rules: with predictions, and with other orders of those who pass."""

from __future__ import annotations

from collections.abc import Sequence

from escala.estimates import LAST2
from escala.policies.tuned import parts_of
from escala.prediction.folder import PREFIX, is_model
from escala.tuning.candidates import GUARDS_H, SCORES
from escala.tuning.choice import Ranked
from escala.workload import Workload

FITTED = "model"
"""The predictor of this name is fitted to the past."""
FOLDER = "model"
TOLD = PREFIX + FOLDER
"""As it stands behind a scheduler's name: a folder within the policy's."""
PREDICTORS = (LAST2, FITTED)
BY_USER = (LAST2,)
"""Predictors that know nothing where users are not known."""
NEAR = 3
"""How many of the best scores are tried with predictions."""
PASSED_BY = ("sjf", "saf", "xfactor")


def named(formula: str, guard: str = "", estimate: str = "", order_estimate: str = "") -> str:
    """A scheduler's name from its parts; see `policies.tuned.parts_of`."""
    given = {"guard": guard, "estimate": estimate, "order_estimate": order_estimate}
    return formula + "".join(f":{key}={value}" for key, value in given.items() if value)


def predicted(rules: Sequence[Ranked], predictors: Sequence[str]) -> list[str]:
    """Names of schedulers with predictions near the best rules: the order by the prediction alone, and the plan too. Of
    the best scores, and of `xfactor`, the best guard and its neighbours; and easy and easy-sjf themselves (EASY+ and
    EASY++ with last2)."""
    near = [rule for score in _best_scores(rules) for rule in _around(score)]
    # plans by a model: slow to replay, and no gain under such a queue
    kept = [one for one in predictors if not is_model(one)]
    found = [named(rule, guard, order_estimate=one) for rule, guard in near for one in predictors]
    found += [named(rule, guard, estimate=one) for rule, guard in near for one in kept]
    return [*(named(plain, estimate=one) for plain in ("easy", "easy-sjf") for one in kept), *found]


def passed(rule: str) -> list[str]:
    """Names of the best rule with other orders of those who pass the first; none where it has no order of its own."""
    said = parts_of(rule)
    formula, guard = said["formula"], said.get("guard", "")
    _, is_queue, score = formula.partition("easy:queue=")
    return [named(f"{formula}:backfill={other}", guard) for other in PASSED_BY if is_queue and other != score]


def _best_scores(rules: Sequence[Ranked]) -> list[tuple[str, str]]:
    """(score, guard) of the best rule of the best scores that keep the promise, and of xfactor."""
    best: dict[str, Ranked] = {}
    for rule in rules:
        score = parts_of(rule.name)["formula"].removeprefix("easy:queue=")
        if score in SCORES and rule.excess == 0.0 and (score not in best or rule.value < best[score].value):
            best[score] = rule
    ordered = sorted(best, key=lambda score: best[score].value)
    chosen = [score for place, score in enumerate(ordered) if place < NEAR or score == "xfactor"]
    return [(score, parts_of(best[score].name).get("guard", "")) for score in chosen]


def _around(best: tuple[str, str]) -> list[tuple[str, str]]:
    """(formula, guard) of a score with its best guard and the two beside it."""
    score, guard = best
    guards = [f"{hours}h" for hours in GUARDS_H]
    at = guards.index(guard) if guard in guards else 0
    return [(f"easy:queue={score}", one) for one in guards[max(at - 1, 0) : at + 2]]


def usable(logs: Sequence[Workload], predictors: Sequence[str]) -> tuple[list[str], str]:
    """(predictors that can say something of every log, what is to be said of the others or of few users)."""
    users = min(log.jobs["user"].drop_nulls().n_unique() for log in logs)
    the = "The log names" if len(logs) == 1 else "A log names"
    if users == 0 and (lost := [one for one in predictors if one in BY_USER]):
        return [one for one in predictors if one not in BY_USER], f"{the} no users: {', '.join(lost)} was not tried."
    one = f"{the} one user only: last2 goes by the last two runs of all jobs."
    return list(predictors), one if users == 1 and LAST2 in predictors else ""
