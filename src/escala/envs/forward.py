"""Networks of trained agents without torch: from observations to preferences, in numpy, by weights that have torch's
names.

Preferences are those of torch but for the rounding of float32. What a network reads lies in the observation alone:
recurrent ones begin anew at each decision, with the oldest of what is shown, so nothing is carried from one decision to
the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.envs.recurrent import gru, lstm
from escala.envs.rjms.hold_features import HISTORY, HOLD_FEATURES, JOBS, hold_features
from escala.envs.rjms.observation import JOB, RUNNING, RUNNING_SHOWN, SNAPSHOT
from escala.envs.rjms.queue_features import NEVER, QUEUE_SCORER, SHARPNESS, job_features
from escala.envs.slots.observation import TEAM_SLOT
from escala.errors import EscalaError

SLOT_SCORER = "slot-scorer"
LEAST_SPREAD = 0.25
"""Of ordered choices; below, a policy stops trying."""
LAGS = (5, 10, 19)
"""Earlier snapshots that `queue-and-running` reads beside the newest."""
TRENDS = 6
"""Their numbers: nodes in the five states, queue length."""
SLOPE = 0.01
"""Of leaky ReLU, below 0."""
DENSE = "mlp_extractor.policy_net."
EXTRACTOR = "pi_features_extractor."
PART = 16
"""Images that are taken at once: filters turn one of 10 kB into 160 kB or more."""

Numbers = NDArray[np.float32]
Weights = Mapping[str, Numbers]
Forward = Callable[[Weights, Numbers], Numbers]


class Shape(NamedTuple):
    """How a compact observation of `escala.envs.multi` is cut: slots, own machines, kinds, rows told of each machine,
    and all numbers."""

    slots: int
    machines: int
    kinds: int
    points: int
    numbers: int

    @property
    def job(self) -> int:
        """Numbers of a job, without where it fits."""
        return TEAM_SLOT + self.kinds

    @property
    def chart(self) -> int:
        """Numbers of a machine."""
        return self.kinds * self.points

    @property
    def rest(self) -> int:
        """Numbers beside the slots: own machines first."""
        return self.numbers - self.slots * (self.job + self.machines)


def _relu(x: Numbers) -> Numbers:
    return np.maximum(x, np.float32(0.0))


def _dense(w: Weights, name: str, x: Numbers) -> Numbers:
    out: Numbers = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return out


def _flat(w: Weights, seen: Numbers) -> Numbers:
    return seen.reshape(len(seen), -1)


def _hold(w: Weights, seen: Numbers) -> Numbers:
    return hold_features(seen).astype(np.float32)


def _history_lstm(w: Weights, seen: Numbers) -> Numbers:
    """The last hidden state of an LSTM over the snapshots, and a layer."""
    at = f"{EXTRACTOR}lstm."
    inner = w[f"{at}weight_hh_l0"]
    given = seen @ w[f"{at}weight_ih_l0"].T + (w[f"{at}bias_ih_l0"] + w[f"{at}bias_hh_l0"])
    units = inner.shape[1]
    h = np.empty((len(seen), units), np.float32)
    lstm(given, inner, np.empty(4 * units, np.float32), np.empty(units, np.float32), h)
    x = _dense(w, f"{EXTRACTOR}head.0", h)
    return np.where(x > 0.0, x, np.float32(SLOPE) * x)


def _three_grus(w: Weights, seen: Numbers) -> Numbers:
    """The last hidden states of three GRUs side by side, over parts of each place's numbers, and a layer."""
    parts, first = [], 0
    for at in (f"{EXTRACTOR}grus.{k}." for k in range(3)):
        into, inner = w[f"{at}weight_ih_l0"], w[f"{at}weight_hh_l0"]
        given = seen[:, :, first : first + into.shape[1]] @ into.T + w[f"{at}bias_ih_l0"]
        first += into.shape[1]
        h = np.empty((len(seen), inner.shape[1]), np.float32)
        gru(given, inner, w[f"{at}bias_hh_l0"], np.empty((2, given.shape[2]), np.float32), h)
        parts.append(h)
    return _relu(_dense(w, f"{EXTRACTOR}head.0", np.concatenate(parts, axis=1)))


def _image(w: Weights, seen: Numbers, pooled: bool) -> Numbers:
    """3 x 3 filters with a border of zeros, the greatest of four neighbours where pooled, ReLU, flattened."""
    kernel, bias = w[f"{EXTRACTOR}layers.0.weight"], w[f"{EXTRACTOR}layers.0.bias"][:, None]
    (rows, columns), filters = seen.shape[1:], kernel.reshape(len(kernel), 9)
    wide = np.pad(seen, ((0, 0), (1, 1), (1, 1)))
    out = []
    for begin in range(0, len(seen), PART):
        part = wide[begin : begin + PART]
        around = np.stack([part[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)], axis=1)
        found = filters @ around.reshape(len(part), 9, -1) + bias
        if pooled:
            four = found.reshape(*found.shape[:2], rows, columns)[:, :, : rows // 2 * 2, : columns // 2 * 2]
            high = np.maximum(four[:, :, ::2], four[:, :, 1::2])
            found = np.maximum(high[..., ::2], high[..., 1::2])
        out.append(_relu(found).reshape(len(part), -1))
    return np.concatenate(out)


def _queue_and_running(w: Weights, seen: Numbers) -> Numbers:
    """The platform now and before, waiting and running jobs as sets: each summed and maximised, empty places count for
    nothing."""
    ends = np.cumsum((HISTORY * SNAPSHOT, JOBS * JOB, RUNNING_SHOWN * RUNNING))
    past, waiting, running, summary = np.split(seen, ends, axis=1)
    past, first = past.reshape(-1, HISTORY, SNAPSHOT), waiting[:, :JOB]
    parts = [past[:, -1], summary, first, *(past[:, HISTORY - 1 - lag, :TRENDS] for lag in LAGS)]
    for numbers, width, name in ((waiting, JOB, "of_waiting"), (running, RUNNING, "of_running")):
        jobs = numbers.reshape(len(seen), -1, width)
        encoded = _relu(_dense(w, f"{EXTRACTOR}{name}", jobs)) * (jobs[:, :, :1] > 0.0)
        parts += [encoded.sum(axis=1) / np.float32(5.0), encoded.max(axis=1)]
    return np.tanh(_dense(w, f"{EXTRACTOR}mix.0", np.concatenate(parts, axis=1)))


READERS: dict[str | None, Forward] = {
    None: _flat,
    HOLD_FEATURES: _hold,
    "history-lstm": _history_lstm,
    "three-grus": _three_grus,
    "queue-and-running": _queue_and_running,
    **{name: lambda w, seen: _image(w, seen, False) for name in ("conv3-16", "conv3-32")},
    **{name: lambda w, seen: _image(w, seen, True) for name in ("conv3-16-pool", "conv3-32-pool")},
}
"""What comes before dense layers, by the names of extractors."""


def _layers(manifest: Mapping[str, Any]) -> Forward:
    """What is read, dense layers with a function behind each, and the action layer, or that of ordered choices."""
    read, relu, ordered = (
        READERS[manifest["extractor"]],
        bool(manifest.get("relu")),
        manifest.get("ordered") is not None,
    )
    choices = np.arange(int(manifest["actions"]), dtype=np.float32)

    def forward(w: Weights, seen: Numbers) -> Numbers:
        x, layer = read(w, seen), 0
        while f"{DENSE}{layer}.weight" in w:
            x = _dense(w, f"{DENSE}{layer}", x)
            x = _relu(x) if relu else np.tanh(x)
            layer += 2
        return _ordered(w, x, choices) if ordered else _dense(w, "action_net", x)

    return forward


def _ordered(w: Weights, latent: Numbers, choices: Numbers) -> Numbers:
    """Preferences of a rounded Gaussian over the choices."""
    away = (choices - w["action_net.centre"] - _dense(w, "action_net.mu", latent)) / (
        np.exp(w["action_net.spread"]) + LEAST_SPREAD
    )
    out: Numbers = np.float32(-0.5) * np.square(away)
    return out


def _queue(w: Weights, seen: Numbers) -> Numbers:
    """Preferences of the no-op, then of the places: released jobs by their order, above the no-op, and this above the
    held."""
    row, place = np.nonzero(seen[:, :, 0] > 0.0)
    order, release = w["mlp_extractor.score.weight"] @ job_features(seen, row, place).astype(np.float32).T
    wanted = np.full(seen.shape[:2], np.nan, np.float32)
    wanted[row, place] = np.where(release > 0.0, np.float32(SHARPNESS) * order, np.float32(np.nan))
    lowest = np.where(np.isnan(wanted), np.float32(np.inf), wanted).min(axis=1, keepdims=True)
    noop = np.where(np.isinf(lowest), np.float32(0.0), lowest) - np.float32(NEVER)
    return np.concatenate([noop, np.where(np.isnan(wanted), noop - np.float32(NEVER), wanted)], axis=1)


def _context(w: Weights, jobs: Numbers, rest: Numbers) -> Numbers:
    """c of docs/slots.md: the jobs in the mean, and the rest."""
    at = "mlp_extractor.context."
    mean = _relu(_dense(w, f"{at}embed", jobs)).mean(axis=1)
    return _relu(_dense(w, f"{at}mix", np.concatenate([rest, mean], axis=1)))


def _void(w: Weights, context: Numbers) -> Numbers:
    """The preference of the no-op."""
    return _dense(w, "mlp_extractor.void.2", _relu(_dense(w, "mlp_extractor.void.0", context)))


def _slots(w: Weights, seen: Numbers, slots: int) -> Numbers:
    """Preferences of the no-op and of the slots."""
    at = "mlp_extractor."
    features = w[f"{at}of_job.weight"].shape[1]
    jobs, rest = seen[:, : slots * features].reshape(len(seen), slots, features), seen[:, slots * features :]
    context = _context(w, jobs, rest)
    hidden = _relu(_dense(w, f"{at}of_job", jobs) + (context @ w[f"{at}of_context.weight"].T)[:, None])
    return np.concatenate([_void(w, context), _dense(w, f"{at}preference", hidden)[:, :, 0]], axis=1)


def pairs(w: Weights, seen: Numbers, shape: Shape) -> Numbers:
    """Preferences of an agent with machines of its own: machine by machine the slots, then the no-op."""
    at, end = "mlp_extractor.", shape.slots * (shape.job + shape.machines)
    jobs, rest = seen[:, :end].reshape(len(seen), shape.slots, -1), seen[:, end:]
    context = _context(w, jobs, rest)
    charts = rest[:, : shape.machines * shape.chart].reshape(len(seen), shape.machines, 1, shape.chart)
    # [batch, machines, slots, units]
    fit = jobs[:, :, shape.job :].swapaxes(1, 2)[..., None] * w[f"{at}of_fit.weight"][:, 0]
    hidden = _dense(w, f"{at}of_job", jobs[:, :, : shape.job])[:, None] + charts @ w[f"{at}of_machine.weight"].T + fit
    hidden = _relu(hidden + (context @ w[f"{at}of_context.weight"].T)[:, None, None])
    found = _dense(w, f"{at}preference", _relu(_dense(w, f"{at}deeper", hidden)))
    return np.concatenate([found.reshape(len(seen), -1), _void(w, context)], axis=1)


def forward_of(manifest: Mapping[str, Any]) -> Forward:
    """The forward pass of a manifest's network; EscalaError where it is none of these."""
    extractor = manifest["extractor"]
    if extractor == QUEUE_SCORER:
        return _queue
    if extractor == SLOT_SCORER:
        slots = int(manifest["actions"]) - 1
        return lambda w, seen: _slots(w, seen, slots)
    if extractor not in READERS:
        raise EscalaError(f"a network of {extractor} cannot be exported: use the trained agent itself")
    return _layers(manifest)
