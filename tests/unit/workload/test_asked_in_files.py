"""Dependencies, priorities, nice values and features of nodes: from tables and from Slurm's accounting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import escala
from escala import EscalaError
from escala.workload import Workload, read_workload
from escala.workload.pieces import Pieces
from escala.workload.to_parquet import convert, write_parquet
from tests.unit.slurm.by_hand import QUICK
from tests.unit.workload.test_slurm import HEADER, read, row

COLUMNS: dict[str, list[Any]] = {
    "job_id": ["a", "b", "c", "d"],
    "submit_s": [0.0, 1.0, 2.0, 3.0],
    "runtime_s": [10.0, 10.0, 10.0, 10.0],
    "walltime_s": [60.0, 60.0, 60.0, 60.0],
    "cores": [1, 1, 1, 1],
    "dependency": [None, "afterok:a", None, "after:gone,singleton"],
    "priority": [None, None, 7, 9],
    "nice": [None, 5, None, None],
    "features": ["big&(x|y)", None, None, None],
}
CONF = "ClusterName=c\nSelectTypeParameters=CR_CPU\n{0}\n{1}\nPartitionName=p Nodes=ALL Default=YES\n"


def of_site(folder: Path, nodes: str = "NodeName=n[1-2] CPUs=1 Feature=big,x,y") -> escala.Platform:
    (folder / "slurm.conf").write_text(CONF.format(QUICK, nodes))
    return escala.read_site(folder / "slurm.conf")


def csv_of(folder: Path, columns: dict[str, list[Any]] = COLUMNS) -> Path:
    rows = [["" if value is None else str(value) for value in one] for one in zip(*columns.values(), strict=True)]
    path = folder / "jobs.csv"
    path.write_text("\n".join(",".join(f'"{value}"' for value in one) for one in [list(columns), *rows]) + "\n")
    return path


def test_a_table_says_them_as_from_jobs_does(tmp_path: Path) -> None:
    own = Workload.from_jobs(COLUMNS)
    found = read_workload(csv_of(tmp_path))
    assert found.jobs.equals(own.jobs) and found.ignored == {}
    write_parquet(found, tmp_path / "jobs.parquet")
    convert(tmp_path / "jobs.csv", tmp_path / "converted.parquet", jobs=2)
    for name in ("jobs.parquet", "converted.parquet"):
        again = read_workload(tmp_path / name)
        assert again.jobs.equals(own.jobs) and again.ignored == {}
    site = of_site(tmp_path)
    starts = escala.simulate(found, site, "slurm").jobs["start_s"]
    assert starts.equals(escala.simulate(own, site, "slurm").jobs["start_s"])
    assert starts[1] >= starts[0] + 10.0


def test_who_is_left_out_holds_nobody_up(tmp_path: Path) -> None:
    """Slurm drops a dependency on a job that it no longer knows."""
    part = read_workload(csv_of(tmp_path), since=0.5)
    assert part.jobs["dependency"].to_list() == ["afterok:a", None, "after:gone,singleton"]
    jobs = escala.simulate(part, of_site(tmp_path), "slurm").jobs
    assert jobs["state"].to_list() == ["COMPLETED"] * 3 and jobs["start_s"][0] < 3.0


def test_what_a_table_says_and_nobody_understands_is_one_line(tmp_path: Path) -> None:
    path = csv_of(tmp_path, COLUMNS | {"dependency": [None, "behind:a", None, None]})
    with pytest.raises(EscalaError, match=r"^job 'b': dependency 'behind:a' is none of after, afterok"):
        escala.simulate(read_workload(path), of_site(tmp_path), "slurm")
    path = csv_of(tmp_path, COLUMNS | {"priority": [None, None, "high", None]})
    with pytest.raises(EscalaError, match=r"line 4: column 'priority' .* is 'high': a number is needed$"):
        read_workload(path)


def test_columns_of_others_are_named_and_not_taken(tmp_path: Path) -> None:
    """What another program calls priority may be what it reckoned: `columns` says that it is meant."""
    path = tmp_path / "jobs.csv"
    path.write_text("at,ran,size,priority,depends\n0,5,1,100,\n1,5,1,90,0\n")
    columns = {"submit_s": "at", "runtime_s": "ran", "cores": "size"}
    found = read_workload(path, columns=columns)
    assert found.ignored == {"priorities": {"jobs": 2, "values": 2}} and "priority" not in found.jobs.columns
    meant = read_workload(path, columns={**columns, "priority": "priority"})
    assert meant.jobs["priority"].to_list() == [100, 90] and meant.ignored == {}


def test_a_stream_counts_what_slurms_rules_alone_look_at(tmp_path: Path) -> None:
    pieces = Pieces(csv_of(tmp_path), jobs=2)
    assert sum(len(one) for one in pieces) == 4
    assert pieces.ignored == {
        "dependencies or begin times": {"jobs": 2},
        "priorities": {"jobs": 2, "values": 2},
    }


SAID: dict[str, tuple[str, str | None]] = {
    "sbatch -d afterok:5 a.sh": ("dependency", "afterany:5"),
    "sbatch -dsingleton a.sh": ("dependency", "singleton"),
    "sbatch --dependency=afternotok:5:7_2,after:9+3 a.sh": ("dependency", "afterany:5:7_2,after:9+3"),
    "sbatch --dependency aftercorr:5 a.sh": ("dependency", "aftercorr:5"),
    "sbatch --dependency=afterok:5?afterok:6 a.sh": ("dependency", None),
    "sbatch a.sh -d data": ("dependency", None),
    "sbatch --nice=20 a.sh": ("nice", "20"),
    "sbatch --nice a.sh": ("nice", "100"),
    "sbatch --nicely a.sh": ("nice", None),
    "sbatch --constraint=a&(b|c) a.sh": ("features", "a&(b|c)"),
    "sbatch --constraint [a|b] a.sh": ("features", None),
}


@pytest.mark.parametrize("line", SAID)
def test_accounting_says_them_in_the_line_that_submitted(tmp_path: Path, line: str) -> None:
    name, expected = SAID[line]
    at = {"Eligible": "2024-03-01T10:00:00"}
    found = read(tmp_path, row("8", **at) + f"|{line}", header=HEADER + "|SubmitLine", shapes=True)
    value = found.jobs[name][0] if name in found.jobs.columns else None
    assert (None if value is None else str(value)) == expected
    document = {
        "jobs": [
            {
                "job_id": 8, "submit_line": line, "state": {"current": ["COMPLETED"]}, "required": {"CPUs": 1},
                "time": {"submission": 1, "eligible": 1, "start": 2, "end": 5, "elapsed": 3}, "user": "ann",
            }
        ]
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(document))
    same = read_workload(tmp_path / "a.json", format="slurm", shapes=True)
    assert same.jobs.get_column(name, default=None) is None if value is None else same.jobs[name][0] == value


def test_what_is_taken_from_accounting_is_no_longer_named(tmp_path: Path) -> None:
    header = HEADER + "|Constraints|Priority|Dependency"
    at = {"Eligible": "2024-03-01T10:00:00"}
    lines = [
        row("1", **at) + "|x&y|500|",
        row("2", **at) + "|knl*2|400|afterok:1(unfulfilled)",
        row("3", **at) + "|(null)|300|",
    ]
    plain, taken = (read(tmp_path, *lines, header=header, shapes=shapes) for shapes in (False, True))
    rest = {"priorities": {"jobs": 3, "values": 3}}
    assert plain.ignored == {
        "features of nodes": {"jobs": 2}, "dependencies or begin times": {"jobs": 1}, **rest
    }  # fmt: skip
    assert taken.ignored == {"features of nodes": {"jobs": 1}, **rest}, "what Slurm reckoned is no priority of the job"
    assert taken.jobs["features"].to_list() == ["x&y", None, None] and "priority" not in taken.jobs.columns
    assert taken.jobs["dependency"].to_list() == [None, "afterany:1", None]


def test_a_replay_waits_for_those_for_whom_the_log_waited(tmp_path: Path) -> None:
    """Job 1 failed, and yet job 2, which asked for it to succeed, ran: somebody had lifted that. It waits for the end.
    Features that no node of a site has do not count where none has any, and are refused where some node has others."""
    times = {"Start": "2024-03-01T10:00:01", "End": "2024-03-01T10:10:00", "Elapsed": "00:09:59"}
    at = {"Eligible": "2024-03-01T10:00:00", "AllocCPUS": "1", "ReqCPUS": "1", **times}
    lines = [
        row("1", State="FAILED", **at) + "||sbatch a.sh",
        row("2", **at) + "|x|sbatch -d afterok:1 a.sh",
    ]
    log = read(tmp_path, *lines, header=HEADER + "|Constraints|SubmitLine", shapes=True)
    site = of_site(tmp_path, "NodeName=n[1-2] CPUs=1")
    with pytest.warns(escala.EscalaWarning, match="by features does not count: the platform has no features of nodes"):
        found = escala.simulate(log, site, "slurm")
    assert found.unseen == {"features": "the platform has no features of nodes"}
    assert found.jobs["state"].to_list() == ["COMPLETED", "COMPLETED"]
    assert found.jobs["start_s"][1] >= found.jobs["finish_s"][0]
    with pytest.raises(EscalaError, match="needs feature 'x', which no node of site 'c' has"):
        escala.simulate(log, of_site(tmp_path, "NodeName=n[1-2] CPUs=1 Feature=y"), "slurm")
