"""Hand-made schedules under linear scores: what each feature does, scores that stand for a while, and priorities in
Slurm's terms. One-core nodes; times in seconds; jobs run to their walltime."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.hand import Engine, job
from tests.oracle.engines import run_kernel
from tests.oracle.worlds import draw

Write = Callable[..., str]


@pytest.fixture
def score(tmp_path: Path) -> Write:
    """Writes a score file; gives the name of the order."""

    def write(text: str, form: str = "linear") -> str:
        path = tmp_path / "score:1=a.toml"  # a path may hold what names are made of
        path.write_text(f'form = "{form}"\n{text}', encoding="utf-8")
        return f"easy:queue=score:{path}"

    return write


@pytest.mark.parametrize(
    ("feature", "plain"),
    [
        ("log_wait_over_estimate = -1", "xfactor"),
        ("log_estimate = 2", "sjf"),
        ("log_request = 1", "sjf"),
        ("log_cores = 3", "smallest"),
    ],
)
def test_one_feature_alone_is_a_known_order(score: Write, feature: str, plain: str) -> None:
    name = score(f"[weights]\n{feature}\n")
    for number in range(30):
        case = draw(random.Random(f"{feature} {number}"), ("easy",), 20)
        if feature.startswith("log_request"):
            case.options |= {"estimate": "walltime", "order_estimate": "walltime"}
        case.options["scheduler"] = f"easy:queue={plain}:guard=7"
        expected = run_kernel(case).jobs
        case.options["scheduler"] = f"{name}:guard=7"
        assert run_kernel(case).jobs.equals(expected), case.program()


def test_the_longest_wait_and_the_column_and_the_product(run: Engine, score: Write) -> None:
    """At 20 B has waited 19 s and C 18 s. By requested cores D is before them. Product: of jobs shorter than an hour
    the narrow ones have the larger one (two negative numbers), so it comes first under a negative weight."""
    jobs = [job("A", 0, 20, 2), job("B", 1, 5, 2), job("C", 2, 5, 2), job("D", 3, 5)]
    assert run(jobs, [1, 1], score("[weights]\nlog_wait = -1\n")).start == {"A": 0, "B": 20, "C": 25, "D": 30}
    assert run(jobs, [1, 1], score("[weights]\nlog_wait = 1\n")).start == {"A": 0, "D": 20, "C": 25, "B": 30}
    by_cores = score('column = "cores"\n[weights]\ncolumn = 1\n')
    assert run(jobs, [1, 1], by_cores).start == {"A": 0, "D": 20, "B": 25, "C": 30}
    product = score("[weights]\nlog_estimate_x_log_cores = -1\n")
    assert run(jobs, [1, 1], product).start == {"A": 0, "D": 20, "B": 25, "C": 30}


def test_who_has_less_of_the_machine_comes_first(run: Engine, score: Write) -> None:
    """At 4 u has one of two nodes and v none."""
    jobs = [job("A", 0, 10, user="u"), job("L", 0, 4, user="v"), job("C", 1, 3, user="u"), job("D", 2, 3, user="v")]
    share = score("[weights]\nuser_share = 1\n")
    assert run(jobs, [1, 1], share).start == {"A": 0, "L": 0, "D": 4, "C": 7}
    assert run(jobs, [1, 1], share + ":guard=3").start == {"A": 0, "L": 0, "C": 4, "D": 7}


def test_who_has_fewer_jobs_waiting_comes_first(run: Engine, score: Write) -> None:
    """Counted at the beginning of a decision. At 10 u has two waiting and v one. With F both have two: C came first;
    then u has one."""
    jobs = [
        job("A", 0, 10),
        job("C", 1, 3, user="u"),
        job("E", 1, 3, user="u"),
        job("D", 2, 3, user="v"),
        job("F", 2, 3, user="v"),
    ]
    name = score("[weights]\nlog_user_waiting = 1\n")
    assert run(jobs[:4], [1], name).start == {"A": 0, "D": 10, "C": 13, "E": 16}
    assert run(jobs, [1], name).start == {"A": 0, "C": 10, "E": 13, "D": 16, "F": 19}


def test_scores_that_are_computed_seldom_stand_for_a_while(run: Engine, score: Write) -> None:
    """Up to 100 all waits are those at 0: none. From then on those at 100: C 98 / 1, D 97 / 50, E none."""
    jobs = [job("A", 0, 20), job("B", 1, 100), job("C", 2, 1), job("D", 3, 50), job("E", 100, 1)]
    now = score("[weights]\nlog_wait_over_estimate = -1\n")
    assert run(jobs[:3], [1], now).start == {"A": 0, "C": 20, "B": 21}
    seldom = score("every_s = 100\n[weights]\nlog_wait_over_estimate = -1\n")
    assert run(jobs[:3], [1], seldom).start == {"A": 0, "B": 20, "C": 120}
    assert run(jobs, [1], seldom).start == {"A": 0, "B": 20, "C": 120, "D": 121, "E": 171}


def test_ages_grow_side_by_side_until_the_older_is_full(run: Engine, score: Write) -> None:
    """Age counts 4 a second, 40 at most; size 4 for all cores. At 8 C has 28 + 2 and B 20 + 4; at 20 C has 40 + 2 and B
    40 + 4."""
    text = "every_s = 0\nmax_age_s = 10\n[weights]\nage = 40\njob_size = 4\n"
    jobs = [job("A", 0, 8, 2), job("C", 1, 5), job("B", 3, 5, 2)]
    name = score(text, "multifactor")
    assert run(jobs, [1, 1], name).start == {"A": 0, "C": 8, "B": 13}
    jobs[0] = job("A", 0, 20, 2)
    assert run(jobs, [1, 1], name).start == {"A": 0, "B": 20, "C": 25}
    small = score('size = "small"\n' + text.replace("= 4\n", "= 40\n"), "multifactor")
    assert run(jobs, [1, 1], small).start == {"A": 0, "C": 20, "B": 25}


def test_fair_share_halves(run: Engine, score: Write) -> None:
    """At 18, half-life 10 s: what u used is worth 10 / ln 2 x (2^-1 - 2^-1.8) = 3.1 s, what v used 10 / ln 2 x (1 -
    2^-1) = 7.2 s. So u is first; with three times the shares v is."""
    jobs = [job("A", 0, 8, user="u"), job("B", 0, 10, user="v"), job("C", 9, 5, user="v"), job("D", 9.5, 5, user="u")]
    text = "every_s = 1\nhalf_life_s = 10\n[weights]\nfair_share = 1000\n"
    assert run(jobs, [1], score(text, "multifactor")).start == {"A": 0, "B": 8, "D": 18, "C": 23}
    shares = score(text + "[shares]\nv = 3\n", "multifactor")
    assert run(jobs, [1], shares).start == {"A": 0, "B": 8, "C": 18, "D": 23}
