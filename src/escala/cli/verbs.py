"""The verbs of the program, each loaded when it is called: help, version and a wrong word cost no import of what verbs
need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
import typer.core
import typer.main

from escala import extras
from escala.cli.values import taken_plainly

VERBS = {
    "The main job": {"demo": ("demo", "the main job end to end, on a built-in log or yours")},
    "Replay": {
        "simulate": ("replay", "replay a log under one scheduler and one shutdown policy"),
        "compare": ("replay", "replay a log under several schedulers and shutdown policies"),
        "calibrate": ("calibrate", "whether a replay stands for the cluster whose log it is"),
        "what-if": ("what_if", "waits and energy on a site with other nodes or limits"),
        "campaign": ("campaign", "logs x platforms x schedulers x options x seeds as one table of runs"),
        "leaderboard": ("leaderboard", "policies judged on fixed logs: enter one, rank entries, check one"),
        "tune": ("tune", "choose the order of the queue on a log's past, judge it on later weeks"),
        "predict": ("predict", "fit a model of run times to a log's past, judge it on later jobs"),
        "drift": ("drift", "whether a log's later weeks are still like its past"),
        "frontier": ("frontier", "energy against wait of schedulers and shutdown policies together"),
        "bill": ("bill", "what the energy of saved runs costs, at prices that change over time too"),
        "bound": ("bounds", "how far any scheduler could still get below the classic ones"),
    },
    "Learn": {
        "train": ("learn", "train an agent on the days of a log"),
        "evaluate": ("evaluate", "judge a trained agent beside classic policies, day by day"),
        "export": ("learn", "write a trained agent so that it decides without torch"),
        "render": ("render", "show an episode: GIF, MP4, or a window"),
    },
    "Beside a machine": {
        "serve": ("serve", "answer snapshots of a machine with orders, over a unix socket"),
        "beside": ("beside", "run a policy beside a real Slurm: what it would do, what became of it"),
        "batsim": ("batsim", "decide for Batsim 4, the reference simulator, as a process of its protocol"),
    },
    "Logs and pages": {
        "site": ("sites", "a cluster described in a site.toml, from Slurm's exports or from a log"),
        "workload": ("logs", "describe, convert, generate and fetch job logs"),
        "report": ("pages", "what these verbs saved, as one self-contained HTML page"),
    },
    "Know more": {
        "policy": ("sharing", "policies in folders: list them, send them to a hub, take them from there"),
        "policies": ("policies", "every scheduler, shutdown policy and generator, with one line each"),
        "study": ("study", "studies: list them, run them, replay their agents, the papers row by row"),
        "doctor": ("doctor", "versions, the cache of compiled code, threads, extras"),
    },
}
"""Panel of the help -> verb -> (module of `escala.cli`, its line)."""

HELP, MOST_NEAR = "help", 3
MODULES = {verb: module for verbs in VERBS.values() for verb, (module, _) in verbs.items()}

EXTRAS = {
    "demo": ("agents", "report"),
    "train": ("agents",),
    "evaluate": ("agents",),
    "export": ("agents",),
    "render": ("envs", "report"),
    "campaign": ("report",),
    "leaderboard run": ("report",),
    "leaderboard show": ("report",),
    "calibrate": ("report",),
    "what-if": ("report",),
    "tune": ("report",),
    "predict": ("predict",),
    "frontier": ("report",),
    "report": ("report",),
    "study run": ("agents", "report"),
    "study replay": ("agents",),
    "batsim": ("batsim",),
    "beside report": ("report",),
    "policy push": ("share",),
    "policy pull": ("share",),
}
"""Verb -> the extras that it needs, asked for all at once before it begins."""

BROUGHT = {
    "on": ("(ray)(:.*)?", "ray"),
    "train algorithm": ("rllib-ppo", "rllib"),
    "train track": ("(mlflow|wandb)(:.*)?", "track"),
    "train n_trials": (".*", "optuna"),
    "export out": (r"(?i:.*[^/]\.onnx)", "onnx"),
}
"""Option, its verb before it where it is of that one alone -> (the values that need an extra, in brackets the package
that is enough for them; the extra). They are asked for together with the verb's own."""

EXAMPLES = {
    "demo": "escala demo --minutes 1",
    "simulate": "escala simulate month.swf --platform orion --scheduler easy --shutdown timeout:300 --out run",
    "compare": "escala compare month.swf --platform orion --schedulers fcfs,easy,saf --shutdowns never,timeout:0 "
    "--out compared",
    "campaign": "escala campaign campaign.toml --on local:4 --out campaign",
    "leaderboard run": "escala leaderboard run easy:queue=saf:guard=24h --suite generated --out saf",
    "leaderboard show": "escala leaderboard show saf other/entry.json --out leaderboard.html",
    "leaderboard check": "escala leaderboard check saf",
    "calibrate": "escala calibrate jobs.txt --platform site.toml --scheduler slurm --out calibration",
    "what-if": "escala what-if jobs.txt --platform site.toml --nodes batch=-10%..+10% --out what-if",
    "tune": "escala tune year.swf --platform 100x1 --out policy",
    "predict": "escala predict year.swf --out model",
    "drift": "escala drift year.swf --platform 100x1 --scheduler policy:policy",
    "frontier": "escala frontier month.swf --platform orion --price 0.2 --currency EUR --out frontier",
    "bill": "escala bill run1 run2 --price prices.csv --currency EUR --carbon 350",
    "bound": "escala bound month.swf --platform orion --objective wait --limit 20",
    "train": "escala train escala/OffReservation-v0 --workload month.swf --platform orion --days 20 --minutes 1 --out "
    "agent",
    "evaluate": "escala evaluate agent month.swf --after 20 --days 5",
    "export": "escala export agent --out exported",
    "render": "escala render escala/Slots-v0 --steps 60 --out episode.gif",
    "serve": "escala serve --platform 16x32:grid5000 --scheduler easy --shutdown timeout:300 --socket escala.sock "
    "--state desk.json",
    "beside slurm": "escala beside slurm --scheduler easy --shutdown timeout:300 --power taurus --folder beside",
    "beside status": "escala beside status beside",
    "beside explain": "escala beside explain 72 beside",
    "beside undo": "escala beside undo beside --dry",
    "beside report": "escala beside report beside --price 0.3 --currency EUR",
    "batsim": "escala batsim --scheduler easy --shutdown timeout:300 --platform platform.xml",
    "workload describe": "escala workload describe month.swf --platform orion",
    "workload convert": "escala workload convert jobs.txt --out jobs.swf",
    "workload generate": "escala workload generate grid5000 cluster=orion days=30 --seed 1 --out month.swf",
    "workload fetch": "escala workload fetch KTH-SP2",
    "site import": "escala site import slurm.conf --out site.toml",
    "workload from-slurm": "escala workload from-slurm --start 2026-01-01 --end 2026-07-01",
    "report": "escala report run compared --out report.html",
    "policy push": "escala policy push policy you/night-queue --license mit",
    "policy pull": "escala policy pull you/night-queue --out policy",
    "policy list": "escala policy list",
    "policies": "escala policies",
    "study list": "escala study list",
    "study run": "escala study run grid2019 --scale smoke --out study",
    "study replay": "escala study replay grid2019",
    "study verdicts": "escala study verdicts grid2019",
    "doctor": "escala doctor --warm",
}
"""Verb -> a call of it, shown under its help."""


class Verb(typer.core.TyperCommand):
    """A verb that asks for its extras, and whose help shows its options by group and ends with an example."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is given."""
        for parameter in self.get_params(ctx):
            taken_plainly(parameter)
        return list(super().parse_args(ctx, args))

    def invoke(self, ctx: Any) -> Any:
        """Run it, if what it needs is installed."""
        extras.need(ctx.command_path, *_extras(_path(ctx), ctx.params))
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, options without a group, and the groups in the order of their first option."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record is not None:
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The example, on one line whatever the width, so that it can be copied; and the verb's own last words."""
        example = EXAMPLES.get(_path(ctx))
        if example is not None:
            with formatter.section("Example"):
                formatter.write(f"  {example}\n")
        super().format_epilog(ctx, formatter)


class Group(typer.core.TyperGroup):
    """Verbs with a word before them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is given before the verb."""
        for parameter in self.get_params(ctx):
            taken_plainly(parameter)
        return list(super().parse_args(ctx, args))


class Verbs(Group):
    """The program: a group whose verbs are imported when asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All verbs, in the order of the help."""
        return list(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of this name, None if there is none."""
        if cmd_name in MODULES and cmd_name not in self.commands:
            self.commands.update(_loaded(MODULES[cmd_name]))
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The verbs by panel, each with its line."""
        for panel, verbs in VERBS.items():
            with formatter.section(panel):
                formatter.write_dl([(verb, line) for verb, (_, line) in verbs.items()], col_max=10)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that is called; a wrong word is answered with the near ones, those inside a group too."""
        word = args[0]
        if word not in MODULES and not word.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {word!r}.{_near(word, self._paths(ctx))}")
        return super().resolve_command(ctx, args)

    def _paths(self, ctx: Any) -> list[str]:
        """Every verb, with its group before it."""
        paths = []
        for name in self.list_commands(ctx):
            inner = getattr(self.get_command(ctx, name), "commands", {})
            paths += [name, *(f"{name} {verb}" for verb in inner)]
        return paths


def _path(ctx: Any) -> str:
    """The verb, with its group before it."""
    return str(ctx.command_path.partition(" ")[2])


def _extras(path: str, given: Mapping[str, Any]) -> list[str]:
    """The extras that a verb needs with these options."""
    wanted, engine = list(EXTRAS.get(path, ())), True
    if path == "train":
        from escala.cli import several

        settings = several.settings_of(given["learn"])
        asked = (given["preset"], given["seed"], given["seeds"], settings, given["n_trials"])
        engine = several.wanted(*asked, on=None) is not None  # else --on is refused
    for option, (values, extra) in BROUGHT.items():
        verb, _, name = option.rpartition(" ")
        meant = verb in ("", path) and (engine or name != "on")
        fits = re.fullmatch(values, str(given[name])) if meant and given.get(name) is not None else None
        if fits and not (fits.lastindex and extras.found(fits[1])):
            wanted.append(extra)
    return wanted


def _near(word: str, paths: list[str]) -> str:
    """ " Did you mean ...?" with the verbs whose last word begins with this one, or else is like it; or nothing."""
    last = {HELP: HELP}
    for path in sorted(paths, key=lambda path: " " in path):  # a verb of the program goes before one of a group
        last.setdefault(path.rpartition(" ")[2], path)
    begun = [name for name in last if len(word) > 1 and name.startswith(word)][:MOST_NEAR]
    near = [repr(last[name]) for name in begun or get_close_matches(word, last, n=MOST_NEAR)]
    return f" Did you mean {' or '.join(near)}?" if near else ""


def _loaded(module: str) -> dict[str, Any]:
    """The commands that a module of `escala.cli` adds to the program."""
    from escala.cli.site import configured

    app = typer.Typer(rich_markup_mode=None)
    app.callback()(lambda: None)  # a group, even with one verb alone
    import_module(f"escala.cli.{module}").add_to(app)
    for group in app.registered_groups:
        group.cls = Group
    for part in (app, *(group.typer_instance for group in app.registered_groups)):
        for command in part.registered_commands if part is not None else ():
            command.callback = command.callback and configured(command.callback)
            command.cls = command.cls if command.cls is not None and issubclass(command.cls, Verb) else Verb
    return dict(typer.main.get_group(app).commands)
