"""Nodes of several speeds: in a Platform, a site.toml, a YAML file and Batsim's XML, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import escala
from escala.platform import Platform
from escala.platform.site_write import site_text

SITE = """
[[nodes]]
names = "a[1-3]"
cores = 4

[[nodes]]
names = "b[1-2]"
cores = 4
speed = 0.8

[[partitions]]
name = "slow"
nodes = "b[1-2]"
"""


def speeds_of(platform: Platform) -> Any:
    return None if platform.node_speed is None else platform.node_speed.tolist()


def test_a_platform_is_again_what_it_tells(tmp_path: Path) -> None:
    platform = replace(Platform.uniform(4, 2), node_speed=[1, 0.8, 0.8, 2])
    assert [group.get("speed") for group in platform.spec()["nodes"]] == [None, 0.8, 2.0]
    assert Platform.from_spec(platform.spec()) == platform != Platform.uniform(4, 2)
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(platform.spec()))
    assert escala.read_platform(str(tmp_path / "p.yaml")) == platform
    assert speeds_of(platform.first(2)) == [1, 0.8] and speeds_of(platform.first(1)) is None
    assert platform.slowest == 0.8 and platform.alike() == Platform.uniform(4, 2)


def test_where_all_are_of_speed_1_nothing_is_said_of_it() -> None:
    platform = replace(Platform.uniform(4, 2), node_speed=np.ones(4))
    assert platform.node_speed is None and platform == Platform.uniform(4, 2)
    assert platform.spec() == Platform.uniform(4, 2).spec() and platform.slowest == 1.0


def test_a_site_keeps_them_and_is_written_with_them(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(SITE)
    site = escala.read_site(tmp_path / "site.toml")
    assert speeds_of(site) == [1, 1, 1, 0.8, 0.8]
    assert speeds_of(site.first(4)) == [1, 1, 1, 0.8] and speeds_of(site.machine("slow")) == [0.8, 0.8]
    (tmp_path / "again.toml").write_text(site_text(replace(site, name="again")))
    assert "speed = 0.8" in (tmp_path / "again.toml").read_text()
    again = escala.read_site(tmp_path / "again.toml")
    assert replace(again, name=site.name) == site == Platform.from_spec(site.spec())


def test_batsims_hosts_of_several_speeds(tmp_path: Path) -> None:
    """The speed of most cores is the platform's: of 4 cores 2 Gf, of 2 hosts 1 Gf. A job of 4e9 flop runs 2 s there, 4
    on the others, as in Batsim; a delay takes its time."""
    hosts = '<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><host id="c" speed="2Gf" core="4"/>'
    (tmp_path / "p.xml").write_text(
        f'<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="9Gf"/>{hosts}</zone>'
        "</platform>"
    )
    machine = escala.read_platform(str(tmp_path / "p.xml"))
    assert machine.speed == 2e9 and speeds_of(machine) == [0.5, 0.5, 1.0]
    profiles = '"work": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 0}, "wait": {"type": "delay", "delay": 7}'
    jobs = [("1", "work", 1), ("2", "wait", 1), ("3", "work", 3)]
    told = ", ".join(
        f'{{"id": "{name}", "subtime": 0, "res": {cores}, "profile": "{kind}"}}' for name, kind, cores in jobs
    )
    (tmp_path / "w.json").write_text(f'{{"nb_res": 6, "jobs": [{told}], "profiles": {{{profiles}}}}}')
    log = escala.read_workload(tmp_path / "w.json", speed=machine.speed)
    got = escala.simulate(log, machine, "fcfs").jobs
    assert got["nodes"].to_list() == ["0", "1", "2"] and got["runtime_s"].to_list() == [4.0, 7.0, 2.0]


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), 1001, 1e-4, 1e308])
def test_absurd_speeds_are_refused(wrong: float, tmp_path: Path) -> None:
    known = "give a number from 0.001 to 1000"
    with pytest.raises(escala.EscalaError, match=f"platform '2x1': a speed of .*{known}") as refused:
        replace(Platform.uniform(2, 1), node_speed=[1.0, wrong])
    assert "\n" not in str(refused.value)
    with pytest.raises(escala.EscalaError, match=f"node group 1: a speed of .*{known}"):
        Platform.from_spec({"name": "p", "nodes": [{"count": 2, "cores": 1, "speed": wrong}]})
    (tmp_path / "site.toml").write_text(f'[[nodes]]\nnames = "n[1-2]"\ncores = 1\nspeed = {float(wrong)}\n')
    with pytest.raises(escala.EscalaError, match=f"site.toml: node group 1: a speed of .*{known}"):
        escala.read_site(tmp_path / "site.toml")


def test_what_is_no_speed_is_refused(tmp_path: Path) -> None:
    for wrong in ("fast", True, [1], 10**400):
        with pytest.raises(escala.EscalaError, match="a speed of"):
            Platform.from_spec({"name": "p", "nodes": [{"count": 2, "cores": 1, "speed": wrong}]})
    with pytest.raises(escala.EscalaError, match="node_speed has 3 entries for 2 nodes"):
        replace(Platform.uniform(2, 1), node_speed=[1, 1, 2])
    with pytest.raises(escala.EscalaError, match="give a number for each node"):
        replace(Platform.uniform(2, 1), node_speed=["x", "y"])
    (tmp_path / "site.toml").write_text('[[nodes]]\nnames = "n[1-2]"\ncores = 1\nspeed = "0.8"\n')
    with pytest.raises(escala.EscalaError, match="node group 1: a speed of"):
        escala.read_site(tmp_path / "site.toml")


def test_hosts_that_differ_absurdly_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text(
        '<platform version="4.1"><zone id="z"><host id="a" speed="1f"/><host id="b" speed="1Gf"/></zone></platform>'
    )
    with pytest.raises(escala.EscalaError, match="a speed of"):
        escala.read_platform(str(tmp_path / "p.xml"))
