"""The folder of a tuned policy: `policy.toml`, which people read and edit and `policy:DIR` runs, and what was found."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from escala.fitting.predicted import write_model
from escala.policies.linear import Linear
from escala.policies.queues import FILE
from escala.policies.score_files import written
from escala.policies.tuned import FORMAT, POLICY_FILE, parts_of
from escala.prediction.folder import PREFIX as MODEL
from escala.prediction.model import Model
from escala.tuning.choice import ranked
from escala.tuning.joint import Frontier
from escala.tuning.measures import FIGURES
from escala.tuning.near import FOLDER
from escala.tuning.several import Several
from escala.tuning.tuned import POLICY, Tuned
from escala.writing import write_json

VERB = "tune"
FOUND, RULES = "tuned.json", "rules.csv"
PAIR_HEAD = "# Chosen by escala frontier. Run it as --scheduler policy:DIR --shutdown policy:DIR.\n"
HEAD = (
    "# The order of a queue, chosen by escala tune. Run it as --scheduler policy:DIR; formula and guard may be "
    "edited.\n"
)


def write(found: Tuned | Several, work: Path) -> None:
    """Write the files of a tuned policy into a folder that is there: `policy.toml`, `tuned.json`, `rules.csv`,
    `manifest.json`."""
    logs, several = (found.logs, True) if isinstance(found, Several) else ([found], False)
    (work / POLICY_FILE).write_text(_policy(logs, with_models(found.chosen, work), several), encoding="utf-8")
    _write_parts(logs[0], work)
    write_json(work / FOUND, found.as_dict())
    _rules(logs, several).write_csv(work / RULES)
    about = [one.about["workload"] for one in logs]
    of = {"workloads": about} if several else {"workload": about[0]}
    write_json(
        work / "manifest.json", {"kind": "policy", "escala": logs[0].about["escala"], "chosen": found.chosen, **of}
    )


def _rules(logs: Sequence[Tuned], several: bool) -> pl.DataFrame:
    """Every rule on the past of every log, the best on all of them first."""
    found = list[dict[str, Any]]()
    for one in sorted(ranked([log.tried for log in logs]), key=lambda rule: (rule.excess, rule.value)):
        for log, on in zip(logs, one.on, strict=True):
            of = {"log": log.about["workload"]["name"]} if several else {}
            found.append({**of, "rule": on.name, "value": on.value, "excess": on.excess, **on.figures})
    return pl.DataFrame(found)


def _write_parts(tuned: Tuned, work: Path) -> None:
    """Write what the policy's formula and estimates name in the folder: `score.toml`, a model fitted to the past."""
    scheduler = tuned.scheduler
    if isinstance(scheduler, str):
        return
    score = scheduler.orders[0]
    for file in FILE.findall(parts_of(scheduler.name)["formula"]):
        assert isinstance(score, Linear)
        (work / file).write_text(
            written(score, "The smallest score first. Found by escala tune; weights may be edited."), "utf-8"
        )
    if isinstance(model := scheduler.order_estimate, Model):
        (work / FOLDER).mkdir()
        write_model(model, tuned.about["workload"], work / FOLDER)


def with_models(name: str, work: Path) -> str:
    """The name of a scheduler with the models of run times that it tells copied into the policy's folder, which can
    then be moved."""
    for number, path in enumerate(dict.fromkeys(FILE.findall(name)), 1):
        if f"={MODEL}{path}" in name and Path(path).is_dir():
            shutil.copytree(path, work / f"model-{number}")
            name = name.replace(f"={MODEL}{path}", f"={MODEL}model-{number}")
    return name


def _policy(logs: Sequence[Tuned], chosen: str, several: bool) -> str:
    """The text of `policy.toml`. chosen: the scheduler's name, with paths in the folder; several: logs stand in a
    list."""
    first = logs[0].about
    asked = {
        "objective": logs[0].objective,
        **{name: entry for name, entry in first["asked"].items() if entry is not None},
    }
    parts: list[tuple[str, Mapping[str, Any]]] = [
        ("", {"format": FORMAT, **parts_of(chosen), "escala": first["escala"]}),
        ("[asked]", asked),
    ]
    for tuned in logs:
        about, policy, easy = tuned.about, tuned.later[POLICY], tuned.later["easy"]
        of, later = ("log.", "later") if several else ("", "later_weeks")
        parts += [
            ("[[log]]" if several else "[log]", {**about["workload"], "platform": about["platform"], **about["split"]}),
            (f"[{of}{later}]", {name: policy[name] for name in FIGURES}),
            (f"[{of}{later}_under_easy]", {name: easy[name] for name in FIGURES}),
            (
                f"[{of}ratio_to_easy]",
                {name: list(each) for name, each in tuned.ratio["easy"].items() if None not in each},
            ),
        ]
    return HEAD + "\n".join(_section(heading, entries) for heading, entries in parts)


PAST_OF_PAIR = ("energy_j", "cost", "co2_kg", "mean_wait_s", "p95_wait_s", "max_wait_s")


def write_pair(found: Frontier, margin: float, log: Mapping[str, Any], work: Path) -> str:
    """Write the cheapest pair of a frontier within a margin as `policy.toml` of a folder that is there: for --scheduler
    policy:DIR and --shutdown policy:DIR. log: what is told of the log. Returns why nothing was written, "" where it
    was: an agent, a tuned policy, and what stands in files are not copied, and what runs today needs no folder."""
    name = found.cheapest(margin)
    scheduler, _, shutdown = name.rpartition(" + ")
    if name == found.reference:
        less = "needs less energy" if found.least == "energy_j" else "costs less"
        return f"no pair {less} than {name} within the limit on waits: there is no policy to write"
    if any(part in one for one in (scheduler, shutdown) for part in ("agent:", "policy:", "plugin:", "score:", MODEL)):
        return f"{name} stands in files of its own: run it by that name"
    asked = {"least": found.least.removesuffix("_j"), "waits_at_most": 1.0 + margin, "against": found.reference}
    parts: dict[str, Mapping[str, Any]] = {
        "": {"format": FORMAT, **parts_of(scheduler), "shutdown": shutdown, "escala": log["escala"]},
        "asked": asked,
        "log": {key: value for key, value in log.items() if key != "escala"},
        "past": {key: value for key, value in found.summaries[name].items() if key in PAST_OF_PAIR},
    }
    if found.later is not None:
        pair = found.later.pairs[name]
        parts["later_weeks"] = {"energy_j": pair.energy_j, **pair.waits}
        parts["ratio_to_reference"] = {
            "energy": list(pair.energy),
            "wait": list(pair.wait),
            "p95_wait": list(pair.p95_wait),
            **({} if pair.cost is None else {"cost": list(pair.cost)}),
        }
    (work / POLICY_FILE).write_text(
        PAIR_HEAD + "\n".join(_section(f"[{part}]" if part else "", entries) for part, entries in parts.items()),
        encoding="utf-8",
    )
    return ""


def _section(heading: str, entries: Mapping[str, Any]) -> str:
    lines = [f"{key} = {_toml(value)}" for key, value in entries.items()]
    return "\n".join([*([heading] if heading else []), *lines]) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "nan"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
