"""Prices of busy nodes: the Lagrangian of D(t) <= n(t), improved in floats and proved in integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.optimum.power import PowerInstance, waste_of
from escala.optimum.prices import BLOCK, CLIMBING, GRID, PROOF, climb_from, least_costs, prefix_of
from escala.optimum.record import Record
from escala.optimum.switching import CLUSTER, LIVES, NODES, least_life, lives_of, subgradient_nodes

SCALE = 1 << 20  # energies count 2^-20 J, rounded down


class NodeDual:
    """Prices under improvement, in joules per node and tick; energies whole in units of 1 / SCALE joules, rounded
    down."""

    def __init__(self, instance: PowerInstance, max_cells: int) -> None:
        self.instance = instance
        end = int((instance.latest + instance.length).max()) - instance.first
        unit = int(
            np.gcd.reduce(
                np.concatenate([instance.release - instance.first, instance.latest - instance.release, instance.length])
            )
        )
        self.width = unit * max(1, -(-end // (unit * max_cells)))
        self.cells = -(-end // self.width)
        self.free = (instance.soonest - instance.first) // self.width  # switching off costs nothing from this edge on
        # where idle nodes cost nothing, what a node costs less its price must not be above 0
        self.unsure = np.zeros((1, self.cells), bool)
        for begin, finish in instance.unsure():
            self.unsure[0, (begin - instance.first) // self.width : -((instance.first - finish) // self.width)] = True
        self.iterations = 0
        # more nodes than all windows together can use are of no use; leaving them out lowers no schedule's waste below
        # the bound
        window = np.concatenate([instance.release, instance.latest + instance.length])
        edges, where = np.unique(window, return_inverse=True)
        most = int(np.cumsum(np.bincount(where, np.concatenate([instance.nodes, -instance.nodes]), edges.size)).max())
        self.total, self.warm = min(instance.total, most), min(instance.on_at_start, most)
        self._climbing, self._nodes = self._made()

    def _made(self) -> tuple[Record, Record]:
        """What the compiled steps work with."""
        instance = self.instance
        idle = instance.idle_w * instance.tick_s
        work = float((instance.length * instance.nodes).sum()) * idle
        # nodes on earn what they cost at first, and the bound is 0
        climbing = Record(CLIMBING, **self._jobs(np.float64), **climb_from(np.full((1, self.cells), idle, np.float64)))
        lives = lives_of((idle, instance.on_j, instance.off_j), self.free, self.width, climbing.prices)
        return climbing, Record(NODES, **lives, cluster=np.array((self.total, self.warm, work), CLUSTER))

    def _jobs(self, number: type[np.number[Any]]) -> dict[str, NDArray[Any]]:
        """The jobs' fields of `prices.priced`: delay costs nothing."""
        instance = self.instance
        latest = instance.latest - instance.first
        return {
            "grid": np.array((self.width,), GRID),
            "earliest": instance.release - instance.first,
            "latest": latest,
            "length": instance.length,
            "demand": instance.nodes[:, None],
            "ready": latest,
            "weight": np.zeros(latest.size, number),
        }

    @property
    def bound(self) -> float:
        """Best bound so far in joules, in floats: not yet proved."""
        return float(self._climbing.climb["bound"])

    def energies(self) -> tuple[int, int, int]:
        """Idle energy of a node and tick, of switching on, of switching off, in 1 / SCALE joules."""
        instance = self.instance
        return tuple(
            int(Fraction(j) * SCALE)
            for j in (Fraction(instance.idle_w) * Fraction(instance.tick_s), instance.on_j, instance.off_j)
        )  # type: ignore[return-value]

    def eager(self) -> float:
        """Waste of starting every job at its release, were there nodes enough: only something to aim at."""
        wide = replace(self.instance, total=max(self.instance.total, int(self.instance.nodes.sum())))
        return waste_of(wide, self.instance.release)

    def improve(self, target: float, rounds: int, expired: Callable[[], bool]) -> bool:
        r, idle = self._climbing, self.instance.idle_w * self.instance.tick_s
        r.climb["theta"], r.climb["stalls"] = 1.0, 0
        r.prices[:], r.direction[:] = r.best, 0.0
        while rounds > 0:
            chunk = min(rounds, 1 if self.unsure.any() else 50)
            done = subgradient_nodes(r.table, self._nodes.table, chunk, target)
            self.iterations += done
            rounds -= chunk
            if self.unsure.any():
                np.maximum(r.prices, idle, out=r.prices, where=self.unsure)
                if r.climb["theta"] < 1e-3 or target - self.bound <= 1e-9 * target:
                    return False
            elif done < chunk:
                return False
            if rounds % 50 == 0 and expired():
                return True
        return False

    def proof(self) -> Fraction:
        """The bound at the best prices rounded down to whole units, in integers."""
        instance = self.instance
        best, energies = self._climbing.best, self.energies()
        idle, on, off = energies
        # sums of prices and of idle energy stay below 2^60, or nothing is claimed
        most = (
            float(best.sum()) * self.width * SCALE * int(instance.nodes.max())
            + 2.0 * idle * self.width * self.cells
            + on
            + off
        )
        if most > 2.0**60:
            return Fraction(0)
        whole = np.floor(best * SCALE).astype(np.int64)
        whole[self.unsure] = np.maximum(whole[self.unsure], idle)
        jobs = Record(
            PROOF,
            **self._jobs(np.int64), prices=whole, prefix=prefix_of(whole, self.width),
            block=np.zeros(BLOCK, np.int64), least=np.zeros(instance.release.size, np.int64),
        )  # fmt: skip
        least_costs(jobs.table)
        one = Record(LIVES, **lives_of(energies, self.free, self.width, whole))
        cold, warm = (least_life(one.table, on_at_start) for on_at_start in (0, 1))
        nodes = (self.total - self.warm) * int(cold) + self.warm * int(warm)
        work = sum(int(p) * int(q) for p, q in zip(instance.length, instance.nodes))
        return max(Fraction(0), Fraction(sum(jobs.least.tolist()) + nodes - idle * work, SCALE))

    def peak(self) -> Fraction:
        """Switching on as many nodes as some instant needs for certain: the widest job, or jobs whose latest starts and
        earliest ends overlap.
        """
        instance = self.instance
        sure = instance.latest < instance.release + instance.length
        ticks = np.concatenate([instance.latest[sure], (instance.release + instance.length)[sure]])
        change = np.concatenate([instance.nodes[sure], -instance.nodes[sure]])
        edges, where = np.unique(ticks, return_inverse=True)
        overlap = int(np.cumsum(np.bincount(where, change, edges.size)).max()) if edges.size else 0
        need = max(int(instance.nodes.max()), overlap) - instance.on_at_start
        return Fraction(instance.on_j) * max(0, need)
