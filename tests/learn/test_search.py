"""The search of a shutdown agent by whole days: repeats, goes on after a kill, gives an agent like any other, and finds what pays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import escala
from escala.agents import load_agent, search, search_scheduler
from escala.agents.queue_scorer import JOB_FEATURES, SCORES, QueueScorer, job_features
from escala.agents.scheduler_search import begins, choices, values, weights_of
from escala.envs.scheduling import SchedulingBatch
from escala.envs.scheduling_step import WIDTH
from escala.errors import EscalaError
from escala.studies.days import played
from tests.unit.envs.days import DAY_S, workload

pytestmark = pytest.mark.learn

SMALL: dict[str, Any] = {"generations": 3, "population": 5, "days_each": 3}


def days() -> list[escala.Workload]:
    return escala.workload.generate.grid5000(cluster="orion", days=5, seed=3).split_days()


def weights(agent: Any) -> np.ndarray:
    head = agent.network.action_net
    return np.concatenate([[head.centre.item()], head.mu.weight.detach().numpy().ravel()])


def test_a_killed_search_goes_on_and_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = search(days(), "orion", validation=days()[:2], seed=1, stretch_cost=0.1, **SMALL)

    class Killed(BaseException):
        pass

    def kill(share: float) -> None:
        if share > 0.5:
            raise Killed

    again: dict[str, Any] = {"validation": days()[:2], "seed": 1, "stretch_cost": 0.1, "out": tmp_path / "run", **SMALL}
    with pytest.raises(Killed):
        search(days(), "orion", progress=kill, **again)
    with pytest.raises(escala.EscalaError, match="other arguments"):
        search(days(), "orion", **again | {"seed": 2})
    resumed = search(days(), "orion", **again)
    assert np.array_equal(weights(whole), weights(resumed))
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["manifest.json", "weights.pt"]
    assert np.array_equal(weights(load_agent(tmp_path / "run")), weights(whole))
    assert not np.array_equal(weights(whole), weights(search(days(), "orion", seed=2, stretch_cost=0.1, **SMALL)))


def test_a_searched_agent_is_a_policy_of_simulate() -> None:
    agent = search(days(), "orion", seed=0, stretch_cost=0.1, **SMALL)
    result = escala.simulate(days()[0], "orion", scheduler="saf", shutdown=agent, start_off=True, until_s=DAY_S)
    assert result.summary()["waste_j"] > 0.0


def test_the_search_finds_that_waiting_for_company_saves_energy() -> None:
    """Pairs of short jobs, the second 4 min after the first ends, with walltimes that allow to wait: one boot for two."""
    jobs = [job for k in range(20) for job in ((k * 4000.0, 60.0, 3600.0, 1), (k * 4000.0 + 420.0, 60.0, 3600.0, 1))]
    day = workload(*jobs)
    agent = search([day], "1x1", generations=4, population=8, seed=0)
    how: dict[str, Any] = {"scheduler": "saf", "start_off": True, "until_s": DAY_S}
    eager = escala.simulate(day, "1x1", shutdown="timeout:0", **how).summary()["waste_j"]
    learnt = escala.simulate(day, "1x1", shutdown=agent.policy(sampled=False), **how).summary()["waste_j"]
    assert learnt < 0.6 * eager


def test_bad_arguments_are_told_in_one_line() -> None:
    with pytest.raises(escala.EscalaError, match="generations"):
        search(days(), "orion", generations=0)


def test_a_searched_scheduler_is_a_policy_of_simulate_and_does_there_what_it_did_in_the_environment() -> None:
    agent = search_scheduler(days(), "orion", price=0.001, generations=2, population=4, days_each=3, seed=0, window="cut")
    for day in days()[:2]:
        random = np.random.default_rng(0)
        batch = SchedulingBatch(1, [day], "orion", **agent.env_options)
        rows, _, _ = played(batch, lambda seen, mask, random=random: agent.act(seen, mask, random), [day])
        result = escala.simulate(day, "orion", scheduler=agent.policy(seed=0), shutdown="timeout:300", start_off=True, until_s=DAY_S)
        assert result.summary()["waste_j"] == pytest.approx(rows[0]["waste_j"], rel=1e-12)


def test_a_searched_scheduler_learns_to_wait_for_nodes_that_are_on() -> None:
    """Pairs of 3-minute jobs a minute apart: one boot serves both where the second waits 3 minutes for the first's node."""
    jobs = [job for k in range(20) for job in ((k * 4000.0, 180.0, 600.0, 1), (k * 4000.0 + 60.0, 180.0, 600.0, 1))]
    day = workload(*jobs)
    agent = search_scheduler([day], "2x1", price=1e-4, generations=3, population=8, seed=0, window="cut")
    how: dict[str, Any] = {"shutdown": "timeout:300", "start_off": True, "until_s": DAY_S}
    eager = escala.simulate(day, "2x1", scheduler="first-fit", **how).summary()["waste_j"]
    learnt = escala.simulate(day, "2x1", scheduler=agent.policy(seed=0), **how).summary()["waste_j"]
    assert learnt < 0.75 * eager


def test_the_best_order_of_the_released_jobs_starts() -> None:
    """By the definition, for random observations and scores; and the network's likeliest choice is what was searched."""
    rng = np.random.default_rng(0)
    seen = rng.random((200, 5, WIDTH + 1), dtype=np.float32)
    mask = np.concatenate([np.ones((200, 1), bool), rng.random((200, 5)) < 0.6], axis=1)
    weights = rng.normal(size=len(SCORES) * len(JOB_FEATURES))
    network = QueueScorer(5)
    with torch.no_grad():
        network.score.weight.copy_(torch.as_tensor(weights, dtype=torch.float32).reshape(len(SCORES), -1))
        preferences = network(torch.as_tensor(seen).flatten(1))[0].masked_fill(~torch.as_tensor(mask), -torch.inf).numpy()
        every = torch.cartesian_prod(torch.arange(200), torch.arange(5))
        numbers = job_features(torch.as_tensor(seen), every[:, 0], every[:, 1]).numpy().astype(np.float64).reshape(200, 5, -1)
    order, release = numbers @ weights[: len(JOB_FEATURES)], numbers @ weights[len(JOB_FEATURES) :]
    wanted = []
    for k in range(200):
        may = [place for place in range(5) if mask[k, place + 1] and release[k, place] > 0.0]
        wanted.append(1 + max(may, key=lambda place: order[k, place]) if may else 0)
    assert 0 < wanted.count(0) < 200
    assert choices(weights, seen, mask).tolist() == wanted
    assert preferences.argmax(axis=1).tolist() == wanted


def test_scores_are_given_by_name() -> None:
    weights = weights_of({"walltime": -0.5}, {"always": 1.0})
    assert weights[JOB_FEATURES.index("walltime")] == -0.5 and weights[len(JOB_FEATURES)] == 1.0
    assert np.count_nonzero(weights) == 2 and len({row.tobytes() for row in begins()}) == len(begins())


def test_waiting_costs_only_beyond_what_is_free() -> None:
    """Three jobs on one node, one after the other: nothing is free, half of the mean wait is, all of it is."""
    day = workload((0.0, 600.0, 900.0, 1), (0.0, 600.0, 900.0, 1), (0.0, 600.0, 900.0, 1))

    def value(price: float, free_s: float) -> float:
        return values(begins()[0], SchedulingBatch(1, [day], "1x1", window="cut", waits=True), price, free_s)[0]

    run = escala.simulate(day, "1x1", scheduler="first-fit", shutdown="timeout:300", start_off=True, until_s=DAY_S)
    wait_s = float(run.jobs["wait_s"].sum())
    assert wait_s > 1800.0
    waste = -value(0.0, 0.0)
    assert value(2.0, 0.0) == pytest.approx(-waste - 2.0 * wait_s / 60.0)
    assert value(2.0, wait_s / 2.0) == pytest.approx(-waste - 2.0 * wait_s / 120.0)
    assert value(2.0, wait_s) == pytest.approx(-waste)
    with pytest.raises(EscalaError, match="limit=-1"):
        search_scheduler([day], "1x1", price=1.0, limit=-1.0)


@pytest.mark.parametrize("none", [[], (), ["days.swf"]])
def test_learning_from_no_day_is_one_clear_line(none: Any) -> None:
    one = "give at least one day, each a Workload"
    for env_id in ("escala/OffReservation-v0", "escala/Scheduling-v0", "escala/Slots-v0"):
        with pytest.raises(EscalaError, match=f"^workload: {one}$"):
            escala.train(env_id, none, "orion", steps=10)
    with pytest.raises(EscalaError, match=f"^days: {one}$"):
        search(none, "orion")
    with pytest.raises(EscalaError, match=f"^days: {one}$"):
        search_scheduler(none, "orion", price=1.0)


def test_judging_on_no_day_is_one_clear_line() -> None:
    with pytest.raises(EscalaError, match=r"^days: give at least one day"):
        escala.evaluate(None, [], "orion")  # type: ignore[arg-type]
