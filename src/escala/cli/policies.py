"""The verb policies: every name of a scheduler, a shutdown policy and a generator, with one line each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import typer

from escala.cli import options as opt
from escala.cli.tables import rows_table
from escala.cli.terminal import emit
from escala.foresight import known_by_name

POINTER = "All schedulers and shutdown policies, with one line each: escala policies"

LETTERS = "r: requested time, s; n: cores; s: submission, s"
QUEUE_EXAMPLE = (
    "a queue in order: easy:queue=sjf:backfill=saf:guard=24h; SCORE is one of SCORES; TIME is 24h, 30m, "
    "2d or 90 (seconds)"
)
ROLLOUT_EXAMPLE = "rollout with options: rollout:128:objective=slowdown:base=hold-back:0+sjf-fit:horizon=60"

OWN_LINES = {
    "fcfs": "first come, first served: the first that does not fit blocks all behind it",
    "first-fit": "whatever fits starts, in the order of submission",
    "easy": "the head of the queue has a reservation; others may pass it if they do not delay it",
    "easy-fast": "easy as the reference engine's fast variant: the reservation is a time only",
    "conservative": "every job has a reservation",
    "random": "whatever fits starts, in an order drawn by --seed",
    "packer": "of the jobs that fit, the one whose demand suits best what is free",
    "tetris": "of the jobs that fit, the best of large demand and short time",
    "easy+": "easy:estimate=last2, plans by the mean of the user's last two runs (Tsafrir et al. 2007)",
    "easy++": "easy-sjf:estimate=last2, which tries the others by the same prediction (Tsafrir et al. 2007)",
    "saf": "easy, the others tried by smallest area first (easy-saf)",
    "slurm": "Slurm's event and backfill passes, by the platform's slurm.conf or site.toml (slurm:KEY=VALUE), in its "
    "own order or slurm:queue=SCORE",
    "escala": "easy:queue=escala:guard=24h, a queue in the order of a score that was searched on several logs (docs: "
    "how-to/queue)",
    "rollout": "look-ahead: what fits is tried on sampled futures (rollout:K, K of them, 32; behind it options, "
    "below); some 0.1 s a job",
}
CHANGING = {
    "wfp3": "WFP3: the cube of wait / walltime, times cores",
    "unicep": "UNICEP: wait / (log2(cores) x walltime)",
    "xfactor": "expansion factor: wait / walltime",
}
SHUTDOWNS = {
    "never": "nodes stay on",
    "timeout:SECONDS": "a node that has been idle so long is switched off",
    "timeout:SECONDS+SPARE": "the same, but so many idle nodes are left on",
    "proportional:FRACTION": "idle nodes go off at once; left on are as many as this share of the busy ones",
    "off-reservation:NODES": "so many nodes are kept off",
    "hold:FRACTION": "as timeout:0, and nodes are woken for a job once it has waited this share of its walltime, or "
    "an hour",
    "hold:FRACTION:if-busy": "the same, but a job is held only while some job runs",
    "hold:FRACTION:SECONDS": "as hold:FRACTION, but no job is held longer than so many seconds (SECONDS uncapped: "
    "than that share)",
    "hold:FRACTION:if-busy:SECONDS": "both: held only while some job runs, and no longer than so many seconds",
    "arrivals-known": "as timeout:0, but knows the jobs to come: leaves on what one will use before idling costs as "
    "much as switching",
    "oracle": "knows actual runtimes: wakes nodes only for jobs that would wait long (oracle:SHARE of the walltime; "
    "0.5)",
    "inertial": "the number of nodes kept off follows the backlog (Poquet 2017)",
    "random": "a number of nodes kept off, drawn by --seed each minute",
}
ESTIMATE = "With --estimate runtime every policy is clairvoyant: requested times are the real runtimes then."
IN_NAMES = (
    "Behind a scheduler's name: estimate=last2 (or walltime, runtime, a column, model:DIR), order_estimate= "
    "for the order alone"
)
ROLLOUT_OPTIONS = {
    "objective=NAME": "what it makes small: slowdown, bounded-slowdown or wait (that of escala bound there, else "
    "bounded-slowdown)",
    "base=A+B+...": "what futures are simulated on by: hold-back, hold-back:M, and strict, greedy and easy schedulers "
    "of a fixed order",
    "horizon=N": "at most so many jobs come in a future (40)",
    "depth=N": "at most so many waiting jobs are looked at (100)",
    "choices=N": "at most so many kinds of job are tried at a decision (10)",
    "optimism=SHARE": "of several bases, 1 takes the best in each future, 0 the best in the mean (0)",
    "every=SECONDS": "after a choice to wait, look again at the next multiple of this (after the mean time to the "
    "next event)",
}
"""Options behind the name of rollout, as in rollout:128:objective=slowdown:base=hold-back:0+sjf-fit."""
TRAINED = {
    "agent:DIR": "the trained agent in this folder (escala train)",
    "shield:BASE[:KEY=VALUE...]:agent:DIR": "the same, overruled where a look-ahead by BASE (timeout:300, ...) finds "
    "it worse",
}
IN_FOLDERS = {
    "policy:DIR": "the tuned policy in this folder (escala tune)",
    "agent:DIR": "the trained agent, or team, in this folder (escala train)",
    "shield:BASE[:KEY=VALUE...]:agent:DIR": "the same, of escala/Scheduling-v0, overruled where a look-ahead by BASE "
    "finds a choice worse",
}
"""Schedulers that stand in folders."""


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(policies)


def scheduler_lines() -> dict[str, str]:
    """Name -> what it does, for every scheduler."""
    from escala.policies import SCHEDULERS
    from escala.policies.queues import QUEUE_FORMS
    from escala.scores import FIXED

    orders = {name: _first_line(score).partition(" (")[0].rstrip(".") for name, score in FIXED.items()} | CHANGING
    lines = {}
    for name in [*SCHEDULERS, "escala", "slurm", "rollout"]:
        strict, fit, easy = name.removesuffix("-strict"), name.removesuffix("-fit"), name.removeprefix("easy-")
        if name in OWN_LINES:
            lines[name] = OWN_LINES[name]
        elif easy != name:
            lines[name] = f"easy, the others tried in the order of {easy}"
        elif fit != name:
            lines[name] = f"whatever fits starts, in the order of {fit}"
        else:
            lines[name] = f"{orders[strict]}; the first that does not fit blocks all behind it"
    return lines | QUEUE_FORMS


def generator_lines() -> dict[str, tuple[str, str]]:
    """Name -> what it generates, and its settings with their defaults."""
    from escala.workload.generate import GENERATORS

    lines = {}
    for name, generator in GENERATORS.items():
        settings = [entry for entry in inspect.signature(generator).parameters.values() if entry.name != "seed"]
        lines[name] = (_first_line(generator), " ".join(f"{entry.name}={_shown(entry.default)}" for entry in settings))
    return lines


def _first_line(thing: Callable[..., Any]) -> str:
    """The first sentence of a docstring."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    text = re.sub(r" \(see [^)]*\)", "", text.partition(". ")[0].rstrip("."))
    return re.sub("`([^`]*)`", lambda found: found[1].upper(), text)  # settings stand out in plain text too


def _shown(value: Any) -> str:
    """A default as it is written on the command line."""
    return "NUMBER" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def policies(as_json: opt.Json = False) -> None:
    """Every scheduler, shutdown policy and generator, with one line each."""
    from escala.policies.plugins import listed
    from escala.report import marks
    from escala.scores import FIXED

    schedulers = [{"scheduler": name, "what": what} for name, what in (scheduler_lines() | IN_FOLDERS).items()]
    knows = {name: known_by_name(name) for name in SHUTDOWNS | TRAINED}
    shutdowns = [{"shutdown": name, "knows": knows[name], "what": what} for name, what in (SHUTDOWNS | TRAINED).items()]
    marked = [{"shutdown": marks.shown(row["shutdown"], knows), "what": row["what"]} for row in shutdowns]
    options = [{"option of rollout": name, "what": what} for name, what in ROLLOUT_OPTIONS.items()]
    generators = [
        {"generator": name, "what": what, "settings": settings} for name, (what, settings) in generator_lines().items()
    ]
    others = listed()
    payload = {
        "schedulers": schedulers,
        "rollout": options,
        "shutdowns": shutdowns,
        "generators": generators,
        "plugins": others,
    }
    told: list[Any] = [rows_table(marked), *marks.lines(knows), ESTIMATE]
    orders = QUEUE_EXAMPLE.replace("SCORES", ", ".join((*FIXED, *CHANGING)))
    heads = (LETTERS, orders, IN_NAMES, ROLLOUT_EXAMPLE, "")
    more = [rows_table(others)] if others else []
    emit(as_json, payload, rows_table(schedulers), *heads, rows_table(options), *told, rows_table(generators), *more)
