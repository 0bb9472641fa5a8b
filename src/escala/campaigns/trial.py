"""Before the first run: does each log fit each platform, and what decides both? What never can is one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from escala.admit import oversized, refuse
from escala.campaigns.runs import Choice
from escala.errors import EscalaError
from escala.parts import parts_of
from escala.platform import Platform
from escala.policies.run import simulate
from escala.slurm.named import is_slurm
from escala.workload import Workload

DROP = 'drop such jobs with oversized = "drop" in [options]'
LOOK_S = 1.0
"""How long a trial lasts, on the clock of the replay: what decides is asked when the first job comes."""


SIZES = ("depth", "plan_margin_s", "corrections_s", "until_s")
"""Options of which a run can begin with any value or with none: of choices that differ in these values one is tried."""


def refuse_misfits(name: str, jobs: Workload, machine: Platform, choices: Iterable[Choice]) -> None:
    """EscalaError for the first job of a log that can never run on a platform, and for the first choice of policies and
    options that cannot begin there: an agent of another machine, options that exclude one another. name: of the log."""
    where = f"log {name!r} on platform {machine.name!r}"
    try:
        if not len(jobs):
            return
        too_large = oversized(jobs, machine)
        few = _few(jobs, np.flatnonzero(~too_large))
        alike = {_kind(one): one for one in choices}
        for one in alike.values():
            if is_slurm(one.scheduler):
                _refuse_by_slurm(jobs, machine, one)
            elif one.options.oversized == "error":
                refuse(jobs, machine, too_large, DROP, parts_of(jobs, machine))
            if len(few):
                where = f"log {name!r} on platform {machine.name!r} under {one.scheduler} + {one.shutdown}"
                _begun(few, machine, one)
    except EscalaError as error:
        raise EscalaError(f"{where}: {error}") from error


def _kind(one: Choice) -> tuple[Any, ...]:
    """What two choices have in common that can begin or cannot."""
    sizes = {name: getattr(one.options, name) is None for name in SIZES}
    return one.scheduler, one.shutdown, *sorted((one.given | sizes).items(), key=lambda each: each[0])


def _few(jobs: Workload, rows: Any) -> Workload:
    """Of these rows the first, the last, the one that asks for most time, and the first that needs one node."""
    if not len(rows):
        return replace(jobs, jobs=jobs.jobs.clear())
    table = jobs.jobs
    longest, single = table["walltime_s"].to_numpy()[rows].argmax(), table["single_node"].to_numpy()[rows].argmax()
    chosen = sorted({int(row) for row in rows[[0, -1, longest, single]]})
    return replace(jobs, jobs=table[chosen])


def _begun(few: Workload, machine: Platform, one: Choice) -> None:
    """A replay of some jobs until the first has come; other faults than those of the definition are left to the
    runs."""
    given = one.given
    if not is_slurm(one.scheduler):
        first = max(float(few.jobs["submit_s"][0]), one.options.start_s) + LOOK_S
        given["until_s"] = first if one.options.until_s is None else min(first, one.options.until_s)
    try:
        simulate(few, machine, one.scheduler, one.shutdown, **given)
    except EscalaError:
        raise
    except Exception:  # of somebody else's code, whatever it is
        return


def _refuse_by_slurm(jobs: Workload, machine: Platform, one: Choice) -> None:
    from escala.policies.under_slurm import rules_and_order
    from escala.slurm.run import asked_of

    asked_of(jobs, machine, rules_and_order(one.scheduler)[0], one.options, DROP)
