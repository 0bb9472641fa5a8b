"""`escala train --seeds A,B --preset A,B --learn NAME=A,B --on ENGINE`: several trainings side by side."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer

from escala.cli import options as opt
from escala.cli.interrupt import grown, keeping
from escala.cli.tables import rows_table
from escala.cli.terminal import Begin, emit
from escala.errors import EscalaError

FAILED = 1
TUNED = "tuned"

Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="tuned, printed: as published, or another; A,B: an agent of each [tuned]",
        show_default=False,
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds", metavar="A,B,...", help="an agent of each, in a folder of its own in DIR", show_default=False
    ),
]
Learn = Annotated[
    list[str] | None,
    typer.Option(
        "--learn",
        metavar="NAME=VALUE",
        help="a setting of the learner (learning_rate=0.001); NAME=A,B: an agent of each; NAME=LOW..HIGH: see --trials",
        show_default=False,
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials",
        metavar="N",
        help="N settings from the spans and values of --learn, proposed by Optuna",
        show_default=False,
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="where several are trained: local:N, ray, ray:HOST:PORT, slurm",
        show_default=False,
    ),
]


class Wanted(NamedTuple):
    """Presets, settings and seeds of which agents are wanted, and the engine."""

    presets: list[str]
    seeds: list[int]
    settings: dict[str, Any]
    on: str
    n_trials: int | None = None


def settings_of(learn: list[str] | None) -> dict[str, Any]:
    """The values of each `NAME=A,B`, and the spans, as they are; EscalaError for what is none."""
    found: dict[str, Any] = {}
    for name, text in opt.pairs(learn or [], "--learn", "learning_rate=0.001").items():
        if ".." in text:
            found[name] = text
            continue
        try:
            found[name] = [int(one) if one.isdigit() else float(one) for one in opt.names(text, "--learn")]
        except ValueError:
            raise EscalaError(f"--learn {name}={text}: give numbers, such as learning_rate=0.001,0.0003") from None
    return found


def wanted(
    preset: str | None, seed: int, seeds: str | None, settings: dict[str, Any], n_trials: int | None, on: str | None
) -> Wanted | None:
    """None where one agent is wanted. EscalaError for seeds that are no numbers, and for an engine without several
    agents."""
    presets = [TUNED] if preset is None else opt.names(preset, "--preset")
    if (
        seeds is None
        and n_trials is None
        and len(presets) == 1
        and all(len(values) == 1 for values in settings.values())
    ):
        if on is not None:
            raise EscalaError(
                f"--on {on}: one agent is trained in this process: give --seeds A,B or --preset A,B, or leave it out"
            )
        return None
    numbers = [str(seed)] if seeds is None else opt.names(seeds, "--seeds")
    if bad := [one for one in numbers if not (one.isascii() and one.isdigit() and len(one) < 19)]:
        raise EscalaError(f"--seeds holds {bad[0]!r}: give whole numbers of at least 0")
    return Wanted(presets, [int(one) for one in numbers], settings, on or "local", n_trials)


def alike(environment: str, asked: Wanted) -> str:
    """One of the presets; EscalaError where some learn from days and others from a log that goes on."""
    from escala.agents.presets import preset_of

    if len({preset_of(environment, name).environment.get("warm") is None for name in asked.presets}) > 1:
        raise EscalaError(
            f"--preset {','.join(asked.presets)}: some learn from single days, others do not: train them one by one"
        )
    return asked.presets[0]


def run(
    environment: str, workload: Any, machine: Any, asked: Wanted, begin: Begin, as_json: bool, how: dict[str, Any]
) -> None:
    """Train them, and tell of each. Exit status 1 where one failed."""
    from escala.agents.trials import TABLE, trials, worth_of

    out, held = how.pop("out"), how["validation"]
    how.pop("preset"), how.pop("seed"), how.pop("learn")
    with keeping(lambda: grown(out, f"{out} keeps what was learnt: go on with --resume")):
        table = trials(
            environment, workload, machine, presets=asked.presets, seeds=asked.seeds, settings=asked.settings,
            n_trials=asked.n_trials, out=out, on=asked.on, judged=held or (), begin=begin, **how,
        )  # fmt: skip
    rows = table.to_dicts()
    shown = [
        {
            name: f"{value:g}" if name in asked.settings else value
            for name, value in row.items()
            if name not in ("preset", "seed", "error")
        }
        for row in rows
    ]  # settings as they were given: a learning rate of 0.0003 is none of 0.00
    failed = [f"failed: {row['agent']}: {row['error']}" for row in rows if row["error"] is not None]
    told = (
        f"judged on the {len(held)} days of --validation, by which weights were kept too"
        if held
        else "not judged: give --validation N"
    )
    emit(
        as_json,
        rows,
        rows_table(shown),
        *_best(rows, asked, worth_of(how)),
        told,
        *failed,
        f"{len(rows) - len(failed)} agents saved in {out}; the table: {out / TABLE}",
    )
    if failed:
        raise typer.Exit(FAILED)


def _best(rows: list[dict[str, Any]], asked: Wanted, worth: str) -> list[str]:
    """Which of the proposed settings did best, in a line; none where none were proposed."""
    from escala.agents.proposals import best

    found = None if asked.n_trials is None else best(rows, list(asked.settings), worth)
    if found is None:
        return []
    settings = ", ".join(f"{name}={value:g}" for name, value in found[0].items())
    return [f"best of {asked.n_trials} settings: {settings} ({worth} {found[1]:.6g} in the mean over seeds)"]
