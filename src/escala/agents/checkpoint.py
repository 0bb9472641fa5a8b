"""Everything that an interrupted training needs to go on exactly, in one file that is replaced as a whole.

stable-baselines3's own files do not resume exactly: they leave out the state of the environment and of the random
generators; and they hold pickles, which run code when they are read. A checkpoint is arrays and JSON
(`escala.agents.packed`), and its request is read first.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeGuard

import numpy as np
import torch

from escala.agents import packed
from escala.agents.vecenv import NativeVecEnv
from escala.errors import EscalaError
from escala.workload import Workload
from escala.writing import remove, whole_file, write_whole
from escala.writing.sealing import MARK, digest, sealed

FILE = "checkpoint.npz"
OLD = "checkpoint.pt"  # of versions that kept pickles; never read
SEARCH = "search.npz"  # of an unfinished search
EVERY_S = 30.0


def check_folder(folder: Path | None, resume: bool) -> None:
    """Refuse to resume nothing, to write over a training, and to train for a folder that cannot be written."""
    if resume and folder is None:
        raise EscalaError("resume=True needs out: the folder of the interrupted training")
    if (
        folder is not None
        and not resume
        and any(os.path.exists(folder / name) for name in ("manifest.json", FILE, OLD, SEARCH))
    ):
        raise EscalaError(
            f"{folder}: holds a training already: resume it (resume=True, --resume) or give another folder"
        )
    check_place(folder)


def ended(folder: Path | str | None) -> TypeGuard[Path | str]:
    """Has the training in a folder ended? Its manifest, the last file to be written, is there; what a kill left beside
    it then goes."""
    if folder is None or not (Path(folder) / MARK).is_file():
        return False
    for name in (FILE, SEARCH):
        remove(Path(folder) / name)
    return True


def check_place(folder: Path | None) -> None:
    """EscalaError where a folder can neither be made nor be written to."""
    if folder is not None:
        # False also where it is not to be seen
        there = next(path for path in (folder, *folder.absolute().parents) if os.path.exists(path))
        if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
            why = "a folder that you may not write to" if os.path.isdir(there) else "not a folder"
            raise EscalaError(f"{folder}: nothing can be kept there, {there} is {why}: give another folder")


def about_days(days: Sequence[Any], what: str = "workload") -> dict[str, Any]:
    """What a request says of days to learn from; EscalaError where there is none, or one that is no Workload."""
    if len(days) == 0 or not all(isinstance(day, Workload) for day in days):
        raise EscalaError(f"{what}: give at least one day, each a Workload")
    return {"days": len(days), "jobs": sum(len(day) for day in days), "first": days[0].name, "last": days[-1].name}


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a checkpoint, atomically: the file is the old one or the new one. content: its `request`, and all that goes
    with it."""
    with whole_file(path) as aside, aside.open("wb") as stream:
        packed.write(stream, content["request"], content)


def write_weights(path: Path, weights: Mapping[str, Any]) -> None:
    """Write the weights of a network, atomically, by torch."""
    with whole_file(path) as aside:
        torch.save(weights, aside)


def write_manifest(folder: Path, manifest: Mapping[str, Any], kind: str, names: Sequence[str]) -> None:
    """Write the manifest of a saved agent or team, atomically, with the hashes of its files, so that it is known again
    as untouched."""
    signed = sealed(manifest, kind, {name: digest(folder / name) for name in names})
    write_whole(folder / MARK, json.dumps(signed, indent=2) + "\n")


def _running(normaliser: Any) -> tuple[Any, ...]:
    rms = normaliser.ret_rms
    return rms.mean, rms.var, rms.count, normaliser.returns


def _python_random() -> tuple[int, Any, float | None]:
    release, words, spare = random.getstate()
    return release, np.array(words, np.int64), spare


def capture(model: Any, face: NativeVecEnv, normaliser: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The state between two rollouts."""
    return {
        "request": request,
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "steps": model.num_timesteps,
        "updates": model._n_updates,
        "observation": np.array(model._last_obs),
        "starts": np.array(model._last_episode_starts),
        "mask": face.venv.action_masks().copy(),
        "episodes": list(model.ep_info_buffer),
        "environment": face.state(),
        "normaliser": None if normaliser is None else _running(normaliser),
        "random": (torch.get_rng_state(), np.random.get_state(), _python_random()),  # noqa: NPY002
    }


def read(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint in a folder; EscalaError where there is none, or where it belongs to another training."""
    path = folder / FILE
    if ended(folder):
        raise EscalaError(
            f"{folder}: this training has ended, nothing is left to resume: load it, or train for another folder"
        )
    if not path.is_file() and (folder / OLD).is_file():
        raise EscalaError(
            f"{folder / OLD}: of an older version of escala, which this one does not read: train anew into another "
            "folder"
        )
    if not path.is_file():
        raise EscalaError(f"{folder}: no {FILE} to resume from; train without resume first")
    _same_request(path, request)
    return dict(_guarded(path, packed.read))


def _guarded(path: Path, reader: Callable[[IO[bytes]], Any]) -> dict[str, Any]:
    """What a reader makes of a checkpoint; EscalaError where it is none."""
    try:
        with path.open("rb") as stream:
            found = reader(stream)
        if not isinstance(found, dict):
            raise TypeError("holds no checkpoint")
    except Exception as error:  # zip, zlib, JSON and numpy have their own kinds
        raise EscalaError(
            f"{path}: not a readable checkpoint ({type(error).__name__}); train anew into another folder"
        ) from error
    return found


def _same_request(path: Path, request: Mapping[str, Any]) -> None:
    known = _guarded(path, packed.read_request)
    for name, value in json.loads(json.dumps(request)).items():
        if known.get(name) != value:
            told = f"{name}={repr(known.get(name))[:200]}, not {value!r}"
            raise EscalaError(f"{path}: belongs to a training with {told}: resume with the same arguments")


def restore(saved: dict[str, Any], model: Any, face: NativeVecEnv, normaliser: Any) -> None:
    """Restore a captured state. The random generators come last: building things has used them."""
    model.policy.load_state_dict(saved["policy"])
    model.policy.optimizer.load_state_dict(saved["optimizer"])
    model.num_timesteps = saved["steps"]
    model._n_updates = saved["updates"]
    face.restore(saved["environment"], saved["observation"], saved["mask"])
    model._last_obs = face.venv.turn.observation
    model._last_episode_starts = saved["starts"]
    model._setup_learn(0, reset_num_timesteps=False)
    model.ep_info_buffer.extend(saved["episodes"])
    if normaliser is not None:
        rms = normaliser.ret_rms
        rms.mean, rms.var, rms.count, normaliser.returns = saved["normaliser"]
    state, numpy_state, python_state = saved["random"]
    torch.set_rng_state(state)
    np.random.set_state(numpy_state)  # noqa: NPY002
    release, words, spare = python_state
    random.setstate((release, tuple(map(int, words)), spare))
