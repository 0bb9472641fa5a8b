"""Every registered environment keeps the contracts of Gymnasium and of Escala."""

from __future__ import annotations

import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from escala.errors import EscalaError
from tests.contracts.rollouts import NAMES, arguments, roll_single, roll_vector, same, single, valid_action, vector

STEPS = 300


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_finds_nothing_wrong(name: str) -> None:
    check_env(single(name, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_each_is_made_without_arguments(name: str) -> None:
    check_env(gymnasium.make(name).unwrapped, skip_render_check=True)
    many = gymnasium.make_vec(name, num_envs=2)
    observations, info = many.reset(seed=0)
    assert many.observation_space.contains(observations)
    many.step(np.array([valid_action(mask, 0) for mask in info["action_mask"]]))


@pytest.mark.parametrize("name", [name for name in NAMES if arguments(name)])
@pytest.mark.parametrize("given", ["workload", "platform"])
def test_a_log_without_a_machine_is_one_clear_line(name: str, given: str) -> None:
    with pytest.raises(EscalaError, match=f"^{given} is given and [a-z]+ is not: give both, or neither"):
        gymnasium.make(name, **{given: arguments(name)[given]})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_it_shows_itself_in_a_window(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through Gymnasium's own wrapper, which draws what `rgb_array` gives; here without a screen."""
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = single(name, render_mode="human")
    env.reset(seed=0)
    env.step(0)
    shown = pygame.surfarray.array3d(pygame.display.get_surface())
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 1  # a picture, not one colour
    env.close()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_action_is_one_clear_line(name: str) -> None:
    alone, two = single(name), vector(name, 2)
    n = int(alone.action_space.n)
    alone.reset(seed=1)
    two.reset(seed=1)
    for action in (n, -1, 0.5, "a", None, True, np.array([0]), [0, 1]):
        with pytest.raises(EscalaError, match=f"^actions must be one whole number in 0..{n - 1}; got"):
            alone.step(action)
    for actions in ([0], [0, n], [0.0, 0.0], [[0], [0, 0]], "ab", None):
        with pytest.raises(EscalaError, match=f"^actions must be 2 whole numbers in 0..{n - 1}; got"):
            two.step(actions)
    assert alone.step(np.array(0))[0] is not None and two.step([0, np.int32(0)])[0].shape[0] == 2


@pytest.mark.parametrize("name", NAMES)
def test_what_a_single_step_gave_stays_and_is_what_the_batch_tells(name: str) -> None:
    env = single(name).unwrapped
    _, info = env.reset(seed=3)
    given = []
    for count in range(30):
        seen, reward, ended, cut, info = env.step(valid_action(info["action_mask"], count))
        told = {figure: values[0] for figure, values in env.batch.info().items()}
        assert {figure: value for figure, value in info.items() if figure != "action_mask"} == told
        assert (type(reward), type(ended), type(cut)) == (float, bool, bool)
        given.append((seen, info["action_mask"], seen.copy(), info["action_mask"].copy()))
        if ended or cut:
            _, info = env.reset()
    for seen, mask, seen_then, mask_then in given:
        assert np.array_equal(seen, seen_then) and np.array_equal(mask, mask_then)


@pytest.mark.parametrize("name", NAMES)
def test_the_vector_form_is_one_native_batch(name: str) -> None:
    env = vector(name, 3)
    assert isinstance(env.unwrapped, escala_vector())
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert info["action_mask"].shape == (3, env.single_action_space.n)


def escala_vector() -> type:
    from escala.envs import BatchVectorEnv

    return BatchVectorEnv


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_rollout_and_another_another(name: str) -> None:
    same(roll_single(name, 5, STEPS), roll_single(name, 5, STEPS))
    first = [roll_single(name, seed, 30) for seed in range(6)]
    assert any(not np.array_equal(x[0], y[0]) for other in first[1:] for x, y in zip(first[0], other, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_plays_the_same_in_any_batch(name: str) -> None:
    whole = roll_vector(name, 4, 11, STEPS)
    same(whole, roll_vector(name, 4, 11, STEPS, copy=False))
    for row in range(4):
        alone = roll_single(name, 11 + row, STEPS)
        same([tuple(part[row] for part in turn) for turn in whole], alone)


@pytest.mark.parametrize("name", NAMES)
def test_an_ended_episode_shows_its_last_observation_and_the_first_of_the_next(name: str) -> None:
    env = vector(name, 2)
    _, info = env.reset(seed=0)
    alone = single(name)
    alone.reset(seed=0)
    for k in range(20_000):
        action = valid_action(info["action_mask"][0], k)
        observation, _, terminated, truncated, info = env.step(
            np.array([action, valid_action(info["action_mask"][1], k)])
        )
        last, _, _, _, _ = alone.step(action)
        if terminated[0] or truncated[0]:
            assert info["_final_obs"][0]
            assert np.array_equal(info["final_obs"][0], last)
            assert np.array_equal(observation[0], alone.reset()[0])
            return
    pytest.fail("no episode ended")


@pytest.mark.parametrize("name", NAMES)
def test_observations_stay_in_their_space_and_masks_leave_a_choice(name: str) -> None:
    space = single(name).observation_space
    for observation, mask, *_ in roll_single(name, 2, STEPS):
        assert space.contains(observation)
        assert mask.dtype == bool
        assert mask.any()


@pytest.mark.parametrize("name", NAMES)
def test_a_pickled_environment_goes_on_where_it_was(name: str) -> None:
    env = single(name).unwrapped
    _, info = env.reset(seed=4)
    for k in range(40):
        _, _, terminated, truncated, info = env.step(valid_action(info["action_mask"], k))
        if terminated or truncated:
            _, info = env.reset()
    twin = pickle.loads(pickle.dumps(env))
    for k in range(60):
        action = valid_action(info["action_mask"], k)
        a, b = env.step(action), twin.step(action)
        assert np.array_equal(a[0], b[0])
        assert a[1:4] == b[1:4]
        info = a[4]
        if a[2] or a[3]:
            (_, info), _ = env.reset(), twin.reset()


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_goes_on_exactly(name: str) -> None:
    env, twin = vector(name, 3).unwrapped, vector(name, 3).unwrapped
    _, info = env.reset(seed=4)
    twin.reset(seed=99)
    for k in range(50):
        _, _, _, _, info = env.step(np.array([valid_action(m, k) for m in info["action_mask"]]))
    twin.batch.restore(env.batch.state())
    for k in range(200):
        actions = np.array([valid_action(m, k) for m in info["action_mask"]])
        a, b = env.step(actions), twin.step(actions)
        for p, q in zip(a[:4], b[:4], strict=True):
            assert np.array_equal(p, q)
        info = a[4]


@pytest.mark.parametrize("name", NAMES)
def test_a_state_of_another_version_is_refused(name: str) -> None:
    batch = vector(name, 2).unwrapped.batch
    state = batch.state()
    scalars = next(key for key in state if key.endswith("world.s"))
    older = state[scalars].dtype.names[:-1]
    with pytest.raises(EscalaError, match="saved by another version of Escala"):
        batch.restore(state | {scalars: state[scalars][list(older)]})


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_pictures(name: str) -> None:
    env = single(name, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_found_through_its_module(name: str) -> None:
    assert gymnasium.make(f"escala.envs:{name}", **arguments(name)).unwrapped is not None


def test_importing_the_environments_needs_neither_torch_nor_plotting() -> None:
    modules = "escala.envs.rjms.off_reservation, escala.envs.rjms.scheduling"
    code = f"import sys, {modules}; print([m for m in ('torch', 'matplotlib') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == "[]"
    )
