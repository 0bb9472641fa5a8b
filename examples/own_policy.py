"""A policy of one's own: small jobs first, whatever fits now starts. Run: python examples/own_policy.py"""

import escala


def small_first(view, act):
    """Try every waiting job, the least cores x requested time first. What does not fit is refused, and changes
    nothing."""
    for job in sorted(view.queue, key=lambda job: (job.cores * job.walltime_s, job.submit_s)):
        act.start(job)


log = escala.Workload.from_jobs(
    {
        "submit_s": [0, 60, 120, 180, 240, 300],
        "runtime_s": [3600, 5400, 600, 1800, 300, 60],
        "walltime_s": [7200, 7200, 1200, 3600, 600, 600],
        "cores": [24, 48, 12, 24, 12, 36],
    }
)
for scheduler in ("fcfs", "easy", small_first):
    summary = escala.simulate(log, "4x12:grid5000", scheduler=scheduler, shutdown="timeout:300").summary()
    name = getattr(scheduler, "__name__", scheduler)
    print(f"{name:12} mean wait {summary['mean_wait_s']:6.0f} s   energy {summary['energy_j'] / 1e6:.3f} MJ")
