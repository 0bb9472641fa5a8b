"""The picture docs/studies/queue2026.svg: the policies that `escala tune` chose beside EASY, with their intervals over
weeks, from what `bench.bench_queue` found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

WIDTH, LEFT, RIGHT, TOP, ROW = 720, 150, 40, 34, 26
LEAST, MOST = 0.125, 2.0
"""The ends of the axis, which goes by powers of two; intervals are cut there."""
TICKS = (0.125, 0.25, 0.5, 1.0, 2.0)
INK, POLICY = "#4d4d4d", "#d55e00"
AXIS = "Mean bounded slowdown over EASY's, on later weeks (left of 1: better)"


def picture(found: Mapping[str, Any]) -> str:
    """The picture as SVG: a row a log, the least ratio first, the geometric mean last."""
    ratios = {name: log["ratio"]["easy"]["bounded_slowdown"] for name, log in found["logs"].items()}
    mean = math.exp(sum(math.log(value) for value, _, _ in ratios.values()) / len(ratios))
    rows = sorted(ratios.items(), key=lambda one: one[1][0])
    bottom = TOP + ROW * (len(rows) + 1)
    parts = [_text(LEFT, 18, AXIS, anchor="start")]
    for tick in TICKS:
        colour, width = (INK, 1.5) if tick == 1.0 else ("#cccccc", 1)
        parts.append(_line(_at(tick), TOP - 4, _at(tick), bottom, colour, width))
        parts.append(_text(_at(tick), bottom + 18, f"{tick:g}" if tick != 1.0 else "1: EASY", anchor="middle"))
    for k, (name, (value, low, high)) in enumerate(rows):
        y = TOP + ROW * k + ROW // 2
        parts.append(_text(LEFT - 12, y + 5, name))
        parts.append(_line(_at(low), y, _at(high), y, POLICY, 2))
        parts.append(f'<circle cx="{_at(value)}" cy="{y}" r="5" fill="{POLICY}"/>')
    y = bottom - ROW // 2
    parts.append(_text(LEFT - 12, y + 5, "geometric mean"))
    x = _at(mean)
    parts.append(f'<path d="M{x - 7} {y}L{x} {y - 7}L{x + 7} {y}L{x} {y + 7}Z" fill="{INK}"/>')
    parts.append(_text(x + 12, y + 5, f"{mean:.2f}", anchor="start"))
    size = f'width="{WIDTH}" height="{bottom + 28}" viewBox="0 0 {WIDTH} {bottom + 28}"'
    style = 'font-family="sans-serif" font-size="14"'
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', ground, *parts, "</svg>"]) + "\n"


def _at(ratio: float) -> int:
    """Where a ratio stands on the axis."""
    inside = min(max(ratio, LEAST), MOST)
    return round(LEFT + (WIDTH - LEFT - RIGHT) * math.log(inside / LEAST) / math.log(MOST / LEAST))


def _line(x: int, y: int, to_x: int, to_y: int, colour: str, width: float) -> str:
    return f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="{colour}" stroke-width="{width}"/>'


def _text(x: int, y: int, text: str, anchor: str = "end") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{INK}">{escape(text, quote=False)}</text>'
