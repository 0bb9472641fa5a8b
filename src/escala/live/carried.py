"""What a desk carries from one decision to the next, since no snapshot tells it; by names of jobs and users, so that a
file can hold it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from escala.errors import EscalaError, quoted


@dataclass
class Carried:
    """now_us: time of the last decision, -1: there was none. tick_us: the next periodic one. timers: calls that
    policies asked for, us.
    held: nodes of an off-reservation. head: the first job, with the time found for it by the last scheduler, for
    easy-fast and those that look at the tables. fraction: of the walltime for which jobs are held, where a policy has
    said one. lengths: what was expected of each waiting or running job at its submission (for plans, for the order).
    recent: the last two runs of each user, us. rows: of live jobs, for policies that may remember them. runs: row,
    walltime and start of live jobs, us, and the user's number, for those that look at the tables. next_row: rows given.
    numbers, dropped: by row, the numbers by which policies know the jobs that
    were there when the tables were last tidied up; those that came since have their row and so many more. clocks: of
    each linear score, its time, when it is due, and what users add."""

    now_us: int = -1
    tick_us: int = -1
    timers: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    head: list[Any] = field(default_factory=list)  # id, us, residue
    fraction: list[float] = field(default_factory=list)  # one at most
    lengths: dict[str, list[int]] = field(default_factory=dict)
    recent: dict[str, list[int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    runs: dict[str, list[int]] = field(default_factory=dict)
    next_row: int = 0
    numbers: list[int] = field(default_factory=list)
    dropped: int = 0
    users: list[str] = field(default_factory=list)  # by number
    clocks: list[list[Any]] = field(default_factory=list)

    def copy(self) -> Carried:
        """As it is now, whatever is changed later."""
        other = Carried.__new__(Carried)
        vars(other).update(vars(self))
        other.users = list(self.users)
        other.recent = {user: list(runs) for user, runs in self.recent.items()}
        return other

    def told(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return asdict(self)

    @classmethod
    def read(cls, told: Any) -> Carried:
        """From plain data; EscalaError where that is another."""
        kinds = {one.name: type(getattr(cls(), one.name)) for one in fields(cls)}
        if not isinstance(told, dict) or set(told) != set(kinds):
            raise EscalaError("what is carried is not that of this version of Escala: begin without the file")
        for name, kind in kinds.items():
            if type(told[name]) is not kind:
                raise EscalaError(f"carried {name} is {quoted(told[name])}: begin without the file")
        return cls(**told)
