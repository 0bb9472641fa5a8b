"""Score files: what they mean, and one line for each mistake."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.errors import EscalaError
from escala.options import Options
from escala.policies.linear import FEATURES, Linear, Multifactor
from escala.policies.queues import queue_by
from escala.policies.score_files import read_score

COLUMNS: dict[str, list[Any]] = {
    "submit_s": [0.0, 0.0, 1.0, 2.0],
    "runtime_s": [5.0, 3.0, 2.0, 2.0],
    "walltime_s": [8.0, 4.0, 120.0, 8.0],
    "cores": [1, 2, 1, 1],
    "user": ["b", "a", None, "b"],
    "queue": ["batch", "debug", "batch", None],
}
JOBS = escala.Workload.from_jobs(COLUMNS)
W = "[weights]\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "score.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    text = 'form = "linear"\nevery_s = 30\ncolumn = "cores"\n[weights]\nlog_wait = -1\ncolumn = 2.5\n'
    assert read_score(written(tmp_path, text)) == Linear((("log_wait", -1.0), ("column", 2.5)), "cores", 30.0)
    found = read_score(written(tmp_path, 'form = "multifactor"\n[weights]\nage = 1000\n[shares]\nb = 2\n'))
    assert found == Multifactor((("age", 1000.0),), shares=(("b", 2.0),))
    assert isinstance(found, Multifactor) and (found.max_age_s, found.half_life_s, found.every_s) == (
        604800,
        604800,
        300,
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('form = "linaer"\n' + W, "form 'linaer' is not known"),
        (W + "log_wait = 1\n", "form None is not known"),
        ('form = "linear"\n', "no weights: give [weights]"),
        ('form = "linear"\n' + W, "no weights"),
        ('form = "linear"\nweights = 3\n', "a section [weights] with a number by name is needed"),
        ('form = "linear"\n' + W + "log_wiat = 1\n", "unknown feature 'log_wiat': did you mean log_wait?"),
        ('form = "linear"\n' + W + "age = 1\n", "unknown feature 'age'"),
        ('form = "linear"\n' + W + "log_wait = nan\n", "'log_wait' = nan: a finite number is needed"),
        ('form = "linear"\n' + W + "log_wait = -inf\n", "'log_wait' = -inf: a finite number is needed"),
        ('form = "linear"\n' + W + "log_wait = 1e300\n", "at most 1e+15"),
        ('form = "linear"\n' + W + "log_wait = true\n", "'log_wait' = True: a finite number"),
        ('form = "linear"\n' + W + 'log_wait = "1"\n', "'log_wait' = '1': a finite number"),
        ('form = "linear"\nevry_s = 1\n' + W + "log_wait = 1\n", "unknown key 'evry_s': did you mean every_s?"),
        ('form = "linear"\nevery_s = -1\n' + W + "log_wait = 1\n", "every_s = -1: a number of seconds"),
        ('form = "linear"\nevery_s = nan\n' + W + "log_wait = 1\n", "every_s = nan: a number of seconds"),
        ('form = "linear"\nmax_age_s = 1\n' + W + "log_wait = 1\n", "unknown key 'max_age_s'"),
        ('form = "linear"\n' + W + "column = 1\n", "a column needs both"),
        ('form = "linear"\ncolumn = "cores"\n' + W + "log_wait = 1\n", "a column needs both"),
        ('form = "linear"\ncolumn = 3\n' + W + "log_wait = 1\n", "column = 3: a text is needed"),
        (
            'form = "linear"\ncolumn = "core"\n' + W + "column = 1\n",
            "column 'core' is no column of numbers: did you mean cores?",
        ),
        ('form = "linear"\ncolumn = "user"\n' + W + "column = 1\n", "column 'user' is no column of numbers"),
        (
            'form = "linear"\ncolumn = "runtime_s"\n' + W + "column = 1\n",
            "column 'runtime_s' is known only when a job has ended",
        ),
        ("form = linear\n", "not valid TOML"),
        (
            'form = "multifactor"\nsize = "tiny"\n' + W + "age = 1\n",
            "size 'tiny' is not known: use one of large, small, per-time",
        ),
        ('form = "multifactor"\nmax_age_s = 0\n' + W + "age = 1\n", "max_age_s = 0: more than 0 s"),
        ('form = "multifactor"\nevery_s = 0\n' + W + "fair_share = 1\n", "fair shares change all the time"),
        ('form = "multifactor"\n' + W + "queue = 1\n", "a weight of queue needs [queues]"),
        ('form = "multifactor"\n' + W + "qos = 1\n[qos]\nhigh = 1\n", "tells no qos of its jobs"),
        ('form = "multifactor"\n' + W + "age = 1\n[shares]\nb = -1\n", "[shares] has a number below 0"),
        ('form = "multifactor"\nnice = "nice"\n' + W + "age = 1\n", "column 'nice' is no column of numbers"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_file(tmp_path: Path, text: str, line: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(EscalaError) as error:
        escala.simulate(JOBS, "2x1", f"easy:queue=score:{path}")
    assert line in str(error.value) and "\n" not in str(error.value)
    assert "score.toml" in str(error.value) or "workload" in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in (f"easy:queue=score:{tmp_path / 'none.toml'}", "easy:queue=score:", f"easy:queue=score:{tmp_path}"):
        with pytest.raises(EscalaError, match=r"no such file|is a folder"):
            escala.simulate(JOBS, "2x1", name)


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (lambda: Linear((("log_wait", math.nan),)), r"'log_wait' = nan: a finite number"),
        (lambda: Linear((("log_wait", 10**400),)), "a finite number"),
        (lambda: Linear((("log_wait", True),)), "a finite number"),
        (lambda: Linear((("wait", 1.0),)), "unknown feature 'wait': did you mean log_wait"),
        (lambda: Linear((("log_wait", 1.0), ("log_wait", 2.0))), "twice"),
        (lambda: Linear(()), "no weights"),
        (lambda: Linear("log_wait"), "pairs of a name and a number"),
        (lambda: Linear((("column", 1.0),)), "a column needs both"),
        (lambda: Linear((("log_wait", 1.0),), every_s=1e-9), "every_s = 1e-09: give 1 s or more"),
        (lambda: Linear((("log_wait", 1.0),), every_s=-1.0), "every_s = -1.0: a number of seconds"),
        (lambda: Multifactor((("fairshare", 1.0),)), "unknown feature 'fairshare': did you mean fair_share"),
        (lambda: Multifactor((("age", -1.0),)), "weights: age = -1: Slurm's weights are 0 or more"),
        (lambda: Multifactor((("age", 1.0),), max_age_s=math.nan), "max_age_s = nan"),
        (lambda: Multifactor((("age", 1.0),), size="tiny"), "size 'tiny' is not known"),
        (lambda: Multifactor((("fair_share", 1.0),), every_s=0.0), "fair shares change all the time"),
        (lambda: Multifactor((("fair_share", 1.0),), shares=(("a", -1.0),)), r"\[shares\] has a number below 0"),
        (lambda: Multifactor((("queue", 1.0),)), r"a weight of queue needs \[queues\]"),
        (lambda: Multifactor((("age", 1.0),), half_life_s=-1.0), "half_life_s = -1.0"),
        (lambda: Multifactor((("age", 1.0),), nice=3), "nice = 3: a text is needed"),
    ],
)
def test_an_object_is_checked_as_a_file_is(made: Callable[[], object], line: str) -> None:
    with pytest.raises(EscalaError, match=line):
        made()


def test_an_object_runs_as_a_file_does(tmp_path: Path) -> None:
    path = written(tmp_path, 'form = "linear"\n[weights]\nlog_wait = 1\nlog_estimate = -2\n')
    score = Linear((("log_wait", 1.0), ("log_estimate", -2.0)))
    named = escala.simulate(JOBS, "2x1", f"easy:queue=score:{path}:backfill=sjf:guard=1h").jobs
    assert escala.simulate(JOBS, "2x1", queue_by(score, 3600.0, backfill="sjf")).jobs.equals(named)


def test_a_tuned_policy_finds_its_score_beside_it(tmp_path: Path) -> None:
    written(tmp_path, 'form = "linear"\n[weights]\nlog_wait = 1\n')
    (tmp_path / "policy.toml").write_text(
        'format = 1\nformula = "easy:queue=score:score.toml:backfill=sjf"\nguard = "24h"\n'
    )
    named = escala.simulate(JOBS, "2x1", f"easy:queue=score:{tmp_path / 'score.toml'}:backfill=sjf:guard=24h").jobs
    assert escala.simulate(JOBS, "2x1", f"policy:{tmp_path}").jobs.equals(named)


def test_what_never_changes_of_a_linear_score() -> None:
    score = Linear(
        (
            ("log_estimate", 2.0),
            ("log_cores", 3.0),
            ("log_estimate_x_log_cores", 5.0),
            ("log_request", 7.0),
            ("column", 11.0),
        ),
        "cores",
    )
    terms = score.terms(JOBS, Options(estimate="runtime"))
    length, request, cores = (np.array(COLUMNS[name], float) for name in ("runtime_s", "walltime_s", "cores"))
    a, b = np.log(length / 3600.0), np.log(cores / 10.0)
    assert terms.fixed(10) == pytest.approx(2 * a + 3 * b + 5 * a * b + 7 * np.log(request / 3600.0) + 11 * cores)


def test_what_never_changes_of_a_priority() -> None:
    score = Multifactor(
        (("job_size", 100.0), ("queue", 10.0)),
        queues=(("debug", 4.0), ("batch", 1.0)),
        nice="cores",
        shares=(("b", 2.0),),
    )
    terms = score.terms(JOBS, Options())
    assert terms.fixed(4) == pytest.approx([1 - 25 - 2.5, 2 - 50 - 10, 1 - 25 - 2.5, 1 - 25])
    assert terms.shares is not None and terms.shares.tolist() == [1.0, 2.0]
    per_time = Multifactor((("job_size", 100.0),), size="per-time").terms(JOBS, Options())
    assert per_time.fixed(4) == pytest.approx([-25, -50, -12.5, -25])


def test_every_feature_can_be_named(tmp_path: Path) -> None:
    for feature in FEATURES:
        column = 'column = "cores"\n' if feature == "column" else ""
        path = written(tmp_path, f'form = "linear"\n{column}[weights]\n{feature} = 0.5\n')
        assert len(escala.simulate(JOBS, "2x1", f"easy:queue=score:{path}").jobs) == len(JOBS)


def test_a_score_that_has_changed_is_not_run_again(tmp_path: Path) -> None:
    path = written(tmp_path, 'form = "linear"\n[weights]\nlog_wait = 1\n')
    run = escala.simulate(JOBS, "2x1", f"easy:queue=score:{path}:guard=1h")
    assert list(run.manifest["policy_files"]) == [str(path)]
    saved = run.save(tmp_path / "run")
    for one in (run, saved):
        assert escala.rerun(one, JOBS).jobs.equals(run.jobs)
    written(tmp_path, 'form = "linear"\n[weights]\nlog_wait = 2\n')
    for one in (run, saved):
        with pytest.raises(EscalaError, match="is not what it was in that run"):
            escala.rerun(one, JOBS)


def test_orders_of_those_who_pass_are_easy_s() -> None:
    for way, line in (("conservative", "leave backfill out"), ("eazy", "use easy or conservative")):
        with pytest.raises(EscalaError, match=line):
            queue_by("sjf", way=way, backfill=Linear((("log_wait", 1.0),)))
    with pytest.raises(EscalaError, match="is no span"):
        queue_by("sjf", guard_s=-1.0)
