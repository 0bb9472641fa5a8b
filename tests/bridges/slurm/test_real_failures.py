"""Beside a real Slurm whose nodes do not boot, and whose controller ends, begins again, or answers late. Choose with -m
slurm."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from escala.bridges.slurm.loop import JOURNAL, METRICS
from escala.bridges.slurm.shape import MISS
from escala.bridges.slurm.story import status
from tests.bridges.slurm.lab import Acting, Lab, acting, lab, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("compiled")]
NODES = [f"n{k}" for k in range(1, 7)]
GUARDS = ("--allow", "n[1-6]", "--spare", "0", "--switches", "60", "--min-on", "0", "--min-off", "0")
FULL = ("--mode", "full", "--shutdown", "timeout:1", "--lease", "30", *GUARDS)


@pytest.fixture(scope="module")
def acting_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    folder, home = tmp_path_factory.mktemp("acting"), tmp_path_factory.mktemp("home")
    with (
        lab(tmp_path_factory.mktemp("lab"), len(NODES), resume_s=4) as real,
        acting(real, folder, home, *FULL) as found,
    ):
        yield found


@pytest.fixture
def acts(acting_once: Acting) -> Iterator[Acting]:
    """One folder for all of these tests: each goes on with what the last one left behind."""
    yield acting_once
    acting_once.end()


def _off(real: Lab) -> bool:
    return set(real.nodes().values()) == {"idle~"} and set(real.leases()) == set(NODES)


def _woken(acts: Acting) -> list[str]:
    return [line.split("=")[1].split()[0] for line in acts.given if "state=power_up" in line]


def test_nodes_that_do_not_boot_are_counted_said_and_left_for_an_operator(acts: Acting) -> None:
    real = acts.real
    acts.begin()
    assert until(lambda: _off(real), 60), (real.nodes(), acts.said)
    (real.folder / "broken").touch()
    job = real.submit("-N2", "-t1", seconds=1)
    assert until(lambda: "wake n6: boots" in status(acts.folder / JOURNAL)["refused"], 90), acts.said
    looks = len(acts.looks)
    assert until(lambda: len(acts.looks) > looks + 5, 30)
    assert sorted(_woken(acts)) == NODES[:4], (
        "two by two, once each; after three boots that failed in a row no other node is tried"
    )
    assert {name for name, state in real.nodes().items() if "down" in state} == set(NODES[:4])
    assert status(acts.folder / JOURNAL)["set_aside"] == NODES[:4] and not set(real.leases()) & set(NODES[:4])
    assert "escala_beside_aside_nodes 4\n" in (acts.folder / METRICS).read_text()
    told = re.findall(
        r"(n\d(?:, n\d)*) did not boot, and (?:is|are) set aside: .*scontrol update nodename=(\S+) state=resume",
        acts.said,
    )
    assert sorted(",".join(names for _, names in told).split(",")) == NODES[:4], acts.said
    assert all(said == names.replace(",", ", ") for said, names in told), acts.said
    assert not real.began(job)
    (real.folder / "broken").unlink()
    real.run("scontrol", "update", "nodename=n[1-4]", "state=resume")
    assert until(lambda: real.began(job), 60), (real.nodes(), acts.said)
    assert until(lambda: status(acts.folder / JOURNAL)["set_aside"] == [], 20)
    real.run("scancel", job)


def test_the_controller_begins_again_and_so_does_the_work(acts: Acting) -> None:
    real = acts.real
    acts.begin("--limit", "2")
    assert until(lambda: _off(real), 60), (real.nodes(), acts.said)
    leases, given = real.leases(), len(acts.given)
    with real.stopped():
        before = len(acts.records)
        assert until(lambda: sum(one["kind"] == MISS for one in acts.records[before:]) >= 2, 30)
        assert len(acts.given) == given, "no order without a look"
    assert until(lambda: acts.records[-1].get("refused") == [["all", "", "errors"]], 30), (
        "nothing is done until three looks went well"
    )
    assert until(lambda: "nothing is done for now, guard errors" in acts.said, 10) and "look missed" in acts.said
    assert until(lambda: any("acted" in one for one in acts.records[before:]), 40), "leases are renewed"
    assert real.leases() == leases, "Slurm kept them, and they are the same"
    missed = [k for k, one in enumerate(acts.records) if one["kind"] == MISS][-1]
    assert all("acted" not in one for one in acts.records[missed : missed + 3])
    job = real.submit("-N2", "-t1", seconds=1)
    assert until(lambda: real.began(job), 60), acts.said


def test_a_controller_that_answers_late_gets_no_orders(acts: Acting) -> None:
    real = acts.real
    assert until(lambda: set(real.nodes().values()) <= {"idle", "idle~"}, 40)
    looks = len(acts.looks)
    acts.begin("--limit", "20")
    assert until(lambda: len(acts.looks) > looks + 2, 60)
    with real.frozen():
        time.sleep(5)
    assert until(lambda: [one for one in acts.looks if one["read_ms"] > 3000], 20), "it waited for the answer"
    late = [one for one in acts.looks if one["read_ms"] > 3000]
    assert all(one["refused"] == [["all", "", "stale"]] and "acted" not in one for one in late)
    assert until(lambda: _off(real), 60), "and goes on"
