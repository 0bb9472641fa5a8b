"""Slurm's rules against what real daemons did."""
