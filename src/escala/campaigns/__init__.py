"""Campaigns: logs x platforms x schedulers x shutdown policies x options x seeds, as one table of runs.

`definition` what is asked for, checked before anything runs; `runs` every run with the hash of all that it depends on; `work` one run in
whatever process; `engines` where runs are made: `pool` in processes of this machine, `on_ray` on Ray, `on_slurm` as an array on Slurm (each
task is `task`, which reads its pieces `as_text`); `journal` what is finished, line by line; `campaign` all of it, and the table.
"""

from escala.campaigns.campaign import Campaign, campaign

__all__ = ["Campaign", "campaign"]
