"""Tuning: the order of the queue chosen by replaying a log's own past under a promise, and judged on its later weeks.

`promise` what may not get worse; `split` past and later weeks; `measures` waits in numbers; `candidates` what is tried;
`replays` one schedule after the other, kept; `choice` the best that keeps the promise; `near`, `models` and `steps`
what is tried beyond the rules, and what of it is kept; `weights`, `ground` and `search` searched scores; `pool` one
score of several logs; `judge` the later weeks, once; `weekly` any runs on them; `parts` what each part of a policy
gives there; `asked` what is asked; `tuner` all of it; `tuned` and `several` what was found; `folder` what is written;
`joint` energy against wait of pairs of policies; `unlike` whether a log's later weeks are still like its past.
"""

from escala.tuning.joint import Frontier, frontier
from escala.tuning.pool import Pooled, pooled
from escala.tuning.several import Several
from escala.tuning.tuned import Tuned
from escala.tuning.tuner import DEFAULT_PROMISE, tune, tune_several
from escala.tuning.unlike import Drift, drift

__all__ = [
    "DEFAULT_PROMISE",
    "Drift",
    "Frontier",
    "Pooled",
    "Several",
    "Tuned",
    "drift",
    "frontier",
    "pooled",
    "tune",
    "tune_several",
]
