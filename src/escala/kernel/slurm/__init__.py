"""Slurm's rules, compiled: the event pass and the backfill pass, node choice, expected ends, priorities, on nodes that
jobs may share.

Its clock is that of slurmctld: passes come at ticks, plans are in whole seconds of unix time. The kernel beside it
decides at events, so this one has a loop of its own; starts, allocations and ends leave it as arrays, and energy is
counted from them as for every other run.
"""
