"""`python -m bench.native`: EASY on one pool, Escala's kernel beside plain C++ (`easy.cpp`), and `easy-fast` as a whole
`simulate`.

Needs g++ and the shared logs. Both replay the same arrays; fastest of several runs in turn, processor time; the sums of
all starts are compared, so that both are known to have done the same.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import escala
from bench.kernel import TRACES, synthetic
from escala.options import Options
from escala.policies import run as policies
from escala.simulation import Simulation

ROUNDS = 7
HERE = Path(__file__).parent


def logs() -> dict[str, tuple[escala.Workload, int]]:
    """Workload and cores of the pool, by name."""
    swf = TRACES / "swf"
    return {
        "lublin_256": (escala.read_workload(next(TRACES.rglob("lublin_256*"))), 256),
        "KTH-SP2": (escala.read_workload(swf / "KTH-SP2-1996-2.1-cln.swf.gz"), 100),
        "300 000 synthetic jobs, load 0.95": (synthetic(300_000, 10_000), 10_000),
    }


def kernel(workload: escala.Workload, cores: int, scheduler: str) -> tuple[float, int, Simulation]:
    """Fastest replay, us; sum of the starts, us; the last simulation."""
    options, platform = Options(record=False), escala.read_platform(f"1x{cores}")
    chosen = policies.pair(workload, scheduler, "never", options)
    best = float("inf")
    for _ in range(ROUNDS):
        simulation = Simulation(workload, platform, chosen.plan, options)
        began = time.process_time()
        policies.run(simulation, 0, chosen)
        best = min(best, time.process_time() - began)
    return best * 1e6, int(simulation.world.run[0]["start"].sum()), simulation


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program, data = Path(folder, "easy"), Path(folder, "jobs")
        subprocess.run(["g++", "-O3", "-march=native", "-std=c++17", "-o", program, HERE / "easy.cpp"], check=True)
        for name, (workload, cores) in logs().items():
            us, starts, simulation = kernel(workload, cores, "easy")
            job = simulation.world.job[0]
            rows = np.stack(
                [job[field].astype(np.int64) for field in ("submit", "runtime", "walltime", "cores")], axis=1
            )
            data.write_bytes(np.int64(len(rows)).tobytes() + rows.tobytes() + np.int64(cores).tobytes())
            out = subprocess.run(
                [program, data, str(ROUNDS)], check=True, capture_output=True, text=True
            ).stdout.split()
            plain_us, plain_starts = float(out[0]), int(out[1])
            again_us, _, _ = kernel(workload, cores, "easy")
            whole = []
            for _ in range(ROUNDS):
                began = time.process_time()
                escala.simulate(workload, f"1x{cores}", scheduler="easy-fast")
                whole.append(time.process_time() - began)
            us = min(us, again_us)
            same = "the same starts" if starts == plain_starts else f"starts differ: {starts} and {plain_starts}"
            per_job = (
                f"C++ {plain_us / len(rows):.3f} us a job, kernel {us / len(rows):.3f}, ratio "
                f"{us / plain_us:.2f} ({same})"
            )
            print(f"{name}: {len(rows):,} jobs: {per_job}; easy-fast, whole simulate: {min(whole):.4f} s")


if __name__ == "__main__":
    main()
