"""Figures of verdicts as people read them: changes in per cent, the rest with three significant digits."""

from __future__ import annotations

from escala.studies.verdicts.rule import Found

NONE = "–"


def number(value: float | None, unit: str) -> str:
    """A figure in its unit: "-13.4 %" for a relative change of -0.134."""
    if value is None:
        return NONE
    if unit == "relative change":
        shown = 100.0 * value
        text = f"{shown:+.0f}" if abs(shown) >= 99.95 else f"{shown:+.1f}"
        return f"{text.replace('+0.0', '0.0').replace('-0.0', '0.0')} %"
    if abs(value) >= 1000.0:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:#.3g}".rstrip(".")


def span(found: Found, unit: str) -> str:
    """Our figure with its 95 % interval in brackets, where it has one."""
    text = number(found.ours, unit)
    if found.ours is None or found.low is None or found.high is None:
        return text
    low, high = number(found.low, unit).removesuffix(" %"), number(found.high, unit).removesuffix(" %")
    return f"{text} ({low} … {high})"
