"""What `tests.attacks.kills` kills: each verb that writes a file or a folder, with all that it needs on this machine
alone."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path

import escala.agents
from escala.cli.app import run
from escala.writing.sealing import entries
from tests.cli.hub import hub
from tests.cli.program import LOG
from tests.cli.test_beside import RECORDED, SCONTROL, SQUEUE
from tests.unit.slurm.test_site_exports import SACCT

REPLAY = ["small.swf", "--platform", "4x1"]
LEARN = ["--workload", "small.swf", "--platform", "orion#2"]
SEARCH = ["--algorithm", "search", "--generations", "2", "--population", "4"]
WATTS = ["--platform", "4x1:grid5000", "--schedulers", "easy"]
PLAN = """logs = ["small.swf"]
platforms = ["4x1"]
schedulers = ["fcfs", "easy"]
shutdowns = ["never"]
"""
SUITE = """name = "mine"
promise = "p99-wait<=1.05*easy"
objective = "wait"

[[logs]]
name = "weeks"
file = "weeks.swf"
platform = "16x1"
sha256 = "{}"
"""
AGENT = Path(__file__).parents[2] / "docs" / "studies" / "deepscheduler2020" / "agents" / "orion-0.95-0"
SCORER = AGENT.parents[2] / "grid2019" / "agents" / "imitated-100-0"
INPUTS = {"small.swf": LOG, "precious": LOG, "plan.toml": PLAN, "jobs.txt": SACCT}
"""What stands in the working folder, beside an empty `cache`."""


@dataclass(frozen=True)
class Verb:
    """What is killed. target: what it makes; kind: who signs it, "file", or "bit by bit" for folders that grow and are
    gone on with;
    again: arguments that go on with what was killed; first: what is run beforehand. Words in `_ACTS` begin what the
    program does not."""

    arguments: list[str]
    target: str
    kind: str
    again: list[str] | None = None
    first: tuple[list[str], ...] = ()


WEEKS = ["workload", "generate", "lublin", "jobs=2000", "cores=16", "load=0.8", "--out", "weeks.swf"]
SITE = ["site", "import", "jobs.txt", "--out", "site.toml"]
ENTRY = ["leaderboard", "run", "fcfs", "--suite", "mine.toml", "--on", "local:1", "--out"]
VERBS: dict[str, Verb] = {
    "simulate": Verb(["simulate", *REPLAY, "--out", "out"], "out", "simulate"),
    "compare": Verb(["compare", *REPLAY, "--schedulers", "fcfs,easy", "--out", "out"], "out", "compare"),
    "generate": Verb(["workload", "generate", "bernoulli", "--out", "out.swf", "--force"], "out.swf", "file"),
    "convert": Verb(["workload", "convert", "small.swf", "--out", "out.swf.gz", "--force"], "out.swf.gz", "file"),
    "train": Verb(
        ["train", "escala/OffReservation-v0", *LEARN, "--steps", "1", "--out", "out"], "out", "bit by bit",
        again=["train", "escala/OffReservation-v0", *LEARN, "--steps", "1", "--out", "out", "--resume"],
    ),
    "search": Verb(
        ["train", "escala/OffReservation-v0", *LEARN, *SEARCH, "--out", "out"], "out", "bit by bit",
        again=["train", "escala/OffReservation-v0", *LEARN, *SEARCH, "--out", "out", "--resume"],
    ),
    "save": Verb(["save"], "out", "agent"),
    "study": Verb(["study", "run", "marl2024", "--scale", "smoke", "--jobs", "1", "--out", "out"], "out", "bit by bit"),
    "bound": Verb(["bound", *REPLAY, "--limit", "0.2", "--out", "out"], "out", "bound"),
    "evaluate": Verb(["evaluate", "agent", "small.swf", "--runs", "1", "--baselines", "easy", "--out", "out"], "out",
                     "evaluate", first=(["copied"],)),
    "demo": Verb(
        ["demo", "--workload", "days.swf", "--platform", "orion", "--minutes", "0", "--out", "out"], "out", "demo",
        first=(["workload", "generate", "grid5000", "cluster=orion", "days=24", "--out", "days.swf"],),
    ),
    "tune": Verb(["tune", "weeks.swf", "--platform", "16x1", "--jobs", "1", "--out", "out"], "out", "tune",
                 first=(WEEKS,)),
    "predict": Verb(
        ["predict", "weeks.swf", "--platform", "16x1", "--no-request", "864000", "--out", "out"], "out", "predict",
        first=(WEEKS,)
    ),
    "export": Verb(["export", str(SCORER), "--out", "out"], "out", "exported agent"),
    "frontier": Verb(["frontier", "small.swf", *WATTS, "--shutdowns", "never,timeout:0", "--jobs", "1", "--out", "out"],
                     "out", "frontier"),
    "campaign": Verb(
        ["campaign", "plan.toml", "--on", "local:1", "--out", "out"], "out", "bit by bit",
        again=["campaign", "plan.toml", "--on", "local:1", "--out", "out"],
    ),
    "calibrate": Verb(
        ["calibrate", "jobs.txt", "--platform", "site.toml", "--scheduler", "easy", "--out", "out"], "out", "calibrate",
        first=(SITE,)
    ),
    "what-if": Verb(
        ["what-if", *REPLAY, "--nodes", "+1,+100%", "--schedulers", "easy,fcfs", "--jobs", "1", "--out", "out"], "out",
        "what-if"
    ),
    "stream": Verb(["simulate", *REPLAY, "--stream", "--out", "out"], "out", "simulate"),
    "render": Verb(["render", "escala/Slots-v0", "--steps", "3", "--out", "out.gif", "--force"], "out.gif", "file"),
    "site import": Verb(["site", "import", "jobs.txt", "--out", "out.toml", "--force"], "out.toml", "file"),
    "policy pull": Verb(["pull", "policy", "pull", "you/night", "--out", "out"], "out", "policy pull"),
    "workload fetch": Verb(["fetch", "workload", "fetch", "ctc-sp2", "--insecure", "--out", "out.swf.gz", "--force"],
                           "out.swf.gz", "file"),
    "leaderboard run": Verb([*ENTRY, "out"], "out", "bit by bit", again=[*ENTRY, "out"], first=(WEEKS, ["suite"])),
    "leaderboard show": Verb(
        ["leaderboard", "show", "entry", "--out", "out.html"], "out.html", "file",
        first=(WEEKS, ["suite"], [*ENTRY, "entry"])
    ),
    "study verdicts": Verb(["study", "verdicts", "marl2024", "--out", "out.md", "--force"], "out.md", "file"),
    "beside report": Verb(["beside", "report", "--out", "out.html", "--force"], "out.html", "file", first=(["looks"],)),
    "report": Verb(["report", "run", "--out", "out.html", "--force"], "out.html", "file",
                   first=(["simulate", *REPLAY, "--out", "run"],)),
}  # fmt: skip

SLOW = {"train", "search", "study", "demo"}  # minutes each: only where they are named
QUICK = [name for name in VERBS if name not in SLOW and (name != "policy pull" or find_spec("huggingface_hub"))]


def act(arguments: list[str]) -> int:
    """The program, or what begins with a word of `_ACTS`."""
    odd = _ACTS.get(arguments[0])
    return run(arguments) if odd is None else odd(arguments[1:])


def _saved(_: list[str]) -> int:
    """An agent saved from Python."""
    escala.agents.load_agent(AGENT).save("out")
    return 0


def _copied(_: list[str]) -> int:
    """An agent that may be written to."""
    shutil.copytree(AGENT, "agent")
    return 0


def _suited(_: list[str]) -> int:
    """A suite with the hash of its log."""
    from escala.leaderboard.suite import jobs_digest

    Path("mine.toml").write_text(SUITE.format(jobs_digest(escala.read_workload("weeks.swf"))))
    return 0


def _looked(_: list[str]) -> int:
    """Two looks beside a Slurm whose clients print what real ones printed."""
    place = Path(tempfile.mkdtemp())
    for client, text in (("squeue", SQUEUE), ("scontrol", SCONTROL), ("sinfo", "#!/bin/sh\nexit 9\n")):
        (place / client).write_text(text.format(RECORDED))
        (place / client).chmod(0o755)
    os.environ.update(PATH=f"{place}:/usr/bin:/bin", XDG_STATE_HOME=str(place))
    return run(["beside", "slurm", "--shutdown", "timeout:0", "--power", "taurus", "--period", "0.5", "--looks", "2"])


def _from_hub(arguments: list[str]) -> int:
    """With a hub that has a policy."""
    from escala.sharing import contents
    from escala.sharing.hub import staged

    sent = staged(contents(AGENT), "you/night", None, Path(tempfile.mkdtemp()) / "policy")
    with hub() as server:
        server.repositories["you/night"] = []
        server.commit("you/night", {name: (sent / name).read_bytes() for name in entries(sent)})
        os.environ.update(
            HF_ENDPOINT=server.url, HF_HOME=tempfile.mkdtemp(), HF_HUB_DISABLE_TELEMETRY="1", NO_PROXY="127.0.0.1"
        )
        return run(arguments)


class _Archive(BaseHTTPRequestHandler):
    """Gives one log, whatever is asked for."""

    def do_GET(self) -> None:
        body = gzip.compress(LOG.encode(), mtime=0)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def _from_archive(arguments: list[str]) -> int:
    """With an archive of logs, and its cache in the working folder, where kills hit it."""
    server = HTTPServer(("127.0.0.1", 0), _Archive)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update(ESCALA_CACHE_DIR=os.path.abspath("cache"), NO_PROXY="127.0.0.1")
    return run([*arguments, "--mirror", f"http://127.0.0.1:{server.server_port}"])


_ACTS = {
    "save": _saved,
    "suite": _suited,
    "looks": _looked,
    "pull": _from_hub,
    "fetch": _from_archive,
    "copied": _copied,
}
