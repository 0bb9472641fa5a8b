"""Environment, baselines, a tiny agent, head-room. A marimo notebook: `marimo edit notebooks/researchers.py`, or run it
as a script."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="From an environment to head-room")


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # From an environment to head-room

    For whoever learns scheduling policies. One small world, from the first look to the question that a table of returns does not answer:
    *how much of what was possible has been learnt?* It runs through in seconds on one core; every number here grows with the
    budget below, none of them is a result to cite.
    """)
    return


@app.cell
def _():
    LOAD = 0.9  # share of the machine that arriving jobs ask for
    BUDGETS = (16_384, 32_768)  # choices to learn from; the least is one rollout of 256 episodes
    TEST_LISTS, BOUNDED_LISTS, SECONDS_EACH = 200, 6, 0.3
    return BOUNDED_LISTS, BUDGETS, LOAD, SECONDS_EACH, TEST_LISTS


@app.cell
def _():
    import gymnasium
    import marimo as mo
    import numpy as np
    import polars as pl

    import escala
    import escala.envs
    from escala.envs.slots.options import options_of
    from escala.envs.slots.playing import play, tune_hold_back
    from escala.report import curves, plots

    return curves, escala, gymnasium, mo, np, options_of, pl, play, plots, tune_hold_back


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## The environment

    `escala/Slots-v0`: one machine of ten units, ten slots that show waiting jobs, and the choice of which is placed; the void lets time
    pass. What runs, runs in the same compiled simulator that replays logs. The mask tells which choices make sense.
    """)
    return


@app.cell
def _(LOAD, gymnasium, np):
    env = gymnasium.make("escala/Slots-v0", load=LOAD, render_mode="rgb_array")
    observation, info = env.reset(seed=3)
    random, rewards = np.random.default_rng(0), []
    for _ in range(40):
        observation, reward, _, _, info = env.step(int(random.choice(np.flatnonzero(info["action_mask"]))))
        rewards.append(float(reward))
    picture = env.render()
    return env, observation, picture, rewards


@app.cell(hide_code=True)
def _(env, mo, observation, picture, rewards):
    mo.vstack(
        [
            mo.image(picture, alt="the machine at the left, then the slots, the backlog at the right"),
            mo.md(
                f"After 40 random choices. Observations: {observation.shape[0]} numbers in [0, 1]; actions: "
                f"{env.action_space.n}. Rewards so far: {sum(rewards):.2f}. A reward is minus the sum of 1 / length "
                "over the jobs in the system, so that **the rewards of an episode add up to minus the sum of the "
                "slowdowns**: what is learnt is what is measured."
            ),
        ]
    )
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Baselines

    Lists for tuning and lists for judging come from different seeds. `hold-back` (shortest job first, but long jobs wait until
    nothing has arrived for a while) is tuned on the former; a claim against plain SJF alone would flatter learning.
    """)
    return


@app.cell
def _(LOAD, TEST_LISTS, options_of, play, tune_hold_back):
    def lists_of(count, seed):
        return options_of({"load": LOAD, "lists": count, "lists_seed": seed}).job_lists(None, None)

    validation, test = lists_of(50, 101), lists_of(TEST_LISTS, 202)
    hold = tune_hold_back(validation)
    played = {rule: play(test, rule) for rule in ("fcfs", "tetris", "sjf")}
    played["hold-back"] = play(test, "hold-back", hold=hold)
    return hold, played, test, validation


@app.cell
def _(hold, mo, np, played):
    def mean_of(table):
        return float(table["slowdown"].mean())

    spread = {
        name: 1.96 * float(np.std(table["slowdown"].to_numpy(), ddof=1)) / len(table) ** 0.5
        for name, table in played.items()
    }
    mo.md(
        "\n".join(
            ["| rule | mean slowdown | ± |", "|---|---|---|"]
            + [f"| {name} | {mean_of(table):.2f} | {spread[name]:.2f} |" for name, table in played.items()]
            + ["", f"hold-back, tuned: (long, quiet, share) = {hold}."]
        )
    )
    return (mean_of,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Learning

    Masked PPO with the tuned preset, 256 episodes at once in one process. Agents are judged by their sampled choices on the *validation* lists;
    only then does one of them meet the test lists.

    At this load the good choice is often to wait, and a short training from nothing does not find that out. `teacher` lets the network imitate
    a rule first, here the tuned hold-back, and learn by reward from there. (For a claim: five seeds at least, and a budget a hundred times
    as large.)
    """)
    return


@app.cell
def _(BUDGETS, LOAD, escala, hold, mean_of, np, pl, play, validation):
    def judged(agent, lists):
        """The agent's sampled choices on every list."""
        random = np.random.default_rng(7)
        shape = {
            name: value for name, value in agent.env_options.items() if name in ("observation", "placement", "skip")
        }
        return play(lists, lambda seen, mask: agent.act(seen, mask, random), **shape)

    alone = [escala.train("escala/Slots-v0", load=LOAD, steps=steps, seed=0) for steps in BUDGETS]
    taught = escala.train("escala/Slots-v0", load=LOAD, steps=BUDGETS[0], seed=0, teacher=[list(hold)])
    points = pl.DataFrame(
        {
            "step": [agent.manifest["steps_done"] for agent in alone],
            "value": [mean_of(judged(agent, validation)) for agent in alone],
        }
    )
    return alone, judged, points, taught


@app.cell
def _(curves, hold, judged, mean_of, play, points, taught, validation):
    levels = {
        "sjf": mean_of(play(validation, "sjf")),
        "hold-back, tuned": mean_of(play(validation, "hold-back", hold=hold)),
        "taught by hold-back": mean_of(judged(taught, validation)),
    }
    curve = curves.learning_curve(curves.Training(points, levels, label="Mean slowdown (1), validation lists"))
    curve
    return curve, levels


@app.cell
def _(alone, escala, judged, pl, played, taught, test):
    everybody = {**played, "agent from nothing": judged(alone[-1], test), "agent, taught": judged(taught, test)}
    table = pl.concat(
        [
            rows.select("slowdown", "wait", "turnaround", policy=pl.lit(name), episode="list")
            for name, rows in everybody.items()
        ]
    )
    against_sjf = escala.metrics.compare.episodes(table, "slowdown", reference="sjf")
    against_sjf.select(
        "policy",
        pl.col("mean").round(2).alias("mean slowdown"),
        *(
            (100 * pl.col(name)).round(0).alias(f"{name} (%)")
            for name in ("change", "change_low", "change_high", "better_share")
        ),
    )
    return against_sjf, everybody


@app.cell
def _(curves, against_sjf):
    changes = curves.changes(against_sjf)
    changes
    return (changes,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Head-room

    How good could *any* policy be on these lists, even one that knows the future? `escala.bound` searches for the best schedule and proves a
    lower bound. Head-room is the share of the way from the reference to the best known schedule: 0 is SJF, 1 the best found. Since that
    schedule knows what will arrive, 1 cannot be reached by anybody who does not.
    """)
    return


@app.cell
def _(BOUNDED_LISTS, SECONDS_EACH, escala, everybody, np, test):
    bounds = [
        escala.bound(test.workload(e), test.platform, "slowdown", limit_s=SECONDS_EACH, policies=["sjf-fit"])
        for e in range(BOUNDED_LISTS)
    ]
    found, lower = np.array([b.found for b in bounds]), np.array([b.lower for b in bounds])
    on_these = {name: rows["slowdown"].to_numpy()[:BOUNDED_LISTS] for name, rows in everybody.items()}
    shares = {
        name: escala.metrics.headroom(on_these[name], on_these["sjf"], found) for name in ("hold-back", "agent, taught")
    }
    return bounds, found, lower, on_these, shares


@app.cell(hide_code=True)
def _(found, lower, mo, on_these, shares):
    mo.md(
        "\n".join(
            [
                f"On {len(found)} lists: no schedule is below **{lower.mean():.2f}** (proved), the best found has "
                f"**{found.mean():.2f}**, SJF has **{on_these['sjf'].mean():.2f}**.",
                "",
                "| policy | share of the head-room | 95 % interval over lists |",
                "|---|---|---|",
                *(
                    f"| {name} | {100 * s.value:.0f} % | {100 * s.low:.0f} to {100 * s.high:.0f} % |"
                    for name, s in shares.items()
                ),
                "",
                "Few lists make wide intervals: raise `BOUNDED_LISTS` before believing a difference.",
                "",
                "## Next",
                "",
                "- Other worlds: `escala/OffReservation-v0` and `escala/Scheduling-v0` play days of a log; "
                "`escala.envs.multi` has several agents.",
                "- A reward of your own: docs/how-to/reward.md. Ray: docs/how-to/ray.md. Whole papers, regenerated: "
                "docs/studies.md.",
                "- An episode to look at: `escala render escala/Slots-v0 load=0.9 --out episode.gif`.",
            ]
        )
    )
    return


if __name__ == "__main__":
    app.run()
