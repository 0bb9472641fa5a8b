"""A site held against its log: nodes and partitions inferred from where jobs ran, and replays beside the waits that were recorded.

`inferred` makes a Site of a log that names hosts, `calibrate` says whether replays on a site stand for the cluster, `warm_start` puts a
log's running jobs onto the machine.
"""

from escala.calibration.calibrate import Calibration, calibrate
from escala.calibration.infer import Inferred, inferred
from escala.calibration.warm import Warm, warm_start

__all__ = ["Calibration", "Inferred", "Warm", "calibrate", "inferred", "warm_start"]
