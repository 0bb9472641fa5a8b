"""Escala learns scheduling and power policies for batch clusters.

The public names below are loaded when first used: importing the package costs next to nothing, and what needs an
optional dependency is imported only for those who ask for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from escala.extras import missing
from escala.registry import register_when_imported

if TYPE_CHECKING:
    from escala import (
        agents,
        envs,
        leaderboard,
        live,
        metrics,
        optimum,
        platform,
        policies,
        report,
        slurm,
        streaming,
        studies,
        workload,
    )
    from escala.agents.agent import Agent
    from escala.agents.evaluate import evaluate
    from escala.agents.training.train import train
    from escala.calibration.calibrate import Calibration, calibrate
    from escala.calibration.what_if import WhatIf, what_if
    from escala.campaigns.campaign import Campaign, campaign
    from escala.errors import EscalaError, EscalaWarning
    from escala.fitting.predict import predict
    from escala.fitting.predicted import Predicted
    from escala.loading import load_agent
    from escala.platform import Platform, PowerProfile, Site, power, read_platform, read_site
    from escala.policies import Comparison, bound, compare, rerun, simulate
    from escala.policy import Commands, Policy, View
    from escala.result import Result
    from escala.tuning import Frontier, Tuned, frontier, tune
    from escala.workload import Workload, read_workload
    from escala.workload.describe import describe

__version__ = "0.1.0"

_HOME = {
    "Agent": "escala.agents.agent",
    "Calibration": "escala.calibration.calibrate",
    "Campaign": "escala.campaigns.campaign",
    "Commands": "escala.policy",
    "Comparison": "escala.policies",
    "EscalaError": "escala.errors",
    "EscalaWarning": "escala.errors",
    "Frontier": "escala.tuning",
    "Platform": "escala.platform",
    "Policy": "escala.policy",
    "PowerProfile": "escala.platform",
    "Predicted": "escala.fitting.predicted",
    "Result": "escala.result",
    "Site": "escala.platform",
    "Tuned": "escala.tuning",
    "View": "escala.policy",
    "WhatIf": "escala.calibration.what_if",
    "Workload": "escala.workload",
    "bound": "escala.policies",
    "calibrate": "escala.calibration.calibrate",
    "campaign": "escala.campaigns.campaign",
    "compare": "escala.policies",
    "describe": "escala.workload.describe",
    "evaluate": "escala.agents.evaluate",
    "frontier": "escala.tuning",
    "load_agent": "escala.loading",
    "power": "escala.platform",
    "predict": "escala.fitting.predict",
    "read_platform": "escala.platform",
    "read_site": "escala.platform",
    "read_workload": "escala.workload",
    "rerun": "escala.policies",
    "simulate": "escala.policies",
    "train": "escala.agents.training.train",
    "tune": "escala.tuning",
    "what_if": "escala.calibration.what_if",
}
"""Public name -> the module that defines it."""

_EXTRAS = {
    "agents": ("Agent", "agents", "evaluate", "train"),
    "envs": ("envs", "load_agent"),
    "report": ("report",),
}
"""Extra -> the public names that need it."""

_PARTS = (
    *(
        "agents",
        "envs",
        "leaderboard",
        "live",
        "metrics",
        "optimum",
        "platform",
        "policies",
        "report",
        "slurm",
        "streaming",
        "studies",
    ),
    "workload",
)
"""Subpackages that are public as they are."""

__all__ = [
    "Agent",
    "Calibration",
    "Campaign",
    "Commands",
    "Comparison",
    "EscalaError",
    "EscalaWarning",
    "Frontier",
    "Platform",
    "Policy",
    "PowerProfile",
    "Predicted",
    "Result",
    "Site",
    "Tuned",
    "View",
    "WhatIf",
    "Workload",
    "__version__",
    "agents",
    "bound",
    "calibrate",
    "campaign",
    "compare",
    "describe",
    "envs",
    "evaluate",
    "frontier",
    "leaderboard",
    "live",
    "load_agent",
    "metrics",
    "optimum",
    "platform",
    "policies",
    "power",
    "predict",
    "read_platform",
    "read_site",
    "read_workload",
    "report",
    "rerun",
    "simulate",
    "slurm",
    "streaming",
    "studies",
    "train",
    "tune",
    "what_if",
    "workload",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _PARTS:
        raise AttributeError(f"module 'escala' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name) if name in _HOME else import_module(f"escala.{name}")
    except ModuleNotFoundError as error:
        raise (
            missing(error, f"escala.{name}", *(extra for extra, names in _EXTRAS.items() if name in names)) or error
        ) from error
    globals()[name] = value
    return value


register_when_imported()


def __dir__() -> list[str]:
    return __all__
