"""Reading platforms: names, sizes, SimGrid files, YAML files, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escala.errors import EscalaError
from escala.platform import Platform, PowerProfile, power, preset, read_platform


def test_names_and_sizes() -> None:
    assert read_platform("Orion") == preset("orion") and read_platform("orion").total_cores == 48
    assert read_platform("16x32").profiles == (power.NONE,) and read_platform("16x32").total_cores == 512
    assert read_platform("3x2:taurus").profiles == (power.TAURUS,)
    assert read_platform("3x2:taurus/core").profiles == (power.TAURUS.per_core(2),)
    assert not read_platform("3x2:none").has_energy
    assert read_platform("graphite#2").n_nodes == 2 and read_platform("3x2:taurus#1").total_cores == 2
    platform = Platform.uniform(2)
    assert read_platform(platform) is platform


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("oriom", "did you mean orion"),
        ("", "unknown platform"),
        ("4x", "unknown platform"),
        ("0x4", "0 nodes"),
        ("4x0", "0 cores"),
        ("4x4:gird5000", "did you mean 'grid5000'"),
        ("4x4#5", "has 4 nodes"),
        ("4x4#0", "has 4 nodes"),
        ("4x4#two", "after #"),
        ("99999999999x99", "at most 1000000"),
        ("4x4#²", "after #"),
        ("9" * 5000 + "x1", "unknown platform"),
        ("4x4#" + "9" * 5000, "after #"),
        ("a" * 5000, "unknown platform"),
        ("a\0b", "unknown platform"),
        (".", "is a folder"),
        ("nowhere.xml", "no such file"),
    ],
)
def test_unknown_specs_are_refused_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(EscalaError, match=message) as caught:
        read_platform(spec)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def _xml(body: str) -> str:
    return f"<?xml version='1.0'?>\n<platform version='4.1'><zone id='AS0' routing='Full'>{body}</zone></platform>"


def _host(name: str, speed: str, **properties: str) -> str:
    inner = "".join(f"<prop id='{key}' value='{value}'/>" for key, value in properties.items())
    return f"<host id='{name}' speed='{speed}'>{inner}</host>"


def _read(tmp_path: Path, text: str) -> Platform:
    file = tmp_path / "p.xml"
    file.write_text(text)
    return read_platform(file)


def test_hosts_are_ordered_as_plain_strings_and_the_master_is_left_out(tmp_path: Path) -> None:
    names = ["host10", "host2", "host1", "master_host", "Host3"]
    stored = (
        _host("disk", "0f", role="storage") + _host("boss", "1f", role="master") + _host("old", "1f", excluded="true")
    )
    platform = _read(
        tmp_path, _xml("<zone id='inner'>" + "".join(_host(name, "1Gf") for name in names) + "</zone>" + stored)
    )
    assert platform.names == ("Host3", "host1", "host10", "host2")
    assert platform.speed == 1e9 and not platform.has_energy and not platform.profiles[0].can_switch


def test_old_and_new_property_names_and_any_pstate_order(tmp_path: Path) -> None:
    new = _host("a", "0.5f, 2Mf, 0.25f, 0f", wattage_per_state="101:102,95:96:190,7:125,9:10", sleep_pstates="3:0:2")
    expected = (190, 95, 9, 102, 125, 2, 4)  # the computing pstate is 1; the switches burn one flop at full watts
    for text in (new, new.replace("wattage", "watt")):
        p = _read(tmp_path, _xml(text)).profiles[0]
        assert (
            p.computing_w,
            p.idle_w,
            p.off_w,
            p.switching_off_w,
            p.switching_on_w,
            p.switch_off_s,
            p.switch_on_s,
        ) == expected


def test_equal_profiles_are_one_and_others_apart(tmp_path: Path) -> None:
    hosts = (
        _host("a", "1f", wattage_per_state="1:2")
        + _host("b", "1f", wattage_per_state="1:3")
        + _host("c", "2f", wattage_per_state="1:2")
    )
    platform = _read(tmp_path, _xml(hosts))
    assert platform.profile_of.tolist() == [0, 1, 0] and len(platform.profiles) == 2
    assert platform.speed == 1.0 and platform.node_speed is not None and platform.node_speed.tolist() == [1, 1, 2]
    assert [p.can_switch for p in platform.profiles] == [False, False]


@pytest.mark.parametrize(
    ("text", "flops"),
    [
        ("76.3Mf", 76.3e6),
        ("16.673E9flops", 16.673e9),
        ("1Gf", 1e9),
        ("1e6f", 1e6),
        ("5", 5.0),
        ("2Gflops", 2e9),
        ("1kf", 1e3),
        ("1Kif", 1024.0),
        (".5f", 0.5),
    ],
)
def test_speeds(tmp_path: Path, text: str, flops: float) -> None:
    assert _read(tmp_path, _xml(_host("a", text))).speed == flops


def test_clusters(tmp_path: Path) -> None:
    text = (
        "<cluster id='c' prefix='n-' suffix='.x' radical='0-2,7' speed='1Gf' core='4'><prop id='watt_per_state' "
        "value='50:100'/></cluster>"
    )
    platform = _read(tmp_path, _xml(text))
    assert platform.names == ("n-0.x", "n-1.x", "n-2.x", "n-7.x") and platform.cores.tolist() == [4] * 4
    assert platform.profiles == (
        PowerProfile(computing_w=100, idle_w=50, can_switch=False, name="p", source="platform file"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<platform", "not well-formed"),
        ("<html/>", "outermost element"),
        (_xml(""), "no host but the master"),
        (_xml(_host("a", "fast")), "speed 'fast'"),
        (_xml("<host id='a'/>"), "no attribute 'speed'"),
        (_xml("<host speed='1f'/>"), "no attribute 'id'"),
        (_xml("<host id='a' speed='1f' core='x'/>"), "core is 'x'"),
        (_xml("<host id='a' speed='1f' core='²'/>"), "core is '²'"),
        (_xml(_host("a", "0f")), "speed above 0"),
        (_xml(_host("a", "1f", watt_per_state="1")), "neither idle:full"),
        (_xml(_host("a", "1f", watt_per_state="1:x")), "neither idle:full"),
        (_xml(_host("a", "1f", watt_per_state="1:-2")), "neither idle:full"),
        (_xml(_host("a", "1f", watt_per_state="1:2,1:2")), "2 power entries for 1 pstates"),
        (_xml(_host("a", "1f", watt_per_state="1:2", sleep_pstates="1:2:3")), "names pstate 3"),
        (_xml(_host("a", "1f", watt_per_state="1:2", sleep_pstates="off")), "triples"),
        (_xml(_host("a", "1f,0f,0f", watt_per_state="1:2,1:2,1:2", sleep_pstates="1:2:2")), "speed 0"),
        (_xml(_host("a", "1f") * 2), "two hosts are called 'a'"),
        (_xml("<cluster id='c' prefix='n' suffix='' radical='x' speed='1f'/>"), "radical"),
        (_xml("<cluster id='c' prefix='n' suffix='' radical='5-2' speed='1f'/>"), "radical"),
        (_xml("<cluster id='c' prefix='n' suffix='' radical='0-99999999999' speed='1f'/>"), "radical"),
        (_xml("<include file='b.xml'/>"), "include"),
    ],
)
def test_bad_xml_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EscalaError, match=message) as caught:
        _read(tmp_path, text)
    assert "\n" not in str(caught.value) and "p.xml" in str(caught.value)


YAML = """
name: mine
profiles:
  blade: {computing_w: 210, idle_w: 90, off_w: 5, switching_off_w: 100, switching_on_w: 120,
          switch_off_s: 20, switch_on_s: 90}
nodes:
  - {count: 2, cores: 32, power: blade, resources: {memory: 128}}
  - {count: 1, cores: 64, power: taurus, resources: {memory: 512}}
speed_flop_per_s: 1e9
"""


@pytest.mark.parametrize("packed", [False, True])
def test_yaml(tmp_path: Path, packed: bool) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(gzip.compress(YAML.encode()) if packed else YAML.encode())
    p = read_platform(str(file))
    assert p.name == "mine" and p.cores.tolist() == [32, 32, 64] and p.resources["memory"].tolist() == [128, 128, 512]
    assert (
        p.profiles[0].switch_on_s == 90
        and p.profiles[1] == power.TAURUS
        and p.profile_of.tolist() == [0, 0, 1]
        and p.speed == 1e9
    )
    assert read_platform(f"{file}#1").total_cores == 32


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: mine", "nmae: mine", "`name` is missing"),
        ("cores: 32, ", "", "`cores` is missing"),
        ("cores: 32", "cores: many", "cores is 'many'"),
        ("count: 2", "count: 0", "count is 0"),
        ("count: 2", "count: 2, watts: 3", "unknown entry `watts`"),
        ("power: blade", "power: blades", "unknown power profile 'blades'"),
        ("idle_w: 90, ", "", "`idle_w` is missing"),
        ("idle_w: 90", "idle_w: low", "idle_w is 'low'"),
        ("idle_w: 90", "can_switch: 3", "can_switch"),
        ("memory: 512", "gpus: 4", "same kinds"),
        ("1e9", "fast", "speed_flop_per_s"),
        ("1e9", "1e9\nhost_names: 3", "host_names"),
        ("count: 2", "count: 999999999999", "at most 1000000"),
        (YAML, "- 3", "holds no platform"),
        (YAML, "a: [1", "neither XML nor YAML"),
        (YAML, "name: x\nnodes: 3", "must be a list"),
    ],
)
def test_bad_yaml_is_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(YAML.replace(old, new))
    with pytest.raises(EscalaError, match=message) as caught:
        read_platform(file)
    assert "\n" not in str(caught.value) and "bad.yaml" in str(caught.value)


FUZZED_XML = _xml(
    "<cluster id='c' prefix='n' suffix='' radical='0-3,7' speed='1Gf, 0.1f, 0.2f, 0f' core='4'>"
    "<prop id='watt_per_state' value='1:2,1:2:3,1:2,0:0'/><prop id='sleep_pstates' value='3:1:2'/></cluster>"
    + _host("a", "1Mf,2f", wattage_per_state="50:100,1:2", role="none")
)


@pytest.mark.parametrize("text", [YAML, FUZZED_XML], ids=["yaml", "xml"])
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_are_read_or_refused_in_one_line(tmp_path: Path, text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.integers(0, 12))
        text = (
            text[:start] + data.draw(st.text("0123456789-:,.'\"<>{}[] eEafMxé²\n", max_size=4)) + text[start + length :]
        )
    file = tmp_path / "damaged"
    file.write_text(text, encoding="utf-8")
    try:
        assert read_platform(file).n_nodes >= 1
    except EscalaError as error:
        assert "\n" not in str(error)


def test_broken_gzip(tmp_path: Path) -> None:
    file = tmp_path / "p.xml.gz"
    file.write_bytes(gzip.compress(b"<platform/>" * 100)[:-9])
    with pytest.raises(EscalaError, match="the gzip file ends too early"):
        read_platform(file)


REFUSED = {"energy_platform.xml": "'Venus': 6 power entries for 7 pstates"}  # SimGrid refuses it as well


def test_every_stored_platform_file_is_read_or_refused_clearly(traces: Path) -> None:
    files = sorted(p for p in traces.rglob("*.xml*") if p.is_file())
    assert len(files) > 50
    for file in files:
        if file.name in REFUSED:
            with pytest.raises(EscalaError, match=REFUSED[file.name]) as caught:
                read_platform(file)
            assert "\n" not in str(caught.value)
        else:
            platform = read_platform(file)
            assert platform.n_nodes > 0 and list(platform.names) == sorted(platform.names)
            assert not any(name.startswith("master") for name in platform.names)
            assert Platform.from_spec(platform.spec()) == platform


@pytest.mark.parametrize(
    ("file", "nodes", "watts", "seconds"),
    [  # computing, idle, off, switching off, switching on; seconds off, on: by hand from the files
        ("batsim/golden-medium_late/platform.xml.gz", 128, (190.738, 95, 9.75, 100.9967, 125.1744), (6.1, 151.52)),
        (
            "batsim/golden-runs/power-timeout300-stock/platform.xml.gz",
            128,
            (190.738, 95, 9.75, 100.9967, 125.1744),
            (6.1, 151.52),
        ),
        ("batsim/golden-runs/power-timeout0/platform.xml.gz", 24, (200, 100, 10, 120, 150), (5, 20)),
        ("batsim/golden-runs/hpc2n-easy_bf-flop/platform.xml.gz", 240, (220, 80, 6.5, 110, 140), (8, 32)),
        ("batsim/platforms/GridGym_platform.xml", 48, (190, 95, 9, 101, 125), (1 / 0.334, 1 / 1.01)),
        ("batsim/platforms/energy_platform_homogeneous.xml", 4, (100, 30, 9.75, 200.9967, 425.1744), (2, 20)),
        ("author/r3-days/platform.xml.gz", 168, (190, 95, 9, 101, 125), (3, 1)),  # this file counts in minutes
    ],
)
def test_numbers_of_known_platforms(
    traces: Path, file: str, nodes: int, watts: tuple[float, ...], seconds: tuple[float, ...]
) -> None:
    platform = read_platform(traces / file)
    assert platform.n_nodes == nodes and len(platform.profiles) == 1 and platform.profiles[0].can_switch
    p = platform.profiles[0]
    assert (p.computing_w, p.idle_w, p.off_w, p.switching_off_w, p.switching_on_w) == pytest.approx(watts, abs=5e-5)
    assert (p.switch_off_s, p.switch_on_s) == pytest.approx(seconds, abs=1e-9)


def test_sizes_of_files_with_groups_of_hosts(traces: Path) -> None:
    sizes = {
        "cluster512.xml": 512,
        "cluster512_pfs.xml": 512,
        "cluster_locality_8x16.xml": 128,
        "graphene.xml": 144,
        "small_platform.xml": 4,
    }
    sizes |= {"HPC2N-2002-2.2-cln.xml": 240, "simple_coalloc_platform.xml.gz": 32, "cluster_energy_128.xml.gz": 128}
    assert {name: read_platform(traces / "batsim" / "platforms" / name).total_cores for name in sizes} == sizes
    assert (
        read_platform(traces / "batsim" / "platforms" / "small_platform_replay_usage.xml").cores.tolist() == [100] * 4
    )
    assert read_platform(f"{traces}/batsim/golden-medium_late/platform.xml.gz#32").names[:3] == (
        "host0",
        "host1",
        "host10",
    )
