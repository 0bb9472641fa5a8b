"""What an agent did on days that judged it: figures beside those of rules, kept in its folder by `escala evaluate`, and
shown on its card."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escala.described import MANIFEST
from escala.errors import EscalaError
from escala.foresight import known_by_name
from escala.metrics.compare import KNOWS
from escala.reading import own, read_json
from escala.tuning.judge import RATIOS
from escala.writing import unwritable, write_whole
from escala.writing.files import finite
from escala.writing.sealing import JUDGED, sealed_document

if TYPE_CHECKING:
    import polars as pl

    from escala.tuning.weekly import Weekly

FORMAT = 1
MOST = 12  # judgements of an agent, the latest
SAME = ("log", "platform", "window", "days", "first", "last", "reference")
"""A judgement that agrees in these takes the place of an earlier one."""
DAY = re.compile(r"(.*)#(\d+)")
ENDS = {"drain": "each run to its last job", "cut": "each cut at its end", "weeks": "in one replay of the whole log"}
STANDS = {
    "later": "All of them come after the last that it learnt from.",
    "apart": "It learnt from none of them.",
    "other": "It learnt from a log of another name.",  # which a renamed copy of its own has too
    "unknown": "Its folder does not say whether it learnt from them.",
}


def of_days(
    judged: pl.DataFrame,
    manifest: Mapping[str, Any],
    log: str,
    days: Sequence[Any],
    others: Sequence[Any] = (),
    **about: Any,
) -> Any:
    """A judgement by days. judged: as `metrics.compare.episodes` gives it; manifest: of the agent; days: Workloads;
    others: days of the log, in time order, of which none is judged; about: platform, window, and what else is to be
    kept."""
    names = ("metric", "policy", KNOWS, "mean", "change", "change_low", "change_high")
    rows = judged.select(name for name in names if name in judged.columns).to_dicts()
    row = "agent" if manifest.get("sampled", True) else "agent (argmax)"
    found = {"reference": judged["policy"][0], "acts": row if row in judged["policy"] else "agent", "figures": rows}
    told = _about(manifest, log, days, 0)
    told |= {"within": 0, "stands": "apart"} if told["within"] and _learnt_from(manifest, others) else {}
    return told | found | about


def of_weeks(
    found: Weekly, manifest: Mapping[str, Any], log: str, days: Sequence[Any], before: int, **about: Any
) -> Any:
    """A judgement by weeks of one replay. days: those of the weeks; before: jobs of the log that come before them."""
    rows = []
    for name, figures in found.figures.items():
        for ratio, metric in RATIOS.items():
            change = found.ratios.get(name, {}).get(ratio, (None, None, None))
            less = [None if one is None else one - 1.0 for one in change]
            named = dict(zip(("change", "change_low", "change_high"), less, strict=True))
            rows.append({"metric": metric, "policy": name, "mean": figures[metric], **named})
    reference = next(iter(found.figures))
    greedy = next(name for name in found.figures if name.startswith("agent ("))
    sampled = next(name for name in found.figures if name.startswith("agent"))
    acts = sampled if manifest.get("sampled", True) else greedy
    told = {"reference": reference, "acts": acts, "figures": rows, "weeks": found.weeks}
    return _about(manifest, log, days, before) | told | about


def keep(folder: Path, judgement: Mapping[str, Any], weights: str) -> Path:
    """Note a judgement of these weights (their SHA-256) in the folder of the agent; gives the file. EscalaError where
    that cannot be, or other weights lie there now."""
    path = folder / JUDGED
    if _weights(folder) != weights:
        raise EscalaError(f"{folder}: holds other weights than those that were judged: judge it again")
    fresh = finite(dict(judgement))
    others = [one for one in kept(folder) if any(one.get(name) != fresh.get(name) for name in SAME)]
    told = {"format": FORMAT, "weights_sha256": weights, "judgements": [*others, fresh][-MOST:]}
    try:
        write_whole(path, json.dumps(sealed_document(told), indent=1) + "\n")
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def kept(folder: Path) -> list[dict[str, Any]]:
    """The judgements of the agent in a folder, the latest last; none of weights that were there before. EscalaError
    where the file is damaged."""
    path = folder / JUDGED
    if not path.exists():
        return []
    told = read_json(path)
    with own(path, "file of judgements", "remove it, and judge again with escala evaluate"):
        if told["format"] != FORMAT or sealed_document(told) != told:
            raise EscalaError("was changed since it was written, or is of another version")
        return list(told["judgements"]) if told["weights_sha256"] == _weights(folder) else []


def carry(judgements: Sequence[Mapping[str, Any]], target: Path) -> None:
    """Those of an agent go with it where it is exported."""
    for judgement in judgements:
        keep(target, judgement, _weights(target))


def in_order(judgements: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """First those on days of its own log that the agent has not seen, then those on a log of another name, then the
    others; of each the latest."""
    latest = list(judgements)
    latest.reverse()
    return sorted(latest, key=lambda one: {"later": 0, "apart": 0, "other": 1}.get(one["stands"], 2))


def told(judgement: Mapping[str, Any]) -> str:
    """A judgement as a paragraph and a table."""
    metrics = list(dict.fromkeys(row["metric"] for row in judgement["figures"]))
    by_policy: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in judgement["figures"]:
        by_policy.setdefault(row["policy"], {})[row["metric"]] = row
    lines = [f"| policy | {' | '.join(metrics)} |", "|---" * (1 + len(metrics)) + "|"]
    for policy, rows in by_policy.items():
        knows = next(iter(rows.values())).get(KNOWS) or known_by_name(policy)
        plain = policy.replace("|", "\\|")
        name = f"**{plain}**" if policy == judgement["acts"] else plain
        cells = [_cell(rows[metric]) if metric in rows else "" for metric in metrics]
        lines.append(f"| {name}{f' (knows {knows})' if knows else ''} | {' | '.join(cells)} |")
    power = judgement.get("power")
    return "\n".join([_where(judgement), "", *lines, *(["", str(power)] if power else [])])


def number(value: Any) -> str:
    """A figure as it stands on a card."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _weights(folder: Path) -> Any:
    """Of which weights the folder's manifest tells."""
    manifest = read_json(folder / MANIFEST)
    return manifest.get("weights_sha256") if isinstance(manifest, dict) else None


def _about(manifest: Mapping[str, Any], log: str, days: Sequence[Any], before: int) -> dict[str, Any]:
    names = [day.name for day in days]
    jobs = sum(len(day) for day in days)
    within, stands = _standing(manifest, log, names, before)
    found = {"log": log, "days": len(names), "jobs": jobs, "first": names[0], "last": names[-1]}
    return found | {"stands": stands, "within": within}


def _learnt_from(manifest: Mapping[str, Any], days: Sequence[Any]) -> bool:
    """Are these all the days that the agent learnt from and was chosen by, as their first and last, their number and
    that of their jobs say?"""
    told = [about for key in ("workload", "validation_days") if isinstance(about := manifest.get(key), Mapping)]
    if not days or not all({"days", "jobs", "first", "last"} <= set(about) for about in told):
        return False
    ends = {about[name] for about in told for name in ("first", "last")}
    counts = [sum(about[name] for about in told) for name in ("days", "jobs")]
    return {days[0].name, days[-1].name} <= ends <= {day.name for day in days} and counts == [
        len(days), sum(len(day) for day in days)
    ]  # fmt: skip


def _standing(manifest: Mapping[str, Any], log: str, names: Sequence[str], before: int) -> tuple[int, str]:
    """How many of the days lie between the first and the last that the agent learnt from, or was chosen by; and how
    they stand to these, as `STANDS` has it."""
    told = [about for key in ("workload", "validation_days") if isinstance(about := manifest.get(key), Mapping)]
    if any("name" in about and "first" not in about for about in told):  # a log that goes on
        (about,) = told[:1]
        if about["name"] != log:
            return 0, "other"
        return 0, "later" if before >= about.get("jobs", before + 1) else "unknown"
    spans = [
        (first, last)
        for about in told
        if (first := DAY.fullmatch(str(about.get("first")))) and (last := DAY.fullmatch(str(about.get("last"))))
    ]
    ours = [found for name in names if (found := DAY.fullmatch(name))]
    if not spans or len(spans) < len(told) or len(ours) < len(names):
        return 0, "unknown"
    same = [(int(first[2]), int(last[2])) for first, last in spans if first[1] == log]
    if not same:
        return 0, "other"
    numbers = [int(one[2]) for one in ours]
    within = sum(any(low <= number <= high for low, high in same) for number in numbers)
    later = min(numbers) > max(high for _, high in same)
    return within, "within" if within else "later" if later else "apart"


def _where(judgement: Mapping[str, Any]) -> str:
    """On what it was judged, and whether that was new to it."""
    span = f"{judgement['first']} to {judgement['last']}, {judgement['jobs']} jobs"
    weeks = judgement.get("weeks")
    over = f"weeks ({weeks})" if weeks else "days"
    if judgement["stands"] == "within":
        some = f"{judgement['within']} of them lie between the first and the last that it learnt from"
        drawn = judgement.get("split")
        stands = f"{some}, so it may have seen them{f' (days drawn by {drawn})' if drawn else ''}."
    else:
        stands = STANDS[judgement["stands"]]
    return (
        f"Judged with Escala {judgement['escala']} on {judgement['days']} days of {judgement['log']} ({span}) on "
        f"{judgement['platform']}, {ENDS[judgement['window']]}. {stands} Means, and in brackets the change against "
        f"{judgement['reference']} with its 95 % interval over {over}; bold: as it acts."
    )


def _cell(row: Mapping[str, Any]) -> str:
    mean = "-" if row["mean"] is None else number(row["mean"])
    low, change, high = (row[name] for name in ("change_low", "change", "change_high"))
    if None in (low, change, high):
        return mean
    return f"{mean} ({100 * change:+.1f} % [{100 * low:+.1f}, {100 * high:+.1f}])"
