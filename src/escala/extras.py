"""Which optional extra brings a missing package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

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
    "pyzmq": "batsim",
    "lightgbm": "predict",
    "ray": "ray",
    "dm-tree": "rllib",
    "mlflow": "track",
    "wandb": "track",
    "optuna": "optuna",
    "huggingface_hub": "share",
    "onnx": "onnx",
}
"""Package -> the extra of Escala that installs it."""

IMPORTED = {"PIL": "pillow", "zmq": "pyzmq", "tree": "dm-tree"}
"""Where a package is imported by another name than its own."""

ELSEWHERE = {"pygame": "pygame-ce", "mlflow": "mlflow-skinny"}
"""Where another distribution than the package's own may have it: the one that the extra installs on some systems, or
everywhere."""

BRINGS = {
    "agents": ("envs",),
    "track": ("agents",),
    "optuna": ("agents",),
    "rllib": ("agents", "ray"),
    "all": ("agents", "envs", "report", "optimum", "batsim", "predict"),
}
"""Extra -> the extras that it installs too."""

SELDOM = ("pettingzoo", "pygame", "tensorboard")
"""Packages that a part of their extra's users import: their absence keeps nobody else from working."""


def found(package: str) -> bool:
    """Whether a package can be imported; nothing is imported for that."""
    module = next((name for name, own in IMPORTED.items() if own == package), package)
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # an import hook says no; a name that was put among the modules as None
        return False


def lacking(*extras: str) -> list[str]:
    """The packages of these extras that are not here."""
    wanted = {*extras, *(other for extra in extras for other in BRINGS.get(extra, ()))}
    return [
        package for package, extra in EXTRAS.items() if extra in wanted and package not in SELDOM and not found(package)
    ]


def need(what: str, *extras: str) -> None:
    """EscalaError that names all extras that `what` needs, if a package of them is not here."""
    absent = lacking(*extras)
    if absent:
        raise EscalaError(_asked(what, extras, absent))


def missing(error: ModuleNotFoundError, what: str = "this", *extras: str) -> EscalaError | None:
    """What to tell a user who lacks an optional package; None where the missing module is none of these.

    extras: all that `what` needs, where that is known; else the one of the missing package.
    """
    module = (error.name or "").partition(".")[0]
    package = IMPORTED.get(module, module)
    if package not in EXTRAS:
        return None
    asked = extras or (EXTRAS[package],)
    return EscalaError(_asked(what, asked, [package, *(other for other in lacking(*asked) if other != package)]))


def _asked(what: str, extras: Sequence[str], absent: Sequence[str]) -> str:
    names, plural = ",".join(extras), "s" if len(extras) > 1 else ""
    return (
        f"{what} needs the extra{plural} [{names}] of Escala, of which {', '.join(absent)} "
        f"{'is' if len(absent) == 1 else 'are'} not installed: in Escala's folder, pip install '.[{names}]'"
    )
