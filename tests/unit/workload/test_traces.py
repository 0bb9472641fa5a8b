"""Every file among the traces is read, or refused with one clear line; numbers of jobs as the manifests beside them
say."""

from __future__ import annotations

import csv
import gzip
import os
import re
from fnmatch import fnmatch
from pathlib import Path

import polars as pl
import pytest

from escala.errors import EscalaError
from escala.workload import Workload, read_pack, read_workload
from escala.workload.clean import dropped

TRACES = Path(os.environ.get("ESCALA_TRACES", Path(__file__).resolve().parents[4] / "shared" / "traces"))
FILES = sorted(str(path.relative_to(TRACES)) for path in TRACES.rglob("*") if path.is_file()) if TRACES.is_dir() else []
READ = (
    *(
        "swf/*.swf.gz",
        "swf-synthetic/*.swf.gz",
        "windows/*/*.swf.gz",
        "pbs/*.log.gz",
        "slurm/*.log",
        "slurm/*.log.gz",
        "slurm/*.csv*",
    ),
    *("slurm_sacct_sample*.txt", "gpu/*pod_list*", "oar/*/*.json*", "batsim/golden-medium_late/medium_late.json"),
    *(
        "batsim/golden-runs/*/workload.json.gz",
        "batsim/*/out_jobs.csv*",
        "batsim/golden-medium_late/*/out_jobs.csv",
        "batsim/evalys-tests/*.csv",
    ),
    *("batsim/workloads/*.json", "batsim/workloads/*.json.gz", "batsim/workloads/real/*.json.gz"),
    *("author/samples/*.json", "author/r1-bench/original/*.json.gz"),
)
REFUSED = (  # although the pattern above would have them
    *("*smpi*", "*usage_trace*", "*tuto_stencil*", "*w_dvfs*"),  # need traces or storage
    *("*test_ptasks.json", "*homo_ptasks.json", "*various*", "*batsched_mixed*"),  # jobs that only communicate
)
NEVER_READ = (  # pattern -> part of the message; the first that fits counts
    ("*.xml", "XML"),
    ("*.xml.gz", "XML"),
    ("*.events.gz", "events"),
    ("*.semicolon-swf", "semicolons"),
    ("*sched_input.json", "not a Batsim workload"),
    ("*/days.csv.gz", "columns pack, set, file"),
    ("author/r3-days/*-results.csv.gz", "columns makespan"),
    ("author/r1-bench/results/easy_bf_jobs.csv.gz", "select="),
    ("author/r1-bench/results/*", "columns"),
    ("author/taurus/aval.csv.gz", "unit="),
    ("author/taurus/test.csv.gz", "unit="),
    ("author/*.csv.gz", "read_pack"),
    ("batsim/workloads/*", "model"),
    ("swf/*.machines", "jobs"),
    ("*.csv", "columns"),
    ("*.csv.gz", "columns"),
    ("*", "no log of jobs"),
)


def expected(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in READ) and not any(fnmatch(name, pattern) for pattern in REFUSED)


@pytest.mark.parametrize("name", FILES)
def test_read_or_refused(name: str) -> None:
    path = TRACES / name
    if expected(name):
        workload = read_workload(path)
        assert len(workload) > 0 and path.name in workload.source
        return
    with pytest.raises(EscalaError) as caught:
        read_workload(path)
    message = str(caught.value)
    assert "\n" not in message and message.startswith(str(path))
    assert len(message) < len(str(path)) + 260
    assert next(part for pattern, part in NEVER_READ if fnmatch(name, pattern)) in message


def manifest_rows() -> list[dict[str, str]]:
    """The rows of the SWF table of the manifest."""
    if not (TRACES / "MANIFEST.md").is_file():
        return []
    lines = (TRACES / "MANIFEST.md").read_text().splitlines()
    header = next(line for line in lines if line.startswith("| file | kind"))
    names = [cell.strip() for cell in header.strip("|").split("|")]
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in lines
        if re.match(r"\| swf[\w-]*/\S+\.gz \|", line)
    ]
    return [dict(zip(names, row)) for row in rows if len(row) == len(names)]


@pytest.mark.parametrize("row", manifest_rows(), ids=lambda row: Path(row["file"]).name)
def test_swf_as_the_manifest_says(row: dict[str, str]) -> None:
    workload = read_workload(TRACES / row["file"])
    negative, zero, no_cores, over, _ = (
        int(part) for part in row["rt<0 / rt=0 / no procs / rt>req / unsorted"].split("/")
    )
    cleaning = workload.cleaning
    assert len(workload) + dropped(cleaning) == int(row["jobs"])
    assert cleaning.get("negative runtime", 0) == negative
    assert cleaning.get("no processors", 0) == no_cores
    assert zero - no_cores <= cleaning.get("zero runtime", 0) <= zero
    assert cleaning.get("over request", 0) == over
    # the log without a header has 2176 cores by its machine file
    assert (workload.max_cores or 2176) == int(row["MaxProcs"])
    if 50 * dropped(cleaning) > len(workload):
        return  # the numbers below are of all lines
    jobs = workload.jobs
    assert jobs["cores"].max() == int(row["largest job"])
    asked = len(workload) - cleaning.get("no request", 0)
    assert 100 * asked / len(workload) == pytest.approx(float(row["req%"]), abs=0.06)
    assert 100 * (jobs["cores"] == 1).mean() == pytest.approx(float(row["serial%"]), abs=0.1)  # type: ignore[operator]
    if dropped(cleaning) == 0:
        span = jobs.select((pl.col("submit_s") + pl.col("wait_s").fill_null(0) + pl.col("runtime_s")).max()).item()
        work = jobs.select((pl.col("cores") * pl.col("runtime_s")).sum()).item()
        assert work / (int(row["MaxProcs"]) * span) == pytest.approx(float(row["load"]), abs=6e-4)


def window_rows() -> list[dict[str, str]]:
    path = TRACES / "MANIFEST-windows.csv"
    return list(csv.DictReader(path.open())) if path.is_file() else []


def test_windows_as_their_manifest_says() -> None:
    rows = window_rows()
    if not rows:
        pytest.skip("no window manifest")
    for row in rows:
        workload = read_workload(TRACES / row["file"])
        assert (len(workload), dropped(workload.cleaning)) == (int(row["jobs"]), 0), row["file"]
        assert workload.jobs["cores"].max() == int(row["largest_job"])
        assert workload.jobs["runtime_s"].median() == pytest.approx(float(row["median_runtime_s"]))


COUNTS = {  # jobs in the file (records, for the PBS logs) as the manifests say
    "slurm/xdmod-phillips.sacct.log.gz": 4285,
    "slurm/xdmod-robertson-filter-test.sacct.log": 1,
    "slurm/ubccr-micro-jobs500.csv": 500,
    "slurm/NREL-Eagle-sample-1000.csv.gz": 1000,
    "slurm/SURF-Lisa-week-2022-10.csv.gz": 6295,
    "slurm_sacct_sample.txt": 37,
    "pbs/IU-Mason-torque-accounting-201710.log.gz": 5255,
    "pbs/IU-Mason-torque-accounting-201711.log.gz": 6880,
    "gpu/alibaba-gpu-v2023-openb_pod_list_default.csv.gz": 8152,
    "oar/g5k-graphene-seed1/workload.json": 800,
    "batsim/golden-medium_late/medium_late.json": 801,
    "batsim/golden-medium_late/easy/out_jobs.csv": 801,
    **{f"batsim/workloads/example_workload_hpc_seed{seed}_jobs250.json": 250 for seed in range(1, 6)},
}


@pytest.mark.parametrize("name", COUNTS)
def test_numbers_of_jobs(traces: Path, name: str) -> None:
    workload = read_workload(traces / name)
    assert len(workload) + dropped(workload.cleaning) == COUNTS[name]


def states(workload: Workload) -> dict[str, int]:
    return dict(workload.jobs["status"].drop_nulls().value_counts().sort("status").rows())


def test_sacct_listings(traces: Path) -> None:
    sample = read_workload(traces / "slurm_sacct_sample.txt")
    steps = read_workload(traces / "slurm_sacct_sample_steps.txt")
    # two of three cancelled jobs never started
    assert states(sample) == {"CANCELLED": 1, "COMPLETED": 28, "FAILED": 4, "TIMEOUT": 2}
    assert sample.cleaning == {"never started": 2, "zero runtime": 1, "over request": 1}
    assert steps.jobs.equals(sample.jobs)
    assert steps.cleaning.pop("job step rows") == 35
    assert steps.cleaning == sample.cleaning
    phillips = read_workload(traces / "slurm/xdmod-phillips.sacct.log.gz")
    assert phillips.cleaning["never started"] == 243 - 4  # all of them cancelled
    assert states(phillips) == {"CANCELLED": 4, "COMPLETED": 2324, "FAILED": 1717, "TIMEOUT": 1}
    assert (phillips.cleaning["zero runtime"], "no request" in phillips.cleaning) == (22, False)
    first = phillips.jobs.filter(job_id="163485").row(0, named=True)
    assert (first["cores"], first["runtime_s"], first["walltime_s"], first["wait_s"]) == (
        12,
        10 * 86400 + 48426,
        37 * 86400 + 50400,
        1.0,
    )
    dump = read_workload(traces / "slurm/ubccr-sacct_dump_slurm2101.log")
    assert dump.jobs["job_id"].to_list() == ["4822203", "4830973", "4830974", "4830975", "4830976", "4830977"]
    assert dump.jobs.filter(job_id="4830976").select("cores", "runtime_s", "walltime_s", "user").row(0) == (
        40,
        259222.0,
        259200.0,
        "user005",
    )
    broken = read_workload(traces / "slurm/ubccr-sacct_submitline_multiline.log")
    assert broken.jobs.select("job_id", "cores", "runtime_s").rows() == [("7957382", 2, 56.0), ("9067954", 576, 9600.0)]


def test_tables_by_other_people(traces: Path) -> None:
    eagle = read_workload(traces / "slurm/NREL-Eagle-sample-1000.csv.gz")
    assert states(eagle) == {"COMPLETED": 985, "TIMEOUT": 15}
    assert (eagle.jobs["cores"].max(), eagle.jobs["runtime_s"].median()) == (12960, 14010.0)
    lisa = read_workload(traces / "slurm/SURF-Lisa-week-2022-10.csv.gz")
    assert lisa.jobs["cores"].unique().to_list() == [16]
    assert lisa.span_s == pytest.approx(7 * 86400, rel=0.01)
    micro = read_workload(traces / "slurm/ubccr-micro-jobs500.csv")
    assert micro.jobs.filter(job_id="1002").select("submit_s", "runtime_s", "walltime_s", "cores").row(0) == (
        49.0,
        1201.0,
        1800.0,
        1,
    )
    pods = read_workload(traces / "gpu/alibaba-gpu-v2023-openb_pod_list_default.csv.gz")
    assert pods.cleaning["never started"] == 897
    assert pods.jobs["single_node"].all() and pods.jobs["demand_gpu"].max() == 8


def test_torque_logs(traces: Path) -> None:
    october, november = (
        read_workload(traces / f"pbs/IU-Mason-torque-accounting-2017{month}.log.gz") for month in (10, 11)
    )
    for workload, serial, median in ((october, 48.7, 107.0), (november, 27.1, 120.0)):
        assert 100 * (workload.jobs["cores"] == 1).mean() == pytest.approx(serial, abs=0.05)  # type: ignore[operator]
        assert workload.jobs["runtime_s"].median() == pytest.approx(median, abs=3)


def test_batsim_input_and_output_agree(traces: Path) -> None:
    folder = traces / "batsim/golden-medium_late"
    asked, ran = read_workload(folder / "medium_late.json"), read_workload(folder / "easy/out_jobs.csv")
    both = asked.jobs.join(ran.jobs, on="job_id", suffix="_out")
    assert both.height == 801
    for name in ("submit_s", "cores", "walltime_s"):
        assert both.select((pl.col(name) - pl.col(f"{name}_out")).abs().max()).item() < 1e-6
    late = both.select((pl.min_horizontal("runtime_s", "walltime_s") - pl.col("runtime_s_out")).abs().max()).item()
    assert late < 2e-6 and set(asked.jobs["load"]) == {0.0}
    assert ran.jobs["wait_s"].mean() == pytest.approx(9.516326, abs=1e-6)


def test_batsim_conversion_of_a_window(traces: Path) -> None:
    """The JSON form holds the same jobs: runtimes + 1 s at 1e6 flop/s."""
    swf = read_workload(traces / "windows/HPC2N-2002-2.2-cln/HPC2N-2002-2.2-cln_1.swf.gz").jobs
    batsim = read_workload(traces / "batsim/workloads/real/HPC2N-2002-2.2-cln_1.json.gz", speed=1e6).jobs
    assert batsim["runtime_s"].equals(swf["runtime_s"] + 1)
    assert batsim.select("job_id", "submit_s", "cores").equals(swf.select("job_id", "submit_s", "cores"))


PACKS = [
    name
    for name in FILES
    if name.startswith("author/") and name.endswith(".csv.gz") and "days.csv" not in name and "result" not in name
]


@pytest.mark.parametrize("name", PACKS)
def test_packs_hold_the_days_of_their_lists(traces: Path, name: str) -> None:
    path = traces / name
    days = read_pack(path, unit="step" if "r1-bench" in name else "min")
    pack = path.name.removesuffix(".csv.gz")
    with gzip.open(path.parent / "days.csv.gz", "rt") as lists:
        listed = [row for row in csv.DictReader(lists) if row["pack"] == pack]
    assert listed and {(row["set"], row["file"]): int(row["jobs"]) for row in listed} == {
        key: len(day) + dropped(day.cleaning) for key, day in days.items()
    }
    key, day = next(iter(days.items()))
    alone = read_workload(path, unit="step" if "r1-bench" in name else "min", select={"set": key[0], "file": key[1]})
    assert alone.jobs.equals(day.jobs) and alone.cleaning == day.cleaning


def test_pack_and_original_agree(traces: Path) -> None:
    """A benchmark file as published and its rows in the pack: the same jobs, 1e6 flop a step."""
    days = read_pack(traces / "author/r1-bench/workloads.csv.gz", unit="step")
    for load in (10, 40, 70, 100, 130, 160, 190):
        original = read_workload(traces / f"author/r1-bench/original/{load}.json.gz", speed=1e6).jobs
        assert original.drop("user").equals(days[str(load), str(load)].jobs.drop("user"))
    sample = read_workload(traces / "author/samples/1_train_1002.json", speed=1e6).jobs
    day = read_pack(traces / "author/r3-days/lyon_1-train.csv.gz", unit="s")["lyon_1/train", "1_train_1002"].jobs
    assert sample.drop("user").equals(day.drop("user"))


def test_one_run_of_several_in_a_file(traces: Path) -> None:
    path = traces / "author/r1-bench/results/easy_bf_jobs.csv.gz"
    assert [len(read_workload(path, select={"load": load})) for load in (10, 40, 190)] == [10, 27, 110]
