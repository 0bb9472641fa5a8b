"""Agents: training with stable-baselines3 on native batches, saving, loading, and acting as policies."""

from escala.agents.agent import Agent, is_team, load_agent
from escala.agents.direct_search.scheduler_search import rule_scheduler, search_scheduler
from escala.agents.direct_search.search import search
from escala.agents.evaluate import evaluate
from escala.agents.presets import PRESETS, Preset
from escala.agents.team import Team, load_team
from escala.agents.training.team.train import train_team
from escala.agents.training.team.validation import against_sjf
from escala.agents.training.train import train
from escala.agents.vecenv import NativeVecEnv

__all__ = [
    "PRESETS",
    "Agent",
    "NativeVecEnv",
    "Preset",
    "Team",
    "against_sjf",
    "evaluate",
    "is_team",
    "load_agent",
    "load_team",
    "rule_scheduler",
    "search",
    "search_scheduler",
    "train",
    "train_team",
]
