"""Agents from their folders: exported ones without torch; and policies that are named by such folders."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from escala.envs.exported import KIND, MANIFEST, TEAM, is_exported, kind_of, load_exported
from escala.errors import EscalaError
from escala.extras import missing
from escala.reading import read_json
from escala.writing import SEAL

AGENT = "agent:"
NOTED = (*SEAL, "escala", "pulled")
"""What a manifest says of its folder, and not of what decides."""


def load_agent(folder: str | Path) -> Any:
    """The agent saved or exported in a folder; EscalaError where there is none, or its files do not belong together. An
    exported one needs the extra [envs] alone."""
    if is_exported(folder):
        return load_exported(folder)
    if kind_of(folder) == TEAM:
        raise EscalaError(
            f"{folder}: an exported team: use agent:{folder} as a scheduler, or escala.envs.exported.load_exported"
        )
    try:
        from escala import agents
    except ModuleNotFoundError as error:
        raise missing(error, "escala.load_agent of an agent that is not exported", "agents") or error from error
    return agents.load_agent(folder)


def policy_named(name: str, seed: int = 0) -> Any:
    """The policy of `agent:DIR`, a trained agent, or a team by its greedy actions; of
    `shield:BASE[:KEY=VALUE...]:agent:DIR`, an agent behind a shield by its greedy actions (`escala.envs.shield`). seed:
    of the actions or futures that are drawn."""
    if not name.startswith(AGENT):
        from escala.envs.shield import shielded, split_name

        env_id, folder, settings = split_name(name)
        agent = load_agent(folder)
        if getattr(agent, "env_id", "") != env_id:
            raise EscalaError(
                f"{name}: base {settings['base']} overrules agents of {env_id}, and {folder} holds another"
            )
        made = shielded(agent, sampled=False, seed=seed, **settings)
    else:
        folder = folder_in(name)
        kind = kind_of(folder)
        loaded = load_exported(folder) if kind in (KIND, TEAM) else _trained(folder, kind)
        made = loaded.policy(sampled=False) if kind in ("team", TEAM) else loaded.policy(seed=seed)
    made.name = name
    return made


def folder_in(name: str) -> str:
    """The folder of the agent or team that such a name tells; EscalaError for a shield that makes no sense."""
    if name.startswith(AGENT):
        return name.removeprefix(AGENT)
    from escala.envs.shield import split_name

    return split_name(name)[1]


def digests_named(name: str) -> dict[str, str]:
    """SHA-256 of what decides under such a name, by path: of the manifest, which holds the hash of the weights, without
    what was noted when the folder was signed, sent or taken. EscalaError where there is none."""
    path = Path(folder_in(name)) / MANIFEST
    manifest = read_json(path)
    told = (
        {key: value for key, value in manifest.items() if key not in NOTED} if isinstance(manifest, dict) else manifest
    )
    return {str(path): hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()}


def _trained(folder: str, kind: Any) -> Any:
    """What is not exported; EscalaError where that needs an extra that is not installed."""
    if kind != "team":
        return load_agent(folder)
    try:
        from escala import agents
    except ModuleNotFoundError as error:
        raise missing(error, "a team that is not exported", "agents") or error from error
    return agents.load_team(folder)
