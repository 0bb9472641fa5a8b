"""Predictors: asked by a simulation how long each job will run, when it is submitted. Models (`escala.prediction`) work
inside, on the simulation's tables; objects of a user get a view."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from escala.estimates import microseconds_of, name_of_estimate, way_of
from escala.kernel import calls, codes
from escala.options import Options
from escala.policy import History
from escala.prediction.inside import say_of, works_inside
from escala.sealed import Budget, submitted

Say = Callable[[int, int], Any]
"""Rows first to last, submitted now -> us of each, as an iterable: the next is asked for when the one before has been
told."""


def by_model(told: Options) -> bool:
    """Is a model asked, which looks at what users have?"""
    return any(works_inside(one) for one in (told.estimate, told.ordered_by))


class Predictors:
    """Those of the simulations of a batch. Each simulation works on a copy of its predictor: what one has seen is not
    known in another."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        self._begun: dict[int, tuple[Say, Say]] = {}
        for i, told in enumerate(simulation.told):  # what is wrong with a model is said before the run
            if any(way_of(one) == codes.ASKED and isinstance(one, str) for one in (told.estimate, told.ordered_by)):
                self._begun[i] = self._begin(i)

    def ask(self, i: int) -> None:
        """The jobs that were just submitted to simulation i get their lengths. EscalaError for what is no time."""
        if i not in self._begun:
            self._begun[i] = self._begin(i)
        plans, order = self._begun[i]
        s, table = self._simulation.world.s[i, 0], self._simulation.table
        first, last = int(s["told"]), int(s["next_job"])
        both = (
            ((us, us) for us in plans(first, last))
            if order is plans
            else zip(plans(first, last), order(first, last), strict=True)
        )
        for row, (planned, ordered) in enumerate(both, first):
            calls.tell(table, i, row, int(planned), int(ordered))

    def forget(self) -> None:
        """Nothing more will be asked."""
        self._begun.clear()

    def _begin(self, i: int) -> tuple[Say, Say]:
        """What says the lengths for plans and for the order; one and the same where both are of one predictor."""
        told = self._simulation.told[i]
        says = {id(one): self._say(one, i) for one in (told.estimate, told.ordered_by)}
        return says[id(told.estimate)], says[id(told.ordered_by)]

    def _say(self, estimate: Any, i: int) -> Say:
        """How this estimate is asked for its lengths."""
        if way_of(estimate) != codes.ASKED:
            return lambda first, last: [0] * (last - first)
        if (inside := say_of(estimate, self._simulation, i)) is not None:
            return inside
        predictor, budget = copy.deepcopy(estimate), Budget()
        view = History(self._simulation, i, budget)

        def said(row: int) -> int:
            budget.renew(self._simulation, i)
            return self._said(predictor, view, i, row)

        return lambda first, last: map(said, range(first, last))

    def _said(self, predictor: Any, view: History, i: int, row: int) -> int:
        """What a predictor says of a job, us."""
        job = submitted(self._simulation, i, row)
        limit = int(self._simulation.world.forecast[i, row]["limit"])
        ident = self._simulation.workloads[i].jobs["job_id"][int(self._simulation.admitted[i].rows[row])]
        return microseconds_of(predictor.estimate(view, job), limit, name_of_estimate(predictor), ident)
