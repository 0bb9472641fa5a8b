"""The verb bill: what the energy of saved runs costs, at one price or at prices that change over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.prices import OF_KWH, price_of
from escala.cli.tables import rows_table
from escala.cli.terminal import emit
from escala.errors import EscalaError, number_of
from escala.report import marks
from escala.report.quantities import percent


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command()(bill)


def bill(
    *,
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="saved runs, changes are against the first", show_default=False),
    ],
    price: Annotated[
        str | None, typer.Option("--price", metavar="X", help=f"price of a kWh, {OF_KWH}", show_default=False)
    ] = None,
    carbon: Annotated[
        str | None, typer.Option("--carbon", metavar="G", help=f"g CO2 of a kWh, {OF_KWH}", show_default=False)
    ] = None,
    pue: Annotated[
        float, typer.Option("--pue", metavar="X", help="energy of the whole site for each kWh of the nodes, at least 1")
    ] = 1.0,
    currency: opt.Currency = "",
    as_json: opt.Json = False,
) -> None:
    """Say what the energy of saved runs costs, and what CO2 it stands for."""
    import escala
    from escala.metrics import bill as money_of

    opt.check_price(None if price is None else 0.0, currency)
    if not 1.0 <= pue <= 10.0:
        raise EscalaError(
            f"--pue {pue:g}: give a number from 1 to 10: cooling and losses come on top of what the nodes take"
        )
    series = {"cost": _series(price, "--price"), "co2_kg": _series(carbon, "--carbon")}
    rows: list[dict[str, Any]] = []
    for folder in runs:
        result = escala.Result.load(folder)
        summary = result.summary()
        if "energy_j" not in summary:
            raise EscalaError(
                f"{folder}: no energy was counted in this run: simulate it on a platform with watts, such as "
                "16x1:grid5000"
            )
        name = f"{result.manifest['scheduler']} + {result.manifest['shutdown']}"
        row: dict[str, Any] = {
            "run": folder.name,
            "policy": name,
            "energy_kwh": pue * summary["energy_kwh"],
            "mean_wait_s": summary["mean_wait_s"],
        }
        row |= {key: pue * money_of(result.nodes, result.power, one) for key, one in series.items() if one is not None}
        if "co2_kg" in row:
            row["co2_kg"] /= 1000.0
        rows.append(row | {"p95_wait_s": summary["p95_wait_s"], "knows": result.knows})
    shown, knows = _shown(rows, currency), {row["policy"]: row["knows"] for row in rows}
    watts = escala.Platform.from_spec(escala.Result.load(runs[0]).platform).power_line
    title = number_of(len(rows), "run") + (f", nodes' energy x {pue:g}" if pue != 1.0 else "")
    emit(
        as_json,
        {"pue": pue, "currency": currency, "runs": rows},
        title,
        rows_table(marks.in_rows(shown, knows)),
        *marks.lines(knows),
        watts,
    )


def _series(given: str | None, flag: str) -> Any:
    """One price for good, or those of a file."""
    import numpy as np

    from escala.metrics import Series

    found = price_of(given, flag)
    return Series(np.array([-np.inf]), np.array([found])) if isinstance(found, float) else found


def _shown(rows: list[dict[str, Any]], currency: str) -> list[dict[str, Any]]:
    """The rows for the terminal, with the changes of what is paid against the first."""
    names = {"cost": f"cost ({currency})" if currency else "cost", "co2_kg": "CO2 (kg)", "energy_kwh": "energy (kWh)"}
    first, table = rows[0], []
    for row in rows:
        entry = {"run": row["run"], "policy": row["policy"]}
        for key, name in names.items():
            if key in row:
                entry[name] = f"{row[key]:,.2f}"
                entry[f"{name.partition(' ')[0]} change"] = (
                    percent(row[key] / first[key] - 1.0) if row is not first and first[key] else ""
                )
        table.append(entry | {"mean_wait_s": row["mean_wait_s"], "p95_wait_s": row["p95_wait_s"]})
    return table
