"""No power profile is assumed; a given one is named with its watts; measured ones are read from words and files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import escala
from escala import EscalaError, Platform, read_platform
from escala.platform import power
from escala.platform.power_spec import read_power

LOG = escala.Workload.from_jobs({"submit_s": [0.0, 5.0], "runtime_s": [60.0, 60.0], "cores": [1, 2]})
MEASURED = "computing=410,idle=160,off=8,switching_off=150,switching_on=210,switch_off_s=45,switch_on_s=140"


def test_without_a_profile_there_is_no_energy_anywhere(tmp_path: Path) -> None:
    for machine in (
        read_platform("2x1"),
        Platform.uniform(2),
        read_platform("2x1:none"),
        Platform.from_spec(read_platform("2x1").spec()),
    ):
        result = escala.simulate(LOG, machine)
        for table in (result.totals, result.power, result.allocations):
            assert "joules" not in table.columns
        words = ("_j", "_kwh", "_w")
        assert [
            name for name in result.summary() if name.startswith("waste") or (name.endswith(words) and name != "n_jobs")
        ] == []
    loaded = escala.Result.load(result.save(tmp_path / "run"))
    assert loaded.summary() == result.summary() and "joules" not in loaded.power.columns
    table = escala.compare(LOG, "2x1", ["fcfs", "easy"]).table()
    assert not {"energy_j", "waste_j", "transitions"} & set(table.columns)


def test_old_results_that_kept_zeros_for_no_watts_tell_none(tmp_path: Path) -> None:
    folder = escala.simulate(LOG, "2x1:grid5000").save(tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text())
    old = {
        "computing_w": 0.0,
        "idle_w": 0.0,
        "off_w": 0.0,
        "switching_off_w": 0.0,
        "switching_on_w": 0.0,
        "switch_off_s": 0.0,
    }
    old |= {"switch_on_s": 0.0, "can_switch": False, "source": power.NONE.source}  # type: ignore[dict-item]
    manifest["platform"] |= {"profiles": {"none": old}, "nodes": [{"count": 2, "cores": 1, "power": "none"}]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "energy_j" not in escala.Result.load(folder).summary()


@pytest.mark.parametrize("shutdown", ["timeout:0", "hold:0.25", "oracle", "random"])
def test_switching_asks_for_a_profile(shutdown: str) -> None:
    for call in (
        lambda: escala.simulate(LOG, "2x1", shutdown=shutdown),
        lambda: escala.compare(LOG, "2x1", ["easy"], ["never", shutdown]),
    ):
        with pytest.raises(EscalaError, match=r"needs a power profile, for the times of a switch.*--power grid5000"):
            call()
    with pytest.raises(EscalaError, match="start_off needs a power profile"):
        escala.simulate(LOG, "2x1", start_off=True)


@pytest.mark.parametrize("shutdown", ["timeout:0", "hold:0.25", "oracle"])
def test_switching_asks_for_nodes_that_can(shutdown: str) -> None:
    stay_on = read_platform("2x1", "computing=400,idle=150")
    for call in (
        lambda: escala.simulate(LOG, stay_on, shutdown=shutdown),
        lambda: escala.compare(LOG, stay_on, ["easy"], ["never", shutdown]),
        lambda: escala.simulate(LOG, stay_on, start_off=True),
    ):
        with pytest.raises(EscalaError, match=r"no node of platform '2x1' can switch off.*give all seven") as caught:
            call()
        assert "\n" not in str(caught.value)
    watts = power.GRID5000.spec()
    profiles = {"stay": {"computing_w": 400.0, "idle_w": 150.0, "can_switch": False}, "go": watts}
    nodes = [{"count": 1, "cores": 2, "power": name} for name in profiles]
    some = Platform.from_spec({"name": "mixed", "profiles": profiles, "nodes": nodes})
    assert escala.simulate(LOG, some, shutdown=shutdown).summary()["energy_j"] > 0


def test_the_hint_names_the_platform_given(tmp_path: Path) -> None:
    assert "16x32:grid5000" in read_platform("16x32").power_line
    bare = Platform.from_spec({"name": "site", "nodes": [{"count": 2, "cores": 2}]})
    assert "--power grid5000)" in bare.power_line and "site:" not in bare.power_line


def test_some_nodes_without_watts_tell_no_sum() -> None:
    machine = Platform.from_spec(
        {"name": "mixed", "nodes": [{"count": 1, "cores": 2, "power": "grid5000"}, {"count": 2, "cores": 2}]}
    )
    assert not machine.has_energy and machine.has_profile
    assert machine.power_line.startswith("power: 2 of 3 nodes have no profile, so no energy")
    assert "energy_j" not in escala.simulate(LOG, machine, shutdown="timeout:0").summary()


def test_the_line_names_watts_and_that_they_are_a_nodes() -> None:
    told = (
        "power: grid5000 (190 W computing, 95 W idle, 9 W off; a node, whatever its 12 cores): a preset, not "
        "measured on this machine"
    )
    assert read_platform("4x12:grid5000").power_line == read_platform("orion").power_line == told
    assert "2 280 W computing" in read_platform("4x12:grid5000/core").power_line
    assert read_platform("4x12", "computing=410,idle=160").power_line == (
        "power: given (410 W computing, 160 W idle, never off; a node, whatever its 12 cores)"
    )


def test_measured_watts_from_words_and_files(tmp_path: Path) -> None:
    words, per_core = read_power(MEASURED)
    assert not per_core and (words.computing_w, words.off_w, words.switch_on_s, words.can_switch) == (
        410.0,
        8.0,
        140.0,
        True,
    )
    keys = {name: value for name, value in words.spec().items() if name != "source"}
    (tmp_path / "blade.yaml").write_text("".join(f"{name}: {str(value).lower()}\n" for name, value in keys.items()))
    machine = read_platform("4x12", tmp_path / "blade.yaml")
    assert machine.profiles[0].name == "blade" and machine.profiles[0].spec() == words.spec()


@pytest.mark.parametrize(
    ("text", "word"),
    [("grid500", "did you mean 'grid5000'"), ("computing=1,off=2", "idle, switching_off"), ("compting=1", "compting"),
     ("idle=x", "number"),
     ("idle=1,idle=2", "twice"), ("nowhere/x.yaml", "no such file"), ("idle=-1,computing=2", "number >= 0"),
     ("computing=100,idle=200", "more than computing")],
)  # fmt: skip
def test_a_wrong_profile_is_one_line(text: str, word: str) -> None:
    with pytest.raises(EscalaError, match=word) as caught:
        read_platform("4x12", text)
    assert "\n" not in str(caught.value)


def test_two_profiles_are_refused() -> None:
    with pytest.raises(EscalaError, match="give one of them"):
        read_platform("4x12:taurus", "grid5000")


def test_batsim_export_without_a_profile_tells_no_energy(tmp_path: Path) -> None:
    bare, powered = (
        escala.simulate(LOG, spec).export("batsim", tmp_path / spec[4:]) for spec in ("2x1:none", "2x1:grid5000")
    )
    names = {path.name for path in powered.glob("*.csv")}
    assert names - {path.name for path in bare.glob("*.csv")} == {"consumed_energy.csv"}
    jobs, schedule = pl.read_csv(bare / "jobs.csv"), pl.read_csv(bare / "schedule.csv", null_values="NA")
    assert jobs["consumed_energy"].unique().to_list() == [-1.0] and schedule["consumed_joules"].to_list() == [None]
    full = pl.read_csv(powered / "jobs.csv")
    assert (full["consumed_energy"] > 0.0).all() and full.drop("consumed_energy").equals(jobs.drop("consumed_energy"))
