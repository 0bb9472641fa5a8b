"""Policies that pretend: by names, classes, marks that change, and what they remember of another run.

Each function gives what was tried, and the ways to the future that were found.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import escala
from escala.envs.slots.policy import SlotPolicy
from escala.errors import EscalaError
from escala.policies.schedulers import SCHEDULERS, Scheduler
from escala.workload import Workload

JOBS = Workload.from_jobs(
    {
        "submit_s": [0.0, 1.0, 2.0, 5000.0],
        "runtime_s": [1013.137, 2029.233, 511.377, 77.731],
        "walltime_s": [3000.0, 3000.0, 3000.0, 900.0],
        "cores": [2, 2, 1, 1],
        "user": ["a", "b", "a", "c"],
    }
)


def first_come(view: escala.View, act: escala.Commands) -> None:
    """What the probes do beside probing."""
    for job in view.queue:
        if not act.start(job):
            return


class Answering:
    """Says each time that it is asked for `which` the next of its answers, and the last for ever after."""

    before_scheduler = True

    def __init__(self, which: str, *answers: Any) -> None:
        self._which, self._answers, self.read = which, list(answers), 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name != self._which:
            raise AttributeError(name)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def decide(self, view: Any, act: Any) -> None:
        """Read what may be read, and start what fits."""
        self.read += hasattr(view, "runtime_s") and view.runtime_s(3) > 0
        if self._which == "clairvoyant":
            first_come(view, act)


class Repenting:
    """Shown the run times, it says in the run that it never was."""

    clairvoyant, read = True, 0

    def decide(self, view: Any, act: Any) -> None:
        """Read what may be read, and start what fits."""
        self.read += hasattr(view, "runtime_s") and view.runtime_s(3) > 0
        self.clairvoyant = False
        first_come(view, act)


def masks() -> list[dict[str, Any]]:
    """Policies that are shown the future and say otherwise later, or before: whoever sees it is marked."""
    out = []
    for name, policy in (("clairvoyant: True, then False", Answering("clairvoyant", True, False)),
                         ("clairvoyant: False, then True", Answering("clairvoyant", False, True)),
                         ("clairvoyant = False in decide", Repenting())):  # fmt: skip
        knows = escala.simulate(JOBS, "2x2:grid5000", policy).knows
        ways = [f"{policy.read} run times read, and it knows {knows!r}"] if policy.read and knows != "runtimes" else []
        out.append({"tried": name, "ways": ways})
    beneath = Answering("beneath", "oracle", None)
    result = escala.simulate(JOBS, "2x2:grid5000", "easy", beneath)
    out.append(
        {
            "tried": "beneath: oracle, then None",
            "ways": [] if result.knows == "runtimes" else ["oracle decides, unmarked"],
        }
    )
    return out


class Faces(str):
    """A name that shows another one to whoever takes it apart or compares it."""

    def partition(self, sep: str) -> tuple[str, str, str]:  # type: ignore[override]
        """As of "never"."""
        return "never", "", ""

    def split(self, *_: Any) -> list[str]:  # type: ignore[override]
        """As of "easy"."""
        return ["easy"]

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


def names() -> list[dict[str, Any]]:
    """Names of a class of one's own, of policies and estimates that know the future: marked, or refused."""
    out = []
    for name, given in (("shutdown", {"shutdown": Faces("oracle")}), ("arrivals",
                                                                      {"shutdown": Faces("arrivals-known")}),
                        ("scheduler", {"scheduler": Faces("easy-sjf:estimate=runtime")}),
                        ("estimate", {"estimate": Faces("runtime")}),
                        ("order_estimate", {"order_estimate": Faces("runtime")})):  # fmt: skip
        try:
            knows = escala.simulate(JOBS, "2x2:grid5000", **given).knows
        except EscalaError:
            knows = "refused"
        out.append({"tried": f"a text of another class: {name}", "ways": [] if knows else ["unmarked"]})
    compared = escala.compare(JOBS, "2x2:grid5000", ["easy"], [Faces("oracle")])
    out.append(
        {"tried": "a text of another class in compare", "ways": [] if all(compared.knows.values()) else ["unmarked"]}
    )
    return out


def namesakes() -> list[dict[str, Any]]:
    """Classes that say they are Escala's own, and objects of Escala's own with other methods: none is handed the
    simulation."""
    out, seen = [], list[Any]()

    def reached(policy: Any, simulation: Any, *_: Any) -> Any:
        seen.append(simulation)
        raise EscalaError("reached")

    for module, name in (("escala.x", "Evil"), ("escala.envs.slots.policy", "SlotPolicy")):
        kind = type(
            name,
            (),
            {"__module__": module, "decide_inside": reached, "begin_run": lambda self: None, "decide": lambda *_: None},
        )
        for register in (escala.policy.insider, lambda one: one):
            seen.clear()
            with contextlib.suppress(EscalaError):
                escala.simulate(JOBS, "2x2:grid5000", register(kind)())
            out.append(
                {"tried": f"a class that says it is {module}.{name}", "ways": ["the simulation itself"] if seen else []}
            )
    for method in ("decide_inside", "_ask", "_begin", "_put", "_show"):
        seen.clear()
        own = SlotPolicy("sjf")
        setattr(own, method, lambda *given: reached(None, *given))
        with contextlib.suppress(EscalaError):
            escala.simulate(JOBS, "2x2:grid5000", own)
        out.append(
            {"tried": f"SlotPolicy with a {method} of its own", "ways": ["the simulation itself"] if seen else []}
        )
    kind = type("Mine", (Scheduler,), {"order": reached})
    for scheduler in (
        kind(SCHEDULERS["easy"].queueing),
        replace(SCHEDULERS["sjf"], score=lambda *given: reached(None, *given)),
    ):
        seen.clear()
        with contextlib.suppress(EscalaError):
            escala.simulate(JOBS, "2x2:grid5000", scheduler)
        out.append({"tried": "a Scheduler with an order of its own", "ways": ["the whole log"] if seen else []})
    return out


def borrowed() -> list[dict[str, Any]]:
    """Objects with the name of a policy of Escala's own: tables and manifests tell them from it."""
    told = escala.simulate(JOBS, "2x2:grid5000", replace(SCHEDULERS["fcfs"], name="easy")).manifest["scheduler"]
    out: list[dict[str, Any]] = [
        {"tried": "a Scheduler called easy", "ways": [] if told != "easy" else ["told as easy"]}
    ]
    for name in ("easy", "oracle", "hold:0.25", "rollout:64", "policy:x", "a\x1b[2Jb\nc"):
        policy = type("Mine", (), {"name": name, "decide": lambda self, view, act: first_come(view, act)})()
        told = escala.simulate(JOBS, "2x2:grid5000", policy).manifest["scheduler"]
        out.append(
            {
                "tried": f"an object called {name!r}",
                "ways": [] if told != name and told.isprintable() else [f"told as {told!r}"],
            }
        )
    return out


class Noting:
    """Notes how long jobs ran, and what is known from an earlier run starts first, the shortest before the others."""

    def __init__(self) -> None:
        self.began: dict[int, float] = {}
        self.ran: dict[int, float] = {}

    def decide(self, view: Any, act: Any) -> None:
        """The shortest known one first."""
        rows = {job.row for job in view.running}
        self.ran |= {row: view.now_s - at for row, at in self.began.items() if row not in rows and row not in self.ran}
        for job in sorted(view.queue, key=lambda job: self.ran.get(job.row, 1e9)):
            if not act.start(job):
                break
        self.began = {job.row: self.began.get(job.row, view.now_s) for job in view.running}


def memories() -> list[dict[str, Any]]:
    """One object in several runs of the same jobs: the result of a pair is the same wherever it stands in the list."""
    jobs, shutdowns = crowd(), ["never", "timeout:60", "timeout:0"]
    orders = [escala.compare(jobs, "2x2:grid5000", [Noting()], order).results for order in (shutdowns, shutdowns[::-1])]
    differ = [name for name, result in orders[0].items() if not result.jobs.equals(orders[1][name].jobs)]
    return [{"tried": "run times noted in one run of compare, used in the next", "ways": differ}]


def crowd() -> Workload:
    """Jobs that wait for each other, long ones first."""
    runtime = [1000.0 - 83.0 * (k % 11) for k in range(40)]
    return Workload.from_jobs({"submit_s": [3.0 * k for k in range(40)], "runtime_s": runtime, "cores": [2] * 40})
