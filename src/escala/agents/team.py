"""A trained team: a network for each agent (or one for all), and everything needed to ask them the right questions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from escala.agents import checkpoint
from escala.agents.agent import load_weights
from escala.agents.networks.build import pin_threads
from escala.agents.networks.pair_scorer import MaskedPairPolicy, Shape
from escala.envs.slots.playing import Member
from escala.envs.slots.team.options import MultiOptions
from escala.envs.slots.team.playing import RESCUE
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
    return MaskedPairPolicy(spaces.Box(0.0, 1.0, (numbers,), np.float32), spaces.Discrete(actions), _never, shape=manifest["shape"])


def probabilities(network: Any, seen: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probability of each action [n, actions]; masked ones have none."""
    with torch.no_grad():
        logits = network.mlp_extractor.forward_actor(torch.as_tensor(np.asarray(seen, np.float32))).double().numpy()
    logits = np.where(mask, logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    out: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return out


class Player:
    """A network as a member of a team. random: samples actions; None: the likeliest."""

    def __init__(self, network: Any, random: np.random.Generator | None) -> None:
        self.network, self.random = network, random

    def __call__(self, seen: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Actions [n]. Raises EscalaError where the game shows or offers something else than the one it was trained on."""
        numbers, actions = int(self.network.observation_space.shape[0]), int(self.network.action_space.n)
        if (seen.shape[1], mask.shape[1]) != (numbers, actions):
            raise EscalaError(
                f"a team that was trained on {numbers} numbers and {actions} actions cannot play a game of {seen.shape[1]} and "
                f"{mask.shape[1]}: give the options that it was trained with (agents, machines, slots, information, ...: Team.options)"
            )
        share = probabilities(self.network, seen, mask)
        if self.random is None:
            return share.argmax(axis=1)
        drawn = self.random.random(len(share))
        picked: NDArray[np.int64] = (share.cumsum(axis=1) <= drawn[:, None] * share.sum(axis=1, keepdims=True)).sum(axis=1)
        return np.minimum(picked, share.shape[1] - 1)


class Team:
    """What `train_team` gives. networks: one for each agent, or a single one that all share. manifest: how it came to be."""

    def __init__(self, networks: Sequence[Any], manifest: Mapping[str, Any]) -> None:
        self.networks = [network.eval() for network in networks]
        self.manifest = dict(manifest)
        pin_threads()

    @property
    def options(self) -> dict[str, Any]:
        """The game's options."""
        return dict(self.manifest["options"])

    @property
    def name(self) -> str:
        """For tables."""
        return f"team ({self.manifest['mode']})"

    def members(self, sampled: bool = True, seed: int = 0) -> list[Member]:
        """One player for each agent, for `escala.envs.slots.team.playing.play`."""
        chance = np.random.default_rng([seed, 0x7EA]) if sampled else None
        players = [Player(network, chance) for network in self.networks]
        return players * int(self.manifest["agents"]) if len(players) == 1 else list(players)

    def policy(self, sampled: bool = True, seed: int = 0) -> Any:
        """A scheduler for `simulate` and `compare`. sampled: draw actions by `seed`; else the greedy ones, no no-op where idle machines
        saw no submission for `RESCUE` units."""
        from escala.envs.slots.team.policy import TeamPolicy

        return TeamPolicy(lambda: self.members(sampled, seed), name=self.name, rescue=0 if sampled else RESCUE, **self.options)

    def save(self, folder: str | Path) -> None:
        """Write weights and manifest into `folder`, at once: a killed run leaves what was there, or the new team.

        A folder that holds an unchanged saved team and nothing else is replaced; any other folder that is not empty is refused.
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


def load_team(folder: str | Path) -> Team:
    """The team saved in a folder; EscalaError where there is none, or its files do not belong together."""
    source = Path(folder)
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
        raise EscalaError(f"{source / MANIFEST}: not the manifest of a team of format {FORMAT}: give a folder written by train_team")
    shape, options, digests = (manifest.get(name) for name in ("shape", "options", "weights_sha256"))
    agents, actions = manifest.get("agents"), manifest.get("actions")
    shared = manifest.get("mode") == "shared"
    right = {
        "mode": isinstance(manifest.get("mode"), str),
        "options": isinstance(options, dict),
        "agents": _counts(agents) and isinstance(options, dict) and options.get("agents", MultiOptions.agents) == agents,
        "actions": _counts(actions),
        "shape": isinstance(shape, list) and len(shape) == len(Shape._fields) and all(map(_counts, shape)),
        "weights_sha256": isinstance(digests, list) and len(digests) == (1 if shared else agents),
    }
    wrong = [name for name, fine in right.items() if not fine]
    if wrong:
        raise EscalaError(f"{source / MANIFEST}: {wrong[0]!r} is missing or does not belong to the rest: save the team again")


def _counts(value: Any) -> bool:
    """Is it a whole number of at least 1?"""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
