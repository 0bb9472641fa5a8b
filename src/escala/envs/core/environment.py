"""One simulation as a `gymnasium.Env`: a thin face of a batch of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
from numpy.typing import NDArray

from escala.compiling import tell_when_compiling
from escala.envs.core.batch import Batch, new_turn
from escala.errors import EscalaError
from escala.forks import check_fork, forked

_ROW = np.zeros(1, np.int64)
_made: tuple[Any, Any, Batch] | None = None
"""The batch that was made last, what made it, and from what."""


def _batch(make: Callable[..., Batch], given: tuple[Any, Any, dict[str, Any]]) -> Batch:
    """A batch of one. A forked process, which can make none (`escala.forks`), takes its own copy of the one that its
    parent made last of the same: Gymnasium's `AsyncVectorEnv` makes one before it forks, and lets it go."""
    global _made
    if forked() and _made is not None and _made[0] is make and _same(_made[1], given):
        batch, _made = _made[2], None
        return batch
    check_fork()
    workload, platform, options = given
    batch = make(1, workload, platform, **options)
    _made = make, given, batch
    return batch


def _same(one: Any, other: Any) -> bool:
    """The same object, or plain values that are equal."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, str | int | float) and bool(one == other)


class BatchEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """A batch of one. Subclasses are the registered single environments: they name the class of their batch and
    document themselves.

    `reset(seed=s)` seeds the row with s; without a seed the next episode of the same sequence begins (the first time
    with a seed drawn by chance).
    """

    batch_type: ClassVar[Callable[..., Batch]]
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}  # type: ignore[misc]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Before the batch is made, which compiles code where no cache has it: a line on stderr says so."""
        tell_when_compiling()
        return super().__new__(cls)

    def __init__(
        self, workload: Any = None, platform: Any = None, *, render_mode: str | None = None, **options: Any
    ) -> None:
        batch = _batch(self.batch_type, (workload, platform, options))
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise EscalaError(f"render_mode {render_mode!r} is not known: use rgb_array, or human by gymnasium.make")
        self.batch = batch
        self.render_mode = render_mode
        self.observation_space = batch.observation_space
        self.action_space = batch.action_space
        self._turn = new_turn(batch)
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode; see the environment's own documentation for `options`."""
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            chosen = seed if seed is not None else int(self.np_random.integers(1 << 62))
            self.batch.seed(_ROW, np.array([chosen], np.uint64))
            self._seeded = True
        self.batch.restart(_ROW, self._turn, options or {})
        return self._turn.observation[0].copy(), {"action_mask": self.action_masks()}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take one action."""
        turn = self._turn
        self.batch.step([action], turn)
        info = self.batch.info_of(0)
        info["action_mask"] = turn.mask[0].copy()
        return turn.observation[0].copy(), turn.reward.item(), turn.terminated.item(), turn.truncated.item(), info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions make sense now, bool [actions] (the name that sb3-contrib asks for)."""
        return self._turn.mask[0].copy()

    def render(self) -> NDArray[np.uint8] | None:
        """A picture of the present state, uint8 [height, width, 3]; None without `render_mode`."""
        return self.batch.frame(0) if self.render_mode == "rgb_array" else None
