"""A Ray that is none: a task runs in this process, and what goes to it and comes from it is pickled as Ray does it, by
cloudpickle."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

try:
    import cloudpickle  # stable-baselines3 brings it
except ModuleNotFoundError:
    from ray import cloudpickle  # its own


class RayError(Exception):
    """As Ray's."""


class StandIn(ModuleType):
    """As the module `ray`, where it is none. tasks: how many it was given; most: after so many it is interrupted."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=type("RayTaskError", (RayError,), {}))

    def __init__(self, most: int | None = None) -> None:
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)  # it is found
        self.tasks, self._most, self._open = 0, most, False

    def is_initialized(self) -> bool:
        return self._open

    def init(self, **_: Any) -> None:
        self._open = True

    def shutdown(self) -> None:
        self._open = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, value: Any) -> bytes:
        return cloudpickle.dumps(value)

    def remote(self, **_: Any) -> Callable[[Any], Any]:
        return lambda function: SimpleNamespace(
            remote=lambda piece, job, **more: self._begun(function, piece, job, more)
        )

    def _begun(self, function: Any, piece: Any, job: bytes, more: dict[str, Any]) -> Any:
        given = cloudpickle.dumps((function, piece, more))

        def run() -> bytes:
            self.tasks += 1
            if self._most is not None and self.tasks > self._most:
                raise KeyboardInterrupt
            there, sent, also = cloudpickle.loads(given)
            return cloudpickle.dumps(there(sent, cloudpickle.loads(job), **also))

        return run

    def wait(self, running: list[Any]) -> tuple[list[Any], list[Any]]:
        return running[-1:], running[:-1]  # not in the order in which they were given

    def get(self, run: Callable[[], bytes]) -> Any:
        return cloudpickle.loads(run())

    def cancel(self, _: Any) -> None: ...
