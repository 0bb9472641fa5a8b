"""What small networks read, of `escala.envs.rjms.hold_features` and `queue_features`, as ONNX operators in float64, as
it is there."""

from __future__ import annotations

import numpy as np

from escala.envs.forward import Weights
from escala.envs.graphs.graph import Graph, Value, axes
from escala.envs.rjms.hold_features import JOBS, JOBS_AT, RUNNING_AT, SUMMARY_AT, YOUNG
from escala.envs.rjms.observation import JOB, RUNNING, RUNNING_SHOWN, SNAPSHOT
from escala.envs.rjms.queue_features import NEVER, SHARPNESS, SOON
from escala.envs.rjms.scheduling_step import QUEUED, WIDTH
from escala.envs.rjms.scheduling_step import RUNNING as QUEUE_RUNNING

FLOAT, DOUBLE = 1, 11
"""As ONNX numbers its types."""
NONE, ONE, LEAST = np.float64(0.0), np.float64(1.0), np.float64(1e-6)


def hold_numbers(g: Graph, seen: str) -> str:
    """[n, numbers] -> [n, len(FEATURES)], in their order."""
    seen = g("Cast", seen, to=DOUBLE)
    now = JOBS_AT - SNAPSHOT

    def at(place: int) -> str:
        return g.part(seen, 1, place, place + 1)

    def less(x: str, by: float | str) -> str:
        return g("Sub", x, np.float64(by) if isinstance(by, float) else by)

    jobs = g.shaped(g.part(seen, 1, JOBS_AT, RUNNING_AT), -1, JOBS, JOB)
    running = g.shaped(g.part(seen, 1, RUNNING_AT, SUMMARY_AT), -1, RUNNING_SHOWN, RUNNING)
    cores, wall, stretch = (_column(g, jobs, k) for k in range(3))
    waits = g("Greater", cores, NONE)
    waiting, walls = _sum(g, g("Cast", waits, to=DOUBLE)), _sum(g, g("Where", waits, wall, NONE))
    held, left, age = (_column(g, running, k) for k in range(3))
    runs = g("Greater", held, NONE)
    young = g("And", runs, g("Less", age, np.float64(YOUNG)))
    soonest, youngest = (g("ReduceMin", g("Where", runs, one, ONE), axes(1)) for one in (left, age))
    soonest, youngest = (g("Min", one, ONE) for one in (soonest, youngest))
    first = g("Max", at(JOBS_AT), LEAST)
    shares = [g("Min", g("Div", _sum(g, g("Where", of, held, NONE)), first), ONE) for of in (runs, young)]
    found = [
        less(at(JOBS_AT + 1), 0.3),
        less(at(JOBS_AT), 0.1),
        at(JOBS_AT + 3),
        g("Max", g("ReduceMax", stretch, axes(1)), NONE),
        less(g("Div", walls, g("Max", waiting, ONE)), 0.3),
        at(now + 5),
        at(SUMMARY_AT + 3),
        at(now),
        less(at(now), at(now - 10 * SNAPSHOT)),
        g("Add", at(now + 3), at(now + 4)),
        at(SUMMARY_AT),
        at(SUMMARY_AT + 2),
        g("ReduceMax", g("Cast", runs, to=DOUBLE), axes(1)),
        g("Sub", ONE, youngest),
        soonest,
        *shares,
        less(at(now + 7), 0.5),
    ]
    return g("Cast", g.joined(found, 1), to=FLOAT)


def _column(g: Graph, x: str, k: int) -> str:
    """x[:, :, k]."""
    return g("Squeeze", g.part(x, 2, k, k + 1), axes(2))


def _sum(g: Graph, x: str) -> str:
    """Over the second axis, which stays."""
    return g("ReduceSum", x, axes(1))


def queue_numbers(g: Graph, seen: str, places: int) -> str:
    """[n, places, WIDTH + 1] -> [n, places, len(JOB_FEATURES)], in their order, empty places too."""
    seen = g("Cast", seen, to=DOUBLE)
    newest = g.part(seen, 1, places - 1, places)
    now = QUEUED + QUEUE_RUNNING

    def times(x: Value, y: Value) -> str:
        return g("Mul", x, y)

    def at(k: int) -> str:
        return g.part(newest, 2, now + k, now + k + 1)

    cores, wall, confidence = (g.part(seen, 2, k, k + 1) for k in range(3))
    held, left = g.part(seen, 2, QUEUED, QUEUED + 1), g.part(seen, 2, QUEUED + 2, QUEUED + 3)
    soon = _sum(g, g("Where", g("Less", left, np.float64(SOON)), held, NONE))
    waited = g.part(seen, 2, WIDTH, WIDTH + 1)
    days = times(waited, waited)
    beyond = g("Max", g("Sub", g("Sub", cores, at(4)), LEAST), NONE)
    wakes = g("Cast", g("Greater", beyond, NONE), to=DOUBLE)
    sure = times(wall, g("Sqrt", g("Max", confidence, NONE)))
    always = g("Add", times(cores, NONE), ONE)
    place = g("Add", times(cores, NONE), (np.arange(places) / max(places - 1, 1))[:, None])
    of_wall = g("Div", days, g("Max", times(wall, wall), LEAST))
    waits = [g("Min", one, ONE) for one in (times(days, np.float64(96.0)), times(days, np.float64(24.0)), of_wall)]
    such = [at(1), at(3), soon, sure, place, g("Add", at(6), at(7)), *waits]
    found = [always, wall, cores, confidence, sure, place, wakes, beyond, *(times(wakes, one) for one in such)]
    return g("Cast", g.joined(found, 2), to=FLOAT)


def queue_preferences(g: Graph, w: Weights, seen: str, places: int) -> str:
    """Preferences of the no-op, then of the places, as `escala.envs.forward` has them."""
    scores = g.dense(queue_numbers(g, seen, places), w["mlp_extractor.score.weight"])
    order, release = (_column(g, scores, k) for k in range(2))
    free = g("And", g("Greater", _column(g, seen, 0), np.float32(0.0)), g("Greater", release, np.float32(0.0)))
    wanted = g("Mul", order, np.float32(SHARPNESS))
    lowest = g("ReduceMin", g("Where", free, wanted, np.float32(np.inf)), axes(1))
    noop = g("Sub", g("Where", g("IsInf", lowest), np.float32(0.0), lowest), np.float32(NEVER))
    return g.joined([noop, g("Where", free, wanted, g("Sub", noop, np.float32(NEVER)))], 1)
