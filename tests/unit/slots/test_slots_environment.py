"""escala/Slots-v0: laws of its rewards and schedules, its interface, and bad options."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import escala
import escala.envs
from escala.envs.core.batch import new_turn
from escala.envs.slots.options import options_of
from escala.envs.slots.slots import SlotsBatch
from escala.errors import EscalaError
from escala.workload import Workload

SHAPES: dict[str, dict[str, Any]] = {
    "compact": {},
    "reserve": {"placement": "reserve", "skip": "none"},
    "forced": {"skip": "forced", "load": [0.4, 1.9]},
    "image": {"observation": "image", "placement": "reserve"},
    "float image": {"observation": "image", "dtype": "float32", "reward": "mean"},
    "two kinds": {"model": "cpu-memory", "slots": 5, "observation": "image"},
    "two kinds, reserve": {"model": "cpu-memory", "slots": 5, "placement": "reserve"},
}


def rollout(batch: SlotsBatch, seed: int, steps: int = 20_000, check: Any = None) -> np.ndarray:
    """Random choices, valid and invalid, until every run has ended; returns the summed rewards."""
    turn, rows = new_turn(batch), np.arange(batch.num_envs)
    batch.seed(rows, np.arange(batch.num_envs, dtype=np.uint64) + np.uint64(seed))
    batch.restart(rows, turn, {})
    rng = np.random.default_rng(seed)
    total, done = np.zeros(batch.num_envs), np.zeros(batch.num_envs, bool)
    for _ in range(steps):
        batch.step(rng.integers(0, int(batch.action_space.n), batch.num_envs), turn)
        total += turn.reward
        done |= turn.terminated
        if check is not None:
            check(turn)
        if done.all():
            return total
    raise AssertionError("a random run did not end")


def schedule(batch: SlotsBatch, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(submission, start, length, demand [jobs, kinds]) of simulation i, in units, from the kernel's tables."""
    lists, e = batch.lists, int(batch.worlds.chosen[i])
    rows = slice(int(lists.first[e]), int(lists.first[e + 1]))
    job = lists.job[rows]
    start = batch.worlds.world.run[i, : len(job)]["start"] // 1_000_000
    return (
        job["submit"] // 1_000_000,
        start,
        job["runtime"] // 1_000_000,
        np.column_stack([job["cores"], lists.demand[rows]]),
    )


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_undiscounted_return_is_minus_the_slowdowns_and_no_capacity_is_overused(shape: dict[str, Any]) -> None:
    batch = SlotsBatch(24, lists=64, **shape)
    total = rollout(batch, seed=3)
    for i in range(batch.num_envs):
        submit, start, length, demand = schedule(batch, i)
        slowdown = (start - submit + length) / length
        expected = slowdown.mean() if shape.get("reward") == "mean" else slowdown.sum()
        assert total[i] == pytest.approx(-expected, rel=1e-12)
        assert batch.info()["slowdown"][i] == pytest.approx(slowdown.mean(), rel=1e-12)
        assert (start >= submit).all()
        for t in range(int((start + length).max())):
            assert (demand[(start <= t) & (t < start + length)].sum(axis=0) <= batch.games.capacity[0]).all()


def test_reservations_on_named_nodes_never_share_a_node() -> None:
    batch = SlotsBatch(16, lists=64, placement="reserve", load=1.9)

    def check(_: Any) -> None:
        taken = batch.games.busy[:, 0]
        ones = np.array([[int(word).bit_count() for word in row] for row in taken])
        assert (ones == batch.games.used[:, 0]).all()

    rollout(batch, seed=1, check=check)


@pytest.mark.parametrize(
    "shape", [{"load": 1.9}, {"load": 1.9, "slots": 32}, {"model": "cpu-memory", "rate": 0.9, "window": 30}]
)
@pytest.mark.parametrize("placement", ["start-now", "reserve"])
def test_every_place_is_the_first_one_that_a_search_from_now_on_finds(shape: dict[str, Any], placement: str) -> None:
    batch = SlotsBatch(6, lists=64, placement=placement, **shape)
    horizon, ring = batch.options.horizon, batch.games.used.shape[2]

    def place(i: int, k: int) -> int:
        e, j, row = int(batch.worlds.chosen[i]), int(batch.games.slots[i, k]), int(batch.games.memory["row"][i])
        if j < 0 or batch.games.memory["over"][i]:
            return -1
        at = int(batch.lists.first[e]) + j
        length = int(-(-batch.lists.job["walltime"][at] // 1_000_000))
        need = [int(batch.lists.job["cores"][at]), *batch.lists.demand[at]]
        if placement == "start-now":
            fits = all(
                batch.games.used[i, kind, row % ring] + n <= batch.games.capacity[0, kind]
                for kind, n in enumerate(need)
            )
            return row if fits else -1
        for begin in range(row, row + horizon - length + 1):
            columns = [
                np.bitwise_or.reduce([batch.games.busy[i, kind, r % ring] for r in range(begin, begin + length)])
                for kind in range(len(need))
            ]
            if all(
                int(taken).bit_count() + n <= batch.games.capacity[0, kind]
                for kind, (taken, n) in enumerate(zip(columns, need))
            ):
                return begin
        return -1

    def check(turn: Any) -> None:
        expected = [[place(i, k) for k in range(batch.options.slots)] for i in range(batch.num_envs)]
        assert np.where(batch.games.memory["over"][:, None] == 1, -1, batch.games.starts).tolist() == expected
        over = batch.games.memory["over"] == 1
        assert (turn.mask[~over, 1:] == (np.array(expected)[~over] >= 0)).all()

    rollout(batch, seed=5, check=check)


def test_a_choice_that_does_not_fit_is_reserved_at_its_first_place_within_the_horizon() -> None:
    jobs = [(0, 5, 6), (0, 4, 6), (0, 3, 4), (0, 15, 10)]  # submission, length, cores
    work = Workload.from_jobs(
        {"submit_s": [j[0] for j in jobs], "runtime_s": [j[1] for j in jobs], "cores": [j[2] for j in jobs]}
    )
    batch = SlotsBatch(1, [work], "10x1", placement="reserve")
    turn = new_turn(batch)
    batch.restart(np.zeros(1, np.int64), turn, {"list": 0})
    assert turn.mask[0].tolist() == [True] * 5 + [False] * 6
    # job 0 now; job 1 when job 0 has ended; job 2 beside it on nodes 6..9, now
    for slot, start in ((1, 0), (2, 5), (3, 0)):
        assert batch.games.starts[0, slot - 1] == start
        batch.step(np.array([slot]), turn)
        assert turn.reward[0] == 0.0
    assert not turn.mask[0, 4]  # all ten nodes are free from row 9 on, and 9 + 15 rows are beyond the horizon
    while not turn.terminated[0]:
        batch.step(np.array([4 if turn.mask[0, 4] else 0]), turn)
    starts = batch.worlds.world.run[0]["start"][:4] // 1_000_000
    assert starts.tolist() == [0, 5, 0, 9]


def test_slots_refill_at_the_lowest_empty_number() -> None:
    work = Workload.from_jobs({"submit_s": [0.0] * 4, "runtime_s": [3.0, 2.0, 1.0, 1.0], "cores": [1] * 4})
    batch = SlotsBatch(1, [work], "10x1", slots=2)
    turn = new_turn(batch)
    batch.restart(np.zeros(1, np.int64), turn, {"list": 0})
    assert batch.games.slots[0].tolist() == [0, 1]
    batch.step(np.array([2]), turn)
    assert batch.games.slots[0].tolist() == [0, 2]
    batch.step(np.array([1]), turn)
    assert batch.games.slots[0].tolist() == [3, 2]


def test_image_shows_chart_slots_backlog_and_silence() -> None:
    work = Workload.from_jobs({"submit_s": [0.0] * 4, "runtime_s": [3.0, 2.0, 4.0, 1.0], "cores": [2, 5, 1, 1]})
    batch = SlotsBatch(1, [work], "10x1", slots=2, observation="image", backlog=3)
    turn = new_turn(batch)
    batch.restart(np.zeros(1, np.int64), turn, {"list": 0})
    image = turn.observation[0]
    assert image.shape == (20, 10 + 2 * 10 + 3 + 1)
    assert (image[:, :10] == 0).all()
    assert (image[:3, 10:12] == 255).all() and image[:, 10:20].sum() == 255 * 6
    assert (image[:2, 20:25] == 255).all() and image[:, 20:30].sum() == 255 * 10
    assert image[0, 30:33].tolist() == [255, 255, 0] and image[:, 33].sum() == 0
    batch.step(np.array([1]), turn)
    batch.step(np.array([0]), turn)
    image = turn.observation[0]
    assert (image[:2, :2] > 0).all() and len(np.unique(image[:2, :2])) == 1 and (image[2:, :10] == 0).all()
    assert (image[:, 33] == 25).all()  # one unit of ten without a submission


def test_image_shows_reserved_jobs_in_colours_of_their_own() -> None:
    work = Workload.from_jobs({"submit_s": [0.0] * 2, "runtime_s": [3.0, 2.0], "cores": [6, 5]})
    batch = SlotsBatch(1, [work], "10x1", slots=2, observation="image", backlog=3, placement="reserve", skip="none")
    turn = new_turn(batch)
    batch.restart(np.zeros(1, np.int64), turn, {"list": 0})
    batch.step(np.array([1]), turn)
    batch.step(np.array([2]), turn)
    chart = turn.observation[0][:, :10]
    running, reserved = np.unique(chart[:3, :6]), np.unique(chart[3:5, :5])
    assert len(running) == len(reserved) == 1 and running[0] != reserved[0] and running[0] > 0 and reserved[0] > 0
    assert (chart[:3, 6:] == 0).all() and (chart[3:5, 5:] == 0).all() and (chart[5:] == 0).all()


@pytest.mark.parametrize("shape", ["compact", "image", "two kinds"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasiums_checker(shape: str) -> None:
    env = gymnasium.make("escala/Slots-v0", lists=8, render_mode="rgb_array", **SHAPES[shape])
    check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=0)
    picture = env.render()
    assert isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.ndim == 3


def test_twin_rollouts_batch_size_and_pickling() -> None:
    large, small = SlotsBatch(6, lists=32), SlotsBatch(2, lists=32)
    small = pickle.loads(pickle.dumps(small))
    turns = new_turn(large), new_turn(small)
    for batch, turn in zip((large, small), turns, strict=True):
        rows = np.arange(batch.num_envs)
        batch.seed(rows, np.arange(100, 100 + batch.num_envs, dtype=np.uint64))
        batch.restart(rows, turn, {})
    rng = np.random.default_rng(0)
    for k in range(300):
        actions = rng.integers(0, 11, 6)
        large.step(actions, turns[0])
        small.step(actions[:2], turns[1])
        for a, b in zip(*turns, strict=True):
            assert (a[:2] == b).all()
        if k == 150:  # a saved state, taken up by a fresh batch
            fresh = SlotsBatch(2, lists=32)
            fresh.restore(small.state())
            small = fresh


def test_vector_form_restarts_ended_rows() -> None:
    env = gymnasium.make_vec("escala/Slots-v0", num_envs=4, lists=16, load=0.4)
    env.reset(seed=0)
    ended = 0
    rng = np.random.default_rng(0)
    for _ in range(2000):
        _, _, terminated, _, info = env.step(rng.integers(0, 11, 4))
        ended += int(terminated.sum())
        if terminated.any():
            assert (info["slowdown"][terminated] >= 1).all() and "final_obs" in info
    assert ended > 0


def test_an_episode_is_cut_at_the_limit() -> None:
    batch = SlotsBatch(1, lists=4, limit=30)
    turn = new_turn(batch)
    batch.restart(np.zeros(1, np.int64), turn, {"list": 0})
    while not turn.truncated[0]:
        assert not turn.terminated[0]
        batch.step(np.zeros(1, np.int64), turn)
    assert batch.info()["row"][0] == 30


SHORT = Workload.from_jobs({"submit_s": [0.0], "runtime_s": [25.0], "cores": [3]}, name="one")
BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "too wide": (
        [SHORT],
        {"platform": "2x1"},
        "needs 3 cores, and platform .* has 2: .* or leave such jobs out of the workload$",
    ),
    "endless horizon": (None, {"horizon": 10**9}, "horizon=1000000000: at most 10000"),
    "endless lists": (None, {"lists": 10**9}, "lists=1000000000: at most 200000"),
    "horizon": ([SHORT], {"platform": "10x1"}, "horizon=20"),
    "horizon of reservations": ([SHORT], {"platform": "10x1", "placement": "reserve"}, "horizon=20"),
    "horizon of the image": ([SHORT], {"platform": "10x1", "observation": "image"}, "horizon=20"),
    "observation": (None, {"observation": "picture"}, "observation='picture'"),
    "unknown": (None, {"colour": 1}, "unknown option 'colour'"),
    "load": (None, {"load": 0.0}, "load"),
    "load that is no number": (None, {"load": float("nan")}, "load=nan"),
    "load that is a text": (None, {"load": "abc"}, "load='abc'"),
    "load above the ceiling": (None, {"load": 5}, "1.845"),
    "load of another model": (None, {"load": 0.5, "model": "cpu-memory"}, "has a rate"),
    "rate of another model": (None, {"rate": 0.5}, "has a load"),
    "load beside a workload": ([SHORT], {"platform": "10x1", "load": 0.5}, "leave it out"),
    "unit without a workload": (None, {"unit_s": 2.0}, "for a workload of yours"),
    "window": (None, {"window": 0}, "window=0"),
    "half a slot": (None, {"slots": 2.5}, "slots=2.5"),
    "half a unit": (None, {"limit": 3.5}, "limit=3.5"),
    "seed": (None, {"lists_seed": -1}, "lists_seed=-1"),
    "no workload": ([3], {"platform": "10x1"}, "Workloads"),
    "model": (None, {"model": "poisson"}, "model='poisson'"),
    "no machine": ([SHORT], {}, "platform"),
    "several nodes": ([SHORT], {"platform": "4x8"}, "one machine"),
    "off the grid": (
        [Workload.from_jobs({"submit_s": [0.5], "runtime_s": [1.0], "cores": [1]})],
        {"platform": "10x1"},
        "grid",
    ),
    "early end": (
        [Workload.from_jobs({"submit_s": [0.0], "runtime_s": [1.0], "walltime_s": [2.0], "cores": [1]})],
        {"platform": "10x1"},
        "estimate='runtime'",
    ),
    "too many columns": ([SHORT], {"platform": "100x1"}, "at most 62"),
}


@pytest.mark.parametrize("asked", [1.7, 5, -1, "a", None, [0, 1, 2]])
def test_a_bad_list_to_play_is_one_clear_line(asked: Any) -> None:
    batch = SlotsBatch(2, lists=5)
    with pytest.raises(EscalaError, match="0 to 4, or one for each of 2 episodes"):
        batch.restart(np.arange(2), new_turn(batch), {"list": asked})


@pytest.mark.parametrize("workload, given, words", BAD.values(), ids=BAD.keys())
def test_bad_options_give_one_clear_line(workload: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(EscalaError, match=words) as caught:
        SlotsBatch(1, workload, **given)
    assert "\n" not in str(caught.value)


def test_offered_load_of_drawn_lists_within_one_per_cent() -> None:
    lists = options_of({"load": 1.0, "lists": 8000}).job_lists()
    work = float((lists.job["runtime"] / 1e6 * lists.job["cores"]).sum())
    assert work / 10 / 100 / len(lists) == pytest.approx(1.0, rel=0.01)


def test_lists_as_workloads_give_the_same_jobs() -> None:
    lists = options_of({"model": "cpu-memory", "slots": 5, "lists": 3}).job_lists()
    again = options_of({"slots": 5}).job_lists([lists.workload(e) for e in range(3)], lists.platform)
    for name in ("submit", "runtime", "cores"):
        assert (lists.job[name] == again.job[name]).all()
    assert (lists.demand == again.demand).all() and (lists.first == again.first).all()
    assert isinstance(lists.workload(0), escala.Workload)


def test_the_end_of_arrivals_is_seen_where_it_is_known() -> None:
    """Two more numbers: the share of the time of arrivals that has passed, and whether all of it has."""
    work = Workload.from_jobs({"submit_s": [0.0, 4.0, 7.0], "runtime_s": [50.0, 50.0, 50.0], "cores": [6, 6, 6]})
    batch = SlotsBatch(1, [work], "10x1", slots=2, horizon=50, skip="none", arrivals_end=8)
    plain = SlotsBatch(1, [work], "10x1", slots=2, horizon=50, skip="none")
    turn, other = new_turn(batch), new_turn(plain)
    for one, seen in ((batch, turn), (plain, other)):
        one.restart(np.zeros(1, np.int64), seen, {"list": 0})
    assert turn.observation.shape[1] == other.observation.shape[1] + 2
    for row in range(12):
        assert np.array_equal(turn.observation[0, :-2], other.observation[0])
        assert turn.observation[0, -2:].tolist() == [min(row / 8, 1.0), float(row >= 8)]
        for one, seen in ((batch, turn), (plain, other)):
            one.step(np.zeros(1, np.int64), seen)
