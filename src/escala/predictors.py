"""Predictors that are objects: asked by a simulation how long each job will run, when it is submitted."""

from __future__ import annotations

import copy
from typing import Any

from escala.estimates import microseconds_of, name_of_estimate, way_of
from escala.kernel import calls, codes
from escala.policy import History
from escala.sealed import submitted


class Predictors:
    """Those of the simulations of a batch. Each simulation works on a copy of its predictor: what one has seen is not known in another."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        self._copies: dict[int, tuple[Any, Any, History]] = {}

    def ask(self, i: int) -> None:
        """The jobs that were just submitted to simulation i get their lengths. EscalaError for what is no time."""
        if i not in self._copies:
            told = self._simulation.told[i]
            ours = {id(one): copy.deepcopy(one) for one in (told.estimate, told.ordered_by) if way_of(one) == codes.ASKED}
            self._copies[i] = ours.get(id(told.estimate)), ours.get(id(told.ordered_by)), History(self._simulation, i)
        plans, order, view = self._copies[i]
        s = self._simulation.world.s[i, 0]
        for row in range(int(s["told"]), int(s["next_job"])):
            given = self._said(plans, view, i, row)
            calls.tell(self._simulation.table, i, row, given, given if order is plans else self._said(order, view, i, row))

    def _said(self, predictor: Any, view: History, i: int, row: int) -> int:
        """What a predictor says of a job, us."""
        if predictor is None:
            return 0
        job = submitted(self._simulation, i, row)
        limit = int(self._simulation.world.forecast[i, row]["limit"])
        ident = self._simulation.workloads[i].jobs["job_id"][int(self._simulation.casts[i].rows[row])]
        return microseconds_of(predictor.estimate(view, job), limit, name_of_estimate(predictor), ident)
