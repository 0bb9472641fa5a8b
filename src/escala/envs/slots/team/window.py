"""A window that shows pictures as they come, for environments that PettingZoo has no human rendering for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Window:
    """Opened by the first picture; `fps` pictures a second at most."""

    def __init__(self, title: str, fps: int) -> None:
        self._title, self._fps = title, fps
        self._pygame: Any = None

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Show a picture, uint8 [height, width, 3]."""
        if self._pygame is None:
            self._pygame = import_module("pygame")
            self._pygame.display.init()
            self._screen = self._pygame.display.set_mode((picture.shape[1], picture.shape[0]))
            self._pygame.display.set_caption(self._title)
            self._clock = self._pygame.time.Clock()
        self._screen.blit(self._pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        self._pygame.event.pump()
        self._pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close it; the next picture opens it again."""
        if self._pygame is not None:
            self._pygame.display.quit()
            self._pygame = None
