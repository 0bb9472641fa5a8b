"""Everything that an interrupted training needs to go on exactly, in one file that is replaced as a whole.

stable-baselines3's own files do not resume exactly: they leave out the state of the environment and of the random generators.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from escala.agents.vecenv import NativeVecEnv
from escala.errors import EscalaError
from escala.workload import Workload

FILE = "checkpoint.pt"
SEARCH = "search.npz"  # of an unfinished search
EVERY_S = 30.0


def check_folder(folder: Path | None, resume: bool) -> None:
    """Refuse to resume nothing, to write over a training, and to train for a folder that cannot be written."""
    if resume and folder is None:
        raise EscalaError("resume=True needs out: the folder of the interrupted training")
    if folder is not None and not resume and any(os.path.exists(folder / name) for name in ("manifest.json", FILE, SEARCH)):
        raise EscalaError(f"{folder}: holds a training already: resume it (resume=True, --resume) or give another folder")
    check_place(folder)


def check_place(folder: Path | None) -> None:
    """EscalaError where a folder can neither be made nor be written to."""
    if folder is not None:
        there = next(path for path in (folder, *folder.absolute().parents) if os.path.exists(path))  # False also where it is not to be seen
        if not os.path.isdir(there) or not os.access(there, os.W_OK | os.X_OK):
            why = "a folder that you may not write to" if os.path.isdir(there) else "not a folder"
            raise EscalaError(f"{folder}: nothing can be kept there, {there} is {why}: give another folder")


def about_days(days: Sequence[Any], what: str = "workload") -> dict[str, Any]:
    """What a request says of days to learn from; EscalaError where there is none, or one that is no Workload."""
    if len(days) == 0 or not all(isinstance(day, Workload) for day in days):
        raise EscalaError(f"{what}: give at least one day, each a Workload")
    return {"days": len(days), "jobs": sum(len(day) for day in days), "first": days[0].name, "last": days[-1].name}


def write(path: Path, content: Any) -> None:
    """Write by torch, atomically: the file is the old one or the new one, never a half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        torch.save(content, temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _running(normaliser: Any) -> tuple[Any, ...]:
    rms = normaliser.ret_rms
    return rms.mean, rms.var, rms.count, normaliser.returns


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
        "random": (torch.get_rng_state(), np.random.get_state(), random.getstate()),  # noqa: NPY002
    }


def read(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint in a folder; EscalaError where there is none, or where it belongs to another training."""
    path = folder / FILE
    if not path.is_file() and (folder / "manifest.json").is_file():
        raise EscalaError(f"{folder}: this training has ended, nothing is left to resume: load it, or train for another folder")
    if not path.is_file():
        raise EscalaError(f"{folder}: no {FILE} to resume from; train without resume first")
    try:
        saved: dict[str, Any] = torch.load(path, weights_only=False)
        known = saved["request"]
    except Exception as error:
        raise EscalaError(f"{path}: not a readable checkpoint ({type(error).__name__}); train anew into another folder") from error
    for name, value in request.items():
        if known.get(name) != value:
            raise EscalaError(
                f"{path}: belongs to a training with {name}={known.get(name)!r}, not {value!r}: resume with the same arguments"
            )
    return saved


def restore(saved: dict[str, Any], model: Any, face: NativeVecEnv, normaliser: Any) -> None:
    """Take up a captured state. The random generators come last: building things has used them."""
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
    random.setstate(python_state)
