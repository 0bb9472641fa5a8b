"""The verb campaign: what it prints and writes, and how the examples of its page work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from tests.cli.program import LOG, Escala

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "scale.md"
ASKED = """
logs = ["{log}"]
platforms = ["{machine}"]
schedulers = ["fcfs", "easy"]
shutdowns = ["never", "oracle"]
[options]
head = ["lowest-id", "latest-released"]
"""


def test_where_watts_are_missing_it_says_how_to_give_some(escala_: Escala, log: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    file.write_text(f'logs = ["{log}"]\nplatforms = ["4x1", "8x1", "4x1:grid5000"]\nschedulers = ["fcfs"]\n')
    told = escala_("campaign", file, "--out", out, "--on", "local:1")
    assert told.status == 0, told.err
    line = "Power: no profile for 4x1, 8x1, so no energy, money or CO2 is told there; name one in the campaign's file"
    assert line in told.out and line.replace("'", "&#39;") in (out / "index.html").read_text()
    assert "a preset, not measured on this machine" in told.out


def test_campaign_tells_the_best_and_writes_a_table_and_a_page(escala_: Escala, log: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    file.write_text(ASKED.format(log=log, machine="4x1:grid5000"))
    told = escala_("campaign", file, "--out", out, "--on", "local:1")
    assert told.status == 0, told.err
    assert (
        "6 runs" in told.out
        and "6 simulations made now, 0 before" in told.out
        and "a preset, not measured on this machine" in told.out
        and "no profile" not in told.out
    )
    assert sorted(path.name for path in out.iterdir()) == [
        "index.html",
        "runs.journal",
        "runs.parquet",
        "seconds.parquet",
    ]
    page = (out / "index.html").read_text()
    assert (
        "The best by log and metric" in page and "Campaign of 6 runs" in page and "clairvoyant: knows runtimes" in page
    )
    again = escala_("campaign", file, "--out", out, "--on", "local:1", "--json")
    found = json.loads(again.out)
    assert again.status == 0 and (found["done"], found["kept"], found["failed"]) == (0, 6, 0)
    assert found["runs"] == json.loads(json.dumps(pl.read_parquet(out / "runs.parquet").to_dicts()))
    by_hand = {row["metric"]: row for row in found["best"]}
    assert by_hand["mean_wait_s"]["value"] == min(row["mean_wait_s"] for row in found["runs"] if not row["knows"])
    assert by_hand["energy_j"]["policy"].startswith(("fcfs + never", "easy + never")), (
        "clairvoyant policies are never the best"
    )


def test_failed_runs_are_named_and_give_status_1(escala_: Escala, log: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    asked = ASKED.format(log=log, machine="4x1:grid5000").replace("never", "off-reservation:3")
    file.write_text(asked.replace("oracle", "off-reservation:4"))
    told = escala_("campaign", file, "--out", out, "--on", "local:1")
    assert told.status == 1 and "6 of them failed" in told.out and told.out.count("failed: small, 4x1:grid5000, ") == 5
    assert "and 1 more, in the column error" in told.out and "Failed runs: 6" in (out / "index.html").read_text()


def test_one_is_not_several(escala_: Escala, tmp_path: Path) -> None:
    (tmp_path / "one.swf").write_text(LOG.splitlines(keepends=True)[2])
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    file.write_text(f'logs = ["{tmp_path}/one.swf"]\nplatforms = ["4x1"]\nschedulers = ["fcfs"]\n')
    told = escala_("campaign", file, "--out", out, "--on", "local:1")
    assert "1 run (logs: 1" in told.out and "1 simulation made now, 0 before" in told.out
    assert "Campaign of 1 run<" in (out / "index.html").read_text()
    told = escala_("compare", tmp_path / "one.swf", "--platform", "4x1", "--schedulers", "fcfs")
    assert "one on 4x1: 1 job\n" in told.out
    told = escala_("frontier", tmp_path / "one.swf", "--platform", "4x1:grid5000", "--schedulers", "fcfs")
    assert "one on 4x1:grid5000: 1 job, " in told.out


def test_what_was_left_out_of_a_log_is_said(escala_: Escala, tmp_path: Path) -> None:
    """As in simulate; also where nothing is left to be run. A generator's jobs ask for the time that they run."""
    rows = [
        f"{k + 1} {k} -1 {-1 if k == 2 else 9} 1 -1 -1 1 {-1 if k == 5 else 20} -1 1 1 1 1 1 -1 -1 -1" for k in range(9)
    ]
    (tmp_path / "dirty.swf").write_text("\n".join(["; MaxProcs: 4", *rows]) + "\n")
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    drawn = '{ generator = "lublin", jobs = 20, cores = 16 }'
    file.write_text(f'logs = ["{tmp_path}/dirty.swf", {drawn}]\nplatforms = ["16x1"]\nschedulers = ["fcfs"]\n')
    for _ in range(2):
        told = escala_("campaign", file, "--out", out, "--on", "local:1")
        assert told.status == 0 and "dirty: negative runtime: 1 record left out (first: job '3', line 4)" in told.out
        assert "dirty: no request: 1 record without limit; policies see the actual runtime as walltime" in told.out
        assert "lublin: no request: 20 records without limit; policies see the actual runtime" in told.out
        assert "negative runtime: 1 record left out" in (out / "index.html").read_text()
    assert len(json.loads(escala_("campaign", file, "--out", out, "--json").out)["remarks"]) == 3


def test_a_wrong_file_is_one_line(escala_: Escala, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    for text, said in (
        ("logs = [", "not valid TOML"),
        (ASKED.format(log=log, machine="4x1"), "needs a power profile"),
        (ASKED.format(log=log, machine="4x1:grid5000").replace("schedulers", "sched"), "did you mean schedulers?"),
    ):
        file.write_text(text)
        told = escala_("campaign", file, "--out", tmp_path / "out")
        assert (
            told.status == 2 and said in told.err and str(file) in told.err and len(told.err.strip().splitlines()) == 1
        ), told.err
    assert escala_("campaign", tmp_path / "none.toml", "--out", tmp_path / "out").status == 2
    assert not (tmp_path / "out").exists()


def test_a_job_that_fits_no_platform_is_one_line(escala_: Escala, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(ASKED.format(log=log, machine="2x1:grid5000"))
    told = escala_("campaign", file, "--out", tmp_path / "out", "--on", "local:1")
    assert told.status == 2 and len(told.err.strip().splitlines()) == 1 and not (tmp_path / "out").exists()
    assert "log 'small' on platform '2x1:grid5000': job '2'" in told.err and 'oversized = "drop"' in told.err


def test_the_page_that_explains_it_works_as_it_is_written(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        escala_("workload", "generate", "lublin", "jobs=300", "cores=32", "load=0.7", "--out", "month.swf").status == 0
    )
    text = PAGE.read_text(encoding="utf-8").partition("\n## Sharing a policy")[0]
    (asked,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    Path("campaign.toml").write_text(asked)
    for line in re.findall(r"^escala (.*)$", text, re.MULTILINE):
        if "--on slurm" in line:  # tests/unit/campaigns/test_on_slurm.py
            continue
        told = escala_(*line.replace("local:2", "local:1").split())
        assert told.status == 0, told.err
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(block.replace("local:2", "local:1"), {"__name__": "__main__"})
    runs = pl.read_parquet("campaign/runs.parquet")
    assert (
        runs.filter(log="month", scheduler="easy")["seed"].to_list() == [None, None]
        and runs.filter(scheduler="fcfs")["head"].null_count() == 1 + 3
        and runs.height == (1 + 2 + 2 + 3) + (1 + 2 + 2 + 1) * 3
    )
