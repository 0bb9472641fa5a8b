"""The search of a shutdown agent by whole days: repeats, goes on after a kill, gives an agent like any other, and finds
what pays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import escala
from escala.agents import load_agent, rule_scheduler, search, search_scheduler
from escala.agents.direct_search import hold_play, queue_play
from escala.agents.direct_search.queue_play import best
from escala.agents.direct_search.scheduler_search import Free, begins, free_waits, rules, values, weights_of
from escala.agents.networks.queue_scorer import QueueScorer
from escala.envs.core.batch import new_turn
from escala.envs.rjms.hold_features import HISTORY, JOBS, hold_features
from escala.envs.rjms.observation import JOB, RUNNING, RUNNING_SHOWN, SNAPSHOT, SUMMARY
from escala.envs.rjms.off_reservation import OffReservationBatch
from escala.envs.rjms.queue_features import JOB_FEATURES, SCORES, job_features
from escala.envs.rjms.scheduling import SchedulingBatch
from escala.envs.rjms.scheduling_step import WIDTH
from escala.errors import EscalaError
from escala.studies.lab.days import played
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
    assert np.array_equal(weights(search(days(), "orion", **again)), weights(whole))  # there already
    for other in ({"seed": 2}, {"validation": days()[1:3]}, {"generations": 4}):
        with pytest.raises(escala.EscalaError, match=f"holds an agent with {next(iter(other))}(_days)?="):
            search(days(), "orion", **again | other)
    with pytest.raises(escala.EscalaError, match="holds an agent with platform="):
        search(days(), "taurus", **again)
    with pytest.raises(escala.EscalaError, match="holds an agent with env_id="):
        search_scheduler(days(), "orion", price=1.0, out=tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(escala.EscalaError, match="not a folder"):
        search(days(), "orion", out=tmp_path / "file")
    assert not np.array_equal(weights(whole), weights(search(days(), "orion", seed=2, stretch_cost=0.1, **SMALL)))


def test_a_searched_agent_is_a_policy_of_simulate() -> None:
    agent = search(days(), "orion", seed=0, stretch_cost=0.1, **SMALL)
    result = escala.simulate(days()[0], "orion", scheduler="saf", shutdown=agent, start_off=True, until_s=DAY_S)
    assert result.summary()["waste_j"] > 0.0
    with pytest.raises(EscalaError, match="is a shutdown policy, given as scheduler: give it as shutdown"):
        escala.simulate(days()[0], "orion", scheduler=agent)


def test_the_search_finds_that_waiting_for_company_saves_energy() -> None:
    """Pairs of short jobs, the second 4 min after the first ends, with walltimes that allow to wait: one boot for
    two."""
    jobs = [job for k in range(20) for job in ((k * 4000.0, 60.0, 3600.0, 1), (k * 4000.0 + 420.0, 60.0, 3600.0, 1))]
    day = workload(*jobs)
    agent = search([day], "1x1:grid5000", generations=4, population=8, seed=0)
    how: dict[str, Any] = {"scheduler": "saf", "start_off": True, "until_s": DAY_S}
    eager = escala.simulate(day, "1x1:grid5000", shutdown="timeout:0", **how).summary()["waste_j"]
    learnt = escala.simulate(day, "1x1:grid5000", shutdown=agent.policy(sampled=False), **how).summary()["waste_j"]
    assert learnt < 0.6 * eager


def test_bad_arguments_are_told_in_one_line() -> None:
    with pytest.raises(escala.EscalaError, match="generations"):
        search(days(), "orion", generations=0)


def test_a_searched_scheduler_is_a_policy_of_simulate_and_does_there_what_it_did_in_the_environment() -> None:
    agent = search_scheduler(
        days(), "orion", price=0.001, generations=2, population=4, days_each=3, seed=0, window="cut"
    )
    for day in days()[:2]:
        random = np.random.default_rng(0)
        batch = SchedulingBatch(1, [day], "orion", **agent.env_options)
        rows, _, _ = played(batch, lambda seen, mask, random=random: agent.act(seen, mask, random), [day])
        result = escala.simulate(
            day, "orion", scheduler=agent.policy(seed=0), shutdown="timeout:300", start_off=True, until_s=DAY_S
        )
        assert result.summary()["waste_j"] == pytest.approx(rows[0]["waste_j"], rel=1e-12)


def test_a_searched_scheduler_learns_to_wait_for_nodes_that_are_on() -> None:
    """Pairs of 3-minute jobs a minute apart: one boot serves both where the second waits 3 minutes for the first's
    node."""
    jobs = [job for k in range(20) for job in ((k * 4000.0, 180.0, 600.0, 1), (k * 4000.0 + 60.0, 180.0, 600.0, 1))]
    day = workload(*jobs)
    agent = search_scheduler([day], "2x1:grid5000", price=1e-4, generations=3, population=8, seed=0, window="cut")
    how: dict[str, Any] = {"shutdown": "timeout:300", "start_off": True, "until_s": DAY_S}
    eager = escala.simulate(day, "2x1:grid5000", scheduler="first-fit", **how).summary()["waste_j"]
    learnt = escala.simulate(day, "2x1:grid5000", scheduler=agent.policy(seed=0), **how).summary()["waste_j"]
    assert learnt < 0.75 * eager


def test_the_best_order_of_the_released_jobs_starts() -> None:
    """By the definition, for random observations and scores; and the network's greedy action is what was searched."""
    rng = np.random.default_rng(0)
    seen = rng.random((200, 5, WIDTH + 1), dtype=np.float32)
    mask = np.concatenate([np.ones((200, 1), bool), rng.random((200, 5)) < 0.6], axis=1)
    weights = rng.normal(size=len(SCORES) * len(JOB_FEATURES))
    network = QueueScorer(5)
    with torch.no_grad():
        network.score.weight.copy_(torch.as_tensor(weights, dtype=torch.float32).reshape(len(SCORES), -1))
        preferences = (
            network(torch.as_tensor(seen).flatten(1))[0].masked_fill(~torch.as_tensor(mask), -torch.inf).numpy()
        )
    numbers = job_features(seen, np.repeat(np.arange(200), 5), np.tile(np.arange(5), 200)).reshape(200, 5, -1)
    order, release = numbers @ weights[: len(JOB_FEATURES)], numbers @ weights[len(JOB_FEATURES) :]
    wanted = []
    for k in range(200):
        may = [place for place in range(5) if mask[k, place + 1] and release[k, place] > 0.0]
        wanted.append(1 + max(may, key=lambda place: order[k, place]) if may else 0)
    assert 0 < wanted.count(0) < 200
    one = np.ascontiguousarray(weights.reshape(len(SCORES), -1))
    assert [best(seen[k], mask[k], one, np.zeros(len(JOB_FEATURES))) for k in range(200)] == wanted
    assert preferences.argmax(axis=1).tolist() == wanted


@pytest.mark.parametrize("window", ["cut", "drain"])
def test_whole_days_are_played_as_the_environment_plays_them(window: str) -> None:
    batch = SchedulingBatch(5, days(), "orion", waits=True, places=12, window=window, drain_days=0.2)
    rng, rows, turn = np.random.default_rng(2), np.arange(5), new_turn(batch)
    for weights in (begins()[0], begins()[7], begins()[7] + 0.3 * rng.normal(size=len(begins()[7]))):
        one = np.ascontiguousarray(weights.reshape(len(SCORES), -1))
        batch.restart(rows, turn, {"day": rows})
        waste, waited, over, decisions = np.zeros(5), np.zeros(5), np.zeros(5, bool), 0
        while not over.all():
            actions = np.array(
                [best(turn.observation[k], turn.mask[k], one, np.zeros(len(JOB_FEATURES))) for k in rows]
            )
            decisions += int((~over).sum())
            batch.step(actions, turn)
            waste[~over] += batch.info()["waste_j"][~over]
            # a job that has not started has waited until the end
            for k in np.flatnonzero(~over & (turn.terminated | turn.truncated)):
                submit = batch.episodes.days[k].jobs["submit_s"].to_numpy()
                start = batch.episodes.world.run[k, : len(submit)]["start"]
                waited[k] = (np.where(start >= 0, start, batch.episodes.world.s[k, 0]["now"]) * 1e-6 - submit).sum()
            over |= turn.terminated | turn.truncated
        found, waits, count = queue_play.whole_days(weights, batch)
        assert found == pytest.approx(waste, rel=1e-9) and count == decisions
        assert waits == pytest.approx(waited, rel=1e-9) and waits.sum() > 0.0


def test_a_job_that_is_submitted_after_the_end_of_a_day_has_not_waited() -> None:
    first, late = (0.0, 600.0, 900.0, 1), (DAY_S + 3600.0, 600.0, 900.0, 1)
    alone, both = (
        SchedulingBatch(1, [workload(*jobs)], "1x1:grid5000", window="cut", waits=True)
        for jobs in ((first,), (first, late))
    )
    assert queue_play.whole_days(begins()[0], both)[1] == pytest.approx(queue_play.whole_days(begins()[0], alone)[1])


def test_scores_that_read_waits_are_refused_where_none_are_shown() -> None:
    with pytest.raises(EscalaError, match="waits=False"):
        search_scheduler(days(), "orion", price=1e-3, generations=1, population=4, waits=False)


@pytest.mark.parametrize("window", ["cut", "drain"])
def test_whole_days_of_holding_are_played_as_the_environment_plays_them(window: str) -> None:
    how: dict[str, Any] = {
        "action": "hold",
        "observation": "compact",
        "holds": [0.0, 0.1, 0.3, 0.6],
        "stretch_cost": 0.1,
        "drain_days": 0.1,
    }
    batch = OffReservationBatch(5, days(), "orion", window=window, **how)
    rng, rows, turn = np.random.default_rng(1), np.arange(5), new_turn(batch)
    for weights in (np.eye(19)[0], np.append(1.5, rng.normal(size=18)), np.append(1.0, 3.0 * rng.normal(size=18))):
        batch.restart(rows, turn, {"day": rows})
        total, over, decisions = np.zeros(5), np.zeros(5, bool), 0
        while not over.all():
            score = weights[0] + hold_features(turn.observation) @ weights[1:]
            decisions += int((~over).sum())
            batch.step(np.clip(np.rint(score), 0, 3).astype(np.int64), turn)
            total[~over] += turn.reward[~over]
            over |= turn.terminated | turn.truncated
        found, count = hold_play.whole_days(weights, batch)
        assert found == pytest.approx(total, rel=1e-9) and count == decisions


def test_the_numbers_that_holding_reads_by_their_definition() -> None:
    """From random observations of ten waiting and ten running places, some empty, against their names."""
    rng = np.random.default_rng(0)
    size = HISTORY * SNAPSHOT + JOBS * JOB + RUNNING_SHOWN * RUNNING + SUMMARY
    seen = rng.random((300, size), dtype=np.float32)
    past, queue, runs, summary = np.split(
        seen, np.cumsum([HISTORY * SNAPSHOT, JOBS * JOB, RUNNING_SHOWN * RUNNING]), axis=1
    )
    past, queue, runs = (
        past.reshape(300, HISTORY, -1),
        queue.reshape(300, JOBS, -1),
        runs.reshape(300, RUNNING_SHOWN, -1),
    )
    for places in (queue, runs):
        places[np.arange(10) >= rng.integers(0, 11, 300)[:, None]] = 0.0
    runs[:, :, 2] *= 0.2  # some are younger than 15 min
    found = hold_features(seen)
    for k in range(300):
        waiting = [job for job in queue[k].astype(float) if job[0] > 0]
        running = [job for job in runs[k].astype(float) if job[0] > 0]
        first, now, before = queue[k, 0].astype(float), past[k, -1].astype(float), past[k, -11].astype(float)
        young = sum(job[0] for job in running if job[2] < (15 / 1440) ** 0.5)
        wanted = [
            first[1] - 0.3, first[0] - 0.1, first[3], max([job[2] for job in waiting], default=0.0),
            (np.mean([job[1] for job in waiting]) if waiting else 0.0) - 0.3, now[5], summary[k, 3], now[0],
            now[0] - before[0],
            now[3] + now[4], summary[k, 0], summary[k, 2], float(bool(running)),
            1.0 - min([job[2] for job in running], default=1.0),
            min([job[1] for job in running], default=1.0), min(sum(job[0] for job in running) / max(first[0], 1e-6),
                                                               1.0),
            min(young / max(first[0], 1e-6), 1.0), now[7] - 0.5,
        ]  # fmt: skip
        assert found[k] == pytest.approx(wanted, abs=1e-6)


def test_the_numbers_of_a_waiting_job_by_their_definition() -> None:
    rng = np.random.default_rng(3)
    seen = rng.random((60, 5, WIDTH + 1), dtype=np.float32)
    seen[:, :, 5] *= 0.2  # some running jobs should end within 15 min
    found = job_features(seen, np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)).reshape(60, 5, -1)
    for k in range(60):
        # given cores, queue length, time of day, computing, idle, off, on their way off and on
        now = seen[k, -1, 6:].astype(float)
        soon = sum(float(row[3]) for row in seen[k] if row[5] < (15 / 1440) ** 0.5)
        for place in range(5):
            cores, wall, trust = (float(x) for x in seen[k, place, :3])
            days_waited, expected = float(seen[k, place, WIDTH]) ** 2, wall * trust**0.5
            beyond = max(cores - now[4] - 1e-6, 0.0)
            wakes = float(beyond > 0)
            waits = [min(days_waited * share, 1.0) for share in (1440 / 15, 24, 1 / wall**2)]
            times = [now[1], now[3], soon, expected, place / 4, now[6] + now[7], *waits]
            wanted = [1.0, wall, cores, trust, expected, place / 4, wakes, beyond, *(wakes * x for x in times)]
            assert found[k, place] == pytest.approx(wanted, abs=1e-6)


def test_scores_are_given_by_name() -> None:
    weights = weights_of({"walltime": -0.5}, {"always": 1.0})
    assert weights[JOB_FEATURES.index("walltime")] == -0.5 and weights[len(JOB_FEATURES)] == 1.0
    assert np.count_nonzero(weights) == 2 and len({row.tobytes() for row in begins()}) == len(begins())


def test_waiting_costs_only_beyond_what_is_free() -> None:
    """Three jobs on one node, one after the other: nothing is free, half of the mean wait is, all of it is."""
    day = workload((0.0, 600.0, 900.0, 1), (0.0, 600.0, 900.0, 1), (0.0, 600.0, 900.0, 1))

    def value(price: float, free_s: float) -> float:
        free = Free(np.zeros(1, np.int64), np.array([free_s]))
        return values(begins()[0], SchedulingBatch(1, [day], "1x1:grid5000", window="cut", waits=True), price, free)[0]

    run = escala.simulate(
        day, "1x1:grid5000", scheduler="first-fit", shutdown="timeout:300", start_off=True, until_s=DAY_S
    )
    wait_s = float(run.jobs["wait_s"].sum())
    assert wait_s > 1800.0
    waste = -value(0.0, 0.0)
    assert value(2.0, 0.0) == pytest.approx(-waste - 2.0 * wait_s / 60.0)
    assert value(2.0, wait_s / 2.0) == pytest.approx(-waste - 2.0 * wait_s / 120.0)
    assert value(2.0, wait_s) == pytest.approx(-waste)
    with pytest.raises(EscalaError, match="limit=-1"):
        search_scheduler([day], "1x1:grid5000", price=1.0, limit=-1.0)


def test_what_is_gained_on_crowded_days_pays_for_no_wait_on_quiet_ones() -> None:
    """Days of four, two and one job, on one node: the four wait most."""
    batch = SchedulingBatch(
        3, [workload(*[(0.0, 600.0, 900.0, 1)] * jobs) for jobs in (4, 1, 2)], "1x1:grid5000", window="cut", waits=True
    )
    waits = queue_play.whole_days(begins()[0], batch)[1]
    whole, many = free_waits(batch, 0.5), free_waits(batch, 0.5, 4)
    assert whole.stratum.tolist() == [0, 0, 0] and whole.seconds.tolist() == pytest.approx([0.5 * waits.sum()])
    assert many.stratum[1] == 0 and many.stratum[0] > 0 and waits[1] < waits[2] < waits[0]
    assert many.seconds.sum() == pytest.approx(0.5 * waits.sum())
    apart = Free(np.array([1, 0, 0]), np.array([waits[1] + waits[2] - 60.0, 2.0 * waits[0]]))
    together = Free(np.zeros(3, np.int64), np.array([apart.seconds.sum()]))
    cost = values(begins()[0], batch, 6.0, together)[0] - values(begins()[0], batch, 6.0, apart)[0]
    assert cost == pytest.approx(6.0 * 1.0 / 3)  # a minute beyond the limit of the quiet days, 3 days
    with pytest.raises(EscalaError, match="strata=0"):
        search_scheduler([workload((0.0, 600.0, 900.0, 1))], "1x1:grid5000", price=1.0, strata=0)


def test_under_every_beginning_all_jobs_start() -> None:
    """Jobs of one node each while all nodes are off, run to completion: none is held for ever."""
    day = workload(*[(600.0 * k, 900.0, 1800.0, 4) for k in range(4)], (4000.0, 60.0, 120.0, 1))
    batch = SchedulingBatch(1, [day], "2x4:grid5000", window="drain", drain_days=2.0, waits=True)
    for name, weights in rules().items():
        wait = queue_play.whole_days(weights, batch)[1]
        assert 0.0 < wait[0] < 5 * 3600.0, name
    assert len(rules()) == len(begins()) == 26


def test_a_rule_is_an_agent_that_chooses_as_the_best_beginning_does() -> None:
    """With waits at a high price First-Fit's or a shorter one wins; the agent's days are those of its weights."""
    agent = rule_scheduler(days(), "orion", price=0.01, window="cut")
    weights = np.array(list(agent.manifest["score"].values()))
    batch = SchedulingBatch(len(days()), days(), "orion", window="cut", waits=True)
    mine = [values(one, batch, 0.01)[0] for one in begins()]
    assert values(weights, batch, 0.01)[0] == max(mine) and agent.manifest["preset"] == "rule"
    assert any(np.array_equal(weights, one) for one in begins())


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
