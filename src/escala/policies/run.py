"""Running: one workload on one platform under one pair of policies. Many pairs side by side:
`escala.policies.pairs`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from escala.admit import met
from escala.errors import EscalaError, waiting
from escala.estimates import foretold
from escala.foresight import Said, known_to, plain, said_by
from escala.kernel import calls, codes
from escala.kernel.clock import SECOND
from escala.kernel.state import SCALARS
from escala.options import Options, Plan, with_options
from escala.partitions import taking
from escala.platform import Platform, read_platform
from escala.platform.told import how
from escala.policies.compose import external_shutdown, plan_for, scheduler, shutdown
from escala.policies.files import policy_files
from escala.policies.named import made, of_role
from escala.policies.plugins import is_plugin, plugin
from escala.policies.queues import ESTIMATES
from escala.policies.schedulers import Scheduler, is_own
from escala.policy import ClairvoyantView, Commands, View, as_policy, counts_of, is_insider, name_of
from escala.prediction.folder import model_columns
from escala.result import Result
from escala.sealed import Budget, Command
from escala.simulation import Simulation
from escala.slurm.named import is_slurm
from escala.unseen import of_all, takes_pool
from escala.workload import Workload, read_workload

Progress = Callable[[float], None]  # share done, 0..1

# Decisions in a row between which no job is submitted, started or ended.
# so many on an idle machine while jobs wait, and nothing is to come: the policy will never start them
PATIENCE = 100_000
SHORTEST_S = 1000.0  # so many within less than this: the policy asks every 10 ms or more often, for ever
MOST_ASKED = 10_000_000  # so many at any distance
WAITS = "waits"
TURNS = {codes.DECISION: "scheduler", codes.BEFORE: "shutdown", codes.AFTER: "shutdown"}
COUNTS = SCALARS.names.index("next_job")  # type: ignore[union-attr]
assert SCALARS.names[COUNTS : COUNTS + 3] == ("next_job", "n_ended", "n_queued")  # type: ignore[index]


@dataclass(frozen=True)
class Pair:
    """A scheduler and a shutdown policy, ready to run: the kernel's plan, and what decides outside the kernel. said: by
    role, the name of what decides inside it, or what the object said of itself (`escala.foresight.Said`)."""

    plan: Plan
    scheduler: Any
    shutdown: Any
    name: str
    said: Mapping[str, Any]

    def sees_runtimes(self, role: str) -> bool:
        """Is the object of this role shown the run times?"""
        return isinstance(self.said[role], Said) and bool(self.said[role].clairvoyant)

    def knows(self, *estimates: Any) -> str:
        """What the two and the estimates know of the future."""
        return known_to(self.said["scheduler"], self.said["shutdown"], *estimates)


def pair(workload: Workload, scheduler_: Any, shutdown_: Any, options: Options) -> Pair:
    """Resolve names and objects; EscalaError for what is neither."""
    scheduler_, shutdown_ = plain(scheduler_), plain(shutdown_)
    inside = isinstance(scheduler_, Scheduler)
    if inside and not is_own(scheduler_):
        raise EscalaError(
            f"{name_of(scheduler_)} orders the queue by code that is not Escala's own: write a policy, decide(view, "
            "act)"
        )
    outside = None if inside else _outside(scheduler_, options)
    chosen = (
        scheduler_ if inside else scheduler(scheduler_) if isinstance(scheduler_, str) and outside is None else None
    )
    fields = dict[str, Any]()
    if isinstance(shutdown_, str):
        power = made(shutdown_, "shutdown", options)
        fields = shutdown(shutdown_, options)[0] if power is None else fields
    else:
        power = of_role(as_policy(shutdown_), "shutdown")
    said = {
        "scheduler": scheduler_ if outside is None else said_by(outside),
        "shutdown": shutdown_ if power is None else said_by(power),
    }
    if power is not None:
        fields = external_shutdown(power, said["shutdown"].beneath)
        if is_insider(power) and hasattr(power, "beside"):
            power.beside(chosen)  # it looks ahead by the scheduler of the run
    name = f"{name_of(scheduler_)} + {name_of(shutdown_)}"
    return Pair(plan_for(chosen, fields, workload, options), outside, power, name, said)


def _outside(scheduler_: Any, options: Options) -> Any:
    """The object behind a scheduler that decides outside the kernel; None for a name of the kernel's."""
    found = (
        made(scheduler_, "scheduler", options)
        if isinstance(scheduler_, str)
        else of_role(as_policy(scheduler_), "scheduler")
    )
    return None if isinstance(found, Scheduler) else found


Log = list[Command]


def decider(
    policy: Any, simulation: Simulation, i: int, log: Log | None, sees_runtimes: bool = False
) -> Callable[[], None]:
    """One decision of a policy. Escala's own compiled policies get the simulation; all others a View and Commands."""
    budget = Budget()
    act = Commands(simulation, i, log, budget)
    decide, known = policy.decide, tuple[Any, ...]()
    if is_insider(policy):
        policy.begin_run()
        decide, known = policy.decide_inside, (simulation, i)
    else:
        known = ((ClairvoyantView if sees_runtimes else View)(simulation, i, budget),)

    def turn() -> None:
        budget.renew(simulation, i)
        decide(*known, act)

    return turn


class _Progress:
    """Counts decisions in a row between which no job was submitted, started or ended. Limits: see MOST_ASKED,
    SHORTEST_S and PATIENCE."""

    def __init__(self, simulation: Simulation, i: int) -> None:
        self._simulation, self._i = simulation, i
        self._counts = simulation.world.s.view(np.int64)[i, COUNTS : COUNTS + 3]
        self._asked, self._since, self._seen = 0, 0, b""

    def lost(self) -> str:
        """After a decision: why the run will never end, or does not get on; "" while it may."""
        w, i = self._simulation.world, self._i
        seen = self._counts.tobytes()
        if seen != self._seen:
            self._seen, self._asked, self._since = seen, 0, w.s["now"].item(i)
            return ""
        self._asked += 1
        if self._asked < PATIENCE:
            return ""
        s = w.s[i, 0]
        if s["n_ends"] + s["n_starts"] == 0 and s["next_job"] == w.o[i, 0]["n_jobs"] and s["n_queued"] > 0:
            return WAITS
        spent = (s["now"] - self._since) / SECOND
        return (
            f"{self._asked:,} decisions within {spent:.6g} s" if spent < SHORTEST_S or self._asked >= MOST_ASKED else ""
        )


def run(
    simulation: Simulation,
    i: int,
    chosen: Pair,
    progress: Progress | None = None,
    log: dict[str, list[Command]] | None = None,
) -> None:
    """Run simulation i to its end: the only rollout loop. log: gets the commands given from outside, "scheduler" and
    "shutdown"."""
    asked = {"scheduler": chosen.scheduler, "shutdown": chosen.shutdown}
    turns = {
        who: decider(policy, simulation, i, None if log is None else log.setdefault(who, []), chosen.sees_runtimes(who))
        for who, policy in asked.items()
        if policy is not None
    }
    counted = _Progress(simulation, i)
    horizon = _horizon(simulation, i) if progress is not None else None
    step = 0
    while True:
        until = None if horizon is None else horizon * (step + 1) / 100.0
        stop = simulation.advance(i, None if step >= 100 else until)
        if stop == codes.DONE:
            break
        if stop == codes.NONE:
            step += 1
            if progress is not None:
                progress(min(step / 100.0, 0.99))
        elif stop in TURNS:
            turns[TURNS[stop]]()
            why = counted.lost()
            if why:
                raise _stuck(simulation, i, chosen, why)
        else:
            raise _stuck(simulation, i, chosen, WAITS)
    if progress is not None:
        progress(1.0)


def _stuck(simulation: Simulation, i: int, chosen: Pair, found: str) -> EscalaError:
    """What to say when jobs wait and nothing more will happen, or policies ask for decisions without end."""
    if found != WAITS:
        now = simulation.world.s["now"].item(i) / SECOND
        return EscalaError(
            f"{chosen.name}: {found}, at {now} s, and no job is submitted, started or ended: ask less often (call_at, "
            "period_s)"
        )
    queued = int(simulation.world.s[i, 0]["n_queued"])
    kept = int((simulation.world.node[i]["held"] == 1).sum())
    gone = int((simulation.closing.away > 0).sum()) if simulation.closing is not None else 0
    nodes = simulation.platform.n_nodes
    why = [f"its shutdown policy keeps {kept} of {nodes} nodes off"] if kept else []
    why += [f"{gone} of {nodes} nodes are down or drained and never come back ([[closed]])"] if gone else []
    if not kept:
        why.append("the scheduler starts nothing, and asks for no decision (call_at) that would change that")
    return EscalaError(f"{chosen.name}: {waiting(queued)} and nothing will ever happen again: {'; '.join(why)}")


def _horizon(simulation: Simulation, i: int) -> float:
    """Time of the last submission, s."""
    submits = simulation.admitted[i].submit_us
    return float(submits[-1]) / 1e6 if len(submits) else 0.0


def read(workload: Any, platform: Any) -> tuple[Workload, Platform]:
    """A workload and a platform, read where a path or a spec was given."""
    loaded = workload if isinstance(workload, Workload) else read_workload(workload)
    return loaded, platform if isinstance(platform, Platform) else read_platform(platform)


def check_power(machine: Platform, shutdowns: Iterable[Any], start_off: bool = False) -> None:
    """EscalaError where nodes are to be switched and none can: no power profile has the times of a switch."""
    told = [policy for policy in shutdowns if not _is_never(policy)]
    for policy in told:
        if not isinstance(policy, str):
            of_role(as_policy(policy), "shutdown")
    asked = [f"shutdown policy {name_of(policy)}" for policy in told] + ["start_off"] * start_off
    if asked:
        needs_switches(machine, asked[0])


def needs_switches(machine: Platform, what: str) -> None:
    """EscalaError where no node of the platform can switch off, which this is to do."""
    if not machine.has_profile:
        raise EscalaError(
            f"{what} needs a power profile, for the times of a switch; platform {machine.name!r} has none: "
            f"{how(machine)}"
        )
    if not machine.has_switches:
        raise EscalaError(
            f"{what}: no node of platform {machine.name!r} can switch off: its power profile lacks the watts of off "
            "and of switching and the times; give all seven (--power "
            "computing=W,idle=W,off=W,switching_off=W,switching_on=W,switch_off_s=S,switch_on_s=S) or a preset"
        )


def _is_never(policy: Any) -> bool:
    return isinstance(policy, str) and policy == "never"


def simulate(
    workload: Any,
    platform: Any,
    scheduler: Any = "easy",
    shutdown: Any = "never",
    *,
    progress: Progress | None = None,
    decisions: bool = False,
    **options: Any,
) -> Result:
    """Replay a workload on a platform.

    workload: a `Workload`, or a path. platform: a `Platform`, or a spec ("orion", "100x1", a file). scheduler,
    shutdown: names (see docs/design.md), agents, functions of (view, act), or objects with `decide`; on a platform
    without a power profile nodes stay on, so that shutdown can only be "never". decisions: record the commands of
    policies outside the
    kernel, as the Result's table `decisions`. options: fields of `escala.simulation.Options`. Raises
    EscalaError: unknown names, jobs that can never run, policies without progress.
    """
    loaded, machine = read(workload, platform)
    scheduler, shutdown = plain(scheduler), plain(shutdown)
    chosen_options = with_options(Options(), **_with_predictors(options))
    check_power(machine, [shutdown], chosen_options.start_off)
    return simulate_loaded(loaded, machine, scheduler, shutdown, chosen_options, progress, decisions)


def _with_predictors(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in which predictors of other packages stand as objects."""
    return {
        k: plugin(v, "predictor") if k in ESTIMATES and is_plugin(v) else v
        for k, v in ((k, plain(v)) for k, v in options.items())
    }


def simulate_loaded(
    loaded: Workload,
    machine: Platform,
    scheduler: Any,
    shutdown: Any,
    chosen_options: Options,
    progress: Progress | None,
    decisions: bool,
) -> Result:
    """See `simulate`; a log that is read, and options in one."""
    if is_slurm(scheduler):
        if not _is_never(shutdown):
            raise EscalaError(f"scheduler slurm leaves nodes on: give shutdown 'never', not {name_of(shutdown)}")
        from escala.policies.under_slurm import simulate_slurm

        return simulate_slurm(loaded, machine, scheduler, chosen_options, progress)
    loaded = met(loaded, machine)
    chosen = pair(loaded, scheduler, shutdown, chosen_options)
    if decisions and chosen.scheduler is None and chosen.shutdown is None:
        raise EscalaError(
            f"{chosen.name} decides inside the kernel and records no commands: what it did is in the tables jobs and "
            "nodes"
        )
    log: dict[str, list[Command]] | None = {} if decisions else None
    told = chosen_options.under(chosen.plan)
    knows = chosen.knows(told.estimate, told.ordered_by, *foretold(told.columns(chosen.plan), loaded.jobs))
    began = time.perf_counter()
    pool = takes_pool(chosen.scheduler) or takes_pool(chosen.shutdown)
    simulation = Simulation(loaded, machine, chosen.plan, chosen_options, partitions=not pool, closes=True)
    run(simulation, 0, chosen, progress, log)
    about: dict[str, Any] = {
        "scheduler": name_of(scheduler),
        "shutdown": name_of(shutdown),
        "knows": knows,
        "elapsed_s": time.perf_counter() - began,
    }
    roles = {
        "scheduler": scheduler,
        "shutdown": shutdown,
        "estimate": told.estimate,
        "order_estimate": told.order_estimate,
    }
    looked_at = told.columns(chosen.plan) | model_columns(told.estimate) | model_columns(told.ordered_by)
    looked_at |= set(taking(loaded.jobs, machine))
    if columns := loaded.column_digests(looked_at, of_all(simulation.unseen[0])):
        about["columns"] = columns
    if objects := [role for role, given in roles.items() if given is not None and not isinstance(given, str)]:
        about["objects"] = objects
    if counts := counts_of(one for one in (chosen.scheduler, chosen.shutdown) if is_insider(one)):
        about["counts"] = counts
    if files := policy_files(scheduler, shutdown, chosen_options):
        about["policy_files"] = files
    result = simulation.result(0, about)
    if log is not None:
        result.decisions = _decisions(log, loaded.jobs["job_id"][simulation.admitted[0].rows])
    simulation.forget()
    return result


def _decisions(log: dict[str, list[Command]], job_ids: pl.Series) -> pl.DataFrame:
    """time_s, by (scheduler or shutdown), command, job_id, value (node, nodes or time, as the command has it), refusal
    ("": carried out)."""
    rows = sorted(((c, who) for who, commands in log.items() for c in commands), key=lambda row: row[0].time_us)
    schema = {
        "time_s": pl.Float64,
        "by": pl.String,
        "command": pl.String,
        "job_id": pl.String,
        "value": pl.Float64,
        "refusal": pl.String,
    }
    return pl.DataFrame(
        [
            (
                c.time_us / SECOND,
                who,
                calls.NAMES[c.kind],
                job_ids[c.a] if c.kind in (calls.START, calls.START_ON) and 0 <= c.a < len(job_ids) else None,
                {calls.START: None, calls.START_ON: float(c.b), calls.TIMER: c.a / SECOND}.get(c.kind, float(c.a)),
                c.refusal,
            )
            for c, who in rows
        ],
        schema=schema,
        orient="row",
    )
