"""Limits for every policy, on the runs of a log: of schedules (`schedule_bound`), of wasted energy (`waste_bound`), and
the share of what is possible that a policy reaches (`headroom`). The solver is `escala.optimum`."""
