"""Platforms larger than any machine are refused at once, whichever way they are written."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from escala.errors import EscalaError
from escala.platform import Platform, power, read_platform
from escala.platform.platform import MOST_CORES, MOST_NODES

YAML = "name: big\nnodes:\n  - {{count: {count}, cores: {cores}, power: none{more}}}\n"
XML = (
    "<platform version='4.1'><cluster id='c' prefix='n' suffix='' radical='{radical}' speed='1Gf' "
    "core='{core}'/></platform>"
)
TOO_LARGE = "at most (1000000|1000000000) are possible"


def test_the_limits_are_beyond_every_machine() -> None:
    """Fugaku has 158 976 nodes, Sunway TaihuLight 10 649 600 cores, El Capitan 11 039 616 (TOP500). The 1523 nodes of
    Alibaba's GPU trace have 125 514 cores, in thousandths."""
    assert MOST_NODES > 158_976 and MOST_CORES > 11_039_616
    assert read_platform("1523x82412").total_cores > 125_000_000


@pytest.mark.parametrize(
    "spec",
    [
        "1000000000x1",
        "100000000x1",
        "1000001x1",
        "100000x100000",
        "1x1000000001",
        "99999999999x99",
        "999999999999999999x1",
    ],
)
def test_sizes(spec: str) -> None:
    began = time.monotonic()
    with pytest.raises(EscalaError, match=TOO_LARGE):
        read_platform(spec)
    assert time.monotonic() - began < 1.0


@pytest.mark.parametrize(
    ("count", "cores"), [(1, 10**18), (1, 10**25), (10**18, 1), (10**12, 10**12), (MOST_NODES + 1, 1)]
)
def test_yaml(tmp_path: Path, count: int, cores: int) -> None:
    path = tmp_path / "big.yaml"
    path.write_text(YAML.format(count=count, cores=cores, more=""))
    with pytest.raises(EscalaError, match=rf"big.yaml.*({TOO_LARGE}|2\^63)"):
        read_platform(path)


def test_further_resources(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text(YAML.format(count=1, cores=1, more=f", resources: {{memory: {10**30}}}"))
    with pytest.raises(EscalaError, match=r"big.yaml.*memory.*2\^63"):
        read_platform(path)


@pytest.mark.parametrize(
    ("radical", "core"), [("0-999999999", "1"), ("0-999999", "1001"), ("0-600000,700000-1200000", "1")]
)
def test_simgrid(tmp_path: Path, radical: str, core: str) -> None:
    path = tmp_path / "big.xml"
    path.write_text(XML.format(radical=radical, core=core))
    with pytest.raises(EscalaError, match=f"big.xml.*({TOO_LARGE}|more than {MOST_NODES} hosts)"):
        read_platform(path)


@pytest.mark.parametrize(
    ("nodes", "cores"), [("a", 1), (1, "a"), (1.5, 1), (None, 1), (True, 1), (2**70, 1), (1, 2**70)]
)
def test_uniform(nodes: Any, cores: Any) -> None:
    with pytest.raises(EscalaError, match=f"whole number|{TOO_LARGE}"):
        Platform.uniform(nodes, cores)


def test_cores_whose_sum_overflows() -> None:
    with pytest.raises(EscalaError, match=TOO_LARGE):
        Platform("big", np.full(3, 2**62), (power.NONE,), np.zeros(3, np.int64))


@pytest.mark.parametrize("speed", ["fast", float("nan"), 0.0, -1.0])
def test_speeds(speed: Any) -> None:
    with pytest.raises(EscalaError, match="speed is"):
        Platform.uniform(1, speed=speed)


def test_numbers_of_numpy_are_whole_numbers() -> None:
    assert Platform.uniform(np.int64(2), np.int32(3)).total_cores == 6
