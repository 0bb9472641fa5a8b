"""Beside a Slurm: its clients are read, a desk is asked, and guards decide what may be done about it; a journal keeps
everything.

`commands` runs clients, `rest` asks slurmrestd; `text` and `json_output` read what they say into `Seen`; `snapshots`
turns that into a `Snapshot`. `pretend` keeps the nodes that a policy would have off, `journal` what was seen and
wanted, `loop` goes round.
"""
