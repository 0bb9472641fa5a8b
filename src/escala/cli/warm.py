"""`escala doctor --warm`: the code of the usual paths is compiled beforehand, and kept."""

from __future__ import annotations

from escala.cli.terminal import Begin
from escala.extras import found

SCHEDULERS = ("fcfs", "first-fit", "sjf", "easy", "saf", "conservative")
SHUTDOWNS = ("never", "timeout:300", "hold:0.25")
JOBS = {
    "submit_s": [0.0, 10.0, 20.0],
    "runtime_s": [100.0, 50.0, 30.0],
    "walltime_s": [200.0, 60.0, 40.0],
    "cores": [2, 4, 1],
}


def warm(begin: Begin) -> list[str]:
    """Read a line of SWF, play three jobs under the usual policies and by Slurm's rules, and each environment (with
    Gymnasium) for a step; what was played."""
    import escala
    from escala.workload.swf_scan import scan_text

    begin("warming: reading a log")
    scan_text(b"1 0 0 100 2 -1 -1 2 200 -1 1 1 1 1 1 1 -1 -1\n")
    log = escala.Workload.from_jobs(JOBS)
    begin("warming: simulate and compare")
    escala.compare(log, "4x2:grid5000", schedulers=SCHEDULERS, shutdowns=SHUTDOWNS)
    played = [f"{scheduler} + {shutdown}" for scheduler in SCHEDULERS for shutdown in SHUTDOWNS]
    begin("warming: Slurm's rules")
    escala.simulate(log, "4x2:grid5000", scheduler="slurm")
    played.append("slurm")
    if found("gymnasium"):
        import importlib

        from escala.registry import ENVIRONMENTS

        for name, entry in ENVIRONMENTS.items():
            begin(f"warming: {name}")
            env = getattr(importlib.import_module(entry.module), entry.single)()
            env.reset(seed=0)
            env.step(0)
            played.append(name)
    return played
