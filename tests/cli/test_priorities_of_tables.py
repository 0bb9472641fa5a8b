"""A table's own priorities: that Slurm's rules take them is said."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import Escala
from tests.unit.workload.test_asked_in_files import csv_of, of_site


def test_that_priorities_are_taken_is_said_for_slurms_rules_alone(tmp_path: Path, escala_: Escala) -> None:
    of_site(tmp_path)
    said = "2 jobs with a priority in the column `priority`: the scheduler slurm takes it in place of what the site"
    path, site = str(csv_of(tmp_path)), str(tmp_path / "slurm.conf")
    assert said in escala_("simulate", path, "--platform", site, "--scheduler", "slurm", "--json").err
    told = escala_("simulate", path, "--platform", "4x1", "--scheduler", "easy", "--json").err
    assert said not in told and "dependency" in told and "the scheduler slurm alone looks at it" in told
