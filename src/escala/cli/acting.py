"""What acts beside a Slurm, made from the options of the command line: the guards' limits, and who may act."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.bridges.slurm.guard import Limits
    from escala.bridges.slurm.seen import Seen
    from escala.bridges.slurm.snapshots import Layout

ACTING = ("advise", "order", "power", "full")


def _guard(name: str, metavar: str, help: str, least: float | None = 0) -> Any:
    return typer.Option(name, metavar=metavar, help=help, min=least, rich_help_panel="Guards", show_default=True)


def guards_of(
    *,
    allow: Annotated[
        str | None,
        _guard("--allow", "NODES", "nodes that may be switched, as n[1-8] [all where none is in truth]", None),
    ] = None,
    spare: Annotated[int, _guard("--spare", "N", "nodes that stay on and idle")] = 1,
    switches: Annotated[int, _guard("--switches", "N", "nodes switched off, and on, a minute at most", 1)] = 6,
    most_off: Annotated[int | None, _guard("--most-off", "N", "nodes off at most [all that are allowed]")] = None,
    min_on: Annotated[float, _guard("--min-on", "S", "a node that came on stays on so long")] = 300.0,
    min_off: Annotated[float, _guard("--min-off", "S", "a node that went off stays off so long")] = 60.0,
    longest_wait: Annotated[
        float,
        _guard(
            "--longest-wait",
            "S",
            "a job that waits longer for nodes alone goes first; while leases are held, ends them",
            1,
        ),
    ] = 14400.0,
    boot: Annotated[float, _guard("--boot", "S", "what a node may take to be on", 1)] = 600.0,
    lease: Annotated[
        float, _guard("--lease", "S", "nodes that are off are free again so long after this process dies", 10)
    ] = 300.0,
    as_root: Annotated[
        bool, typer.Option("--i-am-root", help="act as root all the same", rich_help_panel="Guards")
    ] = False,
) -> dict[str, Any]:
    """The limits from the options of the command line."""
    return {
        "allow": allow,
        "as_root": as_root,
        "limits": {
            "spare": spare,
            "switches": switches,
            "most_off": most_off,
            "min_on_s": min_on,
            "min_off_s": min_off,
            "longest_wait_s": longest_wait,
            "boot_s": boot,
            "lease_s": lease,
        },
    }


def permitted(mode: str, guards: dict[str, Any], eyes: Any) -> None:
    """EscalaError where the mode needs more to be said, or may not act on this Slurm."""
    from escala.bridges.slurm.reader import shown, tried

    if mode in ACTING[1:] and not eyes.known:
        raise EscalaError(
            f"--mode {mode}: Slurm {shown(eyes.version)} is none of the versions that were tried ({tried()}): take "
            "shadow or advise"
        )
    if mode in ("power", "full") and not guards["allow"]:
        raise EscalaError(f"--mode {mode} switches nodes: say by --allow which it may, as --allow n[1-8]")
    if mode in ACTING[1:] and os.geteuid() == 0 and not guards["as_root"]:
        level = "Operator" if mode == "order" else "Administrator"
        raise EscalaError(
            f"--mode {mode} as root: begin as another user of Slurm (AdminLevel={level}), or give --i-am-root"
        )


def limits_of(guards: dict[str, Any], at: Layout) -> Limits:
    """The limits for the nodes of a partition; EscalaError where it has not all that are named."""
    from escala.bridges.slurm.guard import Limits
    from escala.bridges.slurm.hosts import expand

    allowed = frozenset(at.names if guards["allow"] is None else expand(guards["allow"]))
    unknown = sorted(allowed - set(at.names))
    if unknown:
        raise EscalaError(f"--allow {guards['allow']}: {unknown[0]} is no node of partition {at.partition}")
    return Limits(**guards["limits"], allowed=allowed)


def hands_of(
    mode: str, at: Layout, guards: dict[str, Any], eyes: Any, folder: Path, period: float, first: Seen, held: ExitStack
) -> Any:
    """What may act, or advise; None for modes that only read. held: keeps others out as long as it acts."""
    if mode not in ACTING:
        return None
    from escala.bridges.slurm.actor import Actor, Changes
    from escala.bridges.slurm.alone import Presence, alone, cluster_of, refuse_others
    from escala.bridges.slurm.guard import Guard
    from escala.bridges.slurm.hands import Steering

    limits = limits_of(guards, at)
    if mode in ("power", "full") and not at.switches:
        raise EscalaError(
            f"--mode {mode} switches nodes: say by --power what that takes, as --power taurus or "
            "computing=200,idle=100,..."
        )
    if limits.lease_s < 3 * period:
        raise EscalaError(
            f"--lease {limits.lease_s:g}: less than three periods of {period:g} s, so that it would end between two "
            "looks"
        )
    changes = Changes(folder)
    guard = Guard(at, limits, eyes.known or mode == "advise", period, changes.owns)
    actor = Actor(eyes.run, guard.seal, user(), limits.lease_s, changes, guard.failed)
    if mode == "advise":
        return Steering(mode, at, guard, actor)
    held.enter_context(alone(cluster_of(eyes.run), at.partition, folder))
    refuse_others(first, at, changes.owns)
    return Steering(mode, at, guard, actor, Presence(eyes.run, at, user(), limits.lease_s, changes))


def user() -> str:
    """The name of who runs this."""
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
