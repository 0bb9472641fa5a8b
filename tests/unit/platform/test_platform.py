"""The platform table: construction, equality, the plain dict, and refusals."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import yaml

from escala.errors import EscalaError
from escala.platform import PRESETS, Platform, PowerProfile, power, preset, read_platform


def test_profiles_are_those_of_the_dissertation() -> None:
    g, t = power.GRID5000, power.TAURUS
    assert (g.computing_w, g.idle_w, g.off_w) == (190, 95, 9)
    assert g.switching_off_w * g.switch_off_s == 18_180  # section 4.1.3 prints these joules
    assert g.switching_on_w * g.switch_on_s == 7_500
    assert (t.computing_w, t.idle_w, t.off_w, t.switch_off_s, t.switch_on_s) == (190, 95, 9.75, 6, 150)
    assert t.switching_off_w * t.switch_off_s == 606 and t.cycle_j == 606 + 125 * 150


@pytest.mark.parametrize("name", sorted(power.PROFILES))
def test_profiles_are_found_by_name(name: str) -> None:
    assert power.by_name(name) is power.PROFILES[name] and power.by_name(name.upper()).name == name


def test_power_of_one_core_is_multiplied() -> None:
    node = power.TAURUS.per_core(12)
    assert node.computing_w == 12 * 190 and node.off_w == 117 and node.switch_on_s == 150
    assert Platform.uniform(3, 12, power="taurus", per_core=True).profiles == (node,)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "190", True, None])
def test_bad_watts_are_refused(bad: object) -> None:
    with pytest.raises(EscalaError, match="idle_w") as caught:
        PowerProfile(computing_w=190, idle_w=bad)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_uniform() -> None:
    p = Platform.uniform(4, 12, "grid5000", resources={"memory": 64})
    assert (p.n_nodes, p.total_cores) == (4, 48)
    assert p.cores.dtype == np.int64 and p.cores.tolist() == [12] * 4
    assert p.resources["memory"].tolist() == [64] * 4 and p.resources["memory"].dtype == np.int64
    assert p.profiles == (power.GRID5000,) and p.profile_of.tolist() == [0] * 4
    assert p.names == ("node0", "node1", "node2", "node3")
    assert not Platform.uniform(2, power=None).has_energy and p.has_energy


def test_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Platform.uniform(2).cores[0] = 5


def _mixed() -> Platform:
    return Platform(
        name="mixed",
        cores=np.array([2, 2, 8]),
        profiles=(power.GRID5000, power.TAURUS),
        profile_of=np.array([0, 0, 1]),
        resources={"memory": np.array([10, 20, 20])},
        names=("a", "b", "c"),
        speed=1e9,
    )


@pytest.mark.parametrize("platform", [Platform.uniform(1), Platform.uniform(5, 3, power=None), _mixed()], ids=repr)
def test_dict_text_and_pickle_give_it_back(platform: Platform) -> None:
    assert Platform.from_spec(platform.spec()) == platform
    assert Platform.from_spec(json.loads(json.dumps(platform.spec()))) == platform
    assert Platform.from_spec(yaml.safe_load(yaml.safe_dump(platform.spec()))) == platform
    assert pickle.loads(pickle.dumps(platform)) == platform


def test_equal_nodes_are_one_entry_of_the_dict() -> None:
    assert Platform.uniform(1000, 4, "grid5000").spec()["nodes"] == [{"count": 1000, "cores": 4, "power": "grid5000"}]


def test_first_and_power() -> None:
    p = _mixed()
    assert (
        p.first(2).profiles == (power.GRID5000,)
        and p.first(2).names == ("a", "b")
        and p.first(2).resources["memory"].tolist() == [10, 20]
    )
    assert p.first(3) == p
    assert p.with_power("taurus").profiles == (power.TAURUS,) and p.with_power("taurus").total_cores == 12
    assert not p.with_power(None).has_energy
    for n in (0, 4):
        with pytest.raises(EscalaError, match="has 3 nodes"):
            p.first(n)


def test_inequality() -> None:
    p = Platform.uniform(4, 2, name="p")
    others = [
        Platform.uniform(3, 2, name="p"),
        Platform.uniform(4, 1, name="p"),
        Platform.uniform(4, 2, power="taurus", name="p"),
        Platform.uniform(4, 2),
    ]
    assert p == Platform.uniform(4, 2, name="p") and all(p != other for other in others) and p != "p"
    assert p != Platform.uniform(4, 2, name="p", resources={"memory": 1})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cores": []}, "no node"),
        ({"cores": [1, 0]}, "cores of node 1 is 0"),
        ({"cores": [1.5, 2]}, "whole numbers"),
        ({"profile_of": [0]}, "profile_of has 1 entries for 2 nodes"),
        ({"profile_of": [0, 1]}, "names profile 1 of 1"),
        ({"names": ("a", "a")}, "two hosts are called 'a'"),
        ({"resources": {"memory": [1]}}, "memory has 1 entries"),
        ({"resources": {"memory": [1, -2]}}, "memory of node 1 is -2"),
        ({"resources": {"cores": [1, 2]}}, "first resource"),
        ({"speed": 0.0}, "speed"),
        ({"profiles": (power.GRID5000, power.GRID5000)}, "two power profiles"),
    ],
)
def test_refusals_are_one_line(fields: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"name": "p", "cores": [1, 2], "profiles": (power.GRID5000,), "profile_of": [0, 0]}
    with pytest.raises(EscalaError, match=message) as caught:
        Platform(**(good | fields))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


TABLE_2 = {  # cores, from table 2 of the dissertation
    "taurus": 168,
    "hercule": 48,
    "nova": 368,
    "orion": 48,
    "graphite": 64,
    "grimoire": 128,
    "grisou": 816,
    "econome": 352,
    "ecotype": 960,
}


def test_presets_have_the_cores_of_table_2() -> None:
    assert {name: preset(name).total_cores for name in PRESETS} == TABLE_2
    assert all(preset(name).profiles == (power.GRID5000,) and read_platform(name) == preset(name) for name in PRESETS)
