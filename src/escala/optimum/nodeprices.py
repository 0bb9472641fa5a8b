"""Prices of busy nodes: the Lagrangian of D(t) <= n(t), improved in floats and proved in integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from escala.optimum.instance import Ints
from escala.optimum.power import PowerInstance, waste_of
from escala.optimum.prices import BLOCK, prefix_of
from escala.optimum.switching import node_path, subgradient_nodes, window_costs

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
        self.prices, self.best, self.direction = (np.zeros((1, self.cells)) for _ in range(3))
        self.best[:] = instance.idle_w * instance.tick_s  # then nodes on earn what they cost, and the bound is 0
        # where idle nodes cost nothing, what a node costs less its price must not be above 0
        self.unsure = np.zeros((1, self.cells), bool)
        for begin, finish in instance.unsure():
            self.unsure[0, (begin - instance.first) // self.width : -((instance.first - finish) // self.width)] = True
        self.numbers = np.array([-np.inf, 1.0, 0.0])
        self.iterations = 0
        # more nodes than all windows together can use are of no use; leaving them out lowers no schedule's waste below
        # the bound
        window = np.concatenate([instance.release, instance.latest + instance.length])
        edges, where = np.unique(window, return_inverse=True)
        most = int(np.cumsum(np.bincount(where, np.concatenate([instance.nodes, -instance.nodes]), edges.size)).max())
        self.total, self.warm = min(instance.total, most), min(instance.on_at_start, most)
        self.jobs = (
            instance.release - instance.first,
            instance.latest - instance.first,
            instance.length,
            instance.nodes[:, None],
        )

    @property
    def bound(self) -> float:
        """Best bound so far in joules, in floats: not yet proved."""
        return float(self.numbers[0])

    def memory(self) -> tuple[Ints, Ints]:
        """Memory of `switching.node_path`."""
        return np.zeros((2, self.cells + 1), np.int64), np.zeros((2, self.cells), np.int64)

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
        instance = self.instance
        idle = instance.idle_w * instance.tick_s
        work = float((instance.length * instance.nodes).sum()) * idle
        prefix, use, buffer = np.zeros((1, self.cells + 1)), np.zeros((1, self.cells)), np.zeros(BLOCK)
        came, path = self.memory()
        self.numbers[1], self.numbers[2] = 1.0, 0.0
        self.prices[:], self.direction[:] = self.best, 0.0
        while rounds > 0:
            chunk = min(rounds, 1 if self.unsure.any() else 50)
            done = subgradient_nodes(
                *self.jobs, self.total, self.warm, self.width, self.free, idle, instance.on_j, instance.off_j, work,
                self.prices, self.best, self.direction, self.numbers, chunk, target, prefix, use, buffer, came, path,
            )  # fmt: skip
            self.iterations += done
            rounds -= chunk
            if self.unsure.any():
                np.maximum(self.prices, idle, out=self.prices, where=self.unsure)
                if self.numbers[1] < 1e-3 or target - self.bound <= 1e-9 * target:
                    return False
            elif done < chunk:
                return False
            if rounds % 50 == 0 and expired():
                return True
        return False

    def proof(self) -> Fraction:
        """The bound at the best prices rounded down to whole units, in integers."""
        instance = self.instance
        idle, on, off = self.energies()
        # sums of prices and of idle energy stay below 2^60, or nothing is claimed
        most = (
            float(self.best.sum()) * self.width * SCALE * int(instance.nodes.max())
            + 2.0 * idle * self.width * self.cells
            + on
            + off
        )
        if most > 2.0**60:
            return Fraction(0)
        whole = np.floor(self.best * SCALE).astype(np.int64)
        whole[self.unsure] = np.maximum(whole[self.unsure], idle)
        least = np.zeros(instance.release.size, np.int64)
        window_costs(*self.jobs, self.width, whole, prefix_of(whole, self.width), np.zeros(BLOCK, np.int64), least)
        memory = self.memory()
        cold = node_path(whole, self.width, idle, on, off, self.free, 0, *memory)
        warm = node_path(whole, self.width, idle, on, off, self.free, 1, *memory)
        nodes = (self.total - self.warm) * int(cold) + self.warm * int(warm)
        work = sum(int(p) * int(q) for p, q in zip(instance.length, instance.nodes))
        return max(Fraction(0), Fraction(sum(least.tolist()) + nodes - idle * work, SCALE))

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
