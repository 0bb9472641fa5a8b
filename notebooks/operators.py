"""What would my log save? A marimo notebook: `marimo edit notebooks/operators.py`, or `python notebooks/operators.py`
to run it through."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="What would my log save?")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # What would my log save?

    For whoever runs a cluster. A month of jobs is replayed exactly as it was submitted, once for each policy, on a machine with the same
    nodes; only the order of starts and the sleeping of nodes differ. Nothing here needs the cluster itself.

    Put your own log and machine into the next cell: SWF, Slurm's sacct text, PBS accounting, Batsim JSON, CSV or Parquet, and a machine as
    `NODESxCORES:POWER`, a preset or a file. Everything below follows.
    """)
    return


@app.cell
def _():
    LOG = None  # "jobs.txt"; None: a month made from a model of the Grid'5000 cluster orion
    PLATFORM = "orion"  # 4 nodes of 12 cores; "100x64:taurus"
    PRICE, CURRENCY, CARBON = 0.25, "EUR", 350.0  # of a kWh; g CO2 of a kWh
    return CARBON, CURRENCY, LOG, PLATFORM, PRICE


@app.cell
def _():
    import marimo as mo
    import polars as pl

    import escala
    from escala.report import operator, plots

    return escala, mo, operator, pl, plots


@app.cell
def _(LOG, PLATFORM, escala):
    log = (
        escala.workload.generate.grid5000(cluster="orion", days=30, seed=1)
        if LOG is None
        else escala.read_workload(LOG)
    )
    machine = escala.read_platform(PLATFORM)
    facts = escala.describe(log, machine)
    return facts, log, machine


@app.cell(hide_code=True)
def _(facts, log, machine, mo):
    _cleaned = ", ".join(f"{rule}: {count:,} jobs" for rule, count in log.cleaning.items()) or "nothing"
    mo.md(f"""
    ## The log

    **{len(log):,} jobs** over {facts["period_days"]:.1f} days on {machine.n_nodes} nodes with {int(machine.cores.sum())} cores; utilisation
    **{100 * facts["utilisation"]:.0f} %**. Cleaned while reading: {_cleaned}.

    At this utilisation {100 * (1 - facts["utilisation"]):.0f} % of the core time is idle. That is the most that sleeping nodes can save of
    the idle power, and only as far as the idle cores lie together on whole nodes.
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    timeout = mo.ui.slider(0, 3600, step=60, value=300, show_value=True, label="a node that idles so long goes off (s)")
    mo.vstack([mo.md("## As it is, and with sleeping nodes"), timeout])
    return (timeout,)


@app.cell
def _(escala, log, machine, timeout):
    compared = escala.compare(
        log,
        machine,
        schedulers=["fcfs", "easy", "saf"],
        shutdowns=["never", f"timeout:{timeout.value}", "timeout:0", "hold:0.25"]
        if timeout.value
        else ["never", "timeout:0", "hold:0.25"],
    )
    runs = compared.results
    summaries = {name: run.summary() for name, run in runs.items()}
    reference = "easy + never"
    return reference, runs, summaries


@app.cell
def _(CARBON, PRICE, operator, pl, reference, summaries):
    yearly = pl.DataFrame(
        [
            {
                "policy": name,
                "mean wait (min)": round(summary["mean_wait_s"] / 60, 1),
                "energy a year (kWh)": round(year["kwh"]),
                "saved (kWh)": round(year["saved_kwh"]),
                "saved (money)": round(year["saved_money"]),
                "saved (kg CO2)": round(year["saved_co2_kg"]),
                "switches": summary["transitions"],
            }
            for name, summary in summaries.items()
            for year in [operator.year(summary, summaries[reference], price=PRICE, carbon=CARBON)]
        ]
    )
    yearly
    return (yearly,)


@app.cell(hide_code=True)
def _(CURRENCY, PRICE, mo, reference, summaries, yearly):
    _best = max(
        (row for row in yearly.iter_rows(named=True) if row["policy"].startswith("easy")),
        key=lambda row: row["saved (kWh)"],
    )
    _before = summaries[reference]["mean_wait_s"] / 60
    mo.md(f"""
    Against **{reference}** (the nearest relative of what most batch systems do) the same scheduler with *{_best["policy"].split(" + ")[1]}*
    saves **{_best["saved (kWh)"]:,} kWh a year**, {_best["saved (money)"]:,} {CURRENCY} at {PRICE} a kWh, and the mean wait goes from
    {_before:.0f} to {_best["mean wait (min)"]:.0f} min. The scheduler decides how long jobs wait, the sleeping what energy they cost: read the rows
    in pairs. Only the nodes are counted; cooling comes on top.
    """)
    return


@app.cell
def _(plots, summaries):
    energy = plots.energy_by_state(summaries)
    energy
    return (energy,)


@app.cell
def _(plots, summaries):
    frontier = plots.frontier(
        {name: s for name, s in summaries.items() if not name.startswith("fcfs")}, x="mean_wait_s", y="waste_j"
    )
    frontier
    return (frontier,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Without `fcfs`, which is worse in both than all others. The staircase joins the policies that no other beats in both wait and waste (the energy of nodes that idle or switch). What lies above
    and to the right of it need not be discussed further.

    ## When does it happen?
    """)
    return


@app.cell
def _(machine, plots, reference, runs):
    shown = {name: runs[name] for name in (reference, "easy + hold:0.25")}
    load = plots.load_over_time({name: run.jobs for name, run in shown.items()}, int(machine.cores.sum()))
    load
    return load, shown


@app.cell
def _(plots, shown):
    power = plots.power_over_time(
        {name: run.nodes for name, run in shown.items()}, {name: run.power for name, run in shown.items()}
    )
    power
    return (power,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Is it chance?

    A month is one sample. Each day is therefore replayed by itself, under each policy, and the policies are compared day by day: the
    interval says where the change of the mean would lie with other days of the same kind. An interval that leaves out zero is more than
    chance.
    """)
    return


@app.cell
def _(escala, log, machine, pl):
    from escala.studies.lab.days import days_of, judge

    policies = {shutdown: ("easy", shutdown) for shutdown in ("timeout:300", "timeout:0", "hold:0.1", "hold:0.25")}
    daily = judge(days_of(log), machine, policies)
    change = escala.metrics.compare.episodes(daily, ["waste_j", "mean_wait_s"], reference="timeout:300")
    change.drop_nulls("change").select(
        "metric",
        "policy",
        change=(100 * pl.col("change")).round(1).cast(pl.String) + " %",
        interval=pl.format("{} to {} %", (100 * pl.col("change_low")).round(1), (100 * pl.col("change_high")).round(1)),
        better_days=(100 * pl.col("better_share")).round(0).cast(pl.Int64).cast(pl.String) + " %",
    )
    return (change,)


@app.cell(hide_code=True)
def _(change, mo):
    _rows = {(row["metric"], row["policy"]): row for row in change.iter_rows(named=True)}
    _now, _held = _rows["waste_j", "timeout:0"], _rows["waste_j", "hold:0.25"]
    _wait = _rows["mean_wait_s", "hold:0.25"]
    mo.md(f"""
    Going off at once in place of after 300 s changes the waste by {100 * _now["change"]:+.0f} %. Waking nodes for a job only once it has
    waited a quarter of its requested time, or an hour (`hold:0.25`), changes it by {100 * _held["change"]:+.0f} %, and the mean wait by
    {100 * _wait["change"]:+.0f} %: that is the price, and whether it is worth paying is your decision.

    ## Next

    - The same as a page to hand on: `escala compare LOG --platform SPEC --schedulers easy,saf --shutdowns never,timeout:300,hold:0.25
      --out compared`, then `escala report compared --price 0.25 --currency EUR --carbon 350`.
    - A policy learnt from your own pattern of use, judged on later days: `escala train`, `escala evaluate`.
    """)
    return


if __name__ == "__main__":
    app.run()
