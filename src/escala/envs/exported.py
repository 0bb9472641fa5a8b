"""Trained agents that decide without torch: weights as numpy arrays, a manifest, and the forward pass in a few lines of numpy.

For networks of dense layers on the flat observation or on the numbers of `hold_features`, with ordered choices too, for the slot scorer
(formula: docs/slots.md) and for the queue scorer; their preferences are those of torch but for the rounding of float32.
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
from escala.envs.rjms.hold_features import HOLD_FEATURES, hold_features
from escala.envs.rjms.queue_features import NEVER, QUEUE_SCORER, SHARPNESS, job_features
from escala.errors import EscalaError
from escala.reading import own, read_all, read_json
from escala.writing import SEAL, saved_folder, write_whole
from escala.writing.sealing import digest

KIND = "exported agent"
FORMAT = 1
MANIFEST, WEIGHTS = "manifest.json", "weights.npz"
SLOT_SCORER = "slot-scorer"
EXPORTED = (SLOT_SCORER, HOLD_FEATURES, QUEUE_SCORER)
LEAST_SPREAD = 0.25
"""Of ordered choices; below, a policy stops trying."""
DENSE = "mlp_extractor.policy_net."

Numbers = NDArray[np.float32]
Forward = Callable[[Mapping[str, Numbers], Numbers], Numbers]


def _relu(x: Numbers) -> Numbers:
    return np.maximum(x, np.float32(0.0))


def _dense(w: Mapping[str, Numbers], name: str, x: Numbers) -> Numbers:
    out: Numbers = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return out


def _hidden_layers(manifest: Mapping[str, Any]) -> Forward:
    """What is read, dense layers with a function behind each, and the action layer, or that of ordered choices."""
    relu, holds, ordered = bool(manifest.get("relu")), manifest["extractor"] == HOLD_FEATURES, manifest.get("ordered") is not None
    choices = np.arange(int(manifest["actions"]), dtype=np.float32)

    def forward(w: Mapping[str, Numbers], seen: Numbers) -> Numbers:
        x, layer = hold_features(seen).astype(np.float32) if holds else seen.reshape(len(seen), -1), 0
        while f"{DENSE}{layer}.weight" in w:
            x = _dense(w, f"{DENSE}{layer}", x)
            x = _relu(x) if relu else np.tanh(x)
            layer += 2
        return _ordered(w, x, choices) if ordered else _dense(w, "action_net", x)

    return forward


def _ordered(w: Mapping[str, Numbers], latent: Numbers, choices: Numbers) -> Numbers:
    """Preferences of a rounded Gaussian over the choices."""
    away = (choices - w["action_net.centre"] - _dense(w, "action_net.mu", latent)) / (np.exp(w["action_net.spread"]) + LEAST_SPREAD)
    out: Numbers = np.float32(-0.5) * np.square(away)
    return out


def _queue(w: Mapping[str, Numbers], seen: Numbers) -> Numbers:
    """Preferences of the no-op, then of the places: released jobs by their order, above the no-op, and this above the held."""
    row, place = np.nonzero(seen[:, :, 0] > 0.0)
    order, release = w["mlp_extractor.score.weight"] @ job_features(seen, row, place).astype(np.float32).T
    wanted = np.full(seen.shape[:2], np.nan, np.float32)
    wanted[row, place] = np.where(release > 0.0, np.float32(SHARPNESS) * order, np.float32(np.nan))
    lowest = np.where(np.isnan(wanted), np.float32(np.inf), wanted).min(axis=1, keepdims=True)
    noop = np.where(np.isinf(lowest), np.float32(0.0), lowest) - np.float32(NEVER)
    return np.concatenate([noop, np.where(np.isnan(wanted), noop - np.float32(NEVER), wanted)], axis=1)


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
    if extractor not in (None, *EXPORTED):
        raise EscalaError(
            f"a network of {extractor} cannot be exported: only dense layers, {', '.join(EXPORTED[:-1])} and {EXPORTED[-1]} can; "
            "use the trained agent itself"
        )
    if extractor == QUEUE_SCORER:
        return _queue
    if extractor == SLOT_SCORER:
        slots = int(manifest["actions"]) - 1
        return lambda w, seen: _slots(w, seen, slots)
    return _hidden_layers(manifest)


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
