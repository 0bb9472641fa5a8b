"""What tables and the verdict say, against figures known beforehand."""

from __future__ import annotations

import polars as pl
from synthetic import Run

from escala.metrics import compare
from escala.report import tables, verdict


def _column(table: tables.Table, name: str) -> list[tables.Cell]:
    return [row[[h[0] for h in table.headers].index(name)] for row in table.rows]


def test_the_best_of_each_column_is_marked(runs: dict[str, Run]) -> None:
    summaries = {name: r.summary() for name, r in runs.items()}
    table = tables.metrics_table(summaries, reference="fcfs + never")
    waste = [float(s["waste_j"]) for s in summaries.values()]
    assert [c.best for c in _column(table, "Energy waste")] == [w == min(waste) for w in waste]
    wait = _column(table, "Mean wait")
    assert wait[0].best and wait[1].best and not wait[2].best  # the first two have the same starts
    assert [c.best for c in _column(table, "Utilisation")][2] is False


def test_changes_stand_under_the_values(runs: dict[str, Run]) -> None:
    summaries = {name: r.summary() for name, r in runs.items()}
    table = tables.metrics_table(summaries, reference="fcfs + never")
    expected = compare.table(summaries, reference="fcfs + never")["waste_j_change"].to_list()
    notes = [c.note for c in _column(table, "Energy waste")]
    assert notes[0] == ""
    assert notes[1] == f"{100 * expected[1]:+.1f}\u202f%".replace("-", "−")
    assert table.rows[0][0].note == "reference"


def test_a_single_policy_has_no_winner(runs: dict[str, Run]) -> None:
    table = tables.metrics_table({"only": runs["fcfs + never"].summary()}, reference="only")
    assert not any(c.best or c.note for row in table.rows for c in row)
    assert verdict.caution({"only": {}}, None) == ""


def test_counts_are_beside_the_means(runs: dict[str, Run]) -> None:
    table = tables.counts_table({name: r.summary() for name, r in runs.items()})
    assert [c.text for c in table.rows[0][1:3]] == [
        "400",
        str((runs["fcfs + never"].jobs["state"] == "COMPLETED").sum()),
    ]


def test_comparison_tables_by_hand(comparison: pl.DataFrame) -> None:
    waste, wait = tables.comparison_tables(comparison)
    assert [row[0].text for row in waste.rows] == ["never", "rule", "agent"]
    change = _column(waste, "Change")
    assert change[0].text == "reference"
    assert (change[1].text, change[1].note, change[1].best) == ("−10.0\u202f%", "[−10.0, −10.0]", True)
    assert change[2].text == "−19.0\u202f%"  # seeds save 20, 19 and 18 %
    assert [c.text for c in _column(waste, "Better in")] == ["–", "100", "100"]
    assert "12 paired episodes, 3 seeds" in waste.caption
    assert not any(c.best for c in _column(wait, "Change"))  # the wait goes both ways


def test_verdict_over_episodes(comparison: pl.DataFrame) -> None:
    said, price = verdict.held_out(comparison)
    assert said.startswith(
        "Energy waste against never, over 12 paired episodes and 3 seeds: better under agent (−19.0\u202f% ["
    )
    assert said.endswith("]) and rule (−10.0\u202f%).")
    assert price == "agent, the best in energy waste, is undecided in mean wait (±0\u202f%)."
    energy = comparison.with_columns(pl.col("metric").replace("waste_j", "energy_j"))
    spent, wait = verdict.held_out_cards(energy)
    assert (spent.label, spent.who) == ("Lowest energy, mean over episodes", "agent")
    assert spent.note.startswith("−19.0") and spent.note.endswith("against never")
    assert [card.label for card in verdict.held_out_cards(comparison)] == [wait.label], "waste leads nowhere"
    assert wait.label.startswith("Lowest mean wait")


def test_verdict_names_what_is_worse_and_what_the_gain_costs() -> None:
    factors = {"timeout:0": (1.0, 1.0), "never": (40.0, 0.5), "hold": (0.8, 3.0), "toss": (None, 1.0)}
    rows = [
        {
            "policy": policy,
            "episode": day,
            "waste_j": 1e6 * ((0.9 + 0.2 * (day % 2)) if waste is None else waste),
            "mean_wait_s": 60.0 * wait,
        }
        for day in range(10)
        for policy, (waste, wait) in factors.items()
    ]
    comparison = compare.episodes(pl.DataFrame(rows), ["waste_j", "mean_wait_s"], reference="timeout:0")
    assert verdict.held_out(comparison)[0].startswith(
        "Energy waste against timeout:0, over 10 paired episodes: better under hold (−20.0\u202f% [−20.0, −20.0]); "
        "worse under never (+3900\u202f% [+3900, +3900]); undecided under toss (±0\u202f% ["
    )
    assert verdict.held_out(comparison)[1:] == ["hold, the best in energy waste, is worse in mean wait (+200\u202f%)."]
    without = comparison.filter(pl.col("policy") != "hold")
    assert verdict.held_out(without)[1:] == ["No policy is better in energy waste beyond chance."]
    assert verdict.held_out(None) == verdict.held_out(comparison.filter(policy="timeout:0")) == []


def test_the_mean_of_a_count_keeps_its_fraction() -> None:
    rows = [
        {"policy": p, "episode": day, "transitions": float(n)}
        for p, counts in (("a", (2, 3)), ("b", (4, 4)))
        for day, n in enumerate(counts)
    ]
    comparison = compare.episodes(pl.DataFrame(rows), ["transitions"], reference="b")
    assert verdict.held_out_cards(comparison)[0].value == "2.500"
    assert _column(tables.overview_table(comparison), "Transitions")[0].text == "2.500"


def test_overview_by_hand(comparison: pl.DataFrame) -> None:
    table = tables.overview_table(comparison)
    assert [(name, unit) for name, unit, _ in table.headers] == [
        ("Policy", ""),
        ("Energy waste", "kWh"),
        ("Mean wait", "s"),
    ]  # 65.5 s: minutes are for two and more
    waste = _column(table, "Energy waste")  # 1, 2, .. 12 MJ of 3.6 a kWh; 0.9 and 0.81 of it
    assert [(c.text, c.best) for c in waste] == [("1.806", False), ("1.625", True), ("1.462", True)]
    assert waste[0].note == "reference" and waste[1].note == "−10.0\u202f%\n[−10.0, −10.0]"
    assert not any(c.best for c in _column(table, "Mean wait"))


def test_verdict_of_single_runs(runs: dict[str, Run]) -> None:
    summaries = {name: r.summary() for name, r in runs.items()}
    cards = {c.label: c for c in verdict.cards(summaries, reference="fcfs + never")}
    best = min(summaries, key=lambda name: float(summaries[name]["energy_j"]))
    assert cards["Lowest energy"].who == best
    assert cards["Lowest mean wait"].who == "fcfs + never and 1 equal to it"
    assert "carry no interval" in verdict.caution(summaries, None)
    assert verdict.subject(summaries).startswith("3 policies · 400 jobs · 16 nodes with 16 cores · ")


def test_frames_get_units_from_their_column_names() -> None:
    frame = pl.DataFrame(
        {
            "rule": ["zero runtime", None],
            "jobs": [8, 12345],
            "mean_wait_s": [1200.0, None],
            "waste_change": [-0.1, 0.25],
        }
    )
    table = tables.frame_table(frame, "cleaning")
    assert [(name, unit) for name, unit, _ in table.headers] == [
        ("Rule", ""),
        ("Jobs", ""),
        ("Mean wait", "min"),
        ("Waste", "%"),
    ]
    assert [[c.text for c in row] for row in table.rows] == [
        ["zero runtime", "8", "20.00", "−10.00"],
        ["–", "12\u202f345", "–", "25.00"],
    ]
    assert tables.frame_table(pl.DataFrame()).rows == []
