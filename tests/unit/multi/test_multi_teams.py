"""Teams that learn: what a learner sees, exact resume, saving, and the same choices in the simulation as in the
game."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import escala
from escala.agents import against_sjf, checkpoint
from escala.agents.imitation import team_teaching
from escala.agents.team import load_team
from escala.agents.training.team import train as team_train
from escala.agents.training.team import validation
from escala.agents.training.team.train import train_team
from escala.agents.training.team.validation import Looks
from escala.agents.training.team.view import TeamView
from escala.envs import multi
from escala.envs.slots.team.options import options_of
from escala.envs.slots.team.playing import play
from escala.envs.slots.team.policy import TeamPolicy
from escala.errors import EscalaError

SMALL: dict[str, Any] = {
    "num_envs": 4,
    "learn": {"n_steps": 16, "batch_size": 32, "n_epochs": 2},
    "steps": 60,
    "lists": 16,
}


def weights(team: Any) -> list[torch.Tensor]:
    return [value for network in team.networks for value in network.state_dict().values()]


def judge_of(**shape: Any) -> Callable[[Any], float]:
    lists = options_of({**shape, "lists": 2, "lists_seed": 7, "steps": 20}).job_lists()
    return lambda team: float(play(lists, team.members(seed=0), **shape)["slowdown"].mean())


def test_a_learner_is_paid_for_all_that_passes_between_its_turns_and_sees_its_own_turns_only() -> None:
    batch = multi.batch(3, lists=6, steps=40, skip="forced")
    view = TeamView(batch, 1, lambda: ["sjf"] * 3)
    view.reset()
    rng = np.random.default_rng(0)
    total, ended = np.zeros(3), 0
    for _ in range(400):
        assert (batch.agent == 1).all()
        choice = np.array([rng.choice(np.flatnonzero(mask)) for mask in view.action_masks()])
        lists = batch.worlds.chosen.copy()
        _, reward, done, infos = view.step(choice)
        total += reward
        for row in np.flatnonzero(done):
            jobs = int(batch.lists.jobs_of[lists[row]])
            if ended > 3:  # rewards before the first turn of an episode belong to nobody's choice
                assert infos[row]["episode"]["r"] < -0.8 * jobs
            assert infos[row]["terminal_observation"].shape == batch.observation_space.shape
            ended += 1
    assert ended > 3


@pytest.mark.slow
@pytest.mark.learn
@pytest.mark.parametrize("mode", team_train.MODES)
def test_a_killed_training_resumed_equals_an_uninterrupted_one(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**SMALL, "mode": mode, "agents": 2, "seed": 3, "teacher": None, "steps": 320}
    whole = train_team(**given)
    better = itertools.count(0.0, -1.0)
    last = train_team(**given, judge=lambda team: next(better))
    assert all((a == b).all() for a, b in zip(weights(whole), weights(last), strict=True))  # looking moves no weight
    judge = judge_of(agents=2)
    judged = train_team(**given, judge=judge)
    decisions = [at for at, _ in judged.manifest["judged"]]
    assert (
        decisions == sorted(set(decisions))
        and decisions[0] == 0
        and decisions[-1] == judged.manifest["steps_done"] >= 320
    )
    assert judge(judged) == min(value for _, value in judged.manifest["judged"]) and whole.manifest["judged"] == []
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)
    rounds = 0

    def interrupt(share: float) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_team(**given, out=tmp_path / "team", progress=interrupt, judge=judge)
    resumed = train_team(**given, out=tmp_path / "team", resume=True, judge=judge)
    assert resumed.manifest["judged"] == judged.manifest["judged"]
    assert all((a == b).all() for a, b in zip(weights(judged), weights(resumed), strict=True))
    assert not (tmp_path / "team" / checkpoint.FILE).exists()
    with pytest.raises(EscalaError, match="holds a training already"):
        train_team(**given, out=tmp_path / "team")
    with pytest.raises(EscalaError, match="has ended, nothing is left to resume"):
        train_team(**given, out=tmp_path / "team", resume=True)


def test_the_weights_of_the_best_look_are_kept_also_over_a_checkpoint() -> None:
    network = torch.nn.Linear(1, 1, bias=False)
    figures = {0.0: math.nan, 0.25: 3.0, 0.5: 2.0, 0.75: math.inf, 1.0: 2.5}

    def judge(team: Any) -> float:
        return figures[team]

    def go_on(looks: Looks, shares: list[float]) -> None:
        for share in shares:
            network.weight.data.fill_(share)
            looks.look(round(100 * share), share, partial(float, share))  # type: ignore[arg-type]

    looks = Looks(judge, 4, [network])
    go_on(looks, [0.0, 0.1, 0.25, 0.5])
    resumed = Looks(judge, 4, [network])
    resumed.restore(looks.state())
    go_on(resumed, [0.6, 0.75, 1.0])
    resumed.end()
    assert resumed.points == [[0, None], [25, 3.0], [50, 2.0], [75, None], [100, 2.5]] and network.weight.item() == 0.5
    unseen = Looks(None, 4, [network])
    go_on(unseen, [0.0, 1.0])
    unseen.end()
    assert unseen.points == [] and network.weight.item() == 1.0
    with pytest.raises(EscalaError, match="looks=0"):
        Looks(None, 0, [network])


def test_a_judge_tells_how_a_team_does_against_sjf_load_by_load(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = {"agents": 2, "load": [0.3, 1.2]}
    light, heavy = (
        options_of({"agents": 2, "load": load, "lists": 6, "lists_seed": 7, "steps": 60}).job_lists()
        for load in (0.3, 1.2)
    )

    def team(member: Any, **options: Any) -> Any:
        return SimpleNamespace(options={**shape, **options}, members=lambda sampled, seed: [member] * 2)

    def mean(lists: Any, rule: str, turns: str = "single") -> float:
        return float(np.mean(play(lists, rule, agents=2, turns=turns)["slowdown"].to_numpy()))

    # run to completion, whatever a training's limit is
    assert against_sjf(light, heavy)(team("sjf", limit=20, lists=16)) == 1.0
    both = [mean(lists, "random", "until-void") / mean(lists, "sjf") for lists in (light, heavy)]
    assert against_sjf(light, heavy)(team("random", turns="until-void")) == pytest.approx(np.mean(both), rel=1e-12)
    assert abs(both[0] - both[1]) > 0.01
    monkeypatch.setattr(validation, "MOST_TURNS", 400)

    def idles(seen: Any, mask: Any) -> Any:
        return np.full(len(mask), mask.shape[1] - 1)

    # nothing takes the no-op away from a team that draws its actions
    assert math.isnan(against_sjf(light, sampled=True)(team(idles)))
    with pytest.raises(EscalaError, match="give one or more"):
        against_sjf()
    with pytest.raises(EscalaError, match="job lists have 3"):
        against_sjf(options_of({"resources": 3, "lists": 1}).job_lists())(team("sjf"))


@pytest.mark.slow
@pytest.mark.learn
def test_a_taught_team_plays_like_its_teacher_and_the_same_in_the_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_teaching, "OF_RULE", team_teaching.Manner(64, 400, 0.0))
    team = train_team(mode="turns", agents=2, load=0.8, seed=1, **SMALL)
    team.save(tmp_path)
    loaded = load_team(tmp_path)
    assert (
        all((a == b).all() for a, b in zip(weights(team), weights(loaded), strict=True))
        and loaded.manifest["mode"] == "turns"
    )
    options = options_of({"agents": 2, "load": 0.8, "lists": 5, "lists_seed": 9, "steps": 60})
    lists = options.job_lists()
    mine = play(lists, loaded.members(sampled=False), agents=2, skip="forced")
    taught = play(lists, "sjf", agents=2)
    assert mine["slowdown"].mean() < 1.1 * taught["slowdown"].mean()
    for e in range(2):
        work = lists.workload(e)
        simulated = escala.simulate(work, lists.platform, scheduler=loaded.policy(sampled=False))
        slowdown = (simulated.jobs["finish_s"] - simulated.jobs["submit_s"]) / simulated.jobs["runtime_s"]
        assert slowdown.mean() == pytest.approx(mine["slowdown"][e], rel=1e-9)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    wrong: list[tuple[Any, str]] = [
        ([1], "not the manifest of a team"),
        (None, "not the manifest of a team"),
        (manifest | {"agents": 3}, "'agents'"),
        (manifest | {"options": None}, "'options'"),
        (manifest | {"shape": manifest["shape"][:4]}, "'shape'"),
        # would be one network for both
        (manifest | {"weights_sha256": manifest["weights_sha256"][:1]}, "'weights_sha256'"),
        *(
            ({k: v for k, v in manifest.items() if k != name}, f"'{name}'")
            for name in ("mode", "actions", "shape", "weights_sha256")
        ),
        (manifest | {"shape": [*manifest["shape"][:4], manifest["shape"][4] + 1]}, "another version of escala"),
    ]
    for content, words in wrong:
        (tmp_path / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(EscalaError, match=words):
            load_team(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "weights-0.pt").write_bytes(b"other")
    with pytest.raises(EscalaError, match="save the team again"):
        load_team(tmp_path)


@pytest.mark.parametrize(
    "rule, turns", [("sjf", "single"), ("packer", "until-void"), ("dense", "single"), ("tetris", "until-void")]
)
def test_rules_play_the_same_in_the_simulation_as_in_the_game(rule: str, turns: str) -> None:
    options = options_of({"agents": 2, "machines": 2, "load": 0.9, "lists": 3, "lists_seed": 4, "steps": 50})
    lists = options.job_lists()
    played = play(lists, rule, agents=2, machines=2, turns=turns)
    for e in range(3):
        policy = TeamPolicy(rule, agents=2, machines=2, turns=turns)
        jobs = escala.simulate(lists.workload(e), lists.platform, scheduler=policy).jobs
        slowdown = (jobs["finish_s"] - jobs["submit_s"]) / jobs["runtime_s"]
        assert slowdown.mean() == pytest.approx(played["slowdown"][e], rel=1e-9)


@pytest.mark.parametrize(
    "team, given, match",
    [
        ("sjf", {"agent": 2}, "unknown option 'agent'"),
        ("sjf", {"unit_s": 0}, "unit_s=0"),
        ("sjf", {"unit_s": "x"}, "unit_s='x'"),
        ("sjf", {"rescue": -1}, "rescue=-1"),
        ("best", {}, "unknown rule 'best'"),
        (3, {}, "unknown rule 3"),
    ],
)
def test_a_bad_team_policy_is_one_clear_line(team: Any, given: dict[str, Any], match: str) -> None:
    with pytest.raises(EscalaError, match=match):
        TeamPolicy(team, **given)


@pytest.mark.parametrize("action", [-1, -5, 10**6])
def test_an_action_out_of_range_is_one_clear_line(action: int) -> None:
    lists = options_of({"agents": 2, "load": 0.6, "lists": 1, "steps": 30}).job_lists()
    team = TeamPolicy(lambda: [lambda seen, mask: np.array([action])] * 2, agents=2, name="mine")
    with pytest.raises(EscalaError, match=f"mine: its function chose .*{action}.*: return one whole number in 0"):
        escala.simulate(lists.workload(0), lists.platform, scheduler=team)


def test_a_team_in_compare() -> None:
    lists = options_of({"agents": 2, "load": 0.6, "lists": 1, "steps": 30}).job_lists()
    team, work = TeamPolicy("packer", agents=2, name="team"), lists.workload(0)
    found = escala.compare(work, lists.platform, schedulers=["sjf-fit", team], shutdowns=["never"]).results[
        "team + never"
    ]
    assert (
        found.jobs.equals(escala.simulate(work, lists.platform, scheduler=team).jobs)
        and found.jobs["start_s"].null_count() == 0
    )
    assert found.manifest["scheduler"] == "team"


@pytest.mark.parametrize(
    "given, match",
    [
        ({"mode": "together"}, "turns, simultaneous, shared"),
        ({"preset": "best"}, "tuned, printed"),
        ({"steps": -1}, "steps=-1"),
        ({"steps": 0, "teacher": None}, "at least 1"),
        ({"resume": True}, "needs out"),
        ({"observation": "image", "teacher": None}, "compact"),
        ({"preset": ["tuned"]}, "unknown preset"),
        ({"judge": 3}, "judge=3: give a function"),
        ({"judge": lambda team: "good", "teacher": None}, "the judge said 'good'"),
        ({"learn": 3}, "learn=3: give the learner's settings"),
    ],
)
def test_bad_requests_give_one_clear_line(given: dict[str, Any], match: str) -> None:
    with pytest.raises(EscalaError, match=match):
        train_team(**{**SMALL, **given})


def test_a_team_learns_from_nothing() -> None:
    few = {"steps": 64, "num_envs": 4, "lists": 16, "agents": 2, "preset": "from-nothing"}
    team, still = (
        train_team(**few, learn={"n_steps": 8, "batch_size": 16, **rate}) for rate in ({}, {"learning_rate": 0.0})
    )
    assert team.manifest["teacher"] is None and team.manifest["learn"]["learning_rate"] == 3e-3
    assert not all((a == b).all() for a, b in zip(weights(team), weights(still), strict=True))


def test_settings_of_another_algorithm_are_left_out() -> None:
    given = {**SMALL, "teacher": None, "agents": 2}
    whole = train_team(**given)
    other = train_team(**{**given, "learn": {**SMALL["learn"], "use_rms_prop": True}})
    assert all((a == b).all() for a, b in zip(weights(whole), weights(other), strict=True))


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "team"):
        with pytest.raises(EscalaError, match="file is not a folder: give another"):
            train_team(**SMALL, agents=2, out=out, progress=lambda _: pytest.fail("it worked"))


def test_a_team_plays_the_game_that_it_was_trained_on_only() -> None:
    team = train_team(agents=2, **{**SMALL, "teacher": None})
    lists = options_of({"agents": 3, "lists": 1, "steps": 20}).job_lists()
    with pytest.raises(EscalaError, match="cannot play a game of"):
        play(lists, [*team.members(), team.members()[0]], agents=3)


def test_a_team_needs_its_machines() -> None:
    lists = options_of({"agents": 3, "lists": 1, "steps": 20}).job_lists()
    with pytest.raises(EscalaError, match="2 agents x 1 machines"):
        escala.simulate(lists.workload(0), lists.platform, scheduler=TeamPolicy("sjf", agents=2))
    with pytest.raises(EscalaError, match="unknown rule"):
        TeamPolicy("best", agents=2)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"steps": "many"}, "steps='many'"),
        ({"steps": 1.5}, "steps=1.5"),
        ({"seed": -1}, "seed=-1"),
        ({"num_envs": 0}, "num_envs=0"),
        ({"learn": {"foo": 1}}, "no algorithm has a setting 'foo'"),
        ({"learn": {"seed": 1}}, "no algorithm has a setting 'seed'"),
        ({"learn": {"learning_rate": "fast"}}, "learning_rate='fast'"),
        ({"learn": {"batch_size": 1}}, "batch_size=1"),
        ({"learn": {"n_steps": 0}}, "n_steps=0"),
        ({"learn": {"gamma": 2}}, "gamma=2"),
    ],
)
def test_what_is_no_training_is_one_clear_line(given: dict[str, Any], words: str) -> None:
    for train in (
        lambda: train_team(agents=2, **{"steps": 64, **given}),
        lambda: escala.train("escala/Slots-v0", **{"steps": 64, **given}),
    ):
        with pytest.raises(EscalaError, match=words) as error:
            train()
        assert "\n" not in str(error.value)
