"""What `predict` found: a model, how near it is on later jobs, and the folder of both."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from escala.prediction.folder import FORMAT, KIND, MANIFEST
from escala.prediction.model import Model
from escala.writing import write_json

VERB = "predict"
FOUND = "accuracy.json"


@dataclass(frozen=True)
class Predicted:
    """A model of run times, and what it gives on the later jobs.

    accuracy: "request", "last2", "model" -> mean_absolute_error_s and others, see `escala.fitting.accuracy.figures`.
    by_size, by_past: mean absolute errors, s, by the cores of a job and by how many jobs its user has in the past;
    users: of how many users the model is nearer.
    gain: what share of what the trees explain is of each feature. about: of which log, and what was asked.
    """

    model: Model
    accuracy: dict[str, dict[str, float]]
    by_size: list[dict[str, object]]
    by_past: list[dict[str, object]]
    users: dict[str, float] | None
    gain: dict[str, float]
    about: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, the trees aside."""
        return {
            "accuracy": self.accuracy,
            "by_size": self.by_size,
            "by_past": self.by_past,
            "users": self.users,
            "gain": self.gain,
            "columns": list(self.model.columns),
            "stages": [{"since_s": stage.since_s, "jobs": stage.jobs} for stage in self.model.stages],
            "about": self.about,
        }

    def save(self, folder: str | Path) -> Path:
        """Write the model into a folder, at once: `simulate(..., estimate="model:FOLDER")` asks it. A folder of
        `predict` is replaced."""
        from escala.writing import saved_folder

        with saved_folder(Path(folder), VERB) as work:
            write(self, work)
        return Path(folder)


def write(predicted: Predicted, work: Path) -> None:
    """Write the files of a model into a folder that is there: the trees of each stage, `accuracy.json`,
    `manifest.json`."""
    write_json(work / FOUND, predicted.as_dict())
    write_model(predicted.model, predicted.about["workload"], work)


def write_model(model: Model, workload: dict[str, Any], work: Path) -> None:
    """Write the trees of each stage and `manifest.json`, which tells of which workload they are."""
    stages = []
    for number, stage in enumerate(model.stages, 1):
        name = f"trees-{number}.txt"
        (work / name).write_text(stage.text, encoding="utf-8")
        stages.append({"file": name, "since_s": stage.since_s, "jobs": stage.jobs})
    manifest = {
        "kind": KIND,
        "format": FORMAT,
        "features": list(model.features),
        "columns": list(model.columns),
        "dated": model.dated,
        "stages": stages,
        "lightgbm": version("lightgbm"),
        "workload": workload,
        "files": {one["file"]: hashlib.sha256((work / str(one["file"])).read_bytes()).hexdigest() for one in stages},
    }
    write_json(work / MANIFEST, manifest)
