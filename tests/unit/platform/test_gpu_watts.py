"""Watts of GPUs in power profiles: read, written, told, and refused in one line where they make no sense."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import escala
from escala import EscalaError, Platform, PowerProfile, read_platform
from escala.export.batsim import export
from escala.platform.power_spec import read_power
from escala.platform.site_write import site_text

PROFILE = """
[power.blade]
computing_w = 400
idle_w = 150
can_switch = false
"""
SITE = """
[[nodes]]
names = "a[1-2]"
cores = 8
gpus = {{a100 = 2, t4 = 2}}
power = "blade"
{}
gpu_idle_w = {}
gpu_computing_w = {}
"""
BY_KIND = PROFILE, "{a100 = 50, t4 = 10}", "{a100 = 400, t4 = 70}"
LOG = escala.Workload.from_jobs(
    {
        "submit_s": [0.0, 0.0],
        "runtime_s": [100.0, 50.0],
        "cores": [8, 4],
        "nodes": [1, 1],
        "gpus_per_node": [1, 4],
        "gpu_kind": ["a100", None],
    }
)


def site(folder: Path, *parts: str) -> escala.Site:
    (folder / "site.toml").write_text(SITE.format(*parts))
    return escala.read_site(folder / "site.toml")


def test_a_site_keeps_them(tmp_path: Path) -> None:
    given = site(tmp_path, *BY_KIND)
    (tmp_path / "again.toml").write_text('name = "site"\n' + site_text(given).split("\n", 1)[1])
    assert escala.read_site(tmp_path / "again.toml").profiles == given.profiles
    assert Platform.from_spec(given.spec()) == given
    assert given.profiles[0].spec()["gpu_idle_w"] == {"a100": 50.0, "t4": 10.0}
    assert "gpu_idle_w" not in PowerProfile(1.0, 1.0).spec()
    line = "each GPU a100 400 W computing, 50 W idle; each GPU t4 70 W computing, 10 W idle"
    assert line in given.power_line


def test_joules_by_hand(tmp_path: Path) -> None:
    """Two jobs on two nodes; a job that names no kind draws the mean of the node's GPUs, of which it has all."""
    given = site(tmp_path, *BY_KIND)
    result = escala.simulate(LOG, given, "easy")
    idle, mean = 150 + 2 * 50 + 2 * 10, (350 + 60) / 2
    first, second = 100 * (400 - 150) + 100 * 350, 50 * (400 - 150) / 2 + 50 * 4 * mean
    assert result.summary()["energy_j"] == pytest.approx(2 * 100 * idle + first + second, rel=1e-12)
    assert result.summary()["gpu_j"] == pytest.approx(2 * 100 * 120 + 100 * 350 + 50 * 4 * mean, rel=1e-12)
    assert result.allocations["joules"].to_list() == pytest.approx([100 * idle + first, 50 * idle / 2 + second])
    assert escala.Result.load(result.save(tmp_path / "run")).summary() == result.summary()


def test_one_number_is_for_every_gpu(tmp_path: Path) -> None:
    given = site(tmp_path, PROFILE, "20", "120.5")
    result = escala.simulate(LOG, given, "easy")
    assert result.summary()["gpu_j"] == pytest.approx(2 * 100 * 4 * 20 + (100 + 4 * 50) * 100.5, rel=1e-12)
    profile, _ = read_power("computing=400,idle=150,gpu_computing=120.5,gpu_idle=20")
    again = escala.simulate(LOG, given.with_power(profile), "easy")
    assert again.summary() == pytest.approx(result.summary(), nan_ok=True)


def test_batsim_files_have_them(tmp_path: Path) -> None:
    result = escala.simulate(LOG, site(tmp_path, *BY_KIND), "easy")
    export(result, tmp_path / "out")
    last = (tmp_path / "out" / "consumed_energy.csv").read_text().splitlines()[-1]
    assert float(last.split(",")[1]) == pytest.approx(result.summary()["energy_j"], rel=1e-9)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((PROFILE, "{a100 = 50}", "{a100 = 400}"), "node 'a1' has GPUs of kind 't4', and power profile 'blade' gives"),
        ((PROFILE, "50", "{a100 = 400, t4 = 70}"), "gpu_computing_w, as one number is missing"),
        ((PROFILE, "{a100 = 50, t4 = 10}", "{a100 = 400}"), "gpu_computing_w of GPUs of kind 't4' is missing"),
        ((PROFILE, "500", "400"), "an idle GPU takes 500 W, more than one that computes (400 W); are they swapped?"),
        ((PROFILE, '"much"', "400"), "gpu_idle_w is 'much'; give a number >= 0, or a table of them by kind of GPU"),
        ((PROFILE, "{a100 = -1, t4 = 1}", "{a100 = 1, t4 = 1}"), "gpu_idle_w of 'a100' is -1; give a number"),
        ((PROFILE, "true", "400"), "gpu_idle_w is True"),
    ],
)
def test_what_makes_no_sense_is_refused(parts: tuple[str, str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match=re.escape(said)) as caught:
        site(tmp_path, *parts)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_one_without_the_other_is_refused() -> None:
    with pytest.raises(EscalaError, match="gpu_idle_w, as one number is missing"):
        read_platform("2x1", "computing=400,idle=150,gpu_computing=120")


def test_streams_do_not_count_them(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text("1 0 -1 5 1 -1 -1 1 5 -1 1 1 -1 -1 1 -1 -1 -1\n")
    with pytest.raises(EscalaError, match="watts of GPUs, which a replay in pieces does not count"):
        escala.streaming.stream(tmp_path / "log.swf", site(tmp_path, *BY_KIND), "easy")
