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
    "pillow": "report",
    "pygame": "envs",
    "ortools": "optimum",
    "highspy": "optimum",
    "joblib": "all",
}
"""Package -> the extra of Escala that installs it."""

IMPORTED = {"PIL": "pillow"}
"""Where a package is imported by another name than its own."""


def missing(error: ModuleNotFoundError) -> EscalaError | None:
    """What to tell a user who lacks an optional package; None where the missing module is none of these."""
    module = (error.name or "").partition(".")[0]
    package = IMPORTED.get(module, module)
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    return EscalaError(f"this needs the package {package}, which is not installed; install Escala with its extra [{extra}]")
