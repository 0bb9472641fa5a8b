"""A streamed replay is repeated as its manifest says, byte by byte, or refused in one line that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.streaming import rerun, stream
from escala.streaming.digest import JobsDigest
from escala.workload import CleaningRules, generate, write_swf

FILES = ("jobs.parquet", "totals.parquet", "summary.json", "manifest.json")


def _log(folder: Path, seed: int = 1) -> Path:
    write_swf(generate.lublin(jobs=400, cores=32, load=0.9, seed=seed), folder / "log.swf")
    return folder / "log.swf"


@pytest.mark.parametrize(
    ("how", "options"),
    [
        (("32x1",), {}),
        (("8x4:grid5000", "easy:queue=saf:guard=3000", "timeout:300"), {"start_off": True, "head": "latest-released"}),
        (("16x1", "fcfs"), {"oversized": "drop", "rules": CleaningRules(no_request=3600.0), "since": 20000.0}),
    ],
)
def test_a_run_is_repeated_byte_by_byte(
    how: tuple[str, ...], options: dict[str, Any], tmp_path: Path, monkeypatch: Any
) -> None:
    log = _log(tmp_path)
    first = stream(log, *how, jobs=60, out=tmp_path / "run", **options)
    again = rerun(tmp_path / "run", log, out=tmp_path / "again")
    assert again.pieces == first.pieces >= 3 and again.summary == first.summary
    assert [
        name for name in FILES if (tmp_path / "run" / name).read_bytes() != (tmp_path / "again" / name).read_bytes()
    ] == []
    assert rerun(first).summary == first.summary
    monkeypatch.chdir(tmp_path)
    assert rerun("again").manifest == first.manifest


def test_what_cannot_be_repeated_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    log = _log(tmp_path)
    stream(log, "32x1", jobs=60, out=tmp_path / "run")
    saved = escala.Result.load(tmp_path / "run")
    for run in (saved, tmp_path / "run"):
        with pytest.raises(EscalaError, match=r"was streamed: repeat it with escala\.streaming\.rerun\("):
            escala.rerun(run, log)
    with pytest.raises(EscalaError, match="a streamed run keeps no table 'nodes': simulate the log"):
        saved.nodes  # noqa: B018
    escala.simulate(log, "32x1").save(tmp_path / "whole")
    with pytest.raises(EscalaError, match=r"not streamed: repeat it with escala\.rerun"):
        rerun(tmp_path / "whole", log)
    monkeypatch.chdir("/")
    with pytest.raises(EscalaError, match=r"the log 'log\.swf' of that run is not here: give it to rerun"):
        rerun(tmp_path / "run")
    whole = escala.read_workload(log)
    write_swf(whole.with_jobs(whole.jobs, origin_s=whole.origin_s + 43_200), log)  # noon in place of midnight
    assert escala.read_workload(log).jobs.equals(whole.jobs)
    for seed in (None, 2):
        if seed is not None:
            _log(tmp_path, seed)
        with pytest.raises(EscalaError, match=r"log\.swf: does not hold the jobs of that run \(manifest: sha256\)"):
            rerun(tmp_path / "run", log, out=tmp_path / "again")
        assert not (tmp_path / "again").exists()


def test_a_policy_in_a_folder_has_to_be_as_it_was(tmp_path: Path) -> None:
    log, policy = _log(tmp_path), tmp_path / "night"
    policy.mkdir()
    (policy / "policy.toml").write_text('format = 1\nformula = "easy:queue=saf"\nguard = "1h"\n')
    stream(log, "32x1", f"policy:{policy}", jobs=60, out=tmp_path / "run")
    assert rerun(tmp_path / "run", log).pieces >= 3
    (policy / "policy.toml").write_text('format = 1\nformula = "easy:queue=saf"\nguard = "2h"\n')
    with pytest.raises(EscalaError, match=r"policy\.toml is not what it was in that run"):
        rerun(tmp_path / "run", log)


@pytest.mark.parametrize(
    "damage", [{"streamed": 5}, {"workload": []}, {"options": None}, {"platform": {}}, {"scheduler": 7}]
)
def test_a_damaged_manifest_is_one_line(damage: dict[str, Any], tmp_path: Path) -> None:
    log = _log(tmp_path)
    stream(log, "32x1", jobs=60, out=tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(EscalaError) as told:
        rerun(tmp_path / "run", log)
    assert "\n" not in str(told.value)


def _digest(*pieces: pl.DataFrame) -> str:
    found = JobsDigest()
    for piece in pieces:
        found.add(piece)
    return found.hexdigest()


def test_the_hash_is_that_of_the_jobs_however_they_are_cut() -> None:
    columns = {"submit_s": [0.0, 1.0, 2.0, 3.0], "runtime_s": [5.0] * 4, "walltime_s": [9.0] * 4, "cores": [1] * 4}
    jobs = escala.Workload.from_jobs(columns).jobs
    odd = jobs.with_columns(
        limited=pl.Series([True, True, False, True]), demand_gpu=pl.Series([0, 0, 2, 1]), single_node=pl.lit(True)
    )
    for one in (jobs, odd):
        assert _digest(one) == _digest(one[:1], one[1:]) == _digest(one[:3], one[3:])
    assert _digest(odd[:2].drop("limited"), odd[2:]) == _digest(odd)
    changed = [pl.col(name) + 1 for name in ("submit_s", "runtime_s", "walltime_s", "cores", "demand_gpu")] + [
        pl.lit(0.5).alias("load")
    ]
    changed += [pl.lit(True).alias("limited"), pl.lit(False).alias("single_node")]
    assert len({_digest(odd), *(_digest(odd.with_columns(change)) for change in changed)}) == 9
