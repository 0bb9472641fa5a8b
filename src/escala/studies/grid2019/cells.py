"""The pieces of the study `grid2019`: rules on lists, training and judging an agent, the clairvoyant optimum. Each
gives plain lists."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from escala.agents.imitation.demonstrations import record
from escala.agents.imitation.lookahead_teacher import look_ahead
from escala.agents.presets import PRESETS
from escala.envs.core.batch import new_turn
from escala.envs.slots.lists import JobLists, draw_lists
from escala.envs.slots.options import RESCUE, shaping
from escala.envs.slots.plan import search_plan
from escala.envs.slots.playing import FIGURES, play, tune_hold_back
from escala.envs.slots.slots import SlotsBatch
from escala.studies.grid2019.published import LOADS, published_lists
from escala.studies.grid2019.whole_queue import EASY_SENT, easy_sent
from escala.studies.lab.slotted import HOLD_END, QUIETS, SHARES, best_found, queue_slots
from escala.workload.generate_slots import bernoulli_model

RULES = ("sjf", "sjf-strict", "packer", "tetris", "tetris-normalised", "easy", "fcfs", "random")
TRAINING, VALIDATION, TEST = 1, 2, 3  # seeds of the job lists; no list of one set is in another
PATIENCE = 4000
TRIES, NEAR = 3, 1.05  # searches for a plan, until one is that near to the clairvoyant schedule
# for the schedule that a plan begins with: never reached, so that plans do not depend on the machine
PLAN_LIMIT_S = 600.0

LEAST_LOAD = 40
"""From which agents learn that know no end, and from which all are played at other horizons."""
CURVE = 100
"""The load of figure 4's learning curve."""
EASY_WHOLE = "easy, whole queue"
"""EASY as the author ran it, beside the slots: not with ten of them. His starts differ in reservations and by
messages."""

Figures = dict[str, list[float]]


def lists_of(load: int, count: int, seed: int, steps: int = 100, demand: str = "author") -> JobLists:
    """Fresh lists of one load (in per cent)."""
    return draw_lists(bernoulli_model(load / 100, steps, demand), count, seed)


def _figures(frame: Any) -> dict[str, Any]:
    """Columns of `play` as lists; null where a run was not finished."""
    return {name: frame[name].to_list() for name in (*FIGURES, "finished")}


def rules_on(lists: JobLists, hold: tuple[int, int, int], slots: int = 10) -> dict[str, Any]:
    """Every rule on every list."""
    out = {rule: _figures(play(lists, rule, slots=slots)) for rule in RULES}
    return out | {"hold-back": _figures(play(lists, "hold-back", hold=hold, slots=slots)), "hold": list(hold)}


def published_rules(folder: str) -> dict[str, Any]:
    """The rules on the author's lists, EASY with ten slots, with all jobs in slots, and as he ran it. Hold-back is
    tuned on these very lists, as the author's agent is."""
    lists = published_lists(Path(folder))
    out: dict[str, Any] = {}
    for e, load in enumerate(LOADS):
        one = lists.part([e])
        whole = {EASY_WHOLE: _figures(play(one, "easy", slots=len(one.job))), EASY_SENT: easy_sent(one)}
        out[str(load)] = rules_on(one, tune_hold_back(one, QUIETS, SHARES)) | whole
    return out


def fresh_rules(
    load: int, validation: int, test: int, slots: int, steps: int = 100, demand: str = "author"
) -> dict[str, Any]:
    """The rules on fresh test lists; hold-back is tuned on validation lists, with and without knowing the end of
    arrivals."""
    tried, lists = lists_of(load, validation, VALIDATION, steps, demand), lists_of(load, test, TEST, steps, demand)
    out = rules_on(lists, tune_hold_back(tried, QUIETS, SHARES, slots=slots), slots)
    known: dict[str, Any] = {"slots": slots, "arrivals_end": steps}
    hold = tune_hold_back(tried, QUIETS, SHARES, **known)
    return out | {HOLD_END: _figures(play(lists, "hold-back", hold=hold, **known)), "hold_end": list(hold)}


def rollout_on(
    load: int, test: int, count: int, futures: int, pool: int, steps: int = 100, demand: str = "author"
) -> dict[str, Any]:
    """Look-ahead on the first `count` of `test` test lists; its futures are drawn from training lists."""
    lists = lists_of(load, test, TEST, steps, demand).part(range(count))
    return _ahead(lists, lists_of(load, pool, TRAINING, steps, demand), futures, load, steps)


def _ahead(lists: JobLists, expected: JobLists, futures: int, seed: int, steps: int) -> dict[str, Any]:
    """Look-ahead, expecting what other lists hold."""
    n, teacher = len(lists), look_ahead(expected, futures, seed)
    batch = SlotsBatch(n, lists, **queue_options(steps))
    turn, rows, done = new_turn(batch), np.arange(n), np.zeros(n, bool)
    batch.restart(rows, turn, {"list": rows})
    begin = time.process_time()
    while not done.all():
        batch.step(teacher(batch, turn), turn)
        done |= turn.terminated
    info = batch.info()
    return {name: info[name].tolist() for name in FIGURES} | {"seconds": time.process_time() - begin}


def queue_options(steps: int) -> dict[str, Any]:
    """Options of the agents that see the whole queue, and when arrivals end."""
    return {"slots": queue_slots(steps), "placement": "start-now", "skip": "forced", "arrivals_end": steps}


def lessons(
    load: int, pool: int, lists: int, futures: int, keep: str, validation: int, steps: int = 100, demand: str = "author"
) -> dict[str, Any]:
    """A teacher on some training lists, recorded in the file `keep`: look-ahead, or greedy SJF where that is better on
    validation lists."""
    begin = time.process_time()
    training, tried = (
        lists_of(load, pool, TRAINING, steps, demand),
        lists_of(load, validation, VALIDATION, steps, demand),
    )
    # fewer where looking ahead takes long, and gains much
    tried = tried.part(range(min(validation, max(1, 400_000 // load**2))))
    ahead = float(np.mean(_ahead(tried, training, futures, load, steps)["slowdown"]))
    greedy = float(play(tried, "sjf", slots=queue_slots(steps))["slowdown"].to_numpy().mean())
    teacher: int | str = futures if ahead < greedy else "sjf"
    states = record(keep, training, teacher, lists, seed=load, **queue_options(steps))
    return {
        "teacher": teacher, "states": states, "lists": lists, "seconds": time.process_time() - begin,
        "validation": {"rollout": ahead, "sjf": greedy},
    }  # fmt: skip


def judge(agent: Any, lists: JobLists, seed: int) -> dict[str, Any]:
    """An agent on every list: sampled, and its greedy actions."""
    shaped = shaping(agent.env_options)
    random = np.random.default_rng([seed, 0x9A])
    sampled = play(lists, lambda seen, mask: agent.act(seen, mask, random), patience=PATIENCE, **shaped)
    greedy = play(lists, lambda seen, mask: agent.act(seen, mask, None), patience=PATIENCE, rescue=RESCUE, **shaped)
    return {"sampled": _figures(sampled), "likeliest": _figures(greedy), "steps": int(agent.manifest["steps_done"])}


def _trained(steps: int, seed: int, preset: str, algorithm: str | None, keep: str | None, **given: Any) -> Any:
    """Train, go on with an interrupted training, or take up an agent that an interrupted study has finished."""
    import escala
    from escala.agents.checkpoint import ended

    if ended(keep):
        return escala.load_agent(keep)
    unfinished = keep is not None and (Path(keep) / "checkpoint.npz").is_file()
    return escala.train(
        "escala/Slots-v0",
        steps=steps,
        seed=seed,
        preset=preset,
        algorithm=algorithm,
        out=keep,
        resume=unfinished,
        **given,
    )


def _at(keep: str | None, n: int) -> Any:
    """The agent that was kept after n decisions."""
    import escala

    return escala.load_agent(f"{keep}/after-{n}")


def _short(teacher: dict[str, Any], updates: int) -> dict[str, Any]:
    return teacher | {"updates": [updates]} if updates else teacher


def published_plan(folder: str, load: int, rounds: int) -> dict[str, Any]:
    """The clairvoyant optimum of a published list (as `optimum`, but searched to the end: seconds), and a plan for the
    slotted world, searched from its schedule: the best of both placements and of up to TRIES searches."""
    lists = published_lists(Path(folder)).part([LOADS.index(load)])
    found, starts = best_found(lists, PLAN_LIMIT_S)
    plans: dict[tuple[str, int], Any] = {}
    for k in range(TRIES):
        plans |= {
            (p, k): search_plan(lists, starts[0], rounds, load + 1000 * k, placement=p)
            for p in ("start-now", "reserve")
        }
        placement, best = min(plans, key=lambda one: plans[one].slowdown)
        if plans[placement, best].slowdown <= NEAR * found["found"][0]:
            break
    chosen = plans[placement, best]
    return found | {"placement": placement, "plan": chosen.wanted.tolist(), "planned": chosen.slowdown}


FAR, LARGER, LOOKED_AT = 1.1, 3e-4, 100
"""An agent whose mean slowdown stays so far above its plan's has not learnt it; the learning rate that is tried then;
episodes by which the better of both is told."""


def _planned(
    plan: dict[str, Any], lists: JobLists, steps: int, seed: int, keep: str | None, **given: Any
) -> tuple[Any, float]:
    """An agent that imitates a plan, then learns by PPO, and how much longer its steps are than the preset's. Where
    those of the preset have not learnt the plan, larger ones are tried too, and what does better on the list, which is
    all that is learnt here, is kept in the folder `keep`, whichever it is. (As large everywhere, they lose plans that
    the small ones keep.)"""

    def seen(agent: Any) -> float:
        drawn = judge(agent, lists.part([0] * LOOKED_AT), seed + 7000)["sampled"]["slowdown"]
        return float("inf") if None in drawn else float(np.mean(drawn))

    best = _trained(steps, seed, keep=keep, **given)
    if steps and seen(best) > FAR * plan["planned"]:
        larger = None if keep is None else f"{keep}-larger"
        second = _trained(steps, seed, keep=larger, learn={"learning_rate": LARGER}, **given)
        if seen(second) < seen(best):
            best = second
            if keep is not None:
                best.save(keep)
    return best, float(
        best.manifest["learn"]["learning_rate"] / PRESETS["escala/Slots-v0", "planned"].learn["learning_rate"]
    )


def published_agent(
    *,
    folder: str,
    load: int,
    steps: int,
    seed: int,
    episodes: int,
    keep: str | None = None,
    preset: str = "one-list",
    algorithm: str = "ppo",
    plan: dict[str, Any] | None = None,
    updates: int = 0,
    looks: Sequence[int] = (),
) -> dict[str, Any]:
    """Train on one published list and play it `episodes` times. looks: decisions after which the agent as it was then
    plays it too (it needs keep). plan: a cell of `published_plan` to imitate first (preset "planned"); updates: of that
    imitation, at most (0: as many as it takes). "longer": how much longer steps than the preset's were kept."""
    lists = published_lists(Path(folder)).part([LOADS.index(load)])
    given: dict[str, Any] = {
        "preset": preset,
        "algorithm": algorithm,
        "workload": [lists.workload(0)],
        "platform": lists.platform,
    }
    if plan is None:
        agent, longer = _trained(steps, seed, keep=keep, **given, snapshots=looks), 1.0
    else:
        given |= {"teacher": _short({"plan": plan["plan"]}, updates), "placement": plan["placement"]}
        agent, longer = _planned(plan, lists, steps, seed, keep, **given)
    seen = [judge(_at(keep, n), lists.part([0] * episodes), seed) for n in looks]
    return judge(agent, lists.part([0] * episodes), seed) | {"longer": longer, "looks": seen}


def fresh_agent(
    *,
    loads: list[int],
    judged: list[int],
    steps: int,
    seed: int,
    pool: int,
    validation: int,
    test: int,
    keep: str | None = None,
    taught: list[str] | None = None,
    updates: int = 0,
    window: int = 100,
    demand: str = "author",
    more: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Train on fresh lists of some loads; judge on test and on validation lists, of which some loads have `more` times
    as many. taught: files of lessons to begin with (preset "look-ahead", whole queue; updates: of imitation, at most,
    0: as many as it takes); without them PPO alone, with ten slots and reservations (preset "reserve")."""
    given: dict[str, Any] = {"load": [load / 100 for load in loads], "lists": pool, "lists_seed": TRAINING}
    given |= {"window": window, "demand": demand}
    preset = "reserve"
    if taught is not None:
        preset = "look-ahead"
        given |= {"teacher": _short({"lessons": taught}, updates), **queue_options(window)}
    agent = _trained(steps, seed, preset, "maskable-ppo", keep, **given)
    out: dict[str, Any] = {}
    for load in judged:
        times = (more or {}).get(str(load), 1)
        out[str(load)] = judge(agent, lists_of(load, times * test, TEST, window, demand), seed)
        tried = judge(agent, lists_of(load, times * validation, VALIDATION, window, demand), seed)
        out[str(load)]["validation"] = {how: tried[how]["slowdown"] for how in ("sampled", "likeliest")}
    return out


def optimum(
    load: int, test: int, count: int, limit_s: float, steps: int = 100, demand: str = "author"
) -> dict[str, list[Any]]:
    """Best schedule found and lower bound of the mean slowdown, clairvoyant, of the first `count` of `test` test
    lists."""
    return best_found(lists_of(load, test, TEST, steps, demand).part(range(count)), limit_s)[0]
