"""Messages of Batsim's protocol: read and checked, and written; sets of resources as its texts of intervals ("0-3
7")."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from escala.errors import EscalaError, quoted

LATEST_S = 1e11
PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class Event(NamedTuple):
    """kind: as JOB_SUBMITTED. data: an object."""

    timestamp_s: float
    kind: str
    data: dict[str, Any]

    def has(self, name: str, *types: type) -> Any:
        """An entry of the data, of one of these types; EscalaError where it is not there."""
        value = self.data.get(name)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise EscalaError(f"Batsim: {self.kind} has {name} {quoted(value)}: this is not the protocol of Batsim 4")
        return value


class Message(NamedTuple):
    """now_s: the time of the simulation."""

    now_s: float
    events: list[Event]


def read(data: bytes, before_s: float) -> Message:
    """A message that came after one of `before_s`; EscalaError for one of another protocol, or one that goes back in
    time."""
    try:
        told = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise EscalaError(
            f"Batsim: {quoted(data[:60])} is not JSON: Batsim 5 speaks another protocol, use Batsim 4"
        ) from None
    if not isinstance(told, dict) or not isinstance(told.get("events"), list):
        raise EscalaError(
            f"Batsim: {quoted(told)} is no message with now and events: this is not the protocol of Batsim 4"
        )
    now = _time(told.get("now"), "now")
    if now < before_s:
        raise EscalaError(
            f"Batsim: a message of {now} s came after one of {before_s} s: time goes backwards, begin the simulation "
            "anew"
        )
    events, last = [], 0.0
    for entry in told["events"]:
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            raise EscalaError(f"Batsim: {quoted(entry)} is no event: this is not the protocol of Batsim 4")
        stamp = _time(entry.get("timestamp"), f"the timestamp of {entry['type'][:60]}")
        if not last <= stamp <= now:
            raise EscalaError(
                f"Batsim: {entry['type'][:60]} of {stamp} s after {last} s, in a message of {now} s: time goes "
                "backwards"
            )
        last, more = stamp, entry.get("data")
        events.append(Event(stamp, entry["type"], more if isinstance(more, dict) else {}))
    return Message(now, events)


def _time(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST_S:
        raise EscalaError(f"Batsim: {what} is {quoted(value)}: this is not the protocol of Batsim 4")
    return float(value)


def write(now_s: float, events: Iterable[tuple[str, dict[str, Any]]]) -> bytes:
    """The reply: events of now, (type, data)."""
    told = [{"timestamp": now_s, "type": kind, "data": data} for kind, data in events]
    return json.dumps({"now": now_s, "events": told}, separators=(",", ":")).encode()


def numbers(text: str) -> list[int]:
    """ "0-2 7" -> [0, 1, 2, 7]; EscalaError for another text."""
    found: list[int] = []
    for part in text.split():
        match = PART.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + 10_000_000:
            raise EscalaError(f"Batsim: {quoted(text)} is no set of resources, such as 0-3 7")
        found += range(first, last + 1)
    return found


def intervals(found: Iterable[int]) -> str:
    """[0, 1, 2, 7] -> "0-2 7"."""
    parts: list[list[int]] = []
    for number in sorted(found):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
