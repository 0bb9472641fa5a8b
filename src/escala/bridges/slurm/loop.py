"""Round and round: look, ask, write down. Every cycle begins from what Slurm says, and ends with a journal and a state
on the disk."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from escala.bridges.slurm import shape as kinds
from escala.bridges.slurm.as_if import AsIf
from escala.bridges.slurm.guard import Limits
from escala.bridges.slurm.journal import Journal
from escala.bridges.slurm.pretend import Lived
from escala.bridges.slurm.seen import ENDED, Job, Seen, changes
from escala.bridges.slurm.snapshots import SAID, Layout, added, as_it_is, snapshot
from escala.bridges.slurm.watch import Watch
from escala.errors import EscalaError, one_line, quoted
from escala.live import Desk, Orders, Snapshot
from escala.live.state_file import reading_state
from escala.platform import Platform

SOONEST_S = 1.0
MOST_WAITS = 6  # periods, between two tries after many failures
MOST_SAID = 20  # of what is left out at a look
STATE, JOURNAL, METRICS = "state.json", "journal.jsonl", "metrics.prom"


class Looks(Protocol):
    """Gives what can be seen now; EscalaError where nothing can, EOFError where nothing more comes."""

    def read(self) -> Seen: ...


class Hands(Protocol):
    """What may be done about orders. pretends: nodes that the policy has off stay on in truth."""

    pretends: bool

    def aside(self, now_s: float) -> Set[str]: ...
    def act(
        self, seen: Seen, orders: Orders, desk: Desk, asked: Snapshot, decided_s: float, unsure: Set[str]
    ) -> dict[str, Any]: ...
    def failed(self, why: str) -> None: ...
    def told(self) -> Any: ...
    def restore(self, told: Any) -> None: ...
    def soon_s(self) -> float | None: ...


@dataclass
class Setting:
    """mode: shadow, ... period_s: between two looks at most. options: of the policies. limits: of the guards through
    which switches go that are none in truth; None: the usual ones, for all nodes. tolerance_s: starts within it are the
    same."""

    mode: str
    period_s: float = 10.0
    about: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    limits: Limits | None = None

    @property
    def tolerance_s(self) -> float:
        return max(self.period_s, 5.0)

    @property
    def longest_s(self) -> float:
        """The longest time between two looks that is counted."""
        return 3.0 * self.period_s + 5.0


class Beside:
    """desk, at: of the same nodes. folder: with the journal and the state, from which it goes on. EscalaError where
    these are of another machine or other policies."""

    def __init__(
        self, looks: Looks, desk: Desk, at: Layout, folder: Path, setting: Setting, hands: Hands | None = None
    ) -> None:
        self._looks, self._desk, self.at, self._setting, self._hands = looks, desk, at, setting, hands
        self.folder = folder
        limits = setting.limits or Limits(allowed=frozenset(at.names))
        self._as_if = AsIf(at, setting.longest_s, limits, setting.period_s)
        self._pretend = self._as_if.pretend
        self._watch = Watch(at, setting.tolerance_s)
        self.seen: Seen | None = None  # at the last look
        self._last_s: float | None = None
        self.seq, self.misses, self.failures = 0, 0, 0
        self.left_out = 0  # records of the last look
        self.last: dict[str, Any] = {}
        self.why = ""  # the last look failed
        self._lived = Lived()  # since what was last written
        self.journal = Journal(folder / JOURNAL)
        try:
            self._check_begun(self.journal.goes_on(self._marked()))
            self._restore()
        except EscalaError:
            self.journal.close()
            raise

    def _restore(self) -> None:
        path = self.folder / STATE
        if not path.exists():
            return
        note = self._desk.restore(path)
        try:
            self._check_place(note["at"])
            self.seq, self._last_s = int(note["seq"]), note["last_s"]
            self._pretend.restore(note["pretend"])
            if note.get("as_if") is not None:  # not so in a state of before there was any
                self._as_if.restore(note["as_if"])
            self._watch.restore(note["watch"])
            if self._hands is not None and note.get("hands") is not None:
                self._hands.restore(note["hands"])
        except (TypeError, KeyError, ValueError) as error:
            if isinstance(error, EscalaError):
                raise EscalaError(f"{path}: {error}") from None
            raise EscalaError(
                f"{path}: not the state of escala beside: name another folder, or begin without the file"
            ) from None

    def _marked(self) -> Any:
        """How far the journal had got when the state was written; None where nobody says."""
        if not (self.folder / STATE).exists():
            return None
        try:
            with reading_state(self.folder / STATE) as told:
                return told["note"]["journal"]
        except (EscalaError, TypeError, KeyError):  # `_restore` says what is wrong with it
            return None

    def _place(self) -> dict[str, str]:
        names = hashlib.sha256(" ".join(self.at.names).encode()).hexdigest()[:16]
        return {"cluster": self._setting.about.get("cluster", ""), "partition": self.at.partition, "nodes": names}

    def _check_place(self, there: dict[str, str]) -> None:
        """EscalaError for the state of another cluster or partition, or of other nodes. A cluster that was not named
        may be any."""
        for what, here in self._place().items():
            if there[what] != here and there[what] and here:
                raise EscalaError(
                    f"of {'other nodes' if what == 'nodes' else f'{what} {quoted(there[what])}'}: name another folder"
                )

    def _check_begun(self, begun: dict[str, Any] | None) -> None:
        """EscalaError for a journal of other policies, options, nodes or watts: figures of two would be mixed. Any mode
        goes on with it."""
        if begun is None:
            return
        here, before = self._who(), {"options": {}, **begun}
        wrong = ""
        if before["policies"] != here["policies"]:
            wrong = f"policies {quoted(before['policies'])}"
        elif before["names"] != here["names"]:
            wrong = "other nodes"
        elif Platform.from_spec(before["platform"]).spec() != Platform.from_spec(here["platform"]).spec():
            wrong = "other watts (--power), or other CPUs of nodes"
        else:
            other = (name for name, value in here["options"].items() if before["options"].get(name, value) != value)
            wrong = "".join(f"{name} {quoted(before['options'][name])}" for name in list(other)[:1])
        if wrong:
            raise EscalaError(f"{self.journal.path}: of {wrong}: name another folder")

    def _who(self) -> dict[str, Any]:
        """What of a process no other may differ in that goes on with its journal, as plain data."""
        at = self.at
        plain = {
            k: v if v is None or isinstance(v, bool | int | float | str) else str(v)
            for k, v in self._setting.options.items()
        }
        return {"policies": self._desk.name, "platform": at.platform.spec(), "names": list(at.names), "options": plain}

    def save(self) -> None:
        """What is remembered, as a whole file."""
        hands = None if self._hands is None else self._hands.told()
        note = {
            "seq": self.seq,
            "last_s": self._last_s,
            "pretend": self._pretend.told(),
            "as_if": self._as_if.told(),
            "watch": self._watch.told(),
            "hands": hands,
        }
        note |= {"at": self._place(), "journal": list(self.journal.mark)}
        self._desk.save(self.folder / STATE, note)

    def begin(self, now_s: float) -> None:
        """Say in the journal who begins."""
        about: dict[str, Any] = {"mode": self._setting.mode, **self._who()}
        limits = self._as_if.limits
        guards = asdict(replace(limits, allowed=frozenset())) | {"allowed": len(limits.allowed)}
        about |= {"partition": self.at.partition, "period_s": self._setting.period_s, "guards": guards}
        about |= self._setting.about
        self.journal.append({"kind": kinds.BEGIN, "t": now_s, "seq": self.seq, **about})

    @property
    def about(self) -> dict[str, str]:
        """Who looks at what."""
        told = {"mode": self._setting.mode, "policies": self._desk.name, "partition": self.at.partition}
        return told | {"slurm": str(self._setting.about.get("slurm", ""))}

    @property
    def counts(self) -> dict[str, int]:
        """What a scheduler counts of its decisions, since the folder began."""
        return self._desk.counts

    @property
    def aside(self) -> int | None:
        """How many nodes are set aside; None where none is switched."""
        if self._hands is None or self._hands.pretends or self.seen is None:
            return None
        return len(self._hands.aside(self.seen.now_s))

    def cycle(self) -> float:
        """One look and what follows; how long to wait until the next, s. EOFError where nothing more can be seen."""
        begun = time.monotonic()
        try:
            seen = self._looks.read()
            return self._look(seen, begun)
        except EscalaError as error:
            return self._missed(str(error))
        except (EOFError, OSError):  # nothing more comes, or nothing can be written
            raise
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            return self._missed(
                f"a fault of Escala ({type(error).__name__} at {Path(at.filename).name}:{at.lineno}): {error}"
            )

    def _missed(self, why: str) -> float:
        """A look that failed, for whatever reason: nothing is decided, and the next one may go well. How long to wait
        until then, s."""
        self.failures += 1
        self.misses += 1
        self.why = one_line(why)
        if self._hands is not None:
            self._hands.failed(self.why)
        self.journal.append({"kind": kinds.MISS, "t": time.time(), "why": self.why})
        return self._setting.period_s * min(2 ** (self.failures - 1), MOST_WAITS)

    def _look(self, seen: Seen, begun: float) -> float:
        if self._last_s is not None and seen.now_s < self._last_s:
            raise EscalaError(
                f"the clock went back by {self._last_s - seen.now_s:.3g} s: nothing is decided until it has caught up"
            )
        read_s = time.monotonic() - begun
        pretends = self._hands is None or self._hands.pretends
        recent = self._last_s is not None and seen.now_s - self._last_s <= self._setting.longest_s
        since = self._last_s if recent else None
        started = self._watch.started(seen, since)
        lived = self._lived
        self._pretend.advance(seen, lived)
        asked, unsure = self._asked(seen, since, started, pretends)
        orders = self._desk.decide(asked)
        decided_s = time.monotonic() - begun - read_s
        again = {job.job_id for job in started if job.state != ENDED} if pretends else set()
        self._pretend.settle(seen, started, lived)
        rows = self._watch.judge(seen, orders, started, pretends)
        wakes, offs = self._switched(orders, again)
        dubious, refused = {self.at.names[k] for k in unsure}, list[list[str]]()
        if pretends:
            orders, refused = self._as_if_done(seen, orders, wakes, offs, dubious)
        self._watch.count(seen)
        expected = self._watch.expect(seen, self._desk, asked, rows)
        acted = dict[str, Any]()
        if self._hands is not None:
            acted = self._hands.act(seen, orders, self._desk, asked, decided_s, dubious)
        self.seq += 1
        self._last_s = seen.now_s
        self.failures = 0
        starts = [one.job_id for one in orders.starts if one.job_id not in again]
        self.left_out = len(seen.left_out)
        found = {
            "starts": starts,
            "wakes": wakes,
            "offs": offs,
            "unsure": sorted(unsure),
            "left_out": self._said(seen, unsure, orders),
            "started": rows,
            "expected": expected,
            "added": added(seen, self.at),
            "refused": [*refused, *acted.pop("refused", [])],
        }
        self._write(seen, lived, found | acted, read_s, decided_s)
        self._lived = Lived()
        return self._wait(orders, seen)

    def _said(self, seen: Seen, unsure: Mapping[int, str], orders: Orders) -> list[str]:
        """What of a look does not count, and why, in lines; not so nodes that changed between two commands, as they all
        do at times."""
        out = [
            *seen.left_out,
            *(f"node {self.at.names[k]}: {SAID[why]}: it is left alone" for k, why in unsure.items() if why in SAID),
        ]
        out += [f"job {one.job_id}: {one.why}: no policy can start it" for one in orders.refused]
        return out[:MOST_SAID] + ([f"and {len(out) - MOST_SAID} more"] if len(out) > MOST_SAID else [])

    def _asked(
        self, seen: Seen, since: float | None, started: list[Job], pretends: bool
    ) -> tuple[Snapshot, dict[int, str]]:
        over = self._watch.ended(seen, since)
        if not pretends:
            aside = set() if self._hands is None else self._hands.aside(seen.now_s)
            return snapshot(seen, self.at, as_it_is, over, aside=aside)
        return snapshot(seen, self.at, self._pretend.power, over, {job.job_id for job in started if job.state != ENDED})

    def _switched(self, orders: Orders, again: set[str]) -> tuple[list[str], list[str]]:
        """Names of the nodes to switch, but for those that jobs would need that have started already."""
        names = self.at.names
        had = {
            k
            for one in orders.starts
            if one.job_id in again
            for low, high, _ in one.nodes
            for k in range(low, high + 1)
        }
        return [names[k] for k in orders.wakes if k not in had], [names[k] for k in orders.offs]

    def _as_if_done(
        self, seen: Seen, orders: Orders, wakes: list[str], offs: list[str], unsure: Set[str]
    ) -> tuple[Orders, list[list[str]]]:
        """The policy's switches, as if they were carried out: the orders with those alone that the guards let through,
        and what they refused."""
        names, index = self.at.names, self.at.index
        starts = {
            one.job_id: [names[k] for low, high, _ in one.nodes for k in range(low, high + 1)] for one in orders.starts
        }
        free = [name for name in offs if not seen.nodes[name].allocated]
        on, off, refused = self._as_if.order(seen, starts, wakes, free, unsure)
        done_on, done_off = (tuple(index[name] for name in done) for done in (on, off))
        return replace(orders, wakes=done_on, offs=done_off), refused

    def _write(self, seen: Seen, lived: Lived, found: dict[str, Any], read_s: float, decided_s: float) -> None:
        """Into the journal, then into the state: killed between them, the same look is written again and counts
        once."""
        told = {key: value for key, value in (found | {"counts": self.counts}).items() if value}
        times = {"read_ms": round(1000 * read_s, 1), "decide_ms": round(1000 * decided_s, 2)}
        self.last = {"kind": kinds.LOOK, "t": seen.now_s, "seq": self.seq, **times, **told, "lived": lived.told()}
        self.journal.append({**self.last, "seen": changes(self.seen, seen)})
        self.seen = seen
        self.save()

    def _wait(self, orders: Orders, seen: Seen) -> float:
        wait = self._setting.period_s
        if orders.next_s is not None:
            wait = min(wait, max(orders.next_s - seen.now_s, SOONEST_S))
        soon = None if self._hands is None else self._hands.soon_s()
        return wait if soon is None else min(wait, soon)


def go_round(
    beside: Beside, ended: Callable[[float], bool], after: Callable[[], None], most: int | None = None
) -> None:
    """Cycles until it shall end. ended: waits so many seconds, and says whether to end. after: called after each
    cycle."""
    done = 0
    while True:
        begun = time.monotonic()
        try:
            wait = beside.cycle()
        except EOFError:
            return
        after()
        done += 1
        if most is not None and done >= most:
            return
        if ended(max(wait - (time.monotonic() - begun), 0.0)):
            return
