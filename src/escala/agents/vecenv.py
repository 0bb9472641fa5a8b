"""A native vector environment as stable-baselines3 wants it: no processes, no loop over environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from escala.envs import BatchVectorEnv
from escala.errors import EscalaError


class SharedVecEnv(VecEnv):
    """Rows of one batch: no environments of their own. venv: what has the attributes that they share, and
    `action_masks`."""

    venv: Any

    def close(self) -> None:
        """Nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """One value, the same for all rows."""
        return [getattr(self.venv, attr_name)] * len(self._rows(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Rows share all attributes."""
        raise AttributeError(f"{attr_name} cannot be set in single rows of a native vector environment")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """`action_masks` of each row."""
        if method_name != "action_masks":
            raise AttributeError(f"native vector environments offer action_masks row by row, not {method_name}")
        mask = self.venv.action_masks()
        return [mask[row] for row in self._rows(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Never."""
        return [False] * len(self._rows(indices))

    def _rows(self, indices: Any) -> Sequence[int]:
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else list(indices)


class NativeVecEnv(SharedVecEnv):
    """All rows of a native vector environment as one `VecEnv`, for stable-baselines3 and sb3-contrib.

    venv: what `gymnasium.make_vec(ID, num_envs=N)` gives for an environment of Escala. Returns and lengths of ended
    episodes go into `infos` as stable-baselines3's monitor writes them; `action_masks` is there for `MaskablePPO`.

    Raises:
        EscalaError: anything else, wrapped vector environments too (their wrappers would be passed by).
    """

    def __init__(self, venv: BatchVectorEnv) -> None:
        if not isinstance(venv, BatchVectorEnv):
            raise EscalaError(
                f"NativeVecEnv takes a native vector environment of Escala, not {type(venv).__name__}: make it by "
                "gymnasium.make_vec(ID, num_envs=N), and wrap the NativeVecEnv by wrappers of stable-baselines3 if "
                "need be"
            )
        self.venv = venv
        super().__init__(venv.num_envs, venv.single_observation_space, venv.single_action_space)
        self._actions: NDArray[Any] = np.zeros(venv.num_envs, np.int64)
        self.returns = np.zeros(venv.num_envs)
        self.lengths = np.zeros(venv.num_envs, np.int64)
        self._first_seed: int | None = None

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """The seed of the next reset."""
        self._first_seed = seed
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def reset(self) -> Any:
        """Begin an episode in every row."""
        observation, _ = self.venv.reset(seed=self._first_seed)
        self._first_seed = None
        self.returns[:] = 0.0
        self.lengths[:] = 0
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Note the actions."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Take the step."""
        observation, reward, terminated, truncated, info = self.venv.step(self._actions)
        self.returns += reward
        self.lengths += 1
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{}] * self.num_envs
        for row in np.flatnonzero(done):
            infos[row] = {
                "terminal_observation": info["final_obs"][row],
                "TimeLimit.truncated": bool(truncated[row] and not terminated[row]),
                "episode": {"r": float(self.returns[row]), "l": int(self.lengths[row]), "t": 0.0},
            }
        self.returns[done] = 0.0
        self.lengths[done] = 0
        return observation, reward.astype(np.float32), done, infos

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes."""
        return self.venv.batch.state() | {"face.returns": self.returns.copy(), "face.lengths": self.lengths.copy()}

    def restore(self, state: dict[str, NDArray[Any]], observation: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        """Restore a saved state, with the observation and the mask that were shown last."""
        self.venv.batch.restore(state)
        self.returns[:], self.lengths[:] = state["face.returns"], state["face.lengths"]
        self.venv.turn.observation[...] = observation
        self.venv.turn.mask[...] = mask
        self.venv._seeded = True
