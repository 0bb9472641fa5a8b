"""A journal written by hand, of which every figure is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from escala.bridges.slurm.findings import answers, by_user, conditions, find, trust, wilson
from escala.bridges.slurm.page import write_page
from escala.cli.app import run
from escala.errors import EscalaError
from escala.platform import Platform, PowerProfile

WATTS = PowerProfile(400, 150, 8, 120, 200, 60, 240, name="blade")


def _job(number: int, nodes: int = 1, cpus: int = 4, whole: bool = True) -> list[Any]:
    return [str(number), "pending", 0.0, None, None, 600.0, nodes, cpus, 9, 0, whole, "ann", "batch", [], "Priority"]


def _journal(path: Path, days: float = 8.0, power: Any = WATTS, more: tuple[dict[str, Any], ...] = ()) -> Path:
    """300 starts over so many days: 270 the same, 20 earlier by 60 s, 10 later; three jobs delayed."""
    platform = Platform.uniform(2, 4, power)
    begin = {"kind": "begin", "t": 0.0, "seq": 0, "policies": "easy + timeout:9", "names": ["a", "b"], "platform": platform.spec()}
    begin |= {"mode": "shadow", "slurm": "22.05", "partition": "batch", "period_s": 10.0}
    whole = {"whole": True, "jobs": [_job(1), _job(2, 2, 2, False)], "nodes": [], "reservations": []}
    looks: list[dict[str, Any]] = [{"kind": "look", "t": 0.0, "seq": 1, "lived": {}, "seen": whole}]
    for k in range(300):
        how = "same" if k < 270 else "earlier" if k < 290 else "later"
        row = [str(k), "ann", 0.0, 1000.0, how, 940.0 if how == "earlier" else None, 1300.0 if k < 9 else None, 990.0 if k < 2 else None]
        span = days * 86400.0 / 300
        lived = {"watched_s": span, "off_s": span, "idle_s": 2 * span, "saved_j": 142.0 * span}
        if k in (5, 6, 280):
            lived |= {"delays": [[str(k), "bob" if k == 5 else "ann", 240.0 if k == 5 else 100.0]]}
        looks.append({"kind": "look", "t": span * (k + 1), "seq": k + 2, "lived": lived, "started": [row], "seen": {}})
    looks.append(looks[-1] | {})  # killed after it was written: written again
    path.write_text("".join(json.dumps({"v": 1, **one}) + "\n" for one in (begin, *looks, *more)))
    return path


def test_figures_by_hand(tmp_path: Path) -> None:
    found = find(_journal(tmp_path / "j"))
    assert found.n_looks == 301 and found.days == pytest.approx(8.0) and found.missed == pytest.approx(0.0)
    assert found.sums["off_s"] == pytest.approx(8 * 86400) and found.how == {"same": 270, "earlier": 20, "later": 10}
    assert found.agreement == pytest.approx((0.9, 0.8609, 0.9290), abs=1e-4)
    assert by_user(found) == [("ann", 2, 100.0, 100.0), ("bob", 1, 240.0, 240.0)]
    assert (found.jobs, found.loose) == (2, 1) and found.earlier() == [60.0] * 20
    told = answers(found, 0.3, "EUR", 400.0)
    assert "for 8 days: easy + timeout:9 would have had nodes off for 192 node-hours, 50% of the 384 node-hours" in told[0]
    kwh = 142.0 * 8 * 86400 / 3.6e6
    assert (
        f"{kwh:.3g} kWh, {kwh * 0.3:.3g} EUR, {kwh * 0.4:.3g} kg CO2" in told[1]
        and f"A year of such days: {kwh / 8 * 365.25:.3g} kWh" in told[1]
    )
    assert "3 of 300 started jobs, of 2 users, would have waited for nodes to wake: 147 s on average, 240 s at most" in told[2]
    assert "it would have done 90% too (95 % interval 86% to 93%); 20 jobs it would have started before (by 60 s" in told[3]
    assert "the policy's plan for 9 waiting jobs: 300 s off in the median, 300 s late" in told[4]
    assert "Slurm's own estimate for 2 waiting jobs: 10 s off in the median, 10 s early" in told[5]
    assert told[6].startswith("Enough was watched") and found.wanting() == []
    assert "1 of 2 jobs asked for more nodes than their CPUs need" in " ".join(conditions(found))


def test_a_few_hours_are_not_enough_and_it_says_until_when(tmp_path: Path) -> None:
    found = find(_journal(tmp_path / "j", days=0.5))
    assert trust(found) == (
        "Do not decide by these figures yet: wanted are 7 days watched (so far 0.5). At this rate that takes 6.5 more days."
    )
    assert "not scaled to a year" in answers(found)[1]
    bare = find(_journal(tmp_path / "bare", power=None))
    assert answers(bare, 0.3)[1] == "No energy is known: no watts were given (--power)."
    assert all(math.isnan(x) for x in wilson(0, 0)) and wilson(10, 10)[2] == 1.0


def test_of_nodes_that_were_switched_in_truth_no_saving_is_claimed(tmp_path: Path) -> None:
    path = _journal(tmp_path / "j")
    path.write_text(path.read_text().replace('"mode": "shadow"', '"mode": "full"').replace('"idle_s"', '"truly_off_s"'))
    told = answers(find(path), 0.3, "EUR")
    assert "switching nodes: they were off for 384 node-hours" in told[0] and "kWh" not in " ".join(told)


def test_gaps_are_said(tmp_path: Path) -> None:
    more = ({"kind": "miss", "t": 8 * 86400.0, "why": "x"},)
    gap = {"kind": "look", "t": 10 * 86400.0, "seq": 999, "lived": {"gap_s": 2 * 86400.0}, "seen": {}}
    found = find(_journal(tmp_path / "j", more=(*more, gap)))
    assert found.missed == pytest.approx(0.2) and found.n_missed == 1
    assert "at most 2% of the time unwatched (so far 20%)" in trust(found) and "2 days in gaps" in conditions(found)[0]


def test_two_policies_in_one_journal_are_not_mixed(tmp_path: Path) -> None:
    path = _journal(tmp_path / "j")
    first = json.loads(path.read_text().splitlines()[0])
    path.write_text(path.read_text() + json.dumps(first | {"policies": "fcfs + never"}) + "\n")
    with pytest.raises(EscalaError, match="several policies or machines"):
        find(path)


def test_the_page_holds_all_and_loads_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = find(_journal(tmp_path / "journal.jsonl"))
    write_page(tmp_path / "page.html", found, "Beside Slurm")
    page = (tmp_path / "page.html").read_text()
    assert page.index("192 node-hours") < page.index("<h2>") and "bob" in page and "http://" not in page.replace("http://www.w3.org", "")
    assert run(["beside", "report", str(tmp_path), "--price", "0.3", "--currency", "EUR", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["starts"] == {"same": 270, "earlier": 20, "later": 10} and told["answers"][0] == answers(found)[0]
    assert run(["beside", "report", str(tmp_path)]) == 0, "its own page is replaced"
    (tmp_path / "beside.html").write_text("mine")
    assert run(["beside", "report", str(tmp_path)]) == 2
