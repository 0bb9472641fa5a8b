"""All attacks in turn, and the table of docs/reliability.md: `python -m tests.attacks [--write] [--kills N]
[--mutations N]`.

Each attack is a command of its own that prints one JSON object. `--from DIR` reads what earlier runs printed (every
*.json below it) in place of running; what is not there, each planted bug by its name, stays as it is kept. `--write`
keeps the answers in docs/reliability.json and puts the table made of them into the page. Bugs that were not planted
are named on stderr. Exit code 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.attacks.planted import AREAS, BUGS

ROOT = Path(__file__).resolve().parents[2]
PAGE, KEPT = ROOT / "docs" / "reliability.md", ROOT / "docs" / "reliability.json"
BEGIN, END = "<!-- attacked: begin -->", "<!-- attacked: end -->"
NOT_RUN = "not run"
MOST_FAILURES = 10  # kept of one attack
SHOWN = 160  # characters of one failure

Answer = dict[str, Any]


def kills(told: list[Answer]) -> Answer | None:
    """What is kept of runs of `tests.attacks.kills`: {tried, held, by {verb and target: tried}, failed}. None: none
    ran."""
    found = [one for one in told if "kills" in one]
    return _together([(one["kills"], one["held"], one["tried"], one["failed"]) for one in found])


def mutations(told: list[Answer]) -> Answer | None:
    """The same of `tests.attacks.mutations`: {tried, held, by {format: tried}, failed}."""
    found = [one for one in told if "inputs" in one]
    by = [{name: sum(outcomes.values()) for name, outcomes in one["files"].items()} for one in found]
    return _together([(one["inputs"], one["held"], counts, one["finds"]) for one, counts in zip(found, by)])


def _together(runs: list[tuple[int, int, dict[str, int], list[Any]]]) -> Answer | None:
    by: Counter[str] = Counter()
    for _, _, counts, _ in runs:
        by.update(counts)
    failed = [failure for *_, failures in runs for failure in failures]
    tried, held = sum(run[0] for run in runs), sum(run[1] for run in runs)
    return (
        {"tried": tried, "held": held, "by": dict(sorted(by.items())), "failed": failed[:MOST_FAILURES]}
        if runs
        else None
    )


def future(told: list[Answer]) -> Answer | None:
    """What is kept of the last run of `tests.attacks.future`: {tried, held, failed, objects looked at, what is not
    tried}."""
    found = [one for one in told if one.get("attack") == "future"]
    if not found:
        return None
    one = found[-1]
    kept = {"tried": one["tried"], "held": len(one["held"]), "failed": one["found"][:MOST_FAILURES]}
    return kept | {"objects": one["objects"], "not_tried": one["not_tried"]}


def mutants(told: list[Answer]) -> Answer | None:
    """What is kept of `tests.attacks.mutants`, run whole or in part: {area: {planted, survivors}}, *planted* the marks
    of names (`mark`) in one text. A bug that is not of `BUGS` any more does not count."""
    noticed = {name: seen for one in told if "noticed" in one for name, seen in one["noticed"].items()}
    return {area: _kept(area, noticed) for area in AREAS} if noticed else None


def _kept(area: str, noticed: dict[str, bool]) -> Answer:
    done = [name for name in names_of(area) if name in noticed]
    return {"planted": "".join(map(mark, done)), "survivors": [name for name in done if not noticed[name]]}


def names_of(area: str) -> list[str]:
    """The bugs of an area that there are today."""
    return [bug.name for bug in BUGS if bug.area == area]


def mark(name: str) -> str:
    """Of a bug, short enough to keep: four digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:4]


def planted(area: str, one: Answer) -> dict[str, bool]:
    """Those of today's bugs of an area that were planted, and whether each was noticed."""
    marks = re.findall("....", one["planted"])
    return {name: name not in one["survivors"] for name in names_of(area) if mark(name) in marks}


def left(area: str, one: Answer) -> list[str]:
    """Those that were not."""
    done = planted(area, one)
    return [name for name in names_of(area) if name not in done]


ATTACKS = {"kills": kills, "mutations": mutations, "future": future, "mutants": mutants}
SURVIVORS_MOST = 3


def gathered(told: list[Answer], before: Answer) -> Answer:
    """The answers to keep: those told, and those kept before for attacks, and planted bugs, that nobody ran."""
    answers = {name: keep(told) or before.get(name) for name, keep in ATTACKS.items()}
    kept = before.get("mutants") or {}
    answers["mutants"] = answers["mutants"] and {
        area: _kept(area, planted(area, kept.get(area, one)) | planted(area, one))
        for area, one in answers["mutants"].items()
    }
    return answers


def table(answers: Answer) -> str:
    """The block of the page: a row for each attack, and one for each area of planted bugs."""
    what = {
        "kills": "a command killed at a change of a file",
        "mutations": "an input file damaged at random, plain and packed",
        "future": "a policy reaching for the future, or changing the run",
    }
    rows = ["| attack | tried | held | what did not hold |", "|---|---|---|---|"]
    for name, words in what.items():
        one = answers.get(name)
        rows.append(
            f"| {words} | {NOT_RUN} | | |"
            if one is None
            else _row(words + _kinds(one), one["tried"], one["held"], one["failed"])
        )
    areas = answers.get("mutants")
    if areas is None:
        return "\n".join([*rows, f"| a bug planted in the program | {NOT_RUN} | | |"])
    for area, one in areas.items():
        words = f"a bug planted in: {area}"
        done, rest = len(planted(area, one)), len(left(area, one))
        if not done:
            rows.append(f"| {words} | {NOT_RUN} | | |")
            continue
        part = f" ({rest} not planted)" if rest else ""
        rows.append(_row(words, done, done - len(one["survivors"]), one["survivors"], part))
    return "\n".join(rows)


def _kinds(one: Answer) -> str:
    """Of what: commands without their targets, formats packed or not."""
    names = dict.fromkeys(name.split(",")[0].removesuffix(".gz") for name in one.get("by", ()))
    return f": {', '.join(names)}" if names else ""


def _row(words: str, tried: int, held: int, failed: list[Any], part: str = "") -> str:
    cells = [f"`{_line(one)}`" for one in failed]
    more = [f"and {tried - held - len(cells)} more"] if tried - held > len(cells) > 0 else []
    return f"| {words} | {tried:,}{part} | {held:,} | {'; '.join(cells + more) or '-'} |"


def _line(failure: Any) -> str:
    """A failure in one short line that a cell of a table can hold."""
    text = failure if isinstance(failure, str) else json.dumps(failure)
    return text.replace("|", "/").replace("`", "'").replace("\n", " ")[:SHOWN]


def broken(answers: Answer) -> list[str]:
    """The attacks that were run and did not hold: of the planted bugs at most three may survive."""
    wrong = [
        name
        for name in ("kills", "mutations", "future")
        if answers.get(name) and answers[name]["held"] < answers[name]["tried"]
    ]
    survivors = sum(len(one["survivors"]) for one in (answers.get("mutants") or {}).values())
    return wrong + ["mutants"] * (survivors > SURVIVORS_MOST)


def run(name: str, arguments: list[str]) -> Answer | None:
    """What one attack prints; None, with a line, where this version has no such attack or it ended without an
    answer."""
    if find_spec(f"tests.attacks.{name}") is None:
        print(f"{name}: not there", file=sys.stderr)
        return None
    print(f"{name} ...", file=sys.stderr, flush=True)
    asked = [sys.executable, "-m", f"tests.attacks.{name}", *arguments]
    done = subprocess.run(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    try:
        answer: Answer = json.loads(done.stdout)
    except ValueError:
        print(f"{name}: ended with {done.returncode} and no answer", file=sys.stderr)
        return None
    return answer


def page_with(block: str, text: str) -> str:
    """The page with its block replaced."""
    return f"{text.split(BEGIN)[0]}{BEGIN}\n{block}\n{END}{text.split(END)[1]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="keep the answers, and put the table into docs/reliability.md"
    )
    parser.add_argument("--kills", type=int, default=200, help="commands killed")
    parser.add_argument("--mutations", type=int, default=20_000, help="damaged files")
    parser.add_argument(
        "--from", dest="earlier", type=Path, metavar="DIR", help="read answers of earlier runs, *.json, and run nothing"
    )
    given = parser.parse_args()
    if given.earlier:
        told = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(given.earlier.glob("*.json"))]
        if not told:
            parser.error(f"{given.earlier}: no *.json")
    else:
        counts = {"kills": ["--kills", str(given.kills)], "mutations": ["--count", str(given.mutations)]}
        told = [answer for name in ATTACKS if (answer := run(name, counts.get(name, [])))]
    before = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    answers = gathered(told, before)
    print(table(answers))
    for area, one in (answers["mutants"] or {}).items():
        for name in left(area, one):
            print(f"not planted: {name}", file=sys.stderr)
    if given.write:
        KEPT.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page_with(table(answers), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if broken(answers) else 0


if __name__ == "__main__":
    raise SystemExit(main())
