"""`escala calibrate`: the answer first, tables, JSON and a page; a log without waits is one line."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from escala.policies.run import simulate
from tests.cli.program import Escala
from tests.unit.slurm.test_site_exports import SACCT


def test_the_verb(escala_: Escala, tmp_path: Path) -> None:
    path, site, out = tmp_path / "jobs.txt", tmp_path / "site.toml", tmp_path / "out"
    path.write_text(SACCT)
    assert escala_("site", "import", path, "--out", site).status == 0
    done = escala_("calibrate", path, "--platform", site, "--out", out)
    assert done.status == 0, done.err
    assert (
        done.out.startswith("Whether this replay stands for the cluster cannot be told: only 2 jobs")
        and "By partition" in done.out
    )
    assert "inferred from the same log" in done.out and (out / "report.html").stat().st_size > 10_000
    kept = json.loads((out / "calibration.json").read_text())
    told = json.loads(escala_("calibrate", path, "--platform", site, "--json").out)
    assert told["verdict"] == kept["verdict"] == "untested" and told["jobs"] == 2 and len(told["over_time"]) == 200
    assert told["about"]["scheduler"] == "slurm"
    assert (out / "partition.csv").read_text().splitlines()[0].startswith("partition,jobs,mean_recorded_s")


def test_one_that_was_interrupted_takes_its_replay(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, site, page = tmp_path / "jobs.txt", tmp_path / "site.toml", import_module("escala.report.calibration")
    path.write_text(SACCT)
    assert escala_("site", "import", path, "--out", site).status == 0
    asked, begun = ["calibrate", path, "--platform", site, "--scheduler", "easy", "--json", "--out"], list[str]()
    written = page.write_page
    whole = escala_(*asked, tmp_path / "whole")

    def counted(*given: Any, **options: Any) -> Any:
        begun.append("replay")
        return simulate(*given, **options)

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("escala.calibration.calibrate"), "simulate", counted)
    monkeypatch.setattr(page, "write_page", stopped)
    ended = escala_(*asked, tmp_path / "out")
    assert ended.status == 130 and "the same command goes on" in ended.err and not (tmp_path / "out").exists()
    monkeypatch.setattr(page, "write_page", written)
    resumed = escala_(*asked, tmp_path / "out")
    assert resumed.status == 0 and begun == ["replay"] and "pieces kept from an interrupted run: 1" in resumed.err
    assert resumed.out == whole.out
    for one in (tmp_path / "whole").glob("*.[cjh]*"):
        if one.name != "manifest.json":
            assert (tmp_path / "out" / one.name).read_bytes() == one.read_bytes()


def test_a_log_without_waits_is_one_line(escala_: Escala, log: Path, tmp_path: Path) -> None:
    done = escala_("calibrate", log, "--platform", "4x1", "--out", tmp_path / "out")
    assert done.status == 2 and "records no waits" in done.err and not (tmp_path / "out").exists()


def test_partitions_that_the_platform_does_not_have_are_asked_for(escala_: Escala, tmp_path: Path) -> None:
    jobs = "".join(f"{k} 0 60 60 2 -1 -1 2 600 -1 1 1 1 -1 1 {k} -1 -1\n" for k in (1, 2))
    (tmp_path / "jobs.swf").write_text(jobs)
    done = escala_("calibrate", tmp_path / "jobs.swf", "--platform", "100x64")
    assert (
        done.status == 2
        and "has no partition" in done.err
        and "in a site.toml (escala site import)" in done.err.splitlines()[-1]
    )
