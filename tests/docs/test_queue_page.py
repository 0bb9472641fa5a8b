"""The page queue2026, and the score that comes with Escala, are those that the bench writes from what it found."""

from __future__ import annotations

import json

from bench import bench_queue, page_queue


def test_the_page_is_written_from_what_was_found() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))
    assert bench_queue.FOUND.with_suffix(".md").read_text(encoding="utf-8") == page_queue.page(found)
    assert set(found["logs"]) <= set(bench_queue.JUDGED) and len(found["logs"]) >= 5
    assert {bench_queue.SCORE_OF.get(name, name) for name in found["logs"]} <= set(found["scores"])
    for name, entry in found["scores"].items():
        assert name not in entry["logs"] and not set(bench_queue.SAME.get(name, ())) & set(entry["logs"])


def test_the_score_that_comes_with_escala_is_that_of_all_logs() -> None:
    found = json.loads(bench_queue.FOUND.read_text(encoding="utf-8"))
    assert bench_queue.SHIPPED.read_text(encoding="utf-8") == bench_queue.shipped(found)
