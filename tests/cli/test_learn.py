"""Training, judging and the demo from the command line."""

from __future__ import annotations

import csv
import functools
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest

import escala
from escala.studies import demo
from escala.studies.lab.days import days_of, split
from tests.cli.program import Escala, Outcome

pytest.importorskip("stable_baselines3")

ENVIRONMENT = "escala/OffReservation-v0"


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated week for the cluster orion."""
    path = tmp_path_factory.mktemp("log") / "week.swf"
    escala.workload.write_swf(escala.workload.generate.grid5000(cluster="orion", days=7, seed=2), path)
    return path


def _json(outcome: Outcome) -> Any:
    assert outcome.status == 0, outcome.err
    assert outcome.err == ""
    return json.loads(outcome.out)


@pytest.mark.slow
@pytest.mark.learn
def test_train_then_evaluate(escala_: Escala, week: Path, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    verb = [
        "train",
        ENVIRONMENT,
        "--workload",
        week,
        "--platform",
        "orion",
        "--days",
        "4",
        "--steps",
        "8192",
        "--out",
        agent,
        "--json",
    ]
    done = _json(escala_(*verb))
    assert done["env_id"] == ENVIRONMENT and done["steps_done"] >= 8192 and done["workload"]["days"] == 4
    again = escala_(*verb)
    assert again.status == 2 and "--resume" in again.err, "a trained agent is not replaced unasked"
    judge = ["evaluate", agent, week, "--after", "4", "--runs", "2", "--baselines", "timeout:0,never"]
    judged = _json(escala_(*judge, "--json"))
    assert {row["policy"] for row in judged} == {"timeout:0", "never", "agent", "agent (argmax)"}
    days = {row["episodes"] for row in judged}
    assert len(days) == 1 and 1 <= days.pop() <= 4, "all policies on the same unseen days"
    waste = {row["policy"]: row["mean"] for row in judged if row["metric"] == "waste_j"}
    assert waste["never"] > waste["timeout:0"] > 0
    groups = [escala.workload.day_group(day) for day in days_of(escala.read_workload(week))[4:]]
    some, none = groups[0], min({1, 2, 3, 4, 5} - set(groups))
    of_group = _json(escala_(*judge, "--group", str(some), "--json"))
    assert {row["episodes"] for row in of_group} == {groups.count(some)} and groups.count(some) < len(groups)
    refused = escala_(*judge, "--group", str(none))
    assert (
        refused.status == 2
        and refused.err.count("\n") == 1
        and f"of group {none}" in refused.err
        and "--group" in refused.err
    )
    outcome = escala_(*judge, "--out", tmp_path / "judged")
    assert outcome.status == 0 and "against timeout:0" in outcome.out
    assert sorted(os.listdir(tmp_path / "judged")) == ["days.csv", "judged.csv", "manifest.json"]
    assert escala_("report", tmp_path / "judged", "--price", "0.2", "--currency", "EUR").status == 0
    page = (tmp_path / "judged" / "report.html").read_text(encoding="utf-8")
    assert "For the operator" in page and "Did not start" in page and "EUR" in page
    beside = _json(
        escala_(
            "compare",
            week,
            "--platform",
            "orion",
            "--schedulers",
            "saf",
            "--shutdowns",
            f"timeout:0,agent:{agent}",
            "--json",
        )
    )
    assert [row["policy"] for row in beside] == ["saf + timeout:0", f"saf + agent:{agent}"]
    assert beside[0]["waste_j"] != beside[1]["waste_j"]


@pytest.mark.learn
def test_what_a_killed_training_began_to_write_is_no_file_of_anybody_elses(
    escala_: Escala, week: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escala.agents.training.learning_curve.LEAST_S", math.inf)  # no curve, however slow the machine
    out = tmp_path / "agent"
    out.mkdir()
    (out / ".part-4194305-checkpoint.npz").touch()  # of a process that is over
    verb = [
        "train",
        ENVIRONMENT,
        "--workload",
        week,
        "--platform",
        "orion",
        "--days",
        "2",
        "--steps",
        "64",
        "--out",
        out,
    ]
    assert escala_(*verb).status == 0 and sorted(os.listdir(out)) == ["manifest.json", "weights.pt"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "weights.pt").touch()
    refused = escala_(*verb[:-1], tmp_path / "other")
    assert refused.status == 2 and "did not write" in refused.err


def test_a_training_that_is_ended_before_its_first_checkpoint_says_that_nothing_is_kept(
    escala_: Escala, week: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(escala, "train", ended)
    outcome = escala_("train", ENVIRONMENT, "--workload", week, "--platform", "orion", "--out", tmp_path / "agent")
    assert outcome.status == 130 and outcome.err == "error: interrupted; nothing was written\n"


@pytest.mark.learn
def test_train_learns_from_days_of_the_groups_named(escala_: Escala, week: Path, tmp_path: Path) -> None:
    groups = [escala.workload.day_group(day) for day in days_of(escala.read_workload(week))[:5]]
    verb = ["train", ENVIRONMENT, "--workload", week, "--platform", "orion", "--days", "5", "--steps", "64", "--json"]
    for chosen in ({groups[0]}, set(groups)):
        of = [text for group in chosen for text in ("--group", str(group))]
        done = _json(escala_(*verb, *of, "--out", tmp_path / f"agent{len(chosen)}"))
        assert done["workload"]["days"] == sum(group in chosen for group in groups)
    assert len(set(groups)) > 1


@pytest.mark.learn
def test_a_random_split_is_the_same_to_train_and_to_evaluate(escala_: Escala, week: Path, tmp_path: Path) -> None:
    """And that of `escala.studies.lab.days.split`. The held-out days are those not learnt from, whatever the seed of
    the training."""
    days = days_of(escala.read_workload(week))
    learnt, validated, held_out = split(len(days), "random", seed=3, train=4 / len(days), validation=0.25)
    assert held_out != list(range(4, len(days))), "another split than by time"
    of = ["--split", "random:3"]
    verb = [
        "train",
        ENVIRONMENT,
        "--workload",
        week,
        "--platform",
        "orion",
        "--steps",
        "64",
        "--seed",
        "5",
        "--out",
        tmp_path / "agent",
    ]
    done = _json(escala_(*verb, *of, "--days", "4", "--validation", "1", "--json"))
    for part, chosen in (("workload", learnt), ("validation_days", validated)):
        told = done[part]
        assert (told["first"], told["last"], told["days"]) == (days[chosen[0]].name, days[chosen[-1]].name, len(chosen))
        assert told["jobs"] == sum(len(days[k]) for k in chosen)
    judge = [
        "evaluate",
        tmp_path / "agent",
        week,
        "--runs",
        "1",
        "--baselines",
        "timeout:0",
        "--out",
        tmp_path / "judged",
    ]
    assert escala_(*judge, *of, "--after", "4").status == 0
    kept = json.loads((tmp_path / "agent" / "judged.json").read_text())["judgements"]
    assert [one["stands"] for one in kept] == ["apart"], "days drawn apart, among those that it learnt from"
    with (tmp_path / "judged" / "days.csv").open() as file:
        judged = [row["day"] for row in csv.DictReader(file) if row["policy"] == "timeout:0"]
    assert judged == [days[k].name for k in held_out]
    assert json.loads((tmp_path / "judged" / "manifest.json").read_text())["split"] == "random:3"


@pytest.mark.parametrize(
    ("how", "word"),
    [
        (["--split", "weekly"], "--split weekly: give time, random, or random:SEED"),
        (["--split", "random:"], "--split random:: give time, random, or random:SEED"),
        (["--split", "random:-1"], "--split random:-1: give time, random, or random:SEED"),
        (["--split", "time:2"], "--split time:2: give time, random, or random:SEED"),
        (["--split", "random"], "--split random: says which days are the first N: give --{} N, too"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_splits_are_refused(escala_: Escala, week: Path, tmp_path: Path, how: list[str], word: str) -> None:
    train = (
        "train",
        ENVIRONMENT,
        "--workload",
        week,
        "--platform",
        "orion",
        "--out",
        tmp_path / "agent",
        "--steps",
        "64",
    )
    for verb, option in ((train, "days"), (("evaluate", tmp_path / "agent", week), "after")):
        outcome = escala_(*verb, *how)
        assert outcome.status == 2 and outcome.out == "" and word.format(option) in outcome.err
        assert re.fullmatch(r"error: [^\n]+\n", outcome.err), outcome.err
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"--group": "6"}, "--group"),
        ({"ENV": "OffReservation"}, "escala/OffReservation-v0"),
        ({"--algorithm": "pppo"}, "ppo"),
        ({"--preset": "best"}, "tuned"),
        ({"--platform": "oroin"}, "orion"),
        ({"--workload": "nowhere.swf"}, "nowhere.swf"),
        ({"--out": "/proc/nowhere/agent"}, "cannot be written"),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else None,
)
def test_bad_trainings_are_refused(
    escala_: Escala, week: Path, tmp_path: Path, change: dict[str, str], word: str
) -> None:
    given = {
        "ENV": ENVIRONMENT,
        "--workload": str(week),
        "--platform": "orion",
        "--out": str(tmp_path / "agent"),
        "--steps": "64",
        **change,
    }
    outcome = escala_("train", given.pop("ENV"), *(text for pair in given.items() for text in pair))
    assert outcome.status == 2 and outcome.out == "" and word in outcome.err
    assert re.fullmatch(r"error: [^\n]+\n", outcome.err), outcome.err
    assert not os.listdir(tmp_path)


def test_only_an_agent_can_be_evaluated(escala_: Escala, week: Path, tmp_path: Path) -> None:
    outcome = escala_("evaluate", tmp_path, week)
    assert (
        outcome.status == 2
        and "no trained agent" in outcome.err
        and "Errno" not in outcome.err
        and outcome.err.count("\n") == 1
    )


@pytest.mark.slow
@pytest.mark.learn
def test_the_demo_does_the_main_job(escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On fewer of its weeks."""
    monkeypatch.setattr(demo, "built_in", functools.partial(demo.built_in, days=35.0))
    out = tmp_path / "demo"
    shown = escala_("demo", "--minutes", "0.05", "--out", out)
    assert shown.status == 0, shown.err
    for word in (
        "Who pays",
        "easy + never",
        "The promise",
        "Against easy + never: with waits no longer",
        "The trained agent",
        "report.html",
    ):
        assert word in shown.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 2 and not re.search(r"""(src|href)=["']https?:""", page), (
        "self-contained, with figures"
    )
    found = json.loads((out / "frontier.json").read_text())
    assert "saf + trained agent" in found["pairs"] and len(found["pairs"]) == 29
    trained = json.loads((out / "agent" / "manifest.json").read_text())
    assert trained["workload"]["days"] < 30, "on the days before the later weeks"
    assert escala.load_agent(out / "agent").env_id == ENVIRONMENT
    assert escala_("report", out / "agent", "--out", tmp_path / "agent.html").status == 0
    several = escala_("report", out, "--out", tmp_path / "again.html")
    assert several.status == 2 and "give one of its subfolders agent, policy" in several.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workload", "x.swf"], ["--platform"]),
        (["--platform", "orion"], ["--workload"]),
        (["--workload", "{week}", "--platform", "4x12:none"], ["at least 3 weeks"]),
        (["--currency", "EUR"], ["give --price too"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_demo_refuses_what_it_cannot_do(
    escala_: Escala, week: Path, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    outcome = escala_("demo", *(text.format(week=week) for text in arguments), "--out", tmp_path / "out")
    assert outcome.status == 2 and re.fullmatch(r"error: [^\n]+\n", outcome.err), outcome.err
    assert all(word in outcome.err for word in words)
    assert not os.listdir(tmp_path)


@pytest.mark.slow
@pytest.mark.learn
def test_a_team_is_a_scheduler_like_any_agent(escala_: Escala, tmp_path: Path) -> None:
    from escala.agents import train_team
    from escala.envs.slots.team.options import options_of

    train_team(
        agents=2, machines=1, load=0.7, lists=8, steps=1, seed=0, num_envs=4, out=tmp_path / "team", teacher=None
    )
    lists = options_of({"agents": 2, "load": 0.7, "lists": 1, "lists_seed": 3}).job_lists()
    log, machines = tmp_path / "log.parquet", tmp_path / "machines.json"
    lists.workload(0).jobs.write_parquet(log)
    machines.write_text(json.dumps(lists.platform.spec()), encoding="utf-8")
    names = f"sjf,agent:{tmp_path / 'team'}"
    rows = _json(escala_("compare", log, "--platform", machines, "--schedulers", names, "--json"))
    assert [row["policy"] for row in rows] == [f"{name} + never" for name in names.split(",")]
    theirs = escala.simulate(
        lists.workload(0), lists.platform, scheduler=escala.agents.load_team(tmp_path / "team").policy(sampled=False)
    )
    assert rows[1]["mean_wait_s"] == pytest.approx(theirs.summary()["mean_wait_s"])
    refused = escala_(
        "compare", log, "--platform", machines, "--schedulers", "sjf", "--shutdowns", f"never,agent:{tmp_path / 'team'}"
    )
    assert refused.status == 2 and "is a scheduler policy, given as shutdown" in refused.err
    refused = escala_("evaluate", tmp_path / "team", log)
    assert refused.status == 2 and "a team of several agents" in refused.err
