"""Which optional extra brings a missing package."""

from __future__ import annotations

from escala.errors import EscalaError

EXTRAS = {
    "gymnasium": "envs",
    "pettingzoo": "envs",
    "stable_baselines3": "agents",
    "sb3_contrib": "agents",
    "torch": "agents",
    "tensorboard": "agents",
    "matplotlib": "report",
    "jinja2": "report",
    "ortools": "optimum",
    "scipy": "optimum",
    "joblib": "all",
}
"""Package -> the extra of Escala that installs it."""


def missing(error: ModuleNotFoundError) -> EscalaError | None:
    """What to tell a user who lacks an optional package; None where the missing module is none of these."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    return EscalaError(f"this needs the package {package}, which is not installed; install Escala with its extra [{extra}]")
