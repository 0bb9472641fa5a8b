"""From the cells of `deepscheduler2020` to its claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from escala.metrics.jobs import boxes_by_class, by_class, slowdown_classes
from escala.studies.deepscheduler2020 import completed, longer
from escala.studies.deepscheduler2020.cells import AT_ONCE, SHOWN, WINDOWS
from escala.studies.lab.claims import Claim, Verdict, at_most, by_policy, write_claims, write_table
from escala.studies.lab.resampled import Floats, Resampled, interval, table_of, to_end_of

Cells = Mapping[str, Any]
AGENT, LIKELIEST, RULE = "agent", "agent, likeliest", "rule"
SEQUENTIAL_S = 300.0
SLOWDOWN, SUBMITTED = "Slowdown of a job (wait + runtime, in runtimes)", "Time of submission"
"""Of what the classes of figures 25 and 26 are."""
FIGURE_21 = ("waste_j", "mean_wait_s", "mean_pp_slowdown")


def limits(cells: Cells, name: str) -> list[str]:
    """Limits of waiting that were tried on an input: "0.95", and "0.95x3" where each of three strata of the days keeps
    it."""
    return sorted(
        {key.split("/")[2] for key in cells if key.startswith(f"search/{name}/")},
        key=lambda key: (float(_parts(key)[0]), key),
    )


def _parts(limit: str) -> tuple[str, str]:
    """The limit, and in how many strata."""
    share, _, strata = limit.partition("x")
    return share, strata or "1"


def tables(cells: Cells, name: str, window: str, limit: str, part: str = "test") -> dict[str, dict[str, Floats]]:
    """Scheduler -> column -> [seeds, days]; energies are counted until EASY's end of each day. The rule is the one that
    searches begin with."""
    out = {policy: table_of([columns]) for policy, columns in cells[f"fixed/{name}/{part}"][window].items()}
    searched = [cells[key] for key in sorted(cells) if key.startswith(f"search/{name}/{limit}/")]
    for how, label in (("sampled", AGENT), ("likeliest", LIKELIEST)):
        out[label] = table_of([cell[part][window][how] for cell in searched])
    if part != "train":
        out[RULE] = table_of([cells[f"rule/{name}/{limit}"][part][window]["likeliest"]])
    return to_end_of(out, "easy", cells[f"fixed/{name}/{part}"]["asleep_w"])


def of_rules(cells: Cells, name: str, window: str, part: str) -> dict[str, dict[str, Floats]]:
    """Every rule that searches may begin with -> column -> [1, days]."""
    jobs = np.array([cells[f"fixed/{name}/{part}"][window]["first-fit"]["jobs"]], np.float64)
    return {rule: table_of([parts[part][window]]) | {"jobs": jobs} for rule, parts in cells[f"rules/{name}"].items()}


def chosen_limit(cells: Cells, name: str) -> tuple[str, float]:
    """The limit whose agents waste least on validation days, among those that wait no longer than First-Fit on average,
    both on days cut at their end and on days run to completion; the one that waits least where none does. And its wait
    there against First-Fit's (the larger change)."""
    waste, wait = {}, {}
    for limit in limits(cells, name):
        both = [Resampled(tables(cells, name, window, limit, "validation"), resamples=2) for window in WINDOWS]
        waste[limit] = max(float(r.change(AGENT, "easy", "waste_j")[0]) for r in both)
        wait[limit] = max(float(r.change(AGENT, "first-fit", "wait_s")[0]) for r in both)
    allowed = [limit for limit in waste if wait[limit] <= 0.0]
    best = min(allowed, key=lambda limit: waste[limit]) if allowed else min(wait, key=lambda limit: wait[limit])
    return best, wait[best]


def write_all(out: Path, scale: Any, cells: Cells, name: str) -> list[Claim]:
    """Claims, tables and figures of the cells that were done."""
    (out / "figures").mkdir(exist_ok=True)
    every = list(dict.fromkeys(key.split("/")[1] for key in cells if key.startswith("search/")))
    claims = [claim for one in every for window in ("cut", "drain") for claim in _claims(cells, one, window)]
    claims += completed.claims(cells)
    tried = max((len(limits(cells, one)) for one in every), default=0)
    choice = "Of several limits of waiting the one that counts is chosen on validation days. " if tried > 1 else ""
    about = (
        f"Scale {name}. Held-out days, all nodes off at their start, off again after 5 idle minutes; sampled choices, "
        f"{scale.seeds} training seeds on the author's days and 1 elsewhere; intervals over days and seeds. {choice}"
        "`.drain`: days run to completion, else cut at 24 h; a job that never started counts as waiting until then."
    )
    write_claims(out, "deepscheduler2020: a learnt scheduler", claims, about)
    write_table(out, "policies", policies_frame(cells, every))
    write_table(out, "at_once", at_once_frame(cells, every))
    write_table(out, "limits", limits_frame(cells, every))
    beginnings = rules_frame(cells, every)
    write_table(out, "rules", beginnings)
    write_table(out, "seeds", seeds_frame(cells, every))
    write_table(out, "score", score_frame(cells, every))
    if len(joint := completed.frame(cells)):
        write_table(out, "completed", joint)
    if len(sweep := longer.frame(cells)):
        write_table(out, "lengths", sweep)
    ppo = learners_frame(cells)
    if len(ppo):
        write_table(out, "printed", ppo)
    _figures(out, cells, every)
    _frontiers(out, beginnings)
    return claims


def _frontiers(out: Path, beginnings: pl.DataFrame) -> None:
    """Waste against wait of rules, schedulers and agents on held-out days, both windows of each input."""
    from escala.report import frontier_plots, save

    mark = pl.when(pl.col("kind") == "rule").then(pl.when("begins").then(pl.lit("begun with")).otherwise(pl.lit("")))
    told = mark.otherwise(pl.col("policy").str.replace("agent, ", ""))
    for (name,), rows in (
        beginnings.filter(pl.col("part") == "test").with_columns(mark=told).group_by("input", maintain_order=True)
    ):
        titles = {"Days cut at 24 h": "cut", "Days run to completion": "drain"}
        panels = {title: rows.filter(pl.col("window") == window) for title, window in titles.items()}
        save(frontier_plots.waste_against_wait(panels), out / "figures" / f"frontier-{name}")


def _claims(cells: Cells, name: str, window: str) -> list[Claim]:
    limit, over = chosen_limit(cells, name)
    found = tables(cells, name, window, limit)
    r, seeds = Resampled(found), found[AGENT]["waste_j"].shape[0]
    end = name if window == "cut" else f"{name}.drain"
    ended = "days cut at 24 h" if window == "cut" else "days run to completion"
    rows: list[tuple[str, str, Floats, Verdict | None]] = [
        ("waste_vs_easy", "energy waste against EASY", r.change(AGENT, "easy", "waste_j"), at_most(-0.07, 0.0)),
        ("waste_vs_saf", "energy waste against SAF", r.change(AGENT, "saf", "waste_j"), at_most(-0.07, 0.0)),
        ("waste_vs_first_fit", "energy waste against First-Fit", r.change(AGENT, "first-fit", "waste_j"), None),
        ("wait_vs_easy", "mean wait against EASY", r.change(AGENT, "easy", "wait_s"), None),
        ("wait_vs_first_fit", "mean wait against First-Fit", r.change(AGENT, "first-fit", "wait_s"), at_most(0.0, 0.0)),
        ("wait_vs_sjf", "mean wait against the shortest walltime first", r.change(AGENT, "sjf-fit", "wait_s"), None),
        ("energy_vs_easy", "all energy, computing included, against EASY", r.change(AGENT, "easy", "energy_j"), None),
        ("waste_vs_rule", "energy waste against the rule that searches begin with", r.change(AGENT, RULE, "waste_j"),
         at_most(0.0, 0.0)),
        ("wait_vs_rule", "mean wait against the rule that searches begin with", r.change(AGENT, RULE, "wait_s"), None),
        ("rule.waste_vs_easy", "energy waste of that rule against EASY", r.change(RULE, "easy", "waste_j"), None),
        ("rule.wait_vs_first_fit", "mean wait of that rule against First-Fit", r.change(RULE, "first-fit", "wait_s"),
         None),
        ("pp_slowdown_vs_first_fit", "mean per-processor slowdown against First-Fit",
         r.change(AGENT, "first-fit", "pp_slowdown"), None),
    ]  # fmt: skip
    out = []
    among = Resampled(found | of_rules(cells, name, window, "test"))
    rows += [
        ("waste_vs_rules_same_wait", "energy waste against the best rule that waits no longer in the mean",
         among.against_frontier(AGENT, list(cells[f"rules/{name}"]), by="wait_s"), at_most(0.0, 0.0)),
    ]  # fmt: skip
    rows += [
        (f"unstarted.{policy}", f"share of jobs that did not start, {policy}", r.mean(policy, "unstarted"), None)
        for policy in (AGENT, RULE, "first-fit", "easy")
    ]
    for key, text, values, holds in rows:
        value, low, high = interval(values)
        unit = "share" if key.startswith("unstarted") else "relative change"
        share, strata = _parts(limit)
        note = f"searched for a mean wait up to {share} of First-Fit's" + (
            f" in each of {strata} strata of days" if strata != "1" else ""
        )
        note += f"; on validation days {over:+.1%}, longer than allowed" if over > 0.0 else ""
        out.append(Claim(f"r3.{key}.{end}", f"{text}, {ended}", None, value, low, high, unit, seeds, r.n,
                         None if holds is None else holds(value, low, high), note))  # fmt: skip
    return out


def policies_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """Waste, wait and per-processor slowdown of every scheduler, with the 10th and 90th percentile over days."""
    rows = []
    for name in every:
        for window in ("cut", "drain"):
            found = tables(cells, name, window, chosen_limit(cells, name)[0])
            r = Resampled(found, resamples=500)
            for policy, t in found.items():
                day = t["waste_j"].mean(axis=0) / 1e3
                waste, low, high = interval(r.change(policy, "easy", "waste_j"))
                rows.append({
                    "input": name, "window": window, "policy": policy, "waste_kJ_a_day": float(day.mean()),
                    "waste_kJ_p10": float(np.percentile(day, 10)), "waste_kJ_p90": float(np.percentile(day, 90)),
                    "waste_vs_easy": waste, "waste_vs_easy_low": low, "waste_vs_easy_high": high,
                    "energy_kWh": float(t["energy_j"].mean() / 3.6e6), "energy_vs_easy": float(r.change(policy, "easy",
                                                                                                        "energy_j")[0]),
                    "wait_min": float(r.mean(policy, "wait_s")[0] / 60.0),
                    "wait_vs_first_fit": float(r.change(policy, "first-fit", "wait_s")[0]),
                    "pp_slowdown": float(r.mean(policy, "pp_slowdown")[0]),
                    "stretch": float(r.mean(policy, "stretch")[0]),
                    "transitions": float(t["transitions"].mean()), "unstarted_share": float(r.mean(policy,
                                                                                                   "unstarted")[0]),
                })  # fmt: skip
    return pl.DataFrame(rows)


def at_once_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """Rules over nodes that go off at once, against EASY's waste and First-Fit's wait over nodes that go off after 5
    idle minutes."""
    rows = []
    for name, window in product(every, WINDOWS):
        after = cells[f"fixed/{name}/test"][window]
        found = {rule: table_of([after[rule]]) for rule in ("easy", "first-fit")}
        found |= {
            f"{rule} + {AT_ONCE}": table_of([columns]) for rule, columns in cells[f"atonce/{name}"][window].items()
        }
        r = Resampled(found, resamples=1000)
        for policy in found:
            row: dict[str, Any] = {"input": name, "window": window, "policy": policy}
            row["wait_min"] = float(r.mean(policy, "wait_s")[0] / 60.0)
            for what, values in (
                ("waste_vs_easy", r.change(policy, "easy", "waste_j")),
                ("wait_vs_first_fit", r.change(policy, "first-fit", "wait_s")),
            ):  # fmt: skip
                row[what], row[f"{what}_low"], row[f"{what}_high"] = interval(values)
            rows.append(row)
    return pl.DataFrame(rows)


def limits_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """Every limit of waiting that was tried, on validation and on held-out days, cut and run to completion."""
    rows = []
    for name in every:
        for limit in limits(cells, name):
            for part, window in product(("validation", "test"), WINDOWS):
                found = tables(cells, name, window, limit, part)
                r = Resampled(found, resamples=2)
                rows.append({
                    "input": name, "limit": float(_parts(limit)[0]), "strata": int(_parts(limit)[1]),
                    "chosen": limit == chosen_limit(cells, name)[0], "part": part, "window": window,
                    "seeds": found[AGENT]["waste_j"].shape[0], "waste_vs_easy": float(r.change(AGENT, "easy",
                                                                                               "waste_j")[0]),
                    "wait_vs_first_fit": float(r.change(AGENT, "first-fit", "wait_s")[0]),
                })  # fmt: skip
    return pl.DataFrame(rows)


def rules_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """Waste and wait of every rule that searches may begin with, of the schedulers and of the agents of every limit."""
    rows = []
    for name in every:
        best = {limit: cells[f"rule/{name}/{limit}"]["rule"] for limit in limits(cells, name)}
        for part, window in product(("validation", "test"), WINDOWS):
            found = tables(cells, name, window, chosen_limit(cells, name)[0], part)
            agents = {
                f"agent, {limit}": tables(cells, name, window, limit, part)[AGENT] for limit in limits(cells, name)
            }
            fixed = {policy: table for policy, table in found.items() if policy not in (AGENT, LIKELIEST, RULE)}
            both = {"scheduler": fixed, "rule": of_rules(cells, name, window, part), "agent": agents}
            r = Resampled(
                {f"{kind}/{policy}": table for kind, some in both.items() for policy, table in some.items()},
                resamples=2,
            )
            for kind, policy in ((kind, policy) for kind, some in both.items() for policy in some):
                rows.append({
                    "input": name, "part": part, "window": window, "kind": kind, "policy": policy,
                    "begins": kind == "rule" and best[chosen_limit(cells, name)[0]] == policy,
                    "waste_vs_easy": float(r.change(f"{kind}/{policy}", "scheduler/easy", "waste_j")[0]),
                    "wait_vs_first_fit": float(r.change(f"{kind}/{policy}", "scheduler/first-fit", "wait_s")[0]),
                })  # fmt: skip
    return pl.DataFrame(rows)


def seeds_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """Waste and wait of every single search by its sampled choices."""
    rows = []
    for name in every:
        for limit, part, window in product(limits(cells, name), ("validation", "test"), WINDOWS):
            fixed = cells[f"fixed/{name}/{part}"][window]
            easy, first_fit = sum(fixed["easy"]["waste_j"]), sum(fixed["first-fit"]["wait_s"])
            for key in sorted(key for key in cells if key.startswith(f"search/{name}/{limit}/")):
                ours = cells[key][part][window]["sampled"]
                rows.append({
                    "input": name, "limit": float(_parts(limit)[0]), "strata": int(_parts(limit)[1]),
                    "seed": int(key.split("/")[3]),
                    "part": part, "window": window, "waste_vs_easy": sum(ours["waste_j"]) / easy - 1.0,
                    "wait_vs_first_fit": sum(ours["wait_s"]) / first_fit - 1.0,
                })  # fmt: skip
    return pl.DataFrame(rows)


def learners_frame(cells: Cells) -> pl.DataFrame:
    """MaskablePPO in the printed setting."""
    rows = []
    for key, cell in cells.items():
        if key.startswith("ppo/"):
            _, name, preset, seed = key.split("/")
            for part in ("validation", "test"):
                fixed = {
                    policy: table_of([columns]) for policy, columns in cells[f"fixed/{name}/{part}"]["drain"].items()
                }
                r = Resampled(fixed | {AGENT: table_of([cell[part]["drain"]["sampled"]])}, resamples=2)
                rows.append({
                    "input": name, "preset": preset, "seed": int(seed), "part": part, "decisions": cell["steps_done"],
                    "seconds": cell["elapsed_s"], "waste_vs_easy": float(r.change(AGENT, "easy", "waste_j")[0]),
                    "wait_vs_first_fit": float(r.change(AGENT, "first-fit", "wait_s")[0]),
                })  # fmt: skip
    return pl.DataFrame(rows)


def score_frame(cells: Cells, every: list[str]) -> pl.DataFrame:
    """The searched weights of the chosen limit."""
    rows = []
    for name in every:
        start = f"search/{name}/{chosen_limit(cells, name)[0]}/"
        for key in sorted(k for k in cells if k.startswith(start)):
            rows += [
                {"input": name, "seed": int(key.split("/")[3]), "number": n, "weight": w}
                for n, w in cells[key]["score"].items()
            ]
    return pl.DataFrame(rows)


def _figures(out: Path, cells: Cells, every: list[str]) -> None:
    """R3 figures 21 (waste summed over days, means of wait and of per-processor slowdown so far), 25 (jobs by class of
    slowdown) and 26 (slowdown of sequential submissions, outliers left out). In the latter two all runs of all seeds
    count as the agent's jobs, and a job that did not start has waited until the day's end."""
    from escala.report import class_plots, save, study_plots

    figures = out / "figures"
    for name in every:
        sums = days_frame(cells, name)
        write_table(out, f"fig21-{name}", sums)
        save(study_plots.running_means(sums, FIGURE_21, (*SHOWN, AGENT)), figures / f"fig21-{name}")
        cell = cells[f"fixed/{name}/test"]
        slow = {policy: cell["jobs"][policy] for policy in SHOWN}
        slow[AGENT] = [run for one in _searched(cells, name) for run in one["test"]["jobs"]]
        gap = np.array(cell["gap_s"])
        follows = np.where((gap >= 0) & (gap < SEQUENTIAL_S), "less than 5 min after the last", "others")
        shares, sequential = {}, {}
        for policy, runs in slow.items():
            values = pl.Series(np.concatenate(runs))
            shares[policy] = by_class(values, slowdown_classes(values))
            sequential[policy] = boxes_by_class(values, pl.Series(np.tile(follows, len(runs))))
        write_table(out, f"fig25-{name}", by_policy(shares))
        write_table(out, f"fig26-{name}", by_policy(sequential))
        save(class_plots.by_class(shares, "mean_slowdown", x_label=SLOWDOWN, share=True), figures / f"fig25-{name}")
        save(class_plots.boxes(sequential, "mean_slowdown", x_label=SUBMITTED), figures / f"fig26-{name}")


def _searched(cells: Cells, name: str) -> list[Any]:
    """The agents of all seeds, with the limit that counts."""
    start = f"search/{name}/{chosen_limit(cells, name)[0]}/"
    return [cells[key] for key in sorted(cells) if key.startswith(start)]


def days_frame(cells: Cells, name: str) -> pl.DataFrame:
    """One row a policy and day, cut, of the training days (the agent of the first seed) and the held-out days (mean of
    all seeds): its waste, and its jobs' mean wait and per-processor slowdown; of these two the days below the policy's
    10th and above its 90th percentile of either part are left out (null), as R3 does."""
    held = tables(cells, name, "cut", chosen_limit(cells, name)[0])
    seen = {policy: table_of([columns]) for policy, columns in cells[f"fixed/{name}/train"]["cut"].items()}
    seen[AGENT] = table_of([_searched(cells, name)[0]["train"]["cut"]["sampled"]])
    rows = []
    for held_out, part in ((False, seen), (True, held)):
        for policy in (*SHOWN, AGENT):
            mean = {column: values.mean(axis=0) for column, values in part[policy].items()}
            days = len(mean["jobs"])
            columns = {"waste_j": mean["waste_j"], "mean_wait_s": _usual(mean["wait_s"] / mean["jobs"])}
            columns["mean_pp_slowdown"] = _usual(mean["pp_slowdown"] / mean["jobs"])
            rows.append(
                pl.DataFrame({"held_out": [held_out] * days, "policy": [policy] * days, "day": range(days), **columns})
            )
    return pl.concat(rows).with_columns(pl.col(FIGURE_21[1:]).fill_nan(None))


def _usual(values: Floats) -> Floats:
    """NaN in place of what is below the 10th or above the 90th percentile."""
    low, high = np.percentile(values, (10, 90))
    return np.where((values >= low) & (values <= high), values, np.nan)
