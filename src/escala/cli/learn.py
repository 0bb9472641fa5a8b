"""Verbs that learn: train, evaluate."""

from __future__ import annotations

import math
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import day_headroom as room
from escala.cli import options as opt
from escala.cli import searching, several, splitting, weekly
from escala.cli.headroom import Wanted, save
from escala.cli.interrupt import INTERRUPTED, Stopped, keeping, learnt
from escala.cli.judged import judged_table
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.reading import read_log, read_of
from escala.cli.replay import power_of
from escala.cli.tables import facts_table
from escala.cli.terminal import Begin, emit, progress
from escala.errors import EscalaError
from escala.writing import Pieces, claimed, output_file, output_folder
from escala.writing.files import left_behind

WRITTEN = {"manifest.json", "checkpoint.npz", "checkpoint.pt", "search.npz"}  # of a training that has ended, or was interrupted
STEPS = 500_000
WITHOUT_WATTS = ("mean_wait_s", "mean_bounded_slowdown", "mean_stretch")
ENVS = "escala/OffReservation-v0, escala/Scheduling-v0, or escala/Slots-v0: one machine with slots, times in whole seconds"
FIRST_DAYS = "days of the log, in time order (but see --split), that have at least two jobs"
Groups = Annotated[
    list[int] | None,
    typer.Option(
        "--group",
        min=1,
        max=5,
        metavar="1..5",
        help="only days of this group (`escala workload describe` counts them); repeat [all]",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="folder for the agent, with a checkpoint while training", show_default=False)
]
Algorithm = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        metavar="NAME",
        help="maskable-ppo, ppo, a2c, rllib-ppo (on Ray), or search: by whole days (OffReservation) [as the preset]",
        show_default=False,
    ),
]
Steps = Annotated[
    int | None, typer.Option("--steps", min=1, metavar="N", help="decisions to learn from, in whole rollouts [500000]", show_default=False)
]
Minutes = Annotated[
    float | None, typer.Option("--minutes", min=0.0, help="stop at this time, whatever has been learnt", show_default=False)
]
Days = Annotated[int | None, typer.Option("--days", min=1, metavar="N", help=f"learn from the first N {FIRST_DAYS} [all]")]
Validation = Annotated[
    int, typer.Option("--validation", min=0, metavar="N", help="keep the weights that do best on the last N days, not learnt from")
]
Patience = Annotated[
    int, typer.Option("--patience", min=0, metavar="N", help="stop after N of 20 looks at them without better ones; 0: never")
]
Machine = Annotated[str | None, typer.Option("--platform", metavar="SPEC", help="machine [the one it was trained on]", show_default=False)]
Baselines = Annotated[
    str | None, typer.Option("--baselines", metavar="A,B,...", help="policies beside it; changes are against the first", show_default=False)
]
Track = Annotated[
    str | None,
    typer.Option(
        "--track", metavar="TRACKER", help="who is told how it goes: tensorboard:DIR, mlflow:URI, wandb:PROJECT", show_default=False
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command()(opt.reading(train))
    app.command()(opt.reading(evaluate))
    app.command()(export)


def train(
    environment: Annotated[str, typer.Argument(metavar="ENV", help=ENVS, show_default=False)],
    read: dict[str, Any],
    *,
    workload: Annotated[Path, typer.Option("--workload", metavar="FILE", help="job log to learn from", show_default=False)],
    platform: opt.PlatformSpec,
    out: Out,
    days: Days = None,
    split: splitting.Split = "time",
    group: Groups = None,
    algorithm: Algorithm = None,
    preset: several.Preset = None,
    steps: Steps = None,
    learn: several.Learn = None,
    n_trials: several.Trials = None,
    minutes: Minutes = None,
    generations: searching.Generations = None,
    population: searching.Population = None,
    worth: searching.Worth = None,
    validation: Validation = 0,
    patience: Patience = 0,
    power: opt.Power = None,
    track: Track = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the interrupted training in DIR")] = False,
    seed: opt.Seed = 0,
    seeds: several.Seeds = None,
    on: several.On = None,
    as_json: opt.Json = False,
) -> None:
    """Train an agent on the days of a log; or several, of presets, settings and seeds, side by side."""
    import escala
    from escala.envs import ENVIRONMENTS

    _known(environment, list(ENVIRONMENTS))
    by_gradient = {"preset": preset, "steps": steps, "minutes": minutes, "patience": patience or None, "track": track, "learn": learn}
    by_search: dict[str, Any] = {"generations": generations, "population": population, "worth": worth}
    searching.check(algorithm, environment, by_gradient | {"seeds": seeds, "on": on, "trials": n_trials}, by_search)
    settings = several.settings_of(learn)
    trials = several.wanted(preset, seed, seeds, settings, n_trials, on)
    drawn_by = splitting.seed_of(split, days is not None, "--days")
    _check_place(out, trials is None)
    with progress() as begin:
        begin(f"reading {workload}")
        machine = escala.read_platform(platform, power)
        log = read_log(workload, read, machine)
        chosen, held = _days(log, workload, days, drawn_by, group, validation, patience)
        how: dict[str, Any] = {"out": out, "resume": resume, "seed": seed, "validation": held or None}
        if algorithm == searching.SEARCH:
            agent = searching.search(chosen, machine, begin, **how, **by_search)
        else:
            share = begin(f"training on {len(chosen)} days")
            how |= {"algorithm": algorithm, "preset": preset or "tuned", "steps": steps or STEPS, "minutes": minutes, "patience": patience}
            how |= {"track": track, "learn": {name: values[0] for name, values in settings.items() if trials is None}}
            if trials is not None:
                how["preset"] = several.alike(environment, trials)
                return several.run(environment, _as_played(environment, how, log, chosen, group), machine, trials, begin, as_json, how)
            with keeping(lambda: learnt(out)):
                agent = escala.train(environment, _as_played(environment, how, log, chosen, group), machine, progress=share, **how)
    told = facts_table(_facts(environment, agent.manifest, len(chosen)))
    emit(as_json, {**agent.manifest, **read_of(log)}, told, f"agent saved in {out}")


def _days(
    log: Any, workload: Path, days: int | None, drawn_by: int | None, groups: list[int] | None, validation: int, patience: int
) -> tuple[list[Any], list[Any]]:
    """The days to learn from, and those held back for validation."""
    from escala.studies.lab.days import days_of

    first, _ = splitting.parted(days_of(log), drawn_by, days)
    if not first:
        raise EscalaError(f"{workload}: has no day with at least two jobs to learn from; give a longer log")
    chosen = _of_groups(first, groups)
    if not chosen:
        raise EscalaError(f"{workload}: {_none_of(first, groups)} to learn from")
    if validation >= len(chosen):
        raise EscalaError(f"--validation {validation}: of {len(chosen)} days none is left to learn from; give fewer")
    if patience and not validation:
        raise EscalaError(f"--patience {patience}: training stops by validation days only: give --validation")
    return chosen[: len(chosen) - validation], chosen[len(chosen) - validation :]


def _as_played(environment: str, how: dict[str, Any], log: Any, days: list[Any], groups: list[int] | None) -> Any:
    """What is learnt from: days; or the log to the end of the last of them, where episodes begin as it has the machine."""
    import polars as pl

    from escala.agents.presets import preset_of

    if preset_of(environment, how["preset"]).environment.get("warm") is None:
        return days
    if how["validation"] or groups:
        raise EscalaError(f"--preset {how['preset']}: its episodes go on from each other; --validation and --group take days out of a log")
    last = float(days[-1].origin_s + days[-1].jobs["submit_s"].max() - log.origin_s)
    return log.with_jobs(log.jobs.filter(pl.col("submit_s") <= last))


def _of_groups(days: list[Any], groups: list[int] | None) -> list[Any]:
    """The days of these groups, or all."""
    from escala.workload import day_group

    return [day for day in days if not groups or day_group(day) in groups]


def _none_of(days: list[Any], groups: list[int] | None) -> str:
    return f"none of {len(days)} days is of group {', '.join(map(str, sorted(set(groups or []))))}; give another --group"


def _facts(environment: str, done: dict[str, Any], days: int) -> list[tuple[str, Any, str]]:
    """What was done, for the terminal."""
    facts: list[tuple[str, Any, str]] = [
        ("environment", environment, ""),
        ("days", days, "days"),
        ("decisions", done["steps_done"], ""),
        ("time", done["elapsed_s"], "s"),
    ]
    if "generations" in done:
        return facts + searching.facts(done)
    facts.append(("mean return of the last episodes", done["mean_return"], ""))
    if done.get("validation"):
        facts.append(("weights kept of decision", max(done["validation"], key=lambda point: point[1])[0], ""))
    return facts


def _check_place(out: Path, alone: bool) -> None:
    """Refuse, before the log is read, a place that cannot be written, or where a training goes on; for one agent alone, one with files of
    anything else."""
    found = set(os.listdir(out)) if out.is_dir() else set()
    begun = {half.name for name in WRITTEN for half in left_behind(out / name)}  # by a run that was killed
    if alone and found - begun and not found & WRITTEN:
        raise EscalaError(f"{out}: holds files that Escala did not write; name another folder for the agent")
    with claimed(out):
        pass


def _known(name: str, names: list[str]) -> None:
    if name not in names:
        near = get_close_matches(name, names, n=1, cutoff=0.3)
        raise EscalaError(f"unknown environment {name!r}; " + (f"did you mean {near[0]}? " if near else "") + f"known: {', '.join(names)}")


def evaluate(
    *,
    agent: Annotated[Path, typer.Argument(metavar="DIR", help="folder of a trained agent", show_default=False)],
    workload: opt.Log,
    read: dict[str, Any],
    platform: Machine = None,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help=f"leave out the first N {FIRST_DAYS}")] = 0,
    split: splitting.Split = "time",
    days: Annotated[int | None, typer.Option("--days", min=1, metavar="N", help="judge at most so many days [all]")] = None,
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
    """Judge a trained agent beside classic policies, day by day."""
    from escala.metrics import compare as comparing
    from escala.studies.lab.saving import DAYS, JUDGED, write_manifest

    beside, at_random = None if baselines is None else opt.names(baselines, "--baselines"), None if split == "time" else split
    weekly.check(window, days=days, group=group, headroom=headroom, stretch=stretch, limit=limit, out=out, split=at_random)
    if window == weekly.WEEKS:
        return _by_weeks(agent, workload, read, platform, power, after=after, beside=beside, runs=runs, seed=seed, as_json=as_json)
    bounds = Wanted(headroom, stretch, limit)
    room.check(bounds, window)
    drawn_by = splitting.seed_of(split, after > 0, "--after")
    pieces = Pieces(None, None)
    kept = keeping(lambda: what_is_kept(out, pieces))
    with output_folder(out, "evaluate", force=force, keeps=True) as folder, progress() as begin, kept:
        begin(f"reading {workload}")
        trained, machine = _trained(agent, platform, power)
        log = read_log(workload, read, machine)
        chosen = _later_days(log, workload, drawn_by, after, group)[:days]
        room.check_agent(headroom, trained, chosen, machine)
        names = [f"agent:{agent}", *(beside or ())]
        wanted: dict[str, Any] = {"days": [day.name for day in chosen], "seed": seed, "window": window}
        pieces = pieces_of(folder, log, machine, names, **wanted)
        played, measured = _played(trained, chosen, machine, beside, runs, seed, window, bounds, begin=begin, pieces=pieces)
        tell_found(pieces)
        judged = comparing.episodes(played, _metrics(played, measured), reference=played["policy"][0], seed=seed)
        if folder is not None:
            played.write_csv(folder / DAYS)
            judged.write_csv(folder / JUDGED)
            about = {"agent": agent.name, "workload": workload.name, "after": after, "days": len(chosen), "window": window}
            about["platform"] = machine.spec()
            about |= ({"groups": sorted(set(group))} if group else {}) | ({"split": split} if drawn_by is not None else {})
            write_manifest(folder, "evaluation", about)
            if measured is not None:
                save(measured, folder)
    _tell(judged, measured, log, machine, len(chosen), as_json)


def _trained(agent: Path, platform: str | None, power: str | None) -> tuple[Any, Any]:
    """The agent, and the machine asked for, else that of its training."""
    import escala

    trained = escala.load_agent(agent)
    machine = escala.Platform.from_spec(trained.manifest["platform"]) if platform is None else platform
    return trained, escala.read_platform(machine, power)


def _later_days(log: Any, workload: Path, drawn_by: int | None, after: int, groups: list[int] | None) -> list[Any]:
    """The days to judge on."""
    from escala.studies.lab.days import days_of

    _, later = splitting.parted(days_of(log), drawn_by, after)
    if not later:
        raise EscalaError(f"{workload}: no day is left to judge on after the first {after}; give a smaller --after")
    if not (chosen := _of_groups(later, groups)):
        raise EscalaError(f"{workload}: {_none_of(later, groups)} to judge on")
    return chosen


def _tell(judged: Any, measured: dict[str, Any] | None, log: Any, machine: Any, days: int, as_json: bool) -> None:
    """The table of an agent beside policies, with their head-room where it was measured."""
    title = f"{days} days: means over days, changes with their 95 % intervals"
    told = [{**row, **read_of(log), "power": power_of(machine)} for row in judged.to_dicts()]
    if measured is None:
        emit(as_json, told, title, *judged_table(judged), machine.power_line)
        return
    told = [row | (room.figures(measured, row["policy"]) if row["metric"] == measured["metric"] else {}) for row in told]
    emit(as_json, told, title, *judged_table(judged, room.columns(measured)), machine.power_line, room.remark(measured))
    if measured["interrupted"]:
        raise Stopped("interrupted: the head-room told is of the days that were bounded until then", INTERRUPTED)


def _by_weeks(
    agent: Path, workload: Path, read: dict[str, Any], platform: str | None, power: str | None, *, after: int, beside: Any, runs: int,
    seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Judge on the later weeks of one continuous replay."""
    from escala.agents.weeks import evaluate_weeks
    from escala.studies.lab.days import days_of

    with progress() as begin:
        begin(f"reading {workload}")
        trained, machine = _trained(agent, platform, power)
        log = read_log(workload, read, machine)
        at_s = weekly.first_s(log, days_of(log), after)
        found = evaluate_weeks(trained, log, machine, at_s, beside, runs, seed, progress=begin("replaying the whole log under each"))
    title = f"{log.name} on {machine.name}: the jobs of the last {found.days:.0f} days, each policy in one replay of the whole log"
    emit(as_json, {**found.as_dict(), **read_of(log)}, title, *weekly.shown(found))


def export(
    agent: Annotated[Path, typer.Argument(metavar="DIR", help="the folder of the trained agent or team", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="folder, or a file .onnx", show_default=False, rich_help_panel="Output")
    ],
    force: Annotated[bool, typer.Option("--force", help="replace a file .onnx that is there", rich_help_panel="Output")] = False,
) -> None:
    """Write a trained agent, or a team, so that it decides without torch: a folder for Escala, or an ONNX file for other runtimes."""
    import escala
    from escala.agents import is_team, load_team
    from escala.envs.graphs import write_onnx

    trained: Any = load_team(agent) if is_team(agent) else escala.load_agent(agent)
    if out.suffix.lower() == ".onnx":
        with output_file(out, force=force) as work:
            write_onnx(trained, work)
        return emit(False, {}, f"{out}: inputs observation and mask, outputs preferences and action")
    if force:
        raise EscalaError("--force is for a file .onnx; a folder that was exported and not changed is replaced without it")
    if not hasattr(trained, "export"):
        raise EscalaError(f"{agent}: is exported already: give the folder of the training")
    trained.export(out)
    emit(False, {}, f"{out}: use it as agent:{out} in simulate and compare; neither needs torch for it")


def _played(
    trained: Any, days: Any, machine: Any, beside: Any, runs: int, seed: int, window: str, bounds: Wanted, *, begin: Begin,
    pieces: Pieces,
) -> tuple[Any, dict[str, Any] | None]:  # fmt: skip
    """The days played under every policy, and their head-room where an objective is named."""
    import numpy as np

    from escala.agents import evaluate as judge
    from escala.bounds import headroom as day_headroom

    starts: dict[tuple[str, int, int], Any] = {}

    def note(policy: str, run: int, number: int, start_s: list[float]) -> None:
        starts[policy, run, number] = np.array(start_s)

    share = begin(f"judging on {len(days)} days")
    played = judge(trained, days, machine, beside, runs, seed, window=window, progress=share, starts=note, pieces=pieces)
    measured = None
    if bounds.objective is not None:
        share, limit_s = begin(f"bounding {len(days)} days"), bounds.limit_s or room.LIMIT_S
        measured = day_headroom.of_days(
            days, machine, played, starts, bounds.objective, stretch=bounds.stretch, limit_s=limit_s, seed=seed, progress=share,
            oversized=trained.env_options.get("oversized", "error"),
        )  # fmt: skip
    return played.rename({"run": "seed"}), measured


def _metrics(played: Any, measured: Any) -> list[str]:
    """What policies are compared by: figures that every day has."""
    told = ["energy_j", "mean_wait_s", "mean_stretch", "waste_j", "transitions"] if "energy_j" in played.columns else list(WITHOUT_WATTS)
    told += [measured["metric"]] if measured is not None and measured["metric"] not in told else []
    return [name for name in told if _finite(played[name])]


def _finite(values: Any) -> bool:
    return all(math.isfinite(value) for value in values)
