"""The verb evaluate: a trained agent beside classic policies, by days or by weeks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import day_headroom as room
from escala.cli import options as opt
from escala.cli import splitting, weekly
from escala.cli.headroom import Wanted, save
from escala.cli.interrupt import INTERRUPTED, Stopped, keeping
from escala.cli.judged import judged_table
from escala.cli.learn import FIRST_DAYS, Groups, none_of, of_groups
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.reading import read_log, read_of
from escala.cli.replay import power_of
from escala.cli.terminal import Begin, emit, progress, remark
from escala.errors import EscalaError
from escala.writing import Pieces, output_folder

WITHOUT_WATTS = ("mean_wait_s", "mean_bounded_slowdown", "mean_stretch")


Machine = Annotated[
    str | None,
    typer.Option("--platform", metavar="SPEC", help="machine [the one it was trained on]", show_default=False),
]


Baselines = Annotated[
    str | None,
    typer.Option(
        "--baselines", metavar="A,B,...", help="policies beside it; changes are against the first", show_default=False
    ),
]

Days = Annotated[int | None, typer.Option("--days", min=1, metavar="N", help="judge at most so many days [all]")]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(opt.reading(evaluate))


def evaluate(
    *,
    agent: Annotated[Path, typer.Argument(metavar="DIR", help="folder of a trained agent", show_default=False)],
    workload: opt.Log,
    read: dict[str, Any],
    platform: Machine = None,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help=f"leave out the first N {FIRST_DAYS}")] = 0,
    split: splitting.Split = "time",
    days: Days = None,
    group: Groups = None,
    baselines: Baselines = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="how often each day is played with sampled actions")] = 4,
    window: weekly.Window = "drain",
    headroom: room.Objective = None,
    stretch: room.Stretch = None,
    limit: room.Limit = None,
    power: opt.Power = None,
    seed: opt.Seed = 0,
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Judge a trained agent beside classic policies, day by day. What is found stays with it too (judged.json)."""
    from escala.metrics import compare as comparing
    from escala.sharing import evidence

    beside = None if baselines is None else opt.names(baselines, "--baselines")
    by_days: dict[str, Any] = {"days": days, "group": group, "split": None if split == "time" else split}
    weekly.check(window, headroom=headroom, stretch=stretch, limit=limit, out=out, **by_days)
    if window == weekly.WEEKS:
        how: dict[str, Any] = {"after": after, "beside": beside, "runs": runs, "seed": seed, "as_json": as_json}
        return _by_weeks(agent, workload, read, platform, power, **how)
    bounds = Wanted(headroom, stretch, limit)
    room.check(bounds, window)
    drawn_by = splitting.seed_of(split, after > 0, "--after")
    pieces = Pieces(None, None)
    kept = keeping(lambda: what_is_kept(out, pieces))
    with output_folder(out, "evaluate", force=force, keeps=True) as folder, progress() as begin, kept:
        begin(f"reading {workload}")
        trained, machine = _trained(agent, platform, power)
        log = read_log(workload, read, machine)
        first, chosen = _parted(log, workload, drawn_by, after, group)
        chosen = chosen[:days]
        room.check_agent(headroom, trained, chosen, machine)
        names = [f"agent:{agent}", *(beside or ())]
        pieces = pieces_of(folder, log, machine, names, days=[day.name for day in chosen], seed=seed, window=window)
        played, measured = _played(
            trained, chosen, machine, beside, runs, seed, window, bounds, begin=begin, pieces=pieces
        )
        judged = comparing.episodes(played, _metrics(played, measured), reference=played["policy"][0], seed=seed)
        drawn = {} if drawn_by is None else {"split": split}
        about = {"agent": agent.name, "workload": workload.name, "after": after, "days": len(chosen)}
        about |= {"window": window, "platform": machine.spec(), **({"groups": sorted(set(group))} if group else {})}
        if folder is not None:
            _write(folder, played, judged, measured, about | drawn)
    found = evidence.of_days(
        judged, trained.manifest, log.name, chosen, first, window=window, power=machine.power_line, **drawn
    )
    note = _keep(agent, found, machine, trained)
    _tell(judged, measured, log, machine, len(chosen), as_json, note)


def _write(folder: Path, played: Any, judged: Any, measured: dict[str, Any] | None, about: dict[str, Any]) -> None:
    """The days, what was judged of them, and how."""
    from escala.studies.lab.saving import DAYS, JUDGED, write_manifest

    played.write_csv(folder / DAYS)
    judged.write_csv(folder / JUDGED)
    write_manifest(folder, "evaluation", about)
    if measured is not None:
        save(measured, folder)


def _keep(agent: Path, judgement: dict[str, Any], machine: Any, trained: Any) -> list[str]:
    """Keep a judgement with the agent; the line that says so. Where that cannot be, a remark says why."""
    import escala
    from escala.sharing import evidence

    told = {**judgement, "platform": machine.name, "escala": escala.__version__}
    try:
        return [f"kept with the agent, for its card: {evidence.keep(agent, told, trained.manifest['weights_sha256'])}"]
    except EscalaError as error:
        remark(f"the judgement is not kept with the agent: {error}")
        return []


def _trained(agent: Path, platform: str | None, power: str | None) -> tuple[Any, Any]:
    """The agent, and the machine asked for, else that of its training."""
    import escala

    trained = escala.load_agent(agent)
    machine = escala.Platform.from_spec(trained.manifest["platform"]) if platform is None else platform
    return trained, escala.read_platform(machine, power)


def _parted(
    log: Any, workload: Path, drawn_by: int | None, after: int, groups: list[int] | None
) -> tuple[list[Any], list[Any]]:
    """The first days, and those to judge on."""
    from escala.studies.lab.days import days_of

    first, later = splitting.parted(days_of(log), drawn_by, after)
    if not later:
        raise EscalaError(f"{workload}: no day is left to judge on after the first {after}; give a smaller --after")
    if not (chosen := of_groups(later, groups)):
        raise EscalaError(f"{workload}: {none_of(later, groups)} to judge on")
    return of_groups(first, groups), chosen


def _tell(
    judged: Any, measured: dict[str, Any] | None, log: Any, machine: Any, days: int, as_json: bool, note: list[str]
) -> None:
    """The table of an agent beside policies, with their head-room where it was measured."""
    title = f"{days} days: means over days, changes with their 95 % intervals"
    told = [{**row, **read_of(log), "power": power_of(machine)} for row in judged.to_dicts()]
    if measured is None:
        emit(as_json, told, title, *judged_table(judged), machine.power_line, *note)
        return
    told = [
        row | (room.figures(measured, row["policy"]) if row["metric"] == measured["metric"] else {}) for row in told
    ]
    below = [machine.power_line, room.remark(measured), *note]
    emit(as_json, told, title, *judged_table(judged, room.columns(measured)), *below)
    if measured["interrupted"]:
        raise Stopped("interrupted: the head-room told is of the days that were bounded until then", INTERRUPTED)


def _by_weeks(
    agent: Path, workload: Path, read: dict[str, Any], platform: str | None, power: str | None, *, after: int,
    beside: Any, runs: int, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Judge on the later weeks of one continuous replay."""
    from escala.agents.weeks import evaluate_weeks
    from escala.sharing import evidence
    from escala.studies.lab.days import days_of

    with progress() as begin:
        begin(f"reading {workload}")
        trained, machine = _trained(agent, platform, power)
        log = read_log(workload, read, machine)
        every = days_of(log)
        at_s = weekly.first_s(log, every, after)
        found = evaluate_weeks(
            trained, log, machine, at_s, beside, runs, seed, progress=begin("replaying the whole log under each")
        )
    title = (
        f"{log.name} on {machine.name}: the jobs of the last {found.days:.0f} days, each policy in one replay of "
        "the whole log"
    )
    before = int((log.jobs["submit_s"] < at_s).sum())
    judgement = evidence.of_weeks(found, trained.manifest, log.name, every[after:], before, window=weekly.WEEKS)
    note = _keep(agent, judgement, machine, trained)
    emit(as_json, {**found.as_dict(), **read_of(log)}, title, *weekly.shown(found), *note)


def _played(
    trained: Any, days: Any, machine: Any, beside: Any, runs: int, seed: int, window: str, bounds: Wanted, *,
    begin: Begin, pieces: Pieces,
) -> tuple[Any, dict[str, Any] | None]:  # fmt: skip
    """The days played under every policy, and their head-room where an objective is named."""
    import numpy as np

    from escala.agents import evaluate as judge
    from escala.bounds import headroom as day_headroom

    starts: dict[tuple[str, int, int], Any] = {}

    def note(policy: str, run: int, number: int, start_s: list[float]) -> None:
        starts[policy, run, number] = np.array(start_s)

    share = begin(f"judging on {len(days)} days")
    played = judge(
        trained, days, machine, beside, runs, seed, window=window, progress=share, starts=note, pieces=pieces
    )
    tell_found(pieces)
    measured = None
    if bounds.objective is not None:
        share, limit_s = begin(f"bounding {len(days)} days"), bounds.limit_s or room.LIMIT_S
        measured = day_headroom.of_days(
            days, machine, played, starts, bounds.objective, stretch=bounds.stretch, limit_s=limit_s, seed=seed,
            progress=share, oversized=trained.env_options.get("oversized", "error"),
        )  # fmt: skip
    return played.rename({"run": "seed"}), measured


def _metrics(played: Any, measured: Any) -> list[str]:
    """What policies are compared by: figures that every day has."""
    told = (
        ["energy_j", "mean_wait_s", "mean_stretch", "waste_j", "transitions"]
        if "energy_j" in played.columns
        else list(WITHOUT_WATTS)
    )
    told += [measured["metric"]] if measured is not None and measured["metric"] not in told else []
    return [name for name in told if _finite(played[name])]


def _finite(values: Any) -> bool:
    return all(math.isfinite(value) for value in values)
