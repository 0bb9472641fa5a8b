"""What a page says of a log: few rows, units, three digits."""

from __future__ import annotations

import escala
from escala.report import Section, render
from escala.report.description import description_tables, description_text


def _week() -> escala.workload.Description:
    n = 40
    log = escala.Workload.from_jobs(
        {
            "submit_s": [7200.0 * i for i in range(n)],
            "runtime_s": [100.0 + i for i in range(n)],
            "walltime_s": [7200.0] * n,
            "cores": [1, 3] * (n // 2),
        }
    )
    return escala.describe(log, escala.read_platform("2x4"))


def test_facts_and_distributions_by_hand() -> None:
    facts, groups, spread = description_tables(_week())
    said = {row[i].text: row[i + 1].text for row in facts.rows for i in (0, 2) if row[i].text}
    assert said["Jobs"] == "40" and said["Cores of the machine"] == "8" and said["Largest job"] == "3\u202fcores"
    assert said["Period"] == "3.25\u202fdays" and said["Days with at least two jobs"] == "4"  # 39 x 2 h + 139 s
    assert said["Jobs of one core"] == "50.0\u202f%"
    assert said["Sequential submissions (< 5 min after the previous)"] == "0\u202f%"
    # four days, no submission within 5 min of the one before
    assert [[cell.text for cell in row] for row in groups.rows] == [["Days", "4", "0", "0", "0", "0"]]
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in spread.rows}
    names = [name for name, _, _ in spread.headers][1:]
    runtime = dict(zip(names, rows["Runtime"]))
    # 119.5, 139 s
    assert (runtime["min"], runtime["mean"], runtime["max"]) == ("100\u202fs", "120\u202fs", "2.32\u202fmin")
    assert dict(zip(names, rows["Walltime"]))["p50"] == "2\u202fh"
    assert dict(zip(names, rows["Cores"]))["mean"] == "2"


def test_every_figure_of_the_description_is_there_in_a_few_rows() -> None:
    description = _week()
    tables = description_tables(description)
    assert sum(len(table.rows) for table in tables) <= 20 < len(description.rows())
    assert {name for table in tables for name, _, _ in table.headers} >= set(description["day_groups"])
    page = render({}, title="t", sections=[Section("The log", description_text(description), tables=tables)])
    assert "Interarrival" in page and "Share of sequential submissions" in page
