"""A journal written by hand, of which every figure is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.findings import find, waits_by, wilson
from escala.bridges.slurm.page import write_page
from escala.bridges.slurm.sentences import answers, conditions, trust
from escala.bridges.slurm.story import status
from escala.cli.app import run
from escala.errors import EscalaError
from escala.platform import Platform, PowerProfile
from tests.bridges.slurm.journals import journal, pending


def test_large_figures_are_written_out(tmp_path: Path) -> None:
    """No powers of ten: a machine of 100 000 kWh a year is one of many."""
    found = find(journal(tmp_path / "j"))
    found.sums |= {"off_s": 5_432.0 * 3600, "idle_s": 22_788.0 * 3600, "saved_j": 43_210.0 * 3.6e6}
    told = answers(found, 0.3, "EUR")
    assert "off for 5,430 node-hours, 24% of the 22,800 node-hours" in told[0]
    assert "saves 43,200 kWh, 13,000 EUR" in told[1] and "A year of such days: 1,970,000 kWh, 592,000 EUR." in told[1]


def test_figures_by_hand(tmp_path: Path) -> None:
    found = find(journal(tmp_path / "j"))
    assert found.n_looks == 301 and found.days == pytest.approx(8.0) and found.missed == pytest.approx(0.0)
    assert found.sums["off_s"] == pytest.approx(8 * 86400) and found.how == {"same": 270, "earlier": 20, "later": 10}
    assert found.agreement == pytest.approx((0.9, 0.8609, 0.9290), abs=1e-4)
    # ann: 268 the same, 1 of these on nodes that were off, 20 earlier by 60 s, 10 later, of which one is known by its
    # nodes
    assert [one.row() for one in waits_by(found, "user")] == [
        ("bob", 1, 0, 0, 1, 0, 240.0, 240.0, 0.0),
        ("ann", 299, 20, 268, 11, 10, 0.0, 100.0, 60.0),
    ]
    assert (found.jobs, found.loose) == (2, 1) and found.earlier() == [60.0] * 20
    told = answers(found, 0.3, "EUR", 400.0)
    assert (
        "for 8 days: easy + timeout:9 would have had nodes off for 192 node-hours, 50% of the 384 node-hours" in told[0]
    )
    kwh = 142.0 * 8 * 86400 / 3.6e6
    assert (
        f"{kwh:.3g} kWh, {kwh * 0.3:.3g} EUR, {kwh * 0.4:.3g} kg CO2" in told[1]
        and "A year of such days: 1,240 kWh" in told[1]
    )
    assert told[2] == (
        "0 of 2 users would have waited longer for a job by more than 5 minutes. By how much 10 other starts would "
        "have moved is not known."
    )
    assert (
        "3 of 300 started jobs, of 2 users, would have waited for nodes to wake: 147 s on average, 240 s at most"
        in told[3]
    )
    assert (
        "it would have done 90% too (95 % interval 86% to 93%); 20 jobs it would have started before (by 60 s"
        in told[4]
    )
    assert "the policy's plan for 9 waiting jobs: 300 s off in the median, 300 s late" in told[5]
    assert "Slurm's own estimate for 2 waiting jobs: 10 s off in the median, 10 s early" in told[6]
    assert told[7].startswith("Enough was watched") and found.wanting() == []
    assert "1 of 2 jobs asked for more nodes than their CPUs need" in " ".join(conditions(found))


def test_whose_waits_would_have_changed_by_user_and_partition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """cem: a job held for 400 s by the plan, one for 40 s on a node that takes 90 s to wake, one 700 s before; dan: one
    the same."""
    rows: list[list[Any]] = [
        ["901", "cem", 0.0, 1000.0, "later", None, None, None, 1400.0],
        ["902", "cem", 0.0, 1000.0, "later", None, None, None, 1040.0],
        ["903", "cem", 0.0, 1000.0, "earlier", 300.0, None, None, None],
        ["904", "dan", 0.0, 1000.0, "same", 1000.0, None, None, None],
        ["905", "dan", 0.0, 1000.0, "unasked", None, None, None, None],
    ]
    jobs = [pending(int(row[0])) for row in rows]
    for job, row in zip(jobs, rows, strict=True):
        job[11:13] = row[1], "fat" if row[1] == "cem" else "batch"
    lived = {"delays": [["902", "cem", 90.0]]}
    look = {"kind": "look", "t": 8 * 86400.0 + 10, "seq": 999, "lived": lived, "started": rows, "seen": {"jobs": jobs}}
    found = find(journal(tmp_path / "journal.jsonl", more=(look,)))
    assert waits_by(found, "user")[0].row() == ("cem", 3, 1, 0, 2, 0, 90.0, 400.0, 700.0)
    assert waits_by(found, "user")[-1].row() == ("dan", 1, 0, 1, 0, 0, 0.0, 0.0, 0.0)
    assert [(one.name, one.how.total()) for one in waits_by(found, "partition")] == [("fat", 3), ("batch", 3)], (
        "1, 2 and 904 are of batch"
    )
    told = answers(found)[2]
    assert told.startswith(
        "1 of 4 users would have waited longer for a job by more than 5 minutes: 1 jobs, at most 6.67 minutes (cem); "
        "1 had"
    )
    assert answers(found, longer_s=60.0)[2].startswith(
        "3 of 4 users would have waited longer for a job by more than 1 minutes: 4 jobs"
    )
    assert run(["beside", "report", str(tmp_path), "--longer", "7", "--json"]) == 0
    payload = json.loads(capsys.readouterr().out)
    assert payload["answers"][2].startswith(
        "0 of 4 users would have waited longer for a job by more than 7 minutes; 1 had"
    )
    assert payload["by_user"][0]["longest_further_wait_s"] == 400.0 and len(payload["by_partition"]) == 2
    page = (tmp_path / "beside.html").read_text()
    assert (
        page.index("0 of 4 users")
        < page.index("<h2>")
        < page.index("Whose waits would have changed")
        < page.index("cem")
    )


def test_what_a_shield_counted_is_in_the_report_and_the_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sums since the folder began; they begin anew where the state was taken away."""
    counts = ((10, 4, 1), (30, 9, 2), (30, 9, 2), (5, 5, 0))
    names = ("choices", "unlike", "overruled")
    looks = tuple(
        {
            "kind": "look",
            "t": 8 * 86400.0 + k,
            "seq": 900 + k,
            "lived": {},
            "seen": {},
            "counts": dict(zip(names, one, strict=True)),
        }
        for k, one in enumerate(counts)
    )
    found = find(journal(tmp_path / "journal.jsonl", more=looks))
    assert found.counts == {"choices": 35, "unlike": 14, "overruled": 2}
    assert "The shield overruled 2 of 35 choices of the agent (5.7%); 14 were unlike its base's." in answers(found)
    assert not any("shield" in line for line in answers(find(journal(tmp_path / "without"))))
    assert status(tmp_path / "journal.jsonl")["counts"] == {"choices": 5, "unlike": 5, "overruled": 0}
    assert run(["beside", "status", str(tmp_path)]) == 0
    assert "5 choices, 5 unlike, 0 overruled" in capsys.readouterr().out
    assert run(["beside", "report", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["choices"] == 35


def test_a_few_hours_are_not_enough_and_it_says_until_when(tmp_path: Path) -> None:
    found = find(journal(tmp_path / "j", days=0.5))
    assert trust(found) == (
        "Do not decide by these figures yet: wanted are 7 days watched (so far 0.5). At this rate that takes 6.5 more "
        "days."
    )
    assert "not scaled to a year" in answers(found)[1]
    bare = find(journal(tmp_path / "bare", power=None))
    assert answers(bare, 0.3)[1] == "No energy is known: no watts were given (--power)."
    assert all(math.isnan(x) for x in wilson(0, 0)) and wilson(10, 10)[2] == 1.0


def test_of_nodes_that_were_switched_in_truth_no_saving_is_claimed(tmp_path: Path) -> None:
    path = journal(tmp_path / "j")
    path.write_text(path.read_text().replace('"mode": "shadow"', '"mode": "full"').replace('"idle_s"', '"truly_off_s"'))
    told = answers(find(path), 0.3, "EUR")
    assert "switching nodes: they were off for 384 node-hours" in told[0] and "kWh" not in " ".join(told)


def test_what_leases_may_have_caused_is_told_job_by_job(tmp_path: Path) -> None:
    """By hand: 1 and 2 wait all the time, for nodes; leases were there at two looks of ten seconds, and at one behind a
    gap, which does not count; 3 waits for something else, and 4 in another partition."""
    first = json.loads(journal(tmp_path / "j").read_text().splitlines()[0])
    others = [pending(3)[:-1] + ["Dependency"], [*pending(4)[:12], "fat", *pending(4)[13:]]]
    times = (8 * 86400.0 + 100, 8 * 86400.0 + 110, 8 * 86400.0 + 120, 8 * 86400.0 + 900)
    whole = {
        "whole": True,
        "jobs": [pending(1), [*pending(2)[:11], "bob", *pending(2)[12:]], *others],
        "nodes": [],
        "reservations": [],
    }
    looks = [
        {"kind": "look", "t": t, "seq": 900 + k, "lived": {}, "seen": {}, "leases": ["a"]} for k, t in enumerate(times)
    ]
    looks[0] |= {"seen": whole, "leases": []}
    told = answers(find(journal(tmp_path / "j", more=(first | {"mode": "power"}, *looks))))
    said = (
        "While leases kept nodes off, 2 jobs of 2 users waited for nodes: 20 s on average, 20 s at most. Leases "
        "caused no more, gaps apart."
    )
    assert said in told and told.index(said) == 3
    none = tuple(one | {"leases": []} for one in looks)
    assert "No job was seen to wait for nodes while leases kept some off." in answers(
        find(journal(tmp_path / "j", more=(first | {"mode": "power"}, *none)))
    )
    assert not any("leases" in line for line in answers(find(journal(tmp_path / "j"))))


def test_gaps_are_said(tmp_path: Path) -> None:
    more = ({"kind": "miss", "t": 8 * 86400.0, "why": "x"},)
    gap = {"kind": "look", "t": 10 * 86400.0, "seq": 999, "lived": {"gap_s": 2 * 86400.0}, "seen": {}}
    found = find(journal(tmp_path / "j", more=(*more, gap)))
    assert found.missed == pytest.approx(0.2) and found.n_missed == 1
    assert "at most 2% of the time unwatched (so far 20%)" in trust(found) and "2 days in gaps" in conditions(found)[0]


def test_two_policies_in_one_journal_are_not_mixed(tmp_path: Path) -> None:
    path = journal(tmp_path / "j")
    first = json.loads(path.read_text().splitlines()[0])
    watts = Platform.uniform(2, 4, PowerProfile(300, 150, 8, 120, 200, 60, 240, name="blade")).spec()
    for other in ({"policies": "fcfs + never"}, {"platform": watts}, {"options": {"depth": 3}}):
        path = journal(tmp_path / "j", more=(first | {"options": {"depth": None, "seed": 0}}, first | other))
        with pytest.raises(EscalaError, match="several policies, options, machines or watts"):
            find(path)
    path = journal(
        tmp_path / "j", more=(first | {"options": {"depth": None}}, first | {"options": {"depth": None, "seed": 0}})
    )
    assert find(path).n_looks == 301, "what an older one did not tell is no difference"


def test_hours_of_the_shadow_do_not_vanish_when_nodes_are_switched_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """8 days of shadow, two of power, one of shadow: what is said of the shadow has nothing of the two days in it."""
    first = json.loads(journal(tmp_path / "journal.jsonl").read_text().splitlines()[0])
    day, row = 86400.0, ["9001", "cem", 0.0, 1000.0, "same", None, None, None]

    def look(seq: int, t: float, **lived: float) -> dict[str, Any]:
        return {"kind": "look", "t": t, "seq": seq, "lived": lived, "seen": {}}

    power = (
        first | {"mode": "power"},
        look(400, 10 * day, watched_s=2 * day, truly_off_s=day, idle_s=3 * day) | {"started": [row]},
    )
    again = (first, look(401, 11 * day, watched_s=day, off_s=day, idle_s=2 * day, saved_j=142.0 * day))
    for more, days in ((power, 8), (power + again, 9)):
        found = find(journal(tmp_path / "journal.jsonl", more=more))
        assert found.acting is not None and found.acting.sums["truly_off_s"] == day and "9001" not in found.starts
        assert (
            found.days == pytest.approx(days) and found.missed == pytest.approx(0.0) and found.about["mode"] == "shadow"
        )
        told = answers(found)
        assert (
            f"for {days} days: easy + timeout:9 would have had nodes off for {24 * days} node-hours, 50% of" in told[0]
        )
        assert f"saves {142.0 * days * day / 3.6e6:.3g} kWh" in told[1] and "A year of such days: 1,240 kWh" in told[1]
        assert told[2].startswith(
            "Apart from that, for 2 days, switching nodes: they were off for 24 node-hours, by whomever. They are in "
            "none"
        )
    assert run(["beside", "report", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["acting"] | {"looks": 1, "watched_s": 2 * day} == find(
        tmp_path / "journal.jsonl"
    ).acting.sums | {"looks": 1}


def test_the_page_holds_all_and_loads_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = find(journal(tmp_path / "journal.jsonl"))
    write_page(tmp_path / "page.html", found, "Beside Slurm")
    page = (tmp_path / "page.html").read_text()
    assert (
        page.index("192 node-hours") < page.index("<h2>")
        and "bob" in page
        and "http://" not in page.replace("http://www.w3.org", "")
    )
    assert run(["beside", "report", str(tmp_path), "--price", "0.3", "--currency", "EUR", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["starts"] == {"same": 270, "earlier": 20, "later": 10} and told["answers"][0] == answers(found)[0]
    assert run(["beside", "report", str(tmp_path)]) == 0, "its own page is replaced"
    (tmp_path / "beside.html").write_text("mine")
    assert run(["beside", "report", str(tmp_path)]) == 2
