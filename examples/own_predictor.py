"""A predictor of one's own: the longest of the user's runs that have ended. Run: python examples/own_predictor.py"""

import numpy as np

import escala


class LongestRun:
    """How long a job will run: as long as the longest run of its user that has ended in this simulation."""

    name = "longest-run"

    def __init__(self):
        self.seen, self.longest = 0, {}

    def estimate(self, view, job):
        """Called when `job` is submitted. What has ended since the last call is looked at first."""
        for run in view.ended(self.seen):
            self.longest[run.user] = max(run.runtime_s, self.longest.get(run.user, 0.0))
            self.seen += 1
        return self.longest.get(job.user, job.walltime_s)


draw, jobs = np.random.default_rng(1), 3000
user = draw.integers(0, 12, jobs)
runtime = np.ceil(draw.lognormal(7.0, 1.2, 12)[user] * draw.lognormal(0.0, 0.3, jobs))
log = escala.Workload.from_jobs(
    {
        "submit_s": np.sort(draw.uniform(0.0, 14 * 86400.0, jobs)),
        "runtime_s": runtime,
        "walltime_s": np.maximum(runtime, draw.choice([3600.0, 14400.0, 86400.0], jobs)),
        "cores": 2 ** draw.integers(0, 7, jobs),
        "user": [f"user {k}" for k in user],
    }
)
for name, estimate in (
    ("requests", "walltime"),
    ("last two", "last2"),
    ("longest", LongestRun()),
    ("run times", "runtime"),
):
    summary = escala.simulate(log, "112x1:none", "easy:queue=sjf:guard=24h", estimate=estimate).summary()
    print(
        f"{name:10} mean wait {summary['mean_wait_s']:6.0f} s   bounded slowdown "
        f"{summary['mean_bounded_slowdown']:5.1f}"
    )
