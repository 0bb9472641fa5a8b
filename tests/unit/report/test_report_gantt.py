"""What is packed for the chart is what the Result holds, and what is left out is said."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import polars as pl
import pytest
from synthetic import run

from escala.report import gantt


def unpack(chart: dict[str, Any]) -> dict[str, Any]:
    """As gantt.js does it."""
    data, at, out = zlib.decompress(base64.b64decode(chart["data"])), 0, {}
    for name, kind, length in chart["columns"]:
        size = length * int(kind[1])
        out[name] = np.frombuffer(data[at : at + size], "<" + kind).astype(np.int64)
        at += size
    out["ids"] = data[at:].decode().split("\n") if len(out["start"]) else []
    out["start_s"] = chart["origin"] + np.cumsum(out["start"]) * chart["tick"]
    out["finish_s"] = out["start_s"] + out["duration"] * chart["tick"]
    out["state_from_s"] = chart["origin"] + np.cumsum(out["state_from"]) * chart["tick"]
    out["state_to_s"] = out["state_from_s"] + out["state_duration"] * chart["tick"]
    out["job"] = np.repeat(np.arange(len(out["start"])), out["segments"])
    return out


def listed(text: str) -> set[int]:
    return {n for piece in text.split(" ") for n in range(int(piece.split("-")[0]), int(piece.split("-")[-1]) + 1)}


@pytest.mark.parametrize(
    "shape", [{"nodes": 16, "per_node": 1}, {"nodes": 6, "per_node": 8}], ids=["whole nodes", "shared nodes"]
)
def test_every_job_is_there(shape: dict[str, int]) -> None:
    one = run(500, **shape, gap=100.0)
    chart = gantt.pack("p", one.jobs, one.nodes, n_nodes=one.n_nodes)
    got = unpack(chart)
    assert chart["notes"] == []
    assert sorted(got["ids"]) == sorted(one.jobs["job_id"])
    rows = {r["job_id"]: r for r in one.jobs.iter_rows(named=True)}
    nodes: dict[int, set[int]] = {}
    for j, low, more in zip(got["job"], got["low"], got["more"]):
        nodes.setdefault(int(j), set()).update(range(low, low + more + 1))
    for j, name in enumerate(got["ids"]):
        row = rows[name]
        assert got["start_s"][j] == pytest.approx(row["start_s"], abs=chart["tick"])
        assert got["finish_s"][j] == pytest.approx(row["finish_s"], abs=2 * chart["tick"])
        assert got["wait"][j] * chart["tick"] == pytest.approx(row["wait_s"], abs=2 * chart["tick"])
        assert got["cores"][j] == row["cores"] and chart["users"][got["user"][j]] == row["user"]
        assert ("COMPLETED", "KILLED", "RUNNING")[got["outcome"][j]] == row["state"]
        assert nodes[j] == listed(row["nodes"])


def test_jobs_that_share_a_node_do_not_overlap() -> None:
    """At any moment the lanes of a node are parts of its row that no two jobs share."""
    one = run(400, nodes=4, per_node=8, gap=60.0)
    got = unpack(gantt.pack("p", one.jobs, one.nodes, n_nodes=4))
    assert (got["lanes"] > 1).any()
    assert (got["lane"] < got["lanes"]).all()
    for node in range(4):
        here = [k for k in range(len(got["low"])) if got["low"][k] <= node <= got["low"][k] + got["more"][k]]
        boxes = [
            (
                got["start_s"][got["job"][k]],
                got["finish_s"][got["job"][k]],
                got["lane"][k] / got["lanes"][k],
                (got["lane"][k] + 1) / got["lanes"][k],
            )
            for k in here
        ]
        for i, a in enumerate(boxes):
            for b in boxes[i + 1 :]:
                in_time = min(a[1], b[1]) - max(a[0], b[0]) > 2e-3
                in_row = min(a[3], b[3]) - max(a[2], b[2]) > 1e-9
                assert not (in_time and in_row)


def test_node_states_keep_their_node_seconds() -> None:
    one = run(300, timeout=200.0, gap=600.0)
    chart = gantt.pack("p", one.jobs, one.nodes, n_nodes=16)
    got = unpack(chart)
    area = (got["state_to_s"] - got["state_from_s"]) * (got["state_more"] + 1)
    for code, state in enumerate(chart["states"]):
        expected = one.power.filter(pl.col("state") == state)["seconds"].sum()
        assert area[got["state"] == code].sum() == pytest.approx(expected, rel=1e-6)
    # neighbours that change together are one
    assert len(got["state"]) < one.nodes.filter(pl.col("state") != "computing").height


def test_too_many_jobs_are_left_out_by_size_and_counted() -> None:
    one = run(1000)
    chart = gantt.pack("p", one.jobs, one.nodes, n_nodes=16, limit=100)
    got = unpack(chart)
    size = one.jobs.with_columns(core_s=(pl.col("finish_s") - pl.col("start_s")) * pl.col("cores")).sort(
        "core_s", descending=True
    )
    assert set(got["ids"]) == set(size["job_id"][:100])
    share = size["core_s"][:100].sum() / size["core_s"].sum()
    assert chart["notes"][0].startswith(
        f"The 100 largest of 1,000 jobs are drawn ({100 * share:.1f} % of the core seconds)"
    )


def test_jobs_of_a_cut_run() -> None:
    one = run(3)
    cut = one.jobs.with_columns(
        state=pl.Series(["COMPLETED", "RUNNING", "QUEUED"]),
        finish_s=pl.Series([one.jobs["finish_s"][0], None, None]),
        start_s=pl.Series([*one.jobs["start_s"][:2], None], dtype=pl.Float64),
    )
    chart = gantt.pack("p", cut, one.nodes, n_nodes=16)
    got = unpack(chart)
    assert sorted(got["ids"]) == ["job-0", "job-1"]
    running = got["ids"].index("job-1")
    assert (
        got["finish_s"][running] == pytest.approx(chart["end"], abs=2 * chart["tick"]) and got["outcome"][running] == 2
    )


def test_jobs_without_nodes_are_counted() -> None:
    one = run(3)
    chart = gantt.pack("p", one.jobs.with_columns(nodes=pl.lit(None, pl.String)), one.nodes, n_nodes=16)
    assert chart["notes"] == ["3 jobs without a list of nodes are not drawn."] and unpack(chart)["ids"] == []


def test_nothing_to_draw() -> None:
    one = run(0)
    got = unpack(gantt.pack("p", one.jobs, one.nodes, n_nodes=16))
    assert got["ids"] == [] and len(got["state"]) == 0


def test_a_year_keeps_its_milliseconds_to_a_few() -> None:
    """Times are whole numbers of 32 bits; over a year a tick is about 8 ms."""
    jobs = run(2).jobs.with_columns(
        submit_s=pl.Series([0.0, 3.1e7]),
        start_s=pl.Series([0.0, 3.1e7 + 5.0]),
        finish_s=pl.Series([10.0, 3.1e7 + 65.0]),
    )
    chart = gantt.pack("p", jobs, run(2).nodes.clear(), n_nodes=16)
    assert chart["tick"] < 0.01
    assert unpack(chart)["finish_s"] == pytest.approx([10.0, 3.1e7 + 65.0], abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [{"nodes": 128}, pytest.param({"nodes": 48, "per_node": 20}, marks=pytest.mark.long)], ids=str
)
def test_a_hundred_thousand_jobs_stay_small(shape: dict[str, int]) -> None:
    one = run(100_000, **shape, gap=60.0)
    chart = gantt.pack("p", one.jobs, one.nodes, n_nodes=one.n_nodes)
    assert chart["notes"] == []
    assert len(json.dumps(chart)) < 7e6
