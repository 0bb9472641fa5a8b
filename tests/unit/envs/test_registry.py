"""Gymnasium knows the environments once it and the package are imported, whichever comes first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from escala.registry import ENVIRONMENTS

ORDERS = {
    "escala first": "import escala; assert 'gymnasium' not in sys.modules; import gymnasium",
    "gymnasium first": "import gymnasium, escala",
    "looked for before": "import escala, importlib.util; assert importlib.util.find_spec('gymnasium'); import gymnasium",
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_names_are_known_in_either_order(order: str) -> None:
    told = "; print(sorted(name for name in gymnasium.registry if name.startswith('escala/')), type(gymnasium.__loader__).__name__)"
    done = subprocess.run([sys.executable, "-c", f"import sys; {ORDERS[order]}{told}"], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("] ") == [str(sorted(ENVIRONMENTS))[:-1], "SourceFileLoader\n"], done.stderr
