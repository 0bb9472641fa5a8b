"""From names to plans: a score and a way to walk the queue make a scheduler; a name with a number makes a shutdown
policy."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

from escala.errors import EscalaError, quoted
from escala.estimates import check_estimate
from escala.foresight import plain as text_of
from escala.kernel import codes
from escala.options import Options, Plan
from escala.policies.linear import Multifactor
from escala.policies.plugins import PREFIX as PLUGIN
from escala.policies.queues import ESCALA, ESCALA_RULE, ESTIMATES, KEYS, WAYS, order_of, queue_of
from escala.policies.schedulers import SCHEDULERS, Scheduler
from escala.policies.score_files import PREFIX as SCORE
from escala.policies.shutdown import Inertial, RandomReservation
from escala.policies.slurm_names import ESTIMATE, QUEUE, split_slurm
from escala.policies.tuned import PREFIX, rule_in, shutdown_in
from escala.policy import OFFICIAL
from escala.prediction.folder import PREFIX as MODEL
from escala.slurm.named import NAME as SLURM
from escala.slurm.named import is_slurm
from escala.workload import Workload

PARTS = re.compile(rf"(?:^|(?<=:))((?:{'|'.join(ESTIMATES)})={MODEL}.*?(?=:(?:{'|'.join(KEYS)})=|$)|[^:]*)")
"""The parts of a name between colons; the path of a model's folder may hold some, and goes on to the next key."""

ROLLOUT = "rollout"
"""The look-ahead scheduler outside the kernel (`escala.policies.rollout`); rollout:K samples K futures."""

BY_SLURM = Scheduler(codes.EXTERNAL, name=SLURM)
"""What stands for Slurm's rules (`escala.slurm`) among schedulers: they have a clock of their own, and replay whole
logs only."""

SHUTDOWN_FORMS = (
    "never",
    "timeout:SECONDS",
    "timeout:SECONDS+SPARE",
    "proportional:FRACTION",
    "off-reservation:NODES",
    "hold:FRACTION",
    "hold:FRACTION:if-busy",
    "hold:FRACTION:SECONDS",
    "hold:FRACTION:if-busy:SECONDS",
    "arrivals-known",
    "oracle",
    "inertial",
    "random",
)

OFFICIAL.update(
    {*SCHEDULERS, ESCALA, ROLLOUT, SLURM},
    {form.partition(":")[0] for form in SHUTDOWN_FORMS},
    {prefix.partition(":")[0] for prefix in (PREFIX, SCORE, PLUGIN)},
)

IF_BUSY = "if-busy"
UNCAPPED = "uncapped"
CAP_S = 3600.0
"""No job is held back for longer than this, unless the policy's name says otherwise: walltimes are often days."""
HOLD_FORMS = tuple(form for form in SHUTDOWN_FORMS if form.startswith("hold:"))


EXAMPLES = {"SECONDS": "300", "SPARE": "2", "FRACTION": "0.25", "NODES": "4"}


def _example(form: str) -> str:
    """A form with numbers in place of its words."""
    for word, number in EXAMPLES.items():
        form = form.replace(word, number)
    return form


def scheduler(name: str) -> Scheduler:
    """The scheduler of this name; EscalaError with near names for an unknown one."""
    name = text_of(name)
    if name.startswith(PREFIX):
        return within(name)
    if is_slurm(name):
        from escala.slurm.in_name import changed
        from escala.slurm.settings import Settings

        rest, parts = split_slurm(name)
        changed(Settings(), rest, name)  # refuses wrong keys
        if parts:
            order_under_slurm(name, parts)
        return BY_SLURM
    if name == ESCALA:
        return scheduler(ESCALA_RULE)
    plain, estimates = split_estimates(name)
    if estimates:
        return replace(scheduler(plain), **estimates)
    if ":" in name and name.partition(":")[0] in SCHEDULERS:
        return queue_of(name)
    if name not in SCHEDULERS:
        if name.partition(":")[0] in {form.partition(":")[0] for form in SHUTDOWN_FORMS}:
            raise EscalaError(f"unknown scheduler {quoted(name)}: it is a shutdown policy, give it as --shutdown")
        known = sorted([*SCHEDULERS, ESCALA, ROLLOUT, SLURM])
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise EscalaError(f"unknown scheduler {quoted(name)}: {hint}all {len(known)} are listed by escala policies")
    return SCHEDULERS[name]


def split_estimates(name: str) -> tuple[str, dict[str, Any]]:
    """A scheduler's name without its parts estimate= and order_estimate=, and these. EscalaError for one that is none,
    or given twice."""
    rest, found = list[str](), dict[str, Any]()
    for part in PARTS.findall(name):
        option, equals, value = part.partition("=")
        if not equals or option not in ESTIMATES:
            rest.append(part)
            continue
        if option in found:
            raise EscalaError(f"scheduler {quoted(name)}: {option}= is given twice: give it once")
        check_estimate(value, option)
        found[option] = value
    return ":".join(rest), found


def order_under_slurm(name: str, parts: Mapping[str, str]) -> Scheduler:
    """The scheduler in whose order the queue stands under Slurm's rules, from the parts that its name has for it (see
    `slurm_names.split_slurm`). EscalaError for one that keeps its queue in no single order."""
    score, given = parts[QUEUE], {key: value for key, value in parts.items() if key in ("guard", ESTIMATE)}
    try:
        if ESTIMATE in given:
            check_estimate(given[ESTIMATE], ESTIMATE)
        found = within(score) if score.startswith(PREFIX) else None
    except EscalaError as error:
        raise EscalaError(f"scheduler {quoted(name)}: {error}") from None
    if found is None:
        estimate = given.pop(ESTIMATE, None)
        found = replace(order_of({QUEUE: score, **given}, name), order_estimate=estimate)
    elif given:
        raise EscalaError(f"scheduler {quoted(name)}: {score} says its {' and '.join(given)} itself: leave that out")
    if found.queueing not in WAYS.values() or found.passing != codes.BY_QUEUE:
        raise EscalaError(
            f"scheduler {quoted(name)}: {score} keeps its queue in no single order: one of the form easy:queue=SCORE "
            "is needed"
        )
    linear = found.orders[0]
    if isinstance(linear, Multifactor) and dict(linear.weights).get("fair_share", 0.0) != 0.0:
        raise EscalaError(
            f"scheduler {quoted(name)}: fair_share in {score} is not for Slurm's rules, where fair shares are the "
            "site's own: take that weight out"
        )
    return found


def within(name: str) -> Scheduler:
    """The scheduler of the tuned policy `policy:DIR`; EscalaError where the folder holds none."""
    try:
        return scheduler(rule_in(name))
    except EscalaError as error:
        raise EscalaError(f"scheduler {quoted(name)}: {error}") from None


def _number(text: str, name: str, least: float, most: float, whole: bool = False) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise EscalaError(
            f"shutdown policy {quoted(name)}: {quoted(text)} is not a {'whole ' if whole else ''}number"
        ) from None
    if not least <= value <= most:
        raise EscalaError(f"shutdown policy {quoted(name)}: {text} is out of range ({least:g} to {most:g})")
    return value


def _hold(value: str, name: str) -> dict[str, Any]:
    """Fields of a Plan for what stands behind `hold:`: FRACTION, then perhaps if-busy, then perhaps SECONDS or
    uncapped."""
    fraction, *more = value.split(":")
    fields: dict[str, Any] = {"shutdown": codes.HOLD, "fraction": _number(fraction, name, 0, 1e6), "cap_s": CAP_S}
    if more and more[0] == IF_BUSY:
        fields["if_busy"] = True
        del more[0]
    if more and more[0] == UNCAPPED:
        fields["cap_s"] = math.inf
        del more[0]
    elif more:
        try:
            float(more[0])
        except ValueError:
            raise EscalaError(
                f"shutdown policy {quoted(name)}: {quoted(more[0])} is neither {IF_BUSY}, {UNCAPPED} nor a number of "
                "seconds"
            ) from None
        fields["cap_s"] = _number(more.pop(0), name, 0, 1e10)
    if more:
        raise EscalaError(
            f"shutdown policy {quoted(name)}: {quoted(more[0])} is too much: write "
            f"{' or '.join(_example(form) for form in HOLD_FORMS)}"
        )
    return fields


def hold(fraction: float, if_busy: bool = False, cap_s: float | None = None) -> str:
    """Name of the shutdown policy hold: nodes are woken for a job only when it has waited `fraction` of its walltime,
    or `cap_s` seconds (None: an hour, math.inf: no cap); if_busy: jobs are held only while some job runs. For every
    parameter that takes a shutdown policy."""
    cap = [] if cap_s is None else [UNCAPPED if cap_s == math.inf else _plain(cap_s)]
    parts = [_plain(fraction), *([IF_BUSY] if if_busy else []), *cap]
    name = ":".join(["hold", *parts])
    _hold(":".join(parts), name)
    return name


def _plain(value: Any) -> str:
    """A number as it is written in a name: 0.25, 600."""
    return repr(float(value)).removesuffix(".0") if isinstance(value, Real) else str(value)


def shutdown(name: str, options: Options) -> tuple[dict[str, Any], Any]:
    """(fields of a Plan, policy object or None) for a shutdown policy's name; EscalaError for an unknown one."""
    name = text_of(name)
    if name.startswith(PREFIX):
        return shutdown(shutdown_in(name), options)
    kind, _, value = name.partition(":")
    if kind == "never" and not value:
        return {}, None
    if kind == "timeout" and value:
        seconds, plus, spare = value.partition("+")
        kept = int(_number(spare, name, 0, 1e9, whole=True)) if plus else 0
        return {"shutdown": codes.TIMEOUT, "timeout_s": _number(seconds, name, 0, 1e10), "spare": kept}, None
    if kind == "proportional" and value:
        return {"shutdown": codes.PROPORTIONAL, "fraction": _number(value, name, 0, 1e9)}, None
    if kind == "off-reservation" and value:
        return {"shutdown": codes.OFF_RESERVATION, "target": int(_number(value, name, 0, 1e9, whole=True))}, None
    if kind == "hold" and value:
        return _hold(value, name), None
    if kind == "arrivals-known" and not value:
        return {"shutdown": codes.ARRIVALS}, None
    if kind == "oracle":
        return {"shutdown": codes.ORACLE, "fraction": _number(value, name, 0, 1e6) if value else 0.5}, None
    if kind == "inertial" and not value:
        return {}, Inertial()
    if kind == "random" and not value:
        return {}, RandomReservation(options.seed)
    forms = [form for form in SHUTDOWN_FORMS if form.partition(":")[0] == kind]
    if forms:
        need = (
            f"needs its {forms[0].partition(':')[2].lower()}"
            if ":" in forms[0]
            else f"takes nothing behind its name, not {value!r}"
        )
        raise EscalaError(
            f"shutdown policy {quoted(name)} {need}: write {' or '.join(_example(form) for form in forms)}"
        )
    near = difflib.get_close_matches(kind, [form.partition(":")[0] for form in SHUTDOWN_FORMS], n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise EscalaError(f"unknown shutdown policy {quoted(name)}: {hint}known are {', '.join(SHUTDOWN_FORMS)}")


SHORTEST_S, LONGEST_S = 1e-6, 1e10  # of a period


def external_shutdown(policy: Any, beneath: Any) -> dict[str, Any]:
    """Fields of a Plan for a shutdown policy that is an object. beneath: the name of the one that works beneath it, or
    None."""
    given = getattr(policy, "period_s", 0.0)
    period = float(given) if isinstance(given, Real) and not isinstance(given, bool) else math.nan
    if not (period == 0.0 or SHORTEST_S <= period <= LONGEST_S):
        raise EscalaError(
            f"shutdown policy {type(policy).__name__}: period_s is {quoted(given)}: give seconds from {SHORTEST_S:g} "
            f"to {LONGEST_S:g}, or 0"
        )
    before = bool(getattr(policy, "before_scheduler", False))
    if period > 0 and not before:
        raise EscalaError(f"shutdown policy {type(policy).__name__}: period_s needs before_scheduler = True")
    fields = {"shutdown": codes.POWER_EXTERNAL} if beneath is None else shutdown(beneath, Options())[0]
    periodic = period > 0 and not getattr(policy, "at_events", False)
    return fields | {"pause_before": (2 if periodic else 1) if before else 0, "period_s": period}


def plan_for(chosen: Scheduler | None, fields: dict[str, Any], workload: Workload, options: Options) -> Plan:
    """The kernel's plan for a scheduler (None: an object outside) and the fields of a shutdown policy."""
    if chosen is None:
        return Plan(queueing=codes.EXTERNAL, **fields)
    if chosen is BY_SLURM:
        raise EscalaError(
            "scheduler slurm has rules of its own, which simulate, compare and campaigns run, and a SlurmDesk (escala "
            "serve) asks; not here"
        )
    own = Plan(
        chosen.queueing, **chosen.spans, estimate=chosen.estimate, order_estimate=chosen.order_estimate, **fields
    )
    return replace(own, **chosen.order(workload, options.under(own)))
