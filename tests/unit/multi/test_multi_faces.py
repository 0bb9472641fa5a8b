"""PettingZoo's own tests on both faces, the same game behind them, and the picture."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, performance_benchmark, seed_test

from escala.envs import multi
from escala.envs.slots.team.options import options_of
from escala.envs.slots.team.playing import play
from escala.errors import EscalaError

SHAPES: dict[str, dict[str, Any]] = {
    "3x1": {},
    "2x2 local": {"agents": 2, "machines": 2, "information": "local", "rewards": "local", "limit": 60},
    "image, until void": {"agents": 2, "observation": "image", "turns": "until-void", "limit": 50},
    "forced turns skipped": {"skip": "forced", "load": 0.9, "limit": 40},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_aec_face(shape: dict[str, Any]) -> None:
    def make() -> Any:
        return multi.slots(lists=16, steps=60, **shape)

    with contextlib.redirect_stdout(io.StringIO()):
        api_test(make(), num_cycles=300)
        seed_test(make, num_cycles=100)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [SHAPES["3x1"], SHAPES["2x2 local"]], ids=["3x1", "2x2 local"])
def test_parallel_face(shape: dict[str, Any]) -> None:
    def make() -> Any:
        return multi.parallel(lists=16, steps=60, **shape)

    with contextlib.redirect_stdout(io.StringIO()):
        parallel_api_test(make(), num_cycles=300)
        parallel_seed_test(make, num_cycles=100)


@pytest.mark.long
def test_performance_benchmark() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as told:
        performance_benchmark(multi.slots(lists=8))
    assert "turns per second" in told.getvalue()


def test_rewards_of_the_face_add_up_to_the_slowdowns() -> None:
    env = multi.slots(lists=4, steps=40)
    env.reset(seed=1)
    total = dict.fromkeys(env.possible_agents, 0.0)
    rng = np.random.default_rng(0)
    for name in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        total[name] += reward
        if terminated or truncated:
            action = None
            figures = info
        else:
            action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        env.step(action)
    expected = -figures["slowdown"] * figures["submitted"]
    assert list(total.values()) == pytest.approx([expected] * 3, rel=1e-9)


def test_what_a_game_does_not_know_is_one_clear_line() -> None:
    game = multi.slots(agents=2, lists=2, steps=20)
    for wrong in (3, "list", [("list", 0)]):
        with pytest.raises(EscalaError, match="give them by name"):
            game.reset(options=wrong)  # type: ignore[arg-type]
    game.reset(seed=0)
    for ask in (game.observe, game.action_mask):
        with pytest.raises(EscalaError, match="agent 'agent_2' is not known: use one of agent_0, agent_1"):
            ask("agent_2")
    for name in ("agents", "machines"):
        with pytest.raises(EscalaError, match=f"option {name}=1000000000: at most 1000"):
            multi.slots(**{name: 10**9})


def test_what_is_no_team_or_no_lists_is_one_clear_line() -> None:
    lists = options_of({"agents": 2, "lists": 1, "steps": 20}).job_lists()
    for team, words in (
        (3, "team 3: give a rule"),
        (None, "team None"),
        ([1, 2], "unknown rule 1"),
        (["sjf", None], "unknown rule None"),
    ):
        with pytest.raises(EscalaError, match=words):
            play(lists, team, agents=2)  # type: ignore[arg-type]
    for wrong in (3, None, "lists"):
        with pytest.raises(EscalaError, match="give JobLists"):
            play(wrong, "sjf", agents=2)  # type: ignore[arg-type]
    for name, value in (("patience", 0), ("rescue", -1), ("rescue", 0.5)):
        with pytest.raises(EscalaError, match=f"option {name}={value}"):
            play(lists, "sjf", agents=2, **{name: value})


def test_parallel_choices_of_a_job_already_taken_count_as_the_void() -> None:
    env = multi.parallel(lists=4, steps=200, load=0.3)
    env.reset(seed=3)
    wanted_by_all = 0
    for _ in range(150):
        before = env.batch.worlds.world.s[0, 0]["n_queued"] + 0
        arrived = int(env.batch.worlds.world.s[0, 0]["next_job"])
        first = env.batch.games.slots[0, 0] >= 0 and all(env._table.look(a)[1][0] for a in range(3))
        env.step(dict.fromkeys(env.agents, 0))
        after = env.batch.worlds.world.s[0, 0]
        started = before + int(after["next_job"]) - arrived - int(after["n_queued"])
        if first:
            assert started == 1
            wanted_by_all += 1
    assert wanted_by_all > 3 and int(after["next_job"]) > 5


def test_the_picture_shows_machines_slots_and_backlog() -> None:
    env = multi.slots(agents=2, machines=2, load=1.2, lists=4, render_mode="rgb_array")
    env.reset(seed=0)
    empty = env.render()
    for _ in range(80):
        env.step(int(np.flatnonzero(env.infos[env.agent_selection]["action_mask"])[0]))
    full = env.render()
    assert empty.shape == full.shape and full.dtype == np.uint8 and (full != empty).any()
    assert len(np.unique(full.reshape(-1, 3), axis=0)) > 10  # jobs in colours of their own
    with pytest.raises(EscalaError, match="rgb_array or human"):
        multi.slots(render_mode="ansi")


@pytest.mark.parametrize("make", [multi.slots, multi.parallel])
def test_it_shows_itself_in_a_window(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every reset and step; here without a screen."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = make(agents=2, lists=4, render_mode="human")
    env.reset(seed=0)
    assert pygame.display.get_init()
    env.step(0 if make is multi.slots else dict.fromkeys(env.agents, 0))
    assert env.render() is None
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    assert (shown == env.unwrapped.batch.frame(0)).all()
    env.close()
    assert not pygame.display.get_init()
    assert multi.slots(lists=2).render() is None


@pytest.mark.parametrize("action", [-1, 16, 99, 0.7, "x", None, True])
def test_an_action_that_is_none_is_refused_and_nothing_has_happened(action: Any) -> None:
    aec = multi.slots(agents=3, lists=4)
    aec.reset(seed=0)
    with pytest.raises(EscalaError, match=r"agent_0: action .* is none"):
        aec.step(action)
    together = multi.parallel(agents=3, lists=4)
    together.reset(seed=0)
    before = together.batch.state()
    with pytest.raises(EscalaError, match=r"agent_1: action .* is none"):
        together.step({"agent_0": 0, "agent_1": action, "agent_2": 0})
    assert all(np.array_equal(before[name], value) for name, value in together.batch.state().items())


def test_a_parallel_step_needs_an_episode_and_one_action_for_each_agent() -> None:
    together = multi.parallel(agents=2, lists=4)
    with pytest.raises(EscalaError, match="reset"):
        together.step({"agent_0": 0, "agent_1": 0})
    together.reset(seed=0)
    with pytest.raises(EscalaError, match="one for each of agent_0, agent_1"):
        together.step({"agent_0": 0})
    for actions in ([0, 0], {0: 1, 1: 1}, None):
        with pytest.raises(EscalaError, match="one for each of agent_0, agent_1, by name"):
            together.step(actions)  # type: ignore[arg-type]
    with pytest.raises(EscalaError, match="step before reset"):
        multi.slots(agents=2, lists=4).step(0)


def test_a_step_after_the_last_one_is_told() -> None:
    alone = multi.slots(agents=2, lists=1, steps=3, limit=2)
    alone.reset(seed=0)
    while alone.agents:
        over = alone.terminations[alone.agent_selection] or alone.truncations[alone.agent_selection]
        alone.step(None if over else int(alone.action_space(alone.agent_selection).n) - 1)
    with pytest.raises(EscalaError, match="no episode is under way"):
        alone.step(None)
