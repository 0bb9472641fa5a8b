"""Agents from their folders: exported ones without torch; and policies that are named by such folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from escala.envs.exported import is_exported, load_exported
from escala.extras import missing

AGENT = "agent:"


def load_agent(folder: str | Path) -> Any:
    """The agent saved or exported in a folder; EscalaError where there is none, or its files do not belong together. An exported one
    needs the extra [envs] alone."""
    if is_exported(folder):
        return load_exported(folder)
    try:
        from escala import agents
    except ModuleNotFoundError as error:
        raise missing(error, "escala.load_agent of an agent that is not exported", "agents") or error from error
    return agents.load_agent(folder)


def policy_named(name: str) -> Any:
    """The policy of `agent:DIR`, a trained agent, or a team by its likeliest actions; of `shield:BASE[:KEY=VALUE...]:agent:DIR`, an agent
    behind a shield by its greedy actions (`escala.envs.shield`)."""
    if not name.startswith(AGENT):
        from escala.envs.shield import shielded, split_name

        folder, settings = split_name(name)
        made = shielded(load_agent(folder), sampled=False, **settings)
    else:
        folder = name.removeprefix(AGENT)
        made = load_agent(folder).policy() if is_exported(folder) else _trained(folder)
    made.name = name
    return made


def _trained(folder: str) -> Any:
    """The policy of what is not exported."""
    from escala.agents import is_team, load_agent, load_team

    return load_team(folder).policy(sampled=False) if is_team(folder) else load_agent(folder).policy()
