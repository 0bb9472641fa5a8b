"""The log's own waits beside those of its replays, in sentences and tables for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from escala.metrics.recorded import FACTOR, LEAST_S
from escala.report.quantities import among, count, scale
from escala.report.tables import Cell, Table

Waits = Mapping[str, Any]
THE_LOG = "the log itself"
# of a table by queue: those with the most jobs, and the first; what is left out is said
MOST_QUEUES, MOST_POLICIES = 8, 3
LOST, SLURM = "lost_s", "slurm"
LAST_ALONE = "Utilisation and energy count the last run of each job alone."
LAST_AND_ENERGY = "Utilisation counts the last run of each job alone; energy counts all runs."


def sentence(waits: Mapping[str, Waits], reference: str | None = None) -> str:
    """What to know before the waits of these replays (policy -> `recorded_waits`) are taken for the machine's; "" where
    that of the reference, which stands for what runs there today, resembles the log. reference: by default the
    first."""
    name = _reference(waits, reference)
    if not waits or waits[name]["resembles"]:
        return ""
    alike = [other for other, found in waits.items() if found["resembles"]]
    which, here, other = f"The replay under {name}, the reference, does not resemble", "there", ""
    if len(waits) == 1:
        which, here = "This replay does not resemble", "here"
    elif not alike:
        name = _nearest(waits)
        which, here = "None of these replays resembles", f"under {name}, the nearest"
    else:
        near = _nearest({other: waits[other] for other in alike})
        other = (
            f" That {near} comes nearer ({_means(waits[near])}) says nothing of this machine, unless it runs {near}."
        )
    return (
        f"{which} the log: jobs waited {_means(waits[name], f' in the mean {here}')} ({_counted(waits[name])}). What "
        "it says of waits, and of what they cost, may not hold for this machine: limits and reservations count under "
        "slurm alone, partitions and failures on a site that describes them, and the platform may not be the "
        f"log's.{other} escala calibrate says what does not fit."
    )


def verdict(waits: Mapping[str, Waits]) -> str:
    """`sentence` of these replays, the first as their reference, or that this one is like the log by its mean wait; ""
    where no wait was recorded."""
    told = sentence(waits)
    if told or not waits:
        return told
    name = _reference(waits, None)
    which = "This replay" if len(waits) == 1 else f"The replay under {name}, the reference,"
    return (
        f"{which} is like the log by its mean wait ({_means(waits[name])}; {_counted(waits[name])}): escala calibrate "
        "says whether it stands for the cluster."
    )


def _reference(waits: Mapping[str, Waits], name: str | None) -> str:
    """The replay that is judged first: the one named, where it is there."""
    return name if name is not None and name in waits else next(iter(waits), "")


def _nearest(waits: Mapping[str, Waits]) -> str:
    """The replay whose mean wait is nearest to the log's."""
    return min(waits, key=lambda name: abs(waits[name]["mean_replayed_s"] - waits[name]["mean_recorded_s"]))


def _means(waits: Waits, where: str = "") -> str:
    """Both means: the replay's, and the log's."""
    replayed, recorded = _in_one_unit([waits["mean_replayed_s"], waits["mean_recorded_s"]])
    return f"{replayed}{where}, {recorded} in the log"


def means(waits: Waits) -> str:
    """Both mean waits of one replay, in a line."""
    own, ours = _in_one_unit([waits["mean_recorded_s"], waits["mean_replayed_s"]])
    return f"Mean wait: {own} in the log itself, {ours} here ({_counted(waits)})."


def heading(waits: Waits) -> str:
    """What a table of these waits is."""
    return f"Wait: the log's own and the replay's, over {_counted(waits)}"


def rule() -> str:
    """The rule of `sentence`, in words."""
    return (
        f"A replay resembles its log where the mean waits differ by at most a factor of {FACTOR:g}, or by at most "
        f"{LEAST_S:g} s."
    )


def tables(waits: Mapping[str, Waits]) -> list[Table]:
    """Whose wait in rows, the log first, with mean and median over all jobs; and where the log names queues, the
    largest of them in rows, with the mean waits of the log and of the first replays beside each other."""
    first = next(iter(waits.values()))
    marks = ["", *("" if found["resembles"] else "does not resemble the log" for found in waits.values())]
    who = [Cell(name, mark, plain=True) for name, mark in zip((THE_LOG, *waits), marks, strict=True)]
    sources = [(first, "recorded"), *((found, "replayed") for found in waits.values())]
    columns = [[found[f"{statistic}_{which}_s"] for found, which in sources] for statistic in ("mean", "median")]
    rows = list(zip(who, *([Cell(text) for text in _in_one_unit(values)] for values in columns), strict=True))
    whole = Table([("Whose wait", "", ""), ("Mean", "", ""), ("Median", "", "")], rows, f"{heading(first)}. {rule()}")
    return [whole, _by_queue(waits)] if first["queues"] else [whole]


def _by_queue(waits: Mapping[str, Waits]) -> Table:
    """The mean waits in each of the largest queues: in the log, and in the first replays."""
    every = next(iter(waits.values()))["queues"]
    chosen = list(waits)[:MOST_POLICIES]
    sources = [(waits[chosen[0]], "recorded"), *((waits[name], "replayed") for name in chosen)]
    rows = []
    for entry in every[:MOST_QUEUES]:
        means = _in_one_unit([_of_queue(found, entry["queue"], which) for found, which in sources])
        rows.append([Cell(entry["queue"], plain=True), Cell(count(entry["jobs"])), *map(Cell, means)])
    left = [(len(rows), len(every), "queues (those with the fewest jobs)"), (len(chosen), len(waits), "policies")]
    out = " and ".join(f"{of - n} of {of} {what}" for n, of, what in left if n < of)
    headers = [
        ("Queue", "", ""),
        ("Jobs", "", ""),
        (f"{THE_LOG[:1].upper()}{THE_LOG[1:]}", "", ""),
        *((name, "", "") for name in chosen),
    ]
    return Table(headers, rows, f"Mean wait by queue.{f' Left out: {out}.' if out else ''}")


def _of_queue(found: Waits, queue: str, which: str) -> float:
    """The mean wait in a queue, s; NaN where none of its jobs ended."""
    return next((float(entry[f"mean_{which}_s"]) for entry in found["queues"] if entry["queue"] == queue), math.nan)


def _in_one_unit(waits_s: Sequence[float]) -> list[str]:
    """Waits that are read against each other, in the unit of the largest; see `among`."""
    divisor, unit = scale("s", max((w for w in waits_s if math.isfinite(w)), default=0.0))
    return [among("s", w, divisor, unit) if math.isfinite(w) else "–" for w in waits_s]


def _counted(found: Waits) -> str:
    """The jobs that both waits are of."""
    every = found["jobs"] == found["of"]
    return (
        f"{count(found['jobs'])} jobs"
        if every
        else f"the {count(found['jobs'])} of {count(found['of'])} jobs whose wait was recorded"
    )


def lost_runs(results: Mapping[str, Any]) -> list[str]:
    """A sentence on each run in which jobs lost their nodes, and on what counts the runs that were lost. results:
    policy -> `Result`."""
    found = []
    for name, result in results.items():
        if LOST not in result.jobs.columns:
            continue
        lost = result.jobs[LOST].filter(result.jobs[LOST] > 0)
        if many := len(lost):
            who, minutes = "1 job" if many == 1 else f"{many:,} jobs", lost.sum() / 60
            long = f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:,.1f} h"
            found.append(
                f"{name}: {who} lost nodes to other jobs or to outages; the lost runs lasted {long} in all. "
                + (LAST_ALONE if SLURM in result.manifest else LAST_AND_ENERGY)
            )
    return found
