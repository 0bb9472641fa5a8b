"""The verb frontier: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

from escala.cli import frontier
from escala.report import frontier as page
from escala.tuning import joint
from escala.workload import generate, write_swf
from tests.cli.program import Escala

ASKED = (
    "--platform",
    "4x1:grid5000",
    "--schedulers",
    "easy,sjf-fit",
    "--shutdowns",
    "never,timeout:0,hold:0.5:60,oracle",
)


def test_frontier_says_what_is_saved_at_which_wait(escala_: Escala, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = escala_("frontier", log, *ASKED, "--out", out, "--price", "0.2", "--currency", "EUR")
    assert told.status == 0, told.err
    assert "Against easy + never: with waits no longer" in told.out and "on the frontier" in told.out
    assert "A limit is one on the mean wait and on its 95th percentile" in told.out
    assert "†" not in told.out and "clairvoyant" not in told.out  # no row of the table is one of oracle
    assert (
        "Left out there, since no scheduler of a real machine knows the future: easy + oracle, sjf-fit + oracle."
        in (" ".join(told.out.split()))
    )
    assert sorted(path.name for path in out.iterdir()) == ["frontier.json", "manifest.json", "report.html"]
    found = json.loads((out / "frontier.json").read_text())
    assert len(found["pairs"]) == 8 and found["reference"] == "easy + never"
    assert found["pairs"]["easy + oracle"]["knows"] and not any(
        "oracle" in name for name in found["undominated"]["mean_wait_s"]
    )
    page = (out / "report.html").read_text()
    assert "EUR" in page and "reference" in page and "a preset, not measured on this machine" in page
    again = escala_("frontier", log, *ASKED, "--json")
    assert again.status == 0 and json.loads(again.out)["pairs"].keys() == found["pairs"].keys()


def test_prices_of_a_file_choose_by_cost(escala_: Escala, log: Path, tmp_path: Path) -> None:
    out, prices = tmp_path / "out", tmp_path / "prices.csv"
    prices.write_text("time_s,per_kwh\n0,0.1\n3600,0.4\n")
    asked = ("frontier", log, *ASKED, "--out", out, "--price", prices, "--currency", "EUR", "--carbon", "300")
    told = escala_(*asked)
    assert told.status == 0 and "cost (EUR)" in " ".join(told.out.split()).lower().replace("eur", "EUR"), told
    found = json.loads((out / "frontier.json").read_text())
    assert found["least"] == "cost" and all("cost" in one and "co2_kg" not in one for one in found["pairs"].values())
    page = (out / "report.html").read_text()
    assert "Cost" in page and "EUR" in page and "kg CO2" in page
    for price, what in (("soon", "is neither a number nor a file"), ("-1", "give a number from 0")):
        wrong = escala_("frontier", log, *ASKED, "--price", price)
        assert wrong.status == 2 and what in wrong.err and len(wrong.err.strip().splitlines()) == 1


def test_frontier_refuses_what_it_cannot_tell(escala_: Escala, log: Path, tmp_path: Path) -> None:
    for asked, what in (
        (("--platform", "4x1"), "needs a power profile"),
        ((*ASKED, "--currency", "EUR"), "give --price too"),
        (("--platform", "4x1:grid5000", "--schedulers", "easy", "--shutdowns", "never"), "a frontier of one pair"),
    ):
        told = escala_("frontier", log, *asked, "--out", tmp_path / "out")
        assert told.status == 2 and what in told.err and len(told.err.strip().splitlines()) == 1, told.err
    assert not (tmp_path / "out").exists()


def test_the_verb_and_the_function_try_the_same_pairs() -> None:
    assert frontier.SCHEDULERS.split(",") == list(joint.SCHEDULERS) and frontier.SHUTDOWNS.split(",") == list(
        joint.SHUTDOWNS
    )


def test_after_judges_the_chosen_on_later_weeks(escala_: Escala, tmp_path: Path) -> None:
    log = tmp_path / "weeks.csv"
    rows = [f"{k * 3600},{1800 + 60 * (k % 30)},{1 + k % 4}" for k in range(24 * 7 * 5)]
    log.write_text("\n".join(["submit_s,runtime_s,cores", *rows]))
    asked = ("--platform", "4x1:grid5000", "--schedulers", "easy", "--shutdowns", "never,timeout:300", "--after", "60%")
    told = escala_("frontier", log, *asked, "--out", tmp_path / "out", "--jobs", "1")
    assert told.status == 0, told.err
    assert "chosen on the first 21 days, judged on the 14 after them" in told.out
    assert "on later weeks" in (tmp_path / "out" / "report.html").read_text()
    assert (
        "No pair needs less energy than easy + never within the limit on waits: there is no policy to write."
        in told.out
    )
    later = json.loads((tmp_path / "out" / "frontier.json").read_text())["later"]
    assert next(iter(later["pairs"])) == "easy + never" and later["weeks"] == 2
    bad = escala_("frontier", log, *asked[:-1], "99%", "--out", tmp_path / "bad")
    assert bad.status == 2 and "leaves less than a week" in bad.err and not (tmp_path / "bad").exists()


def test_what_was_chosen_runs_from_its_folder(escala_: Escala, tmp_path: Path) -> None:
    """As both policies; and it is refused where it names what no machine can have."""
    log, out = tmp_path / "log.swf", tmp_path / "out"
    write_swf(generate.lublin(jobs=900, cores=16, load=0.5, seed=1), log)
    pairs = ("--schedulers", "easy", "--shutdowns", "never,timeout:300", "--after", "60%", "--margin", "1")
    told = escala_("frontier", log, "--platform", "16x1:grid5000", *pairs, "--out", out).out
    folder = f"policy:{tmp_path / 'out'}"
    assert f"Run it as --scheduler {folder} --shutdown {folder}." in told
    text = (tmp_path / "out" / "policy.toml").read_text()
    assert 'formula = "easy"' in text and 'shutdown = "timeout:300"' in text and "[ratio_to_reference]" in text
    asked = ("simulate", log, "--platform", "16x1:grid5000", "--json")
    by_folder = json.loads(escala_(*asked, "--scheduler", folder, "--shutdown", folder).out)
    by_name = json.loads(escala_(*asked, "--scheduler", "easy", "--shutdown", "timeout:300").out)
    assert by_folder["energy_j"] == by_name["energy_j"] and by_folder["transitions"] == by_name["transitions"] > 0
    (tmp_path / "edited").mkdir()
    (tmp_path / "edited" / "policy.toml").write_text(text.replace("timeout:300", "oracle"))
    edited = escala_(*asked, "--shutdown", f"policy:{tmp_path / 'edited'}")
    assert edited.status == 2 and "name a policy that a real machine can have" in edited.err
    (tmp_path / "edited" / "policy.toml").write_text('format = 1\nformula = "easy"\n')
    assert "names no shutdown policy" in escala_(*asked, "--shutdown", f"policy:{tmp_path / 'edited'}").err


def test_no_two_shutdown_policies_look_alike() -> None:
    """More of them than there are forms: full, then hollow; and who knows the future is marked in the legend too."""
    shutdowns = ("never", *(f"timeout:{60 * k}" for k in range(1, len(page.MARKERS) + 2)), "arrivals-known")
    found = joint.frontier(
        generate.lublin(jobs=60, cores=16, seed=1), "16x1:grid5000", schedulers=("easy",), shutdowns=shutdowns
    )
    figure = page.picture(found)
    looks = [
        (line.get_marker(), line.get_markerfacecolor() == "none")
        for line in figure.axes[0].lines
        if line.get_marker() != "None"
    ]
    assert len(looks) == len(shutdowns) == len(set(looks))
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["easy", *shutdowns[:-1], "arrivals-known ‡"]


def test_names_are_no_markup(escala_: Escala, log: Path, tmp_path: Path) -> None:
    odd = tmp_path / "x[red]y:smile:.swf"
    odd.write_bytes(log.read_bytes())
    told = escala_("simulate", odd, "--platform", "4x1:grid5000", "--shutdown", "timeout:60")
    assert told.status == 0 and "x[red]y:smile: on 4x1:grid5000: easy + timeout:60" in told.out
