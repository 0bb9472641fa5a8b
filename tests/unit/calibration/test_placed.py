"""Where jobs ran: hosts that ran the same jobs are taken together, so that a short list of many hosts stays short."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import escala
from escala.calibration import infer, inferred, placed
from escala.calibration.placed import placements
from escala.errors import EscalaError

NAMES = [f"{letter}{number}" for letter in "ab" for number in range(1, 13)]


def log_of(jobs: list[dict[str, object]]) -> escala.Workload:
    """Jobs that ran on `hosts` from `submit_s` on."""
    kept = escala.Workload.from_jobs(
        pl.DataFrame(jobs).drop("hosts", "wait_s", "gpus_per_node", "gpu_kind", "partition")
    )
    more = pl.DataFrame(jobs).select(
        "hosts", "partition", "gpu_kind", "gpus_per_node", pl.col("wait_s").cast(pl.Float64)
    )
    return kept.with_jobs(kept.jobs.drop("wait_s", strict=False).hstack(more))


def drawn(rng: random.Random, jobs: int) -> escala.Workload:
    rows = []
    for k in range(jobs):
        hosts = rng.sample(NAMES, rng.randint(1, 12))
        hosts += rng.sample(hosts, rng.choice([0, 0, 1]))
        gpus = rng.choice([None, None, 2])
        rows.append({
            "job_id": str(k), "submit_s": float(k), "wait_s": 0.0, "runtime_s": float(rng.randint(1, 9)),
            "cores": rng.randint(1, 40), "hosts": ",".join(hosts), "partition": rng.choice("pq"),
            "gpu_kind": gpus and rng.choice(["x", "y"]), "gpus_per_node": gpus,
        })  # fmt: skip
    return log_of(rows)


def by_hand(log: escala.Workload) -> dict[str, tuple[int, int, str, set[str]]]:
    """Of each host: cores, GPUs, their kind and partitions, counted second by second."""
    busy, gpus = Counter[tuple[str, float]](), Counter[tuple[str, float]]()
    kinds, parts = dict[str, Counter[str]](), dict[str, set[str]]()
    for job in log.jobs.iter_rows(named=True):
        named = Counter(job["hosts"].split(","))
        for host, times in named.items():
            kinds.setdefault(host, Counter()).update([job["gpu_kind"]] if job["gpu_kind"] else [])
            parts.setdefault(host, set()).add(job["partition"])
            for second in range(int(job["submit_s"]), int(job["submit_s"] + job["runtime_s"])):
                busy[host, second] += -(-job["cores"] * times // named.total())
                gpus[host, second] += job["gpus_per_node"] or 0
    most = {host: [max(n for (one, _), n in used.items() if one == host) for used in (busy, gpus)] for host in kinds}
    kind = {host: min(some, key=lambda one: (-some[one], one), default="") for host, some in kinds.items()}
    return {host: (*most[host], kind[host], parts[host]) for host in kinds}


@pytest.mark.parametrize("rows", [placed.ROWS, 7])
def test_nodes_are_those_that_a_count_of_each_host_gives(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed, "ROWS", rows)
    for seed in range(20):
        log = drawn(random.Random(seed), 1 + seed * 2)
        site = inferred(log).site
        gpus = {kind: site.resources[f"gpu:{kind}"] for kind in site.gpu_kinds}
        found = {
            name: (
                int(site.cores[k]),
                sum(int(some[k]) for some in gpus.values()),
                next((kind for kind, some in gpus.items() if some[k]), ""),
                {one.name for one in site.partitions if k in one.nodes},
            )
            for k, name in enumerate(site.names)
        }
        assert found == by_hand(log)


def test_hosts_that_ran_the_same_jobs_are_one_row_a_job() -> None:
    job = {"submit_s": 0.0, "wait_s": 0.0, "runtime_s": 5.0, "cores": 9, "partition": "p", "gpu_kind": None}
    lists = ["n[1-1000]", "n[501-1000],n[1-500]", "n[1-600]", "n[1000-1010]", "m1,m1,m2"]
    log = log_of([{**job, "job_id": str(k), "hosts": text, "gpus_per_node": None} for k, text in enumerate(lists)])
    ran = placements(log)
    assert ran is not None and ran.names[:4] == ["m1", "m2", "n1", "n2"]
    assert ran.edges.tolist() == [0, 1, 2, 602, 1001, 1002, 1012], "m1 | m2 | n1-600 | n601-999 | n1000 | n1001-1010"
    assert ran.counts().tolist() == [1, 1, 3, 2, 3, 1] and sum(len(rows) for rows in ran.rows()) == 11


def test_partitions_of_too_many_nodes_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    log = drawn(random.Random(1), 30)
    monkeypatch.setattr(infer, "MOST_LISTED", 20)
    with pytest.raises(EscalaError, match="the partitions have more than 20 nodes together: leave some out"):
        inferred(log)


HEAD = "JobID|Partition|Submit|Start|End|State|AllocCPUS|NNodes|NodeList\n"
MEASURED = """
import sys, escala
from escala.calibration import inferred
log = escala.read_workload(sys.argv[1], shapes=True)
inferred(log.with_jobs(log.jobs.head(1)))
try:
    inferred(log)
except escala.EscalaError as error:
    print(error)
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024)  # getrusage knows the parent's, too
"""


def test_few_rows_of_very_many_hosts_take_little_memory(tmp_path: Path) -> None:
    """30 rows of 4 kB in all took 5 GB."""
    row = "{}|p|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T00:05:00|COMPLETED|999999|999999|{}\n"
    lists = ["n1", *["n[1-999999]"] * 29]
    (tmp_path / "jobs.txt").write_text(HEAD + "".join(row.format(k, text) for k, text in enumerate(lists, 1)))
    outcome = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path / "jobs.txt"], capture_output=True, text=True, timeout=300
    )
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    assert int(outcome.stdout) < 1024, "MB"


def test_more_hosts_than_a_site_may_have_end_before_all_are_made(tmp_path: Path) -> None:
    row = "{}|p|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T00:05:00|COMPLETED|1|1|{}\n"
    lists = ["na1", *(f"n{letter}[1-600000]" for letter in "abcdefgh")]
    (tmp_path / "jobs.txt").write_text(HEAD + "".join(row.format(k, text) for k, text in enumerate(lists, 1)))
    outcome = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path / "jobs.txt"], capture_output=True, text=True, timeout=300
    )
    said, most = outcome.stdout.splitlines()
    assert "has 1200000 nodes; at most 1000000" in said and int(most) < 700
