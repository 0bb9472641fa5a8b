"""Random worlds: a platform, jobs with many ties on a coarse grid, a policy and its options.

`draw(random, names)` makes a world from any `random.Random`, so that the fuzz script (seeded) and Hypothesis
(`worlds()`) share it. Most worlds are small. Of the large ones half are *broad* (up to hundreds of nodes) and half
*long* (hundreds of jobs, many of them waiting).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.oracle import linear
from tests.oracle.partitions import ASKED, draw_apart, draw_partitions, is_possible
from tests.oracle.scores import SCORES

STRICT = ("fcfs", "saf-strict", *(name for name in SCORES if name != "saf"))
GREEDY = ("first-fit", "random", *(f"{name}-fit" for name in SCORES), "packer", "tetris")
EASY = ("easy", "easy+", "easy++", "saf", *(f"easy-{name}" for name in SCORES))
PRIORITY = tuple(f"easy:queue={name}" for name in SCORES)
CONSERVATIVE = ("conservative", *(f"conservative:queue={name}" for name in SCORES))
SCHEDULERS = (*STRICT, *GREEDY, *EASY, *PRIORITY, "easy-fast", *CONSERVATIVE)
GUARDED = {*STRICT, *GREEDY, *PRIORITY, *CONSERVATIVE} - {"fcfs", "first-fit", "conservative"}  # may have a guard
# also as a policy of commands, which asks for decisions at times of its own: `engines.Calling`
BY_COMMANDS = ("first-fit", "sjf-fit")
SMALL, BROAD, LONG = "small", "broad", "long"
TICK = 1e-6  # s, of the clock


@dataclass
class Case:
    """A world: everything that `simulate` needs, as plain data."""

    platform: dict[str, Any]
    jobs: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)

    def program(self) -> str:
        """Python text that runs both engines on this world."""
        return (
            "from tests.oracle.worlds import Case\nfrom tests.oracle.engines import differences\n"
            f"case = Case(\n    platform={self.platform!r},\n    jobs=[\n"
            + "".join(f"        {job!r},\n" for job in self.jobs)
            + f"    ],\n    options={self.options!r},\n)\nprint(*differences(case), sep='\\n')\n"
        )


def draw(
    rng: random.Random,
    schedulers: tuple[str, ...] = SCHEDULERS,
    most_jobs: int = 25,
    large: float = 0.0,
    shaped: bool = False,
    apart: float = 0.0,
) -> Case:
    """A world with one of these schedulers; a large one with this chance. shaped: jobs may ask for nodes, tasks,
    memory, GPUs and whole nodes. apart: with this chance partitions share no node."""
    scheduler = rng.choice(schedulers)
    size = rng.choice((BROAD, LONG)) if rng.random() < large else SMALL
    single = rng.random() < 0.25
    grid = rng.choice((1.0, 1.0, 1.0, 10.0, 0.5, 0.1, TICK))
    platform = draw_platform(rng, grid, single, draw_nodes(rng, scheduler, size))
    options = draw_options(rng, grid, scheduler, platform)
    jobs = draw_jobs(rng, grid, platform, options, single, draw_number(rng, scheduler, size, most_jobs))
    if scheduler.startswith(("easy:queue=", "conservative:queue=")) and rng.random() < 0.4:
        kind, _, rest = options["scheduler"].partition("=")
        options["scheduler"] = f"{kind}={rng.choice(linear.NAMES)}{rest.removeprefix(scheduler.partition('=')[2])}"
    if scheduler in PRIORITY and rng.random() < 0.4:
        options["scheduler"] += f":backfill={rng.choice((*SCORES, *linear.NAMES))}"
    draw_estimates(rng, grid, jobs, options)
    if shaped and single and rng.random() < 0.6:
        shape_jobs(rng, jobs, platform, options)
    one_length = "calls_s" in options and options.get("estimate") == "runtime"  # what a policy of commands sees
    if rng.random() < 0.25 and not one_length:  # with speeds plans and the queue go by two
        draw_speeds(rng, jobs, platform)
    if rng.random() < apart and "partitions" not in platform and len(platform["cores"]) > 1:
        draw_apart(rng, jobs, platform, options)
    return Case(platform, jobs, options)


def draw_speeds(rng: random.Random, jobs: list[dict[str, Any]], platform: dict[str, Any]) -> None:
    """Nodes of several speeds; sometimes jobs without a limit."""
    speeds = rng.choice(((1.0, 0.8), (1.0, 0.5, 0.3), (2.0, 1.0, 1.25), (0.7, 1.0, 3.0)))
    platform["node_speed"] = [rng.choice(speeds) for _ in platform["cores"]]
    if rng.random() < 0.3 and "partitions" not in platform:
        for job in jobs:
            job["limited"] = rng.random() < 0.5
            if not job["limited"]:
                job["walltime_s"] = max(job["walltime_s"], job["runtime_s"])


def draw_nodes(rng: random.Random, scheduler: str, size: str) -> int:
    """The oracle looks at every node again and again, at most under conservative backfilling."""
    if size == BROAD:
        return rng.randint(60, 140) if scheduler in CONSERVATIVE else rng.choice((64, 65, rng.randint(100, 400)))
    return rng.randint(1, 6)


def draw_number(rng: random.Random, scheduler: str, size: str, most: int) -> int:
    if size == LONG:
        return rng.randint(30, 60) if scheduler in CONSERVATIVE else rng.randint(100, 300)
    return 1 if rng.random() < 0.1 else rng.randint(1, most)


def draw_platform(rng: random.Random, grid: float, single: bool, number: int) -> dict[str, Any]:
    alike = rng.random() < 0.7
    cores = [rng.choice((1, 1, 2, 3, 4))] * number if alike else [rng.randint(1, 4) for _ in range(number)]
    profiles = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 5))):
        idle = float(rng.randint(10, 100))
        profiles.append(
            {
                "computing_w": idle + rng.randint(0, 100),
                "idle_w": idle,
                "off_w": float(rng.randint(0, 10)),
                "switching_off_w": float(rng.randint(10, 120)),
                "switching_on_w": float(rng.randint(10, 150)),
                "switch_off_s": on_grid(grid, rng.choice((0, 1, 1, 2, 3))),
                "switch_on_s": on_grid(grid, rng.choice((0, 1, 2, 2, 3, 5))),
                "can_switch": rng.random() < 0.9,
            }
        )
    platform = {
        "cores": cores,
        "profiles": profiles,
        "profile_of": [rng.randrange(len(profiles)) for _ in range(number)],
    }
    if single:
        kinds = rng.choice(((), ("memory",), ("memory", "gpu"), ("memory", "gpu", "licence")))
        platform["resources"] = {
            kind: [rng.randint(1, 6)] * number if alike else [rng.randint(0, 6) for _ in cores] for kind in kinds
        }
    return platform


def on_grid(grid: float, steps: int) -> float:
    """steps x grid as the nearest double to the decimal number: 3 x 0.1 is 0.3."""
    return round(steps * grid, 6)


def draw_options(rng: random.Random, grid: float, scheduler: str, platform: dict[str, Any]) -> dict[str, Any]:
    guard = (
        f":guard={on_grid(grid, rng.choice((0, 1, 2, 3, 5, 8, 13)))}"
        if scheduler in GUARDED and rng.random() < 0.5
        else ""
    )
    options: dict[str, Any] = {
        "scheduler": scheduler + guard,
        "shutdown": draw_shutdown(rng, grid, len(platform["cores"])),
    }
    if rng.random() < 0.3:
        options["rules"] = "batsched"
    if scheduler == "random":
        options["seed"] = rng.randint(0, 9)
    if scheduler in (*EASY, *PRIORITY) and rng.random() < 0.4:
        options["head"] = "latest-released"
    if scheduler in CONSERVATIVE:
        if rng.random() < 0.2:
            options["rebuild"] = True
        if rng.random() < 0.3 and (scheduler == "conservative" or "rebuild" in options):
            options["depth"] = rng.randint(1, 4)
    if rng.random() < 0.2:
        options["plan_margin_s"] = on_grid(grid, rng.randint(0, 6))
    if rng.random() < 0.15:
        options["estimate"] = "runtime"
    if rng.random() < 0.25:
        options["until_s"] = on_grid(grid, rng.randint(1, 60))
    if rng.random() < 0.2:
        options["start_off"] = True
    if rng.random() < 0.15:
        options["oversized"] = "drop"
    if scheduler in BY_COMMANDS and not guard and rng.random() < 0.5:
        options["calls_s"] = [on_grid(grid, rng.randint(1, 60)) for _ in range(rng.choice((1, 5, 20, 300)))]
    return options


def draw_shutdown(rng: random.Random, grid: float, nodes: int) -> str:
    kind = rng.choice(
        (
            "never",
            "never",
            "timeout",
            "timeout",
            "timeout+",
            "proportional",
            "off-reservation",
            "hold",
            "hold+",
            "arrivals-known",
        )
    )
    if kind == "timeout":
        return f"timeout:{on_grid(grid, rng.choice((0, 0, 1, 2, 3, 5)))}"
    if kind == "timeout+":
        return f"timeout:{on_grid(grid, rng.choice((0, 1, 2, 4)))}+{rng.randint(0, nodes)}"
    if kind == "proportional":
        return f"proportional:{rng.choice((0.0, 0.25, 0.5, 1.0))}"
    if kind == "off-reservation":
        return f"off-reservation:{rng.randint(0, nodes - 1)}"
    if kind == "hold":
        return f"hold:{rng.choice((0.0, 0.25, 0.5, 1.0))}"
    if kind == "hold+":
        cap = f":{on_grid(grid, rng.randint(0, 4))}" if rng.random() < 0.5 else ""
        return f"hold:{rng.choice((0.25, 0.5, 1.0))}{rng.choice(('', ':if-busy', ':if-busy'))}{cap}"
    return kind


def draw_jobs(
    rng: random.Random, grid: float, platform: dict[str, Any], options: dict[str, Any], single: bool, number: int
) -> list[dict[str, Any]]:
    capacity = list(platform["cores"])
    most = sum(capacity)
    if options["shutdown"].startswith("off-reservation"):  # a job must fit beside any choice of reserved nodes
        reserved = int(options["shutdown"].partition(":")[2])
        most -= sum(sorted(capacity)[len(capacity) - reserved :])
    mixed = rng.random() < 0.4
    pauses = rng.choice(((0,), (0, 0, 0, 1, 1, 2, 5), (0, 0, 0, 1, 1, 2, 5), (0, 0, 0, 1, 1, 2, 5)))
    blinking = rng.choice((0.0, 0.0, 0.0, 0.0, 0.3, 1.0))  # share of jobs with the least walltime that there is
    jobs = []
    submit = rng.choice((0, 0, 1, 4, 60 if grid < 1 else 4))
    for row in range(number):
        submit += rng.choice(pauses)
        walltime = rng.choice((1, 2, 2, 3, 4, 4, 6, 9, 12))
        runtime = max(
            1, rng.choice((walltime, walltime, walltime + 1, walltime - 1, walltime // 2, 1, rng.randint(1, walltime)))
        )
        job: dict[str, Any] = {
            "job_id": str(row + 1),
            "submit_s": on_grid(grid, submit),
            "runtime_s": on_grid(grid, runtime),
            "walltime_s": on_grid(grid, walltime),
            "cores": min(most, rng.choice((1, 1, 1, 2, 2, 3, rng.randint(1, most), most))),
            "load": rng.choice((1.0, 1.0, 0.5, 0.0, 0.3)),
            "single_node": False,
            "user": rng.choice((None, *"abcdefgh")),
            **{f"demand_{kind}": 0 for kind in platform.get("resources", {})},
        }
        if rng.random() < blinking:
            job["walltime_s"] = TICK
            job["runtime_s"] = rng.choice((TICK, job["runtime_s"]))
        if single and not (mixed and rng.random() < 0.5):
            fit_on_a_node(rng, job, platform, options)
        elif options.get("oversized") == "drop" and rng.random() < 0.1:
            job["cores"] = sum(capacity) + rng.randint(1, 2)
        jobs.append(job)
    return jobs


def draw_estimates(rng: random.Random, grid: float, jobs: list[dict[str, Any]], options: dict[str, Any]) -> None:
    """How long jobs are expected to run, where that is more than one length for all."""
    if rng.random() < 0.6:
        return
    kinds = ("walltime", "runtime", "last2", "last2", "estimate_s")
    options["estimate"] = rng.choice(kinds)
    if rng.random() < 0.4 and "calls_s" not in options:  # a policy of commands sees one length
        options["order_estimate"] = rng.choice(kinds)
    if rng.random() < 0.7:
        steps = [on_grid(grid, rng.choice((1, 1, 2, 3, 5))) for _ in range(rng.randint(0, 4))]
        options["corrections_s"] = steps
    few = rng.random() < 0.5
    for job in jobs:
        if few and job["user"] is not None:
            job["user"] = rng.choice("ab")
        if "estimate_s" in (options["estimate"], options.get("order_estimate")):
            job["estimate_s"] = on_grid(grid, rng.choice((1, 1, 2, 3, 5, 8, 13)))
    if rng.random() < 0.3 and "calls_s" not in options:
        options["scheduler"] += "".join(
            f":{name}={options.pop(name)}" for name in ("estimate", "order_estimate") if name in options
        )


def fit_on_a_node(rng: random.Random, job: dict[str, Any], platform: dict[str, Any], options: dict[str, Any]) -> None:
    """Demands of a single-node job that some node can hold; under off-reservation every node must (any of them may be
    reserved)."""
    everywhere = options["shutdown"].startswith("off-reservation")
    node = rng.randrange(len(platform["cores"]))
    resources = platform["resources"]
    job["single_node"] = True
    job["cores"] = rng.randint(1, min(platform["cores"]) if everywhere else platform["cores"][node])
    for kind, amounts in resources.items():
        job[f"demand_{kind}"] = rng.randint(0, min(amounts) if everywhere else amounts[node])


def shape_jobs(
    rng: random.Random, jobs: list[dict[str, Any]], platform: dict[str, Any], options: dict[str, Any]
) -> None:
    """Most jobs ask for nodes, tasks, memory, GPUs or whole nodes, which some nodes of the platform can give, and many
    for some of the nodes alone."""
    resources = platform["resources"]
    if "gpu" in resources and rng.random() < 0.5:
        of_a = [rng.randint(0, amount) for amount in resources["gpu"]]
        resources["gpu:a"], resources["gpu:b"] = of_a, [n - a for n, a in zip(resources["gpu"], of_a, strict=True)]
    often, bound = rng.choice((0.5, 0.9)), rng.choice((0.0, 0.5, 0.9))
    if rng.random() < 0.9:
        platform["names"] = [f"n{k}" for k in range(len(platform["cores"]))]
        if rng.random() < 0.9:
            platform["features"] = [[word for word in "xyz" if rng.random() < 0.6] for _ in platform["cores"]]
    for job in jobs:
        job |= dict.fromkeys(ASKED)
        for _ in range(5 if rng.random() < often else 0):
            asked = {**job}
            if rng.random() < 0.8:
                asked |= draw_shape(rng, len(platform["cores"])) | {"single_node": False}
                asked |= {f"demand_{kind}": 0 for kind in resources if f"demand_{kind}" in job}
            if rng.random() < bound:
                asked |= draw_places(rng, len(platform["cores"]), asked["nodes"] or 1)
            dropped = options.get("oversized") == "drop" and not is_possible(asked, platform, "never")
            if dropped or is_possible(asked, platform, options["shutdown"]):
                job |= asked
                break
    if "names" in platform and rng.random() < 0.5:
        draw_partitions(rng, jobs, platform, options)


def draw_shape(rng: random.Random, nodes: int) -> dict[str, Any]:
    """Cores, and columns that go together."""
    per, count = rng.choice((1, 1, 1, 2, 3)), rng.choice((None, 1, 2, 2, rng.randint(1, min(nodes, 4))))
    tasks = (count or 1) * rng.randint(1, 2) + rng.choice((0, 0, 1))
    found: dict[str, Any] = {"nodes": count, "cores": tasks * per}
    if rng.random() < 0.6:
        found |= {"tasks": tasks, "cores_per_task": per}
    elif per > 1:
        found["cores_per_task"] = rng.choice((None, per))
    if rng.random() < 0.1:
        found["cores"] = max(1, found["cores"] + rng.choice((-1, 1)))
    if rng.random() < 0.2:
        found["tasks_per_node"] = -(-tasks // (count or 1)) + rng.choice((0, 1))
    memory, gpus = (rng.choice((None, None, what)) for what in ("core", "node"))
    if memory:
        found[f"memory_mb_per_{memory}"] = rng.randint(0, 3)
    if rng.random() < 0.4:
        found[f"gpus_per_{'node' if gpus else 'task'}"] = rng.randint(1, 2)
        found["gpu_kind"] = rng.choice((None, None, "a", "b"))
    found["exclusive"] = rng.choice((None, None, None, False, True))
    return found


def draw_places(rng: random.Random, nodes: int, count: int) -> dict[str, Any]:
    """Features, and nodes by name, of which a job requires as many as it asks for."""
    names = [f"n{k}" for k in range(nodes)]
    found: dict[str, Any] = {}
    if rng.random() < 0.7:
        found["features"] = rng.choice(("x", "y", "z", "x&y", "x|y", "x|y&z", "x&(y|z)", "x,y", "y|w", ""))
    if rng.random() < 0.3:
        found["excluded_nodes"] = ",".join(rng.sample(names, rng.randint(1, max(nodes // 2, 1))))
    if rng.random() < 0.2 and count <= nodes:
        found["required_nodes"] = ",".join(rng.sample(names, count))
    return found


def worlds(
    schedulers: tuple[str, ...] = SCHEDULERS, most_jobs: int = 12, shaped: bool = False, apart: float = 0.0
) -> st.SearchStrategy[Case]:
    """Hypothesis strategy for small worlds."""
    return st.randoms(use_true_random=False).map(lambda rng: draw(rng, schedulers, most_jobs, 0.0, shaped, apart))
