"""A trained agent: a network, and everything needed to ask it the right questions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from escala.agents import checkpoint
from escala.agents.networks.build import build_policy, pin_threads
from escala.envs import exported
from escala.envs.deciding import Deciding
from escala.errors import EscalaError
from escala.reading import own, read_all, read_json
from escala.writing import SEAL, remove, saved_folder, whole_file
from escala.writing.sealing import digest

MANIFEST = "manifest.json"
KIND = "agent"
WEIGHTS = "weights.pt"
CURVE = "curve.csv"
CURVE_SCHEMA = {"policy": pl.String, "step": pl.Int64, "value": pl.Float64}
FORMAT = 1


class Agent(Deciding):
    """What `train` gives. `manifest`: how it came to be, and what it needs; `network`: stable-baselines3's policy;
    `curve`: how it learnt (see `escala.agents.training.learning_curve`), None where no curve was kept.
    """

    def __init__(self, network: Any, manifest: Mapping[str, Any], curve: pl.DataFrame | None = None) -> None:
        super().__init__(manifest)
        self.network = network.eval()
        self.curve = curve
        pin_threads()

    def logits(self, seen: NDArray[np.float32]) -> NDArray[np.float64]:
        """By stable-baselines3's policy."""
        with torch.no_grad():
            out: NDArray[np.float64] = (
                self.network.get_distribution(torch.as_tensor(seen)).distribution.logits.double().numpy()
            )
        return out

    def arrays(self) -> list[dict[str, NDArray[np.float32]]]:
        """All weights."""
        return [{name: value.numpy() for name, value in self.network.state_dict().items()}]

    def export(self, folder: str | Path) -> None:
        """Write it into `folder` so that it decides without torch: see `escala.envs.exported`. EscalaError for other
        networks."""
        exported.export(self.manifest, self.arrays()[0], folder)

    def save(self, folder: str | Path) -> None:
        """Write weights, curve and manifest into `folder`, at once: a killed run leaves what was there, or the new
        agent.

        A folder that holds an unchanged saved agent and nothing else is replaced; any other folder that is not empty is
        refused.
        """
        with saved_folder(Path(folder), KIND) as work:
            self.write(work)

    def write(self, folder: Path) -> None:
        """Write the agent into the folder of its training, each file as a whole, the manifest last."""
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint.write_weights(folder / WEIGHTS, self.network.state_dict())
        if self.curve is None:
            remove(folder / CURVE)
        else:
            with whole_file(folder / CURVE) as aside:
                self.curve.write_csv(aside)
        files = [WEIGHTS] if self.curve is None else [WEIGHTS, CURVE]
        checkpoint.write_manifest(folder, self.manifest | {"weights_sha256": digest(folder / WEIGHTS)}, KIND, files)


def is_team(folder: str | Path) -> bool:
    """Does a team lie in this folder, exported or not? Judged by its manifest alone."""
    return exported.kind_of(folder) in ("team", exported.TEAM)


def load_agent(folder: str | Path) -> Any:
    """The agent saved or exported in a folder; EscalaError where there is none, or its files do not belong together."""
    source = Path(folder)
    if exported.is_exported(source):
        return exported.load_exported(source)
    if is_team(source):
        raise EscalaError(f"{source}: a team of several agents: use load_team, or agent:{source} as a scheduler")
    try:
        manifest, raw = read_json(source / MANIFEST), read_all(source / WEIGHTS)
    except EscalaError as error:
        whole = all((source / name).is_file() for name in (MANIFEST, WEIGHTS))
        why = error if whole else "give a folder that escala train wrote"
        raise EscalaError(f"{source}: no trained agent here ({MANIFEST}, {WEIGHTS}): {why}") from error
    if not isinstance(manifest, dict) or manifest.get("kind") != "agent" or manifest.get("format") != FORMAT:
        raise EscalaError(
            f"{source / MANIFEST}: not the manifest of an agent of format {FORMAT}: give a folder written by train"
        )
    if hashlib.sha256(raw).hexdigest() != manifest.get("weights_sha256"):
        raise EscalaError(f"{source}: {WEIGHTS} is not the file that {MANIFEST} was written for: save the agent again")
    with own(source / MANIFEST, "description of a network", "save the agent again"):
        space = spaces.Box(0.0, 1.0, tuple(manifest["observation_shape"]), np.float32)
        network = build_policy(manifest, space, spaces.Discrete(int(manifest["actions"])))
    load_weights(network, source / WEIGHTS)
    return Agent(network, {name: value for name, value in manifest.items() if name not in SEAL}, _curve(source / CURVE))


def load_weights(network: Any, path: Path) -> None:
    """Weights of a file into a network; EscalaError where they are of another one."""
    try:
        with own(path, "file of weights", "train again"):
            held = torch.load(path, weights_only=True)
        network.load_state_dict(held)
    except (AttributeError, TypeError) as error:
        raise EscalaError(f"{path}: holds no weights of a network: train again") from error
    except RuntimeError as error:
        raise EscalaError(
            f"{path}: trained by another version of escala, whose network was different: train again"
        ) from error


def _curve(path: Path) -> pl.DataFrame | None:
    if not path.exists():
        return None
    with own(path, "learning curve", "remove it, the agent does not need it"):
        return pl.read_csv(path, schema=CURVE_SCHEMA)
