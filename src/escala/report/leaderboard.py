"""The page of a leaderboard: which entry is best and by how much, log by log, whether the promise is kept, and who
pays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from escala.leaderboard import Entry, Standing
from escala.leaderboard.seen import TOLD
from escala.leaderboard.standing import Row, Within
from escala.report import marks
from escala.report.page import write_report
from escala.report.parts import Section
from escala.report.quantities import amount, count, quantity
from escala.report.tables import Cell, Table
from escala.tuning.judge import LEAST_JOBS, RATIOS

EASY = "easy"
FEW_WEEKS = 8
"""With fewer weeks intervals over weeks leave out the truth more often than they say."""


def sentences(found: Standing) -> list[str]:
    """Who is best and by how much, what of the promise is kept, and what is to be known of all this."""
    return [_first(found), *_next(found), *_promises(found), *_clairvoyant(found), *_few(found), *_versions(found)]


def _name(found: Standing) -> str:
    name = quantity(found.suite.figure).name
    return f"{'mean ' if found.suite.objective == 'slowdown' else ''}{name[:1].lower()}{name[1:]}"


def _first(found: Standing) -> str:
    suite = found.suite
    on = f"On the suite {suite.name} ({len(suite.logs)} logs, {found.weeks} later weeks, {count(found.jobs)} jobs)"
    if found.best is None:
        return f"{on} every entry knows the future: none is the best."
    several = sum(not row.entry.knows for row in found.rows) > 1
    own, times = found.best.entry.name, f"{_ratio(found.best.value)} times easy's"
    told = f"{on} {own} has the least {_name(found)}, {times}" if several else f"{on} {own} has {times} {_name(found)}"
    low, high = found.best.value[1:]
    sure = (
        ""
        if high < 1.0
        else "; it is behind easy by the whole interval"
        if low > 1.0
        else "; that is not told apart from easy"
    )
    return f"{told}, in the geometric mean over the logs (in brackets 95 % intervals over weeks){sure}."


def _next(found: Standing) -> list[str]:
    others = [row for row in found.rows if not row.entry.knows and row is not found.best]
    if found.best is None or not others:
        return []
    clear = [row for row in others if row.against[1] > 1.0]
    near = [row for row in others if row not in clear]
    told = []
    if clear:
        told.append(
            f"ahead of {_listed([f'{row.entry.name} ({_ratio(row.against)} times its figure)' for row in clear])}"
        )
    if near:
        told.append(f"not told apart from {_listed([f'{row.entry.name} ({_ratio(row.against)})' for row in near])}")
    return [f"By whole intervals over the same weeks it is {'; it is '.join(told)}."]


def _promises(found: Standing) -> list[str]:
    """Of the best, and of whom keeps it on more logs."""
    if found.best is None:
        return []
    n = len(found.suite.logs)
    told = f"It keeps the promise ({found.suite.promise}) on {_of(found.best.kept, n)}"
    more = [row for row in found.rows if row.kept > found.best.kept and not row.entry.knows]
    return [f"{told}; {_listed([f'{row.entry.name} on {row.kept}' for row in more])}." if more else f"{told}."]


def _of(kept: int, n: int) -> str:
    return f"all {n} logs" if kept == n and n > 1 else f"{kept} of {n} logs"


def _clairvoyant(found: Standing) -> list[str]:
    told = [
        f"{row.entry.name} (knows {row.entry.knows}; {_ratio(row.value)} times easy's)"
        for row in found.rows
        if row.entry.knows
    ]
    return [f"Not ranked, since no scheduler of a real machine knows the future: {_listed(told)}."] if told else []


def _few(found: Standing) -> list[str]:
    few = [log for log, told in found.rows[0].entry.logs.items() if told["weeks"] < FEW_WEEKS]
    return (
        [f"Intervals on {_listed(few)} rest on fewer than {FEW_WEEKS} weeks, and are narrower than the truth."]
        if few
        else []
    )


def _versions(found: Standing) -> list[str]:
    states = {(row.entry.escala, row.entry.source) for row in found.rows}
    return (
        [f"The entries were made by {len(states)} states of Escala; EASY's waits are the same under all."]
        if len(states) > 1
        else []
    )


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _ratio(found: Within | list[Any]) -> str:
    value, low, high = found
    return "–" if value is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def rank_rows(found: Standing) -> list[dict[str, Any]]:
    """One row an entry, the best first; clairvoyant ones have no rank."""
    honest = [row.entry.name for row in found.rows if not row.entry.knows]
    powered = any(row.energy is not None for row in found.rows)
    named = any(row.entry.name != _policy(row.entry) for row in found.rows)
    return [
        {
            "rank": str(honest.index(row.entry.name) + 1) if row.entry.name in honest else "–",
            "entry": marks.shown(row.entry.name, {row.entry.name: row.entry.knows}),
            f"{_name(found)} / easy's": _ratio(row.value),
            "/ the best's": "–" if found.best is None or row is found.best else _ratio(row.against),
            "promise kept": f"{row.kept} of {len(row.entry.logs)}",
        }
        | ({"energy / easy's": "–" if row.energy is None else f"{row.energy:.3f}"} if powered else {})
        | ({"policy": _policy(row.entry)} if named else {})
        for row in found.rows
    ]


def _policy(entry: Entry) -> str:
    return entry.policy if entry.shutdown == "never" else f"{entry.policy} + {entry.shutdown}"


def _log_table(found: Standing) -> Table:
    """A row a log, a column an entry; under each ratio its interval, and which part of the promise is broken."""
    of = next(name for name, figure in RATIOS.items() if figure == found.suite.figure)
    names = [marks.shown(row.entry.name, {row.entry.name: row.entry.knows}) for row in found.rows]
    headers = [("Log", "", ""), ("Later weeks", "", ""), ("Under easy", "", quantity(found.suite.figure).meaning)]
    rows = []
    for log, told in found.rows[0].entry.logs.items():
        each = [row.entry.logs[log] for row in found.rows]
        honest = [one["ratio"][EASY][of][0] for one, row in zip(each, found.rows, strict=True) if not row.entry.knows]
        easy = Cell(amount(found.suite.figure, told["baselines"][EASY][found.suite.figure]), plain=True)
        cells = [_on_log(one, of, len(honest) > 1 and one["ratio"][EASY][of][0] == min(honest)) for one in each]
        rows.append([Cell(log, plain=True), Cell(str(told["weeks"])), easy, *cells])
    caption = (
        "Ratios to easy on the later weeks, 95 % intervals over whole weeks; what of the promise is broken "
        "stands below."
    )
    return Table([*headers, *((name, "", "") for name in names)], rows, caption, star="the least of the honest entries")


def _on_log(told: Mapping[str, Any], of: str, best: bool) -> Cell:
    value, low, high = told["ratio"][EASY][of]
    broken = [clause["clause"].partition("<=")[0] for clause in told["promise"] if not clause["kept"]]
    note = f"[{low:.2f}, {high:.2f}]" + (f"\nbroken: {', '.join(broken)}" if broken else "")
    return Cell(f"{value:.2f}", note, best=best)


def promise_rows(row: Row) -> list[dict[str, Any]]:
    """One row for each log and condition of an entry."""
    return [
        {
            "log": log,
            "condition": clause["clause"],
            "later weeks": amount(clause["figure"], clause["value"]),
            "promised": amount(clause["figure"], clause["bound"]),
            "kept": "yes" if clause["kept"] else "no",
        }
        for log, told in row.entry.logs.items()
        for clause in told["promise"]
    ]


def paying_rows(found: Standing) -> list[dict[str, Any]]:
    """One row for each entry and log: the size of jobs that loses most, and users better and worse off."""
    rows = []
    for row in found.rows:
        for log, told in row.entry.logs.items():
            lost = max(
                told["who_pays"]["by size"], key=lambda group: group["mean_wait_s"] - group["mean_wait_before_s"]
            )
            worse = lost["mean_wait_s"] > lost["mean_wait_before_s"]
            before, after = (amount("mean_wait_s", lost[name]) for name in ("mean_wait_before_s", "mean_wait_s"))
            users = told["users"]
            rows.append(
                {
                    "entry": marks.shown(row.entry.name, {row.entry.name: row.entry.knows}),
                    "log": log,
                    "pays most": f"jobs of {lost['group']} core{'' if lost['group'] == '1' else 's'}: {before} to "
                    f"{after}"
                    if worse
                    else "no size of jobs",
                    "users better off": "–" if users is None else f"{100 * users['better']:.0f} %",
                    "users worse off": "–" if users is None else f"{100 * users['worse']:.0f} %",
                }
            )
    return rows


def trained_rows(found: Standing) -> list[dict[str, Any]]:
    """One row for each entry and what its policies in folders say that they were trained or chosen on; logs of which
    they say the same stand together."""
    rows: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for row in found.rows:
        for log, told in row.entry.logs.items():
            for role, about in told.get("trained", {}).items():
                rows.setdefault((row.entry.name, role, tuple(about[part] for part in TOLD)), []).append(log)
    shared = any(place for _, _, (*_, place) in rows)
    return [
        {"entry": name, "decides": DECIDES[role], "what it is": what, "trained or chosen on": on, "with Escala": escala}
        | ({"escala policy pull": place or "–"} if shared else {})
        | {"judged on": _all_of(logs, len(found.suite.logs))}
        for (name, role, (what, on, escala, place)), logs in rows.items()
    ]


def _all_of(logs: list[str], n: int) -> str:
    return "every log" if len(logs) == n > 1 else _listed(logs)


def energy_rows(found: Standing) -> list[dict[str, Any]]:
    """One row for each entry that switches nodes off, and log: energies of its later weeks."""
    return [
        {
            "entry": marks.shown(row.entry.name, {row.entry.name: row.entry.knows}),
            "log": log,
            "easy, all nodes on": amount("energy_j", told["energy"][EASY]),
            "entry's": amount("energy_j", told["energy"]["policy"]),
            "ratio": _ratio(told["energy"]["ratio"]),
        }
        for row in found.rows
        for log, told in row.entry.logs.items()
        if told["energy"] is not None
    ]


DECIDES = {"scheduler": "who starts", "shutdown": "which nodes are on"}
TRAINED = "As the folders of the policies say; nobody can check it."
PAYING = (
    "Mean waits under easy, then under the entry, of the size of jobs that loses most; users with at least "
    f"{LEAST_JOBS} later jobs whose mean wait is shorter or longer by more than an hour (–: the log names none)."
)


def sections(found: Standing) -> list[Section]:
    """The parts of the page."""
    knows = {row.entry.name: row.entry.knows for row in found.rows}
    caption = (
        f"95 % intervals from 1 000 resamples of whole weeks, the same for every entry. {marks.legend(knows)}".strip()
    )
    parts = [
        Section("Ranking", "", [(pl.DataFrame(rank_rows(found)), caption)]),
        Section("Log by log", "", [_log_table(found)]),
        Section("Who pays", "", [(pl.DataFrame(paying_rows(found)), PAYING)]),
    ]
    if trained := trained_rows(found):
        parts.append(Section("Trained on what", "", [(pl.DataFrame(trained), TRAINED)]))
    if energies := energy_rows(found):
        caption = "Energy of the later weeks; ratios with 95 % intervals over whole weeks."
        parts.append(Section("Energy", "", [(pl.DataFrame(energies), caption)]))
    for row in found.rows:
        parts.append(
            Section(f"The promise under {row.entry.name}", "", [(pl.DataFrame(promise_rows(row)), found.suite.promise)])
        )
    if len(found.rows) == 1:
        entry = found.rows[0].entry
        groups = [
            (pl.DataFrame(rows), f"{log}: waits {by}, before, under easy; then under {entry.name}.")
            for log, told in entry.logs.items()
            for by, rows in told["who_pays"].items()
        ]
        parts.append(Section("Who pays, group by group", "", groups))
    return parts


def write_page(found: Standing, path: Path) -> None:
    """Write the page."""
    n = len(found.rows)
    title = f"Leaderboard {found.suite.name}: {found.rows[0].entry.name if n == 1 else f'{n} entries'}"
    write_report(path, {}, title=title, notes=sentences(found), sections=sections(found))
