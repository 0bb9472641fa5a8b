"""Agents from their folders: exported ones without torch; and policies that are named by such folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from escala.envs.exported import KIND, TEAM, is_exported, kind_of, load_exported
from escala.errors import EscalaError
from escala.extras import missing

AGENT = "agent:"


def load_agent(folder: str | Path) -> Any:
    """The agent saved or exported in a folder; EscalaError where there is none, or its files do not belong together. An exported one
    needs the extra [envs] alone."""
    if is_exported(folder):
        return load_exported(folder)
    if kind_of(folder) == TEAM:
        raise EscalaError(f"{folder}: an exported team: use agent:{folder} as a scheduler, or escala.envs.exported.load_exported")
    try:
        from escala import agents
    except ModuleNotFoundError as error:
        raise missing(error, "escala.load_agent of an agent that is not exported", "agents") or error from error
    return agents.load_agent(folder)


def policy_named(name: str) -> Any:
    """The policy of `agent:DIR`, a trained agent, or a team by its greedy actions; of `shield:BASE[:KEY=VALUE...]:agent:DIR`, an agent
    behind a shield by its greedy actions (`escala.envs.shield`)."""
    if not name.startswith(AGENT):
        from escala.envs.shield import shielded, split_name

        env_id, folder, settings = split_name(name)
        agent = load_agent(folder)
        if getattr(agent, "env_id", "") != env_id:
            raise EscalaError(f"{name}: base {settings['base']} overrules agents of {env_id}, and {folder} holds another")
        made = shielded(agent, sampled=False, **settings)
    else:
        folder = name.removeprefix(AGENT)
        kind = kind_of(folder)
        loaded = load_exported(folder) if kind in (KIND, TEAM) else _trained(folder, kind)
        made = loaded.policy(sampled=False) if kind in ("team", TEAM) else loaded.policy()
    made.name = name
    return made


def _trained(folder: str, kind: Any) -> Any:
    """What is not exported."""
    from escala.agents import load_agent, load_team

    return load_team(folder) if kind == "team" else load_agent(folder)
