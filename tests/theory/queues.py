"""Closed forms of queueing theory, and workloads that fulfil their assumptions."""

from __future__ import annotations

import math
import random
from typing import Any


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arriving job waits in M/M/c; load = arrival rate / service rate < servers (Erlang 1917)."""
    top = load**servers / math.factorial(servers) * servers / (servers - load)
    return top / (sum(load**k / math.factorial(k) for k in range(servers)) + top)


def mean_wait_mmc(servers: int, arrival_rate: float, service_rate: float) -> float:
    """Mean wait in M/M/c, first come first served."""
    return erlang_c(servers, arrival_rate / service_rate) / (servers * service_rate - arrival_rate)


def mean_wait_mg1(arrival_rate: float, mean_s: float, mean_square_s2: float) -> float:
    """Pollaczek-Khinchine: mean wait in M/G/1."""
    return arrival_rate * mean_square_s2 / (2 * (1 - arrival_rate * mean_s))


def poisson_jobs(rng: random.Random, number: int, arrival_rate: float, runtime: Any) -> list[dict[str, Any]]:
    """One-core jobs of a Poisson process; `runtime` draws from the generator. Walltimes are far above the runtimes."""
    jobs, time = [], 0.0
    for k in range(number):
        time += rng.expovariate(arrival_rate)
        jobs.append({"job_id": str(k), "submit_s": time, "runtime_s": runtime(rng), "walltime_s": 1e6, "cores": 1})
    return jobs


def mean_and_error(values: list[float], batches: int = 40) -> tuple[float, float]:
    """Mean of a correlated series and its standard error from batch means."""
    size = len(values) // batches
    means = [sum(values[k * size : (k + 1) * size]) / size for k in range(batches)]
    mean = sum(means) / batches
    return mean, math.sqrt(sum((m - mean) ** 2 for m in means) / (batches - 1) / batches)
