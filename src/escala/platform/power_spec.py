"""A power profile from what a user writes: a preset's name, measured watts, or a YAML file.

A file holds the entries of one profile of a platform file (see `spec`):

computing_w: 410
idle_w: 160
off_w: 8
switching_off_w: 150
switching_on_w: 210
switch_off_s: 45
switch_on_s: 140
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from escala.errors import EscalaError, quoted
from escala.platform.gpu_watts import FIELDS as OF_GPUS
from escala.platform.power import SECONDS, WATTS, PowerProfile, by_name
from escala.platform.spec import profile_from
from escala.reading import guarded, read_all

MEASURED = "given"
"""The name of a profile whose watts were written out."""
_SHORT = {name.removesuffix("_w"): name for name in (*WATTS, *OF_GPUS)}
_PRESET = re.compile(r"([A-Za-z0-9_-]+)(/core)?")


def read_power(text: str | Path) -> tuple[PowerProfile, bool]:
    """The profile, and whether its watts are those of a core.

    text: the name of a preset (`grid5000`; `grid5000/core`: a core's watts); measured watts of a node,
    `computing=410,idle=160`, and for nodes that can switch off also off, switching_off, switching_on (W), switch_off_s,
    switch_on_s, and of each GPU gpu_idle, gpu_computing; or a YAML file of these. Raises EscalaError with one line on
    anything else.
    """
    given = str(text)
    there = os.path.exists(given) and not os.path.isdir(given)
    if there or "=" in given:
        profile = _read_file(Path(given)) if there else _measured(given)
        if profile.idle_w > profile.computing_w:
            raise EscalaError(
                f"power: idle takes {profile.idle_w:g} W, more than computing ({profile.computing_w:g} W); are they "
                "swapped?"
            )
        return profile, False
    match = _PRESET.fullmatch(given)
    if not match:
        raise EscalaError(
            f"power {quoted(given)}: no such file; give a preset (grid5000), computing=W,idle=W,..., or a YAML file"
        )
    return by_name(match[1]), match[2] is not None


def _measured(text: str) -> PowerProfile:
    """A profile from NAME=NUMBER entries."""
    entries: dict[str, float | bool] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        key = _SHORT.get(name, name)
        if key not in (*WATTS, *OF_GPUS, *SECONDS):
            raise EscalaError(f"power: unknown entry {quoted(name)}; known: {', '.join((*_SHORT, *SECONDS))}")
        if key in entries:
            raise EscalaError(f"power: {name} is given twice; give it once")
        try:
            entries[key] = float(value)
        except ValueError:
            raise EscalaError(f"power: {name} is {quoted(value)}; give a number") from None
    if not entries.keys() - {*WATTS[:2], *OF_GPUS}:
        entries["can_switch"] = False
    missing = [name for name in (WATTS + SECONDS if "can_switch" not in entries else WATTS[:2]) if name not in entries]
    if missing:
        told = ", ".join(name.removesuffix("_w") for name in missing)
        raise EscalaError(
            f"power: {told} missing; nodes that switch off need all seven, those that stay on computing and idle only"
        )
    return profile_from(MEASURED, entries)


def _read_file(path: Path) -> PowerProfile:
    from escala.platform.yaml_file import read_yaml  # here: most runs read no such file

    with guarded(path, "a power profile"):
        entry = read_yaml(read_all(path), path)
        if not isinstance(entry, dict):
            raise EscalaError(f"{path}: holds no power profile; give entries such as computing_w: 410")
        return profile_from(path.stem, entry)
