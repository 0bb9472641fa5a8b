"""The verb predict: what it prints and writes, and that other verbs take the model that it leaves in a folder."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Escala
from tests.unit.prediction.logs import PLATFORM, habits

pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users with habits, as SWF."""
    from escala.workload.swf import write_swf

    path = tmp_path_factory.mktemp("predict") / "users.swf"
    write_swf(habits(11, jobs=600, days=20.0), path)
    return path


def test_predict_writes_a_model_that_other_verbs_take(escala_: Escala, users: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    told = escala_("predict", users, "--out", out, "--json")
    assert told.status == 0, told.err
    found = json.loads(told.out)
    assert set(found["accuracy"]) == {"request", "last2", "model"} and found["columns"] == ["user", "queue"]
    assert found["accuracy"]["model"]["mean_absolute_error_s"] < found["accuracy"]["last2"]["mean_absolute_error_s"]
    assert set(found["by_size"][0]) == {"group", "jobs", "request_error_s", "last2_error_s", "model_error_s"}
    assert set(found["users"]) == {"users", "nearer_than_request", "nearer_than_last2"}
    assert {path.name for path in out.iterdir()} == {
        "manifest.json",
        "accuracy.json",
        *(f"trees-{k}.txt" for k in range(1, 6)),
    }
    machine = ("--platform", PLATFORM)
    both = escala_("compare", users, *machine, "--schedulers", f"easy-sjf,easy-sjf:estimate=model:{out}", "--json")
    assert both.status == 0, both.err
    waits = [row["mean_wait_s"] for row in json.loads(both.out)]
    one = escala_("simulate", users, *machine, "--scheduler", "easy-sjf", "--estimate", f"model:{out}", "--json")
    assert one.status == 0 and json.loads(one.out)["mean_wait_s"] == waits[1] != waits[0]
    again = escala_("predict", users, "--by", "user", "--out", out)
    assert (
        again.status == 0
        and "later jobs of 600" in again.out
        and f"--estimate model:{out}" in again.out
        and "user_shape" in again.out
    )


def test_one_that_was_interrupted_takes_its_replay_and_fits(
    escala_: Escala, users: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, begun = import_module("escala.fitting.predict"), list[int]()
    fitted, asked = module.fitted, ["predict", users, "--seed", "3", "--json", "--out"]
    whole = escala_(*asked, tmp_path / "whole")

    def counted(rows: Any, *given: Any) -> Any:
        begun.append(len(rows))
        if len(begun) == 3:
            raise KeyboardInterrupt
        return fitted(rows, *given)

    monkeypatch.setattr(module, "fitted", counted)
    ended = escala_(*asked, tmp_path / "out")
    assert ended.status == 130 and "pieces: 3) is kept beside" in ended.err and not (tmp_path / "out").exists(), (
        "the replay and two fits"
    )
    monkeypatch.setattr(import_module("escala.fitting.recorded"), "simulate", None)
    resumed = escala_(*asked, tmp_path / "out")
    assert resumed.status == 0 and "pieces kept from an interrupted run: 3" in resumed.err and len(begun) == 6, (
        resumed.err
    )
    assert resumed.out == whole.out
    for one in (tmp_path / "whole").iterdir():
        assert (tmp_path / "out" / one.name).read_bytes() == one.read_bytes()


def test_an_interrupted_comparison_does_not_go_on_with_another_model(
    escala_: Escala, users: Path, tmp_path: Path
) -> None:
    from escala.cli.replay import models_in

    assert escala_("predict", users, "--out", tmp_path / "model").status == 0
    told = {"estimate": f"model:{tmp_path / 'model'}", "predictors": ["last2"]}
    first = models_in(told)
    assert escala_("predict", users, "--by", "queue", "--out", tmp_path / "model").status == 0
    assert set(first) == set(models_in(told)) and first != models_in(told)


def test_tune_tries_a_model(escala_: Escala, users: Path, tmp_path: Path) -> None:
    model, policy = tmp_path / "model", tmp_path / "policy"
    long = tmp_path / "weeks.csv"
    habits(12, jobs=1200, days=80.0).jobs.select(
        "job_id", "submit_s", "runtime_s", "walltime_s", "cores", "user", "queue"
    ).write_csv(long)
    assert escala_("predict", long, "--platform", "1x8", "--out", model).status == 0
    asked = ("tune", long, "--platform", "1x8", "--after", "80%", "--predictors", f"model:{model}", "--searches", "1")
    told = escala_(*asked, "--out", policy, "--json")
    assert told.status == 0, told.err
    found = json.loads(told.out)
    assert any(f"=model:{model}" in step["name"] for step in found["steps"])
    assert escala_("simulate", long, "--platform", "1x8", "--scheduler", f"policy:{policy}").status == 0


BAD = {
    "--by mood": ("--by", "mood"),
    "no model": ("--estimate", "last2"),
    "share": ("--after", "0"),
    "platform": ("--platform", "nowhere"),
    "scheduler": ("--scheduler", "esy"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line(escala_: Escala, users: Path, tmp_path: Path, what: str) -> None:
    told = escala_("predict", users, *BAD[what], "--out", tmp_path / "model")
    assert told.status == 2 and len(told.err.strip().splitlines()) == 1 and told.err.startswith("error: ")
    assert not (tmp_path / "model").exists()
