"""What an operator asks of findings, in sentences: the answer first, each figure with its condition."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from escala.bridges.slurm.findings import DAY_S, HOUR_S, KWH_J, LEAST_DAYS, SWITCHING, Findings, waits_by
from escala.platform import Platform

NAMED = 5


LONGER_S = 300.0
"""A wait that is longer by more than this is worth a sentence."""


def answers(
    found: Findings,
    price: float | None = None,
    currency: str = "",
    carbon: float | None = None,
    longer_s: float = LONGER_S,
) -> list[str]:
    """What an operator asks, in sentences; the answer first, each figure with its condition. longer_s: the further wait
    that counts."""
    if found.about.get("mode") in SWITCHING:
        out = [f"Beside Slurm {_switching(found)}"]
        out.append(
            "What that saved is not told by a journal: nobody knows what would have been without it. Ask a meter, or "
            "shadow days before."
        )
    else:
        out = [*_off(found), *_energy(found, price, currency, carbon)]
    if found.acting is not None:
        out.append(
            f"Apart from that, {_switching(found.acting)} They are in none of the other figures, and what they saved "
            "is not known."
        )
    if (acting := found.acting or (found if found.about.get("mode") in SWITCHING else None)) is not None:
        out.append(_kept(acting))
    out += [_longer(found, longer_s), _delayed(found)]
    share, low, high = found.agreement
    if found.asked:
        out.append(
            f"Of {found.asked:,} starts that the policy was asked about it would have done {share:.0%} too "
            f"(95 % interval {low:.0%} to {high:.0%}); {found.how['earlier']:,} jobs it would have started "
            f"before{_by(found.earlier())}, {found.how['later']:,} not yet. It was asked each time about the machine "
            "as Slurm had left it."
        )
    out.append(_shielded(found))
    out += [_expected(found, 6, "the policy's plan"), _expected(found, 7, "Slurm's own estimate")]
    return [*filter(None, out), trust(found)]


def _switching(found: Findings) -> str:
    return (
        f"for {_span(found.sums['watched_s'])}, switching nodes: they were off for "
        f"{_hours(found.sums['truly_off_s'])}, by whomever."
    )


def _kept(found: Findings) -> str:
    """What may have been caused by nodes that were kept off in truth."""
    if not found.kept:
        return "No job was seen to wait for nodes while leases kept some off."
    waits, users = [kept for _, kept in found.kept.values()], len({user for user, _ in found.kept.values()})
    told = f"While leases kept nodes off, {len(waits):,} jobs of {users:,} users waited for nodes"
    return (
        f"{told}: {_three(statistics.mean(waits))} s on average, {_three(max(waits))} s at most. Leases caused no "
        "more, gaps apart."
    )


def _off(found: Findings) -> list[str]:
    sums = found.sums
    told = (
        f"Beside Slurm for {_span(sums['watched_s'])}: {found.about['policies']} would have had nodes off for "
        f"{_hours(sums['off_s'])}"
    )
    share = (
        f", {sums['off_s'] / sums['idle_s']:.0%} of the {_hours(sums['idle_s'])} for which they were on and idle"
        if sums["idle_s"]
        else ""
    )
    return [f"{told}{share}."]


def _energy(found: Findings, price: float | None, currency: str, carbon: float | None) -> list[str]:
    if not Platform.from_spec(found.about["platform"]).has_energy:
        return ["No energy is known: no watts were given (--power)."]
    kwh = found.sums["saved_j"] / KWH_J
    told = f"That saves {_three(kwh)} kWh"
    told += "" if price is None else f", {_three(kwh * price)} {currency}".rstrip()
    told += "" if carbon is None else f", {_three(kwh * carbon / 1000)} kg CO2"
    told += ": against nodes that stay on and idle, with the watts that were given, switches paid for."
    return [f"{told} {_year(found, kwh, price, currency)}"]


def trust(found: Findings) -> str:
    """May an operator trust these figures, and if not, from when on?"""
    wanting = found.wanting()
    if not wanting:
        return "Enough was watched for these figures to be relied on for days like these; other seasons may differ."
    when = [days for _, days in wanting]
    until = (
        "" if None in when else f" At this rate that takes {max(day for day in when if day is not None):.2g} more days."
    )
    return f"Do not decide by these figures yet: wanted are {' and '.join(what for what, _ in wanting)}.{until}"


def conditions(found: Findings) -> list[str]:
    """What the figures leave out."""
    out = [
        f"{found.n_looks:,} looks, {found.n_missed:,} missed; {_span(found.sums['gap_s'])} in gaps, which count "
        "nowhere."
    ]
    out += _guards(found)
    out.append(f"{found.how['unasked']} starts were not asked about: these jobs had ended before the next look.")
    if found.loose:
        loose = f"{found.loose} of {found.jobs} jobs asked for more nodes than their CPUs need"
        out.append(f"{loose}: the policy may have placed them on fewer.")
    out.append(
        "A later start is by the policy's plan at that look, which takes jobs to run as long as they may; or by the "
        "time that a node needs to be switched on, which is the least."
    )
    out.append(
        "Each step is judged alone: what would have followed from another start, only a simulation of the log tells."
    )
    return out


def _guards(found: Findings) -> list[str]:
    """What stood between the policy and the switches that were none in truth."""
    if found.about.get("mode") in SWITCHING:
        return []
    sets = found.guards or [None]
    out, last = list[str](), sets[-1]
    if last is not None:
        most = "" if last.get("most_off") is None else f", {last['most_off']:g} off at most"
        least = f"on for {last['min_on_s']:g} s and off for {last['min_off_s']:g} s at least"
        told = f"{last['spare']:g} spare, {last['switches']:g} a minute, {least}{most}"
        told += f", no wait longer than {last['longest_wait_s']:g} s, {last['allowed']:g} nodes allowed"
        out.append(
            f"Hours off and energy are those of mode power behind its guards: {told}. Guards against failures of the "
            "process itself are taken never to act."
        )
    if None in sets:
        whole = "The journal" if last is None else "A part of the journal"
        out.append(
            f"{whole} is of an Escala that asked no guard before a switch that is none: there hours off and energy "
            "are the most that mode power could have."
        )
    if len(sets) - sets.count(None) > 1:
        out.append("The guards were set otherwise before: each look counts by those of its time.")
    return out


def _span(seconds: float) -> str:
    if seconds >= 2 * DAY_S:
        return f"{_three(seconds / DAY_S)} days"
    return f"{_three(seconds / HOUR_S)} hours" if seconds >= 2 * HOUR_S else f"{_three(seconds / 60)} minutes"


def _three(value: float) -> str:
    """Three digits of a number, and no powers of ten for what a site may save in a year."""
    return f"{float(f'{value:.3g}'):,.12g}"


def _hours(node_s: float) -> str:
    return f"{_three(node_s / HOUR_S)} node-hours"


def _year(found: Findings, kwh: float, price: float | None, currency: str) -> str:
    if found.days < LEAST_DAYS:
        return f"It is not scaled to a year: {LEAST_DAYS:g} days are needed for that."
    yearly = kwh / found.days * 365.25
    money = "" if price is None else f", {_three(yearly * price)} {currency}".rstrip()
    return f"A year of such days: {_three(yearly)} kWh{money}."


def _longer(found: Findings, longer_s: float) -> str:
    users = waits_by(found, "user")
    if not users:
        return ""
    minutes = f"{_three(longer_s / 60)} minutes"
    jobs = sum(later > longer_s for one in users for later in one.changes)
    worst = [one for one in users if one.longest > longer_s]
    told = f"{len(worst)} of {len(users)} users would have waited longer for a job by more than {minutes}"
    if worst:
        told += f": {jobs:,} jobs, at most {_span(worst[0].longest)} ({', '.join(one.name for one in worst[:NAMED])}"
        told += f" and {len(worst) - NAMED} more)" if len(worst) > NAMED else ")"
    spared = sum(min([0.0, *one.changes]) < -longer_s for one in users)
    told += f"; {spared} had a job that would have waited shorter by as much." if spared else "."
    unknown = sum(one.how.total() - len(one.changes) for one in users)
    return f"{told} By how much {unknown} other starts would have moved is not known." if unknown else told


def _delayed(found: Findings) -> str:
    if not found.delays:
        return f"None of {len(found.starts):,} started jobs lay on a node that the policy had off."
    waits = [later for _, later in found.delays.values()]
    users = len({user for user, _ in found.delays.values()})
    return (
        f"{len(waits):,} of {len(found.starts):,} started jobs, of {users:,} users, would have waited for nodes to "
        f"wake: {_three(statistics.mean(waits))} s on average, {_three(max(waits))} s at most."
    )


def _shielded(found: Findings) -> str:
    choices, unlike, over = (found.counts[name] for name in ("choices", "unlike", "overruled"))
    if not choices:
        return ""
    return (
        f"The shield overruled {over} of {choices} choices of the agent ({over / choices:.1%}); {unlike} were "
        "unlike its base's."
    )


def _by(seconds: Sequence[float]) -> str:
    return f" (by {_three(statistics.median(seconds))} s in the median)" if seconds else ""


def _expected(found: Findings, place: int, whose: str) -> str:
    errors = found.errors(place)
    if not errors:
        return ""
    middle, off = statistics.median(errors), statistics.median(map(abs, errors))
    side = "as early as late" if middle == 0 else f"{_three(abs(middle))} s {'late' if middle > 0 else 'early'}"
    told = f"Starts expected by {whose} for {len(errors):,} waiting jobs: {_three(off)} s off in the median, {side}."
    return f"{told} Jobs that end before their limit make plans late."
