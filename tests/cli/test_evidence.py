"""A trained agent keeps the figures of the days that judged it, beside those of rules, and its card shows them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

import escala
from escala.errors import EscalaError
from escala.sharing import card, contents, evidence
from escala.writing.sealing import JUDGED, foreign, sealed_document, sign
from tests.cli.program import Escala

AGENTS = Path(__file__).parents[2] / "docs" / "studies"
OF_QUEUES = AGENTS / "deepscheduler2020" / "agents" / "orion-0.95-0"
OF_SLOTS = AGENTS / "grid2019" / "agents" / "imitated-100-0"
TRAINED = {
    "sampled": False,
    "workload": {"days": 20, "jobs": 400, "first": "month#0", "last": "month#19"},
    "validation_days": {"days": 3, "jobs": 60, "first": "month#20", "last": "month#22"},
}
GREEDY = "agent (argmax)"


class Day(NamedTuple):
    name: str
    jobs: int

    def __len__(self) -> int:
        return self.jobs


def _days(*numbers: int, log: str = "month") -> list[Any]:
    return [Day(f"{log}#{number}", 10) for number in numbers]


def _judged(change: float = -0.05) -> pl.DataFrame:
    rows = [("timeout:0", "", 4e6, None, None, None), ("oracle", "runtimes", 3.5e6, -0.125, -0.2, -0.1)]
    rows += [(GREEDY, "", 3.8e6, change, change - 0.02, change + 0.01)]
    names = ["policy", "knows", "mean", "change", "change_low", "change_high"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(metric=pl.lit("energy_j"))


def _judgement(*numbers: int, change: float = -0.05, log: str = "month", **about: Any) -> dict[str, Any]:
    told = {"window": "drain", "platform": "orion", "escala": "0.1.0", **about}
    found: dict[str, Any] = evidence.of_days(_judged(change), TRAINED, log, _days(*numbers, log=log), **told)
    return found


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent's folder that may be written to."""
    return Path(shutil.copytree(OF_QUEUES, tmp_path / "agent"))


def _weights(folder: Path) -> str:
    return str(json.loads((folder / "manifest.json").read_text())["weights_sha256"])


@pytest.mark.parametrize(
    ("numbers", "log", "within", "stands"),
    [
        ((23, 24), "month", 0, "later"),
        ((19, 23), "month", 1, "within"),
        ((20, 22), "month", 2, "within"),
        ((0,), "other", 0, "other"),
    ],
)
def test_days_are_told_from_those_that_it_learnt_from(
    numbers: tuple[int, ...], log: str, within: int, stands: str
) -> None:
    found = _judgement(*numbers, log=log)
    assert (found["within"], found["stands"]) == (within, stands)
    said = evidence.told(found)
    assert ("may have seen them" in said) is (within > 0)
    assert ("All of them come after the last that it learnt from." in said) is (stands == "later")


@pytest.mark.parametrize(
    ("others", "within"),
    [
        ((0, 4, 9), 0),  # all that it learnt from, the last for validation
        ((0, 4), 2),
        ((0, 4, 8, 9), 2),
        ((0, 3, 9), 2),
        ((1, 4, 9), 2),
    ],
)
def test_days_drawn_among_those_that_it_learnt_from_are_not_seen(others: tuple[int, ...], within: int) -> None:
    """By the numbers of days and jobs, the first and the last."""
    trained = {
        "workload": {"days": 2, "jobs": 20, "first": "month#0", "last": "month#4"},
        "validation_days": {"days": 1, "jobs": 10, "first": "month#9", "last": "month#9"},
    }
    how = {"window": "drain", "platform": "orion", "escala": "0.1.0"}
    found = evidence.of_days(_judged(), trained, "month", _days(1, 2), _days(*others), **how)
    assert (found["within"], "It learnt from none of them." in evidence.told(found)) == (within, not within)


@pytest.mark.parametrize(
    ("workload", "before", "stands"),
    [
        ({"name": "month", "source": "month.swf", "jobs": 400}, 400, "later"),
        ({"name": "month", "source": "month.swf", "jobs": 400}, 399, "unknown"),
        ({"name": "other", "source": "other.swf", "jobs": 4}, 400, "other"),
        ({"path": "month.swf"}, 400, "unknown"),
        ({"days": 3, "jobs": 60, "first": "a", "last": "b"}, 400, "unknown"),
    ],
)
def test_a_log_that_goes_on_is_known_by_its_jobs(workload: dict[str, Any], before: int, stands: str) -> None:
    assert evidence._standing({"workload": workload}, "month", ["month#23"], before) == (0, stands)


def test_a_card_has_what_was_judged(agent: Path) -> None:
    none = card(contents(agent), "you/agent")
    assert "The folder keeps no figures from later jobs." in none and "`escala evaluate DIR LOG --after N`" in none
    path = evidence.keep(agent, _judgement(23, 24, power="power: orion's own watts"), _weights(agent))
    evidence.keep(agent, _judgement(5, split="random:1"), _weights(agent))
    text = card(contents(agent), "you/agent")
    assert path == agent / JUDGED and "no figures" not in text and "power: orion's own watts" in text
    assert (
        "Judged with Escala 0.1.0 on 2 days of month (month#23 to month#24, 20 jobs) on orion, each run to its last "
        "job. All of them come after the last that it learnt from. Means, and in brackets the change against "
        "timeout:0 with its 95 % interval over days; bold: as it acts."
    ) in text
    assert "| timeout:0 | 4e+06 |\n| oracle (knows runtimes) | 3.5e+06 (-12.5 % [-20.0, -10.0]) |\n" in text
    assert f"| **{GREEDY}** | 3.8e+06 (-5.0 % [-7.0, -4.0]) |" in text
    assert "1 of them lie between" in text and "(days drawn by random:1)" in text
    assert text.index("All of them come after") < text.index("may have seen them"), "unseen days first"
    assert "Its weights were chosen on 1429 other jobs of 47 days." in text


def test_days_that_it_has_surely_not_seen_come_first() -> None:
    """A log of another name may be a renamed copy of its own."""
    kept = [{"stands": stands, "k": k} for k, stands in enumerate(("within", "later", "other", "unknown", "apart"))]
    assert [one["k"] for one in evidence.in_order(kept)] == [4, 1, 2, 3, 0]


def test_the_same_days_count_once_and_other_weights_not_at_all(agent: Path) -> None:
    weights = _weights(agent)
    for change in (-0.05, -0.06):
        evidence.keep(agent, _judgement(23, 24, change=change), weights)
    for number in range(30, 30 + evidence.MOST):
        evidence.keep(agent, _judgement(number), weights)
    kept = evidence.kept(agent)
    assert len(kept) == evidence.MOST and kept[-1]["first"] == f"month#{29 + evidence.MOST}"
    evidence.keep(agent, _judgement(23, 24, change=-0.06), weights)
    evidence.keep(agent, _judgement(23, 24, change=-0.07), weights)
    same = [one for one in evidence.kept(agent) if one["first"] == "month#23"]
    assert [one["figures"][2]["change"] for one in same] == [-0.07]
    manifest = json.loads((agent / "manifest.json").read_text())
    (agent / "manifest.json").write_text(json.dumps({**manifest, "weights_sha256": "0" * 64}))
    assert evidence.kept(agent) == []
    with pytest.raises(EscalaError, match="holds other weights than those that were judged"):
        evidence.keep(agent, _judgement(23), weights)


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"format": 1, "weights_sha256": "0", "judgements": []}'])
def test_a_damaged_file_is_one_line(agent: Path, damage: str) -> None:
    (agent / JUDGED).write_text(damage)
    with pytest.raises(EscalaError) as caught:
        card(contents(agent), "you/agent")
    assert str(agent / JUDGED) in str(caught.value) and "\n" not in str(caught.value)


def test_agents_that_evaluate_does_not_judge_name_another_way() -> None:
    text = card(contents(OF_SLOTS), "you/slots")
    assert "`escala compare LOG --platform SPEC --schedulers easy,agent:DIR`" in text and "--after N" not in text


def test_the_file_is_escalas_own(agent: Path) -> None:
    """The agent can be saved anew beside it; what was sent has to come back as it was sent."""
    sign(agent, "agent")
    evidence.keep(agent, _judgement(23), _weights(agent))
    assert foreign(agent, "agent") is None
    sign(agent, "policy push")
    assert foreign(agent, "policy push", strict=True) is None
    told = json.loads((agent / JUDGED).read_text())
    told["judgements"][0]["figures"][2]["change"] = -0.5
    (agent / JUDGED).write_text(json.dumps(told))
    assert JUDGED in str(foreign(agent, "policy push"))
    (agent / JUDGED).write_text(json.dumps(sealed_document(told)))
    assert foreign(agent, "policy push") is None and JUDGED in str(foreign(agent, "policy push", strict=True))


@pytest.mark.learn
def test_evaluate_keeps_it_and_export_takes_it_along(escala_: Escala, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    week, agent = tmp_path / "week.swf", tmp_path / "agent"
    escala.workload.write_swf(escala.workload.generate.grid5000(cluster="orion", days=6, seed=2), week)
    days = escala.read_workload(week).split_days()
    asked: dict[str, Any] = {"generations": 1, "population": 4, "seed": 0, "stretch_cost": 0.15}
    escala.agents.search(days[:2], "orion", **asked, window="drain", out=agent)
    judge = ["evaluate", agent, week, "--after", "3", "--runs", "1", "--baselines", "timeout:0"]
    done = escala_(*judge)
    assert done.status == 0 and f"kept with the agent, for its card: {agent / JUDGED}" in done.out
    (kept,) = evidence.kept(agent)
    rows = json.loads(escala_(*judge, "--json").out)
    acts = "agent" if escala.load_agent(agent).sampled else GREEDY
    mean = next(row for row in rows if (row["policy"], row["metric"]) == (acts, "energy_j"))
    text = card(contents(agent), "you/agent")
    assert kept["stands"] == "later" and kept["acts"] == acts and "a preset, not measured" in text
    low, change, high = (100 * mean[name] for name in ("change_low", "change", "change_high"))
    assert f"| **{acts}** | {mean['mean']:.6g} ({change:+.1f} % [{low:+.1f}, {high:+.1f}])" in text
    assert escala_("export", agent, "--out", tmp_path / "exported").status == 0
    assert evidence.kept(tmp_path / "exported") == [kept]
    (agent / JUDGED).unlink()
    (agent / JUDGED).mkdir()
    other = escala_(*judge)
    assert other.status == 0 and "remark: the judgement is not kept with the agent: " in other.err
