"""The claims of the study `deepshutdown2020`, from its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from escala.platform import Platform, read_platform
from escala.studies import deepshutdown2020_headroom as headroom
from escala.studies import deepshutdown2020_inputs as inputs
from escala.studies.claims import Claim, Verdict, at_least, at_most
from escala.studies.deepshutdown2020_cells import HOLDS
from escala.studies.resampled import Floats, Resampled, interval, table_of, to_end_of

AGENT, LIKELIEST = "agent", "agent, likeliest"
FRONTIER = ("timeout:0", *HOLDS)
PER_SWITCH_J = 60.0 * (3 * 101.0 + 125.0) / 2  # what a switch costs with 180 s off and 60 s on: 214 W min
Cells = Mapping[str, Any]
REGRESSION = {
    1: (-0.16, 0.03, -0.07),
    2: (-0.19, 0.03, -0.108),
    3: (-0.25, 0.03, -0.18),
    4: (-0.279, 0.05, -0.223),
    5: (-0.40, 0.08, -0.21),
}
"""The author's group -> hold(0.25) against T(0), its tolerance, OR* against T(0), found by an independent simulator."""


def seeds_of(cells: Cells, name: str, worth: str = "1") -> list[Any]:
    """The searched agents of an input."""
    start = f"search/{name}/{worth}/"
    return [cells[key] for key in sorted(cells) if key.startswith(start)]


def tables(cells: Cells, name: str, window: str, part: str = "test", worth: str = "1") -> dict[str, dict[str, Floats]]:
    """Policy -> column -> [seeds, days]: the fixed policies, on held-out days all of them, and the searched agents as "agent"; energies
    are counted until T(0)'s end of each day."""
    out = {policy: table_of([columns]) for policy, columns in _fixed(cells, name, window, part).items()}
    for how, label in (("sampled", AGENT), ("likeliest", LIKELIEST)):
        out[label] = table_of([cell[part][window][how] for cell in seeds_of(cells, name, worth)])
    return to_end_of(out, "timeout:0", _platform(cells, name).asleep_w)


def _fixed(cells: Cells, name: str, window: str, part: str) -> dict[str, Any]:
    """Policy -> columns of the policies without learning."""
    if part != "test":
        return dict(cells[f"fixed/{part}"][window])
    rules = cells[f"fixed/{name}"][window] | cells[f"variants/{name}"][window]
    return rules | (cells["random/test"].get(window, {}) if name == inputs.AUTHOR else {})


def all_claims(cells: Cells) -> list[Claim]:
    """Of every input that was done."""
    claims: list[Claim] = []
    for name in [key.split("/")[1] for key in cells if key.startswith("about/")]:
        for window in ("cut", "drain"):
            claims += _of_input(cells, name, window)
        claims += rule_claims(cells, name)
        claims += _return_claims(cells, name, "drain") + _return_claims(cells, name, "cut") + [_argmax_claim(cells, name)]
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
        f"T(0): {t0[0]:.3f}; a job that never started counts as waiting until the day's end" if window == "cut" else f"T(0): {t0[0]:.3f}"
    )
    rows: list[tuple[str, str, float | None, Floats, str, Verdict | None, str]] = [
        ("waste_vs_t0", "energy waste against T(0)", -0.053, r.change(AGENT, "timeout:0", "waste_j"), "relative change",
         at_most(-0.15, 0.0), "aim: at least 15 % less; paper: -2.9 to -30 % by cluster, -5.3 % on Taurus"),
        ("waste_vs_t300", "energy waste against T(5 min)", -0.42, r.change(AGENT, "timeout:300", "waste_j"), "relative change",
         at_most(-0.5, 0.0), "aim: at least 50 % less; paper: -40.6 to -56.5 %"),
        ("transitions_vs_t0", "switches against T(0)", -0.117, r.change(AGENT, "timeout:0", "transitions"), "relative change",
         at_most(0.0, 0.0), "paper: -11.6 to -33.8 %"),
        ("stretch", "mean stretch (wait / walltime)", 0.30, r.mean(AGENT, "stretch"), "ratio",
         at_most(0.5, 0.0) if author else None, stretch_note),
        ("stretch_minus_t0", "mean stretch above T(0)'s", None, r.mean(AGENT, "stretch") - t0, "ratio", at_most(0.25, 0.0),
         "aim: at most 0.25"),
        ("wait_minus_t0", "mean wait above T(0)'s", None, (r.mean(AGENT, "wait_s") - r.mean("timeout:0", "wait_s")) / 60, "min",
         None, f"T(0): {wait0:.1f} min"),
        ("waste_vs_oracle", "energy waste against OR*, which is no bound", None, r.change(AGENT, "oracle", "waste_j"), "relative change",
         None, "OR* knows runtimes, plans for waiting jobs only, and is beaten by hold(x) on most inputs"),
        ("waste_vs_hold_same_stretch", "energy waste against hold(x) at the same mean stretch", None, r.against_frontier(AGENT, FRONTIER),
         "relative change", at_most(0.0, 0.0), "below 0 with its interval: more than any one x earns; see waste_vs_hold_mixtures"),
        ("waste_vs_hold_mixtures", "energy waste against the best mixture, a coin tossed a day, of two hold(x) at the same mean stretch",
         None, r.against_mixtures(AGENT, FRONTIER), "relative change", at_most(0.0, 0.0),
         "harder than the claim before: the line through all x is not convex, so mixtures of two x are below it"),
        ("energy_vs_t0", "all energy, computing included, against T(0)", None, r.change(AGENT, "timeout:0", "energy_j"),
         "relative change", None, f"waste is {waste_share:.1%} of all energy under T(0){short}"),
        ("energy_saved_kwh", "energy saved a day against T(0)", None,
         (r.total("timeout:0", "energy_j") - r.total(AGENT, "energy_j")) / r.n / 3.6e6, "kWh", None, f"T(0): {kwh0:.1f} kWh a day{short}"),
        ("unstarted", "share of the jobs that did not start", None, share, "share", None,
         f"T(0): {r.mean('timeout:0', 'unstarted')[0]:.4f}"),
    ]  # fmt: skip
    return [
        _claim(f"r3.{key}.{end}", f"{text}, {ended}", paper if author else None, values, unit, seeds, days, holds, note)
        for key, text, paper, values, unit, holds, note in rows
    ]


def _claim(
    ident: str, text: str, paper: float | None, values: Floats, unit: str, seeds: int, days: int, holds: Verdict | None, note: str
) -> Claim:
    value, low, high = interval(values)
    return Claim(ident, text, paper, value, low, high, unit, seeds, days, None if holds is None else holds(value, low, high), note)


RULES = {
    "hold25": ("hold:0.25", "the rule hold(0.25)"),
    "hold25_if_busy": ("hold:0.25:if-busy", "the rule hold(0.25) while some job runs"),
    "arrivals_known": ("arrivals-known", "T(0) that knows the coming arrivals"),
}
"""Claim -> policy, and its name in words."""


def rule_claims(cells: Cells, name: str) -> list[Claim]:
    """The rules without learning."""
    out = []
    for key, (policy, words) in RULES.items():
        for window, end in (("cut", name), ("drain", f"{name}.drain")):
            fixed = _fixed(cells, name, window, "test")
            r = Resampled({k: table_of([fixed[k]]) for k in ("timeout:0", policy)})
            note = f"stretch {r.mean(policy, 'stretch')[0]:.3f} against {r.mean('timeout:0', 'stretch')[0]:.3f}"
            out.append(_claim(f"r3.{key}_vs_t0.{end}", f"energy waste of {words} against T(0), {window}", None,
                              r.change(policy, "timeout:0", "waste_j"), "relative change", 0, r.n, None, note))  # fmt: skip
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
        for key, policy, told, near in (("hold25", "hold:0.25", rule, tolerance), ("oracle", "oracle", oracle, max(tolerance, 0.03))):
            text = f"energy waste of {policy} against T(0), the author's group {group}"
            out.append(_claim(f"r3.{key}_vs_t0.g5k.group{group}", text, told,
                              r.change(policy, "timeout:0", "waste_j"), "relative change", 0, r.n, _near(told, near),
                              f"an independent simulator: {told:+.3f}, here within {near}"))  # fmt: skip
    r = Resampled(fixed)
    values = r.total("timeout:0", "waste_j") / r.total("timeout:0", "transitions") / PER_SWITCH_J - 1
    text = "T(0)'s waste is 214 W min a switch: relative difference"
    out.append(_claim("r3.t0_waste_per_switch.g5k", text, 0.0, values,
                      "relative difference", 0, r.n, _near(0.0, 0.03), "with T(0), waste is the number of switches"))  # fmt: skip
    return out


def _return_claims(cells: Cells, name: str, window: str) -> list[Claim]:
    """The agent's return against T(0)'s and every constant choice's, in the reward that it was searched with."""
    searched = seeds_of(cells, name)
    constant = cells[f"constants/{name}"][window]
    idle_j, end, ended = idle_minute_j(name, cells), "" if window == "drain" else ".cut", "drained" if window == "drain" else "cut"
    cost = float(np.mean([cell["cost"] for cell in searched]))
    ours = np.array([_worth(cell["test"][window]["sampled"], cost, idle_j) for cell in searched])
    theirs = {policy: _worth(columns, cost, idle_j) for policy, columns in constant.items()}
    best = max(theirs, key=lambda policy: theirs[policy].sum())
    out = []
    for key, policy, text in (
        ("return_minus_t0", "hold:0", "T(0)'s"),
        ("return_minus_constants", best, f"the best constant choice's ({best})"),
    ):
        r = Resampled({"a": {"x": ours - theirs[policy]}})
        out.append(_claim(f"r3.{key}.{name}{end}", f"return a day, above {text}", None, r.total("a", "x") / r.n,
                          "idle minutes of the platform", len(ours), r.n, at_least(0.0),
                          f"reward: -(energy waste + {cost:.3f} a walltime waited); test days, {ended}"))  # fmt: skip
    return out


def _argmax_claim(cells: Cells, name: str) -> Claim:
    """Whether the agent's likeliest choice is always the same."""
    searched = seeds_of(cells, name)
    shares = [max(cell["test"]["cut"]["choices"]) / max(1, sum(cell["test"]["cut"]["choices"])) for cell in searched]
    text = "share of the commonest choice among the agent's likeliest choices"
    days = cells[f"about/{name}"]["test"]["days"]
    note = "1 would be a constant; the largest over the seeds"
    return Claim(
        f"r3.argmax_commonest.{name}", text, None, float(max(shares)), None, None, "share", len(shares), days, max(shares) < 0.99, note
    )


def _worth(columns: Mapping[str, Any], cost: float, idle_j: float) -> Floats:
    out: Floats = -(np.array(columns["waste_j"]) / idle_j + cost * np.array(columns["waited"]))
    return out


def idle_minute_j(name: str, cells: Cells) -> float:
    """J that an input's whole platform takes in a minute of idling: all have the dissertation's profile, a node each."""
    platform = _platform(cells, name)
    return 60.0 * platform.n_nodes * platform.profiles[0].idle_w


def _platform(cells: Cells, name: str) -> Platform:
    return read_platform(f"{cells[f'about/{name}']['nodes']}x1")
