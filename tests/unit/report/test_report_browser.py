"""The page in a real browser (headless Chromium): no error on its console, the chart drawn, details shown for the job
pointed at."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic import Run, run

from escala.report import Section, Training, write_report
from escala.report.plots import distributions

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"),
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--window-size=1280,900",
)  # fmt: skip

PROBE = """
<script>
(async () => {
  const answer = {};
  const put = () => {
    const pre = document.createElement("pre");
    pre.id = "answer";
    pre.textContent = JSON.stringify(answer);
    document.body.append(pre);
  };
  try {
    const gantt = document.querySelector(".gantt").gantt, pane = gantt.panes[0];
    const tip = document.querySelector(".gantt-tip");
    await gantt.ready;
    const said = (dt) => [dt.textContent, dt.nextSibling.textContent];
    const lines = () => Object.fromEntries([...tip.querySelectorAll("dt")].map(said));
    const colours = () => {
      const ratio = pane.canvas.width / pane.canvas.clientWidth;
      const size = [pane.canvas.width - 80 * ratio, pane.canvas.height - 40 * ratio];
      const data = pane.canvas.getContext("2d").getImageData(60 * ratio, 4, ...size).data;
      const seen = new Set();
      for (let i = 0; i < data.length; i += 40) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      return seen.size;
    };
    answer.jobs = pane.data.start.length;
    answer.colours = colours();
    const wanted = document.body.dataset.job || pane.data.ids[0];
    if (wanted) {
      gantt.find({ value: wanted, setCustomValidity() {}, reportValidity() {} });
      await new Promise(requestAnimationFrame);
      pane.canvas.scrollIntoView();
      const at = pane.locate(wanted);
      pane.canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: at.x, clientY: at.y, bubbles: true }));
      answer.tip = lines();
      answer.hidden = tip.hidden;
    }
    gantt.reset();
    const before = { ...gantt.view };
    gantt.zoom(0.25, 0.5);
    gantt.shift(0.1, 0.1);
    answer.zoomed = gantt.view.t1 - gantt.view.t0 < (before.t1 - before.t0) / 2;
    for (const by of ["user", "wait", "outcome"]) { gantt.colourBy = by; pane.paint(); }
    gantt.reset();
    gantt.shift(5, 5);
    answer.kept = JSON.stringify(gantt.view) === JSON.stringify(before);
    if (gantt.panes[1]) {
      const menu = document.querySelector('[data-gantt="second"]');
      menu.value = "1";
      menu.dispatchEvent(new Event("change"));
      await new Promise((r) => setTimeout(r, 200));
      answer.second = gantt.panes[1].title.textContent;
    }
  } catch (error) { answer.error = String(error && error.stack || error); }
  put();
})();
</script>
</body>"""


READ_OFF = """
<script>
(() => {
  const answer = {}, tip = document.querySelector(".figure-tip");
  try {
    const { svg, axes } = document.querySelector("svg[data-axes]").readout, [l, t, r, b] = axes[0].box;
    const move = (x, y) => {
      const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
      svg.dispatchEvent(new PointerEvent("pointermove", { clientX: at.x, clientY: at.y, bubbles: true }));
    };
    move((l + r) / 2, (t + b) / 2);
    const said = (dt) => [dt.textContent, dt.nextSibling.textContent];
    answer.lines = Object.fromEntries([...tip.querySelectorAll("dt")].map(said));
    answer.shown = !tip.hidden;
    move(l / 2, b);
    answer.outside = tip.hidden;
  } catch (error) { answer.error = String(error && error.stack || error); }
  const pre = document.createElement("pre");
  pre.id = "answer";
  pre.textContent = JSON.stringify(answer);
  document.body.append(pre);
})();
</script>
</body>"""


def visit(page: Path, tmp_path: Path, job: str = "", probe: str = PROBE) -> tuple[dict[str, Any], list[str]]:
    """(what the probe found, lines of the browser's console)."""
    assert BROWSER is not None
    probed = tmp_path / "probed.html"
    html = page.read_text(encoding="utf-8").replace("<body>", f'<body data-job="{job}">')
    probed.write_text(html.replace("</body>", probe), encoding="utf-8")
    for budget_ms in (30_000, 300_000, 3_000_000):  # the browser's clock runs on while threads of its own unpack data
        flags = [*FLAGS, f"--virtual-time-budget={budget_ms}", f"--user-data-dir={tmp_path / 'profile'}"]
        command = [BROWSER, *flags, "--dump-dom", probed.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
        if found:
            break
    assert found, f"the browser gave no answer: {done.stderr[-2000:]}"
    return json.loads(unescape(found.group(1))), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_chart_of_three_policies(runs: dict[str, Run], tmp_path: Path) -> None:
    page = write_report(tmp_path / "page.html", runs, title="t")
    job = runs["fcfs + never"].jobs.row(123, named=True)
    answer, console = visit(page, tmp_path, job["job_id"])
    assert console == []
    assert "error" not in answer, answer["error"]
    assert answer["jobs"] == 400
    assert answer["colours"] > 20
    tip = answer["tip"]
    assert not answer["hidden"]
    assert (tip["job"], tip["user"], tip["cores"]) == (job["job_id"], job["user"], str(job["cores"]))
    assert tip["outcome"] == ("completed" if job["state"] == "COMPLETED" else "killed at its walltime")
    assert seconds(tip["start"]) == pytest.approx(job["start_s"], abs=0.6)
    assert seconds(tip["finish"]) == pytest.approx(job["finish_s"], abs=0.6)
    assert seconds(tip["submit"]) == pytest.approx(job["submit_s"], abs=0.6)
    assert seconds(tip["wait"]) == pytest.approx(job["wait_s"], abs=0.6)
    assert tip["nodes"].split(" ")[0] == job["nodes"].split(" ")[0]
    assert answer["zoomed"] and answer["kept"]
    assert answer["second"] == "fcfs + timeout:0"


def seconds(text: str) -> float:
    """Reads "2 d 03:04:05", "03:04:05" and "4.5 s"."""
    if text.endswith(" s"):
        return float(text[:-2])
    days, _, clock = text.rpartition(" d ")
    hours, minutes, rest = clock.split(":")
    return 86400 * int(days or 0) + 3600 * int(hours) + 60 * int(minutes) + float(rest)


def test_values_are_read_off_a_figure(tmp_path: Path) -> None:
    """A line that falls from 2 to 1 is at 1.5 in the middle, on a linear axis; so is a level there."""
    training = Training(pl.DataFrame({"step": [0, 1000], "value": [2.0, 1.0]}), {"sjf": 1.25}, "Mean slowdown")
    answer, console = visit(
        write_report(tmp_path / "page.html", {}, title="t", training=training), tmp_path, probe=READ_OFF
    )
    assert console == [] and "error" not in answer, answer
    assert answer["shown"] and answer["outside"]
    told = answer["lines"]
    assert list(told) == ["Decisions in training", "Mean slowdown", "trained", "sjf"]
    assert float(told["Decisions in training"]) == pytest.approx(500, rel=2e-3)
    assert float(told["trained"]) == pytest.approx(1.5, rel=2e-3) and float(told["sjf"]) == pytest.approx(
        1.25, rel=2e-3
    )


def test_values_are_read_off_logarithmic_axes(tmp_path: Path) -> None:
    """In the middle of a logarithmic axis from 1 to 10000 stands 100, of which half the jobs lie above."""
    waits = {"wait_s": {"a": pl.Series([0.5] * 50 + [10000.0] * 50)}}
    figure = distributions(waits)
    figure.axes[0].set_xlim(1.0, 10000.0)
    page = write_report(tmp_path / "page.html", {}, title="t", sections=[Section("s", figures=[(figure, "")])])
    answer, console = visit(page, tmp_path, probe=READ_OFF)
    assert console == [] and "error" not in answer, answer
    assert float(answer["lines"]["Wait (s)"]) == pytest.approx(100, rel=5e-3)
    assert float(answer["lines"]["a"]) == pytest.approx(50, abs=0.2)


@pytest.mark.parametrize("n_jobs", [0, 1])
def test_tiny_charts(n_jobs: int, tmp_path: Path) -> None:
    answer, console = visit(write_report(tmp_path / "page.html", {"p": run(n_jobs)}, title="t"), tmp_path)
    assert console == [] and "error" not in answer
    assert answer["jobs"] == n_jobs


@pytest.mark.parametrize("n_jobs", [100_000, pytest.param(300_000, marks=pytest.mark.long)])
def test_large_charts(n_jobs: int, tmp_path: Path) -> None:
    page = write_report(tmp_path / "page.html", {"p": run(n_jobs, nodes=64, gap=150.0)}, title="t")
    answer, console = visit(page, tmp_path)
    assert console == [] and "error" not in answer
    assert answer["jobs"] == 100_000
    if n_jobs > 100_000:
        assert "The 100,000 largest of 300,000 jobs are drawn" in page.read_text()
