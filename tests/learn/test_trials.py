"""Trainings side by side: each agent is that of `train` alone, whatever the engine; what has ended is not trained
again."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from escala import read_platform
from escala.agents import checkpoint, evaluate, load_agent, proposals, train, trials
from escala.campaigns import as_text
from escala.engines import on_slurm
from escala.errors import EscalaError
from tests.learn.small import days, equal

pytestmark = pytest.mark.learn
OFF = "escala/OffReservation-v0"
HOW: dict[str, Any] = {"num_envs": 4, "learn": {"n_steps": 16, "batch_size": 64}, "steps": 256}


def _several(out: Path, on: str = "local:1", **more: Any) -> pl.DataFrame:
    given: dict[str, Any] = {"presets": ["tuned", "printed"], "seeds": [1, 2], "judged": days()[5:]}
    return trials.trials(OFF, days()[:4], "orion", out=out, on=on, **{**given, **HOW, **more})


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pl.DataFrame]:
    out = tmp_path_factory.mktemp("trials") / "out"
    return out, _several(out)


def _as_before(table: pl.DataFrame, out: Path, here: tuple[Path, pl.DataFrame]) -> None:
    """A table of some of the trainings, and its agents, are those that one process made."""
    own = here[1].filter(pl.col("agent").is_in(table["agent"].to_list()))
    assert len(table) > 1 and table.drop("train_s").equals(own.drop("train_s"))
    for name in table["agent"]:
        assert equal(load_agent(out / name), load_agent(here[0] / name))


def test_each_is_the_agent_of_a_training_alone_judged_as_evaluate_judges(here: tuple[Path, pl.DataFrame]) -> None:
    out, table = here
    assert table.select("preset", "seed").rows() == [("tuned", 1), ("tuned", 2), ("printed", 1), ("printed", 2)]
    assert (
        table["error"].null_count() == 4
        and pl.read_csv(out / trials.TABLE)["agent"].to_list() == table["agent"].to_list()
    )
    alone = train(OFF, days()[:4], "orion", preset="printed", seed=2, **HOW)
    assert equal(load_agent(out / "printed-seed-2"), alone)
    sampled = alone.manifest["sampled"]
    played = evaluate(alone, days()[5:], "orion", runs=4 if sampled else 1, argmax=not sampled)
    own = played.filter(policy="agent" if sampled else "agent (argmax)")
    for name in trials.JUDGED:
        assert table[name][3] == pytest.approx(np.mean(own[name].to_numpy()), rel=1e-12)
    assert table["mean_wait_s"].n_unique() > 1


def test_settings_are_trials_too(tmp_path: Path) -> None:
    """Every value with every other; each is the training with these settings alone, and nothing else may go on in its
    folder."""
    settings = {"learning_rate": [0.0, 0.01], "n_epochs": [2]}
    given: dict[str, Any] = {"presets": ["tuned"], "seeds": [1], "judged": []}
    table = _several(tmp_path / "out", **given, settings=settings)
    assert table.select("learning_rate", "n_epochs", "error").rows() == [(0.0, 2, None), (0.01, 2, None)]
    name = "tuned-learning_rate-0.01-n_epochs-2-seed-1"
    assert table["agent"][1] == name
    alone = train(
        OFF,
        days()[:4],
        "orion",
        preset="tuned",
        seed=1,
        **{**HOW, "learn": {**HOW["learn"], "learning_rate": 0.01, "n_epochs": 2}},
    )
    assert equal(load_agent(tmp_path / "out" / name), alone)
    assert not equal(alone, load_agent(tmp_path / "out" / str(table["agent"][0])))
    job = trials.Training(OFF, days()[:4], "orion", [], HOW)
    trial = trials.Trial("tuned", 1, tmp_path / "out" / name, {"learning_rate": 0.01, "n_epochs": 2})
    assert trials.Training.read(job.written([trial]))[1] == [trial] and "error" not in job(trial)
    other = trials.Trial("tuned", 1, trial.folder, {"learning_rate": 0.02})
    assert "holds an agent of learning_rate 0.01, not 0.02" in job(other)["error"] and job.key(other) != job.key(trial)


def test_optuna_proposes_settings_and_the_same_on_any_engine(tmp_path: Path) -> None:
    """What is proposed goes by what the proposals before came to; gone on with, nothing is trained again."""
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install '.[optuna]'")
    settings = {"learning_rate": "0.0001..0.1", "n_epochs": "1..4", "gamma": [0.9, 0.99]}
    given: dict[str, Any] = {
        "presets": ["tuned"],
        "seeds": [3, 4],
        "judged": [],
        "settings": settings,
        "validation": days()[4:],
    }
    table = _several(tmp_path / "out", **given, n_trials=5)
    assert len(table) == 10 and table["error"].null_count() == 10 and table["learning_rate"].n_unique() == 5
    assert table["learning_rate"].is_between(0.0001, 0.1).all() and set(table["n_epochs"]) <= {1, 2, 3, 4}
    looks = [
        max(value for _, value in load_agent(tmp_path / "out" / name).manifest["validation"]) for name in table["agent"]
    ]
    assert table["validation_return"].to_list() == looks
    more = _several(tmp_path / "out", "local:2", **given, n_trials=6, resume=True)
    assert more.drop("train_s").head(10).equals(table.drop("train_s")) and more["train_s"][0] == table["train_s"][0]
    found = proposals.best(more.to_dicts(), list(settings), "validation_return")
    assert found is not None and found[1] == max(
        more.group_by(list(settings)).agg(pl.col("validation_return").mean())["validation_return"]
    )


def test_what_is_proposed_goes_by_what_was_found() -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed: pip install '.[optuna]'")
    late: list[float] = []
    for seed in range(3):
        told: list[float | None] = []
        away: list[float] = []
        for some in proposals.proposed({"x": "0.001..1", "n": "1..9"}, 60, seed, told):
            each = [abs(math.log10(one["x"] / 0.02)) for one in some]
            away += each
            told += [None if one["n"] == 9 else -far for one, far in zip(some, each, strict=True)]
        late += away[30:]
    assert len(late) == 90 and np.median(late) < 0.5, (
        "0.75, give or take 0.06, if all were drawn alike over three powers of ten"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": {"gamma": "0.9..0.99"}}, "settings: gamma=0.9..0.99 is a span: say how many settings to propose"),
        ({"settings": {"gamma": "0.9..x"}, "n_trials": 2}, "'0.9..x' is no span: give LOW..HIGH"),
        ({"settings": {"gamma": "0.9..0.9"}, "n_trials": 2}, "the lower end comes first"),
        ({"settings": {"gama": "0.9..0.99"}, "n_trials": 2}, "no algorithm has a setting 'gama'"),
        ({"settings": {"gamma": [0.9]}, "n_trials": 2}, "say from what"),
        ({"settings": {"gamma": "0.9..0.99"}, "n_trials": 0}, "give a whole number of at least 1"),
        (
            {"settings": {"gamma": "0.9..0.99"}, "n_trials": 2, "presets": ["tuned", "printed"]},
            "presets tuned, printed: settings are",
        ),
    ],
)
def test_nothing_to_propose_is_one_line(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(EscalaError, match=re.escape(said)):
        _several(tmp_path / "out", **{"presets": ["tuned"], **given})
    assert not (tmp_path / "out").exists()


def test_two_processes_give_the_same_agents(here: tuple[Path, pl.DataFrame], tmp_path: Path) -> None:
    table = _several(tmp_path / "out", "local:2", seeds=[1])
    _as_before(table, tmp_path / "out", here)


@pytest.mark.long
def test_slurm_gives_the_same_agents_and_a_task_that_is_ended_is_named(
    here: tuple[Path, pl.DataFrame], tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    (slurm / "deadly").write_text("printed")
    table = _several(tmp_path / "out", "slurm:tasks=2:partition=short")
    assert table["error"].to_list() == [None, None, *[f"{on_slurm.ENDED}: out of memory"] * 2]
    (slurm / "deadly").unlink()
    table = _several(tmp_path / "out", "slurm", resume=True)
    _as_before(table, tmp_path / "out", here)
    assert len(table) == 4
    assert not list((tmp_path / "out").glob(".slurm*")) and "--partition=short" in (slurm / "calls").read_text()


def test_a_training_whose_process_was_ended_goes_on_from_its_checkpoint(
    here: tuple[Path, pl.DataFrame], tmp_path: Path
) -> None:
    def end(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    trial = trials.Trial("printed", 2, tmp_path / "printed-seed-2")
    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "EVERY_S", 0.0)
        train(OFF, days()[:4], "orion", preset="printed", seed=2, out=trial.folder, progress=end, **HOW)
    assert (trial.folder / checkpoint.FILE).is_file()
    begun: list[bool] = []
    own = trials.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "train", lambda *given, **how: (begun.append(how["resume"]), own(*given, **how))[1])
        assert "error" not in trials.Training(OFF, days()[:4], "orion", [], HOW)(trial)
    assert begun == [True] and equal(load_agent(trial.folder), load_agent(here[0] / "printed-seed-2"))


def test_what_is_trained_is_the_same_as_text() -> None:
    machine = read_platform("orion")
    how = {
        "validation": days()[4:],
        "learn": {"n_steps": 32},
        "teacher": [(1, 2)],
        "minutes": None,
        "clip": np.float64(0.5),
    }
    job = trials.Training(OFF, days()[:4], machine, days()[4:], how)
    again, (trial,) = trials.Training.read(job.written([trials.Trial("tuned", 1, Path("out"))]))
    assert trial == trials.Trial("tuned", 1, Path("out")) and again.platform == machine and again.env_id == OFF
    for one, other in zip([*job.workload, *job.judged], [*again.workload, *again.judged], strict=True):
        assert one.jobs.equals(other.jobs) and one.jobs.schema == other.jobs.schema
        assert all(getattr(one, name) == getattr(other, name) for name in as_text.ABOUT)
    assert again.how["validation"][0] is again.judged[0], "what is there twice is written once"
    assert {**again.how, "validation": []} == {**how, "validation": [], "teacher": [[1, 2]], "clip": 0.5}
    assert again.key(trial) == job.key(trial) != trials.Training(OFF, days()[:3], machine, days()[4:], how).key(trial)
    with pytest.raises(EscalaError, match="cannot be sent to another machine as text"):
        trials.Training(OFF, days()[:4], machine, [], {"progress": print}).written([trial])


@pytest.mark.slurm
@pytest.mark.slow
def test_a_real_slurm_gives_the_same_agents(
    here: tuple[Path, pl.DataFrame], tmp_path: Path, on_real_slurm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    table = _several(tmp_path / "out", "slurm:tasks=2", seeds=[1])
    _as_before(table, tmp_path / "out", here)


@pytest.mark.slow
def test_ray_gives_the_same_agents(here: tuple[Path, pl.DataFrame], tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
    table = _several(tmp_path / "out", "ray", seeds=[1])
    _as_before(table, tmp_path / "out", here)


def test_what_has_ended_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _several(tmp_path / "out", presets=["tuned"], seeds=[1], judged=[])
    with pytest.raises(EscalaError, match="holds files already"):
        _several(tmp_path / "out")
    made: list[int] = []
    own = trials.train
    monkeypatch.setattr(trials, "train", lambda *given, **how: (made.append(how["seed"]), own(*given, **how))[1])
    table = _several(tmp_path / "out", presets=["tuned"], resume=True)
    assert made == [2] and table["decisions"].null_count() == 0 and table["energy_j"].null_count() == 0
    other = _several(tmp_path / "out", presets=["tuned"], seeds=[1], resume=True, steps=320)
    assert "holds an agent of steps 256, not 320" in other["error"][0]


def test_a_training_that_fails_is_named_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = trials.train

    def some(*given: Any, **how: Any) -> Any:
        if how["seed"] == 1:
            raise ValueError("a bad day\nof two lines")
        return own(*given, **how)

    monkeypatch.setattr(trials, "train", some)
    table = _several(tmp_path / "out", presets=["tuned"], judged=[])
    assert table["error"].to_list()[0].startswith("ValueError: a bad day") and "\n" not in table["error"][0]
    assert table["error"][1] is None and table["decisions"][1] >= 256 and "energy_j" not in table.columns


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"presets": []}, "presets is an empty list"),
        ({"seeds": [1, 1]}, "seeds names '1' twice"),
        ({"presets": ["tunde"]}, "unknown preset"),
        ({"settings": {"learning": [1]}}, "no algorithm has a setting 'learning'"),
        ({"settings": {"gamma": [0.9, 1.1]}}, "gamma=1.1: give a number from 0 to 1"),
        ({"settings": {"gamma": []}}, "settings: gamma is an empty list"),
        ({"settings": {"gamma": 0.9}}, "settings: gamma is 0.9: give a list"),
        ({"settings": {"gamma": [0.9, 0.9]}}, "gamma names '0.9' twice"),
        ({"on": "rey"}, "unknown engine"),
        ({"on": "slurm:array=2"}, "array is the engine's own"),
    ],
)
def test_contradictions_are_one_line(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    with pytest.raises(EscalaError, match=said):
        _several(tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()
