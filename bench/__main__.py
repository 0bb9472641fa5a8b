"""`python -m bench [WORD ...]`: measure the rows of docs/performance.md whose text holds one of the words (all rows
without words).

With `--write`, the table in docs/performance.md is replaced by the one measured.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import bench_envs, bench_multi, bench_slots, kernel, live, reader, startup
from bench.measure import Case, machine

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
CASES = [case for part in (kernel, reader, bench_envs, bench_slots, bench_multi, live, startup) for case in part.CASES]
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def shown(value: float, unit: str) -> str:
    """A figure with three significant digits."""
    if value >= 100:
        return f"{round(value, -max(0, len(str(int(value))) - 3)):,.0f} {unit}"
    return f"{value:.3g} {unit}"


def measured(cases: list[Case]) -> str:
    """The table, row by row also on the terminal."""
    lines = [f"Machine: {machine()}.", "", "| what | must reach | measured |", "|---|---|---|"]
    for case in cases:
        lines.append(f"| {case.what} | {case.must} | {shown(*case.measure())} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("words", nargs="*", help="measure only rows whose text holds one of these")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/performance.md")
    given = parser.parse_args()
    chosen = [
        case for case in CASES if not given.words or any(word.lower() in case.what.lower() for word in given.words)
    ]
    if not chosen:
        sys.exit(f"error: no row holds any of {', '.join(given.words)}; rows: {'; '.join(case.what for case in CASES)}")
    if given.write and len(chosen) < len(CASES):
        sys.exit("error: --write replaces the whole table; leave the words out")
    table = measured(chosen)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
