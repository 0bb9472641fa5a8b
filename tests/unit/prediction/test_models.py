"""The folder of a model, the names that tell it, and what is said of one that is not as it was written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.errors import EscalaError
from escala.policies.compose import scheduler, split_estimates
from escala.policies.queues import queue
from escala.policies.tuned import digests_in, rule_in
from escala.prediction.folder import folder_of
from escala.prediction.model import read_model
from escala.tuning.folder import with_models
from tests.unit.prediction.logs import PLATFORM, habits

pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def log() -> escala.Workload:
    return habits(7, jobs=500, days=16.0)


@pytest.fixture(scope="module")
def fitted(log: escala.Workload, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return escala.predict(log, PLATFORM).save(tmp_path_factory.mktemp("models") / "one")


@pytest.fixture
def folder(fitted: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(fitted, tmp_path / "model"))


def test_what_is_written_is_read(log: escala.Workload, fitted: Path) -> None:
    found = escala.predict(log, PLATFORM)
    model = read_model(f"model:{fitted}", fitted)
    assert (model.features, model.columns, model.dated) == (found.model.features, found.model.columns, True)
    assert [(s.since_s, s.jobs, s.text) for s in model.stages] == [
        (s.since_s, s.jobs, s.text) for s in found.model.stages
    ]
    assert model.name == f"model:{fitted}"
    told = json.loads((fitted / "manifest.json").read_text())
    assert told["workload"]["sha256"] == log.digest() and set(told["files"]) > {"trees-1.txt", "accuracy.json"}
    assert json.loads((fitted / "accuracy.json").read_text())["accuracy"]["model"] == found.accuracy["model"]
    found.save(fitted.parent / "again")
    found.save(fitted.parent / "again")  # its own untouched output is replaced
    with pytest.raises(EscalaError, match="holds files that Escala did not write"):
        (fitted.parent / "else").mkdir()
        (fitted.parent / "else" / "file").touch()
        found.save(fitted.parent / "else")


def _manifest(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "another version": (_manifest(format=99), "format 99 is not 1: fit the model again with this version"),
    "another kind": (_manifest(kind="policy"), "is no model of run times"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "holds no model of run times"),
    "no JSON": (lambda folder: (folder / "manifest.json").write_text("{"), "not valid JSON"),
    "a list": (lambda folder: (folder / "manifest.json").write_text("[]"), "is no model of run times"),
    "other trees": (
        lambda folder: (folder / "trees-2.txt").write_text("tree"),
        "is not what escala predict wrote there",
    ),
    "trees that are gone": (lambda folder: (folder / "trees-1.txt").unlink(), "is not there"),
    "no hashes": (_manifest(files=None), "is not what escala predict wrote there"),
    "unknown features": (_manifest(features=["mood"]), "features or columns that this version does not know"),
    "features twice": (
        _manifest(features=["request", "request"]),
        "features or columns that this version does not know",
    ),
    "unknown columns": (_manifest(columns=["shoe size"]), "features or columns that this version does not know"),
    "other columns": (_manifest(columns=["queue"]), "its features need other columns"),
    "hours without dates": (_manifest(dated=False), "its features need other columns"),
    "no stages": (_manifest(stages=[]), r"stages are \[\]"),
    "a stage elsewhere": (_manifest(stages=[{"file": "../x.txt", "since_s": 0.0, "jobs": 1}]), "a stage is"),
    "a stage of no time": (_manifest(stages=[{"file": "trees-1.txt", "since_s": None, "jobs": 1}]), "a stage is"),
    "stages in disorder": (
        lambda folder: _manifest(stages=json.loads((folder / "manifest.json").read_text())["stages"][::-1])(folder),
        "not in the order of their times",
    ),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_folder_is_one_line(log: escala.Workload, folder: Path, how: str) -> None:
    damage, words = DAMAGED[how]
    damage(folder)
    with pytest.raises(EscalaError, match=words) as caught:
        escala.simulate(log, PLATFORM, estimate=f"model:{folder}")
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["model:", "model:/nowhere/at/all", "easy:estimate=model:", "easy-sjf:order_estimate=model:nowhere"]
)
def test_a_name_of_no_model_is_one_line(log: escala.Workload, name: str) -> None:
    with pytest.raises(EscalaError, match=r"names no folder|holds no model"):
        escala.simulate(log, PLATFORM, **({"estimate": name} if name.startswith("model") else {"scheduler": name}))


def test_a_log_without_the_columns_is_refused(log: escala.Workload, fitted: Path) -> None:
    nameless = log.with_jobs(log.jobs.with_columns(user=None))
    with pytest.raises(
        EscalaError, match="goes by the column 'user', of which workload 'habits' says nothing"
    ) as caught:
        escala.simulate(nameless, PLATFORM, order_estimate=f"model:{fitted}")
    assert "\n" not in str(caught.value)


def test_it_is_asked_wherever_an_estimate_is(log: escala.Workload, fitted: Path) -> None:
    told = f"model:{fitted}"
    names = ("easy", "easy-sjf", "easy:queue=saf:guard=3h", "conservative", "easy:queue=xfactor", "sjf", "tetris")
    for name in names:
        by_option = escala.simulate(log, PLATFORM, name, estimate=told)
        by_name = escala.simulate(log, PLATFORM, f"{name}:estimate={told}")
        assert by_option.jobs.equals(by_name.jobs) and by_option.jobs["estimate_s"].null_count() == 0
        shorter = by_option.jobs["estimate_s"] < by_option.jobs["walltime_s"]
        assert shorter.mean() > 0.9 and by_option.manifest["options"]["estimate"] == told and by_option.knows == ""  # type: ignore[operator]
        order = escala.simulate(log, PLATFORM, f"{name}:order_estimate={told}").jobs
        assert "estimate_s" not in order.columns
    plain, ordered = (
        escala.simulate(log, PLATFORM, f"easy:queue=sjf{more}").jobs for more in ("", f":order_estimate={told}")
    )
    assert not plain.equals(ordered)
    both = escala.compare(log, PLATFORM, ["easy", f"easy:estimate={told}"], estimate=told, jobs=2).results
    assert len({result.summary()["mean_wait_s"] for result in both.values()}) == 1


def test_paths_may_hold_colons(log: escala.Workload, fitted: Path, tmp_path: Path) -> None:
    odd = Path(shutil.copytree(fitted, tmp_path / "a:b" / "c=d:e"))
    name = f"easy:queue=saf:estimate=model:{odd}:guard=3h:order_estimate=last2"
    assert split_estimates(name) == ("easy:queue=saf:guard=3h", {"estimate": f"model:{odd}", "order_estimate": "last2"})
    made = scheduler(name)
    assert (made.guard_s, made.estimate, made.order_estimate) == (10800.0, f"model:{odd}", "last2")
    assert digests_in(name) == {
        str(odd / "manifest.json"): next(iter(digests_in(f"easy:estimate=model:{fitted}").values()))
    }
    assert queue("saf", 10800.0) == "easy:queue=saf:guard=3h" and folder_of(f"model:{odd}") == odd


@pytest.mark.parametrize("by", ["name", "option"])
def test_a_changed_model_is_noticed(log: escala.Workload, folder: Path, by: str) -> None:
    told = f"model:{folder}"
    how = {"scheduler": f"easy:estimate={told}"} if by == "name" else {"estimate": told}
    first = escala.simulate(log, PLATFORM, **how)
    assert list(first.manifest["policy_files"]) == [str(folder / "manifest.json")]
    assert escala.rerun(first, log).jobs.equals(first.jobs)
    escala.predict(log, PLATFORM, seed=1, by=("user",)).save(folder)
    with pytest.raises(EscalaError, match=r"manifest\.json is not what it was in that run"):
        escala.rerun(first, log)


def test_a_policy_folder_takes_its_model_along(fitted: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.mkdir()
    name = with_models(f"easy:queue=saf:guard=24h:order_estimate=model:{fitted}", policy)
    assert (
        name == "easy:queue=saf:guard=24h:order_estimate=model:model-1"
        and with_models("easy:guard=3h", policy) == "easy:guard=3h"
    )
    (policy / "policy.toml").write_text(
        'format = 1\nformula = "easy:queue=saf"\nguard = "24h"\norder_estimate = "model:model-1"\n', encoding="utf-8"
    )
    moved = policy.rename(tmp_path / "moved")
    rule = rule_in(f"policy:{moved}")
    assert rule == f"easy:queue=saf:guard=24h:order_estimate=model:{moved / 'model-1'}"
    assert scheduler(f"policy:{moved}").order_estimate == f"model:{moved / 'model-1'}"
    assert set(digests_in(f"policy:{moved}")) == {str(moved / "policy.toml"), str(moved / "model-1" / "manifest.json")}


def test_names_are_checked_without_what_is_slow(fitted: Path) -> None:
    code = (
        "import sys; from escala.estimates import check_estimate; import escala.prediction.folder; "
        f"check_estimate('model:{fitted}', 'estimate'); print(sorted({{'numba', 'lightgbm', 'polars'}} & "
        "set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_model_needs_no_lightgbm(log: escala.Workload, fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert len(escala.simulate(log, PLATFORM, estimate=f"model:{fitted}").jobs) == len(log)
