"""A site held against its log: nodes and partitions inferred from where jobs ran, replays beside recorded waits, and
changes tried.

`inferred` makes a Site of a log that names hosts, `calibrate` says whether replays on a site stand for the cluster,
`warm_start` puts a log's running jobs onto the machine, and `what_if` replays on the site with other nodes or limits.
"""

from escala.calibration.calibrate import Calibration, calibrate
from escala.calibration.infer import Inferred, inferred
from escala.calibration.warm import Warm, warm_start
from escala.calibration.what_if import WhatIf, what_if

__all__ = ["Calibration", "Inferred", "Warm", "WhatIf", "calibrate", "inferred", "warm_start", "what_if"]
