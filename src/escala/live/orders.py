"""What a policy wants done now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from escala.errors import EscalaError, quoted


class Start(NamedTuple):
    """A waiting job gets its cores now."""

    job_id: str
    # (first node, last node, cores on each), in the order in which they were taken
    nodes: tuple[tuple[int, int, int], ...]
    waits: bool  # its nodes are not all on: it starts when they are, and holds them until then
    partition: str | None = None  # where it runs, of those that it named; None: nobody asked for partitions
    # (memory_mb, gpu or gpu:KIND, how much on each node), as for `nodes`
    held: tuple[tuple[str, tuple[int, ...]], ...] = ()


class Refused(NamedTuple):
    """A waiting job that could never run here, were all nodes empty. It holds back no other job."""

    job_id: str
    why: str  # one line


class Planned(NamedTuple):
    """A waiting job as things look now: every job runs for the time requested, and none comes."""

    job_id: str
    start_s: float


@dataclass(frozen=True)
class Orders:
    """starts: in the order in which they were decided. wakes: off nodes to switch on, those that starts wait for among
    them. offs: idle nodes to switch off. next_s: when to ask again if nothing happens before, None: not of its own
    accord. refused: waiting jobs that could never run; those who ask tell their users, or cancel them."""

    now_s: float
    starts: tuple[Start, ...] = ()
    wakes: tuple[int, ...] = ()
    offs: tuple[int, ...] = ()
    next_s: float | None = None
    refused: tuple[Refused, ...] = ()

    def told(self) -> dict[str, Any]:
        """As plain data for JSON."""
        starts = [_told(one) for one in self.starts]
        told = {
            "now_s": self.now_s,
            "starts": starts,
            "wakes": list(self.wakes),
            "offs": list(self.offs),
            "next_s": self.next_s,
        }
        return told | {"refused": [one._asdict() for one in self.refused]}

    @classmethod
    def read(cls, told: Any) -> Orders:
        """From what `told` gave; EscalaError for anything else."""
        try:
            starts = tuple(
                Start(
                    str(one["job_id"]),
                    tuple((int(a), int(b), int(c)) for a, b, c in one["nodes"]),
                    bool(one["waits"]),
                    *_more(one),
                )
                for one in told["starts"]
            )
            due = None if told["next_s"] is None else float(told["next_s"])
            never = tuple(Refused(str(one["job_id"]), str(one["why"])) for one in told.get("refused", ()))
            return cls(
                float(told["now_s"]), starts, tuple(map(int, told["wakes"])), tuple(map(int, told["offs"])), due, never
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise EscalaError(f"no orders: {quoted(told)}: ask a server of this version of Escala") from None


def _told(one: Start) -> dict[str, Any]:
    told: dict[str, Any] = {"job_id": one.job_id, "nodes": [list(part) for part in one.nodes], "waits": one.waits}
    if one.partition is not None:
        told["partition"] = one.partition
    return told | ({"held": {name: list(values) for name, values in one.held}} if one.held else {})


def _more(one: Any) -> tuple[str | None, tuple[tuple[str, tuple[int, ...]], ...]]:
    part = one.get("partition")
    return None if part is None else str(part), tuple(
        (str(name), tuple(map(int, values))) for name, values in one.get("held", {}).items()
    )
