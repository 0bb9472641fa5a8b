"""The commands of the documentation: the tutorial's are run one after the other, those of all pages name verbs and
options that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import escala
from escala.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts and "studies" not in p.parts),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = ROOT / "docs" / "commands.md"
GROUPS = ("workload", "study", "beside", "site", "policy", "leaderboard")


def _commands(page: Path, kinds: tuple[str, ...] = ("", "console")) -> list[str]:
    """The lines of a page's blocks that call the program."""
    blocks = [text for kind, text in FENCE.findall(page.read_text(encoding="utf-8")) if kind in kinds]
    return [
        line.strip() for text in blocks for line in text.replace("\\\n", " ").splitlines() if line.startswith("escala ")
    ]


@pytest.mark.parametrize("page", [p for p in PAGES if _commands(p)], ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_name_verbs_and_options_that_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in _commands(page):
        words = line.split()[1:]
        verb = [words[0], words[1].split("|")[0]] if words[0] in GROUPS else words[:1]
        assert run([*verb, "--help"]) == 0, line
        known = capsys.readouterr().out
        for option in (word.split("=")[0] for word in words if word.startswith("--")):
            assert re.search(rf"(^|\s){re.escape(option)}\b", known), f"{page.name}: {line}"


def _run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own with nothing of this one's environment but the way to programs, compiled code
    and fonts."""
    import matplotlib

    from escala.compile import CACHE_FOLDER

    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    compiled = {} if CACHE_FOLDER is None else {"ESCALA_CACHE_DIR": str(CACHE_FOLDER.parent)}
    fonts = {"MPLCONFIGDIR": matplotlib.get_cachedir()}
    environment = {**kept, **compiled, **fonts, "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *shlex.split(line)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder, env=environment)


def _heading(text: str) -> list[str]:
    """The words of the heading of the first table in a text, without units, in no order: columns are as wide as their
    figures."""
    above = text[: text.index("──")].rstrip().splitlines()
    return sorted(word for line in above[-2:] for word in line.split() if not word.startswith("("))


@pytest.mark.slow
def test_the_tutorial_works_as_it_is_written(tmp_path: Path) -> None:
    """In an empty folder, with the program as users call it; only the training, the search and the agent's replay are
    shorter."""
    page = ROOT / "docs" / "tutorial.md"
    commands = _commands(page, ("console",))
    assert len(commands) >= 10
    outputs = {}
    for line in commands:
        shorter = line.replace("--minutes 1 ", "--steps 1024 ").replace("--limit 20", "--limit 1")
        shorter = f"{shorter} --runs 1 --days 2" if " evaluate " in shorter else shorter
        shorter = f"{shorter} --until {2 * 86400}" if "agent:" in shorter else shorter
        done = _run(shorter, tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr[-2000:]}"
        outputs[line.split()[1]] = done.stdout
    text = page.read_text(encoding="utf-8")
    rows = [row.strip() for row in outputs["compare"].splitlines() if " + " in row]
    assert len(rows) == 9 and all(row in text for row in rows), "the page shows the table that is printed"
    assert _heading(outputs["evaluate"]) == _heading(text[text.index("`evaluate` plays") :]), (
        "so does the table of the days judged"
    )
    assert "1,229 jobs" in outputs["workload"] or "1,229" in text.replace("1 229", "1,229")
    assert (tmp_path / "compared" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "with-agent" / "summary.json").exists()


FILLED = {
    "demo": "escala demo --help",  # tests/cli/test_learn.py runs it
    "train": "escala train escala/OffReservation-v0 --workload LOG --platform SPEC --days 4 --steps 4096 --out agent",
    "evaluate": "escala evaluate --help",  # as the tutorial does it above
    "tune": "escala tune weeks.swf --platform 16x1 --out tuned",  # month.swf has eight days
    "calibrate": "escala calibrate jobs.txt --platform 2x8 --out calibration",  # generated logs record no waits
    "what-if": "escala what-if LOG --platform SPEC --nodes -10%..+10% --schedulers easy",
    "predict": "escala predict LOG --out model",
    "drift": "escala drift quarter.swf",
    "frontier": "escala frontier LOG --platform SPEC --schedulers easy,saf --shutdowns never,timeout:0 --out saved",
    "campaign": "escala campaign campaign.toml --on local:1 --out many",
    "leaderboard": "escala leaderboard run easy:queue=saf:guard=24h --on local:1 --out entered",
    "bill": "escala bill run --price 0.25 --currency EUR",
    "bound": "escala bound LOG --platform SPEC --limit 1",
    "serve": "escala serve --help",  # they stay; tests/bridges runs them
    "batsim": "escala batsim --help",
    "beside": "escala beside slurm --help",
    # push and pull ask the network; tests/cli/test_policy_verbs.py has a hub of its own
    "policy": "escala policy list",
    "report": "escala report run agent --out all.html",
    "render": "escala render escala/Slots-v0 --steps 20 --out episode.gif",
    "study": "escala study list",
    "site": "escala site import slurm.conf --out site.toml",
    "workload": "escala workload describe LOG",  # fetch asks the network; the log that all others read is generated
}
"""What is run for those of the listed commands that take long, or have a choice in capitals."""


@pytest.mark.slow
@pytest.mark.learn
def test_the_listed_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of docs/commands.md, line by line, in an empty folder; in one process, as the tutorial's above are one
    each."""
    monkeypatch.chdir(tmp_path)
    listed = FENCE.findall(COMMANDS.read_text(encoding="utf-8"))[0][1].splitlines()
    assert len(listed) >= 12 and all(line.startswith("escala ") for line in listed)
    assert run(shlex.split("workload generate grid5000 cluster=orion days=8 --seed 1 --out month.swf")) == 0
    assert run(shlex.split("workload generate lublin jobs=1500 cores=16 load=0.8 --out weeks.swf")) == 0
    assert run(shlex.split("workload generate lublin jobs=3000 cores=16 load=0.4 --out quarter.swf")) == 0
    (tmp_path / "campaign.toml").write_text(
        'logs = ["month.swf"]\nplatforms = ["orion"]\nschedulers = ["fcfs", "easy"]\n'
    )
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-4] CPUs=8\nPartitionName=batch Nodes=ALL Default=YES\n")
    (tmp_path / "jobs.txt").write_text("JobID|Submit|Start|End|State|AllocCPUS\n" + "".join(
        f"{k}|2024-01-01T00:{k:02d}:00|2024-01-01T00:{k + 5:02d}:00|2024-01-01T00:{k + 20:02d}:00|COMPLETED|8\n"
        for k in range(30)
    ))  # fmt: skip
    for line in listed:
        as_written = re.split(r"\s{2,}", line)[0]
        command = (
            FILLED.get(line.split()[1], as_written)
            .replace("LOG", "month.swf")
            .replace("SPEC", "orion")
            .replace("DIR", "run")
        )
        assert run(shlex.split(command)[1:]) == 0, f"{command}: {capsys.readouterr().err[-1500:]}"
    assert {"run", "tuned", "model", "saved", "agent", "episode.gif"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "all.html").exists()


def test_the_python_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        run(["workload", "generate", "grid5000", "cluster=orion", "days=5", "--seed", "1", "--out", "month.swf"]) == 0
    )
    (block,) = [
        text
        for kind, text in FENCE.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"))
        if kind == "python"
    ]
    names: dict[str, object] = {}
    exec(block, names)
    assert names["result"].summary()["waste_j"] > 0  # type: ignore[attr-defined]


def test_the_python_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = COMMANDS.read_text(encoding="utf-8")
    (block,) = [text for kind, text in FENCE.findall(page) if kind == "python"]
    exec(block, {})
    assert (tmp_path / "out" / "summary.json").exists()
    generated = re.findall(r"`escala (workload generate [^`]+)`", page)
    assert generated
    for line in generated:
        assert run(line.split()) == 0


def test_platform_files_in_the_pages_are_read(tmp_path: Path) -> None:
    blocks = [
        text for page in PAGES for kind, text in FENCE.findall(page.read_text(encoding="utf-8")) if kind == "yaml"
    ]
    assert blocks
    for number, text in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text, encoding="utf-8")
        assert escala.read_platform(path).cores.sum() > 0


def test_the_page_shows_the_sacct_command_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "from-slurm"]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("TZ=UTC")]
    page = (ROOT / "docs" / "how-to" / "slurm.md").read_text(encoding="utf-8")
    assert len(printed) == 1
    assert printed[0] in re.sub(r" \\\n\s+", " ", page)


@pytest.mark.parametrize("more", [["--start", "January"], ["--start", "2026-07-01", "--end", "2026-07-01"]])
def test_days_that_are_none_are_refused(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "from-slurm", *more]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_sacct_command_asks_for_what_the_reader_wants(traces: Path, tmp_path: Path) -> None:
    """Each field of the how-to page is one that Slurm knows (they stand in a real dump of all fields), and together
    they are enough."""
    page = (ROOT / "docs" / "how-to" / "slurm.md").read_text(encoding="utf-8")
    fields = re.findall(r"--format=(\S+)", page)[0].split(",")
    sample = (traces / "slurm_sacct_sample.txt").read_text(encoding="utf-8").splitlines()
    head = sample[0].split("|")
    dump = (traces / "slurm" / "ubccr-sacct_dump_slurm2101.log").read_text(encoding="utf-8", errors="replace")
    assert set(fields) <= set(dump.partition("\n")[0].split("|"))
    columns = [head.index(field) for field in fields if field in head]
    cut = ["|".join(line.split("|")[k] for k in columns) for line in sample]
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join(cut) + "\n", encoding="utf-8")
    log = escala.read_workload(path)
    # none are asked for
    assert log.jobs.equals(escala.read_workload(traces / "slurm_sacct_sample.txt").jobs.drop("job_name"))
