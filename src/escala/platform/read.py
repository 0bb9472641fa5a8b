"""Read a platform from what a user writes: a preset's name, NODESxCORES, or a file."""

from __future__ import annotations

import difflib
import os.path
import re
from pathlib import Path

from escala.errors import EscalaError, quoted
from escala.platform.platform import Platform
from escala.platform.power import GRID5000
from escala.platform.power_spec import read_power
from escala.platform.presets import PRESETS, preset
from escala.platform.read_site import is_conf, read_site
from escala.reading import file_name, guarded, read_all

_GRID = re.compile(r"([0-9]{1,18})[xX]([0-9]{1,18})")
_POWER = re.compile(r"(?P<what>[^:]+)(?::(?P<power>[A-Za-z0-9_-]+)(?P<per_core>/core)?)?")


def read_platform(spec: str | Path | Platform, power: str | Path | None = None) -> Platform:
    """The platform that `spec` names; a Platform is taken as it is.

    A spec is a preset's name (see `presets`), `NODESxCORES` (`16x32`), or a file: a SimGrid/Batsim platform in XML or a
    YAML file (see `spec`), plain or gzipped; a site.toml or a slurm.conf gives a Site (see `read_site`). Presets and
    sizes take `:POWER`, the name of a power profile (`16x32:taurus`); its watts are those of a node, or with `/core` of
    a core (`16x32:taurus/core`). `#N` at the end keeps the first N nodes. A size without `:POWER` has no power profile:
    no energy is counted, and nodes stay on. power: the profile of every node, in place of what the spec says: a preset,
    measured watts or a file, see `power_spec.read_power`. Raises EscalaError with one line on anything else.
    """
    if power is None:
        return _read(spec)
    named = _POWER.fullmatch(str(spec).partition("#")[0])
    if not isinstance(spec, Platform) and named and named["power"] and not os.path.isfile(str(spec)):
        raise EscalaError(
            f"platform {quoted(str(spec))} names power {named['power']!r}, and --power another: give one of them"
        )
    return _read(spec).with_power(*read_power(power))


def _read(spec: str | Path | Platform) -> Platform:
    if isinstance(spec, Platform):
        return spec
    text = str(spec)
    if os.path.exists(text) and not os.path.isdir(text):
        return read_platform_file(Path(text))
    before, mark, number = text.rpartition("#")
    if not mark:
        return _read_whole(text)
    if not re.fullmatch(r"[0-9]{1,10}", number):
        raise EscalaError(
            f"platform {quoted(text)}: after # there must be the number of nodes to keep, not {quoted(number)}"
        )
    return _read_whole(before).first(int(number))


def _read_whole(text: str) -> Platform:
    if os.path.isfile(text):
        return read_platform_file(Path(text))
    match = _POWER.fullmatch(text)
    if match:
        what, power, per_core = match["what"], match["power"], match["per_core"] is not None
        if what.lower() in PRESETS:
            return preset(what.lower(), power or GRID5000, per_core)
        size = _GRID.fullmatch(what)
        if size:
            return Platform.uniform(int(size[1]), int(size[2]), power=power, name=text, per_core=per_core)
    raise EscalaError(_unknown(text))


def _unknown(text: str) -> str:
    if os.path.isdir(text):
        return f"platform {quoted(text)} is a folder; give a platform file in it"
    near = difflib.get_close_matches(text.partition(":")[0].lower(), PRESETS, n=2)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    known = ", ".join(sorted(PRESETS))
    return (
        f"unknown platform {quoted(text)}: no such file and no such preset{hint}; give a file, NODESxCORES, or one "
        f"of {known}"
    )


def read_platform_file(path: Path) -> Platform:
    """A platform file, its format found from its content: gzip, then XML (SimGrid, Batsim), a site (TOML, slurm.conf),
    else YAML."""
    with guarded(path, "a platform"):
        data = read_all(path)
        name = re.sub(r"(\.(xml|ya?ml))?(\.gz)?$", "", file_name(path)) or "platform"
        if data.lstrip().startswith(b"<"):
            from escala.platform.simgrid import platform_of_xml  # here: most runs read no such file

            return platform_of_xml(data.lstrip(), name=name, path=str(path))
        if path.suffix == ".toml" or is_conf(data.decode("utf-8", "replace")):
            return read_site(path)
        from escala.platform.yaml_file import read_yaml

        spec = read_yaml(data, path)
        if not isinstance(spec, dict):
            raise EscalaError(f"{path}: holds no platform; a YAML platform file has the entries name and nodes")
        return Platform.from_spec(spec)
