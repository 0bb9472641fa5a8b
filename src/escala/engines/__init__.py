"""Engines: where pieces of work are done, such as the runs of a campaign, the pairs of a comparison or the trainings of
trials.

`engine` their names; `threads` and `pool` this machine, in threads of one process or in processes; `on_ray` Ray;
`on_slurm` an array on Slurm, each task is `task`, which reads its pieces as text (`by_text`), or the same command begun
`again`; `there` a piece on another machine.
"""

from escala.engines.engine import Each, checked, engine_of, replays_on

__all__ = ["Each", "checked", "engine_of", "replays_on"]
