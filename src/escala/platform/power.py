"""Power profiles: the watts of one node in each of its states and the seconds that a switch takes.

Sources: R. B. Casagrande's dissertation (2020) on learnt shutdown policies, section 4.1.3 and figure 12 (`GRID5000`);
M. Poquet's thesis (2017), measured on the Taurus cluster of Grid'5000 (`TAURUS`), as quoted in section 2.4.1 and figure
8 of the former.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

from escala.errors import EscalaError, quoted
from escala.platform import gpu_watts

WATTS = ("computing_w", "idle_w", "off_w", "switching_off_w", "switching_on_w")
SECONDS = ("switch_off_s", "switch_on_s")
MOST = 1e11
"""Of watts and of seconds: more than any machine draws, and the longest time of a log."""


@dataclass(frozen=True)
class PowerProfile:
    """Power of ONE node in each state, W, and the time of its switches, s.

    `computing_w` is drawn with all cores at full load; `off_w` while asleep; `switching_off_w` during on -> off, which
    takes `switch_off_s`; `switching_on_w` during off -> on, which takes `switch_on_s`. A node whose profile has
    `can_switch=False` is never off, and its values of switches mean nothing.

    `gpu_idle_w` and `gpu_computing_w`: what each GPU of the node draws beside these while the node is on, W: a number,
    or a dict kind -> number; kept as pairs. Left out, the node's own watts are all. See `gpu_watts`.
    """

    computing_w: float
    idle_w: float
    off_w: float = 0.0
    switching_off_w: float = 0.0
    switching_on_w: float = 0.0
    switch_off_s: float = 0.0
    switch_on_s: float = 0.0
    can_switch: bool = True
    name: str = "custom"
    source: str = ""
    gpu_idle_w: Any = ()
    gpu_computing_w: Any = ()

    def __post_init__(self) -> None:
        for field in WATTS + SECONDS:
            value = getattr(self, field)
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not number or not 0 <= value <= MOST:
                raise EscalaError(f"power profile {quoted(self.name)}: {field} is {quoted(value)}; give a number >= 0")
            object.__setattr__(self, field, float(value))
        where = f"power profile {quoted(self.name)}"
        for field in gpu_watts.FIELDS:
            told = gpu_watts.watts_of(getattr(self, field), f"{where}: {field}", MOST)
            object.__setattr__(self, field, told)
        gpu_watts.check_pair(self.gpu_idle_w, self.gpu_computing_w, where)

    @property
    def has_watts(self) -> bool:
        """False where the profile says nothing of what a node draws, as `NONE` does: no energy can be told."""
        return self.computing_w > 0.0 or self.idle_w > 0.0

    def per_core(self, cores: int) -> PowerProfile:
        """The profile of a node of `cores` cores where this profile describes one core: all watts times `cores`, the
        times unchanged."""
        if cores < 1:
            raise EscalaError(f"power profile {self.name!r}: cannot be multiplied by {cores} cores; give at least 1")
        if cores == 1 or not self.has_watts:
            return self
        watts = {field: getattr(self, field) * cores for field in WATTS}
        return replace(self, name=f"{self.name}*{cores}", **watts)

    @property
    def cycle_j(self) -> float:
        """Energy of switching off and on again, J."""
        return self.switching_off_w * self.switch_off_s + self.switching_on_w * self.switch_on_s

    @property
    def break_even_s(self) -> float:
        """Idle time that costs as much as switching off and on again, s; inf where idling costs nothing."""
        return self.cycle_j / self.idle_w if self.idle_w > 0 else math.inf

    @property
    def of_gpus(self) -> dict[str, float | dict[str, float]]:
        """The watts of GPUs, as a file has them; empty where there are none."""
        told = {name: getattr(self, name) for name in gpu_watts.FIELDS}
        return {name: gpu_watts.as_told(watts) for name, watts in told.items() if watts}

    def spec(self) -> dict[str, Any]:
        """The profile as a plain dict, without its name (the key under which it is kept)."""
        left = {"name", *gpu_watts.FIELDS}
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in left}
        return own | self.of_gpus


GRID5000 = PowerProfile(
    computing_w=190.0,
    idle_w=95.0,
    off_w=9.0,
    switching_off_w=101.0,
    switching_on_w=125.0,
    switch_off_s=180.0,
    switch_on_s=60.0,
    name="grid5000",
    source="Casagrande 2020, section 4.1.3, figure 12 (18 180 J off, 7 500 J on)",
)

TAURUS = PowerProfile(
    computing_w=190.0,
    idle_w=95.0,
    off_w=9.75,
    switching_off_w=101.0,
    switching_on_w=125.0,
    switch_off_s=6.0,
    switch_on_s=150.0,
    name="taurus",
    source="Poquet 2017, measured on Taurus; Casagrande 2020, section 2.4.1, figure 8",
)

NONE = PowerProfile(
    computing_w=0.0,
    idle_w=0.0,
    can_switch=False,
    name="none",
    source="no power data: energy is not counted and nodes stay on",
)
"""What stands where no profile was given. None is assumed: watts that nobody named would look like measured ones."""

PROFILES: dict[str, PowerProfile] = {profile.name: profile for profile in (GRID5000, TAURUS, NONE)}


def by_name(name: str) -> PowerProfile:
    """The named profile. Raises EscalaError naming the nearest known names."""
    profile = PROFILES.get(name.lower())
    if profile is None:
        near = difflib.get_close_matches(name.lower(), PROFILES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise EscalaError(f"unknown power profile {quoted(name)}; {hint}known: {', '.join(sorted(PROFILES))}")
    return profile
