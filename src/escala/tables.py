"""From a finished simulation to a `Result`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from escala.kernel import codes
from escala.kernel.clock import SECOND
from escala.kernel.state import World
from escala.kernel.tables import copy_chunks, count_chunks, interval_text, node_intervals
from escala.platform import Platform
from escala.result import NodeTables

WATTS = ("computing_w", "idle_w", "off_w", "switching_off_w", "switching_on_w")  # in the order of codes.LEDGER_STATES
ON = [codes.COMPUTING, codes.IDLE]  # idle GPUs draw
Array = NDArray[Any]


def chunks_of(table: Array, i: int) -> Array:
    """int64 [4, chunks]: job row, low node, high node, cores on each; sorted by job row and low node. table: of a world
    of the kernel, see `escala.kernel.world.table_of`."""
    out = np.empty((4, count_chunks(table, i)), np.int64)
    copy_chunks(table, i, out)  # by job row; only jobs that took nodes which were not on are out of order inside
    row, low = out[0], out[1]
    jumbled = row[1:][(row[1:] == row[:-1]) & (low[1:] < low[:-1])]
    if len(jumbled):
        mine = np.flatnonzero(np.isin(row, jumbled))
        out[:, mine] = out[:, mine[np.lexsort((low[mine], row[mine]))]]
    return out


def slowest_of(chunks: Array, jobs: int, speed: Array) -> Array:
    """float64 [jobs]: the speed of the slowest node of each job row, 1 of a job that has none. speed: of the nodes."""
    found = np.full(jobs, np.inf)
    if chunks.shape[1]:
        runs = np.stack([chunks[1], chunks[2] + 1], axis=1).ravel()
        np.minimum.at(found, chunks[0], np.minimum.reduceat(np.append(speed, np.inf), runs)[::2])
    return np.where(np.isinf(found), 1.0, found)


def switches_of(world: World, i: int) -> Array:
    """Every change of a node's power state, in the order of time: node, time (us), state."""
    log: Array = world.log[i, : int(world.s[i, 0]["n_log"])]
    return log


def node_texts(chunks: Array, jobs: int) -> pl.Series:
    """Interval list of the nodes of each job row, "" for a job that has not started."""
    if not chunks[2].any():  # on node 0, if at all
        placed = np.zeros(jobs, np.int64)
        placed[chunks[0]] = 1
        return pl.Series(["", "0"])[placed]
    first = np.zeros(jobs + 1, np.int64)
    np.cumsum(np.bincount(chunks[0], minlength=jobs), out=first[1:])
    text = np.empty(64 + 48 * chunks.shape[1] + jobs, np.uint8)
    length = interval_text(np.ascontiguousarray(chunks[1]), np.ascontiguousarray(chunks[2]), first, text)
    lines = pl.Series([text[: length - 1].tobytes().decode("ascii")] if jobs else [], dtype=pl.String)
    return lines.str.split("\n").explode()


def totals_of(world: World, i: int, platform: Platform, window: tuple[int, int], gpus_j: float = 0.0) -> pl.DataFrame:
    """state, seconds, joules (where every node has watts), transitions over all nodes within the window (us), as the
    kernel counts them. gpus_j: what GPUs drew more while jobs held them, J, see `NodeHistory.gpus_j`; where GPUs have
    watts there is gpu_joules too."""
    ledger = world.ledger[i]
    seconds = np.zeros(5)
    joules, of_gpus, drawn = np.zeros(5), np.zeros(5), platform.drawn
    for p, profile in enumerate(drawn.profiles):
        spent = (ledger[p]["carry"].astype(float) * float(1 << 61) + ledger[p]["node_us"].astype(float)) / SECOND
        seconds += spent
        for k, name in enumerate(WATTS):
            joules[k] += spent[k] * (profile.idle_w if k == codes.COMPUTING else getattr(profile, name))
        joules[codes.COMPUTING] += float(ledger[p]["load_s"]) * (profile.computing_w - profile.idle_w)
        of_gpus[ON] += spent[ON] * drawn.gpu_idle_w[p]
    joules[codes.COMPUTING] += gpus_j
    of_gpus[codes.COMPUTING] += gpus_j
    run = world.s[i, 0]
    still = int(run["switched_us"] < window[1])
    offs, ons = (int(run[f"switch_{name}"] + still * run[f"{name}_then"]) for name in ("offs", "ons"))
    transitions = [0, 0, 0, offs, ons]
    table = {"state": codes.LEDGER_STATES, "seconds": seconds, **_energy(platform, joules, of_gpus)}
    return pl.DataFrame({**table, "transitions": transitions})


def _energy(platform: Platform, joules: Array, of_gpus: Array) -> dict[str, Array]:
    """The columns of energy that a platform has: joules where every node has watts, and those of GPUs where they have
    some."""
    if not platform.has_energy:
        return {}
    return {"joules": joules} | ({"gpu_joules": of_gpus} if platform.drawn.counted else {})


@dataclass
class NodeHistory:
    """What every node did in one finished run, made from its allocations and its switches."""

    platform: Platform
    job_ids: pl.Series
    rows: Array  # of the workload's table, by job row
    window: tuple[int, int]  # us
    chunks: Array  # see `chunks_of`
    start: Array  # us, by job row
    runtime: Array
    load: Array
    log: Array  # see `switches_of`
    start_off: bool = False
    gpus: dict[str, Array] = field(default_factory=dict)  # kind -> held on each node of a chunk, int64 [chunks]
    vain: int = 0  # so many job rows at the end are of runs that count for nothing but their energy

    @property
    def touched(self) -> int:
        """Nodes touched by all jobs together."""
        return int((self.chunks[2] - self.chunks[1] + 1).sum())

    def tables(self) -> NodeTables:
        """The tables, on demand."""
        bound = 2 * self.touched + len(self.log) + self.platform.n_nodes
        return NodeTables(self.nodes, self.power, self.allocations, bound)

    def _which(self) -> Array:
        """The chunk of every node of every allocation."""
        return np.repeat(np.arange(self.chunks.shape[1]), self.chunks[2] - self.chunks[1] + 1)

    def _by_node(self) -> tuple[Array, Array, Array]:
        """(job row, node, cores) for every node of every allocation."""
        row, low, high, per = self.chunks
        lengths = high - low + 1
        which = self._which()
        offset = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return row[which], low[which] + offset, per[which]

    def allocations(self) -> pl.DataFrame:
        """job_id, node, cores and, where every node has watts, joules: what these cores drew while the job ran, idle
        power included, within the window."""
        row, node, cores = self._by_node()
        if self.vain:
            counted = row < len(self.rows) - self.vain
            row, node, cores = row[counted], node[counted], cores[counted]
        ids = self.job_ids[self.rows[row]] if len(row) else pl.Series([], dtype=pl.String)
        if not self.platform.has_energy:
            return pl.DataFrame({"job_id": ids, "node": node, "cores": cores})
        start = self.start[row]
        seconds = (np.minimum(start + self.runtime[row], self.window[1]) - start).clip(0) / SECOND
        drawn = self.platform.drawn
        watts = np.array([[p.idle_w, p.computing_w - p.idle_w] for p in drawn.profiles])[drawn.profile_of[node]]
        joules = (watts[:, 0] + watts[:, 1] * self.load[row]) * seconds * cores / self.platform.cores[node]
        joules += self._gpus_by_node()[1][: len(row)] if self.gpus else 0.0
        return pl.DataFrame({"job_id": ids, "node": node, "cores": cores, "joules": joules})

    def _gpus_by_node(self) -> tuple[Array, Array]:
        """(node, what its GPUs drew more for the job within the window, J) for every node of every allocation."""
        row, node, _ = self._by_node()
        begin = self.start[row]
        us = np.minimum(begin + self.runtime[row], self.window[1]) - np.maximum(begin, self.window[0])
        which = self._which()
        held = {kind: count[which] for kind, count in self.gpus.items()}
        return node, self.platform.drawn.gpus_j(held, node, us.clip(0))

    def gpus_j(self) -> float:
        """What GPUs drew more while jobs held them, J, beyond what they draw idle."""
        return float(self._gpus_by_node()[1].sum()) if self.gpus else 0.0

    def _intervals(self) -> tuple[Array, Array]:
        row, node, per = self._by_node()
        start = self.start[row]
        finish = start + self.runtime[row]
        share = self.load[row].astype(float) * per / self.platform.cores[node]
        log, size = self.log, len(row)
        first_off = np.array([p.can_switch for p in self.platform.profiles])[self.platform.profile_of] & self.start_off
        off = np.flatnonzero(first_off)
        nodes = np.concatenate([off, log["node"].astype(np.int64), node, node])
        times = np.concatenate([np.full(len(off), -1), log["time"], finish, start])
        kinds = np.concatenate([np.full(len(off), -1), np.arange(len(log)), np.full(2 * size, len(log))])
        busy = np.concatenate([np.zeros(len(off) + len(log), np.int64), -per, per])
        change = np.concatenate([np.zeros(len(off) + len(log)), -share, share])
        power = np.concatenate(
            [np.full(len(off), codes.OFF), log["state"].astype(np.int64), np.full(2 * size, codes.NONE)]
        )
        order = np.lexsort((kinds, times, nodes))
        first = np.searchsorted(nodes[order], np.arange(self.platform.n_nodes + 1))
        out = np.empty((4, len(order) + self.platform.n_nodes), np.int64)
        load = np.empty(out.shape[1])
        window = np.array(self.window, np.int64)
        k = node_intervals(times[order], busy[order], change[order], power[order], first, window, out, load)
        return out[:, :k], load[:k]

    def nodes(self) -> pl.DataFrame:
        """node, from_s, to_s, state."""
        out, _ = self._intervals()
        states = pl.Series(codes.LEDGER_STATES)
        return pl.DataFrame(
            {
                "node": out[0],
                "from_s": out[1] / SECOND,
                "to_s": out[2] / SECOND,
                "state": states[out[3]] if out.shape[1] else pl.Series([], dtype=pl.String),
            }
        )

    def power(self) -> pl.DataFrame:
        """node, state, seconds, joules (where every node has watts), transitions: five rows a node."""
        out, load = self._intervals()
        nodes, drawn = self.platform.n_nodes, self.platform.drawn
        cell = out[0] * 5 + out[3]
        seconds = np.bincount(cell, (out[2] - out[1]).astype(float), minlength=5 * nodes).reshape(nodes, 5) / SECOND
        loads = np.bincount(out[0], load * (out[3] == codes.COMPUTING), minlength=nodes) / SECOND
        watts = np.array([[p.idle_w, p.idle_w, p.off_w, p.switching_off_w, p.switching_on_w] for p in drawn.profiles])[
            drawn.profile_of
        ]
        joules = seconds * watts
        extra = np.array([p.computing_w - p.idle_w for p in drawn.profiles])[drawn.profile_of]
        joules[:, codes.COMPUTING] += loads * extra
        of_gpus = np.zeros_like(joules)
        of_gpus[:, ON] = seconds[:, ON] * drawn.gpu_idle_w[drawn.profile_of][:, None]
        if self.gpus:
            more = np.bincount(*self._gpus_by_node(), minlength=nodes)
            joules[:, codes.COMPUTING] += more
            of_gpus[:, codes.COMPUTING] += more
        transitions = np.zeros((nodes, 5), np.int64)
        for state, column in (
            (codes.SWITCHING_OFF, codes.IS_SWITCHING_OFF),
            (codes.SWITCHING_ON, codes.IS_SWITCHING_ON),
        ):
            inside = (
                (self.log["state"] == state)
                & (self.log["time"] >= self.window[0])
                & (self.log["time"] < self.window[1])
            )
            np.add.at(transitions[:, column], self.log["node"][inside], 1)
        table = {
            "node": np.repeat(np.arange(nodes), 5),
            "state": pl.Series(codes.LEDGER_STATES * nodes),
            "seconds": seconds.ravel(),
        }
        energy = _energy(self.platform, joules.ravel(), of_gpus.ravel())
        return pl.DataFrame({**table, **energy, "transitions": transitions.ravel()})

    def totals(self) -> pl.DataFrame:
        """state, seconds, joules (where every node has watts), transitions: the sum over the nodes."""
        summed = self.power().group_by("state", maintain_order=True).agg(pl.exclude("node", "state").sum())
        order = pl.DataFrame({"state": codes.LEDGER_STATES})
        return order.join(summed, on="state", how="left", maintain_order="left")
