"""What a reader of energies must know first: whose watts they rest on."""

from __future__ import annotations

import re

import numpy as np

from escala.platform.platform import Platform
from escala.platform.power import PROFILES, PowerProfile

MOST = 3  # profiles that are told one by one


def how(platform: Platform) -> str:
    """How to give this platform a power profile."""
    short = f", or {platform.name}:grid5000" if re.fullmatch(r"\d+[xX]\d+", platform.name) else ""
    return (
        f"name a preset (--power grid5000{short}), measured watts of a node (--power computing=410,idle=160,..., or a "
        "YAML file), or `power` in the platform file"
    )


def power_line(platform: Platform) -> str:
    """The watts of each power profile and the nodes that have it; where some node has none, that no energy is told, and
    how to give one."""
    counts = np.bincount(platform.profile_of, minlength=len(platform.profiles)).tolist()
    used = [(profile, n) for profile, n in zip(platform.profiles, counts, strict=True) if n]
    bare = sum(n for profile, n in used if not profile.has_watts)
    if bare:
        who = "no profile" if bare == platform.n_nodes else f"{bare} of {platform.n_nodes} nodes have no profile"
        return f"power: {who}, so no energy, money or CO2 is told; {how(platform)}"
    sizes = sorted(set(platform.cores.tolist()))
    size = f"its {sizes[0]} cores" if len(sizes) == 1 and sizes[0] > 1 else "its cores"
    if len(used) == 1:
        return f"power: {_watts(used[0][0], f'a node, whatever {size}')}{_origin(used[0][0])}"
    told = [f"{n} nodes {_watts(profile, 'each')}{_origin(profile)}" for profile, n in used[:MOST]]
    more = [f"and {len(used) - MOST} profiles more"] if len(used) > MOST else []
    return "power: " + "; ".join(told + more)


def _watts(profile: PowerProfile, whose: str) -> str:
    watts = [f"{_number(profile.computing_w)} W computing", f"{_number(profile.idle_w)} W idle"]
    watts.append(f"{_number(profile.off_w)} W off" if profile.can_switch else "never off")
    return f"{profile.name} ({', '.join(watts)}; {'; '.join([whose, *_gpus(profile)])})"


def _gpus(profile: PowerProfile) -> list[str]:
    """Watts of the GPUs of each kind, at most `MOST`."""
    pairs = zip(profile.gpu_idle_w[:MOST], profile.gpu_computing_w, strict=False)
    told = [(f"each GPU {kind}" if kind else "each GPU", low, high) for (kind, low), (_, high) in pairs]
    return [f"{who} {_number(high)} W computing, {_number(low)} W idle" for who, low, high in told]


def _number(watts: float) -> str:
    return f"{watts:,.6g}".replace(",", " ")


def _origin(profile: PowerProfile) -> str:
    """A word where the watts are those of a preset."""
    name, _, cores = profile.name.partition("*")
    preset = PROFILES.get(name)
    known = preset is not None and profile == preset.per_core(int(cores) if cores.isdigit() else 1)
    return ": a preset, not measured on this machine" if known else ""
