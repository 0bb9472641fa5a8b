"""Which options of a run its scheduler and its shutdown policy look at: any other changes nothing."""

from __future__ import annotations

from escala.kernel import codes
from escala.options import Options
from escala.policies.compose import ROLLOUT, scheduler
from escala.policies.plugins import is_plugin
from escala.policies.tuned import PREFIX
from escala.registry import is_trained
from escala.slurm.named import is_slurm

RESERVING = frozenset({codes.EASY, codes.EASY_PRIORITY})
PLANNING = RESERVING | {codes.EASY_FAST, codes.CONSERVATIVE}
NEVER = "never"
ESTIMATES = frozenset({"estimate", "order_estimate"})
SOME = ESTIMATES | {"head", "depth", "rebuild", "plan_margin_s", "corrections_s"}
"""The options that some policies do not look at. All others count in every run."""


def heeded(scheduler_: str, shutdown: str, options: Options | None = None) -> frozenset[str]:
    """Those of `SOME` that a run of these two looks at; a plug-in or an agent as shutdown policy counts as one of
    Escala's, by what a View shows. options: those of the run, since some count only beside others; None: the defaults.

    EscalaError for a scheduler that is unknown here: a trained agent, a plug-in.
    """
    found: set[str] = set()
    if shutdown != NEVER:
        found |= {"plan_margin_s", "estimate", "corrections_s"}
    if is_slurm(scheduler_):
        return frozenset(found)
    if scheduler_.partition(":")[0] == ROLLOUT:  # its bases take the usual options
        return frozenset(found | ESTIMATES | {"plan_margin_s", "corrections_s"})
    chosen = scheduler(scheduler_)
    if chosen.queueing in RESERVING:
        found.add("head")
    if chosen.queueing == codes.CONSERVATIVE:
        found |= {"depth", "rebuild"}
    if chosen.queueing in PLANNING:
        found |= {"plan_margin_s", "estimate", "corrections_s"}
    if chosen.ordering != codes.BY_QUEUE and not chosen.random:
        found |= ESTIMATES
    given = Options() if options is None else options
    if not (given.moves if chosen.estimate is None else Options(estimate=chosen.estimate).moves):
        found.discard("corrections_s")  # no job outlives its estimate
    return frozenset(found - {name for name in ESTIMATES if getattr(chosen, name) is not None})


def unheeded(scheduler_: str, shutdown: str, options: Options) -> frozenset[str]:
    """Those of `SOME` that change nothing in a run of these two. None of them where a folder (an agent, a tuned policy)
    or another package decides: these may look at anything."""
    names = scheduler_, shutdown
    if any(is_plugin(name) or is_trained(name) or name.startswith(PREFIX) for name in names):
        return frozenset()
    return SOME - heeded(scheduler_, shutdown, options)
