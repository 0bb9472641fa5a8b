"""The page queue2026, and the score that comes with Escala, are those that the bench writes from what it found."""

from __future__ import annotations

import json
import math

from bench import bench_queue, page_queue


def test_the_page_is_written_from_what_was_found() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))
    assert bench_queue.FOUND.with_suffix(".md").read_text(encoding="utf-8") == page_queue.page(found)
    assert set(found["logs"]) <= set(bench_queue.JUDGED) and len(found["logs"]) >= 5
    assert {bench_queue.SCORE_OF.get(name, name) for name in found["logs"]} <= set(found["scores"])
    for name, entry in found["scores"].items():
        assert name not in entry["logs"] and not set(bench_queue.SAME.get(name, ())) & set(entry["logs"])


def test_the_readme_tells_what_was_found() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))["logs"]
    told = " ".join((bench_queue.FOUND.parents[2] / "README.md").read_text(encoding="utf-8").split())
    slowdown = {name: log["ratio"]["easy"]["bounded_slowdown"] for name, log in found.items()}
    mean = math.exp(sum(math.log(value) for value, _, _ in slowdown.values()) / len(slowdown))
    assert len(found) == 8 and "later weeks of eight real logs" in told
    assert f"has {mean:.2f} times the mean bounded slowdown of EASY" in told
    for word, name in (("from", min(slowdown, key=slowdown.__getitem__)), ("to", max(slowdown, key=slowdown.__getitem__))):
        value, low, high = slowdown[name]
        assert f"{word} {value:.2f} [{low:.2f}, {high:.2f}] on {name}" in told
    kept = sum(all(clause["kept"] for clause in log["promise"]) for log in found.values())
    assert f"was kept on {kept} of 8" in told
    assert not any(low > 1.0 for _, low, _ in slowdown.values())


def test_the_score_that_comes_with_escala_is_that_of_all_logs() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))
    assert bench_queue.SHIPPED.read_text(encoding="utf-8") == bench_queue.shipped(found)
