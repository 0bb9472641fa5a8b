"""Verbs that learn: train, evaluate."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli import searching, several, splitting
from escala.cli.interrupt import keeping, learnt
from escala.cli.reading import read_log, read_of
from escala.cli.tables import facts_table
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError
from escala.writing import claimed, output_file
from escala.writing.files import left_behind

# of a training that has ended, or was interrupted
WRITTEN = {"manifest.json", "checkpoint.npz", "checkpoint.pt", "search.npz"}
STEPS = 500_000
ENVS = (
    "escala/OffReservation-v0, escala/Scheduling-v0, or escala/Slots-v0: one machine with slots, times in whole seconds"
)
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
Learnt = Annotated[Path, typer.Option("--workload", metavar="FILE", help="job log to learn from", show_default=False)]
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", help="folder for the agent, with a checkpoint while training", show_default=False
    ),
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
    int | None,
    typer.Option(
        "--steps", min=1, metavar="N", help="decisions to learn from, in whole rollouts [500000]", show_default=False
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option("--minutes", min=0.0, help="stop at this time, whatever has been learnt", show_default=False),
]
Days = Annotated[
    int | None, typer.Option("--days", min=1, metavar="N", help=f"learn from the first N {FIRST_DAYS} [all]")
]
Validation = Annotated[
    int,
    typer.Option(
        "--validation", min=0, metavar="N", help="keep the weights that do best on the last N days, not learnt from"
    ),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience", min=0, metavar="N", help="stop after N of 20 looks at them without better ones; 0: never"
    ),
]
Track = Annotated[
    str | None,
    typer.Option(
        "--track",
        metavar="TRACKER",
        help="who is told how it goes: tensorboard:DIR, mlflow:URI, wandb:PROJECT",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command()(opt.reading(train))
    app.command()(export)


def train(
    environment: Annotated[str, typer.Argument(metavar="ENV", help=ENVS, show_default=False)],
    read: dict[str, Any],
    *,
    workload: Learnt,
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

    _known(environment)
    by_gradient: dict[str, Any] = {"preset": preset, "steps": steps, "minutes": minutes, "patience": patience or None}
    by_gradient |= {"track": track, "learn": learn}
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
            how |= {"algorithm": algorithm, **_taught(by_gradient, {} if trials is not None else settings)}
            how |= {} if trials is None else {"preset": several.alike(environment, trials)}
            played = _as_played(environment, how, log, chosen, group)
            if trials is not None:
                return several.run(environment, played, machine, trials, begin, as_json, how)
            with keeping(lambda: learnt(out)):
                agent = escala.train(environment, played, machine, progress=share, **how)
    told = facts_table(_facts(environment, agent.manifest, len(chosen)))
    emit(as_json, {**agent.manifest, **read_of(log)}, told, f"agent saved in {out}")


def _days(
    log: Any,
    workload: Path,
    days: int | None,
    drawn_by: int | None,
    groups: list[int] | None,
    validation: int,
    patience: int,
) -> tuple[list[Any], list[Any]]:
    """The days to learn from, and those held back for validation."""
    from escala.studies.lab.days import days_of

    first, _ = splitting.parted(days_of(log), drawn_by, days)
    if not first:
        raise EscalaError(f"{workload}: has no day with at least two jobs to learn from; give a longer log")
    chosen = of_groups(first, groups)
    if not chosen:
        raise EscalaError(f"{workload}: {none_of(first, groups)} to learn from")
    if validation >= len(chosen):
        raise EscalaError(f"--validation {validation}: of {len(chosen)} days none is left to learn from; give fewer")
    if patience and not validation:
        raise EscalaError(f"--patience {patience}: training stops by validation days only: give --validation")
    return chosen[: len(chosen) - validation], chosen[len(chosen) - validation :]


def _as_played(environment: str, how: dict[str, Any], log: Any, days: list[Any], groups: list[int] | None) -> Any:
    """What is learnt from: days; or the log to the end of the last of them, where episodes begin as it has the
    machine."""
    import polars as pl

    from escala.agents.presets import preset_of

    if preset_of(environment, how["preset"]).environment.get("warm") is None:
        return days
    if how["validation"] or groups:
        raise EscalaError(
            f"--preset {how['preset']}: its episodes go on from each other; --validation and --group take days out of "
            "a log"
        )
    last = float(days[-1].origin_s + days[-1].jobs["submit_s"].max() - log.origin_s)
    return log.with_jobs(log.jobs.filter(pl.col("submit_s") <= last))


def of_groups(days: list[Any], groups: list[int] | None) -> list[Any]:
    """The days of these groups, or all."""
    from escala.workload import day_group

    return [day for day in days if not groups or day_group(day) in groups]


def none_of(days: list[Any], groups: list[int] | None) -> str:
    return (
        f"none of {len(days)} days is of group {', '.join(map(str, sorted(set(groups or []))))}; give another --group"
    )


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
    """Refuse, before the log is read, a place that cannot be written, or where a training goes on; for one agent alone,
    one with files of anything else."""
    found = set(os.listdir(out)) if out.is_dir() else set()
    begun = {half.name for name in WRITTEN for half in left_behind(out / name)}  # by a run that was killed
    if alone and found - begun and not found & WRITTEN:
        raise EscalaError(f"{out}: holds files that Escala did not write; name another folder for the agent")
    with claimed(out):
        pass


def _taught(given: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The options of a training by gradient, with what is taken where none is given."""
    usual = {"preset": "tuned", "steps": STEPS, "patience": 0}
    return (
        given
        | {name: given[name] or value for name, value in usual.items()}
        | {"learn": {name: values[0] for name, values in settings.items()}}
    )


def _known(name: str) -> None:
    from escala.envs import ENVIRONMENTS

    names = list(ENVIRONMENTS)
    if name not in names:
        near = get_close_matches(name, names, n=1, cutoff=0.3)
        raise EscalaError(
            f"unknown environment {name!r}; "
            + (f"did you mean {near[0]}? " if near else "")
            + f"known: {', '.join(names)}"
        )


def export(
    agent: Annotated[
        Path, typer.Argument(metavar="DIR", help="the folder of the trained agent or team", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="folder, or a file .onnx", show_default=False, rich_help_panel="Output"
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="replace a file .onnx that is there", rich_help_panel="Output")
    ] = False,
) -> None:
    """Write a trained agent, or a team, so that it decides without torch: a folder for Escala, or an ONNX file for
    other runtimes."""
    import escala
    from escala.agents import is_team, load_team
    from escala.envs.graphs import write_onnx
    from escala.sharing import evidence

    trained: Any = load_team(agent) if is_team(agent) else escala.load_agent(agent)
    if out.suffix.lower() == ".onnx":
        with output_file(out, force=force) as work:
            write_onnx(trained, work)
        return emit(False, {}, f"{out}: inputs observation and mask, outputs preferences and action")
    if force:
        raise EscalaError(
            "--force is for a file .onnx; a folder that was exported and not changed is replaced without it"
        )
    if not hasattr(trained, "export"):
        raise EscalaError(f"{agent}: is exported already: give the folder of the training")
    judged = [] if is_team(agent) else evidence.kept(agent)
    trained.export(out)
    evidence.carry(judged, out)
    emit(False, {}, f"{out}: use it as agent:{out} in simulate and compare; neither needs torch for it")
