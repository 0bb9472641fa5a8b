"""escala/Slots-v0 with queue="shortest" or "ends": the slots show the shortest of all waiting jobs, or the oldest and
the newest, whatever waits behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import escala
from escala.envs.core.batch import new_turn
from escala.envs.slots.lists import JobLists, join
from escala.envs.slots.observation import CLOCK, GLOBAL, PILE, SLOT
from escala.envs.slots.options import options_of
from escala.envs.slots.playing import play
from escala.envs.slots.policy import SlotPolicy
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError

SHAPES: tuple[dict[str, Any], ...] = (
    {"queue": "shortest", "slots": 4, "skip": "none"},
    {"queue": "shortest", "slots": 3, "skip": "forced", "placement": "reserve"},
    {"queue": "shortest", "slots": 5, "observation": "image"},
    {"queue": "ends", "slots": 1},
    {"queue": "ends", "slots": 4, "skip": "none"},
    {"queue": "ends", "slots": 5, "skip": "forced", "placement": "reserve"},
    {"queue": "ends", "slots": 7, "observation": "image"},
)


def crowded(count: int = 4) -> JobLists:
    """Lists whose queue is far longer than a few slots."""
    return join(
        [
            options_of({"load": load, "window": 150, "lists": count, "lists_seed": 5}).job_lists()
            for load in (0.7, 1.845)
        ]
    )


def shown(queue: str, waiting: list[int], length: dict[int, int], slots: int) -> list[int]:
    """The waiting jobs, rows in the order of arrival, that so many slots show."""
    if queue == "shortest":
        return sorted(sorted(waiting, key=lambda j: (length[j], j))[:slots])
    head = (slots + 1) // 2
    return waiting if len(waiting) <= slots else [*waiting[:head], *waiting[len(waiting) - (slots - head) :]]


def shown_are_those_of_the_queue(batch: SlotsBatch, i: int) -> int:
    """Check the slots of a simulation against all jobs that wait; how many have no slot."""
    lists, slots, run = batch.lists, batch.games.slots[i], batch.worlds.world.run[i]
    begin, came = int(lists.first[batch.worlds.chosen[i]]), int(batch.games.memory["seen"][i])
    placed = {int(one["job"]) for one in batch.games.booked[i, : batch.games.memory["booked"][i]]}
    waiting = [j for j in range(came) if run[j]["start"] < 0 and j not in placed]
    length = {j: int(lists.job["walltime"][begin + j]) for j in waiting}
    assert sorted(int(j) for j in slots if j >= 0) == shown(batch.options.queue, waiting, length, len(slots))
    return max(0, len(waiting) - len(slots))


@pytest.mark.parametrize("shape", SHAPES)
def test_slots_hold_those_of_all_that_wait_at_every_step(shape: dict[str, Any]) -> None:
    lists = crowded()
    batch, rng = SlotsBatch(len(lists), lists, **shape), np.random.default_rng(3)
    turn, rows, done, behind = new_turn(batch), np.arange(len(lists)), np.zeros(len(lists), bool), 0
    batch.restart(rows, turn, {"list": rows})
    while not done.all():
        behind = max([behind, *(shown_are_those_of_the_queue(batch, int(i)) for i in np.flatnonzero(~done))])
        batch.step(np.where(turn.mask, rng.random(turn.mask.shape), -1.0).argmax(axis=1), turn)
        done |= turn.terminated
    assert behind > 20


def test_with_room_for_the_whole_queue_nothing_changes() -> None:
    lists = crowded()
    for rule in ("sjf", "sjf-strict", "hold-back", "easy"):
        first, *others = (
            play(lists, rule, slots=400, queue=queue)["slowdown"].to_list() for queue in ("oldest", "shortest", "ends")
        )
        assert all(first == pytest.approx(other, rel=1e-12) for other in others)


def test_a_few_slots_are_enough_for_strict_sjf_and_the_oldest_are_not() -> None:
    lists = crowded()
    whole, few = play(lists, "sjf-strict", slots=400), play(lists, "sjf-strict", slots=6, queue="shortest")
    stale, ends = play(lists, "sjf-strict", slots=6), play(lists, "sjf-strict", slots=6, queue="ends")
    # of the high load
    few, whole, stale, ends = (
        one["slowdown"].to_numpy()[len(lists) // 2 :].mean() for one in (few, whole, stale, ends)
    )
    assert abs(few / whole - 1) < 0.03 and stale > 2 * whole and whole < ends < stale / 1.5


@pytest.mark.parametrize("queue", ["shortest", "ends"])
def test_the_event_driven_simulation_shows_the_same(queue: str) -> None:
    lists = crowded(2)
    for rule in ("sjf", "hold-back", "hold-pile"):
        ours = play(lists, rule, slots=6, queue=queue)
        for e in range(len(lists)):
            policy = SlotPolicy(rule, slots=6, queue=queue)
            jobs = escala.simulate(lists.workload(e), lists.platform, scheduler=policy).jobs
            slowdown = ((jobs["finish_s"] - jobs["submit_s"]) / jobs["runtime_s"]).mean()
            assert slowdown == pytest.approx(ours["slowdown"][e], rel=1e-12)


@pytest.mark.parametrize("queue", ["shortest", "ends"])
def test_a_saved_state_goes_on_as_it_would_have(queue: str) -> None:
    lists = crowded()
    rows, ends = np.arange(len(lists)), []
    batch = SlotsBatch(len(lists), lists, slots=4, queue=queue)
    turn, out = new_turn(batch), np.zeros(len(lists), np.int64)
    batch.restart(rows, turn, {"list": rows})
    for step in range(900):
        if step == 120:
            kept = {name: value.copy() for name, value in batch.state().items()}
        batch.decide("sjf", out)
        batch.step(out, turn)
    ends.append(batch.info())
    batch.restore(kept)
    for _ in range(120, 900):
        batch.decide("sjf", out)
        batch.step(out, turn)
    ends.append(batch.info())
    for name, value in ends[0].items():
        assert (value == ends[1][name]).all()
    assert batch.games.memory["over"].any()


def test_the_pile_and_the_rate_are_seen_and_no_clock_is() -> None:
    lists = crowded(1)
    batch = SlotsBatch(2, lists, slots=4, queue="shortest", skip="none")
    turn = new_turn(batch)
    batch.restart(np.arange(2), turn, {"list": np.arange(2)})
    for _ in range(60):
        batch.step(np.zeros(2, np.int64), turn)
    memory = batch.games.memory
    first = lists.job["submit"][lists.first[:2]] // 1_000_000
    pile = turn.observation[:, -PILE:]
    assert pile[:, 0] == pytest.approx(np.log2(1 + memory["seen"]) / 10)  # none was started
    assert pile[:, 1] == pytest.approx(memory["seen"] / (memory["last"] - first + 1))
    assert pile[:, 2] == pytest.approx(pile[:, 0])
    assert turn.observation.shape[1] == 4 * (SLOT + 1) + 20 + GLOBAL + PILE
    assert turn.observation.min() >= 0 and turn.observation.max() <= 1


@pytest.mark.parametrize("arrivals_end, known", [(0, 0), (9, CLOCK)])
@pytest.mark.parametrize("queue, pile", [("oldest", 0), ("shortest", PILE)])
def test_the_slot_scorer_reads_it(queue: str, pile: int, arrivals_end: int, known: int) -> None:
    numbers = 4 * (SLOT + 2) + 2 * 20 + GLOBAL + known + pile
    shape = options_of({"slots": 4, "queue": queue, "arrivals_end": arrivals_end})
    assert shape.slot_numbers((numbers,)) == SLOT + 2
    for other in ((numbers + 1,), (20, numbers)):
        with pytest.raises(EscalaError, match="reads the compact observation of 4 slots"):
            shape.slot_numbers(other)
