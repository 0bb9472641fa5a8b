"""Writing hand-made schedules down: short ways to state jobs and to read an engine's tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.laws.laws import Rows, check, rows
from tests.oracle.engines import ENGINES
from tests.oracle.worlds import Case

POWER = {
    "computing_w": 200.0,
    "idle_w": 100.0,
    "off_w": 10.0,
    "switching_off_w": 120.0,
    "switching_on_w": 150.0,
    "switch_off_s": 5.0,
    "switch_on_s": 20.0,
    "can_switch": True,
}


def job(
    job_id: str, submit_s: float, runtime_s: float, cores: int = 1, walltime_s: float | None = None, **more: Any
) -> dict[str, Any]:
    """A job; without a walltime it asks for exactly its runtime (and is killed at its end)."""
    walltime_s = runtime_s if walltime_s is None else walltime_s
    row = {"job_id": job_id, "submit_s": submit_s, "runtime_s": runtime_s, "walltime_s": walltime_s, "cores": cores}
    return {**row, "load": 1.0, "single_node": False, **more}


@dataclass
class Outcome:
    jobs: Rows
    node_rows: Rows
    power: Rows

    def _column(self, name: str) -> dict[str, Any]:
        return {row["job_id"]: row[name] for row in self.jobs}

    @property
    def start(self) -> dict[str, float | None]:
        return self._column("start_s")

    @property
    def finish(self) -> dict[str, float | None]:
        return self._column("finish_s")

    @property
    def state(self) -> dict[str, str]:
        return self._column("state")

    @property
    def nodes(self) -> dict[str, str]:
        return self._column("nodes")

    def life(self, node: int) -> list[tuple[str, float, float]]:
        """(state, from, to) of a node."""
        return [(row["state"], row["from_s"], row["to_s"]) for row in self.node_rows if row["node"] == node]

    def joules(self, node: int, state: str) -> float:
        return sum(float(row["joules"]) for row in self.power if (row["node"], row["state"]) == (node, state))

    def transitions(self, node: int) -> int:
        return sum(
            row["transitions"] for row in self.power if row["node"] == node and row["state"].startswith("switching")
        )


class Engine:
    """One of the two engines; every run is also held against the laws."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(
        self,
        jobs: list[dict[str, Any]],
        cores: list[int],
        scheduler: str = "fcfs",
        power: dict[str, Any] | None = None,
        resources: dict[str, list[int]] | None = None,
        powers: list[dict[str, Any]] | None = None,
        features: list[list[str]] | None = None,
        *,
        speeds: list[float] | None = None,
        partitions: dict[str, list[int]] | None = None,
        **options: Any,
    ) -> Outcome:
        """power: of every node; powers: of each node by itself; features: of each of the nodes n0, n1, ..., and
        speeds; partitions: nodes of each."""
        profiles = powers or [power or POWER]
        platform = {"cores": cores, "profiles": profiles, "profile_of": [k if powers else 0 for k in range(len(cores))]}
        platform["resources"] = resources or {}
        if features is not None:
            platform |= {"features": features, "names": [f"n{k}" for k in range(len(cores))]}
        platform |= {} if speeds is None else {"node_speed": speeds}
        if partitions is not None:
            platform["partitions"] = [{"name": name, "nodes": nodes} for name, nodes in partitions.items()]
        case = Case(platform, jobs, {"scheduler": scheduler, **options})
        result = ENGINES[self.name](case)
        check(result, jobs, platform, options.get("until_s"))
        return Outcome(rows(result.jobs), rows(result.nodes), rows(result.power))
