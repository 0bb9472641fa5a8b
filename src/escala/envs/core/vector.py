"""Many simulations as one `gymnasium.vector.VectorEnv`: one process, one array, one compiled call a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from escala.compiling import tell_when_compiling
from escala.envs.core.batch import Batch, Turn, new_turn
from escala.errors import EscalaError
from escala.forks import check_fork

Array = NDArray[Any]


class BatchVectorEnv(VectorEnv[Array, Array, Array]):
    """A batch of N behind Gymnasium's vector interface. Subclasses are the registered vector environments: they name
    the class of their batch.

    Autoreset is *same step*: where an episode ends, the observation returned is the first of the next episode, and
    `info["final_obs"]` (rows marked in
    `info["_final_obs"]`) holds the last one of the ended episode; other entries of `info` belong to the ended episode,
    the action mask to the new one.

    `reset(seed=s)` seeds row i with s + i; a list gives each row its own. `options["reset_mask"]` (bool [N]) resets
    some rows only.
    copy: True returns new arrays at each step. False returns arrays that the step after next overwrites: faster, for
    learners that copy anyway.
    """

    batch_type: ClassVar[Callable[..., Batch]]
    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["rgb_array"],
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Before the batch is made, which compiles code where no cache has it: a line on stderr says so."""
        tell_when_compiling()
        return super().__new__(cls)

    def __init__(
        self,
        num_envs: int,
        workload: Any = None,
        platform: Any = None,
        *,
        copy: bool = True,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_fork()
        batch = self.batch_type(num_envs, workload, platform, **options)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise EscalaError(
                f"render_mode {render_mode!r} is not known: use one of {', '.join(self.metadata['render_modes'])}"
            )
        self.batch = batch
        self.num_envs = batch.num_envs
        self.render_mode = render_mode
        self.single_observation_space = batch.observation_space
        self.single_action_space = batch.action_space
        self.observation_space = batch_space(batch.observation_space, self.num_envs)
        self.action_space = batch_space(batch.action_space, self.num_envs)
        self._copy = copy
        self._turns = [new_turn(batch), new_turn(batch)]
        self._seeded = False
        self._rows = np.arange(self.num_envs, dtype=np.int64)

    def _next_turn(self) -> Turn:
        if self._copy:
            self._turns[0] = new_turn(self.batch)
        else:
            self._turns.reverse()
        return self._turns[0]

    @property
    def turn(self) -> Turn:
        """The arrays of the last step or reset."""
        return self._turns[0]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin episodes, of all rows or of those in `options["reset_mask"]`."""
        options = dict(options or {})
        chosen = options.pop("reset_mask", None)
        rows = self._rows if chosen is None else np.flatnonzero(np.asarray(chosen, bool))
        if seed is not None or not self._seeded:
            self._seed(rows, seed)
        last = self._turns[0]
        turn = self._next_turn()
        if len(rows) < self.num_envs:
            for target, source in zip(turn, last, strict=True):
                target[...] = source
        self.batch.restart(rows, turn, options)
        return turn.observation, {"action_mask": turn.mask}

    def _seed(self, rows: NDArray[np.int64], seed: int | list[int | None] | None) -> None:
        super().reset(seed=seed if isinstance(seed, int) else None)
        given = seed if isinstance(seed, list) else [None if seed is None else seed + int(i) for i in self._rows]
        if len(given) != self.num_envs:
            raise EscalaError(f"{len(given)} seeds for {self.num_envs} environments: give one number, or one for each")
        chance = self.np_random.integers(1 << 62, size=self.num_envs)
        values = np.array([chance[i] if given[i] is None else given[i] for i in rows], np.uint64)
        self.batch.seed(rows, values)
        self._seeded = True

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One action of each row, int [N]."""
        turn = self._next_turn()
        self.batch.step(actions, turn)
        info: dict[str, Any] = dict(self.batch.info())
        info["action_mask"] = turn.mask
        done = turn.terminated | turn.truncated
        if done.any():
            rows = np.flatnonzero(done)
            final = np.empty(self.num_envs, object)
            last = turn.observation[rows]  # a copy
            for k, row in enumerate(rows):
                final[row] = last[k]
            info["final_obs"], info["_final_obs"] = final, done
            self.batch.restart(rows, turn, {})
        return turn.observation, turn.reward, turn.terminated, turn.truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions make sense now, bool [N, actions]."""
        return self._turns[0].mask

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """A picture of each simulation; None without `render_mode`."""
        return tuple(self.batch.frame(i) for i in range(self.num_envs)) if self.render_mode == "rgb_array" else None
