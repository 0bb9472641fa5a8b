"""Hand-made schedules run through both engines."""

from __future__ import annotations

import pytest

from tests.golden.hand import Engine
from tests.oracle.engines import ENGINES


@pytest.fixture(params=list(ENGINES))
def run(request: pytest.FixtureRequest) -> Engine:
    return Engine(request.param)
