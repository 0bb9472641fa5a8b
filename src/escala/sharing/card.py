"""The card of a policy: what it is, what it was trained on, the evidence, the licence, the version, how to use it.
Nothing is added to what the folder itself says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from escala.described import EXPORTED, POLICY, Contents
from escala.sharing import evidence

FILE = "README.md"
NO_EVIDENCE = "The folder keeps no figures from later jobs."
JUDGED_BY_DAYS = ("agent", EXPORTED[0])
BY_DAYS = ("escala/OffReservation-v0", "escala/Scheduling-v0")
"""Kinds and environments of the agents that `escala evaluate` judges."""
NO_LICENCE = "None is named: ask its author before you use it."


def card(found: Contents, repo: str, licence: str | None = None) -> str:
    """The text of README.md, with the head that hubs of models read. repo: where it is shared; licence: its short name,
    such as mit."""
    head = [
        "---",
        "library_name: escala",
        "tags: [escala, batch-scheduling]",
        *([f"license: {licence}"] if licence else []),
        "---",
    ]
    sections = {
        "What it is": f"{_article(found.kind)} {found.kind} for batch clusters: `{found.what}`.{_power(found)}",
        "Trained on": f"{found.trained_on}.",
        "Evidence": _evidence(found),
        "Licence": licence or NO_LICENCE,
        "Version": f"Made with Escala {found.version}.",
        "How to use it": _use(found, repo),
    }
    body = [f"## {title}\n\n{text}" for title, text in sections.items()]
    return "\n".join(head) + "\n\n" + "\n\n".join([f"# {repo.rpartition('/')[2]}", *body]) + "\n"


def _article(kind: str) -> str:
    return "An" if kind[0] in "aeio" else "A"


def _power(found: Contents) -> str:
    shutdown = found.manifest.get("shutdown") if found.kind == POLICY else None
    return f" Nodes are switched off by `{shutdown}`." if shutdown else ""


def _evidence(found: Contents) -> str:
    """The figures that the folder keeps, as they stand there."""
    told: Mapping[str, Any] = found.manifest
    if found.kind != POLICY:
        return _of_agent(found)
    later = told.get("later_weeks")
    if not isinstance(later, Mapping):
        return f"{NO_EVIDENCE} Judge it on a log of your own with `escala compare`."
    easy = told.get("later_weeks_under_easy")
    ratio = told.get("ratio_to_easy", told.get("ratio_to_reference"))
    rows = []
    if isinstance(easy, Mapping):
        rows += ["| figure on later weeks | this policy | easy |", "|---|---|---|"]
        rows += [
            f"| {name} | {evidence.number(value)} | {evidence.number(easy.get(name))} |"
            for name, value in later.items()
        ]
    else:
        rows += [
            "| figure on later weeks | this policy |",
            "|---|---|",
            *(f"| {name} | {evidence.number(value)} |" for name, value in later.items()),
        ]
    if isinstance(ratio, Mapping) and ratio:
        rows += ["", "Over those of the reference, with the interval over whole weeks (below 1: better):", ""]
        rows += [
            f"- {name}: {', '.join(map(evidence.number, value))}"
            for name, value in ratio.items()
            if isinstance(value, list)
        ]
    return "\n".join(rows)


def _of_agent(found: Contents) -> str:
    """The judgements kept with an agent, or that there is none and how to come by one; and what its training says."""
    told = found.manifest
    days, returned = told.get("validation_days"), told.get("mean_return")
    trained = []
    if isinstance(days, Mapping):
        trained.append(f"Its weights were chosen on {days.get('jobs')} other jobs of {days.get('days')} days.")
    if isinstance(returned, float):
        trained.append(f"Mean return at the end of its training: {returned:.6g}.")
    judged = evidence.kept(found.folder) if found.kind in JUDGED_BY_DAYS else []
    if judged:
        return "\n\n".join([*map(evidence.told, evidence.in_order(judged)), " ".join(trained)]).rstrip()
    if found.kind in JUDGED_BY_DAYS and told.get("env_id") in BY_DAYS:
        way = "`escala evaluate DIR LOG --after N` judges it on days that it has not seen, and keeps that for its card."
    else:
        way = "Judge it on a log of your own: `escala compare LOG --platform SPEC --schedulers easy,agent:DIR`."
    return " ".join([NO_EVIDENCE, *trained, way])


def _use(found: Contents, repo: str) -> str:
    pull = f"escala policy pull {repo} --out policy"
    if found.kind == POLICY:
        second = " --shutdown policy:policy" if found.manifest.get("shutdown") else ""
        use = f"escala simulate LOG --platform SPEC --scheduler policy:policy{second}"
    elif found.kind == "exported team":
        use = "escala simulate LOG --platform SPEC --scheduler agent:policy"
    elif found.kind == "team":
        use = "python -c \"import escala.agents; print(escala.agents.load_team('policy'))\""
    else:
        use = "escala evaluate policy LOG --after 20 --days 5"
    return f"```\n{pull}\n{use}\n```"
