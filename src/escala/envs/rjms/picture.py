"""Pictures without a plotting library: nodes by state, one column a look, the newest at the right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.kernel import codes

COLOURS = np.array(
    [(46, 125, 50), (255, 193, 7), (33, 33, 33), (120, 144, 156), (229, 57, 53), (255, 255, 255)], np.uint8
)  # computing, idle, off, switching off, switching on, not yet seen
UNSEEN = 5


class Strip:
    """The states of all nodes over the last looks, `width` columns; each node is `height` pixels high."""

    def __init__(self, nodes: int, width: int = 240) -> None:
        self._height = max(1, 240 // nodes)
        self._states = np.full((nodes, width), UNSEEN, np.uint8)

    def clear(self) -> None:
        """Forget what was seen."""
        self._states[:] = UNSEEN

    def frame(self, world: Any, i: int) -> NDArray[np.uint8]:
        """Look at simulation i and draw."""
        node = world.node[i]
        state = np.full(len(node), codes.IDLE, np.uint8)
        state[node["power"] == codes.OFF] = codes.IS_OFF
        state[node["power"] == codes.SWITCHING_OFF] = codes.IS_SWITCHING_OFF
        state[node["power"] == codes.SWITCHING_ON] = codes.IS_SWITCHING_ON
        state[(node["power"] == codes.ON) & self._computing(world, i)] = codes.COMPUTING
        self._states = np.concatenate([self._states[:, 1:], state[:, None]], axis=1)
        return COLOURS[np.repeat(self._states, self._height, axis=0)]

    def _computing(self, world: Any, i: int) -> NDArray[np.bool_]:
        """Nodes on which a job computes: those that are on and not wholly free."""
        node = world.node[i]
        if not int(world.o[i, 0]["unit"]):
            return np.asarray(node["busy"] > 0)
        words = world.bits[i, codes.SET_ON]
        free = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(node)]
        return free == 0
