"""`escala compare --headroom`: shares of what is possible in the table, in the folder and on the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from escala.workload import write_swf
from escala.workload.generate_slots import bernoulli_model


def escala(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "escala", *arguments], capture_output=True, text=True, timeout=120)


def test_shares_in_the_table_the_folder_and_the_page(tmp_path: Path) -> None:
    write_swf(bernoulli_model(load=1.9, steps=30).workload(7), tmp_path / "list.swf")
    out = tmp_path / "out"
    given = ["compare", str(tmp_path / "list.swf"), "--platform", "10x1", "--schedulers", "fcfs,sjf-fit", "--headroom", "slowdown"]
    done = escala(*given, "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    kept = json.loads((out / "headroom.json").read_text())
    assert first["headroom"] == first["headroom_proved"] == 0.0
    assert second["headroom"] == kept["shares"]["sjf-fit + never"]
    # the proved bound leaves more room than the best schedule found, so a gain is a smaller share of it
    assert 0 < second["headroom_proved"] <= second["headroom"] <= 1
    assert kept["lower"] <= kept["found"]
    assert escala("report", str(out)).returncode == 0
    page = (out / "report.html").read_text()
    assert "Head-room" in page and "clairvoyant" in page


@pytest.mark.parametrize(("more", "word"), [(["power"], "power"), (["waste"], "escala bound"), (["wait", "--until", "10"], "--until")])
def test_what_has_no_headroom_is_refused_before_anything_is_read(more: list[str], word: str) -> None:
    done = escala("compare", "nowhere.swf", "--platform", "10x1", "--headroom", *more)
    assert done.returncode == 2 and word in done.stderr and len(done.stderr.strip().splitlines()) == 1
