"""Campaigns: logs x platforms x schedulers x shutdown policies x options x seeds, as one table of runs.

`definition` what is asked for, checked before anything runs; `beside` paths in its file; `runs` every run with the hash
of all that it depends on; `trial` what can never run, said before the first run;
`work` one run in whatever process of an engine (`escala.engines`); `as_text` runs as plain text, which `task` reads on
Slurm; `journal` what is finished, line by line; `campaign` all of it, and the table.
"""

from escala.campaigns.campaign import Campaign, campaign

__all__ = ["Campaign", "campaign"]
