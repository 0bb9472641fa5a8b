"""Orders of the queue that change, or look at more than the job, on a real site: `slurm:queue=SCORE:guard=TIME...`."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import escala
from escala.campaigns.beside import beside
from escala.live import SlurmDesk
from escala.policies.compose import scheduler
from escala.policies.files import identity
from escala.policies.slurm_names import slurm_within, split_slurm, tuned_of
from escala.prediction import inside
from escala.prediction.features import known_by
from escala.scores import FIXED
from escala.slurm import ensemble, predicted
from tests.unit.prediction.logs import habits
from tests.unit.prediction.test_features import InPython
from tests.unit.slurm.by_hand import QUICK, jobs, starts
from tests.unit.slurm.test_queue_order import CLOCK, RANKED

LATE = f"{CLOCK}:queue=sjf:guard=2m"


def test_who_has_waited_the_guard_goes_first(site: Any) -> None:
    """All nodes are taken until 100. The long job of t = 1 has waited two minutes when the second of the short ones
    ends, and goes before the third; without a guard it is the last."""
    work = jobs((0, 100, 120, 4), (1, 200, 240, 4), *((2 + k, 55, 60, 4) for k in range(3)))
    assert starts(work, site(), f"{CLOCK}:queue=sjf") == pytest.approx([0.4, 267, 101, 156, 212], abs=4)
    assert starts(work, site(), LATE) == pytest.approx([0.4, 156, 101, 357, 412], abs=4)


def test_a_guard_falls_due_between_two_events(site: Any) -> None:
    """Nothing comes and nothing ends at t = 121, when the long job has waited two minutes, before the nodes are free at
    122.4; if it had to wait four seconds more, the short one would go first."""
    work = jobs((0, 122, 180, 4), (1, 300, 360, 4), (2, 250, 300, 4))
    found = starts(work, site(), LATE)
    assert found[1] == pytest.approx(122.4, abs=2) and found[2] > 400
    assert starts(work, site(), f"{CLOCK}:queue=sjf:guard=124s")[2] == pytest.approx(123, abs=2)


@pytest.mark.parametrize("name", list(FIXED))
def test_an_order_that_stays_is_the_same_looked_at_or_not(site: Any, name: str) -> None:
    draw = np.random.default_rng(7)
    rows = [
        (float(k), float(60 * m - 9), 60.0 * m, n)
        for k, (m, n) in enumerate(zip(draw.integers(1, 6, 30), draw.integers(1, 5, 30), strict=True))
    ]
    seldom = QUICK.replace("bf_interval=1", "bf_interval=30")
    for place in (site(more=QUICK), site(more=RANKED), site(more=seldom), site(more=RANKED.replace(QUICK, seldom))):
        told = starts(jobs(*rows, nice=[7 * k for k in range(30)]), place, f"{CLOCK}:queue={name}:guard=9d")
        assert told == starts(jobs(*rows), place, f"{CLOCK}:queue={name}")


def test_scores_grow_from_look_to_look(site: Any) -> None:
    """Two nodes. By expansion factor the job of a minute overtakes the one of an hour at the first look behind its
    submission, not at once: with a look each 200 s that comes too late for it."""
    work = jobs((0, 90, 120, 4), (1, 3000, 3600, 4), (2, 50, 60, 4))
    assert starts(work, site(), f"{CLOCK}:queue=xfactor:every=10s")[2] == pytest.approx(91, abs=2)
    assert starts(work, site(), f"{CLOCK}:queue=xfactor:every=200s")[1] == pytest.approx(91, abs=2)


def test_lengths_come_from_runs_of_this_replay(site: Any) -> None:
    """Both ask for ten minutes, and the later one's user has run for seconds."""
    work = jobs(
        (0, 5, 600, 4), (6, 5, 600, 4), (20, 100, 120, 4), (21, 300, 600, 4), (22, 5, 600, 4),
        user=["quick", "quick", "other", "other", "quick"],
    )  # fmt: skip
    by_limit, by_runs = (
        starts(work, site(), f"{CLOCK}:queue=sjf:guard=9d{more}") for more in ("", ":order_estimate=last2")
    )
    assert by_limit[3] < by_limit[4] and by_runs[4] < by_runs[3]


def test_a_tuned_policy_gives_its_order(site: Any, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('form = "linear"\n[weights]\nlog_estimate = 1.0\n')
    (tmp_path / "policy.toml").write_text(
        'format = 1\nformula = "easy:queue=score:own.toml"\nguard = "2m"\norder_estimate = "last2"\n'
    )
    work = jobs((0, 100, 120, 4), (1, 200, 240, 4), *((2 + k, 55, 60, 4) for k in range(3)), user=["a"] * 5)
    own = f"{CLOCK}:queue=score:{tmp_path / 'own.toml'}:guard=2m:order_estimate=last2"
    result = escala.simulate(work, site(), scheduler=f"{CLOCK}:queue=policy:{tmp_path}")
    assert [round(one, 1) for one in result.jobs["start_s"]] == starts(work, site(), own)
    assert set(result.manifest["policy_files"]) == {str(tmp_path / "policy.toml"), str(tmp_path / "own.toml")}
    moved = identity(f"slurm:queue=policy:{tmp_path}:bf_interval=30", "scheduler")
    assert moved is not None and moved[0] == "slurm:bf_interval=30:queue=policy:" and len(moved) == 3
    with pytest.raises(escala.EscalaError, match="says its guard itself"):
        starts(work, site(), f"slurm:queue=policy:{tmp_path}:guard=3h")
    (tmp_path / "policy.toml").write_text('format = 1\nformula = "easy-sjf"\n')
    with pytest.raises(escala.EscalaError, match="keeps its queue in no single order"):
        starts(work, site(), f"slurm:queue=policy:{tmp_path}")


def test_a_column_decides(site: Any, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('form = "linear"\ncolumn = "priority"\n[weights]\ncolumn = -1.0\n')
    work = jobs((0, 100, 120, 4), (1, 55, 60, 4), (2, 55, 60, 4), priority=[0, 1, 2])
    result = escala.simulate(work, site(), scheduler=f"{CLOCK}:queue=score:{tmp_path / 'own.toml'}")
    assert result.jobs["start_s"][2] < result.jobs["start_s"][1]
    assert {"priority"} <= set(result.manifest["columns"])


def test_who_knows_run_times_is_marked(site: Any) -> None:
    work = jobs((0, 5, 60, 1), (0, 6, 120, 1), estimate_s=[5.0, 6.0])
    for given, known in (("walltime", ""), ("runtime", "runtimes"), ("estimate_s", "runtimes")):
        result = escala.simulate(work, site(), scheduler=f"slurm:queue=sjf:order_estimate={given}")
        assert result.manifest["knows"] == known, given


def test_a_path_may_hold_colons() -> None:
    rest, parts = split_slurm(
        "slurm:bf_interval=60:queue=score:a:b.toml:guard=3h:order_estimate=model:c:d:every=1m:tick=2"
    )
    assert rest == "slurm:bf_interval=60:tick=2"
    assert parts == {"queue": "score:a:b.toml", "guard": "3h", "order_estimate": "model:c:d", "every": "1m"}
    assert split_slurm("slurm:queue=score:a.toml:bf_continue:guard=1h") == (
        "slurm:bf_continue",
        {"queue": "score:a.toml", "guard": "1h"},
    )
    assert split_slurm("slurm:queue=saf:bf_continue") == ("slurm:queue=saf:bf_continue", {})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("slurm:queue=xfactr", "did you mean xfactor?"),
        ("slurm:guard=3h", "is of an order of the queue: name it too, slurm:queue=sjf:guard=3h"),
        ("slurm:queue=sjf:queue=saf", "queue= is given twice"),
        ("slurm:queue=sjf:guard=soon", "guard=soon is no span of time"),
        ("slurm:queue=sjf:every=0", "every=0 is too short"),
        ("slurm:queue=sjf:every=1m:order_estimate=lst2", "did you mean last2?"),
        ("slurm:queue=score:nowhere.toml", "nowhere.toml"),
        ("slurm:queue=policy:nowhere", "no such file"),
        ("slurm:queue=policy:nowhere:guard=3h", "no such file"),
        ("slurm:queue=fcfs:guard=3h", "fcfs stays as it is: leave guard= out"),
        ("slurm:queue=sjf:gaurd=3h", "slurm:queue=sjf:gaurd=3h.*did you mean guard?"),
        ("slurm:queue=xfactor:evry=5", "slurm:queue=xfactor:evry=5.*did you mean every?"),
        ("slurm:queue=sjf:estimate=last2", "plans go by limits under Slurm's rules: order_estimate=last2"),
    ],
)
def test_an_order_that_is_none(site: Any, name: str, said: str) -> None:
    with pytest.raises(escala.EscalaError, match=said.replace("?", r"\?")):
        starts(jobs((0, 5, 60, 1)), site(), name)


@pytest.mark.parametrize("name", ["slurm:queue=sjf", "slurm:queue=xfactor"])
def test_thresholds_of_the_sites_own_priorities(site: Any, name: str) -> None:
    with pytest.raises(escala.EscalaError, match="bf_min_prio_reserve is a priority of the site"):
        starts(jobs((0, 5, 60, 1)), site(), f"{name}:bf_min_prio_reserve=10")


def test_an_ensemble_takes_orders_that_stay(site: Any) -> None:
    work = jobs((0, 5, 60, 1), (1, 5, 60, 1))
    assert len(ensemble(work, site(), "slurm:queue=sjf", draws=2).results) == 2
    with pytest.raises(escala.EscalaError, match="'xfactor' is no order that stays as it is"):
        ensemble(work, site(), "slurm:queue=xfactor")


def test_fair_shares_are_the_sites(tmp_path: Path) -> None:
    (tmp_path / "fair.toml").write_text('form = "multifactor"\n[weights]\nage = 1\nfair_share = 5\n')
    with pytest.raises(escala.EscalaError, match=r"fair_share in score:.*fair\.toml is not for Slurm's rules"):
        scheduler(f"slurm:queue=score:{tmp_path / 'fair.toml'}")


def test_a_guard_falls_due_for_who_begins_late(site: Any) -> None:
    """The long job may begin at 1500 and has waited five minutes at 1800; nothing else happens until 2000."""
    short = ((1, 100, 120, 4),) * 3
    work = jobs((0, 2000, 2100, 4), (1, 1000, 1200, 4), *short, begin_s=[None, 1500.0, 1510.0, 1510.0, 1510.0])
    guarded, free = (starts(work, site(), f"{CLOCK}:queue=sjf{more}") for more in (":guard=5m", ""))
    assert guarded[1] == pytest.approx(2001, abs=2) and free[1] > 2300


@pytest.mark.parametrize("queue", ["sjf:guard=9d", "ljf:guard=9d", "sjf:guard=2m", "wfp3:every=10", "xfactor:every=10"])
@pytest.mark.parametrize("mode", ["CANCEL", "REQUEUE"])
def test_who_may_take_nodes_still_does(site: Any, queue: str, mode: str) -> None:
    """A job of the lower tier has waited before it runs; one of the higher tier comes at 400."""
    tiers = "PartitionName=low Nodes=ALL PriorityTier=1 Default=YES\nPartitionName=high Nodes=ALL PriorityTier=2"
    more = f"{QUICK}\nPreemptType=preempt/partition_prio\nPreemptMode={mode}"
    work = jobs((0, 300, 360, 4), (1, 3000, 3600, 4), (400, 50, 60, 4), partition=["low", "low", "high"])
    there = site(partitions=tiers, more=more)
    assert starts(work, there, f"{CLOCK}:queue={queue}")[2] == pytest.approx(401, abs=2)


def test_every_time_of_a_score_file_counts(site: Any, tmp_path: Path) -> None:
    """As :every= does; which comes first."""
    work = jobs((0, 90, 120, 4), (1, 3000, 3600, 4), (2, 50, 60, 4))
    for every, later, first in ((10, "", 2), (200, "", 1), (200, ":every=10", 2)):
        (tmp_path / "own.toml").write_text(
            f'form = "linear"\nevery_s = {every}\n[weights]\nlog_wait_over_estimate = -1.0\n'
        )
        found = starts(work, site(), f"{CLOCK}:queue=score:{tmp_path / 'own.toml'}{later}")
        assert found[first] == pytest.approx(91, abs=2), every


def test_the_folder_of_a_tuned_policy_is_known_in_it(tmp_path: Path) -> None:
    for name, told in (
        ("policy:a:b", "policy:a:b"),
        ("slurm:tick=2:queue=policy:a:b:bf_continue", "policy:a:b"),
        ("slurm:queue=saf", ""),
        ("easy", ""),
    ):
        assert tuned_of(name) == told
    assert slurm_within("slurm:queue=policy:a:bf_interval=30", tmp_path) == (
        f"slurm:bf_interval=30:queue=policy:{tmp_path / 'a'}"
    )
    found, written = beside({"schedulers": ["slurm:queue=policy:tuned", "slurm"]}, Path("sub"))
    assert found["schedulers"] == ["slurm:queue=policy:sub/tuned", "slurm"]
    assert written["slurm:queue=policy:sub/tuned"] == "slurm:queue=policy:tuned"


def test_a_desk_orders_nothing_so(site: Any) -> None:
    with pytest.raises(escala.EscalaError, match="queue=xfactor is only simulated"):
        SlurmDesk(site(), "slurm:queue=xfactor:guard=3h")


def test_a_job_that_never_runs_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that wait for the failure of one that goes well are out; of the user's jobs none runs at 500."""
    work = jobs(
        (0, 50, 120, 1), (1, 50, 120, 1), (2, 50, 120, 1), (500, 50, 120, 1), user=["a"] * 4,
        job_id=["1", "2", "3", "4"], dependency=[None, "afternotok:1", "afternotok:1", None],
    )  # fmt: skip
    features, rows = _seen(tmp_path, monkeypatch, ("user",))
    escala.simulate(work, "4x1", scheduler=f"{CLOCK}:queue=sjf:order_estimate=model:{tmp_path}")
    told = dict(zip(features, rows[-1], strict=True))
    assert told["user_running"] == told["user_waiting"] == 0.0 and told["user_count"] == math.log1p(1)


def _seen(folder: Path, monkeypatch: pytest.MonkeyPatch, columns: tuple[str, ...]) -> tuple[tuple[str, ...], list[Any]]:
    """All features by these columns, and a list into which those of each job go that comes, in the place of a model in
    this folder."""
    features, rows = known_by(columns, True), list[Any]()

    def begin(model: Any, tables: inside.Tables) -> inside.Say:
        describe = inside._describing(tables, columns, features)

        def say(first: int, last: int) -> Any:
            rows.extend(describe(first, last))
            return tables.forecast["limit"][first:last]

        return say

    monkeypatch.setattr(predicted, "begin", begin)
    monkeypatch.setattr(predicted, "read_model", lambda name, folder: None)
    (folder / "manifest.json").write_text('{"kind": "run time model", "format": 1, "columns": []}')
    return features, rows


def test_what_a_model_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every feature of every job is what plain Python makes of the result: what had ended, and who waited, before the
    job came."""
    log = habits(11, jobs=150, days=2.0)
    features, rows = _seen(tmp_path, monkeypatch, ("user", "queue"))
    done = escala.simulate(log, "8x1", scheduler=f"{CLOCK}:queue=sjf:order_estimate=model:{tmp_path}").jobs
    python = InPython(log, features)
    table = done.with_columns(row=pl.int_range(len(done), dtype=pl.Int64)).to_dicts()
    for job in table:
        now = job["submit_s"]
        over = sorted((one for one in table if one["finish_s"] < now), key=lambda one: one["finish_s"])
        came = [one for one in table if (one["submit_s"], one["row"]) <= (now, job["row"])]
        view = SimpleNamespace(
            now_s=now,
            ended=lambda over=over: [SimpleNamespace(**one) for one in over],
            queue=[SimpleNamespace(row=one["row"]) for one in came if one["start_s"] >= now],
        )
        python.estimate(view, SimpleNamespace(**job))
    assert len(rows) == 150 and sum(math.isnan(x) for x in np.ravel(rows)) > 0
    np.testing.assert_allclose(rows, python.rows, rtol=1e-9, atol=1e-9)
