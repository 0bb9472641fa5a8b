"""The verbs of beside: a policy beside a real Slurm, what it would do, and what became of it."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import asked
from escala.cli import options as opt
from escala.cli.policies import POINTER
from escala.cli.replay import policies
from escala.cli.tables import facts_table
from escala.cli.terminal import emit, progress, remark
from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.bridges.slurm.loop import Beside
    from escala.live import Desk

MODES = ("replay", "shadow")

Mode = Annotated[str, typer.Option("--mode", metavar="MODE", help="shadow (read only), replay (of --from)")]
Folder = Annotated[Path, typer.Option("--folder", metavar="DIR", help="its journal, state and metrics; made if it is not there")]
Partition = Annotated[
    str | None, typer.Option("--partition", metavar="NAME", help="whose nodes [the only one that there is]", show_default=False)
]
Period = Annotated[float, typer.Option("--period", min=0.5, max=3600.0, metavar="S", help="seconds between two looks at most")]
Limit = Annotated[float, typer.Option("--limit", min=0.5, max=300.0, metavar="S", help="seconds that a command of Slurm may take")]
Form = Annotated[str, typer.Option("--read", metavar="FORM", help="what Slurm is asked for: text (faster), or json")]
From = Annotated[
    Path | None, typer.Option("--from", metavar="JOURNAL", help="replay: the journal whose looks are asked about anew", show_default=False)
]
Looks = Annotated[int | None, typer.Option("--looks", min=1, metavar="N", help="end after so many [at SIGTERM]", show_default=False)]
Where = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of escala beside slurm, or a journal")]


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `beside`."""
    group = typer.Typer(help="Run a policy beside a real Slurm.", no_args_is_help=True, rich_markup_mode=None)
    group.command(epilog=POINTER)(asked.asking(slurm))
    group.command()(status)
    group.command()(explain)
    group.command()(report)
    app.add_typer(group, name="beside")


def slurm(
    *,
    options: dict[str, Any],
    scheduler: asked.Scheduler = "easy",
    shutdown: asked.Shutdown = "never",
    mode: Mode = "shadow",
    folder: Folder = Path("beside"),
    partition: Partition = None,
    power: opt.Power = None,
    period: Period = 10.0,
    limit: Limit = 10.0,
    read: Form = "text",
    source: From = None,
    looks: Looks = None,
) -> None:
    """Watch a Slurm, and write down what the policies would do beside what Slurm does.

    It changes nothing of Slurm. It ends at SIGTERM or Ctrl-C, after the look at hand, and goes on where it was when it is begun again.
    """
    from escala.bridges.ending import told_to_end
    from escala.bridges.slurm.loop import Beside, Setting, go_round
    from escala.bridges.slurm.metrics import Metrics
    from escala.bridges.slurm.snapshots import layout, partition_of
    from escala.live import Desk

    if mode not in MODES:
        raise EscalaError(f"--mode {mode}: give one of {', '.join(MODES)}")
    if (mode == "replay") != (source is not None):
        raise EscalaError("--mode replay and --from JOURNAL belong together: give both, or neither")
    with progress() as begin:
        begin("looking at Slurm")
        eyes, first, about = _eyes(source, read, limit)
        at = layout(first, partition_of(first, partition or about.get("partition")), power)
        begin("making the desk")
        pair = policies([scheduler], [shutdown])
        _warmed(Desk(at.platform, pair[0][0], pair[1][0], **options))
        desk = Desk(at.platform, pair[0][0], pair[1][0], **options)
        folder.mkdir(parents=True, exist_ok=True)
        period = about.get("period_s", period)
        beside = Beside(eyes, desk, at, folder, Setting(mode, period, {"slurm": about["slurm"]}))
    beside.begin(first.now_s)
    metrics, say = Metrics(folder), _Saying(beside, mode)

    def after() -> None:
        say.last()
        metrics.add(beside)

    with told_to_end() as ending:
        _tell(f"{mode}: partition {at.partition}, {len(at.names)} nodes, {desk.name}; journal {beside.journal.path}")
        wait = (lambda _: False) if source is not None else _waiting(ending)
        go_round(beside, wait, after, looks)
    beside.journal.close()
    _tell(f"ended: looks {beside.seq}, missed {beside.misses}")


def _warmed(desk: Desk) -> None:
    """Compile now what looks need, and refuse policies that cannot be asked. The first look would come late otherwise."""
    from contextlib import suppress

    from escala.live import Snapshot

    job = {"job_id": ["1"], "submit_s": [0.0], "walltime_s": [60.0], "cores": [1], "state": ["queued"]}
    empty = Snapshot.of(0.0, job, {"power": ["on"] * desk.platform.n_nodes})
    desk.decide(empty)
    with suppress(EscalaError):  # an object, which cannot plan
        desk.plan(empty, first=1)


def _eyes(source: Path | None, read: str, limit: float) -> tuple[Any, Any, dict[str, Any]]:
    """What looks at Slurm, or at a journal; the first look; what is known of it."""
    if source is not None:
        from escala.bridges.slurm.replay import Recorded

        recorded = Recorded(source)
        return recorded, recorded.first, recorded.about
    from escala.bridges.slurm.commands import Clients
    from escala.bridges.slurm.reader import Reader

    reader = Reader(Clients(limit), read)
    version = "{}.{:02d}".format(*reader.version)
    if not reader.known:
        remark(f"Slurm {version} is none of the versions that were tried: it is read all the same, and never acted on")
    return reader, reader.read(), {"slurm": version}


def _waiting(ending: Any) -> Callable[[float], bool]:
    """Waits so many seconds, or until the process is told to end, and says which."""
    return lambda seconds: bool(select.select([ending], [], [], seconds)[0])


class _Saying:
    """One line for each look after which something is wanted that was not before, and for each that failed."""

    def __init__(self, beside: Beside, mode: str) -> None:
        self._beside, self._mode = beside, mode
        self._misses, self._before = 0, ""

    def last(self) -> None:
        """What is new."""
        beside = self._beside
        if beside.misses > self._misses:
            self._misses = beside.misses
            remark(f"look missed ({beside.misses} so far): {beside.why}")
            return
        found = [f"{verb} {_some(beside.last[key])}" for key, verb in _VERBS.items() if beside.last.get(key)]
        line = "; ".join(found)
        if line and line != self._before:
            _tell(f"{time.strftime('%H:%M:%S', time.gmtime(beside.last['t']))} {self._mode}: would {line}")
        self._before = line


_VERBS = {"starts": "start", "wakes": "switch on", "offs": "switch off"}


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _journal(where: Path) -> Path:
    from escala.bridges.slurm.loop import JOURNAL

    return where / JOURNAL if where.is_dir() else where


def status(where: Where = Path("beside"), as_json: opt.Json = False) -> None:
    """How things stood at the last look: what the policies would do, what failed."""
    from escala.bridges.slurm.story import status as told

    found = told(_journal(where))
    shown = [(key.replace("_", " "), ", ".join(value) if isinstance(value, list) else value, "") for key, value in found.items()]
    emit(as_json, found, facts_table(shown, "left"))


def explain(
    job: Annotated[str, typer.Argument(metavar="JOB", help="its number as squeue shows it, as 12 or 12_3", show_default=False)],
    where: Where = Path("beside"),
    as_json: opt.Json = False,
) -> None:
    """What the policy would have done with a job, and what Slurm did."""
    from escala.bridges.slurm.story import explain as told

    found = told(_journal(where), job)
    emit(as_json, {"job": job, "story": found}, "\n".join(found))


def report(
    where: Where = Path("beside"),
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="the page to write [beside.html in the folder]", show_default=False)
    ] = None,
    price: opt.Price = None,
    carbon: opt.Carbon = None,
    currency: opt.Currency = "",
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """What the journal amounts to: hours off, energy, waits, agreement, and whether that may be trusted yet; as text and as a page."""
    from escala.bridges.slurm.findings import answers, conditions, find
    from escala.bridges.slurm.page import write_page
    from escala.writing import output_file, own_page

    opt.check_price(price, currency)
    path = _journal(where)
    found = find(path)
    target = out or path.with_name("beside.html")
    with output_file(target, force=force or (out is None and own_page(target))) as page:
        write_page(page, found, f"Beside Slurm: {found.about['policies']}", price, currency, carbon)
    said = answers(found, price, currency, carbon)
    told: dict[str, Any] = {name: round(value, 3) for name, value in found.sums.items()}
    told |= {"starts": dict(found.how), "delayed_jobs": len(found.delays), "looks": found.n_looks, "missed": found.n_missed}
    payload = {"answers": said, "conditions": conditions(found), "report": str(target), **told}
    emit(as_json, payload, "\n".join(said), "\n" + "\n".join(conditions(found)), f"\n{target}")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
