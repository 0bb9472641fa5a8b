"""R2 (Liang et al. 2020, A2cScheduler): what it prints, and what became of it."""

from __future__ import annotations

from typing import Any

import polars as pl

from escala.studies.a2c2020.controls import ABOUT
from escala.studies.a2c2020.real_logs import LOGS
from escala.studies.a2c2020.real_logs import SHOWN as BESIDE
from escala.studies.a2c2020.recipe import SCALES
from escala.studies.verdicts.figures import NONE, number, span
from escala.studies.verdicts.kept import Kept, change
from escala.studies.verdicts.papers.horizons import looked, lost, swept, told
from escala.studies.verdicts.row import CHANGE, Paper, Row, Table
from escala.studies.verdicts.rule import Found, Print, sentence

RATES = (0.6, 0.7, 0.8, 0.9)
SHOWN = {"Random": "random", "Tetris": "tetris", "SJF": "sjf"}
WINDOW = "50 steps"
LOG = "60 generated jobs"
NO_WORLD = "a level depends on demands, lengths, capacity and slots, which the paper does not print"
STANDS_IN = "the paper's log is not public: other jobs stand in"


def rows(kept: Kept) -> dict[str, list[Row]]:
    """All rows."""
    return {
        "Slowdown against SJF": _learners(kept),
        "A log": _log(kept),
        "Networks": _networks(kept),
        "The rules": _rules(kept),
        "Completion and wait": _times(kept),
        "The method": _method(),
    }


def _method() -> list[Row]:
    critic = (
        "equation 3 is a Q target with a maximum over actions, algorithm 1 a one-step error of v(s), and the "
        "text says several steps"
    )
    epoch = "it is not said what an epoch is"
    return [
        Row(
            "r2.critic",
            "3.2, equation 3, algorithm 1",
            "What the critic learns",
            Print(None, contradicts=critic),
            Found(),
            "v(s), five steps (A2C of Stable-Baselines3)",
            "all learners",
        ),
        Row(
            "r2.epochs",
            "table 3",
            "Epochs until a network converges: 500 to 1 100",
            Print(None, unknown=epoch),
            Found(),
            given=WINDOW,
        ),
    ]


def _printed(kept: Kept, rate: float | str, policy: str, metric: str = "slowdown") -> float | None:
    return kept.value("paper", metric, rate=rate, policy=policy)


def _mean(kept: Kept, rate: float, policy: str, metric: str = "mean_slowdown") -> Found:
    return kept.cell("tables1and2", metric, rate=round(100 * rate), policy=policy)


def _rules(kept: Kept) -> list[Row]:
    """The rules: levels, which nobody can hold against each other, and changes against SJF."""
    found = []
    for rate in RATES:
        for theirs, ours in SHOWN.items():
            printed = _printed(kept, rate, theirs)
            level = Print(printed, "same", None, 0.005, unknown=NO_WORLD)
            says = f"{theirs}'s mean slowdown at rate {rate}"
            found.append(
                Row(
                    f"r2.level.{ours}.{rate}",
                    "tables 1, 2",
                    says,
                    level,
                    _mean(kept, rate, ours),
                    given=WINDOW,
                    unit="slowdown",
                )
            )
        sjf, told = _mean(kept, rate, "sjf").ours, _printed(kept, rate, "SJF")
        for theirs in ("Random", "Tetris"):
            printed = _printed(kept, rate, theirs)
            ratio = None if printed is None or not told else printed / told - 1.0
            says = f"{theirs}'s mean slowdown against SJF's at rate {rate}"
            ident = f"r2.rule.{SHOWN[theirs]}.{rate}"
            found.append(
                Row(
                    ident,
                    "tables 1, 2",
                    says,
                    Print(ratio, "same", slack=0.005),
                    change(_mean(kept, rate, SHOWN[theirs]), sjf),
                    given=WINDOW,
                )
            )
    return found


def _learners(kept: Kept) -> list[Row]:
    """A2C as printed, and what else was trained, against SJF."""
    ways = {
        "printed": f"as printed: A2C, Conv3-16 on the image, from nothing; {kept.decisions('printed')}",
        "a2c": f"otherwise: A2C with a network that scores slots; {kept.decisions('a2c')}",
        "alone": f"otherwise: masked PPO with such a network; {kept.decisions('alone')}",
        "slowdown": "otherwise: the same, after imitating the rule hold-back, end of arrivals shown; "
        f"{kept.decisions('agent')}",
    }
    return [
        Row(
            f"r2.{way}.{rate}",
            "tables 1, 2",
            f"A2C's mean slowdown against SJF's at rate {rate}",
            Print(kept.printed(f"r2.{way}.{rate}")),
            kept.claim(f"r2.{way}.{rate}"),
            by,
            WINDOW,
        )
        for way, by in ways.items()
        for rate in RATES
    ]


def _times(kept: Kept) -> list[Row]:
    """Completion and wait, whose difference must be the mean runtime of the same jobs."""
    reason = (
        "completion minus wait is the mean runtime of the jobs, one number for all policies, and differs between "
        "those of a row"
    )
    found = []
    for rate in RATES:
        for what, metric in (("completion", "completion time"), ("wait", "wait")):
            ident = f"r2.{what}.{rate}"
            says = f"A2C's mean {metric} against SJF's at rate {rate}"
            printed = Print(kept.printed(ident), contradicts=reason)
            by = "otherwise: masked PPO after imitating hold-back"
            found.append(Row(ident, "tables 1, 2", says, printed, kept.claim(ident), by, WINDOW))
    return found


def _networks(kept: Kept) -> list[Row]:
    """Table 3, by slowdown where it says that one network is better."""

    def mean(network: str) -> Found:
        return kept.cell("table3", "mean_slowdown", policy=network, acting="likeliest")

    def row(ident: str, says: str, better: str, worse: str) -> Row:
        by = f"as printed; {kept.decisions('network')}, greedy actions"
        return Row(
            ident,
            "4.3, table 3",
            says,
            sentence("less"),
            change(mean(better), mean(worse).ours),
            by,
            f"rate 0.7, {WINDOW}",
        )

    return [
        row(
            "r2.networks.fc",
            "Conv3-16 is better than a fully connected layer, which does not converge",
            "conv3-16",
            "fc",
        ),
        row("r2.networks.filters", "16 filters are better than 32", "conv3-16", "conv3-32"),
        row("r2.networks.pool16", "Pooling gives poorer results, 16 filters", "conv3-16", "conv3-16-pool"),
        row("r2.networks.pool32", "Pooling gives poorer results, 32 filters", "conv3-32", "conv3-32-pool"),
    ]


def _log(kept: Kept) -> list[Row]:
    """Table 4: a log of 60 jobs."""
    file = kept.settings.get("log_file")
    given = (
        f"{LOG}; trained and tested on them, as the paper did"
        if file is None
        else f"60 jobs of {file}; trained and tested on them"
    )
    found = []
    for theirs, ours in SHOWN.items():
        level = Print(_printed(kept, "log", theirs), "same", None, 0.005, unknown=STANDS_IN)
        measured = kept.cell("table4", "mean_slowdown", policy=ours)
        found.append(
            Row(
                f"r2.log.level.{ours}",
                "table 4",
                f"{theirs}'s mean slowdown",
                level,
                measured,
                given=given,
                unit="slowdown",
            )
        )
    for way, by in (
        ("a2c", "as printed: A2C from nothing"),
        ("slowdown", "otherwise: a plan searched for these jobs is imitated"),
    ):
        ident = f"r2.log.{way}"
        says = "A2C's mean slowdown against SJF's on the log"
        found.append(
            Row(ident, "table 4", says, Print(kept.printed(ident), stands_in=STANDS_IN), kept.claim(ident), by, given)
        )
    reason = "completion minus wait is the mean runtime of the same jobs, and differs between the policies of the table"
    says = "completion and wait of four policies"
    found += [row for name in LOGS for row in _real(kept, name)]
    return [*found, Row("r2.log.times", "table 4", says, Print(None, contradicts=reason), Found(), given=given)]


REAL = {
    "a2c": "as printed: A2C from nothing, on these very jobs",
    "plan": "otherwise: a plan searched for these very jobs, nothing learnt",
    "unseen": "otherwise: A2C from nothing, on jobs that it did not learn from",
}
"""Ways of learning on a real log, of which the paper's is the first."""


def _real(kept: Kept, name: str) -> list[Row]:
    """Table 4 on a real log; nothing where it was not done."""
    ours, theirs = (_printed(kept, "log", policy) for policy in ("A2cScheduler", "SJF"))
    printed = None if ours is None or not theirs else ours / theirs - 1.0
    found = []
    for way, by in REAL.items():
        measured = kept.claim(ident := f"r2.log.{name}_{way}")
        if ident in kept.claims:
            says = f"A2C's mean slowdown against SJF's on a log; here {LOGS[name][1]}"
            given = f"{measured.episodes} windows of 60 jobs"
            stuck = (
                ""
                if measured.ours is not None
                else "sampled actions did not end every run, and what is left is not compared"
            )
            found.append(
                Row(ident, "table 4", says, Print(printed, unknown=stuck, stands_in=STANDS_IN), measured, by, given)
            )
    return found


LOG_SAYS = (
    "Mean slowdowns behind the rows of real logs. Same: windows of 60 jobs, evenly spread over the log, trained and "
    "tested on (one seed, sampled actions); the plan is searched for these very jobs, and hold-back tuned on them. "
    "Unseen: windows of the log's last fifth; A2C learns on its first three fifths (two seeds), where hold-back is "
    "tuned, and sampled or greedy actions are chosen on the fifth between. One machine; the largest request among 60 "
    "jobs takes all of it. Of SWF no memory is read (1 of 10). Where all jobs of a window ask for the same, as an "
    "array's do, they run one by one, and SJF leaves nothing to gain."
)


def _logs(kept: Kept) -> list[Table]:
    table = kept.table("table4-logs")
    if table is None:
        return []
    cells = []
    for name, jobs in table.select("log", "jobs").unique(maintain_order=True).iter_rows():
        rows = {row["policy"]: row for row in table.filter(log=name, jobs=jobs).iter_rows(named=True)}
        ways = ("plan", "a2c") if jobs == "same" else ("", "unseen")
        means = [_mean_of(rows.get(policy)) for policy in (*BESIDE, *ways)]
        cells.append([LOGS[name][1], jobs, str(rows["sjf"]["windows"]), *means])
    head = ["log", "jobs", "windows", "SJF", "Tetris", "Random", "hold-back", "a plan", "A2C from nothing"]
    return [Table("Table 4 on real logs", LOG_SAYS, head, cells)]


def _mean_of(row: dict[str, Any] | None) -> str:
    """A cell: the mean slowdown, or why there is none."""
    if row is None:
        return NONE
    return number(row["mean_slowdown"], "") if not row["unfinished"] else "runs did not end"


CONTROLS = (
    "Other learners on the same image, with the same network and the same training lists as A2C as printed, rate 0.7. "
    "Each was trained once (one seed; A2C as printed: three): the intervals are over lists alone. Sampled or greedy "
    "actions are chosen on validation lists. Below SJF means that image and network are enough."
)


def _controlled(kept: Kept) -> list[Table]:
    """A2C as printed by its budgets, and the positive controls, against SJF; nothing where they were not trained."""
    table, points = kept.table("controls"), kept.table("fig3")
    if table is None:
        return []
    sjf, cells = kept.value("tables1and2", "mean_slowdown", rate=70, policy="sjf"), []
    if points is not None:
        ours = points.filter(pl.col("chosen"), line="A2C, Conv3-16 on the image").group_by(
            "step", "acting", maintain_order=True
        )
        for step, acting, mean in ours.agg(pl.col("slowdown").mean()).iter_rows():
            found = change(Found(mean), sjf)
            cells.append(["A2C as printed", _count(step), _acts(acting), number(mean, ""), span(found, CHANGE)])
    for row in table.filter(pl.col("chosen")).iter_rows(named=True):
        found = kept.claim(f"r2.control.{row['control']}")
        against = f"{row['unfinished']} runs did not end" if found.ours is None else span(found, CHANGE)
        cells.append(
            [
                ABOUT[row["control"]],
                _count(row["decisions"]),
                _acts(row["acting"]),
                number(row["mean_slowdown"], ""),
                against,
            ]
        )
    return [Table("Positive controls", CONTROLS, ["learner", "decisions", "actions", "slowdown", "against SJF"], cells)]


def _acts(acting: str) -> str:
    return "sampled" if acting == "sampled" else "greedy"


def _count(decisions: int) -> str:
    return f"{decisions:,}".replace(",", " ")


FIRST = """
**What the paper claims.** A2C with a small convolution, from nothing, has a lower mean slowdown than SJF at three of
four job rates: {printed:r2.printed.0.6} at 0.6, {printed:r2.printed.0.7} at 0.7, {printed:r2.printed.0.8} at 0.8, and
{printed:r2.printed.0.9} at 0.9. On a log it is {printed:r2.log.a2c}. A fully connected layer does not converge.

**What came out.** A2C as printed does not come out: {both:r2.printed.0.6} at 0.6, {both:r2.printed.0.7} at 0.7,
{both:r2.printed.0.8} at 0.8 and {both:r2.printed.0.9} at 0.9, which is worse than SJF. With a network that scores slots
A2C is level with SJF ({both:r2.a2c.0.7} at 0.7). Masked PPO from nothing has {both:r2.alone.0.7}, and after imitating
a rule {both:r2.slowdown.0.7} at 0.7 and {both:r2.slowdown.0.6} at 0.6: the paper's way, and at 0.6 less than printed.
A fully connected layer is not worse than Conv3-16 ({both:r2.networks.fc}).{value:logs}

**Why.** The paper describes its critic in three ways that exclude each other: equation 3 trains a Q function with a
maximum over actions, algorithm 1 a value v(s) by the error of one step, and the text speaks of several steps. No run
can be all three. Ours, where it says "as printed", is v(s) by five steps. Nor is a budget printed that could be held
against ours, {value:budget}: it is not said what an epoch is. What jobs demand is not printed, and completion times and
waits contradict each other: levels cannot be held against each other, and changes against SJF only by their direction
and size.

Controls on the same image with the same network say where the fault is not (rate 0.7, one seed, at most
{value:trained}; the {value:asked} of scale `paper`, which might say more, were not run). SJF imitated by Conv3-16 is at
{value:imitated} against SJF: image and network are enough for that rule. From nothing masked PPO is at {value:ppo} and
A2C with a mask at {value:masked}: both better than A2C as printed, and above SJF. So our A2C is not alone at fault: in
this budget no learner that was tried finds SJF on the image by itself. Nor does A2C keep it: going on from imitated SJF
it ends at {value:taught}. By the error of one step, as in algorithm 1, A2C from nothing ends at {value:one-step}.

**What falls short.** No queue knows its end. One agent for all rates (`{value:open}`) is not told when arrivals end: it
imitates the rule hold-pile and goes on with PPO, on lists of many lengths. Over all rates and horizons it is at worst
{value:horizon} above the best of three rules (`r2.horizon.worst`, at {value:where}): in {value:below} of {value:cells}
cells it is below all three by the whole interval, in {value:above} above the best. More PPO makes it worse: kept is the
look after {value:after} of {value:whole} decisions, which on lists of their own is at worst {value:then} above the best
rule; the last is at {value:last}. It and these rules see nearly the whole queue. The recommended agents see five slots
and are told the end; in their window the one that knows no end is at worst {value:lost} against them. They hold only at
the window that they were trained on: where arrivals go on for longer they are at worst {value:others} above the best
rule, and greedy SJF in five slots is {value:seen}.
"""


def _more(kept: Kept) -> dict[str, str]:
    table = kept.table("controls")
    found = {name: span(kept.claim(f"r2.control.{name}"), CHANGE) for name in ABOUT}
    found["trained"] = NONE if table is None else f"{_count(max(table['decisions'].to_list()))} decisions"
    found |= {"asked": _count(SCALES["paper"].controls), "logs": _on_logs(kept)}
    found["lost"] = lost(kept, "agent-", 50)
    return told(kept, "r2.horizon.worst", "agent-") | looked(kept) | {"budget": kept.decisions("printed")} | found


def _on_logs(kept: Kept) -> str:
    """What came out on real logs, in a sentence or two; nothing where none was at hand."""
    ends = {}
    for way in ("a2c", "unseen"):
        found = [kept.claim(f"r2.log.{name}_{way}") for name in LOGS]
        known = sorted(one.ours for one in found if one.ours is not None)
        if not known:
            return ""
        ends[way] = f"{number(known[0], CHANGE)} to {number(known[-1], CHANGE)}"
    same = (
        f" On windows of {len(LOGS)} real logs A2C, trained and tested on the same jobs as in table 4, is at "
        f"{ends['a2c']} against SJF"
    )
    return f"{same} where its runs end, and on jobs that it did not learn from at {ends['unseen']}."


PAPER = Paper(
    "a2c2020",
    "R2",
    "A2C on jobs with CPU and memory",
    "Liang, Yang, Jin, Chen: Data centers job scheduling with deep reinforcement learning, 2020",
    FIRST,
    rows,
    "50 steps: test windows with so many steps of arrivals, run until every job has ended. Demands, lengths, capacity "
    "and slots, which the paper does not print, are DeepRM's.",
    _more,
    lambda kept: [*_logs(kept), *_controlled(kept), *swept(kept, "")],
)
