"""The model of run times that is fitted to a log's own past, where a predictor is asked for by the name `model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from escala.errors import EscalaError
from escala.fitting.predict import model_of
from escala.policies.compose import scheduler
from escala.policies.schedulers import Scheduler
from escala.policies.tuned import parts_of
from escala.prediction.model import Model
from escala.tuning.near import FITTED, TOLD, named
from escala.tuning.replays import watching
from escala.tuning.steps import Past


def fitted(pasts: Sequence[Past], predictors: Sequence[str], seed: int) -> tuple[list[str], dict[str, Model], str]:
    """(the predictors, as they stand behind a scheduler's name; the fitted model by its own; why there is none, "":
    there is, or none was asked for). A model is of one log: of several none is fitted."""
    rest = [TOLD if one == FITTED else one for one in predictors]
    if FITTED not in predictors:
        return rest, {}, ""
    past, others = pasts[0], [one for one in rest if one != TOLD]
    if len(pasts) > 1:
        return others, {}, "No model of run times was fitted: it is of one log, and the policy of several."
    watching(past.replays.begin, "fitting a model of run times")
    options = {name: value for name, value in past.replays.options.items() if name != "seed"}
    try:
        model = model_of(
            past.log, past.replays.machine, past.split.at_s, seed=seed, pieces=past.replays.keep, **options
        )
    except EscalaError as error:
        return others, {}, f"No model of run times was tried: {error}."
    return rest, {TOLD: replace(model, name=TOLD)}, ""


def with_models(name: str, models: Mapping[str, Model]) -> str | Scheduler:
    """The scheduler of a name, which is itself enough unless it tells of a fitted model."""
    said = parts_of(name)
    told: dict[str, Any] = {key: models[said[key]] for key in ("estimate", "order_estimate") if said.get(key) in models}
    if not told:
        return name
    return replace(scheduler(named(said["formula"], said.get("guard", ""))), **told, name=name)
