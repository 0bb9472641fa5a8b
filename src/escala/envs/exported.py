"""Trained agents that decide without torch: weights as numpy arrays, a manifest, and the forward pass in a few lines of numpy.

For networks of dense layers on the flat observation, and the slot scorer (formula: docs/slots.md); their preferences are those of torch
but for the rounding of float32.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.deciding import Deciding
from escala.errors import EscalaError
from escala.reading import own, read_all, read_json
from escala.writing import SEAL, saved_folder, write_whole
from escala.writing.sealing import digest

KIND = "exported agent"
FORMAT = 1
MANIFEST, WEIGHTS = "manifest.json", "weights.npz"
SLOT_SCORER = "slot-scorer"
DENSE = "mlp_extractor.policy_net."

Numbers = NDArray[np.float32]
Forward = Callable[[Mapping[str, Numbers], Numbers], Numbers]


def _relu(x: Numbers) -> Numbers:
    return np.maximum(x, np.float32(0.0))


def _dense(w: Mapping[str, Numbers], name: str, x: Numbers) -> Numbers:
    out: Numbers = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return out


def _hidden_layers(squash: Callable[[Numbers], Numbers]) -> Forward:
    """Dense layers with this function behind each, and the action layer."""

    def forward(w: Mapping[str, Numbers], seen: Numbers) -> Numbers:
        x, layer = seen.reshape(len(seen), -1), 0
        while f"{DENSE}{layer}.weight" in w:
            x = squash(_dense(w, f"{DENSE}{layer}", x))
            layer += 2
        return _dense(w, "action_net", x)

    return forward


def _slots(w: Mapping[str, Numbers], seen: Numbers, slots: int) -> Numbers:
    """Preferences of the no-op and of the slots."""
    at = "mlp_extractor."
    features = w[f"{at}of_job.weight"].shape[1]
    jobs, rest = seen[:, : slots * features].reshape(len(seen), slots, features), seen[:, slots * features :]
    mean = _relu(_dense(w, f"{at}context.embed", jobs)).mean(axis=1)
    context = _relu(_dense(w, f"{at}context.mix", np.concatenate([rest, mean], axis=1)))
    noop = _dense(w, f"{at}void.2", _relu(_dense(w, f"{at}void.0", context)))
    hidden = _relu(_dense(w, f"{at}of_job", jobs) + (context @ w[f"{at}of_context.weight"].T)[:, None])
    return np.concatenate([noop, _dense(w, f"{at}preference", hidden)[:, :, 0]], axis=1)


def _forward_of(manifest: Mapping[str, Any]) -> Forward:
    """The forward pass of a manifest's network; EscalaError where it is none of those that can be exported."""
    extractor = manifest["extractor"]
    if manifest.get("ordered") is not None or extractor not in (None, SLOT_SCORER):
        what = extractor or "ordered choices"
        raise EscalaError(f"a network of {what} cannot be exported: only dense layers and {SLOT_SCORER} can; use the trained agent itself")
    if extractor == SLOT_SCORER:
        slots = int(manifest["actions"]) - 1
        return lambda w, seen: _slots(w, seen, slots)
    return _hidden_layers(_relu if manifest.get("relu") else np.tanh)


class Exported(Deciding):
    """An agent whose network is numpy arrays by name, those that decide of stable-baselines3's policy."""

    def __init__(self, manifest: Mapping[str, Any], weights: Mapping[str, Numbers]) -> None:
        super().__init__(manifest)
        self.weights = dict(weights)
        self._forward = _forward_of(self.manifest)

    def logits(self, seen: Numbers) -> NDArray[np.float64]:
        """By numpy."""
        return self._forward(self.weights, seen).astype(np.float64)


def export(manifest: Mapping[str, Any], weights: Mapping[str, Numbers], folder: str | Path) -> None:
    """Write an exported agent. weights: all of the network, by name. EscalaError for networks that cannot be exported."""
    _forward_of(manifest)
    aside = ("value_net.", "mlp_extractor.value_net.", "mlp_extractor.seen.", "mlp_extractor.judged.")  # of the value
    kept = {name: value for name, value in weights.items() if not name.startswith(aside)}
    packed = io.BytesIO()
    np.savez(packed, **kept)  # type: ignore[arg-type]
    with saved_folder(Path(folder), KIND) as work:
        write_whole(work / WEIGHTS, packed.getvalue())
        told = {**manifest, "kind": KIND, "format": FORMAT, "weights_sha256": digest(work / WEIGHTS)}
        write_whole(work / MANIFEST, json.dumps(told, indent=2) + "\n")


def is_exported(folder: str | Path) -> bool:
    """Does an exported agent lie in this folder? Judged by its manifest alone."""
    try:
        manifest = read_json(Path(folder) / MANIFEST)
    except EscalaError:
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == KIND


def load_exported(folder: str | Path) -> Exported:
    """The exported agent in a folder; EscalaError where its files are damaged or do not belong together."""
    source = Path(folder)
    manifest = read_json(source / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND or manifest.get("format") != FORMAT:
        raise EscalaError(f"{source / MANIFEST}: not the manifest of an exported agent of format {FORMAT}: export it again")
    raw = read_all(source / WEIGHTS)
    if digest(source / WEIGHTS) != manifest.get("weights_sha256"):
        raise EscalaError(f"{source}: {WEIGHTS} is not the file that {MANIFEST} was written for: export the agent again")
    with own(source / WEIGHTS, "exported agent", "export it again"):
        held = np.load(io.BytesIO(raw), allow_pickle=False)
        weights = {name: held[name] for name in held.files}
        about = {name: value for name, value in manifest.items() if name not in SEAL}
        agent = Exported(about, weights)
        shown = agent.logits(np.zeros((1, *about["observation_shape"]), np.float32)).shape
        if shown != (1, int(about["actions"])) or not about["env_id"]:
            raise ValueError(f"gives {shown[1:]} preferences")
    return agent
