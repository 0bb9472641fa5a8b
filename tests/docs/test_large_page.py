"""The commands and the Python of docs/how-to/large.md are run as they are written, on small files of their names."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

import escala
from escala.cli.app import run
from tests.unit.workload.google_events import EVENTS, as_json, of_2011
from tests.unit.workload.test_alibaba import HEADER as PODS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "large.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    kind: str
    text: str


BLOCKS = [Block(*found) for found in FENCE.findall(PAGE.read_text(encoding="utf-8"))]
JOBS = [(10 * k, 35 + k % 9, 1 + k % 4) for k in range(60)]  # submission and runtime (s), cores


def _logs(folder: Path) -> None:
    """A small file of each name that the page reads."""
    submit, runtime, cores = (list(column) for column in zip(*JOBS))
    table = pl.DataFrame({"submit_s": [float(at) for at in submit], "runtime_s": map(float, runtime), "cores": cores})
    table.write_parquet(folder / "log.parquet")
    lines = (f"{k} {at} 0 {ran} {n} -1 -1 {n} 90 -1 1 1 1 1 1 1 -1 -1\n" for k, (at, ran, n) in enumerate(JOBS, 1))
    with gzip.open(folder / "log.swf.gz", "wt") as swf:
        swf.write("; MaxProcs: 512\n" + "".join(lines))
    jobs = [{"id": k, "subtime": at, "res": n, "walltime": 90, "profile": "p"} for k, (at, _, n) in enumerate(JOBS)]
    document = {"nb_res": 8, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 60}}}
    (folder / "log.json").write_text(json.dumps(document))
    pods = (f"p{k},{100 + 650 * k},1024,1,500,,LS,Succeeded,{k},{k + 60},{k}\n" for k in range(20))
    (folder / "pods.csv").write_text(PODS + "".join(pods))


def _events(folder: Path) -> None:
    """Google's events in two parts of each form, packed, and those of collections."""
    of_tasks = as_json(EVENTS).splitlines(keepends=True)
    for name, lines in (
        ("part-0000{}-of-00500.csv.gz", of_2011(EVENTS).splitlines(keepends=True)),
        ("instance_events-00000000000{}.json.gz", of_tasks),
    ):
        for k, part in enumerate((lines[:9], lines[9:])):
            (folder / name.format(k)).write_bytes(gzip.compress("".join(part).encode()))
    of_all = {"time": "600000000", "type": "SUBMIT", "collection_id": "3", "user": "ann", "collection_name": "web"}
    (folder / "collection_events-0.json.gz").write_bytes(gzip.compress(f"{json.dumps(of_all)}\n".encode()))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files that the page has before its first command; platforms bear the name that they say."""
    monkeypatch.chdir(tmp_path)
    _logs(tmp_path)
    _events(tmp_path)
    for block in BLOCKS:
        if block.kind == "yaml":
            (tmp_path / f"{re.findall(r'^name: (.+)$', block.text, re.MULTILINE)[0]}.yaml").write_text(block.text)
    return tmp_path


def test_the_page_works_as_it_is_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Block by block, in their order."""
    told: dict[str, str] = {}
    for block in BLOCKS:
        if block.kind == "python":
            exec(block.text, {})
            told[block.kind] = capsys.readouterr().out
            continue
        for line in block.text.splitlines() if block.kind == "" else ():
            if line.startswith("cat "):
                subprocess.run(line, shell=True, check=True)
                continue
            assert line.startswith("escala ")
            status, said = run(shlex.split(line)[1:]), capsys.readouterr()
            assert status == 0, f"{line}: {said.err}"
            told[line] = said.out
    assert len(told) == 6, "each of the page's commands, and its Python"
    streamed, *others, python = told.values()
    assert f"{len(JOBS)} jobs in memory at most" in streamed
    assert pl.read_parquet("run/jobs.parquet").height == len(JOBS), "the Python writes over the first command's"
    assert python.splitlines()[1] == "True" and float(python.splitlines()[0]) == 0.0
    assert pl.read_parquet("converted.parquet")["cores"].sum() == sum(n for *_, n in JOBS), "converted from log.json"
    assert "gpus: easy + never" in others[1] and "cell: easy + never" in others[3]
    assert dict(pl.read_parquet("tasks.parquet").select("job_id", "cores").rows())["3-0"] == 13, "thousandths"


def test_events_of_collections_tell_who_ran_it(here: Path) -> None:
    (line,) = (one for block in BLOCKS for one in block.text.splitlines() if "collection_events-*" in one)
    assert line.startswith("cat ")
    subprocess.run(line, shell=True, check=True)
    assert run(["workload", "convert", line.split()[-1], "--out", "named.parquet"]) == 0
    named = pl.read_parquet("named.parquet").filter(pl.col("job_id").str.starts_with("3-"))
    assert named.height == 3 and set(named["user"]) == {"ann"} and set(named["job_name"]) == {"web"}


def test_the_platforms_of_the_page_have_what_their_traces_ask_for(here: Path) -> None:
    pods, cell = (escala.read_platform(here / f"{name}.yaml") for name in ("gpus", "cell"))
    assert set(pods.resources) == {"memory", "gpu"} and set(cell.resources) == {"memory"}
    assert pods.cores.max() == 96_000 and cell.cores.max() == 1000, "cores in thousandths"
