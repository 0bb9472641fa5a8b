"""The claims of the study `deepshutdown2020`, from its cells."""

from __future__ import annotations

import numpy as np

from escala.foresight import in_words
from escala.studies.deepshutdown2020 import headroom, returns
from escala.studies.deepshutdown2020.tables import (
    AGENT,
    FRONTIER,
    LEARNERS,
    Cells,
    fixed_of,
    learners_of,
    seeds_of,
    tables,
    worths_of,
)
from escala.studies.lab import r3_inputs as inputs
from escala.studies.lab.claims import Claim, Verdict, at_most
from escala.studies.lab.resampled import Floats, Resampled, interval, table_of

PER_SWITCH_J = 60.0 * (3 * 101.0 + 125.0) / 2  # what a switch costs with 180 s off and 60 s on: 214 W min
REGRESSION = {
    1: (-0.16, 0.03, -0.07),
    2: (-0.19, 0.03, -0.108),
    3: (-0.25, 0.03, -0.18),
    4: (-0.279, 0.05, -0.223),
    5: (-0.40, 0.08, -0.21),
}
"""The author's group -> hold(0.25) against T(0), its tolerance, OR* against T(0), found by an independent simulator."""


def all_claims(cells: Cells) -> list[Claim]:
    """Of every input that was done."""
    claims: list[Claim] = []
    for name in [key.split("/")[1] for key in cells if key.startswith("about/")]:
        for window in ("cut", "drain"):
            claims += _of_input(cells, name, window) + _other_learners(cells, name, window)
        claims += rule_claims(cells, name)
        claims += (
            returns.claims(cells, name, "drain") + returns.claims(cells, name, "cut") + [_argmax_claim(cells, name)]
        )
        if name == inputs.AUTHOR:
            claims += _group_claims(cells)
        claims += headroom.claims(cells, name)
    return claims


def _of_input(cells: Cells, name: str, window: str) -> list[Claim]:
    every = tables(cells, name, window)
    r = Resampled(every)
    seeds, days = every[AGENT]["waste_j"].shape
    end = f"{name}" if window == "cut" else f"{name}.drain"
    author = name == inputs.AUTHOR  # the paper's figures are those of this cluster
    t0 = r.mean("timeout:0", "stretch")
    share = r.mean(AGENT, "unstarted")
    wait0 = float(r.mean("timeout:0", "wait_s")[0] / 60)
    waste_share = float(r.total("timeout:0", "waste_j")[0] / r.total("timeout:0", "energy_j")[0])
    kwh0 = float(r.total("timeout:0", "energy_j")[0] / r.n / 3.6e6)
    short = "; what jobs that did not start would have taken is missing" if window == "cut" else ""
    ended = "days cut at 24 h" if window == "cut" else "days run to completion"
    stretch_note = (
        f"T(0): {t0[0]:.3f}; a job that never started counts as waiting until the day's end"
        if window == "cut"
        else f"T(0): {t0[0]:.3f}"
    )
    rows: list[tuple[str, str, float | None, Floats, str, Verdict | None, str]] = [
        ("waste_vs_t0", "energy waste against T(0)", -0.053, r.change(AGENT, "timeout:0", "waste_j"), "relative change",
         at_most(-0.15, 0.0), "aim: at least 15 % less; paper: -2.9 to -30 % by cluster, -5.3 % on Taurus"),
        ("waste_vs_t300", "energy waste against T(5 min)", -0.42, r.change(AGENT, "timeout:300", "waste_j"),
         "relative change", at_most(-0.5, 0.0), "aim: at least 50 % less; paper: -40.6 to -56.5 %"),
        ("transitions_vs_t0", "switches against T(0)", -0.117, r.change(AGENT, "timeout:0", "transitions"),
         "relative change", at_most(0.0, 0.0), "paper: -11.6 to -33.8 %"),
        ("stretch", "mean stretch (wait / walltime)", 0.30, r.mean(AGENT, "stretch"), "ratio",
         at_most(0.5, 0.0) if author else None, stretch_note),
        ("stretch_minus_t0", "mean stretch above T(0)'s", None, r.mean(AGENT, "stretch") - t0, "ratio",
         at_most(0.25, 0.0), "aim: at most 0.25"),
        ("wait_minus_t0", "mean wait above T(0)'s", None, (r.mean(AGENT, "wait_s") - r.mean("timeout:0",
                                                                                            "wait_s")) / 60, "min",
         None, f"T(0): {wait0:.1f} min"),
        ("waste_vs_oracle", "energy waste against OR* (clairvoyant: knows runtimes), which is no bound", None,
         r.change(AGENT, "oracle", "waste_j"), "relative change", None,
         "OR* plans for waiting jobs only, and is beaten by hold(x) on most inputs"),
        ("waste_vs_hold_same_stretch", "energy waste against hold(x) at the same mean stretch", None,
         r.against_frontier(AGENT, FRONTIER),
         "relative change", at_most(0.0, 0.0),
         "below 0 with its interval: more than any one x earns; see waste_vs_hold_mixtures"),
        ("waste_vs_hold_mixtures",
         "energy waste against the best mixture, a coin tossed a day, of two hold(x) at the same mean stretch",
         None, r.against_mixtures(AGENT, FRONTIER), "relative change", at_most(0.0, 0.0),
         "harder than the claim before: the line through all x is not convex, so mixtures of two x are below it"),
        ("energy_vs_t0", "all energy, computing included, against T(0)", None, r.change(AGENT, "timeout:0", "energy_j"),
         "relative change", None, f"waste is {waste_share:.1%} of all energy under T(0){short}"),
        ("energy_saved_kwh", "energy saved a day against T(0)", None,
         (r.total("timeout:0", "energy_j") - r.total(AGENT, "energy_j")) / r.n / 3.6e6, "kWh", None,
         f"T(0): {kwh0:.1f} kWh a day{short}"),
        ("unstarted", "share of the jobs that did not start", None, share, "share", None,
         f"T(0): {r.mean('timeout:0', 'unstarted')[0]:.4f}"),
    ]  # fmt: skip
    return [
        _claim(
            f"r3.{key}.{end}", f"{text}, {ended}", paper if author else None, values, unit, (seeds, days), holds, note
        )
        for key, text, paper, values, unit, holds, note in rows
    ]


def _other_learners(cells: Cells, name: str, window: str) -> list[Claim]:
    """Every learnt policy but the searches at the usual price, against T(0) and against the frontier of hold(x)."""
    found: dict[str, tuple[str, Resampled, str, int]] = {}
    for preset, agents in learners_of(cells, name).items():
        found[preset] = (LEARNERS[preset], Resampled(tables(cells, name, window)), LEARNERS[preset], len(agents))
    for worth in [w for w in worths_of(cells, name) if w != "1"]:
        words = f"the agent searched with waiting at {worth} prices"
        found[f"price{worth}"] = (
            words,
            Resampled(tables(cells, name, window, worth=worth)),
            AGENT,
            len(seeds_of(cells, name, worth)),
        )
    end, ended = (name, "days cut at 24 h") if window == "cut" else (f"{name}.drain", "days run to completion")
    out = []
    for key, (words, r, policy, seeds) in found.items():
        note = f"stretch {r.mean(policy, 'stretch')[0]:.3f}" + (
            "; one seed: the interval is over days only" if seeds == 1 else ""
        )
        for what, text, values, unit, holds in (
            ("waste_vs_t0", "energy waste of {} against T(0)", r.change(policy, "timeout:0", "waste_j"),
             "relative change", None),
            ("stretch_minus_t0", "mean stretch of {} above T(0)'s", r.mean(policy, "stretch") - r.mean("timeout:0",
                                                                                                       "stretch"),
             "ratio", None),
            ("waste_vs_hold_same_stretch", "energy waste of {} against hold(x) at the same mean stretch",
             r.against_frontier(policy, FRONTIER), "relative change", at_most(0.0, 0.0)),
            ("waste_vs_hold_mixtures",
             "energy waste of {} against the best mixture of two hold(x) at the same mean stretch",
             r.against_mixtures(policy, FRONTIER), "relative change", at_most(0.0, 0.0)),
        ):  # fmt: skip
            out.append(
                _claim(
                    f"r3.{key}.{what}.{end}",
                    f"{text.format(words)}, {ended}",
                    None,
                    values,
                    unit,
                    (seeds, r.n),
                    holds,
                    note,
                )
            )
    return out


def _claim(
    ident: str,
    text: str,
    paper: float | None,
    values: Floats,
    unit: str,
    counts: tuple[int, int],
    holds: Verdict | None,
    note: str,
) -> Claim:
    """A claim with its interval. counts: seeds and days."""
    value, low, high = interval(values)
    return Claim(
        ident, text, paper, value, low, high, unit, *counts, None if holds is None else holds(value, low, high), note
    )


RULES = {
    "hold25": ("hold:0.25", "the rule hold(0.25)"),
    "hold25_if_busy": ("hold:0.25:if-busy", "the rule hold(0.25) while some job runs"),
    "arrivals_known": ("arrivals-known", "T(0) that knows the coming arrivals (clairvoyant)"),
}
"""Claim -> policy, and its name in words."""


def rule_claims(cells: Cells, name: str) -> list[Claim]:
    """The rules without learning."""
    out = []
    for key, (policy, words) in RULES.items():
        for window, end in (("cut", name), ("drain", f"{name}.drain")):
            fixed = fixed_of(cells, name, window, "test")
            r = Resampled({k: table_of([fixed[k]]) for k in ("timeout:0", policy)})
            note = f"stretch {r.mean(policy, 'stretch')[0]:.3f} against {r.mean('timeout:0', 'stretch')[0]:.3f}"
            out.append(_claim(f"r3.{key}_vs_t0.{end}", f"energy waste of {words} against T(0), {window}", None,
                              r.change(policy, "timeout:0", "waste_j"), "relative change", (0, r.n), None,
                              note))  # fmt: skip
    return out


def _near(told: float, near: float) -> Verdict:
    return lambda v, lo, hi: abs(v - told) <= near


def _group_claims(cells: Cells) -> list[Claim]:
    """The regression of the model: the author's groups of test days, without learning."""
    fixed = {policy: table_of([columns]) for policy, columns in cells["fixed/g5k"]["cut"].items()}
    groups = np.array(cells["about/g5k"]["groups"])
    out = []
    for group in sorted(set(groups.tolist())):
        r = Resampled(fixed, days=groups == group)
        rule, tolerance, oracle = REGRESSION[group]
        for key, policy, told, near in (
            ("hold25", "hold:0.25", rule, tolerance),
            ("oracle", "oracle", oracle, max(tolerance, 0.03)),
        ):
            text = f"energy waste of {in_words(policy)} against T(0), the author's group {group}"
            out.append(_claim(f"r3.{key}_vs_t0.g5k.group{group}", text, None,
                              r.change(policy, "timeout:0", "waste_j"), "relative change", (0, r.n), _near(told, near),
                              f"an independent simulator: {told:+.3f}, here within {near}"))  # fmt: skip
    r = Resampled(fixed)
    values = r.total("timeout:0", "waste_j") / r.total("timeout:0", "transitions") / PER_SWITCH_J - 1
    text = "T(0)'s waste is 214 W min a switch: relative difference"
    out.append(_claim("r3.t0_waste_per_switch.g5k", text, None, values,
                      "relative difference", (0, r.n), _near(0.0, 0.03),
                      "with T(0), waste is the number of switches"))  # fmt: skip
    return out


def _argmax_claim(cells: Cells, name: str) -> Claim:
    """Whether the agent's greedy action is always the same."""
    searched = seeds_of(cells, name)
    shares = [max(cell["test"]["cut"]["choices"]) / max(1, sum(cell["test"]["cut"]["choices"])) for cell in searched]
    text = "share of the commonest choice among the agent's likeliest choices"
    days = cells[f"about/{name}"]["test"]["days"]
    note = "1 would be a constant; the largest over the seeds"
    return Claim(
        f"r3.argmax_commonest.{name}",
        text,
        None,
        float(max(shares)),
        None,
        None,
        "share",
        len(shares),
        days,
        max(shares) < 0.99,
        note,
    )
