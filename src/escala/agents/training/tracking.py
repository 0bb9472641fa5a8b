"""Trackers: what stable-baselines3's logger counts while it learns, sent to TensorBoard, MLflow or Weights & Biases as
well.

Each is a `KVWriter` of the logger, opened for as long as the training lasts. None moves a weight.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Real
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from escala.errors import EscalaError, one_line, quoted
from escala.extras import missing

Send = Callable[[dict[str, float], int], None]
"""Takes numbers by name, and after how many decisions they were counted."""
Closed = Callable[[bool], None]
"""Ends what was opened; given whether the training went well."""
NAMES = ("tensorboard:DIR", "mlflow[:URI]", "wandb:PROJECT")
EXPERIMENT = "escala"
MOST_TEXT = 500


class _Numbers(KVWriter):
    """Sends numbers on. Where that fails the training goes on, and a warning says so once."""

    def __init__(self, name: str, send: Send) -> None:
        self._name, self._send = name, send
        self._failed = False

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        numbers = {name: float(value) for name, value in key_values.items() if isinstance(value, Real)}
        try:
            if not self._failed:
                self._send(numbers, step)
        except Exception as error:  # a tracker is no reason to lose a training
            self._failed = True
            warnings.warn(
                f"{self._name} is told no more: {one_line(f'{type(error).__name__}: {error}')[:300]}", stacklevel=2
            )

    def close(self) -> None: ...


def check(track: Any) -> None:
    """EscalaError for what names no tracker; None is none."""
    kind, _, where = track.partition(":") if isinstance(track, str) else ("", "", "")
    if track is not None and (kind not in OPENED or not (where or kind == "mlflow")):
        raise EscalaError(f"track={quoted(track)}: give {', '.join(NAMES[:-1])} or {NAMES[-1]}")


@contextmanager
def tracked(track: str | None, request: Mapping[str, Any], resume: bool) -> Iterator[Logger]:
    """A logger that tells a tracker, closed with the block; of None, one that tells nobody. request: what the training
    was asked for, which the tracker shows as its settings. resume: go on with the tracker's run of the same request,
    where there is one.

    Raises EscalaError, one line: the tracker is not installed, or refuses to begin.
    """
    if track is None:
        yield Logger(None, [])
        return
    kind, _, where = track.partition(":")
    try:
        writer, close = OPENED[kind](where, dict(request), resume)
    except ModuleNotFoundError as error:
        raise missing(error, f"track={kind}") or error from error
    except Exception as error:
        raise EscalaError(
            f"track={quoted(track)}: cannot begin: {one_line(f'{type(error).__name__}: {error}')[:300]}"
        ) from error
    well = False
    try:
        yield Logger(None, [writer])
        well = True
    finally:
        with suppress(Exception):
            close(well)


def _name(request: Mapping[str, Any]) -> str:
    """Of a training, for people."""
    return f"{str(request['env_id']).removeprefix('escala/')} {request['preset']} seed {request['seed']}"


def _identity(request: Mapping[str, Any]) -> str:
    """Of a training, for going on with its run."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _tensorboard(where: str, request: Mapping[str, Any], _: bool) -> tuple[KVWriter, Closed]:
    """Events in a folder of its own below `where`."""
    import tensorboard  # noqa: F401  (SB3 says no more than "assertion failed")

    writer = TensorBoardOutputFormat(str(Path(where) / f"{_name(request)} {_identity(request)}".replace(" ", "-")))
    writer.writer.add_text("request", json.dumps(request, default=str))
    return writer, lambda _: writer.close()


def _mlflow(where: str, request: Mapping[str, Any], resume: bool) -> tuple[KVWriter, Closed]:
    """A run of the experiment `escala`. where: a tracking URI; empty: as MLflow is set up."""
    # else a server that does not answer is asked for minutes
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client, identity = MlflowClient(tracking_uri=where or None), _identity(request)
    known = client.get_experiment_by_name(EXPERIMENT)
    experiment = client.create_experiment(EXPERIMENT) if known is None else known.experiment_id
    before = client.search_runs([experiment], f"tags.escala = '{identity}'", max_results=1) if resume else []
    if before:
        run = before[0].info.run_id
        client.update_run(run, status="RUNNING")
    else:
        run = client.create_run(experiment, run_name=_name(request), tags={"escala": identity}).info.run_id
        client.log_batch(run, params=[Param(name, str(value)[:MOST_TEXT]) for name, value in request.items()])

    def send(numbers: dict[str, float], step: int) -> None:
        now = int(1000 * time.time())
        client.log_batch(run, metrics=[Metric(name, value, now, step) for name, value in numbers.items()])

    return _Numbers("MLflow", send), lambda well: client.set_terminated(run, "FINISHED" if well else "FAILED")


def _wandb(where: str, request: Mapping[str, Any], resume: bool) -> tuple[KVWriter, Closed]:
    """A run of a project; offline where WANDB_MODE says so."""
    import wandb

    known: dict[str, Any] = {"id": _identity(request), "resume": "allow"} if resume else {}
    quiet = wandb.Settings(silent=True, console="off")
    run = wandb.init(project=where, name=_name(request), config=dict(request), settings=quiet, **known)
    return _Numbers("Weights & Biases", lambda numbers, step: run.log(numbers, step=step)), lambda well: run.finish(
        0 if well else 1
    )


OPENED: dict[str, Callable[[str, dict[str, Any], bool], tuple[KVWriter, Closed]]] = {
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "wandb": _wandb,
}
"""Name -> what opens it (where, the request, resume): a writer for the logger, and what closes it."""
