"""The claims of `marl2024`: teams against heuristics, against one central scheduler, against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from escala.studies.lab.claims import Claim
from escala.studies.marl2024 import learning
from escala.studies.marl2024.values import (
    APART,
    KINDS,
    Cells,
    best_acting,
    best_of,
    claim,
    kept,
    label,
    rule_values,
    seeds_of,
    values,
)


def chosen(cells: Cells, shape: str, loads: Sequence[int]) -> str:
    """The kind of team, in turns or taught by look-ahead, that is better on the validation lists of all loads
    together."""

    def score(kind: str) -> float:
        tried = [values(cells, seeds_of(cells, f"{kind}/{shape}"), load, "validation").mean() for load in loads]
        return np.inf if np.isnan(tried).any() else float(np.mean(np.log(tried)))

    return min((kind for kind in ("team", "ahead") if seeds_of(cells, f"{kind}/{shape}")), key=score, default="team")


def claims_of(scale: Any, cells: Cells) -> list[Claim]:
    """All claims but those on head-room."""
    out: list[Claim] = []
    for agents, machines in scale.shapes:
        shape = f"{agents}x{machines}"
        kind = chosen(cells, shape, scale.loads)
        names = seeds_of(cells, f"{kind}/{shape}")
        for load in scale.loads:
            if names and f"rules/{shape}/{load}" in cells:
                out += _against_rules(cells, kind, names, shape, load)
                out += _until_void(cells, shape, load) if load in (50, 90) else []
    out += _worst(out)
    out += _by_kind(scale, cells) + _ppo_gain(scale, cells) + _information(scale, cells) + _growth(scale, cells)
    out += learning.claims(scale.loads, cells)
    return out


def _against_rules(cells: Cells, kind: str, names: list[str], shape: str, load: int) -> list[Claim]:
    """The teams of a shape against heuristics as teams, and against the best of them as one central scheduler."""
    clock = (
        f"; {KINDS[kind]} and know when arrivals end (rules do not use it), better on validation lists"
        if kind != "team"
        else ""
    )
    about = f"{clock}{kept(cells, names)}{label(load)}"
    ours, drawn = values(cells, names, load, "likeliest"), values(cells, names, load, "sampled")
    best, theirs = best_of(cells, shape, load)
    central, whole = best_of(cells, shape, load, "central", "slowdown")
    who = f"mean slowdown of {shape} agents x machines"
    out = [
        claim(f"r4.vs_best_heuristic.{shape}.{load}", f"{who} against the best of R4's heuristics, load {load} %", ours,
              theirs, 0.02, f"best: {best}{about}"),
        claim(f"r4.sampled.vs_best_heuristic.{shape}.{load}", f"the same with sampled actions, load {load} %", drawn,
              theirs[: drawn.shape[1]], 0.02, f"best: {best}{about}"),
        claim(f"r4.vs_dense.{shape}.{load}",
              f"{who} against our rule dense, which teams in turns imitate first, load {load} %", ours,
              rule_values(cells, shape, load, "dense"), 0.02, f"not in the paper{about}"),
        claim(f"r4.vs_central.{shape}.{load}",
              f"{who} against the best of R4's heuristics as one central scheduler, load {load} %", ours,
              whole, 0.02, f"best: {central}; it owns all machines and chooses until the void{about}"),
    ]  # fmt: skip
    if load in (50, 90):
        tetris = rule_values(cells, shape, load, "tetris-normalised")
        note = f"best job and best machine{about}"
        out.append(
            claim(
                f"r4.vs_tetris.{shape}.{load}",
                f"{who} against normalised Tetris, load {load} %",
                ours,
                tetris,
                -0.05,
                note,
            )
        )
        ours, tetris = (
            values(cells, names, load, "cut"),
            rule_values(cells, shape, load, "tetris-normalised", "cut", "slowdown"),
        )
        text = (
            f"the same in the paper's window, cut after 200 units (jobs that wait count as started then), load {load} %"
        )
        out.append(
            claim(f"r4.vs_tetris_cut.{shape}.{load}", text, ours, tetris, -0.05, f"beside the claim before it{about}")
        )
    return out


def _worst(found: list[Claim]) -> list[Claim]:
    rows = [c for c in found if c.id.startswith("r4.vs_best_heuristic.")]
    known = [c for c in rows if c.ours is not None]
    text = "largest relative change of mean slowdown against the best heuristic, over all shapes and loads"
    if not known:
        return [
            Claim(
                "r4.worst_against_best_heuristic",
                text,
                None,
                None,
                None,
                None,
                "relative change",
                0,
                0,
                None,
                "not measured",
            )
        ]
    worst = max(known, key=lambda c: c.ours or 0.0)
    verdicts = {c.meets_aim for c in rows}
    holds = False if False in verdicts else None if None in verdicts else True
    seeds, episodes = min(c.seeds for c in known), min(c.episodes for c in known)
    note = f"at {worst.id.removeprefix('r4.vs_best_heuristic.')}; seeds: the fewest of any shape"
    left = [c.id.removeprefix("r4.vs_best_heuristic.") for c in rows if c.ours is None]
    note += f"; not among them, as runs did not finish: {', '.join(left)}" if left else ""
    return [
        Claim(
            "r4.worst_against_best_heuristic",
            text,
            None,
            worst.ours,
            worst.low,
            worst.high,
            "relative change",
            seeds,
            episodes,
            holds,
            note,
        )
    ]


def _by_kind(scale: Any, cells: Cells) -> list[Claim]:
    """Both kinds of teams for themselves: those that imitate dense first and those that imitate look-ahead first; both
    go on by PPO in turns."""
    out = []
    kinds = [
        ("turns", "team", "that imitate dense first and then learn in turns", scale.shapes),
        (
            "ahead",
            "ahead",
            "that imitate look-ahead first, then learn in turns, and know when arrivals end",
            scale.ahead,
        ),
    ]
    for ident, kind, told, shapes in kinds:
        for agents, machines in shapes:
            shape = f"{agents}x{machines}"
            names = seeds_of(cells, f"{kind}/{shape}")
            for load in scale.loads if names else ():
                if f"rules/{shape}/{load}" not in cells:
                    continue
                ours = values(cells, names, load, "likeliest")
                best, theirs = best_of(cells, shape, load)
                text = (
                    f"mean slowdown of {shape} agents x machines {told} against the best of R4's heuristics, load "
                    f"{load} %"
                )
                about = f"{kept(cells, names)}{label(load)}"
                out.append(
                    claim(
                        f"r4.{ident}.vs_best_heuristic.{shape}.{load}", text, ours, theirs, 0.02, f"best: {best}{about}"
                    )
                )
                if load in (50, 90):
                    tetris = rule_values(cells, shape, load, "tetris-normalised")
                    text = f"the same against normalised Tetris, load {load} %"
                    note = f"best job and best machine{about}"
                    out.append(claim(f"r4.{ident}.vs_tetris.{shape}.{load}", text, ours, tetris, -0.05, note))
    return out


def _until_void(cells: Cells, shape: str, load: int) -> list[Claim]:
    """Teams whose turns last until the no-op against rules that play so too."""
    names = seeds_of(cells, f"void/{shape}")
    if not names:
        return []
    ours = values(cells, names, load, "likeliest")
    best, theirs = best_of(cells, shape, load, "void", "slowdown")
    tetris = rule_values(cells, shape, load, "tetris-normalised", "void", "slowdown")
    text = f"mean slowdown of teams of {shape} agents x machines whose turns last until the void against"
    return [
        claim(f"r4.void.vs_best_heuristic.{shape}.{load}", f"{text} the best heuristic, played so, load {load} %", ours,
              theirs, 0.02, f"best: {best}{kept(cells, names)}{label(load)}"),
        claim(f"r4.void.vs_tetris.{shape}.{load}", f"{text} normalised Tetris, played so, load {load} %", ours, tetris,
              -0.05, f"best job and best machine{kept(cells, names)}{label(load)}"),
    ]  # fmt: skip


def _information(scale: Any, cells: Cells) -> list[Claim]:
    ours, theirs = seeds_of(cells, "local/3x1"), seeds_of(cells, "team/3x1")
    if not ours or not theirs:
        return []
    text = "mean slowdown with local information and rewards against global, 3 x 1, load {} %"
    note = "both begin with dense; the paper: no large difference; aim: at most 5 % worse"
    out = []
    for load in scale.loads:
        local, whole = (values(cells, names, load, "likeliest") for names in (ours, theirs))
        out.append(claim(f"r4.local_vs_global.{load}", text.format(load), local, whole, 0.05, f"{note}{label(load)}"))
    return out


def _ppo_gain(scale: Any, cells: Cells) -> list[Claim]:
    """What learning by PPO adds to teams that imitate dense: each seed against itself before."""
    out = []
    for agents, machines in scale.shapes:
        shape = f"{agents}x{machines}"
        names = [name for name in seeds_of(cells, f"team/{shape}") if name.replace("team/", "imitated/") in cells]
        before = [name.replace("team/", "imitated/") for name in names]
        for load in [load for load in scale.loads if load in (50, 90) and names]:
            ours, theirs = values(cells, names, load, "likeliest"), values(cells, before, load, "likeliest")
            text = (
                f"what PPO in turns adds: mean slowdown of {shape} agents x machines against the same teams before "
                f"it, load {load} %"
            )
            note = f"{cells[names[0]]['steps']} decisions{kept(cells, names)}; aim: not above{label(load)}"
            out.append(claim(f"r4.ppo_gain.{shape}.{load}", text, ours, theirs, 0.0, note))
    return out


def _growth(scale: Any, cells: Cells) -> list[Claim]:
    """Agents that learn with shared parameters from nothing, against the best heuristic in the same turns and one
    central learner."""
    out = []
    for agents in scale.growth:
        for load in [load for load in scale.loads if seeds_of(cells, f"growth-{load}/{agents}")]:
            names, central = seeds_of(cells, f"growth-{load}/{agents}"), seeds_of(cells, f"central-{load}/{agents}")
            how = best_acting(cells, names, [load])
            ours = values(cells, names, load, how)
            if f"rules/{agents}x1/{load}" in cells:
                best, theirs = best_of(cells, f"{agents}x1", load, "void", "slowdown")
                text = (
                    f"mean slowdown of {agents} agents, shared parameters, from nothing, against the best "
                    f"heuristic, load {load} %"
                )
                note = (
                    f"best: {best}; turns until the void; {how} actions; beyond the "
                    f"paper{kept(cells, names, 'untrained')}{label(load)}"
                )
                out.append(claim(f"r4.growth.{agents}.{load}", text, ours, theirs, 0.02, note))
            if central:
                other = best_acting(cells, central, [load])
                one = values(cells, central, load, other)
                text = (
                    f"mean slowdown of {agents} such agents against one central learner of all machines, load {load} %"
                )
                note = f"both choose until the void; {how} actions against {other} ones; beyond the paper"
                note += f"{kept(cells, names + central, 'untrained')}{label(load)}"
                out.append(claim(f"r4.team_vs_central.{agents}.{load}", text, ours, one, 0.02, note))
        for kind, told in (("growth", "agents with shared parameters"), ("central", "machines of one central learner")):
            its = [cells[name] for load in APART for name in seeds_of(cells, f"{kind}-{load}/{agents}")]
            if its:
                took = [cell["processor_s"] for cell in its]
                text = f"training of {agents} {told} from nothing, {its[0]['steps']} decisions"
                mean = float(np.mean(took))
                note = (
                    f"processor time, {1000 * mean / its[0]['steps']:.2g} s for 1000 decisions; low, high: the "
                    "seeds'; beyond the paper"
                )
                out.append(
                    Claim(
                        f"r4.{kind}_cost.{agents}",
                        text,
                        None,
                        mean,
                        min(took),
                        max(took),
                        "s",
                        len(took),
                        0,
                        None,
                        note,
                    )
                )
    return out
