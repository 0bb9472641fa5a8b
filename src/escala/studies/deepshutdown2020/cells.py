"""The pieces of the study `deepshutdown2020`: fixed policies on days, training and judging a shutdown agent. Each gives
plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from escala.agents.presets import ORDERED_HOLDS
from escala.agents.training.reference_returns import Ruled
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.policies import hold
from escala.policies.compose import IF_BUSY, UNCAPPED
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.days import DAY_S, Choose, Rows, played, simulated
from escala.studies.lab.searched import SEEN, options_of
from escala.workload import Workload, day_group, describe

HOLDS = tuple(f"hold:{x:g}" for x in ORDERED_HOLDS[1:])
FIXED = ("timeout:0", "timeout:60", "timeout:300", "never", "oracle", *HOLDS)
VARIANTS = (
    *(hold(x, if_busy=True) for x in (0.1, 0.25, 0.5)),
    *(hold(0.5, cap_s=60.0 * minutes) for minutes in (10, 20, 60)),
    hold(0.25, if_busy=True, cap_s=1200.0),
    "arrivals-known",
)
"""Rules beside the frontier of hold(x): held only while some job runs, held so long at most, and T(0) that knows the
coming arrivals."""
RANDOM = "random"
SHOWN = ("timeout:0", "timeout:60", "timeout:300", "oracle", "hold:0.25")
"""What figures 20, 22 and 23 show beside the agent."""
WINDOWS = ("cut", "drain")
RUNS = 4  # of a policy that draws its choices
TAU = 0.5
LOOKED_AT = 4  # every so many of the validation days are looked at while MaskablePPO trains
COLUMNS = (
    "waste_j", "energy_j", "span_s", "transitions", "jobs", "unstarted", "wait_s", "stretch", "delay_s", "delay_each_s",
    "slowdown", "pp_slowdown", "late", "waited",
)  # fmt: skip
Given = dict[str, Any]


def as_published(policy: str) -> str:
    """Escala's name of a rule of this study, whose hold(x) has no cap but where its name says so."""
    return (
        policy if not policy.startswith("hold:") or set(policy.split(":")[2:]) - {IF_BUSY} else f"{policy}:{UNCAPPED}"
    )


def columns_of(rows: Rows, runs: int = 1) -> dict[str, list[float]]:
    """Columns [days], means over the runs of a day."""
    days = len(rows) // runs
    return {
        c: np.array([row[c] for row in rows]).reshape(runs, days).mean(axis=0).tolist() for c in COLUMNS if c in rows[0]
    }


def _slowdowns(day: Workload, start: Any) -> list[float]:
    """Bounded slowdown of each job; one that did not start has waited until the day's end, so that its slowdown is at
    least this."""
    ran = np.minimum(day.jobs["runtime_s"].to_numpy(), day.jobs["walltime_s"].to_numpy())
    begun = np.where(np.isnan(start), DAY_S, start)
    value = np.maximum((begun - day.jobs["submit_s"].to_numpy() + ran) / np.maximum(ran, 10.0), 1.0)
    return [round(float(v), 4) for v in value]


def fixed(
    source: Given, part: str, policies: Sequence[str], windows: Sequence[str] = WINDOWS, jobs: Sequence[str] = ()
) -> dict[str, Any]:
    """Shutdown policies by name under SAF: window -> policy -> columns; "jobs": policy -> slowdown of every job, of
    those named in `jobs`, with the days cut. The window "seen" is as long as a search sees of a day."""
    one = inputs.days(**source)
    out: dict[str, Any] = {window: {} for window in windows} | {"jobs": {}}
    for window in windows:
        for policy in policies:
            rows, starts = simulated(getattr(one, part), one.platform, "saf", as_published(policy), *_until(window))
            out[window][policy] = columns_of(rows)
            if policy in jobs and window == "cut":
                out["jobs"][policy] = [
                    v for day, start in zip(getattr(one, part), starts, strict=True) for v in _slowdowns(day, start)
                ]
    return out


def delays(source: Given, policies: Sequence[str]) -> dict[str, Any]:
    """Shutdown policies under SAF on every day of an input, cut at 24 h: policy -> columns, for R3's delay, which is
    over all parts."""
    one = inputs.days(**source)
    days = [*one.train, *one.validation, *one.test]
    kept = ("jobs", "delay_s", "delay_each_s")
    found = {
        policy: columns_of(simulated(days, one.platform, "saf", as_published(policy), "cut")[0]) for policy in policies
    }
    return {policy: {name: columns[name] for name in kept} for policy, columns in found.items()}


def _until(window: str) -> tuple[str, float]:
    """The end of a day, for `simulated`: cut or drain, and s."""
    return ("cut", DAY_S * (1.0 + SEEN["drain_days"])) if window == "seen" else (window, DAY_S)


def description(source: Given) -> dict[str, Any]:
    """Figures of an input (R3 tables 2 and 3): its days, and every job's gap to the one before it on the same day and
    its runtime, on the held-out days."""
    one = inputs.days(**source)
    parts = {part: getattr(one, part) for part in ("train", "validation", "test")}
    out: dict[str, Any] = {"cores": one.platform.total_cores, "nodes": one.platform.n_nodes, "groups": list(one.groups)}
    out["train_groups"] = list(one.train_groups)
    for part, days in parts.items():
        out[part] = {
            "days": len(days),
            "jobs": [len(day) for day in days],
            "group": [day_group(day) for day in days],
            "sequential": [_sequential(day) for day in days],
            "load": [_load(day, one.platform.total_cores) for day in days],
            "users": [day.jobs["user"].n_unique() for day in days],
        }
    out["gap_s"] = [float(g) for day in one.test for g in [-1.0, *np.diff(day.jobs["submit_s"].to_numpy())]]
    out["runtime_s"] = [float(r) for day in one.test for r in np.minimum(day.jobs["runtime_s"], day.jobs["walltime_s"])]
    return out


def analysis(name: str, traces: str | None, days: int) -> dict[str, Any]:
    """Figures of a whole log (R3 table 2, figure 11): a generated one of so many days, or a real one that is one file;
    nothing else has a calendar."""
    log = inputs.whole_log(name, traces, days)
    if log is None:
        return {}
    found = describe(log)
    names = (
        "jobs",
        "users",
        "cores",
        "period_days",
        "jobs_per_day",
        "utilisation",
        "sequential_share",
        "error_share",
        "years",
    )
    return {what: found[what] for what in names}


def _sequential(day: Workload) -> float:
    """Share of the submissions that come less than 5 min after the one before."""
    submit = day.jobs["submit_s"].to_numpy()
    return float((np.diff(submit) < 300.0).sum() / len(submit))


def _load(day: Workload, cores: int) -> float:
    ran = np.minimum(day.jobs["runtime_s"].to_numpy(), day.jobs["walltime_s"].to_numpy())
    return float((ran * day.jobs["cores"].to_numpy()).sum() / cores / 86400.0)


def drawn(agent: Any, seed: int) -> Choose:
    """The sampled policy."""
    random = np.random.default_rng([seed, 0x5A])
    return lambda seen, mask: agent.act(seen, mask, random)


def judged(
    agent: Any,
    days: Sequence[Workload],
    platform: Any,
    seed: int,
    windows: Sequence[str] = WINDOWS,
    drain_days: float = 7.0,
) -> dict[str, Any]:
    """An agent on days: window -> columns of the sampled policy (means of RUNS runs) and of its greedy actions, and how
    often each choice was taken. drain_days: after the first, at most."""
    options = agent.env_options | {"tau": TAU, "drain_days": drain_days}
    out: dict[str, Any] = {}
    for window in windows:
        batch = OffReservationBatch(RUNS * len(days), list(days), platform, **options | {"window": window})
        rows, _, _ = played(batch, drawn(agent, seed), days, RUNS)
        batch = OffReservationBatch(len(days), list(days), platform, **options | {"window": window})
        greedy, starts, choices = played(batch, lambda seen, mask: agent.act(seen, mask, None), days)
        out[window] = {"sampled": columns_of(rows, RUNS), "likeliest": columns_of(greedy), "choices": choices}
        if window == "cut":
            out["jobs"] = [v for day, start in zip(days, starts, strict=True) for v in _slowdowns(day, start)]
    return out


def constants(source: Given, part: str, windows: Sequence[str] = WINDOWS) -> dict[str, Any]:
    """Every constant choice of `hold` in the environment itself, drained and cut, or "seen": as long as a search sees
    of a day. Columns with what the rewards are made of."""
    one = inputs.days(**source)
    days = getattr(one, part)
    out: dict[str, Any] = {}
    for window in windows:
        ended = SEEN if window == "seen" else {"window": window}
        batch = OffReservationBatch(
            len(days), list(days), one.platform, action="hold", holds=ORDERED_HOLDS, tau=TAU, **ended
        )
        for k, x in enumerate(ORDERED_HOLDS):
            rows, _, _ = played(batch, lambda seen, mask, k=k: np.full(len(seen), k), days)  # type: ignore[misc]
            out.setdefault(window, {})[f"hold:{x:g}"] = columns_of(rows)
    return out


def by_r3(source: Given) -> dict[str, Any]:
    """Columns of a policy that holds a random number of nodes each minute (R3's action, which its learner begins with
    at random), and of OR*, on the validation days, cut."""
    one = inputs.days(**source)
    shape: dict[str, Any] = {"action": "count", "tau": TAU}
    batch = OffReservationBatch(RUNS * len(one.validation), list(one.validation), one.platform, **shape)
    random = np.random.default_rng(0xC4A)
    rows, _, _ = played(
        batch, lambda seen, mask: (random.random(mask.shape) * mask).argmax(axis=1), one.validation, RUNS
    )
    ruled = Ruled(OffReservationBatch(len(one.validation), list(one.validation), one.platform, **shape), "oracle")
    last = int(ruled.action_space.n) - 1
    known, _, _ = played(ruled, lambda seen, mask: np.full(len(seen), last), one.validation)
    return {RANDOM: columns_of(rows, RUNS), "oracle": columns_of(known)}


def _done(keep: str) -> Any:
    """The agent that an interrupted study has finished, or None."""
    from escala.agents import load_agent
    from escala.agents.checkpoint import ended

    return load_agent(keep) if ended(keep) else None


def searched(
    source: Given,
    worth: float,
    seed: int,
    generations: int,
    population: int,
    days_each: int,
    keep: str,
    parts: Sequence[str],
) -> dict[str, Any]:
    """Search an agent by whole days (`escala.agents.search`) and judge it. worth: what waiting costs, see
    `escala.studies.lab.searched`."""
    from escala.agents import search

    one = inputs.days(**source)
    agent = search(
        one.train, one.platform, validation=one.validation, generations=generations, population=population,
        days_each=days_each, seed=seed, out=keep, **options_of(one.train, one.platform, worth),
    )  # fmt: skip
    out = {
        part: judged(agent, getattr(one, part), one.platform, seed, WINDOWS if part != "train" else ("cut",))
        for part in parts
    }
    told = {name: agent.manifest[name] for name in ("curve", "score", "steps_done", "elapsed_s")}
    return out | told | {"cost": agent.env_options["stretch_cost"]}


def learnt(
    source: Given, preset: str, steps: int, seed: int, keep: str, parts: Sequence[str], options: Given
) -> dict[str, Any]:
    """Train an agent by MaskablePPO, keep the weights that do best on some of the validation days, and judge it."""
    from escala.agents import train

    one = inputs.days(**source)
    agent = _done(keep)
    if agent is None:
        unfinished = (Path(keep) / "checkpoint.npz").is_file()
        agent = train(
            "escala/OffReservation-v0", list(one.train), one.platform, steps=steps, seed=seed, preset=preset, out=keep,
            resume=unfinished, validation=list(one.validation[::LOOKED_AT]), **options,
        )  # fmt: skip
    out = {part: judged(agent, getattr(one, part), one.platform, seed) for part in parts}
    told = {name: agent.manifest[name] for name in ("steps_done", "elapsed_s")}
    return out | told | {"curve": agent.manifest["validation"], "cost": agent.env_options.get("stretch_cost", 0.0)}
