"""What accounting says of nodes is counted among what no replay looks at, unless it is read for a site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from escala.workload import read_workload
from escala.workload.ignored import told

SACCT = """JobID|Submit|Start|End|State|AllocCPUS|NNodes|Timelimit|User
1|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T00:10:10|COMPLETED|32|2|00:20:00|ann
2|2024-01-01T00:01:00|2024-01-01T00:01:10|2024-01-01T00:20:10|COMPLETED|16|1|00:30:00|bob
3|2024-01-01T00:02:00|Unknown|Unknown|PENDING|0|4|00:30:00|bob
"""
PBS = (
    "01/01/2024 00:10:10;E;7.s;user=ann queue=q ctime=1704067200 qtime=1704067200 etime=1704067200 start=1704067210 "
    "end=1704067810 Resource_List.nodes=2:ppn=8 Resource_List.nodect=2 Resource_List.walltime=00:20:00 "
    "unique_node_count=2 Exit_status=0\n"
)


def _json() -> str:
    job = {
        "job_id": 1,
        "time": {"submission": 1704067200, "start": 1704067210, "end": 1704067810, "elapsed": 600},
        "state": {"current": ["COMPLETED"]},
        "allocation_nodes": 2,
        "required": {"CPUs": 32},
        "tres": {"allocated": [{"type": "cpu", "count": 32}, {"type": "node", "count": 2}]},
        "user": "ann",
    }
    return json.dumps({"jobs": [job]})


@pytest.mark.parametrize(("name", "text", "jobs"), [("a.txt", SACCT, 2), ("a.json", _json(), 1), ("a.pbs", PBS, 1)])
def test_nodes_of_accounting_are_counted(tmp_path: Path, name: str, text: str, jobs: int) -> None:
    path = tmp_path / name
    path.write_text(text)
    plain, shaped = read_workload(path), read_workload(path, shapes=True)
    assert plain.ignored["nodes"] == {"jobs": jobs}
    assert "nodes" not in plain.jobs.columns
    assert "nodes" not in shaped.ignored and shaped.jobs["nodes"].max() == 2


def test_the_sentence_says_where_they_count() -> None:
    said = told({"nodes": {"jobs": 2}, "licences": {"jobs": 1}})
    assert said == (
        "the log has what no replay looks at: licences (1 job); and what counts on a site alone (--platform site.toml; "
        "on any other, and in a stream, jobs take cores of any nodes): nodes (2 jobs)"
    )
