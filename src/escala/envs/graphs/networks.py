"""The networks of `escala.envs.forward` as ONNX operators: function by function, by the same weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from escala.envs.forward import (
    DENSE,
    EXTRACTOR,
    LAGS,
    LEAST_SPREAD,
    SLOPE,
    SLOT_SCORER,
    TRENDS,
    Shape,
    Weights,
    forward_of,
)
from escala.envs.graphs.graph import Graph, axes
from escala.envs.graphs.numbers import hold_numbers, queue_preferences
from escala.envs.rjms.hold_features import HISTORY, HOLD_FEATURES, JOBS
from escala.envs.rjms.observation import JOB, RUNNING, RUNNING_SHOWN, SNAPSHOT
from escala.envs.rjms.queue_features import QUEUE_SCORER

LSTM_GATES, GRU_GATES = (0, 3, 1, 2), (1, 0, 2)
"""Where torch keeps what ONNX wants first: input, output, forget, cell; update, reset, new."""
END = np.iinfo(np.int64).max
"""Of whatever is cut."""

Reader = Callable[[Graph, Weights, str], str]


def _dense(g: Graph, w: Weights, name: str, x: str) -> str:
    return g.dense(x, w[f"{name}.weight"], w[f"{name}.bias"])


def _flat(g: Graph, w: Weights, seen: str) -> str:
    return g("Flatten", seen, axis=1)


def _recurrent(g: Graph, w: Weights, at: str, seen: str, gates: tuple[int, ...]) -> str:
    """Last hidden states of an LSTM (four gates) or a GRU (three) over the second axis."""

    def inner(*names: str) -> Any:
        found = [np.concatenate([np.split(w[at + name], len(gates))[k] for k in gates]) for name in names]
        return np.concatenate(found)[None]

    given, units = inner("weight_ih_l0"), w[f"{at}weight_hh_l0"].shape[1]
    steps = g("Transpose", seen, perm=[1, 0, 2])
    inputs = (steps, given, inner("weight_hh_l0"), inner("bias_ih_l0", "bias_hh_l0"))
    if len(gates) == len(LSTM_GATES):
        return g.last("LSTM", *inputs, hidden_size=units)
    return g.last("GRU", *inputs, hidden_size=units, linear_before_reset=1)


def _history_lstm(g: Graph, w: Weights, seen: str) -> str:
    last = _recurrent(g, w, f"{EXTRACTOR}lstm.", seen, LSTM_GATES)
    return g("LeakyRelu", _dense(g, w, f"{EXTRACTOR}head.0", last), alpha=SLOPE)


def _three_grus(g: Graph, w: Weights, seen: str) -> str:
    parts, first = [], 0
    for at in (f"{EXTRACTOR}grus.{k}." for k in range(3)):
        width = w[f"{at}weight_ih_l0"].shape[1]
        parts.append(_recurrent(g, w, at, g.part(seen, 2, first, first + width), GRU_GATES))
        first += width
    return g("Relu", _dense(g, w, f"{EXTRACTOR}head.0", g.joined(parts, 1)))


def _image(g: Graph, w: Weights, seen: str, pooled: bool) -> str:
    image = g("Unsqueeze", seen, axes(1))
    found = g("Conv", image, w[f"{EXTRACTOR}layers.0.weight"], w[f"{EXTRACTOR}layers.0.bias"], pads=[1, 1, 1, 1])
    if pooled:
        found = g("MaxPool", found, kernel_shape=[2, 2], strides=[2, 2])
    return _flat(g, w, g("Relu", found))


def _queue_and_running(g: Graph, w: Weights, seen: str) -> str:
    ends = np.cumsum((0, HISTORY * SNAPSHOT, JOBS * JOB, RUNNING_SHOWN * RUNNING)).tolist()
    past, waiting, running = (g.part(seen, 1, begin, end) for begin, end in pairwise(ends))
    starts = [(HISTORY - 1 - lag) * SNAPSHOT for lag in LAGS]
    parts = [
        g.part(past, 1, (HISTORY - 1) * SNAPSHOT, ends[1]),
        g.part(seen, 1, ends[3], END),
        g.part(waiting, 1, 0, JOB),
    ]
    parts += [g.part(past, 1, at, at + TRENDS) for at in starts]
    for numbers, width, name in ((waiting, JOB, "of_waiting"), (running, RUNNING, "of_running")):
        jobs = g.shaped(numbers, 0, -1, width)
        there = g("Cast", g("Greater", g.part(jobs, 2, 0, 1), np.float32(0.0)), to=1)
        encoded = g("Mul", g("Relu", _dense(g, w, f"{EXTRACTOR}{name}", jobs)), there)
        parts.append(g("Div", g("ReduceSum", encoded, axes(1), keepdims=0), np.float32(5.0)))
        parts.append(g("ReduceMax", encoded, axes(1), keepdims=0))
    return g("Tanh", _dense(g, w, f"{EXTRACTOR}mix.0", g.joined(parts, 1)))


READERS: dict[str | None, Reader] = {
    None: _flat,
    HOLD_FEATURES: lambda g, w, seen: hold_numbers(g, seen),
    "history-lstm": _history_lstm,
    "three-grus": _three_grus,
    "queue-and-running": _queue_and_running,
    **{name: lambda g, w, seen: _image(g, w, seen, False) for name in ("conv3-16", "conv3-32")},
    **{name: lambda g, w, seen: _image(g, w, seen, True) for name in ("conv3-16-pool", "conv3-32-pool")},
}
"""As `escala.envs.forward.READERS`."""


def _layers(manifest: Mapping[str, Any], g: Graph, w: Weights, seen: str) -> str:
    x, layer = READERS[manifest["extractor"]](g, w, seen), 0
    while f"{DENSE}{layer}.weight" in w:
        x = g("Relu" if manifest.get("relu") else "Tanh", _dense(g, w, f"{DENSE}{layer}", x))
        layer += 2
    if manifest.get("ordered") is None:
        return _dense(g, w, "action_net", x)
    choices = np.arange(int(manifest["actions"]), dtype=np.float32) - w["action_net.centre"]
    away = g("Sub", choices, _dense(g, w, "action_net.mu", x))
    away = g("Div", away, np.float32(np.exp(w["action_net.spread"]) + LEAST_SPREAD))
    return g("Mul", g("Mul", away, away), np.float32(-0.5))


def _context(g: Graph, w: Weights, jobs: str, rest: str) -> str:
    at = "mlp_extractor.context."
    mean = g("ReduceMean", g("Relu", _dense(g, w, f"{at}embed", jobs)), axes(1), keepdims=0)
    return g("Relu", _dense(g, w, f"{at}mix", g.joined([rest, mean], 1)))


def _void(g: Graph, w: Weights, context: str) -> str:
    return _dense(g, w, "mlp_extractor.void.2", g("Relu", _dense(g, w, "mlp_extractor.void.0", context)))


def _window(g: Graph, seen: str, slots: int, width: int) -> tuple[str, str]:
    """The jobs [n, slots, width] at the beginning of an observation, and the rest."""
    jobs = g.shaped(g.part(seen, 1, 0, slots * width), -1, slots, width)
    return jobs, g.part(seen, 1, slots * width, END)


def _slots(g: Graph, w: Weights, seen: str, slots: int) -> str:
    at = "mlp_extractor."
    jobs, rest = _window(g, seen, slots, w[f"{at}of_job.weight"].shape[1])
    context = _context(g, w, jobs, rest)
    of_context = g("Unsqueeze", g.dense(context, w[f"{at}of_context.weight"]), axes(1))
    hidden = g("Relu", g("Add", _dense(g, w, f"{at}of_job", jobs), of_context))
    return g.joined([_void(g, w, context), g("Squeeze", _dense(g, w, f"{at}preference", hidden), axes(2))], 1)


def pairs_preferences(manifest: Mapping[str, Any], g: Graph, w: Weights, seen: str) -> str:
    """Preferences of an agent of a team."""
    at, shape = "mlp_extractor.", Shape(*manifest["shape"])
    jobs, rest = _window(g, seen, shape.slots, shape.job + shape.machines)
    context = _context(g, w, jobs, rest)
    charts = g.shaped(g.part(rest, 1, 0, shape.machines * shape.chart), -1, shape.machines, 1, shape.chart)
    places = g(
        "Unsqueeze", g("Transpose", g.part(jobs, 2, shape.job, shape.job + shape.machines), perm=[0, 2, 1]), axes(3)
    )
    hidden = g("Unsqueeze", _dense(g, w, f"{at}of_job", g.part(jobs, 2, 0, shape.job)), axes(1))
    for more in (g.dense(charts, w[f"{at}of_machine.weight"]), g("Mul", places, w[f"{at}of_fit.weight"][:, 0])):
        hidden = g("Add", hidden, more)
    hidden = g("Relu", g("Add", hidden, g("Unsqueeze", g.dense(context, w[f"{at}of_context.weight"]), axes(1, 2))))
    found = _dense(g, w, f"{at}preference", g("Relu", _dense(g, w, f"{at}deeper", hidden)))
    return g.joined([g("Flatten", found, axis=1), _void(g, w, context)], 1)


def preferences_of(manifest: Mapping[str, Any], g: Graph, w: Weights, seen: str) -> str:
    """Preferences of an agent's network; EscalaError where it is none that can be exported."""
    forward_of(manifest)
    if manifest["extractor"] == QUEUE_SCORER:
        return queue_preferences(g, w, seen, int(manifest["observation_shape"][0]))
    if manifest["extractor"] == SLOT_SCORER:
        return _slots(g, w, seen, int(manifest["actions"]) - 1)
    return _layers(manifest, g, w, seen)
