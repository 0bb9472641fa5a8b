"""Digests of what Escala does, kept in `digests.json`: a change of the code's shape moves none of them.

Everything is reached through public names: the ids of the environments, `escala.simulate`, `escala.train`, ...; names
that are not public yet stand in `doors.py` alone. `python -m tests.digests` says which digests moved, `--write` keeps
what is computed now, `--long` does so for the long form (2 000 steps; every pair of policies on 40 worlds), which `make
fuzz` compares.

Schedules, joules, observations, rewards, masks and ends are hashes: equal to the last bit, on any machine. What torch
computes may differ between processors in the last bits: there a few numbers are kept beside the hash, and the tests
compare these within `NEAR` of their size. `python -m tests.digests` compares the hashes as well, so that on one machine
weights can be held to the last bit.
"""
