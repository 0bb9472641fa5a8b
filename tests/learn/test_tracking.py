"""Trackers see what is counted, of the real libraries where they are installed; weights are those of a training that
nobody watches."""

from __future__ import annotations

import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.agents import train
from escala.agents.training import tracking
from escala.errors import EscalaError
from tests.learn.small import SMALL, days, equal

pytestmark = pytest.mark.learn
OFF = "escala/OffReservation-v0"
REQUEST = {"env_id": OFF, "preset": "tuned", "seed": 1, "steps": 10}


def _train(track: str | None = None, **more: Any) -> Any:
    return train(OFF, workload=days(), platform="orion", track=track, **{**SMALL, **more})


@pytest.fixture(scope="module")
def plain() -> Any:
    return _train()


def test_tensorboard(tmp_path: Path, plain: Any) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    assert equal(_train(f"tensorboard:{tmp_path / 'runs'}"), plain)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("OffReservation-v0-tuned-seed-1-")
    seen = accumulator.EventAccumulator(str(folder))
    seen.Reload()
    losses = seen.Scalars("train/value_loss")
    steps = [event.step for event in losses]
    assert (
        len(losses) >= 5
        and steps == sorted(steps)
        and steps[-1] <= 2048
        and all(math.isfinite(event.value) for event in losses)
    )
    assert seen.Scalars("rollout/ep_rew_mean")[-1].value == pytest.approx(plain.manifest["mean_return"], rel=0.5)


@pytest.mark.slow
def test_mlflow(tmp_path: Path, plain: Any) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install '.[track]'")
    pytest.importorskip("sqlalchemy", reason="a database for MLflow is not installed: pip install '.[track]'")
    uri = f"sqlite:///{tmp_path / 'runs.db'}"
    assert equal(_train(f"mlflow:{uri}"), plain)
    client = mlflow.MlflowClient(tracking_uri=uri)
    (found,) = client.search_runs([client.get_experiment_by_name("escala").experiment_id])
    assert (
        found.info.status == "FINISHED" and found.data.params["steps"] == "2048" and found.data.params["env_id"] == OFF
    )
    history = client.get_metric_history(found.info.run_id, "train/value_loss")
    assert len(history) >= 5 and all(math.isfinite(point.value) for point in history)
    request = {**REQUEST, "learn": {"n_steps": 32}}
    for resume in (False, True, False):
        with tracking.tracked(f"mlflow:{uri}", request, resume) as logger:
            logger.record("x", 2.0)
            logger.dump(7)
    runs = client.search_runs([found.info.experiment_id], "params.steps = '10'")
    assert sorted(len(client.get_metric_history(run.info.run_id, "x")) for run in runs) == [1, 2], (
        "a resumed training goes on in its run"
    )
    with pytest.raises(ZeroDivisionError), tracking.tracked(f"mlflow:{uri}", {**REQUEST, "steps": 11}, False):
        raise ZeroDivisionError
    (failed,) = client.search_runs([found.info.experiment_id], "params.steps = '11'")
    assert failed.info.status == "FAILED"
    with pytest.raises(EscalaError, match="cannot begin"):
        _train("mlflow:nowhere://x")


@pytest.mark.slow
def test_weights_and_biases(tmp_path: Path, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="Weights & Biases is not installed: pip install '.[track]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    assert equal(_train("wandb:escala-test"), plain)
    (run,) = (tmp_path / "wandb").glob("offline-run-*")
    (file,) = run.glob("run-*.wandb")
    latest = time.monotonic() + 30.0
    while (data := file.read_bytes()).count(b"train/value_loss") < 5 and time.monotonic() < latest:
        time.sleep(0.1)  # the library's own process still writes when `finish` has returned
    assert data.count(b"train/value_loss") >= 5 and b"escala-test" in data and OFF.encode() in data


def test_a_tracker_that_fails_does_not_end_a_training() -> None:
    calls: list[int] = []

    def send(numbers: dict[str, float], step: int) -> None:
        calls.append(step)
        raise ConnectionError("gone")

    writer = tracking._Numbers("MLflow", send)
    with pytest.warns(UserWarning, match="MLflow is told no more: ConnectionError: gone"):
        writer.write({"a": 1.0, "b": "text"}, {"a": (), "b": ()}, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer.write({"a": 1.0}, {"a": ()}, 4)
    assert calls == [3]


@pytest.mark.parametrize("track", ["mlfow:x", "tensorboard", "wandb:", "", 3])
def test_what_is_no_tracker_is_refused(track: Any) -> None:
    with pytest.raises(EscalaError, match=r"track=.*: give tensorboard:DIR"):
        _train(track)


@pytest.mark.parametrize("package", ["mlflow", "wandb"])
def test_a_tracker_that_is_not_installed_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with (
        pytest.raises(EscalaError, match=rf"track={package} needs the extra \[track\]"),
        tracking.tracked(f"{package}:x", REQUEST, False),
    ):
        raise AssertionError
    assert escala.extras.EXTRAS[package] == "track"
