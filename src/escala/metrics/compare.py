"""Honest comparison: who did better, by how much, and how sure that is.

Two rules. A comparison is refused unless all policies ran the same jobs: completion - wait = mean runtime for each, and
the mean runtime is the same for all (a policy that leaves the long jobs unfinished otherwise looks good). And a
difference over episodes (days, seeds of the job generator) is paired and comes with a bootstrap interval, over episodes
and, for trained policies, over training seeds as well.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from escala.errors import EscalaError
from escala.metrics.bootstrap import Floats, Interval, matrix, paired

__all__ = [
    "COUNTS",
    "KNOWS",
    "METRICS",
    "Interval",
    "change",
    "check",
    "episodes",
    "measured",
    "paired",
    "ranks",
    "table",
]

Summary = Mapping[str, float | int]

METRICS = (
    "energy_j",
    "mean_wait_s",
    "mean_bounded_slowdown",
    "mean_stretch",
    "utilisation",
    "makespan_s",
    "waste_j",
    "gpu_j",
    "transitions",
)
"""In the order of reading. Waste is a part of the energy, which packing jobs may move into the rest: it stands last."""
KNOWS = "knows"
"""Column of texts: what a policy knows of the future, "" for an honest one (`escala.foresight`)."""
COUNTS = ("n_jobs", "n_completed", "n_killed", "n_rejected", "n_unfinished")
ALIKE = 1e-3
_ROUNDING_S = 2e-6  # times are kept in whole microseconds, so a mean of differences may be off by about one


def check(summaries: Mapping[str, Summary], *, cut: bool = False, paced: bool = False) -> list[str]:
    """Refuse summaries (of `metrics.summarise`, by policy) that did not run the same jobs to their end.

    Raises EscalaError where, for some policy, mean turnaround - mean wait differs from the mean runtime, where the
    numbers of jobs differ, where jobs are unfinished, or where mean runtimes differ. With `cut=True` (runs that end at
    a time limit) the last two are returned as remarks, to be printed beside the figures; the last one also with
    `paced=True`, where how long a job runs depends on the policy: on nodes of several speeds, and by Slurm's rules,
    which kill late. Then less than `ALIKE` is not worth a remark.
    """
    remarks, ran = [], []
    for name, summary in summaries.items():
        _identity(name, summary)
        if summary["n_unfinished"]:
            remarks.append(
                f"{name}: {summary['n_unfinished']} of {summary['n_jobs']} jobs unfinished, left out of its means"
            )
    names = list(summaries)
    for name in names[1:]:
        first, other = summaries[names[0]], summaries[name]
        if first["n_jobs"] != other["n_jobs"]:
            raise EscalaError(
                f"{names[0]} ran {first['n_jobs']} jobs and {name} {other['n_jobs']}: give every policy the same "
                "workload"
            )
        a, b = first["mean_runtime_s"], other["mean_runtime_s"]
        if not (_same(a, b) or (paced and math.isclose(a, b, rel_tol=ALIKE))):
            why = "placed and killed otherwise" if paced else "not the same jobs"
            ran.append(f"{name}: its finished jobs ran {b:.6g} s in the mean, those of {names[0]} {a:.6g} s: {why}")
    wrong = remarks if paced else remarks + ran
    if wrong and not cut:
        raise EscalaError(
            f"not comparable: {wrong[0]}; run to completion, or pass cut=True to have this reported instead"
        )
    return remarks + ran


def paced_in(runs: Mapping[str, Any]) -> bool:
    """May how long jobs ran depend on the policies of these Results? See `check`."""
    told = [run.manifest for run in runs.values()]
    nodes = [node for one in told for node in one.get("platform", {}).get("nodes", [])]
    return any("speed" in node for node in nodes) or any(str(one.get("scheduler")).startswith("slurm") for one in told)


def _identity(name: str, summary: Summary) -> None:
    completion, wait, runtime = (float(summary[f"mean_{m}_s"]) for m in ("turnaround", "wait", "runtime"))
    if not _same(completion - wait, runtime, scale=completion):
        raise EscalaError(
            f"{name}: its job table is wrong: mean turnaround - mean wait = {completion - wait:.9g} s, mean runtime "
            f"{runtime:.9g} s"
        )


def _same(a: float, b: float, scale: float = 0.0) -> bool:
    if math.isnan(a) and math.isnan(b):
        return True
    return abs(a - b) <= _ROUNDING_S + 1e-9 * max(abs(a), abs(b), abs(scale))


def change(value: float, reference: float) -> float | None:
    """(value - reference) / |reference|; None where the reference is 0 or either is not a number."""
    if not (math.isfinite(value) and math.isfinite(reference)) or reference == 0.0:
        return None
    return (value - reference) / abs(reference)


def table(
    summaries: Mapping[str, Summary],
    *,
    reference: str | None = None,
    metrics: Sequence[str] | None = None,
    cut: bool = False,
    paced: bool = False,
    knows: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """One row per policy: `policy`, `knows` (where given: what it knows of the future), each metric, its
    `<metric>_change` relative to the reference policy (the first by default), and the
    counts of jobs. metrics: by default those of `METRICS` that there are, see `measured`.

    Changes are fractions (-0.1 is 10 % less). The comparison is checked first, see `check`.
    """
    if not summaries:
        raise EscalaError("nothing to compare: no summaries; give at least one")
    check(summaries, cut=cut, paced=paced)
    metrics = measured(summaries) if metrics is None else metrics
    reference = next(iter(summaries)) if reference is None else reference
    if reference not in summaries:
        raise EscalaError(
            f"the reference {reference!r} is not among the policies {', '.join(summaries)}; name one of them"
        )
    against = summaries[reference]
    rows = []
    for name, summary in summaries.items():
        row: dict[str, object] = {"policy": name}
        if knows is not None:
            row[KNOWS] = knows[name]
        for metric in metrics:
            if metric not in summary:
                raise EscalaError(f"{name} has no metric {metric!r}; it has {', '.join(sorted(summary))}")
            row[metric] = float(summary[metric])
            row[f"{metric}_change"] = change(float(summary[metric]), float(against[metric]))
        rows.append(row | {count: int(summary[count]) for count in COUNTS})
    texts = ("policy",) if knows is None else ("policy", KNOWS)
    figures = [c for m in metrics for c in (m, f"{m}_change")]
    schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(figures, pl.Float64) | dict.fromkeys(COUNTS, pl.Int64)
    return pl.DataFrame(rows, schema=schema)


def measured(summaries: Mapping[str, Summary], metrics: Sequence[str] = METRICS) -> tuple[str, ...]:
    """Those of the metrics that every run has: energies where every platform has watts, transitions where there are
    any, too."""
    there = [name for name in metrics if all(name in summary for summary in summaries.values())]
    switched = "energy_j" in there or any(summary.get("transitions") for summary in summaries.values())
    return tuple(name for name in there if switched or name != "transitions")


def ranks(values: Mapping[str, ArrayLike], *, smaller_is_better: bool = True) -> pl.DataFrame:
    """Mean rank of each policy over episodes (1 is best, equal values share their mean rank) and the share of episodes
    in which it is best (ties count for all).

    values: policy -> [episodes] (or [seeds, episodes], then averaged over seeds first). Columns policy, mean_rank,
    best_share; best first.
    """
    stacked = np.stack([matrix(v, name).mean(0) for name, v in values.items()])
    signed = stacked if smaller_is_better else -stacked
    below = (signed[None, :, :] < signed[:, None, :]).sum(1)
    equal = (signed[None, :, :] == signed[:, None, :]).sum(1)
    rank = below + (equal + 1) / 2
    best = (signed == signed.min(0)).mean(1)
    return pl.DataFrame({"policy": list(values), "mean_rank": rank.mean(1), "best_share": best}).sort(
        "mean_rank", maintain_order=True
    )


_WITH_INTERVALS = [f"{what}{end}" for what in ("change", "difference") for end in ("", "_low", "_high")]


def episodes(
    results: pl.DataFrame,
    metrics: str | Sequence[str],
    *,
    reference: str,
    larger_is_better: Collection[str] = ("utilisation",),
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> pl.DataFrame:
    """The comparison of policies over episodes, with intervals: one row per metric and policy.

    results: columns policy, episode, the metrics, and seed (training seed) where policies were trained more than once;
    a policy without seeds has one row per episode. Columns of the answer: metric, policy, knows (where the results have
    it), mean, change / change_low / change_high (ratio of sums, fraction),
    difference / difference_low / difference_high (in the metric's unit), better_share (episodes in which it beats the
    reference), mean_rank (1 is best), episodes, seeds. The reference's own row has no change; a ratio is null where the
    reference sums to 0 or less.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    drawn: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    rows = []
    for metric in names:
        by_policy = _episode_matrices(results, metric)
        if reference not in by_policy:
            raise EscalaError(
                f"the reference {reference!r} is not among the policies {', '.join(by_policy)}; name one of them"
            )
        smaller = metric not in larger_is_better
        place = dict(ranks(by_policy, smaller_is_better=smaller).select("policy", "mean_rank").iter_rows())
        for name, values in by_policy.items():
            row = _against(values, by_policy[reference], own=name == reference, smaller=smaller, **drawn)
            rows.append({"metric": metric, "policy": name, "mean_rank": place[name], **row})
    floats = ("mean", *_WITH_INTERVALS, "better_share", "mean_rank")
    schema = {"metric": pl.String, "policy": pl.String} | dict.fromkeys(floats, pl.Float64)
    found = pl.DataFrame(rows, schema={**schema, "episodes": pl.Int64, "seeds": pl.Int64})
    if KNOWS not in results.columns:
        return found
    # texts: "" where no run knew anything
    known = results.group_by("policy", maintain_order=True).agg(pl.col(KNOWS).max())
    return found.join(known, on="policy", how="left", maintain_order="left").select(
        "metric", "policy", KNOWS, *floats, "episodes", "seeds"
    )


def _against(
    values: Floats, reference: Floats, *, own: bool, smaller: bool, level: float, resamples: int, seed: int
) -> dict[str, float | int]:
    ours, theirs = values.mean(0), reference.mean(0)
    row: dict[str, float | int] = {"mean": float(values.mean()), "episodes": values.shape[1], "seeds": values.shape[0]}
    row["better_share"] = float((ours < theirs if smaller else ours > theirs).mean())
    for statistic, key in (("ratio", "change"), ("difference", "difference")):
        if not own and (statistic == "difference" or theirs.sum() > 0.0):
            got = paired(values, reference, statistic=statistic, level=level, resamples=resamples, seed=seed)
            row |= {key: got.value, f"{key}_low": got.low, f"{key}_high": got.high}
    return row


def _episode_matrices(results: pl.DataFrame, metric: str) -> dict[str, Floats]:
    """policy -> [seeds, episodes], episodes in one order for all; refuses missing or repeated pairs."""
    for column in ("policy", "episode", metric):
        if column not in results.columns:
            raise EscalaError(f"the episode table lacks the column {column!r} (it has {', '.join(results.columns)})")
    if results.is_empty():
        raise EscalaError("nothing to compare: the episode table is empty; give one row per policy and episode")
    seeded = results if "seed" in results.columns else results.with_columns(seed=pl.lit(0))
    order = seeded["episode"].unique().sort()
    out = {}
    for (name,), rows in seeded.group_by("policy", maintain_order=True):
        wide = rows.sort("seed", "episode")
        n_seeds = wide["seed"].n_unique()
        complete = wide.height == n_seeds * len(order) and wide.select("seed", "episode").is_unique().all()
        if not complete:
            raise EscalaError(
                f"{name}: {wide.height} rows for {n_seeds} seeds and {len(order)} episodes: give each pair exactly "
                "once for every policy"
            )
        out[str(name)] = wide[metric].cast(pl.Float64).to_numpy().reshape(n_seeds, len(order))
    return out
