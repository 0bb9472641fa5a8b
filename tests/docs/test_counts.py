"""What pages count and list of the code is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from escala import extras
from escala.errors import EscalaError
from escala.policies import SHUTDOWN_FORMS
from escala.policies.schedulers import CHANGING
from escala.scores import FIXED
from escala.studies.lab.claims import VERDICTS
from escala.workload.read import TAKES

DOCS = Path(__file__).resolve().parents[2] / "docs"
WORDS = {"swf": "SWF", "batsim": "Batsim JSON", "slurm": "sacct", "pbs": "PBS", "oar": "OAR", "google": "Google"}
WORDS |= {"csv": "CSV", "parquet": "Parquet"}


def _ours(row: str) -> str:
    """Escala's cell of a row of the table in compared-to.md."""
    found = re.search(rf"^\| {row} \|.* \| ([^|]+) \|$", (DOCS / "compared-to.md").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_table_of_neighbours_counts_our_policies() -> None:
    assert f" {len(FIXED) + len(CHANGING)} scores in 3 forms," in _ours("classic policies")
    assert _ours("shutdown policies") == f"{len(SHUTDOWN_FORMS)}, with settings"


def test_every_format_of_logs_is_named_where_they_are_listed() -> None:
    assert _ours("traces read").split(", ") == [WORDS[format] for format in TAKES]
    said = re.search(r"^Any job log will do: .*?\.\s", (DOCS / "tutorial.md").read_text(), re.MULTILINE | re.DOTALL)
    assert said is not None and all(word in said[0] for word in WORDS.values())


def test_the_line_on_a_missing_extra_is_the_one_that_the_page_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "found", lambda package: package != "torch")
    with pytest.raises(EscalaError) as error:
        extras.need("training", "agents")
    heading = re.search(r"\*\*`\.\.\. (needs the extra [^`]+)`\.\*\*", (DOCS / "how-to" / "trouble.md").read_text())
    assert heading is not None and heading[1] in str(error.value)


@pytest.mark.parametrize("page", sorted(DOCS.glob("studies/*/claims.md")), ids=lambda page: page.parent.name)
def test_claims_say_what_their_verdicts_mean(page: Path) -> None:
    above, _, _ = page.read_text(encoding="utf-8").partition("\n| id | claim |")
    assert VERDICTS in above and all(f"*{word}*:" in VERDICTS for word in ("reproduces", "meets aim"))
