"""Episodes as moving pictures, from the command line."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import escala
from tests.cli.program import Escala

pytest.importorskip("gymnasium")
Image = pytest.importorskip("PIL.Image")

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
SLOTS, OFF, SCHEDULING, MULTI = "escala/Slots-v0", "escala/OffReservation-v0", "escala/Scheduling-v0", "multi.slots"
LOGGED = (OFF, SCHEDULING)
FAKE = """#!{python}
import sys
data = sys.stdin.buffer.read()
open(sys.argv[-1], "w").write(" ".join([*sys.argv[1:], str(len(data))]))
sys.exit({status})
"""


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five generated days for the cluster orion."""
    path = tmp_path_factory.mktemp("log") / "days.swf"
    escala.workload.write_swf(escala.workload.generate.grid5000(cluster="orion", days=5, seed=1), path)
    return path


def _with_log(name: str, days: Path) -> list[object]:
    return ["--workload", days, "--platform", "orion"] if name in LOGGED else []


def _told(escala_: Escala, *arguments: object) -> Any:
    outcome = escala_("render", *arguments, "--json")
    assert outcome.status == 0 and outcome.err == "", outcome.err
    return json.loads(outcome.out)


@pytest.mark.parametrize("name", [SLOTS, OFF, SCHEDULING, MULTI])
def test_a_gif_of_every_environment(name: str, escala_: Escala, days: Path, tmp_path: Path) -> None:
    files = [tmp_path / "a.gif", tmp_path / "b.gif"]
    for path in files:
        told = _told(escala_, name, *_with_log(name, days), "--out", path, "--steps", "20", "--fps", "5", "--seed", "3")
    assert told["environment"] == name and 0 < told["steps"] <= 20 and told["return"] != 0
    assert files[0].read_bytes() == files[1].read_bytes(), "the same seed gives the same file"
    with Image.open(files[0]) as gif:
        times, seen = [], set()
        for k in range(gif.n_frames):
            gif.seek(k)
            times.append(gif.info["duration"])
            seen.add(gif.convert("RGB").tobytes())
        assert gif.width >= 400 and gif.info["loop"] == 0
    assert sum(times) == 200 * (told["steps"] + 1) + 1000, (
        "one picture a step and one of the start, the last for a second more"
    )
    assert len(seen) > 5, "something moves"


@pytest.mark.parametrize("name", [SLOTS, OFF, SCHEDULING, MULTI])
def test_every_environment_in_a_window(name: str, escala_: Escala, days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    told = _told(escala_, name, *_with_log(name, days), "--show", "--steps", "5", "--fps", "50")
    assert told["file"] is None and told["steps"] == 5


def test_what_is_shown_is_what_is_played_elsewhere(escala_: Escala, tmp_path: Path) -> None:
    """The return of a rule is minus the sum of the slowdowns that the rule's own player finds on the same list."""
    from escala.envs.slots.options import options_of
    from escala.envs.slots.playing import play

    told = _told(
        escala_,
        SLOTS,
        "load=0.9",
        "lists=8",
        "--episode",
        "5",
        "--policy",
        "packer",
        "--out",
        tmp_path / "e.gif",
        "--every",
        "9",
    )
    lists = options_of({"load": 0.9, "lists": 8}).job_lists(None, None)
    assert told["ended"] is True
    assert told["return"] == pytest.approx(-float(play(lists, "packer")["slowdown"][5]) * int(lists.jobs_of[5]))


def test_always_all_nodes_is_the_timeout_of_zero(escala_: Escala, days: Path, tmp_path: Path) -> None:
    """`always:4` may wake all four nodes at once: with raw joules and no price of waiting the return is minus that
    policy's waste."""
    settings = ["normalise=none", "window=drain", "tau=1e6", "qos=all"]
    told = _told(
        escala_,
        OFF,
        *settings,
        *_with_log(OFF, days),
        "--episode",
        "0",
        "--policy",
        "always:4",
        "--out",
        tmp_path / "e.gif",
    )
    log = escala.read_workload(days)
    day = next(day for day in log.split_days(origin_s=-(log.origin_s % 86400.0)) if len(day) >= 2)
    result = escala.simulate(day, "orion", scheduler="saf", shutdown="timeout:0", start_off=True)
    assert told["ended"] is True
    assert -told["return"] == pytest.approx(result.summary()["waste_j"], rel=1e-3)


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("a2c2020/agents/agent-0.9-0", SLOTS),
        ("deepshutdown2020/agents/orion-1-0", OFF),
        ("marl2024/agents/team-2x1-0", MULTI),
    ],
)
@pytest.mark.parametrize("policy", ["sampled", "likeliest"])
def test_trained_agents_play(agent: str, name: str, policy: str, escala_: Escala, days: Path, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    logged = ["--workload", days] if name in LOGGED else []
    told = _told(escala_, STUDIES / agent, *logged, "--policy", policy, "--steps", "25", "--out", tmp_path / "e.gif")
    assert told["environment"] == name and policy in told["policy"] and told["steps"] > 0
    assert (tmp_path / "e.gif").stat().st_size > 1000


def _ffmpeg(folder: Path, status: int) -> None:
    folder.mkdir()
    program = folder / "ffmpeg"
    program.write_text(FAKE.format(python=sys.executable, status=status))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_an_mp4_through_ffmpeg(escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raw pictures go to the program ffmpeg, here one that tells what it was given."""
    _ffmpeg(tmp_path / "bin", 0)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    out = tmp_path / "e.mp4"
    told = _told(escala_, SLOTS, "--out", out, "--steps", "12", "--fps", "4")
    words = out.read_text().split()
    wide, high = (int(number) for number in words[words.index("-s") + 1].split("x"))
    assert wide % 2 == 0 and high % 2 == 0, "as the codec needs them"
    assert words[words.index("-r") + 1] == "4"
    assert int(words[-1]) == (told["steps"] + 1 + 4) * wide * high * 3


def test_an_ffmpeg_that_fails_leaves_nothing(escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _ffmpeg(tmp_path / "bin", 1)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    outcome = escala_("render", SLOTS, "--out", tmp_path / "e.mp4", "--steps", "3")
    assert outcome.status == 2 and "ffmpeg could not write it" in outcome.err and outcome.err.count("\n") == 1
    assert os.listdir(tmp_path) == ["bin"]


def test_without_ffmpeg_an_mp4_is_refused_at_once(
    escala_: Escala, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    outcome = escala_("render", SLOTS, "--out", tmp_path / "e.mp4")
    assert outcome.status == 2 and "install" in outcome.err and ".gif" in outcome.err and outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["Slots", "--out", "e.gif"], "did you mean escala/Slots-v0?"),
        (["nonsense", "--out", "e.gif"], "known: escala/Slots-v0"),
        ([SLOTS], "--out episode.gif"),
        ([SLOTS, "--out", "e.gif", "--show"], "--out episode.gif"),
        ([SLOTS, "--out", "e.avi"], ".gif or .mp4"),
        ([SLOTS, "load", "--out", "e.gif"], "NAME=VALUE"),
        ([SLOTS, "load=1", "load=2", "--out", "e.gif"], "twice"),
        ([SLOTS, "lode=1", "--out", "e.gif"], "unknown option 'lode'"),
        ([SLOTS, "slots=many", "--out", "e.gif"], "slots='many'"),
        ([SLOTS, "--policy", "best", "--out", "e.gif"], "use one of random, sjf"),
        ([SLOTS, "lists=4", "--episode", "4", "--out", "e.gif"], "0 to 3"),
        ([MULTI, "--policy", "fcfs", "--out", "e.gif"], "use one of sjf"),
        ([MULTI, "--workload", "{days}", "--out", "e.gif"], "leave --workload out"),
        ([OFF, "--out", "e.gif"], "give --workload and --platform"),
        ([OFF, "--workload", "{days}", "--out", "e.gif"], "give --platform"),
        ([OFF, "--workload", "{days}", "--platform", "orion", "--policy", "always:5", "--out", "e.gif"], "0..4"),
        ([SCHEDULING, "--workload", "{days}", "--platform", "orion", "--episode", "50", "--out", "e.gif"], "5 days"),
        ([SCHEDULING, "--workload", "nowhere.swf", "--platform", "orion", "--out", "e.gif"], "nowhere.swf"),
        ([".", "--out", "e.gif"], "no trained agent"),
        ([SLOTS, "--out", "/proc/nowhere/e.gif"], "cannot be written"),
        ([SLOTS, "--out", "{days}"], ".gif or .mp4"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_line(
    arguments: list[str], word: str, escala_: Escala, days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = escala_("render", *(text.format(days=days) for text in arguments))
    assert (
        outcome.status == 2 and outcome.out == "" and outcome.err.startswith("error: ") and outcome.err.count("\n") == 1
    )
    assert word in outcome.err
    assert os.listdir(tmp_path) == []


def test_a_file_is_not_replaced_unasked(escala_: Escala, tmp_path: Path) -> None:
    path = tmp_path / "e.gif"
    path.write_text("mine")
    outcome = escala_("render", SLOTS, "--steps", "2", "--out", path)
    assert outcome.status == 2 and "--force" in outcome.err and path.read_text() == "mine"
    assert escala_("render", SLOTS, "--steps", "2", "--out", path, "--force").status == 0
    assert path.read_bytes().startswith(b"GIF89a")


def test_the_shell_completes_environments_and_folders(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "escalated").mkdir()
    asked = {"COMP_WORDS": "escala render esc", "COMP_CWORD": "2", "_ESCALA_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-m", "escala"], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **asked}
    )
    assert done.stdout.split() == [SLOTS, OFF, SCHEDULING, "escalated"]


def test_every_registered_environment_is_shown() -> None:
    from escala.cli.episode import NAMES, NUMBERED
    from escala.envs import ENVIRONMENTS

    assert {*ENVIRONMENTS, MULTI} == set(NAMES) == set(NUMBERED)


@pytest.mark.parametrize("nodes", [1, 7, 500, 5000])
def test_pictures_of_any_machine_are_of_a_readable_size(
    nodes: int, escala_: Escala, days: Path, tmp_path: Path
) -> None:
    platform = f"{nodes}x{48 // nodes + 1}:taurus"
    _told(escala_, OFF, "--workload", days, "--platform", platform, "--steps", "3", "--out", tmp_path / "e.gif")
    with Image.open(tmp_path / "e.gif") as gif:
        assert 240 <= gif.width <= 600 and 200 <= gif.height <= 1300
