"""From the settings of a site, and from the scheduler's name, to the numbers of Slurm's rules."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from escala.errors import EscalaError, quoted
from escala.kernel.slurm import preempt
from escala.platform.limits import NO_LIMIT, mode_of
from escala.platform.site import Site
from escala.platform.site_entries import seconds_of
from escala.platform.tres_weights import weights_of
from escala.slurm.named import Rules

ENDLESS_S = 365 * 86400
WEEK_S = 7 * 86400
BY_PARTITION, BY_QOS = "partition_prio", "qos"
KINDS = {BY_PARTITION: preempt.BY_TIER, BY_QOS: preempt.BY_QOS}
RESETS = {"DAILY": 86400, "WEEKLY": WEEK_S}
STARTED_S, EVERY_S, DRIFT_S = -3.87, 1.0014, 0.0011
"""Of all moments within 1 s one at which most recorded runs come out as real daemons ran them; how far apart event
passes are, and by how much the sleeps of backfill are late, in the middle of those runs. docs/how-to/slurm-rules.md"""
AHEAD_S, PACE_S = -0.007, 1.0021
"""Both threads of a slurmctld of 22.05 begin with it: its event passes stand so far beside those of backfill at first;
how far apart they are, where those are known."""
WHOLE_SECONDS = (24, 11)
"""From this version on event passes come at whole seconds of unix time."""


@dataclass(frozen=True)
class Settings(Rules):
    """Slurm's settings, under the names of slurm.conf where they have one. Times in s.

    over_reservation: minutes (ResvOverRun), -1: without end. min_job_age: so long slurmctld knows of jobs that have
    ended, 0: for ever. weight_tres: (TRES, weight) of PriorityWeightTRES.
    max_tres: PriorityFlags=MAX_TRES, a job is billed by its dearest resource.
    started_s: when slurmctld started, on the clock of the workload: steps of priorities, full event passes and kills
    beat from there.
    tick_s: a moment of its event passes, which come once in each tick_every_s; None: beside the start, or where
    `passes_s` are known beside them, and at whole seconds of unix time from 24.11 on. phase_s: when backfill first
    looks, None: bf_interval after the start.
    passes_s: recorded moments of backfill passes, in place of its clock; without started_s and tick_s it started
    bf_interval before. drift_s: by how much each sleep is late. bf_test_s: how long backfill takes for each job that it
    tests, 0: a pass takes no time. With it bf_max_time (s, 0: bf_interval), bf_yield_interval and bf_yield_sleep (us)
    and bf_continue count. version: of Slurm, such as (24, 11); empty: not known.
    queue: a score of `escala.scores.FIXED` or fcfs, in whose order jobs stand, in place of the priorities of site and
    jobs."""

    bf_interval: int = 30
    bf_window: int = 1440 * 60
    bf_resolution: int = 60
    bf_max_job_test: int = 500
    bf_node_space_size: int = 0
    bf_max_job_user: int = 0
    bf_max_job_part: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_start: int = 0
    bf_max_job_array_resv: int = 20
    bf_job_part_count_reserve: int = 0
    bf_min_prio_reserve: int = 0
    bf_min_age_reserve: int = 0
    bf_window_linear: int = 0
    bf_busy_nodes: bool = False
    bf_test_s: float = 0.0
    bf_max_time: int = 0
    bf_yield_interval: int = 2_000_000
    bf_yield_sleep: int = 500_000
    bf_continue: bool = False
    sched_interval: int = 60
    batch_sched_delay: int = 3
    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_max_job_start: int = 0
    pack_serial_at_end: bool = False
    backfill: bool = True
    whole_nodes: bool = False
    memory: bool = False
    by_core: bool = False
    least_loaded: bool = False
    multifactor: bool = False
    accounting: bool = False
    weight_age: int = 0
    weight_size: int = 0
    weight_partition: int = 0
    weight_qos: int = 0
    weight_fair: int = 0
    weight_tres: tuple[tuple[str, float], ...] = ()
    max_tres: bool = False
    fair_tree: bool = True
    half_life: int = WEEK_S
    dampening: int = 1
    reset_every: int = 0
    max_age: int = 7 * 86400
    calc_period: int = 300
    favor_small: bool = False
    small_relative_to_time: bool = False
    normal_partition: bool = True
    normal_qos: bool = True
    kill_wait: int = 30
    over_time: int = 0
    over_reservation: int = 0
    limits: bool = True
    assoc_limit_stop: bool = False
    preempt: str = ""
    preempt_mode: str = "off"
    youngest_first: bool = False
    reorder_count: int = 1
    strict_order: bool = False
    exempt_time: int = 0
    min_exempt_priority: int = 2**32
    job_requeue: bool = True
    requeue_delay: int = 120
    message_timeout: int = 10
    min_job_age: int = 300
    accrue_always: bool = False
    started_s: float | None = None
    tick_s: float | None = None
    tick_every_s: float | None = None
    phase_s: float | None = None
    passes_s: tuple[float, ...] = ()
    drift_s: float = DRIFT_S
    version: tuple[int, ...] = ()
    queue: str = ""
    unread: tuple[str, ...] = field(default=())

    @property
    def fair_share(self) -> bool:
        """Does used core time count? Without slurmdbd Slurm leaves it out."""
        return self.multifactor and self.accounting and self.weight_fair > 0

    @property
    def preempts(self) -> int:
        """May some jobs take nodes from others: by tier or QOS, of `escala.kernel.slurm.preempt`, or 0?"""
        return KINDS.get(self.preempt, 0) if self.preempt_mode != "off" else 0

    def phases(self, epoch_s: float) -> tuple[float, float, float]:
        """(when slurmctld started, a moment of its event passes, how far apart they are), s. epoch_s: unix second of
        the clock's zero."""
        beside = bool(self.passes_s) and self.tick_s is None
        started = self.started_s
        if started is None:
            started = self.passes_s[0] - self.bf_interval if beside else STARTED_S
        if self.version >= WHOLE_SECONDS:
            usual, every = math.ceil(epoch_s) - epoch_s, 1.0
        else:
            first, every = (self.passes_s[0], PACE_S) if beside else (started, EVERY_S)
            usual = first + AHEAD_S
        return (
            started,
            usual if self.tick_s is None else self.tick_s,
            every if self.tick_every_s is None else self.tick_every_s,
        )


PARAMETERS = (
    "bf_interval",
    "bf_resolution",
    "bf_max_job_test",
    "bf_node_space_size",
    "bf_max_job_user",
    "bf_max_job_part",
    "bf_max_job_user_part",
    "bf_max_job_start",
    "bf_max_job_array_resv",
    "bf_job_part_count_reserve",
    "bf_min_prio_reserve",
    "bf_min_age_reserve",
    "bf_window_linear",
    "bf_max_time",
    "bf_yield_interval",
    "bf_yield_sleep",
    "sched_interval",
    "batch_sched_delay",
    "default_queue_depth",
    "partition_job_depth",
    "sched_max_job_start",
    "requeue_delay",
)
"""Numbers of SchedulerParameters that are read under their own names; bf_window is in minutes there."""
PREEMPT_FLAGS, PREEMPT_NUMBERS = ("youngest_first", "strict_order"), ("reorder_count", "min_exempt_priority")
FLAGS = ("bf_busy_nodes", "bf_continue", "pack_serial_at_end", "assoc_limit_stop")
HARMLESS = ("max_rpc_cnt", "max_sched_time", "sched_min_interval")
"""Of requests that come at one time, and of how long an event pass takes; here it takes no time."""
NAMES = {
    "priorityweightage": "weight_age",
    "priorityweightjobsize": "weight_size",
    "priorityweightpartition": "weight_partition",
    "priorityweightqos": "weight_qos",
    "priorityweightfairshare": "weight_fair",
    "fairsharedampeningfactor": "dampening",
    "killwait": "kill_wait",
    "overtimelimit": "over_time",
    "messagetimeout": "message_timeout",
    "minjobage": "min_job_age",
}
LEAST = {
    "bf_interval": 1,
    "bf_resolution": 1,
    "bf_max_job_test": 1,
    "bf_yield_interval": 1,
    "bf_yield_sleep": 1,
    "batch_sched_delay": 0,
    "sched_interval": -1,
    "fairsharedampeningfactor": 1,
}
NOT_MODELLED = {
    "priorityweightassoc": "0",
    "topologyplugin": "topology/none",
    "completewait": "0",
}
"""Settings whose other values are not modelled, with the value that needs no model."""


def settings_of(site: Site) -> Settings:
    """What the site's settings say; what has no model is in `unread`. EscalaError for a number that is none."""
    told = site.settings
    where = f"site {quoted(site.name)}"
    found: dict[str, Any] = {
        name: _whole(told[key], f"{where}, {key}", LEAST.get(key, 0)) for key, name in NAMES.items() if key in told
    }
    unread = [
        f"{key}={told[key]}"
        for key, plain in NOT_MODELLED.items()
        if key in told and told[key].lower() not in (plain, "(null)")
    ]
    found |= parameters(told.get("schedulerparameters", ""), where, unread)
    over = told.get("resvoverrun", "0").lower().removesuffix("min").strip()
    found["over_reservation"] = -1 if over in ("unlimited", "infinite") else _whole(over, f"{where}, resvoverrun")
    found["backfill"] = "builtin" not in told.get("schedulertype", "sched/backfill").lower()
    takes = told.get("selecttypeparameters", "").lower()
    found["whole_nodes"] = site.whole_nodes
    found["memory"] = "memory" in takes
    found["by_core"] = ("core" in takes.replace("cr_core_default", "") or "socket" in takes or not takes) and not found[
        "whole_nodes"
    ]
    found["least_loaded"] = "lln" in takes
    found |= _priorities(told, where)
    found |= _resources(site, where, unread)
    found |= _usage(told, where, unread)
    found |= _preemption(told, where, unread)
    enforced = told.get("accountingstorageenforce", "limits").lower()
    found["version"] = tuple(int(one) for one in re.findall(r"\d+", told.get("slurm_version", ""))[:2])
    found["limits"] = any(word in enforced for word in ("limits", "safe", "all"))
    if not found["limits"] and (
        any(set(one) - NO_LIMIT for one in site.qos_limits.values())
        or any("limits" in one or "user_limits" in one for one in site.accounts.values())
    ):
        unread.append(
            f"limits of QOS and accounts: AccountingStorageEnforce={enforced} has no limits in it, so that Slurm lets "
            "them be"
        )
    return Settings(**found, unread=tuple(unread))


def _priorities(told: Mapping[str, str], where: str) -> dict[str, Any]:
    """The part of multifactor priorities."""
    found: dict[str, Any] = {}
    kind = told.get("prioritytype", "").lower()
    weights = any(told.get(key, "0") not in ("0", "") for key in told if key.startswith("priorityweight"))
    found["multifactor"] = kind.endswith("multifactor") or (not kind and weights)
    found["accounting"] = told.get("accountingstoragetype", "").lower().endswith("slurmdbd")
    for key, name in (("prioritymaxage", "max_age"), ("prioritycalcperiod", "calc_period")):
        if key in told:
            seconds = seconds_of(told[key], f"{where}, {key}")
            found[name] = ENDLESS_S if seconds is None else max(1, int(seconds))
    found["favor_small"] = told.get("priorityfavorsmall", "no").lower() in ("yes", "1", "true")
    flags = told.get("priorityflags", "").upper()
    found["small_relative_to_time"] = "SMALL_RELATIVE_TO_TIME" in flags
    found["normal_partition"] = "NO_NORMAL_PART" not in flags and "NO_NORMAL_ALL" not in flags
    found["normal_qos"] = "NO_NORMAL_QOS" not in flags and "NO_NORMAL_ALL" not in flags
    return found


def _resources(site: Site, where: str, unread: list[str]) -> dict[str, Any]:
    """The part of weighted resources; partitions bill by their own."""
    flags = site.settings.get("priorityflags", "").upper().split(",")
    unread += [f"PriorityFlags={one}" for one in ("MAX_TRES_GRES",) if one in flags]
    for one in site.partitions:
        weights_of(one.tres_billing_weights or "", f"partition {quoted(one.name)}, TRESBillingWeights", unread)
    weights = weights_of(site.settings.get("priorityweighttres", ""), f"{where}, PriorityWeightTRES", unread)
    return {"weight_tres": tuple(weights.items()), "max_tres": "MAX_TRES" in flags}


def _usage(told: Mapping[str, str], where: str, unread: list[str]) -> dict[str, Any]:
    """The part of fair share."""
    found: dict[str, Any] = {}
    if "prioritydecayhalflife" in told:
        seconds = seconds_of(told["prioritydecayhalflife"], f"{where}, prioritydecayhalflife")
        found["half_life"] = 0 if seconds is None else int(seconds)
    reset = told.get("priorityusageresetperiod", "none").upper()
    found["reset_every"] = RESETS.get(reset, 0)
    if reset not in ("NONE", "NOW", *RESETS):
        unread.append(f"PriorityUsageResetPeriod={reset}")
    flags = told.get("priorityflags", "").upper().split(",")
    found["fair_tree"] = "NO_FAIR_TREE" not in flags
    found["accrue_always"] = "ACCRUE_ALWAYS" in flags
    unread += [f"PriorityFlags={one}" for one in ("DEPTH_OBLIVIOUS", "INCR_ONLY") if one in flags]
    if _whole(told.get("priorityweightfairshare", "0"), f"{where}, priorityweightfairshare") and not told.get(
        "accountingstoragetype", ""
    ).lower().endswith("slurmdbd"):
        unread.append("PriorityWeightFairshare: counts only with AccountingStorageType=accounting_storage/slurmdbd")
    return found


def _preemption(told: Mapping[str, str], where: str, unread: list[str]) -> dict[str, Any]:
    """The part of preemption; its parameters stood in SchedulerParameters in older versions, with preempt_ before
    them."""
    kind = told.get("preempttype", "preempt/none").lower().removeprefix("preempt/")
    found: dict[str, Any] = {"job_requeue": told.get("jobrequeue", "1").strip() != "0"}
    if kind not in (BY_PARTITION, BY_QOS):
        unread += [f"PreemptType={told['preempttype']}"] if kind not in ("none", "(null)", "") else []
        return found
    mode = mode_of(told.get("preemptmode", "off") or "off", f"{where}, preemptmode")
    found |= {"preempt": kind, "preempt_mode": mode}
    if mode == "off":
        unread.append(f"PreemptType={kind} without PreemptMode: slurmctld would not start; nobody is preempted")
    unread += ["PreemptMode=SUSPEND: such jobs keep their nodes"] if "suspend" in mode else []
    if "preemptexempttime" in told:
        text = told["preemptexempttime"].strip()
        seconds = 0 if text == "-1" else seconds_of(text, f"{where}, preemptexempttime")
        found["exempt_time"] = ENDLESS_S if seconds is None else int(seconds)
    for one in f"{told.get('preemptparameters', '')},{told.get('schedulerparameters', '')}".lower().split(","):
        key, equals, value = one.strip().removeprefix("preempt_").partition("=")
        if key in PREEMPT_FLAGS:
            found[key] = True
        elif key in PREEMPT_NUMBERS and equals:
            found[key] = _whole(value, f"{where}, {key}")
    return found


def parameters(text: str, where: str, unread: list[str]) -> dict[str, Any]:
    """SchedulerParameters: a list of KEY=VALUE and flags."""
    found: dict[str, Any] = {}
    for one in (part.strip() for part in text.split(",")):
        key, equals, value = one.lower().partition("=")
        if key in PARAMETERS and equals:
            found[key] = _whole(value, f"{where}, {key}", LEAST.get(key, 0))
        elif key == "bf_window" and equals:
            found[key] = 60 * _whole(value, f"{where}, {key}", 1)
        elif key in FLAGS:
            found[key] = True
        elif (
            one
            and key not in HARMLESS
            and key.removeprefix("preempt_") not in (*PREEMPT_FLAGS, *PREEMPT_NUMBERS)
            and one != "(null)"
        ):
            unread.append(f"SchedulerParameters {one}")
    return found


def _whole(text: str, where: str, least: int = 0) -> int:
    try:
        value = int(text)
    except ValueError:
        raise EscalaError(f"{where}: {quoted(text)} is not a whole number") from None
    if not least <= value < 2**31:
        raise EscalaError(f"{where}: {value} is out of range; give at least {least}")
    return value
