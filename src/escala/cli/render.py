"""The verb render: an episode of an environment as a moving picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.episode import MULTI, NAMES, NEEDS_LOG, Episode, environment, kind_of, option_lines, trained
from escala.cli.reading import read_log
from escala.cli.terminal import Share, emit, progress
from escala.cli.verbs import Verb
from escala.errors import EscalaError
from escala.writing import output_file

PAUSE_S = 1  # the last picture stays


class _ListsOptions(Verb):
    """Ends its help with the options of the environments, which are loaded only for that."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The example, and what NAME=VALUE may be."""
        super().format_epilog(ctx, formatter)
        for name in NAMES:
            with formatter.section(f"Options of {name}"):
                formatter.write_dl(
                    [(option, f"{about} [{allowed}]") for option, about, allowed in option_lines(name)], col_max=24
                )


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(cls=_ListsOptions)(opt.reading(render))


def _completed(incomplete: str) -> list[str]:
    """Environments and folders that begin so, for the shell."""
    top = Path("/") if incomplete.startswith("/") else Path()
    folders = sorted(str(path) for path in top.glob(f"{incomplete.lstrip('/')}*") if path.is_dir())
    return [name for name in NAMES if name.startswith(incomplete)] + folders


What = Annotated[
    str,
    typer.Argument(
        metavar="ENV|DIR",
        help=f"{', '.join(NAMES)}, or the folder of a trained agent",
        autocompletion=_completed,
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME=VALUE]...", help="options of the environment, such as load=0.9", show_default=False),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="episode.gif, or .mp4 with ffmpeg", show_default=False)
]
Log = Annotated[
    Path | None,
    typer.Option("--workload", metavar="FILE", help="job log, where the environment plays one", show_default=False),
]
PlatformSpec = Annotated[
    str | None,
    typer.Option("--platform", metavar="SPEC", help="its machine [an agent's: of its training]", show_default=False),
]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="who plays: random, or a rule; of an agent: sampled, likeliest [as its preset does better]",
        show_default=False,
    ),
]
Number = Annotated[
    int | None,
    typer.Option("--episode", min=0, metavar="K", help="day or job list K [drawn by seed]", show_default=False),
]


def render(
    what: What,
    read: dict[str, Any],
    settings: Settings = None,
    *,
    out: Out = None,
    show: Annotated[bool, typer.Option("--show", help="play it in a window")] = False,
    workload: Log = None,
    platform: PlatformSpec = None,
    power: opt.Power = None,
    policy: Policy = None,
    episode: Number = None,
    steps: Annotated[int, typer.Option("--steps", min=1, max=20_000, metavar="N", help="end after N steps")] = 500,
    every: Annotated[int, typer.Option("--every", min=1, metavar="K", help="a picture every K steps")] = 1,
    fps: Annotated[int, typer.Option("--fps", min=1, max=50, metavar="N", help="pictures a second")] = 10,
    seed: opt.Seed = 0,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Show an episode: as an animated GIF, as an MP4, or in a window.

    Who plays without training: random everywhere; rules such as sjf, packer or tetris in escala/Slots-v0 and
    multi.slots; first-fit in escala/Scheduling-v0; always:ACTION in escala/OffReservation-v0. An agent plays what it
    was trained in.
    """
    from escala.report import animation

    if (out is None) == (not show):
        raise EscalaError("say where the pictures go: --out episode.gif, or --show for a window")
    write = None if out is None else animation.writer(out)
    play = _player(what)
    with progress() as begin:
        begin("preparing" if workload is None else f"reading {workload}")
        machine = _machine(what, platform, power)
        _check_needs(play[1], workload, machine)
        log = None if workload is None else read_log(workload, read, machine)
        shown = play[0](log, machine, _settings(settings or []), seed, policy)
        shown.begin(seed, episode)
        share = begin(f"playing {shown.name}")
        if out is None or write is None:
            animation.show(shown.frames(steps, every), f"{shown.name}, {shown.policy}", fps)
        else:
            with output_file(out, force=force) as work:
                write(_lingering(shown, steps, every, fps, share), work, fps)
    _tell(as_json, shown, out, seed)


def _tell(as_json: bool, shown: Episode, out: Path | None, seed: int) -> None:
    facts: dict[str, Any] = {
        "file": None if out is None else str(out),
        "environment": shown.name,
        "policy": shown.policy,
        "seed": seed,
    }
    facts |= {"steps": shown.steps, "return": shown.total, "ended": shown.ended}
    end = "to its end" if shown.ended else "cut there (--steps)"
    emit(as_json, facts, f"{out or shown.name}: {shown.policy}, {shown.steps:,} steps, {end}, return {shown.total:.4g}")


def _lingering(shown: Episode, steps: int, every: int, fps: int, share: Share | None) -> Iterator[Any]:
    """The frames; the last one stays for a moment."""
    frame = None
    for frame in shown.frames(steps, every):
        yield frame
        if share is not None:
            share(1.0 if shown.ended else shown.steps / steps)
    for _ in range(PAUSE_S * fps):
        yield frame


def _player(what: str) -> tuple[Callable[..., Episode], str]:
    """Who plays, and the environment's name."""
    if what in NAMES:
        return (lambda *given: environment(what, *given)), what
    folder = Path(what)
    if folder.is_dir():
        name = kind_of(folder)[1]
        return (lambda *given: trained(folder, *given)), name
    near = [name for name in NAMES if what.lower() in name.lower()][:1] or get_close_matches(
        what, NAMES, n=1, cutoff=0.4
    )
    hint = f"did you mean {near[0]}? " if near else ""
    raise EscalaError(f"{what!r} is no environment and no folder of a trained agent; {hint}known: {', '.join(NAMES)}")


def _machine(what: str, platform: str | None, power: str | None) -> Any:
    """The machine asked for, else the one that an agent was trained on; None where there is neither."""
    import escala

    if platform is not None:
        return escala.read_platform(platform, power)
    spec = None if what in NAMES else kind_of(Path(what))[0].get("platform")
    if not isinstance(spec, dict):
        return None  # job lists that were given: not kept
    return escala.read_platform(escala.Platform.from_spec(spec), power)


def _check_needs(name: str, workload: Path | None, machine: Any) -> None:
    lacking = [option for option, given in (("--workload", workload), ("--platform", machine)) if given is None]
    if name in NEEDS_LOG and lacking:
        raise EscalaError(f"{name} plays the days of a log: give {' and '.join(lacking)}")
    if name == MULTI and workload is not None:
        raise EscalaError(
            f"{name} draws its own job lists: leave --workload out, and give settings such as agents=3 load=0.9"
        )


def _settings(texts: list[str]) -> dict[str, Any]:
    """NAME=VALUE entries; values as JSON where they are, else as text."""
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name):
            raise EscalaError(f"{text!r} is no setting; write NAME=VALUE, such as load=0.9")
        if name in given:
            raise EscalaError(f"setting {name} is given twice; give it once")
        try:
            given[name] = json.loads(value)
        except ValueError:
            given[name] = value
    return given
