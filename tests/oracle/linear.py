"""Linear scores, smallest first, written out: what a score file says, at each decision or in each stretch of `every_s`
seconds."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

from tests.oracle.world import Job, World, microseconds

HOUR = 3.6e9
FILES = Path(__file__).parent / "score_files"
NAMES = tuple(f"score:{path}" for path in sorted(FILES.glob("*.toml")))


class Score:
    """Of one run. `renew` stands at the beginning of each decision, `score(job, world)` then gives the numbers of
    then."""

    def __init__(self, path: str) -> None:
        self.told: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        self.weights: dict[str, float] = self.told["weights"]
        self.multifactor = self.told["form"] == "multifactor"
        self.every = microseconds(self.told.get("every_s", 300.0 if self.multifactor else 0.0))
        self.clock: int | None = None
        self.of_user: dict[str, float] = {}

    def renew(self, world: World) -> None:
        if self.clock is not None and self.every > 0 and world.now // self.every == self.clock // self.every:
            return
        self.clock = world.now
        names = {job.user for job in world.jobs if job.user is not None}
        self.of_user = {name: self.user_part(name, world) for name in sorted(names)}

    def user_part(self, name: str, world: World) -> float:
        total = sum(node.cores for node in world.nodes)
        held = sum(world.cores_there(job) for job in world.running + world.given if job.user == name)
        waiting = sum(1 for job in world.queue if job.user == name)
        part = 0.0
        if self.multifactor:
            weight = self.weights.get("fair_share", 0.0)
            return -weight * self.fair_share(name, world) if weight else 0.0
        if "user_share" in self.weights:
            part += self.weights["user_share"] * (held / total)
        if "log_user_waiting" in self.weights:
            part += self.weights["log_user_waiting"] * math.log1p(waiting)
        return part

    def fair_share(self, name: str, world: World) -> float:
        """2^(-U / S), to nine digits. Core time of a stretch [from, to) is worth the integral of 2^(-(now - t) /
        half-life)."""
        rate = math.log(2.0) / (self.told.get("half_life_s", 7 * 86400.0) * 1e6)
        used: dict[str, float] = {}
        shares: dict[str, float] = {}
        for job in world.jobs:
            if job.user is None or job.submit > world.now or job.state == "REJECTED":
                continue
            shares[job.user] = self.told.get("shares", {}).get(job.user, 1.0)
            spans = [span for span in world.spans if span[0] is job]
            if job in world.running + world.given or (job.finish is not None and world.given_at[job.row] < job.finish):
                end = world.now if job.finish is None else job.finish
                spans.append((job, world.given_at[job.row], end, world.cores_there(job)))
            for _, begin, end, cores in spans:
                worth = math.exp(-rate * (world.now - end)) - math.exp(-rate * (world.now - begin))
                used[job.user] = used.get(job.user, 0.0) + cores * worth / rate
        total = sum(used.values())
        if total <= 0.0 or name not in shares:
            return 1.0
        share = shares[name] / sum(shares.values())
        return math.floor(2.0 ** -(used.get(name, 0.0) / total / share) * 1e9 + 0.5) / 1e9

    def __call__(self, job: Job, world: World) -> float:
        assert self.clock is not None
        cores = job.cores / sum(node.cores for node in world.nodes)
        wait, estimate = max(0, self.clock - job.submit), microseconds(job.order_s)
        own = self.of_user[job.user] if job.user is not None else 0.0
        if self.multifactor:
            sizes = {"large": cores, "small": 1.0 - cores, "per-time": cores / max(job.walltime_s / 60.0, 1.0)}
            fixed = -self.weights.get("job_size", 0.0) * sizes[self.told.get("size", "large")]
            return (
                fixed
                + -self.weights.get("age", 0.0) * min(wait / microseconds(self.told.get("max_age_s", 7 * 86400.0)), 1.0)
                + own
            )
        w = {
            **dict.fromkeys(("log_estimate", "log_cores", "log_estimate_x_log_cores", "log_request", "column"), 0.0),
            **self.weights,
        }
        length, size = math.log(estimate / HOUR), math.log(cores)
        request = math.log(microseconds(job.walltime_s) / HOUR)
        column = float(getattr(job, self.told["column"])) if "column" in self.told else 0.0
        rest = w["log_cores"] * size + w["log_request"] * request + w["column"] * column
        score = w["log_estimate"] * length + w["log_estimate_x_log_cores"] * (length * size) + rest
        if "log_wait" in w:
            score += w["log_wait"] * math.log1p(wait / HOUR)
        if "log_wait_over_estimate" in w:
            score += w["log_wait_over_estimate"] * math.log1p(wait / estimate)
        return score + own
