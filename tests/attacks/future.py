"""Ways to the future: does anything that a policy is handed lead to what it may not know, or change what it may not?

`python -m tests.attacks.future` walks every attribute, item, slot, closure and `.base` of the view and the commands, in
runs of several kinds of policy, compares all that they show of logs that differ in jobs to come alone, and tries what
was found to work once. Prints JSON of what was tried and what held; exit code 1 if there is a way.

Not tried, as Python has no means against it: the stack (`sys._getframe`, frames of tracebacks), the garbage collector,
raw memory (`ctypes`), loops that ask and order nothing (`while True: pass`), and modules and classes changed at run
time, where a policy may also note what it sees.
`escala.sealed` says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

import escala
from escala.errors import EscalaError
from escala.simulation import Simulation
from escala.workload import Workload
from tests.attacks.coming import coming
from tests.attacks.pretending import JOBS, borrowed, first_come, masks, memories, names, namesakes

LEAVES = (str, bytes, int, float, complex, bool, type(None), np.generic, types.CodeType)
C_METHODS = types.BuiltinMethodType | types.MethodWrapperType | types.WrapperDescriptorType | types.MethodDescriptorType
HIDDEN = ("__closure__", "__self__", "__wrapped__", "__func__", "__dict__", "__globals__", "base", "_objects")
MOST = 200_000  # objects of one walk


class Ways:
    """One walk from the objects handed over to a policy: every object that is reached, with its path."""

    def __init__(self, simulation: Simulation, depth: int) -> None:
        self.depth, self.seen, self.found = depth, 0, list[str]()
        w = simulation.world
        self.secret = [getattr(w, name) for name in w._fields] + [simulation.table]
        self.values = {float(v) for v in w.job["runtime"].ravel().tolist()} | {
            v / 1e6 for v in w.job["runtime"].ravel().tolist()
        }

    def walk(self, roots: dict[str, Any]) -> None:
        """Breadth first, so that the path told is a short one."""
        known: dict[int, Any] = {}
        layer = list(roots.items())
        for _ in range(self.depth):
            following = []
            for path, thing in layer:
                for step, value in steps(thing):
                    if id(value) in known or self.seen >= MOST:
                        continue
                    known[id(value)] = value  # kept, so that its id stays its own
                    self.seen += 1
                    self.judge(path + step, value)
                    if not isinstance(value, LEAVES):
                        following.append((path + step, value))
            layer = following

    def judge(self, path: str, value: Any) -> None:
        """Is this something that knows the future, or a way to change the run?"""
        if isinstance(value, Simulation | Workload | pl.DataFrame | pl.Series):
            self.found.append(f"{path}: {type(value).__name__}")
        elif isinstance(value, np.ndarray) and any(np.may_share_memory(value, array) for array in self.secret):
            self.found.append(f"{path}: an array of the simulation")
        elif isinstance(value, types.FrameType):
            self.found.append(f"{path}: a frame")
        elif isinstance(value, float) and value in self.values:
            self.found.append(f"{path}: {value}, the run time of a job")


def steps(thing: Any) -> Iterator[tuple[str, Any]]:
    """(how, what) for all that one step leads to. Modules and classes that are not Escala's are not entered."""
    if isinstance(thing, types.ModuleType | type) and not _is_ours(thing):
        return
    if type(thing).__module__.startswith(("numba", "llvmlite")):  # a look into the compiler changes what it does next
        return
    names = {"__self__"} if isinstance(thing, C_METHODS) else {*dir(type(thing)), *dir(thing), *HIDDEN}
    if isinstance(thing, types.FunctionType) and not _is_ours(thing):
        names -= {"__globals__", "__builtins__"}
    for name in sorted(names):
        try:
            value = getattr(thing, name)
        except Exception:
            continue
        if not (isinstance(value, C_METHODS | types.MethodType) and getattr(value, "__self__", None) is thing):
            yield f".{name}", value
    if not isinstance(thing, C_METHODS):
        yield from _items(thing)
    if isinstance(thing, types.CellType):
        try:
            yield ".cell_contents", thing.cell_contents
        except ValueError:
            return


def _items(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, dict | types.MappingProxyType):
        for key, value in list(thing.items()):
            yield f"[{key!r:.40}]", value
    elif isinstance(thing, list | tuple | set | frozenset):
        for k, value in enumerate(list(thing)[:50]):
            yield f"[{k}]", value
    reduce = getattr(thing, "__reduce_ex__", None)  # what pickling would show
    if reduce is not None and not isinstance(thing, type | types.ModuleType | np.ndarray):
        try:
            yield ".__reduce_ex__(2)", reduce(2)
        except Exception:
            return


def _is_ours(thing: Any) -> bool:
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", "")
    return str(name).startswith("escala")


# Runs of odd numbers, so that a run time is not met by chance.
PREDICTOR = "predictor"
KINDS = (
    "scheduler",
    "shutdown before",
    "shutdown after",
    "one node a core",
    "single-node jobs",
    "timers and a log of commands",
    PREDICTOR,
)


class Predictor:
    """What runs are planned by; `decide` sees the view that it is shown, and no commands."""

    def __init__(self, decide: Any) -> None:
        self.decide = decide

    def __deepcopy__(self, known: Any) -> Predictor:
        return self  # the probe looks at it afterwards

    def estimate(self, view: Any, job: Any) -> float:
        """The request."""
        self.decide(view, job)
        return float(job.walltime_s)


def idle(kind: str) -> bool:
    """Does this kind of policy start no jobs?"""
    return kind.startswith("shutdown") or kind == PREDICTOR


def play(kind: str, decide: Any, jobs: Workload = JOBS) -> escala.Result:
    """One run in which `decide(view, act)` is the policy of this kind."""
    platform = "4x1:grid5000" if kind == "one node a core" else "2x2:grid5000"
    if kind == "single-node jobs":
        jobs = Workload.from_jobs(jobs.jobs.with_columns(single_node=pl.lit(True)))
    if kind == PREDICTOR:
        return escala.simulate(jobs, platform, "easy", "never", estimate=Predictor(decide))
    if kind.startswith("shutdown"):
        policy = type(
            "Power",
            (),
            {"before_scheduler": kind.endswith("before"), "name": "probe", "decide": lambda self, v, a: decide(v, a)},
        )()
        return escala.simulate(jobs, platform, "easy", policy)
    return escala.simulate(jobs, platform, decide, "never", decisions=kind.startswith("timers"))


class _Caught:
    """The simulations that are made meanwhile: the judge must know what is secret. (By means that are not counted: a
    changed module.)"""

    def __enter__(self) -> list[Simulation]:
        self.made: list[Simulation] = []
        self.before = Simulation.__init__

        def noted(simulation: Simulation, *args: Any, **options: Any) -> None:
            self.before(simulation, *args, **options)
            self.made.append(simulation)

        Simulation.__init__ = noted  # type: ignore[method-assign]
        return self.made

    def __exit__(self, *_: Any) -> None:
        Simulation.__init__ = self.before  # type: ignore[method-assign]


def walks(depth: int, kinds: tuple[str, ...] = KINDS) -> list[dict[str, Any]]:
    """One walk for each kind of policy, in the middle of its run."""
    return [_walk(kind, depth) for kind in kinds]


def _walk(kind: str, depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {"tried": f"walk from view and act, {kind}", "depth": depth, "objects": 0, "ways": []}
    with _Caught() as made:

        def probe(view: escala.View, act: escala.Commands) -> None:
            if kind.startswith("timers"):
                act.call_at(view.now_s + 700.0)
            if out["objects"] == 0 and view.now_s > 0:
                ways = Ways(made[-1], depth)
                ways.walk({"view": view, "act": act, "type(view)": type(view), "type(act)": type(act)})
                out["objects"], out["ways"] = ways.seen, ways.found
            if not idle(kind):
                first_come(view, act)

        play(kind, probe)
    return out


def _raises(kind: str, decide: Any, words: str) -> bool:
    try:
        play(kind, decide)
    except EscalaError as error:
        return words in str(error) and "\n" not in str(error)
    return False


def writes() -> list[dict[str, Any]]:
    """Write into every array and list that a view hands over: the result must be the same."""
    out = []
    for kind in KINDS:

        def spoil(view: escala.View, act: escala.Commands, kind: str = kind) -> None:
            for name in dir(type(view)):
                value = getattr(view, name)
                if isinstance(value, np.ndarray):
                    value[...] = 7
                    if value.base is not None:
                        value.base[...] = 7
                elif isinstance(value, list):
                    value.clear()
            if kind == PREDICTOR:
                view.ended().clear()
            if not idle(kind):
                first_come(view, act)

        clean = play(kind, (lambda view, act: None) if idle(kind) else first_come)
        spoilt = play(kind, spoil)
        same = spoilt.jobs.equals(clean.jobs) and spoilt.totals.equals(clean.totals)
        out.append(
            {"tried": f"write into all that a view hands over, {kind}", "ways": [] if same else ["the result differs"]}
        )
    return out


def commands() -> list[dict[str, Any]]:
    """Commands that make no sense, or tell of jobs to come."""
    odd: list[Any] = [
        1.5,
        1.0,
        True,
        None,
        "0",
        "x",
        2**70,
        -(2**70),
        -1,
        float("nan"),
        float("inf"),
        [],
        object(),
        np.float64(0.0),
        np.bool_(0),
    ]
    taken: list[str] = []
    told: list[tuple[str, str]] = []

    def try_all(view: escala.View, act: escala.Commands) -> None:
        for value in odd:
            for name, arguments in (("start", (value,)), ("start_on", (value, 0)), ("start_on", (0, value)),
                                    ("switch_off", (value,)),
                                    ("wake", (value,)), ("reserve_off", (value,))):  # fmt: skip
                if getattr(act, name)(*arguments):
                    taken.append(f"{name}{arguments}")
        if view.now_s < 5000.0:
            replies = []
            for row in (3, 4, 10**6):  # to come; none; none
                act.start(row)
                replies.append(act.refusal)
            if len(set(replies)) > 1:
                told.append((replies[0], replies[1]))
        first_come(view, act)

    play("scheduler", try_all)
    return [
        {"tried": f"{len(odd)} odd values in every command", "ways": taken},
        {"tried": "refusals tell a job to come from none", "ways": [f"{a} / {b}" for a, b in told]},
    ]


def endless() -> list[dict[str, Any]]:
    """Policies and predictors that never end: one line."""

    def again(view: escala.View, act: escala.Commands) -> None:
        while True:
            act.start(0)

    def soon(view: escala.View, act: escala.Commands) -> None:
        first_come(view, act)
        act.call_at(view.now_s + 1e-6)

    def timers(view: escala.View, act: escala.Commands) -> None:
        while True:
            act.call_at(view.now_s + 1.0)

    def looks(view: escala.View, act: Any) -> None:
        while view.queue_length == view.queue_length:
            pass

    def recalls(view: Any, job: Any) -> None:
        while len(view.ended()) < len(JOBS):
            pass

    tried = (
        ("start(0) for ever", "scheduler", again, "in one decision"),
        ("call_at(now + 1e-6) for ever", "scheduler", soon, "ask less often"),
        ("call_at(now + 1) for ever in one decision", "scheduler", timers, "in one decision"),
        *((f"looks for ever, {kind}", kind, looks, "questions in one decision") for kind in KINDS),
        ("looks for ever who has ended", PREDICTOR, recalls, "questions in one decision"),
    )
    return [
        {"tried": name, "ways": [] if _raises(kind, policy, words) else ["no line"]}
        for name, kind, policy, words in tried
    ]


def falsified() -> list[dict[str, Any]]:
    """A run whose jobs were changed gives no result, whoever changed them."""
    out = []
    for column, value in (("runtime", 1), ("submit", 0), ("walltime", 10**9), ("cores", 1), ("killed", 1)):
        with _Caught() as made:

            def change(view: escala.View, act: escala.Commands, column: str = column, value: int = value) -> None:
                first_come(view, act)
                if view.now_s > 0:
                    made[-1].world.job[column][0, :] = value

            held = _raises("scheduler", change, "no result")
        out.append({"tried": f"job[{column!r}] changed in the run", "ways": [] if held else ["a result all the same"]})
    return out


def attack(depth: int) -> dict[str, Any]:
    """Everything; see the module."""
    tried = [
        *walks(depth),
        *writes(),
        *commands(),
        *endless(),
        *falsified(),
        *masks(),
        *names(),
        *namesakes(),
        *borrowed(),
        *memories(),
        *coming(),
    ]
    ways = [f"{entry['tried']}: {way}" for entry in tried for way in entry["ways"]]
    return {
        "attack": "future",
        "tried": len(tried),
        "objects": sum(entry.get("objects", 0) for entry in tried),
        "ways": len(ways),
        "found": ways,
        "held": [entry["tried"] for entry in tried if not entry["ways"]],
        "not_tried": [
            "frames of the stack",
            "the garbage collector",
            "raw memory (ctypes)",
            "modules and classes changed at run time",
            "loops that ask and order nothing",
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=7, help="steps from view and act")
    outcome = attack(parser.parse_args().depth)
    json.dump(outcome, sys.stdout, indent=1)
    print()
    return 1 if outcome["ways"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
