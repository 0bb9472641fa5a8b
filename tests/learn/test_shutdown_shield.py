"""A learnt shutdown policy behind a shield: what it chooses counts as long as a look-ahead by a base does not find it
much worse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.cli.app import run
from escala.envs.rjms import off_reservation
from escala.envs.rjms.shield_ahead import SwitchAhead
from escala.envs.shield import shielded
from escala.envs.shutdown_shield import BASES
from escala.errors import EscalaError
from escala.workload import generate, write_swf

pytestmark = pytest.mark.learn

AGENTS = Path(__file__).parents[2] / "docs" / "studies" / "deepshutdown2020" / "agents"
PLATFORM = "16x1:taurus"
IDLE_W = 95.0  # of a node of one core


class Planted:
    """An agent that was never trained: it chooses as it is made to."""

    env_id = "escala/OffReservation-v0"
    name = "planted"

    def __init__(self, choose: Callable[[int], int], **options: Any) -> None:
        shaped = off_reservation.options_of(options)
        actions = shaped.actions(escala.read_platform(PLATFORM))
        self.env_options, self._choice = options, choose(actions)
        self.manifest = {"observation_shape": list(shaped.shape), "actions": actions}

    def act(self, observation: Any, mask: Any, random: Any) -> Any:
        return np.array([self._choice])


def _all_off() -> Planted:
    """Keeps every node off that it can."""
    return Planted(lambda actions: actions - 1, action="count", guard="none")


def _never_wakes() -> Planted:
    return Planted(lambda _: 0, action="wake", guard="none")


class Asked:
    """A shutdown policy of the kernel's, with a decision whenever an agent would be asked."""

    name, before_scheduler, period_s, at_events = "asked", True, 60.0, True

    def __init__(self, beneath: str) -> None:
        self.beneath = beneath

    def decide(self, view: Any, act: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def log() -> escala.Workload:
    return generate.lublin(jobs=60, cores=16, load=0.5, seed=1)


def _cost(result: escala.Result) -> float:
    """Joules wasted, and each core that waits at the idle power of a core: the shield's measure with price=1."""
    return float(result.summary()["waste_j"]) + IDLE_W * float((result.jobs["cores"] * result.jobs["wait_s"]).sum())


@pytest.mark.parametrize("base", ["timeout:300", "hold:0.1"])
@pytest.mark.parametrize("bad", [_all_off, _never_wakes])
def test_a_bad_agent_costs_no_more_than_the_base_and_the_margin(
    bad: Callable[[], Planted], base: str, log: escala.Workload
) -> None:
    """The margin of a choice is one for the whole run."""
    if bad is _all_off:
        with pytest.raises(EscalaError, match="jobs wait and nothing will ever happen again"):
            escala.simulate(log, PLATFORM, "easy", escala.envs.learnt.LearntShutdown(bad(), False))
    alone = _cost(escala.simulate(log, PLATFORM, "easy", base))
    found = {}
    for margin in (0.0, 0.3):
        result = escala.simulate(
            log, PLATFORM, "easy", shielded(bad(), sampled=False, base=base, price=1.0, margin=margin)
        )
        counts = result.manifest["counts"]
        assert 0 < counts["overruled"] < counts["unlike"] < counts["choices"]
        found[margin] = _cost(result)
    assert found[0.0] < 1.02 * alone  # the futures are sampled
    assert found[0.0] < found[0.3] < 1.3 * alone


def test_the_same_again_and_by_any_name_of_the_scheduler(log: escala.Workload) -> None:
    some = log.head(20)
    first, again = (escala.simulate(some, PLATFORM, "saf", shielded(_all_off(), seed=3)) for _ in range(2))
    assert first.jobs.equals(again.jobs) and first.manifest["counts"] == again.manifest["counts"]
    for scheduler in ("fcfs", "sjf-fit", "wfp3", "conservative", "easy:queue=saf:guard=2h", "rollout:2"):
        result = escala.simulate(log.head(10), PLATFORM, scheduler, shielded(_all_off(), price=1.0, futures=4))
        assert result.jobs["state"].to_list() == ["COMPLETED"] * 10 or result.jobs["start_s"].null_count() == 0


@pytest.mark.parametrize(
    "base", ["never", "timeout:300", "timeout:60+2", "proportional:0.5", "hold:0.25", "hold:0.5:if-busy:600"]
)
@pytest.mark.parametrize("bad", [_all_off, _never_wakes])
def test_always_overruled_it_is_the_base(
    bad: Callable[[], Planted], base: str, log: escala.Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts, nodes and joules; also where the agent was in charge for a while before."""
    monkeypatch.setattr(SwitchAhead, "costs", lambda *_: (np.array([[2.0], [1.0]]), np.array([0.5])))
    expected = escala.simulate(log, PLATFORM, "easy", Asked(base))
    result = escala.simulate(log, PLATFORM, "easy", shielded(bad(), base=base, margin=1.9))
    assert result.jobs.equals(expected.jobs) and result.power.equals(expected.power)
    counts = result.manifest["counts"]
    assert counts["choices"] == counts["unlike"] == counts["overruled"] > 100


@pytest.fixture(scope="module")
def days() -> escala.Workload:
    return generate.grid5000(cluster="orion", days=2, seed=1)


def test_what_is_counted_and_what_a_margin_allows(days: escala.Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice in force for half of a future may lose half of the margin: 3 of 10 at 0.6."""
    costs = [
        np.array([[12.0], [10.0]]),
        np.array([[13.0], [10.0]]),
        np.array([[14.0], [10.0]]),
        np.array([[10.0], [10.0]]),
    ]
    for margin, passed in ((0.0, 1), (0.6, 3)):
        asked = list[int]()

        def told(*_: Any, asked: list[int] = asked) -> Any:
            asked.append(1)
            return costs[len(asked) % 4], np.array([0.5])

        monkeypatch.setattr(SwitchAhead, "costs", told)
        agent = escala.load_agent(AGENTS / "orion-1-0")
        counts = escala.simulate(days, "orion", "saf", shielded(agent, margin=margin)).manifest["counts"]
        assert counts["choices"] == len(asked)
        assert abs(counts["unlike"] - 0.75 * len(asked)) <= 1
        assert abs(counts["overruled"] - (4 - passed) / 4 * len(asked)) <= 1


def test_a_good_agent_passes_mostly(days: escala.Workload) -> None:
    """By the measure that it was trained for it may lose a little, and is let through in nine of ten choices that are
    unlike the base's."""
    agent = escala.load_agent(AGENTS / "orion-1-0")
    result = escala.simulate(days, "orion", "saf", shielded(agent, sampled=False, margin=0.2))
    counts = result.manifest["counts"]
    assert counts["overruled"] < 0.15 * counts["unlike"] and counts["overruled"] < 0.01 * counts["choices"]
    base = escala.simulate(days, "orion", "saf", "timeout:300")
    assert result.summary()["waste_j"] < 0.7 * base.summary()["waste_j"]


def test_a_margin_that_allows_all_changes_nothing(days: escala.Workload) -> None:
    agent, days = escala.load_agent(AGENTS / "orion-1-0"), days.head(50)
    alone = escala.simulate(days, "orion", "saf", agent.policy(sampled=False))
    free = escala.simulate(days, "orion", "saf", shielded(agent, sampled=False, futures=2, margin=1e300))
    assert free.manifest["counts"]["overruled"] == 0 < free.manifest["counts"]["unlike"]
    assert free.jobs.equals(alone.jobs) and free.power.equals(alone.power)


def test_by_the_command(days: escala.Workload, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_swf(days.head(40), tmp_path / "log.swf")
    folder = AGENTS / "orion-1-0"
    name = f"shield:hold:0.25:600:futures=4:margin=0.1:price=2:ahead_s=1800:agent:{folder}"
    asked = ["simulate", str(tmp_path / "log.swf"), "--platform", "orion", "--scheduler", "saf", "--shutdown"]
    assert run([*asked, name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_hand = shielded(
        escala.load_agent(folder), sampled=False, base="hold:0.25:600", futures=4, margin=0.1, price=2.0, ahead_s=1800.0
    )
    assert (
        found["counts"]
        == escala.simulate(escala.read_workload(tmp_path / "log.swf"), "orion", "saf", by_hand).manifest["counts"]
    )
    assert run([*asked, name]) == 0
    assert f"{found['counts']['overruled']:,} overruled." in capsys.readouterr().out
    assert run(["policies"]) == 0
    assert "shield:BASE" in capsys.readouterr().out.partition("shutdown")[2]
    for wrong, why in (
        ("shield:oracle:agent:x", "base 'oracle' is none of its bases"),
        ("shield:timeout:agent:x", "timeout' needs its seconds"),
        ("shield:timeout:300:futurs=8:agent:x", "did you mean futures?"),
        ("shield:timeout:300:margin=-1:agent:x", "margin is '-1': give a share of at least 0"),
        ("shield:never", "write shield:BASE[:KEY=VALUE...]:agent:DIR"),
        (f"shield:easy:agent:{folder}", "base easy overrules agents of escala/Scheduling-v0"),
        ("shield:never:agent:x", "x: "),
    ):
        assert run([*asked, wrong]) == 2
        told = capsys.readouterr().err
        assert why in told and told.count("\n") == 1, told
    assert run([*asked[:4], "--scheduler", name]) == 2
    assert "is a shutdown policy, given as scheduler" in capsys.readouterr().err


def test_what_cannot_stand_behind_one_is_refused(log: escala.Workload) -> None:
    for wrong, why in (
        ({"margin": -0.1}, "margin"),
        ({"price": -1.0}, "price"),
        ({"futures": 0}, "futures"),
        ({"base": "oracle"}, "none of"),
    ):
        with pytest.raises(EscalaError, match=why):
            shielded(_all_off(), **wrong)
    one_node = escala.Workload.from_jobs({"submit_s": [0.0], "runtime_s": [9.0], "cores": [1], "single_node": [True]})
    with pytest.raises(EscalaError, match="cannot play jobs that ask for nodes"):
        escala.simulate(one_node, PLATFORM, "easy", shielded(_all_off()))
    dark = escala.read_platform(
        "16x1", "computing=1,idle=0,off=0,switching_off=1,switching_on=1,switch_off_s=9,switch_on_s=9"
    )
    with pytest.raises(EscalaError, match="idles at 0 W"):
        escala.simulate(log, dark, "easy", shielded(_never_wakes()))
    assert set(BASES) == {"never", "timeout", "proportional", "hold"}
