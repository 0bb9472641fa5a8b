"""What a line asks of a desk, and the line that answers it: whatever the line holds, there is one answer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, one_line, quoted
from escala.live.desk import Desk
from escala.live.site_desk import SiteDesk
from escala.live.slurm_desk import SlurmDesk
from escala.live.snapshot import SCHEMA, Snapshot

REQUESTS = {"decide": (), "plan": ("first",), "status": ()}
"""What may be asked -> what may stand beside it."""

PLANNED = 10


class Answers:
    """desk: asked in the order in which lines come. state: the file that is written before each answer to a decision,
    and read here if it exists; None: nothing is kept. A line that was the last one decided is answered as before, and
    not decided again: whoever does not know whether its answer was lost asks again."""

    def __init__(self, desk: Desk | SiteDesk | SlurmDesk, state: Path | None = None) -> None:
        self._desk, self._state = desk, state
        self._asked, self._orders = "", dict[str, Any]()
        self._saved = True
        self.decisions, self.errors = 0, 0
        if state is None:
            return
        if state.exists():
            note = desk.restore(state)
            if isinstance(note, dict) and isinstance(note.get("orders"), dict):
                self._asked, self._orders = str(note.get("asked", "")), note["orders"]
        else:
            self._save()

    def answer(self, line: bytes) -> bytes:
        """The line that answers this one; both without the line break."""
        try:
            told = self._answered(line)
        except EscalaError as error:
            told = self._refused(str(error))
        except Exception as error:
            told = self._refused(f"{type(error).__name__}: {error} (a fault of Escala or of a policy of your own)")
        return json.dumps(told, separators=(",", ":")).encode()

    def refuse(self, why: str) -> bytes:
        """The line that says what is wrong."""
        return json.dumps(self._refused(why), separators=(",", ":")).encode()

    def _refused(self, why: str) -> dict[str, Any]:
        self.errors += 1
        return {"error": one_line(why)}

    def _answered(self, line: bytes) -> dict[str, Any]:
        what, told = _parsed(line)
        if what == "status":
            return {"status": self._status()}
        if what == "decide":
            return self._decided(line, told[what])
        first = told.get("first", PLANNED)
        if isinstance(first, bool) or not isinstance(first, int):
            raise EscalaError(f"request: first is {quoted(first)}: give a whole number of jobs")
        planned = self._desk.plan(Snapshot.from_plain(told[what]), first)
        return {"planned": [one._asdict() for one in planned]}

    def _decided(self, line: bytes, told: Any) -> dict[str, Any]:
        name = hashlib.sha256(line.strip()).hexdigest()
        if name != self._asked:
            orders = self._desk.decide(Snapshot.from_plain(told)).told()
            self._asked, self._orders, self._saved = name, orders, False
            self.decisions += 1
        if self._state is not None and not self._saved:
            self._save()
        self._saved = True
        return self._orders

    def _save(self) -> None:
        assert self._state is not None
        try:
            self._desk.save(self._state, {"asked": self._asked, "orders": self._orders})
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise EscalaError(
                f"{self._state}: cannot be written ({reason}), so no orders are given: make room, ask again"
            ) from None

    def _status(self) -> dict[str, Any]:
        return {
            "policies": self._desk.name,
            "platform": self._desk.platform.name,
            "nodes": self._desk.platform.n_nodes,
            "schema": SCHEMA,
            "decisions": self.decisions,
            "errors": self.errors,
            **({"counts": counts} if (counts := dict(self._desk.counts)) else {}),
            "now_s": self._orders.get("now_s"),
            "next_s": self._orders.get("next_s"),
            "state": None if self._state is None else str(self._state),
        }


def _parsed(line: bytes) -> tuple[str, dict[str, Any]]:
    """What is asked, and the whole request."""
    if not line.strip():
        raise EscalaError("request: an empty line: send one request a line")
    try:
        told = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise EscalaError(f"request: not valid JSON ({error}): send one request a line") from None
    known = ", ".join(REQUESTS)
    if not isinstance(told, dict):
        raise EscalaError(f"request: {quoted(told)} is no request: send an object with one of {known}")
    asked = [what for what in REQUESTS if what in told]
    if len(asked) != 1:
        raise EscalaError(
            f"request: it asks {'for ' + ' and '.join(asked) if asked else 'nothing'}: name one of {known}"
        )
    if asked[0] == "status" and told["status"] is not True:
        raise EscalaError(f"request: status is {quoted(told['status'])}: ask for it by true")
    more = [name for name in told if name not in (asked[0], *REQUESTS[asked[0]])]
    if more:
        raise EscalaError(f"request: {quoted(more[0])} does not belong to {asked[0]}: leave it out")
    return asked[0], told
