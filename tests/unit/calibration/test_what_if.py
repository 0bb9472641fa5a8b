"""What-ifs: sites with nodes more and fewer, other limits, and waits over the jobs that run in all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import escala
from escala import EscalaError, Workload
from escala.calibration import what_if
from escala.calibration.changes import limit_changes, qos_changes
from escala.calibration.what_if import node_changes, resized
from escala.platform import Partition, Site
from escala.platform.power import NONE
from escala.report import what_if as page


def _site() -> Site:
    return Site(
        "lab", np.array([4, 4, 8, 4]), (NONE,), np.zeros(4, np.int64), {"gpu": np.array([0, 0, 2, 0])},
        ("n1", "n2", "g1", "n3"),
        partitions=(Partition("batch", (0, 1, 3), default=True, max_s=7200.0), Partition("all", (0, 1, 2, 3)),
                    Partition("gpu", (2,))),
        features=(("a",), ("a",), (), ("b",)), weights=np.array([1, 1, 9, 1]),
    )  # fmt: skip


def test_nodes_go_and_come_with_what_they_have() -> None:
    site = _site()
    fewer = resized(site, site.partition("batch").nodes, -2)
    assert fewer.names == ("n1", "g1") and fewer.resources["gpu"].tolist() == [0, 2] and fewer.features == (("a",), ())
    assert {one.name: one.nodes for one in fewer.partitions} == {"batch": (0,), "all": (0, 1), "gpu": (1,)}
    more = resized(site, site.partition("batch").nodes, 2)
    assert (
        more.names[4:] == ("added1", "added2")
        and more.cores.tolist()[4:] == [4, 4]
        and more.features[4:] == (("a",), ("a",))
    )
    assert {one.name: one.nodes for one in more.partitions} == {
        "batch": (0, 1, 3, 4, 5),
        "all": (0, 1, 2, 3, 4, 5),
        "gpu": (2,),
    }
    assert more.weights is not None and more.weights.tolist() == [1, 1, 9, 1, 1, 1]
    alone = resized(site, site.partition("gpu").nodes, 1)
    assert alone.resources["gpu"].tolist() == [0, 0, 2, 0, 2]


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("batch=-1,+2", [-1, 2]),
        ("batch=-67%..+67%", [-2, -1, 1, 2]),
        ("-50%", [-2]),
        ("gpu=+10%", [1]),
        ("all=-10%..+10%", [-1, 1]),
    ],
)
def test_ranges_of_nodes(text: str, by: list[int]) -> None:
    assert [one.by for one in node_changes(_site(), text)] == by


@pytest.mark.parametrize(
    ("text", "why"),
    [("batch=-3", "takes all 3 nodes away"), ("batch=some", "no change of a number of nodes"),
     ("night=+1", "has no partition 'night'"),
     ("batch=-9%..", "no change of a number of nodes"), ("+99999999", "more than any site has")],
)  # fmt: skip
def test_wrong_ranges_are_one_line(text: str, why: str) -> None:
    with pytest.raises(EscalaError, match=why):
        node_changes(_site(), text)


def test_limits_of_a_partition() -> None:
    (one, two) = limit_changes(_site(), "batch=60,infinite")
    assert one.site.partition("batch").max_s == 3600.0 and two.site.partition("batch").max_s is None
    assert one.site.partition("all") == _site().partition("all")
    for text, why in (("batch", "write PARTITION=TIME"), ("batch=soon", "no span of time")):
        with pytest.raises(EscalaError, match=why):
            limit_changes(_site(), text)


def test_limits_of_accounts_and_qos() -> None:
    site = _site()
    (few, free) = limit_changes(site, "root:max_jobs=3,none")
    assert few.site.accounts["root"]["limits"] == {"max_jobs": 3} and free.site.accounts["root"]["limits"] == {}
    (own,) = limit_changes(few.site, "root/ann:grp_tres.cpu=8")
    assert own.site.accounts["root"]["user_limits"] == {"ann": {"grp_tres": {"cpu": 8}}}
    assert own.site.accounts["root"]["limits"] == {"max_jobs": 3}
    (one, first) = qos_changes(site, "normal:max_tres_per_user.gpu=2") + qos_changes(site, "normal:priority=7")
    assert one.site.qos_limits == {"normal": {"max_tres_per_user": {"gpu": 2}}} and first.site.qos == {"normal": 7}
    assert (
        qos_changes(one.site, "normal:max_tres_per_user.gpu=none")[0].site.qos_limits["normal"]["max_tres_per_user"]
        == {}
    )
    for change, text, why in (
        (limit_changes, "phys:max_jobs=3", "has no account 'phys'"),
        (limit_changes, "root:max_job=3", "did you mean max_jobs"),
        (limit_changes, "root:grp_tres=3", "unknown limit 'grp_tres'"),
        (limit_changes, "root:max_jobs=many", "not a whole number"),
        (qos_changes, "normal=3", "write QOS:LIMIT=VALUE"),
        (lambda site, text: qos_changes(one.site, text), "high:grp_jobs=3", "has no QOS 'high'"),
    ):
        with pytest.raises(EscalaError, match=why):
            change(site, text)


def test_a_limit_of_jobs_makes_them_wait() -> None:
    """Four jobs of an hour on nodes for all: with two at a time the last two wait an hour, with one 0, 1, 2 and 3 h."""
    log = Workload.from_jobs(
        {"submit_s": [0.0] * 4, "runtime_s": [3600.0] * 4, "cores": [1] * 4, "user": ["ann"] * 4, "qos": ["normal"] * 4}
    )
    found = what_if(log, _site(), qos=["normal:max_jobs_per_user=2"], limits=["root:max_jobs=1"])
    assert found.rows["change"].to_list() == ["as it is", "root: max_jobs 1", "normal: max_jobs_per_user 2"]
    assert found.rows["mean_wait_s"].to_list() == pytest.approx([0.5, 1.5 * 3600, 1800.0], abs=60)


def _log() -> Workload:
    """Six whole-machine hours at once: on n nodes of 4 cores, six jobs of 4 cores run n at a time."""
    return Workload.from_jobs({"submit_s": [0.0] * 6, "runtime_s": [3600.0] * 6, "cores": [4] * 6})


def test_waits_by_hand() -> None:
    """Two nodes: 0 0 1 1 2 2 h; three: 0 0 0 1 1 1 h; one: 0 to 5 h."""
    found = what_if(_log(), "2x4", nodes=["-1,+1"], schedulers=["easy"])
    assert found.rows["change"].to_list() == ["as it is", "-1 node", "+1 node"]
    assert found.rows["mean_wait_s"].to_list() == [3600.0, 2.5 * 3600, 1800.0] and found.jobs == 6
    assert found.sizes.select("2-4").to_series().to_list() == found.rows["mean_wait_s"].to_list()
    assert found.rows["nodes"].to_list() == [2, 1, 3] and "energy_j" not in found.rows.columns
    powered = what_if(_log(), "2x4:grid5000", nodes=["+1"], schedulers=["easy"])
    assert powered.rows["energy_j"].to_list() == pytest.approx([2 * 3 * 3600 * 190.0, 3 * 2 * 3600 * 190.0])


def test_replays_side_by_side_give_the_same() -> None:
    log = escala.workload.generate.lublin(jobs=300, cores=16, load=1.1, seed=3)
    told: list[float] = []
    one, two = (
        what_if(
            log, "4x4:grid5000", nodes=["-50%..+50%"], schedulers=["easy", "slurm"], jobs=jobs, progress=told.append
        )
        for jobs in (1, 2)
    )
    assert (
        one.rows.equals(two.rows)
        and one.sizes.equals(two.sizes)
        and one.rows["mean_wait_s"].n_unique() == one.rows.height
    )
    assert told[-1] == 1.0


def test_jobs_that_a_world_refuses_are_counted_and_in_no_mean() -> None:
    wide = Workload.from_jobs(
        {"submit_s": [0.0, 1.0], "runtime_s": [60.0] * 2, "cores": [8, 4], "walltime_s": [60.0] * 2}
    )
    found = what_if(wide, "2x4", nodes=["-1"], schedulers=["easy"])
    assert found.rows["refused"].to_list() == [0, 1] and found.jobs == 1
    assert any("Jobs are refused in 1 of 2 worlds, up to 1" in line for line in page.sentences(found))
    limited = what_if(wide, _site(), limits=["batch=1"])
    assert limited.rows["refused"].to_list() == [0, 0]
    longer = wide.with_jobs(wide.jobs.with_columns(walltime_s=pl.Series([60.0, 120.0])))
    shorter = what_if(longer, _site(), limits=["batch=1,2"], schedulers=["slurm", "easy"])
    assert shorter.rows["refused"].to_list() == [0, 0, 1, 1, 0, 0]
    for more in ({"limits": ["root:max_jobs=1"]}, {"qos": ["normal:max_jobs_per_user=1"]}):
        with pytest.raises(EscalaError, match="easy knows no limits of accounts and QOS"):
            what_if(wide, _site(), schedulers=["slurm", "easy"], **more)
    with pytest.raises(EscalaError, match="nothing changes"):
        what_if(wide, _site(), nodes=["batch=0"])


def test_the_page_has_one_picture(tmp_path: Path) -> None:
    found = what_if(_log(), "2x4:grid5000", nodes=["-50%..+100%"], schedulers=["easy", "fcfs"])
    page.write_page(found, tmp_path / "report.html", "a log")
    text = (tmp_path / "report.html").read_text()
    assert text.count("<svg") == 1 and "Mean wait by cores of the job" in text and "escala calibrate says" in text
    assert len(page.shown(found)) == found.rows.height and "energy" in page.shown(found)[0]
    assert escala.read_platform("2x4").n_nodes == 2
