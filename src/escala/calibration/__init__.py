"""A site held against its log: nodes and partitions inferred from where jobs ran, and replays beside the waits that were recorded.

`inferred` makes a Site of a log that names hosts.
"""

from escala.calibration.infer import Inferred, inferred

__all__ = ["Inferred", "inferred"]
