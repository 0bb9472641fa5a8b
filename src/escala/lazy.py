"""Public names of a package, each loaded when it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loaded_when_used(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package. home: public name -> the module that defines it, or that it is."""

    def attribute(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(home[name])
        value = module if home[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
