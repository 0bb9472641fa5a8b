"""What is measured: axes of growth, and pairs of a scheduler and a shutdown policy, from the registries of names."""

from __future__ import annotations

from typing import Any

from escala.policies import SCHEDULERS, SHUTDOWN_FORMS
from escala.policies.compose import EXAMPLES
from tests.oracle.linear import FILES

AXES: dict[str, list[dict[str, Any]]] = {
    "jobs": [{"jobs": 400}, {"jobs": 1600}],
    "more jobs": [{"jobs": 16_000, "load": 0.9}, {"jobs": 64_000, "load": 0.9}],
    "overload": [{"jobs": 1600, "load": 1.2}, {"jobs": 6400, "load": 1.2}],
    "more overload": [{"jobs": 16_000, "load": 1.2}, {"jobs": 64_000, "load": 1.2}],
    "waiting": [{"jobs": 200, "at_once": True}, {"jobs": 800, "at_once": True}],
    "nodes": [{"nodes": 32}, {"nodes": 256}],
    "waiting by nodes": [{"jobs": jobs, "at_once": True, "by_nodes": True} for jobs in (800, 3200)],
    "overload by nodes": [{"jobs": jobs, "load": 1.2, "by_nodes": True} for jobs in (1600, 6400)],
    "more nodes": [{"nodes": 256, "jobs": 1600}, {"nodes": 4096, "jobs": 1600}],
}
SMALLER: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("conservative", "jobs"): [{"jobs": 100}, {"jobs": 400}],
    ("conservative", "more jobs"): [{"jobs": 400, "load": 0.9}, {"jobs": 1600, "load": 0.9}],
    ("conservative", "overload"): [{"jobs": 100, "load": 1.2}, {"jobs": 400, "load": 1.2}],
    ("conservative", "more overload"): [{"jobs": 400, "load": 1.2}, {"jobs": 1600, "load": 1.2}],
    ("conservative", "waiting"): [{"jobs": 40, "at_once": True}, {"jobs": 160, "at_once": True}],
    ("conservative", "waiting by nodes"): [{"jobs": jobs, "at_once": True, "by_nodes": True} for jobs in (40, 160)],
    ("conservative", "overload by nodes"): [{"jobs": jobs, "load": 1.2, "by_nodes": True} for jobs in (100, 400)],
    ("conservative", "nodes"): [{"nodes": 16, "jobs": 200}, {"nodes": 64, "jobs": 200}],
    ("conservative", "more nodes"): [{"nodes": 64, "jobs": 400}, {"nodes": 256, "jobs": 400}],
}
"""Worlds of schedulers that are slow in large ones."""
QUEUES = (
    "easy:queue=saf:guard=600",
    "easy:queue=xfactor:guard=600",
    "easy:queue=saf:backfill=xfactor:guard=600",
    f"easy:queue=score:{FILES / 'waiting.toml'}:guard=600",
    f"easy:queue=score:{FILES / 'ages.toml'}:backfill=sjf",
    f"easy:queue=score:{FILES / 'multifactor.toml'}",
    "easy:queue=saf:guard=600:order_estimate=last2",
    "conservative:estimate=last2",
    "sjf:guard=600",
    "sjf-fit:guard=600",
    "conservative:queue=saf:guard=600",
)
"""Queues in order, with a guard that many jobs pass."""
LEFT_OUT = {
    "escala": "a linear score of a file, as easy:queue=score:... above; its rows are theirs",
    "slurm": "has a kernel of its own and asks for a site: python -m bench.slurm measures it",
    "rollout": "simulates futures by the hundred at each decision: python -m bench.bench_rollout measures it",
}
"""Schedulers that are measured elsewhere, and why."""
CARRIERS = ("fcfs", "easy", "conservative")  # schedulers under which each shutdown policy is tried


def example(form: str) -> str:
    """A shutdown policy of this form."""
    for word, number in EXAMPLES.items():
        form = form.replace(word, number)
    return form


def pairs() -> list[tuple[str, str]]:
    """Every scheduler, and every shutdown policy under each carrier."""
    alone = [(scheduler, "never") for scheduler in (*SCHEDULERS, *QUEUES)]
    return alone + [(scheduler, example(form)) for form in SHUTDOWN_FORMS if form != "never" for scheduler in CARRIERS]
