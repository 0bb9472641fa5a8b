"""Bridges between a desk and what runs jobs: a unix socket to which anybody writes snapshots, and the reference
simulator's protocol."""
