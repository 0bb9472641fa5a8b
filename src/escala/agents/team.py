"""A trained team: a network for each agent (or one for all), and everything needed to ask them the right questions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from escala.agents import checkpoint
from escala.agents.agent import load_weights
from escala.agents.networks.build import pin_threads
from escala.agents.networks.pair_scorer import MaskedPairPolicy
from escala.envs import exported
from escala.envs.forward import Shape
from escala.envs.slots.team.deciding import DecidingTeam, Preferences
from escala.envs.slots.team.options import MultiOptions
from escala.errors import EscalaError
from escala.reading import own, read_all, read_json
from escala.writing import SEAL, saved_folder
from escala.writing.sealing import digest

MANIFEST = "manifest.json"
KIND = "team"
FORMAT = 1


def _never(_: float) -> float:
    return 0.0


def build(manifest: Mapping[str, Any]) -> Any:
    """The network of a manifest, untrained."""
    numbers, actions = int(manifest["shape"][4]), int(manifest["actions"])
    return MaskedPairPolicy(
        spaces.Box(0.0, 1.0, (numbers,), np.float32), spaces.Discrete(actions), _never, shape=manifest["shape"]
    )


def preferences_of(network: Any) -> Preferences:
    """A network's own, by torch."""

    def ask(seen: NDArray[np.float32]) -> NDArray[np.float64]:
        with torch.no_grad():
            out: NDArray[np.float64] = network.mlp_extractor.forward_actor(torch.as_tensor(seen)).double().numpy()
        return out

    return ask


class Team(DecidingTeam):
    """What `train_team` gives. networks: one for each agent, or a single one that all share. manifest: how it came to
    be."""

    def __init__(self, networks: Sequence[Any], manifest: Mapping[str, Any]) -> None:
        super().__init__(manifest)
        self.networks = [network.eval() for network in networks]
        pin_threads()

    def networks_asked(self) -> list[Preferences]:
        """By torch."""
        return [preferences_of(network) for network in self.networks]

    def arrays(self) -> list[dict[str, NDArray[np.float32]]]:
        """All weights of each network."""
        return [{name: value.numpy() for name, value in network.state_dict().items()} for network in self.networks]

    def export(self, folder: str | Path) -> None:
        """Write it into `folder` so that it decides without torch: see `escala.envs.exported`."""
        exported.export_team(self.manifest, self.arrays(), folder)

    def save(self, folder: str | Path) -> None:
        """Write weights and manifest into `folder`, at once: a killed run leaves what was there, or the new team.

        A folder that holds an unchanged saved team and nothing else is replaced; any other folder that is not empty is
        refused.
        """
        with saved_folder(Path(folder), KIND) as work:
            self.write(work)

    def write(self, folder: Path) -> None:
        """Write the team into the folder of its training, each file as a whole, the manifest last."""
        folder.mkdir(parents=True, exist_ok=True)
        files = [f"weights-{k}.pt" for k in range(len(self.networks))]
        for name, network in zip(files, self.networks, strict=True):
            checkpoint.write_weights(folder / name, network.state_dict())
        digests = [digest(folder / name) for name in files]
        checkpoint.write_manifest(folder, self.manifest | {"weights_sha256": digests}, KIND, files)


def load_team(folder: str | Path) -> DecidingTeam:
    """The team saved or exported in a folder; EscalaError where there is none, or its files do not belong together."""
    source = Path(folder)
    if exported.kind_of(source) == exported.TEAM:
        return cast(exported.ExportedTeam, exported.load_exported(source))
    try:
        manifest = read_json(source / MANIFEST)
    except EscalaError as error:
        raise EscalaError(f"{source}: no trained team here ({MANIFEST}): {error}") from error
    _check(manifest, source)
    networks = []
    for k, known in enumerate(manifest["weights_sha256"]):
        path = source / f"weights-{k}.pt"
        if hashlib.sha256(read_all(path)).hexdigest() != known:
            raise EscalaError(f"{path}: is not the file that {MANIFEST} was written for: save the team again")
        with own(source / MANIFEST, "description of a team", "save the team again"):
            network = build(manifest)
        load_weights(network, path)
        networks.append(network)
    return Team(networks, {name: value for name, value in manifest.items() if name not in SEAL})


def _check(manifest: Any, source: Path) -> None:
    """EscalaError where a manifest is no team's, or does not fit together."""
    if not isinstance(manifest, dict) or manifest.get("kind") != "team" or manifest.get("format") != FORMAT:
        raise EscalaError(
            f"{source / MANIFEST}: not the manifest of a team of format {FORMAT}: give a folder written by train_team"
        )
    shape, options, digests = (manifest.get(name) for name in ("shape", "options", "weights_sha256"))
    agents, actions = manifest.get("agents"), manifest.get("actions")
    shared = manifest.get("mode") == "shared"
    right = {
        "mode": isinstance(manifest.get("mode"), str),
        "options": isinstance(options, dict),
        "agents": _counts(agents)
        and isinstance(options, dict)
        and options.get("agents", MultiOptions.agents) == agents,
        "actions": _counts(actions),
        "shape": isinstance(shape, list) and len(shape) == len(Shape._fields) and all(map(_counts, shape)),
        "weights_sha256": isinstance(digests, list) and len(digests) == (1 if shared else agents),
    }
    wrong = [name for name, fine in right.items() if not fine]
    if wrong:
        raise EscalaError(
            f"{source / MANIFEST}: {wrong[0]!r} is missing or does not belong to the rest: save the team again"
        )


def _counts(value: Any) -> bool:
    """Is it a whole number of at least 1?"""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
