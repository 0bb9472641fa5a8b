"""Fitting models of run times to a log's past, and judging them on its later jobs.

`recorded` what was known of each job in a replay, `trees` LightGBM, `accuracy` how near predictions are, `predicted`
what was found and its folder, `predict` all of it. The only importer of lightgbm. What a model is and how it is asked:
`escala.prediction`.
"""

from escala.fitting.predict import predict
from escala.fitting.predicted import Predicted

__all__ = ["Predicted", "predict"]
