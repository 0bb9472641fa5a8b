"""Agents from their folders: exported ones without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from escala.envs.exported import is_exported, load_exported
from escala.extras import missing


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
