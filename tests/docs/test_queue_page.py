"""The page queue2026, and the score that comes with Escala, are those that the bench writes from what it found."""

from __future__ import annotations

import json
import math

import polars as pl

import escala
from bench import bench_queue, page_queue, picture_queue, queue_pasts
from bench.queue_pasts import Candidate, Found
from escala.policies.linear import Linear
from escala.workload import generate


def test_the_page_is_written_from_what_was_found() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))
    assert bench_queue.FOUND.with_suffix(".md").read_text(encoding="utf-8") == page_queue.page(found)
    assert set(found["logs"]) <= set(bench_queue.JUDGED) and len(found["logs"]) >= 5
    assert {bench_queue.SCORE_OF.get(name, name) for name in found["logs"]} <= set(found["scores"])
    for name, entry in found["scores"].items():
        assert name not in entry["logs"] and not set(bench_queue.SAME.get(name, ())) & set(entry["logs"])


def test_the_picture_is_drawn_from_what_was_found() -> None:
    """It leads the README: waits of queues, and no waste of energy."""
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))
    drawn = picture_queue.picture(found)
    assert bench_queue.FOUND.with_suffix(".svg").read_text(encoding="utf-8") == drawn
    assert drawn.count("<circle") == len(found["logs"]) and all(f">{name}</text>" in drawn for name in found["logs"])
    readme = (bench_queue.FOUND.parents[2] / "README.md").read_text(encoding="utf-8")
    first = readme[readme.index("![") :].splitlines()[0]
    assert first.endswith("(docs/studies/queue2026.svg)") and "waste" not in readme.lower()


def test_the_readme_tells_what_was_found() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))["logs"]
    told = " ".join((bench_queue.FOUND.parents[2] / "README.md").read_text(encoding="utf-8").split())
    slowdown = {name: log["ratio"]["easy"]["bounded_slowdown"] for name, log in found.items()}
    mean = math.exp(sum(math.log(value) for value, _, _ in slowdown.values()) / len(slowdown))
    assert len(found) == 8 and "later weeks of eight real logs" in told
    assert f"has {mean:.2f} times the mean bounded slowdown of EASY" in told
    for word, name in (
        ("from", min(slowdown, key=slowdown.__getitem__)),
        ("to", max(slowdown, key=slowdown.__getitem__)),
    ):
        value, low, high = slowdown[name]
        assert f"{word} {value:.2f} [{low:.2f}, {high:.2f}] on {name}" in told
    kept = sum(all(clause["kept"] for clause in log["promise"]) for log in found.values())
    assert f"was kept on {kept} of 8" in told
    assert not any(low > 1.0 for _, low, _ in slowdown.values())


def test_the_score_that_comes_with_escala_is_that_of_all_logs() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))
    assert bench_queue.SHIPPED.read_text(encoding="utf-8") == bench_queue.shipped(found)


RULE, ORDERED, GIVEN, LATE = (
    Candidate(*one) for one in (("saf", "", 24), ("sjf", "model", 24), (queue_pasts.OTHERS, "", 24), ("saf", "", 48))
)


def test_a_way_chooses_on_one_part_and_is_judged_on_the_other() -> None:
    """The least value of those that keep the promise where it chooses; what other logs gave can turn the choice."""
    even = Found(0.0, 0.0, 0.0)
    first = {RULE: Found(-0.2, 0.0, -0.2), ORDERED: Found(-0.1, 0.0, -0.1), GIVEN: even, LATE: Found(-9.0, 1.0, -9.0)}
    then = {
        RULE: even,
        ORDERED: Found(0.0, 0.5, math.log(0.5)),
        GIVEN: Found(0.0, 0.0, 0.5),
        LATE: Found(0.0, 0.0, 1.0),
    }
    logs = {name: [(first, then)] * 3 for name in ("a", "b")}
    found = queue_pasts.summary(logs, {})
    assert found[queue_pasts.RULES] == [(1.0, 2)] * 3 and found[queue_pasts.BY_MODEL] == [(0.5, 0)] * 3
    assert found[queue_pasts.HINDSIGHT] == [(1.0, 2)] * 3, "what breaks the promise is not the best"
    assert queue_pasts.best(first, lambda one: True, {ORDERED.kind: -1.0}) == ORDERED
    assert queue_pasts.prior_of("a", logs, {}) == {RULE.kind: -0.2, ORDERED.kind: -0.1, GIVEN.kind: 0.0}
    assert queue_pasts.prior_of("a", logs, {"a": ("b",)}) == {}


def test_pasts_are_looked_at_alone() -> None:
    log = generate.lublin(jobs=1500, cores=16, load=0.9, seed=2)
    at = 0.6 * float(log.jobs["submit_s"][-1])
    other = log.with_jobs(
        log.jobs.with_columns(runtime_s=pl.when(pl.col("submit_s") < at).then("runtime_s").otherwise(1.0))
    )
    score = Linear((("log_wait_over_estimate", -1.0),))
    found, again = (queue_pasts.cuts_of(one, "1x16", score, {}) for one in (log, other))
    assert found == again and len(found) == len(queue_pasts.CUTS)
    assert escala.simulate(log, "1x16").summary() != escala.simulate(other, "1x16").summary()
