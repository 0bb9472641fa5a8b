"""Trained agents and teams that decide without torch: weights as numpy arrays, a manifest, and the forward pass in
numpy (`escala.envs.forward`)."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.envs.deciding import Deciding
from escala.envs.forward import Numbers, Shape, Weights, forward_of, pairs
from escala.envs.slots.team.deciding import DecidingTeam, Preferences
from escala.errors import EscalaError
from escala.reading import own, read_all, read_json
from escala.writing import SEAL, saved_folder, write_whole
from escala.writing.sealing import digest

KIND, TEAM = "exported agent", "exported team"
FORMAT = 1
MANIFEST, WEIGHTS = "manifest.json", "weights.npz"


class Exported(Deciding):
    """An agent whose network is numpy arrays by name, those that decide of stable-baselines3's policy. What recurrent
    layers are given at all steps is one product, in less than half the time where its weights lie in columns."""

    def __init__(self, manifest: Mapping[str, Any], weights: Weights) -> None:
        super().__init__(manifest)
        self.weights = {name: np.asfortranarray(one) if "weight_ih" in name else one for name, one in weights.items()}
        self._forward = forward_of(self.manifest)

    def logits(self, seen: Numbers) -> NDArray[np.float64]:
        """By numpy."""
        return self._forward(self.weights, seen).astype(np.float64)

    def arrays(self) -> list[dict[str, Numbers]]:
        """Those that decide."""
        return [self.weights]


class ExportedTeam(DecidingTeam):
    """A team whose networks are numpy arrays by name: one for each agent, or a single one that all share."""

    def __init__(self, manifest: Mapping[str, Any], weights: Sequence[Weights]) -> None:
        super().__init__(manifest)
        self.weights = [dict(one) for one in weights]

    def networks_asked(self) -> list[Preferences]:
        """By numpy."""
        shape = Shape(*self.manifest["shape"])

        def asked(weights: Weights) -> Preferences:
            return lambda seen: pairs(weights, seen, shape).astype(np.float64)

        return [asked(one) for one in self.weights]

    def arrays(self) -> list[dict[str, Numbers]]:
        """Those that decide."""
        return self.weights


_ASIDE = (
    "value_net.",
    "mlp_extractor.value_net.",
    "mlp_extractor.seen.",
    "mlp_extractor.judged.",
    "features_extractor.",
    "vf_features_extractor.",
)
"""How weights begin that the value is worked out by, or that stand under a second name."""


def export(manifest: Mapping[str, Any], weights: Weights, folder: str | Path) -> None:
    """Write an exported agent. weights: all of the network, by name. EscalaError for networks that cannot be
    exported."""
    forward_of(manifest)
    _write(manifest, KIND, _deciding(weights), folder)


def export_team(manifest: Mapping[str, Any], weights: Sequence[Weights], folder: str | Path) -> None:
    """Write an exported team. weights: all of each network, by name."""
    _write(
        manifest,
        TEAM,
        {f"{k}/{name}": value for k, one in enumerate(weights) for name, value in _deciding(one).items()},
        folder,
    )


def _deciding(weights: Weights) -> dict[str, Numbers]:
    return {name: value for name, value in weights.items() if not name.startswith(_ASIDE)}


def _write(manifest: Mapping[str, Any], kind: str, weights: Weights, folder: str | Path) -> None:
    packed = io.BytesIO()
    np.savez(packed, **weights)
    with saved_folder(Path(folder), kind) as work:
        write_whole(work / WEIGHTS, packed.getvalue())
        told = {**manifest, "kind": kind, "format": FORMAT, "weights_sha256": digest(work / WEIGHTS)}
        write_whole(work / MANIFEST, json.dumps(told, indent=2) + "\n")


def kind_of(folder: str | Path) -> Any:
    """The kind of what lies in a folder, by its manifest alone; None where it has none."""
    try:
        manifest = read_json(Path(folder) / MANIFEST)
    except EscalaError:
        return None
    return manifest.get("kind") if isinstance(manifest, dict) else None


def is_exported(folder: str | Path) -> bool:
    """Does an exported agent lie in this folder? Judged by its manifest alone."""
    return kind_of(folder) == KIND


def load_exported(folder: str | Path) -> Exported | ExportedTeam:
    """The exported agent or team in a folder; EscalaError where its files are damaged or do not belong together."""
    source = Path(folder)
    manifest = read_json(source / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("kind") not in (KIND, TEAM) or manifest.get("format") != FORMAT:
        raise EscalaError(
            f"{source / MANIFEST}: not the manifest of an exported agent of format {FORMAT}: export it again"
        )
    raw = read_all(source / WEIGHTS)
    if digest(source / WEIGHTS) != manifest.get("weights_sha256"):
        raise EscalaError(
            f"{source}: {WEIGHTS} is not the file that {MANIFEST} was written for: export the agent again"
        )
    with own(source / WEIGHTS, manifest["kind"], "export it again"):
        held = np.load(io.BytesIO(raw), allow_pickle=False)
        weights = {name: held[name] for name in held.files}
        about = {name: value for name, value in manifest.items() if name not in SEAL}
        return _team(about, weights) if manifest["kind"] == TEAM else _agent(about, weights)


def _agent(about: Mapping[str, Any], weights: Weights) -> Exported:
    agent = Exported(about, weights)
    shown = agent.logits(np.zeros((1, *about["observation_shape"]), np.float32)).shape
    if shown != (1, int(about["actions"])) or not about["env_id"]:
        raise ValueError(f"gives {shown[1:]} preferences")
    return agent


def _team(about: Mapping[str, Any], weights: Weights) -> ExportedTeam:
    agents = 1 if about["mode"] == "shared" else int(about["agents"])
    parts = [
        {name.partition("/")[2]: value for name, value in weights.items() if name.startswith(f"{k}/")}
        for k in range(agents)
    ]
    team = ExportedTeam(about, parts)
    for ask in team.networks_asked():
        shown = ask(np.zeros((1, Shape(*about["shape"]).numbers), np.float32)).shape
        if shown != (1, int(about["actions"])):
            raise ValueError(f"gives {shown[1:]} preferences")
    team.policy()  # its options are those of the game
    return team
