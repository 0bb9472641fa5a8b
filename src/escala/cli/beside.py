"""The verbs of beside: a policy beside a real Slurm, what it would do, and what became of it."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import asked
from escala.cli import options as opt
from escala.cli.acting import ACTING, guards_of, hands_of, limits_of, permitted, user
from escala.cli.policies import POINTER
from escala.cli.replay import policies
from escala.cli.shields import counted, listed
from escala.cli.tables import facts_table
from escala.cli.terminal import emit, progress, remark
from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.bridges.notify import Notify
    from escala.bridges.slurm.loop import Beside

READ_ONLY = ("replay", "shadow")
REST = "rest:"
MODES = (*READ_ONLY, *ACTING)
_VERBS = {"starts": "start", "wakes": "switch on", "offs": "switch off"}

Mode = Annotated[
    str,
    typer.Option("--mode", metavar="MODE", help="shadow (read only), replay (of --from), advise, order, power, full"),
]
Folder = Annotated[
    Path, typer.Option("--folder", metavar="DIR", help="its journal, state and metrics; made if it is not there")
]
Partition = Annotated[
    str | None,
    typer.Option("--partition", metavar="NAME", help="whose nodes [the only one that there is]", show_default=False),
]
Period = Annotated[
    float, typer.Option("--period", min=0.5, max=3600.0, metavar="S", help="seconds between two looks at most")
]
Limit = Annotated[
    float, typer.Option("--limit", min=0.5, max=300.0, metavar="S", help="seconds that a command of Slurm may take")
]
Form = Annotated[
    str,
    typer.Option("--read", metavar="FORM", help="how Slurm is read: text (faster), json, or rest:SOCKET of slurmrestd"),
]
From = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="JOURNAL", help="replay: the journal whose looks are asked about anew", show_default=False
    ),
]
Looks = Annotated[
    int | None, typer.Option("--looks", min=1, metavar="N", help="end after so many [at SIGTERM]", show_default=False)
]
MetricsAt = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="ADDRESS",
        help="answer Prometheus there: 127.0.0.1:PORT, or a unix socket's path",
        show_default=False,
    ),
]
Where = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of escala beside slurm, or a journal")]


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `beside`."""
    group = typer.Typer(help="Run a policy beside a real Slurm.", no_args_is_help=True, rich_markup_mode=None)
    group.command(epilog=POINTER)(asked.asking(opt.added(slurm, "guards", guards_of)))
    group.command()(status)
    group.command()(explain)
    group.command()(report)
    group.command()(undo)
    app.add_typer(group, name="beside")


def slurm(
    *,
    options: dict[str, Any],
    guards: dict[str, Any],
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
    metrics: MetricsAt = None,
) -> None:
    """Watch a Slurm, and write down what the policies would do beside what Slurm does.

    In the modes shadow, replay and advise it changes nothing of Slurm. It ends at SIGTERM or Ctrl-C, after the look at
    hand, and goes on where it was when it is begun again.
    """
    from escala.bridges.slurm.loop import Beside, Setting
    from escala.bridges.slurm.snapshots import layout, partition_of
    from escala.live import Desk

    _check(mode, source, folder)
    if metrics is not None:
        from escala.bridges.exposed import check_free

        check_free(metrics)
    pair = policies([scheduler], [shutdown])
    with ExitStack() as held:
        with progress() as begin:
            begin("looking at Slurm")
            eyes, first, about = _eyes(source, read, limit, mode in ACTING)
            permitted(mode, guards, eyes)
            at = layout(first, partition_of(first, partition or about.get("partition")), power)
            period = about.get("period_s", period)
            hands = hands_of(mode, at, guards, eyes, folder, period, first, held)
            begin("making the desk")
            desk = Desk(at.platform, pair[0][0], pair[1][0], **options)
            desk.warm()
            folder.mkdir(parents=True, exist_ok=True)
            named = {name: about.get(name, "") for name in ("slurm", "cluster")}
            setting = Setting(mode, period, named, options, limits_of(guards, at))
            beside = Beside(eyes, desk, at, folder, setting, hands)
            if hands is not None:
                held.callback(hands.end)
                hands.begin(eyes.read)
        beside.begin(first.now_s)
        _tell(f"{mode}: partition {at.partition}, {len(at.names)} nodes, {desk.name}; journal {beside.journal.path}")
        _go_round(beside, _Saying(beside, mode), metrics, looks, source is None)
        beside.journal.close()
        _tell(f"ended: looks {beside.seq}, missed {beside.misses}{counted(desk.counts, '; ')}")


def _check(mode: str, source: Path | None, folder: Path) -> None:
    if mode not in MODES:
        raise EscalaError(f"--mode {mode}: give one of {', '.join(MODES)}")
    if (mode == "replay") != (source is not None):
        raise EscalaError("--mode replay and --from JOURNAL belong together: give both, or neither")
    if source is not None and _journal(folder).exists():
        raise EscalaError(
            f"--folder {folder}: holds a journal, and a replay begins anew: name another folder, or remove this one"
        )


def _go_round(beside: Beside, say: _Saying, address: str | None, looks: int | None, waits: bool) -> None:
    """Cycles until it is told to end, with what is said of each. waits: between two looks."""
    from escala.bridges.ending import told_to_end
    from escala.bridges.notify import Notify
    from escala.bridges.slurm.loop import go_round
    from escala.bridges.slurm.metrics import Metrics

    figures, service = Metrics(beside), Notify()

    def after() -> None:
        say.last()
        figures.add()
        service.alive(f"looks {beside.seq}, missed {beside.misses}")

    with ExitStack() as stack:
        if address is not None:
            from escala.bridges.exposed import exposed

            _tell(f"metrics: {stack.enter_context(exposed(address, lambda: figures.text))}")
        ending = stack.enter_context(told_to_end())
        stack.callback(service.stopping)
        service.ready(say.mode)
        go_round(beside, _waiting(ending, service) if waits else lambda _: False, after, looks)


def _eyes(source: Path | None, read: str, limit: float, acts: bool) -> tuple[Any, Any, dict[str, Any]]:
    """What looks at Slurm, or at a journal; the first look; what is known of it."""
    if source is not None:
        from escala.bridges.slurm.replay import Recorded

        recorded = Recorded(source)
        return recorded, recorded.first, recorded.about
    from escala.bridges.slurm.alone import cluster_if_named
    from escala.bridges.slurm.commands import Clients
    from escala.bridges.slurm.reader import Reader, shown, tried

    reader: Any
    if read.startswith(REST):
        from escala.bridges.slurm.rest import Rest, RestReader

        reader = RestReader(Rest(Path(read.removeprefix(REST)), limit), Clients(limit) if acts else None)
    else:
        reader = Reader(Clients(limit), read)
    version = shown(reader.version)
    if not reader.known:
        remark(
            f"Slurm {version} is none of the versions that were tried ({tried()}): it is read all the same, and never "
            "acted on"
        )
    return (
        reader,
        reader.read(),
        {"slurm": version, "cluster": "" if reader.run is None else cluster_if_named(reader.run)},
    )


def _waiting(ending: Any, service: Notify) -> Callable[[float], bool]:
    """Waits so many seconds, or until the process is told to end, and says which. Who watches hears of it meanwhile."""

    def wait(seconds: float) -> bool:
        end = time.monotonic() + seconds
        while True:
            left = max(end - time.monotonic(), 0.0)
            if select.select([ending], [], [], left if service.beat_s is None else min(left, service.beat_s))[0]:
                return True
            if time.monotonic() >= end:
                return False
            service.alive()

    return wait


class _Saying:
    """One line for each look after which something is wanted that was not before, and for each that failed."""

    def __init__(self, beside: Beside, mode: str) -> None:
        self._beside, self.mode = beside, mode
        self._misses, self._before, self._added, self._left = 0, "", list[str](), list[str]()
        self._aside: list[str] = []
        self._kept = ""

    def last(self) -> None:
        """What is new."""
        beside = self._beside
        if beside.misses > self._misses:
            self._misses = beside.misses
            remark(f"look missed ({beside.misses} so far): {beside.why}")
            return
        before, self._added = self._added, beside.last.get("added", [])
        if self._added and self._added != before:
            remark(
                f"new in partition {beside.at.partition}: {_some(self._added)}; begin anew, in another folder, to "
                "have them counted"
            )
        left, self._left = self._left, beside.last.get("left_out", [])
        if new := [line for line in self._left[:20] if line not in left]:
            remark(f"left out: {new[0]}{f' (and {len(new) - 1} more)' if len(new) > 1 else ''}")
        known, self._aside = self._aside, beside.last.get("aside", [])
        if asides := [name for name in self._aside if name not in known]:
            which = f"{_some(asides)} did not boot, and {'is' if len(asides) == 1 else 'are'} set aside"
            remark(f"{which}: when they are well, scontrol update nodename={','.join(asides[:8])} state=resume")
        kept, self._kept = (
            self._kept,
            next((why for kind, _, why in beside.last.get("refused", ()) if kind == "all"), ""),
        )
        if self._kept and self._kept != kept:
            remark(f"nothing is done for now, guard {self._kept}")
        for command, done in beside.last.get("acted", ()):
            _tell(f"{self._now()} {self.mode}: {'' if done else 'FAILED '}{command}")
        if self.mode in ACTING[1:]:
            return
        told = beside.last.get("advice", []) if self.mode == "advise" else None
        found = (
            told
            if told is not None
            else [f"{verb} {_some(names)}" for key, verb in _VERBS.items() if (names := self._open(key))]
        )
        line = "; ".join(found)
        if line and line != self._before:
            _tell(f"{self._now()} {self.mode}: {'' if told else 'would '}{line}")
        self._before = line

    def _open(self, what: str) -> list[str]:
        """What the policy wants of that, and no guard refuses."""
        from escala.bridges.slurm.guard import OFF_NODE, WAKE

        kind = {"offs": OFF_NODE, "wakes": WAKE}.get(what)
        refused = {name for one, name, _ in self._beside.last.get("refused", ()) if one == kind}
        return [name for name in self._beside.last.get(what, ()) if name not in refused]

    def _now(self) -> str:
        return time.strftime("%H:%M:%S", time.gmtime(self._beside.last["t"]))


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _journal(where: Path) -> Path:
    from escala.bridges.slurm.loop import JOURNAL

    return where / JOURNAL if where.is_dir() else where


def status(where: Where = Path("beside"), as_json: opt.Json = False) -> None:
    """How things stood at the last look: what the policies would do, what failed."""
    from escala.bridges.slurm.story import moment
    from escala.bridges.slurm.story import status as told

    found = told(_journal(where))
    texts = {
        key.removesuffix("_s"): moment(value) if key.endswith("_s") and value is not None else value
        for key, value in found.items()
    }
    shown = [(key.replace("_", " "), listed(value), "") for key, value in texts.items()]
    emit(as_json, found, facts_table(shown, "left"))


def explain(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="its number as squeue shows it, as 12 or 12_3", show_default=False)
    ],
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
        Path | None,
        typer.Option("--out", metavar="FILE", help="the page to write [beside.html in the folder]", show_default=False),
    ] = None,
    price: opt.Price = None,
    carbon: opt.Carbon = None,
    currency: opt.Currency = "",
    longer: Annotated[
        float, typer.Option("--longer", min=0.0, metavar="MIN", help="count users who would have waited longer by more")
    ] = 5.0,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """What the journal amounts to: hours off, energy, waits, agreement, and whether that may be trusted yet; as text
    and as a page."""
    from escala.bridges.slurm.findings import find
    from escala.bridges.slurm.page import figures, write_page
    from escala.bridges.slurm.sentences import answers, conditions
    from escala.writing import output_file, own_page

    opt.check_price(price, currency, carbon)
    path = _journal(where)
    found = find(path)
    target = out or path.with_name("beside.html")
    with output_file(target, force=force or (out is None and own_page(target))) as page:
        write_page(page, found, f"Beside Slurm: {found.about['policies']}", price, currency, carbon, 60 * longer)
    said = answers(found, price, currency, carbon, 60 * longer)
    payload = {"answers": said, "conditions": conditions(found), "report": str(target), **figures(found)}
    emit(as_json, payload, "\n".join(said), "\n" + "\n".join(conditions(found)), f"\n{target}")


def undo(
    where: Annotated[Path, typer.Argument(metavar="DIR", help="the folder of escala beside slurm")] = Path("beside"),
    dry: Annotated[bool, typer.Option("--dry", help="say the commands, and give none")] = False,
    limit: Limit = 10.0,
    as_json: opt.Json = False,
) -> None:
    """Give waiting jobs the nice back that they had, and nodes that are kept off back to Slurm. End escala beside slurm
    first.

    What others have set or reserved since is left alone, and said.
    """
    from escala.bridges.slurm.actor import Changes
    from escala.bridges.slurm.commands import Clients
    from escala.bridges.slurm.journal import Journal
    from escala.bridges.slurm.loop import JOURNAL
    from escala.bridges.slurm.reader import Reader
    from escala.bridges.slurm.undoing import check_cluster, leased_by, undone

    if not (where / JOURNAL).exists():
        raise EscalaError(f"{where}: holds no {JOURNAL}: give the folder of escala beside slurm")
    journal = Journal(where / JOURNAL)  # nobody else acts meanwhile
    run, changes = Clients(limit), Changes(where)
    check_cluster(run, journal.path)
    done, left = undone(run, Reader(run).read(), changes, leased_by(changes, journal.path, user()), dry)
    journal.close()
    shown = [f"{'' if good else 'FAILED '}{command}" for command, good in done] or ["nothing is left to undo"]
    shown += [f"left alone: {line}" for line in left]
    told = [{"command": command, "done": good and not dry} for command, good in done]
    emit(as_json, {"commands": told, "left_alone": left}, "\n".join(shown))
    if not all(good for _, good in done):
        raise EscalaError(f"{sum(not good for _, good in done)} commands failed: see above, and try again")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
