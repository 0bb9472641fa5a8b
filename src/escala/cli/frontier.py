"""The verb frontier: energy against wait of schedulers and shutdown policies, each pair replayed on one log."""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.elsewhere import working
from escala.cli.interrupt import interruptible, keeping
from escala.cli.pieces import pieces_of, tell_found, what_is_kept
from escala.cli.policies import POINTER
from escala.cli.prices import Carbon, Price, price_of
from escala.cli.reading import read_log, read_of
from escala.cli.recorded import shown_waits
from escala.cli.remarks import tell_unused
from escala.cli.replay import On, Pairs, policies, power_of
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, plain, progress
from escala.errors import number_of
from escala.report import marks
from escala.report.quantities import percent
from escala.writing import PAGE, Pieces

if TYPE_CHECKING:
    from escala.metrics import Prices
    from escala.tuning.joint import Frontier

SCHEDULERS = "easy,saf,sjf-fit,easy:queue=sjf:guard=24h"
SHUTDOWNS = "never,timeout:1800,timeout:300,timeout:0,hold:0.1:3600,hold:0.25:3600,hold:0.5:3600"

WHO = "schedulers, what runs today first; policy:DIR and agent:DIR too"
SWITCHING = "shutdown policies, what runs today first; agent:DIR too"
PAST = "choose on this share of the log's time, such as 60%, judge on the rest"
LEAST = "policy.toml in --out: least energy with waits at most X longer"
Schedulers = Annotated[str, typer.Option("--schedulers", metavar="A,B,...", help=WHO)]
Shutdowns = Annotated[str, typer.Option("--shutdowns", metavar="C,D,...", help=SWITCHING)]
After = Annotated[str | None, typer.Option("--after", metavar="SHARE", help=PAST)]
Margin = Annotated[float, typer.Option("--margin", min=0.0, max=10.0, metavar="X", help=LEAST)]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(epilog=POINTER)(opt.reading(opt.replaying(frontier)))


def frontier(
    *,
    workload: opt.Log,
    platform: opt.PlatformSpec,
    options: dict[str, Any],
    read: dict[str, Any],
    schedulers: Schedulers = SCHEDULERS,
    shutdowns: Shutdowns = SHUTDOWNS,
    after: After = None,
    margin: Margin = 0.0,
    jobs: Pairs = None,
    on: On = None,
    power: opt.Power = None,
    price: Price = None,
    carbon: Carbon = None,
    currency: opt.Currency = "",
    out: opt.Out = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Replay a log under every pair of schedulers and shutdown policies: which saves energy, at what wait.

    With --after the pairs are chosen on the log's past, and those chosen are judged on its later weeks.
    The first pair is the reference. Holds are capped: hold:0.25:3600 holds no job back for more than an hour.
    """
    import escala
    from escala.metrics import Prices, Series

    chosen, switching = opt.names(schedulers, "--schedulers"), opt.names(shutdowns, "--shutdowns")
    opt.check_price(None if price is None else 0.0, currency)
    money, co2 = price_of(price, "--price"), price_of(carbon, "--carbon")
    prices = Prices(*(one if isinstance(one, Series) else None for one in (money, co2)))
    pieces = Pieces(None, None)
    with working(out, "frontier", force=force, on=on, jobs=jobs) as (folder, where, shared):
        with progress() as begin, keeping(lambda: what_is_kept(out, pieces)):
            begin(f"reading {workload}")
            machine = escala.read_platform(platform, power)
            found = policies(chosen, switching, options["seed"])
            log = read_log(workload, read, machine)
            tell_unused(chosen, switching, options, log)
            asked = options | _digests(prices)
            pieces = pieces_of(folder, log, machine, [*chosen, *switching], shared, after=after, **asked)
            share = begin(f"replaying {len(log)} jobs under {len(chosen) * len(switching)} pairs of policies")
            how = {"after": after, "margin": margin, "keep": pieces, "jobs": jobs, "on": where} | options
            run = partial(escala.frontier, log, machine, *found, prices=prices, **how)
            best = interruptible(lambda: run(progress=None if share is None else lambda _, done: share(done)))
            tell_found(pieces)
        document = best.as_dict() | read_of(log) | {"power": power_of(machine)}
        about = f"{log.name} on {machine.name}: {number_of(len(log), 'job')}, {number_of(len(best.summaries), 'pair')}."
        chosen_by = ""
        if folder is not None:
            (folder / "frontier.json").write_text(json.dumps(plain(document), indent=1) + "\n", encoding="utf-8")
            chosen_by = _write_policy(best, margin, log, machine, folder, out)
            _write_page(best, folder, (about, machine.power_line), money, co2, currency)
    emit(as_json, document, about, *shown(best, currency), *filter(None, [chosen_by]), machine.power_line)


def _write_page(best: Frontier, folder: Path, about: tuple[str, str], price: Any, carbon: Any, currency: str) -> None:
    """about: the log and the machine, and its watts, in words; price, carbon: of a kWh, a number where it never
    changes."""
    from escala.report import frontier as page

    flat = {"price": price, "carbon": carbon}
    yearly: dict[str, Any] = {name: one for name, one in flat.items() if isinstance(one, float)}
    page.write_page(best, folder / PAGE, *about, **yearly, currency=currency)


def _digests(prices: Prices) -> dict[str, str]:
    """SHA-256 of the series, by what they are of: what is kept of a replay is of these."""
    series = {"price": prices.money, "carbon": prices.carbon}
    told = {name: one.time_s.tobytes() + one.per_kwh.tobytes() for name, one in series.items() if one is not None}
    return {name: sha256(one).hexdigest() for name, one in told.items()}


def _write_policy(best: Frontier, margin: float, log: Any, machine: Any, folder: Path, out: Path | None) -> str:
    """The cheapest pair within the margin as a policy's folder, and how to run it."""
    from importlib.metadata import version

    from escala.tuning.folder import write_pair

    about = {
        "escala": version("escala"),
        "name": log.name,
        "jobs": len(log),
        "sha256": log.digest(),
        "platform": machine.name,
    }
    why = write_pair(best, margin, about, folder)
    return f"Run it as --scheduler policy:{out} --shutdown policy:{out}." if not why else f"{why[0].upper()}{why[1:]}."


def shown(found: Frontier, currency: str = "") -> list[Any]:
    """What was found, for the terminal."""
    from escala import unseen
    from escala.report.frontier import sentences
    from escala.report.frontier import shown as chosen

    waits = shown_waits({found.reference: found.waits.get(found.reference)}, sentence=False)
    marked = {name: found.knows[name] for name in chosen(found)}
    return [
        rows_table(_rows(found, currency)),
        *waits,
        *marks.lines(marked),
        *unseen.sentences(found.unseen),
        *sentences(found),
    ]


def _rows(found: Frontier, currency: str) -> list[dict[str, Any]]:
    """The pairs to choose from, with their changes."""
    from escala.report.frontier import shown as chosen

    base = found.summaries[found.reference]
    words = {"cost": f"cost ({currency})" if currency else "cost", "co2_kg": "CO2 (kg)"}
    return [
        {
            "policy": marks.shown(name, found.knows),
            "energy_j": s["energy_j"],
            "change": percent(s["energy_j"] / base["energy_j"] - 1.0) if name != found.reference else "",
            **{word: f"{s[paid]:,.0f}" for paid, word in words.items() if paid in s},
            **{wait: s[wait] for wait in ("mean_wait_s", "p95_wait_s", "max_wait_s")},
        }
        for name, s in ((name, found.summaries[name]) for name in chosen(found))
    ]
