"""`escala doctor --warm`: the code of the usual paths is compiled beforehand, and kept."""

from __future__ import annotations

from escala.cli.terminal import Begin
from escala.extras import found

SCHEDULERS = ("fcfs", "first-fit", "sjf", "easy", "saf", "conservative")
SHUTDOWNS = ("never", "timeout:300", "hold:0.25")
ASKED = (("easy", "timeout:300"), ("saf", "hold:0.25"), ("conservative", "never"), ("slurm", "never"))
"""Of desks, as `escala serve` and `escala beside` ask them."""
BOUNDED = ("bounded-slowdown", "waste")
LIMIT_S = 120.0  # of `escala bound`, compilation included; once compiled the whole takes a second
JOBS = {
    "submit_s": [0.0, 10.0, 20.0],
    "runtime_s": [100.0, 50.0, 30.0],
    "walltime_s": [200.0, 60.0, 40.0],
    "cores": [2, 4, 1],
}
CROWD = {
    "submit_s": [10.0 * k for k in range(24)],
    "runtime_s": [20.0 + 37 * k % 90 for k in range(24)],
    "walltime_s": [120.0] * 24,
    "cores": [1 + 5 * k % 8 for k in range(24)],
}
"""Jobs that wait, so that `escala bound` has something to search."""


def warm(begin: Begin) -> list[str]:
    """Read a line of SWF, play three jobs under the usual policies and by Slurm's rules, ask desks once, bound a few
    jobs, and play each environment (with Gymnasium) for a step; what was played."""
    import escala
    from escala.live.site_desk import desk_of
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
    machine = escala.read_platform("4x2:grid5000")
    for scheduler, shutdown in ASKED:
        begin(f"warming: a desk of {scheduler}")
        desk_of(machine, scheduler, shutdown, rebuild=scheduler == "conservative").warm()
        played.append(f"desk of {scheduler} + {shutdown}")
    for objective in BOUNDED:
        begin(f"warming: bound of the {objective}")
        escala.bound(escala.Workload.from_jobs(CROWD), machine, objective, limit_s=LIMIT_S)
        played.append(f"bound of the {objective}")
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
