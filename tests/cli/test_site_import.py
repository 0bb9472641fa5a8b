"""`escala site import`: a site.toml from exports or from a log, and what cannot be known is said."""

from __future__ import annotations

import json
from pathlib import Path

import escala
from tests.cli.program import Escala
from tests.unit.slurm.test_site_exports import NODES, PARTITIONS, SACCT


def test_from_exports_and_back(escala_: Escala, tmp_path: Path) -> None:
    nodes, partitions, out = tmp_path / "nodes.txt", tmp_path / "partitions.txt", tmp_path / "site.toml"
    nodes.write_text(NODES)
    partitions.write_text(PARTITIONS)
    told = json.loads(escala_("site", "import", nodes, partitions, "--out", out, "--json").out)
    assert told["nodes"] == 2 and told["partitions"][0]["cores of a node"] == "8" and len(told["not_modelled"]) >= 2
    site = escala.read_platform(str(out))
    assert [one.name for one in site.partitions] == ["batch"]
    again = tmp_path / "again.toml"
    assert escala_("site", "import", out, "--out", again).status == 0 and escala.read_site(again) == site
    assert (
        escala_("site", "import", tmp_path / "none.txt", "--out", again).status == 2 and escala.read_site(again) == site
    )


def test_from_a_log(escala_: Escala, tmp_path: Path) -> None:
    log, out = tmp_path / "jobs.txt", tmp_path / "site.toml"
    log.write_text(SACCT)
    outcome = escala_("site", "import", log, "--out", out)
    assert (
        outcome.status == 0
        and "Not known from a log" in outcome.out
        and "# Inferred from 4 of 4 jobs" in out.read_text()
    )
    run = escala_("simulate", log, "--platform", out, "--scheduler", "slurm", "--json")
    assert run.status == 0 and json.loads(run.out)["n_completed"] == 4
    wrong = escala_("site", "import", log, log, "--out", tmp_path / "x.toml")
    assert wrong.status == 2 and "one job log alone" in wrong.err and not (tmp_path / "x.toml").exists()


def test_settings_without_a_model_are_named(escala_: Escala, tmp_path: Path) -> None:
    conf, out = tmp_path / "slurm.conf", tmp_path / "site.toml"
    conf.write_text(
        "ClusterName=c\nPriorityType=priority/multifactor\nPriorityWeightTRES=CPU=1,License/x=2\nNodeName=n1 CPUs=4\n"
        "PartitionName=p Nodes=n1 TRESBillingWeights=CPU=1,bb/y=3\n"
    )
    outcome = escala_("site", "import", conf, "--out", out)
    for left_out in ("License/x=2", "bb/y=3"):
        assert left_out in outcome.out and f"{left_out}\n" in out.read_text().partition("name =")[0]
