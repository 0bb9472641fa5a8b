"""What runs on a submission and what runs on a push are the same."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_workflow_makes_all_that_ci_makes() -> None:
    """The suite, the documentation, and the suite with checked bounds."""
    made = set(re.findall(r"^make ([\w-]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE))
    jobs = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    assert {"test", "test-bounds", "docs"} <= made and made - set(re.findall(r"run: make ([\w-]+)", jobs)) == set()
