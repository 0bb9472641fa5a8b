"""`python -m bench.bench_queue WHAT [LOG ...]`: the order of the queue on real logs, and the page
docs/studies/queue2026.md.

`scores`: one score of all logs, and for each log one of all others (`all` and the logs' names; five searches each).
`judge`: `escala tune` of each log with the score that has not seen it, judged on its later weeks. `page`: the page, its
picture and the score file that comes with Escala, from what the other two left in docs/studies/queue2026.json. Figures
are of one pool of cores and `head="latest-released"`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import escala
from bench import page_queue, picture_queue, queue_pasts
from bench.measure import machine
from escala.fitting.predict import model_of
from escala.options import Options, with_options
from escala.policies.linear import Linear
from escala.policies.score_files import written
from escala.tuning import Tuned, choice, judge
from escala.tuning.measures import Jobs, figures, jobs_of
from escala.tuning.pool import pooled
from escala.tuning.split import split_of
from escala.tuning.weights import guarded, point_of, scheduler_at
from escala.writing import write_json

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "docs" / "studies" / "queue2026.json"
SHIPPED = ROOT / "src" / "escala" / "policies" / "escala.toml"
TRACES = ROOT.parent / "shared" / "traces"
OPTIONS: dict[str, Any] = {"head": "latest-released"}
SLOWDOWN = "bounded_slowdown"
FORTNIGHT_S = 14 * 86400.0
LOGS = {
    "SDSC-SP2": ("swf/SDSC-SP2-1998-5K-sample.swf.gz", 128),
    "HPC2N-first": ("swf/HPC2N-2002-2-first3000.swf.gz", 240),
    "CERIT": ("swf/CERIT-wagap-2013.swf.gz", 2176),
    "COARE": ("swf/COARE-Saliksik-2020-cln.swf.gz", 1728),
    "KTH-SP2": ("swf/KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "Theta": ("swf/ALCF-Theta-2022.swf.gz", 4360),
    "HPC2N": ("windows/HPC2N-2002-2.2-cln", 240),
    "Curie": ("swf/CEA-Curie-2011-2.1-cln.swf.gz", 93312),
    "Mustang": ("windows/LANL-Mustang", 38400),
    "Trinity": ("windows/LANL-Trinity", 301056),
}
"""Log -> where it is, and the cores of its machine; of folders the windows of two weeks are put behind one another."""
SAME = {"HPC2N": ("HPC2N-first",), "HPC2N-first": ("HPC2N",)}
"""Logs of one machine: a score that leaves one out leaves out both."""
SCORE_OF = {"HPC2N-first": "HPC2N"}
JUDGED = ("KTH-SP2", "COARE", "CERIT", "Theta", "SDSC-SP2", "HPC2N-first", "HPC2N", "Curie")
"""Mustang and Trinity have three and four windows from different years: no weeks that follow one another."""
ALL = "all"
MOST = 2500
"""Jobs of each log that a score is searched on."""


def log_of(name: str, traces: Path) -> tuple[escala.Workload, str]:
    """A log and its platform, one pool of cores."""
    path, cores = LOGS[name]
    if not (traces / path).is_dir():
        return escala.read_workload(traces / path), f"1x{cores}"
    parts = list[pl.DataFrame]()
    for number, file in enumerate(
        sorted((traces / path).glob("*.swf.gz"), key=lambda file: int(file.name.rpartition("_")[2].split(".")[0]))
    ):
        one = escala.read_workload(file)
        ident = pl.format(f"{number}-{{}}", pl.col("job_id"))
        parts.append(
            one.jobs.with_columns(submit_s=pl.col("submit_s") + one.origin_s + number * FORTNIGHT_S, job_id=ident)
        )
    return one.with_jobs(pl.concat(parts, how="diagonal_relaxed").sort("submit_s", maintain_order=True)), f"1x{cores}"


def scores(names: list[str], traces: Path) -> None:
    """Search the scores of all logs but one, and of all."""
    logs = {name: log_of(name, traces) for name in LOGS if name != "HPC2N-first"}
    for name in names:
        began, without = time.time(), (name, *SAME.get(name, ()))
        used = [logs[one] for one in logs if one not in without]
        found = pooled(used, estimate="last2", most=MOST, jobs=1, oversized="drop", **OPTIONS)
        entry = {
            "score": dict(found.score.weights),
            "ends": [dict(end.weights) for end in found.ends],
            "seconds": time.time() - began,
        }
        _keep("scores", name, {**entry, "logs": [one for one in logs if one not in without]})
        print(name, found.score, f"{entry['seconds']:.0f} s", flush=True)


def judged(names: list[str], traces: Path, searches: int) -> None:
    """Tune each log with the score that has not seen it."""
    for name in names:
        log, platform = log_of(name, traces)
        score = Linear(tuple(_found()["scores"][SCORE_OF.get(name, name)]["score"].items()))
        began = time.time()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("others.toml").write_text(written(score))
            tuned = escala.tune(log, platform, scores=["score:others.toml"], searches=searches, jobs=1, **OPTIONS)
        seconds = time.time() - began
        entry = {
            **tuned.as_dict(),
            "seconds": seconds,
            "searches": searches,
            "escala": _escala(tuned, score, log, platform),
        }
        _keep("logs", name, {key: value for key, value in entry.items() if key not in ("who_pays", "undecided")})
        print(
            name,
            f"{seconds:.0f} s",
            tuned.chosen,
            tuned.ratio["easy"]["bounded_slowdown"],
            tuned.ratio["rule"]["bounded_slowdown"],
            flush=True,
        )


def pasts(names: list[str], traces: Path) -> None:
    """Try other ways to choose, on the pasts of these logs alone."""
    logs = dict[str, list[queue_pasts.Cut]]()
    for name in names:
        score = Linear(tuple(_found()["scores"][SCORE_OF.get(name, name)]["score"].items()))
        logs[name] = queue_pasts.cuts_of(*log_of(name, traces), score, OPTIONS)
        print(name, len(logs[name][0][0]), "candidates", flush=True)
    found = queue_pasts.summary(logs, SAME)
    for way, cuts in found.items():
        print(way, cuts)
    _store({"pasts": {"logs": names, "ways": found}})


def _escala(tuned: Tuned, score: Linear, log: escala.Workload, platform: str) -> dict[str, Any]:
    """A score on the later weeks under each estimate, with the guard of the least value on the past under the promise;
    "best": the estimate of the least value there."""
    machine_, split = escala.read_platform(platform), split_of(log, "60%")
    how = with_options(Options(), **OPTIONS)
    past, every = split.past(log), jobs_of(log, machine_, how)
    before, later = jobs_of(past, machine_, how), every.submit_s >= split.at_s
    part, weeks, week = every.part(later), split.past_weeks(before.submit_s), split.later_weeks(every.submit_s[later])

    def waits(jobs: Jobs, what: escala.Workload, scheduler: Any) -> np.ndarray:
        return escala.simulate(what, platform, scheduler, record=False, **OPTIONS).jobs["wait_s"].to_numpy()[jobs.row]

    easy, rule = (waits(every, log, one)[later] for one in ("easy", tuned.rule))
    begun, found = waits(before, past, "easy"), dict[str, Any]()
    for told, estimate in _estimates(past, machine_, split.at_s).items():
        points = guarded(point_of(score))
        tried = [waits(before, past, scheduler_at(point, estimate)) for point in points]
        values = [choice.value(before, each, begun, SLOWDOWN, weeks) for each in tried]
        excess = [tuned.promise.excess(figures(before, each), tuned.past) for each in tried]
        k = min(range(len(points)), key=lambda k: (excess[k], values[k]))
        own = waits(every, log, scheduler_at(points[k], estimate))[later]
        ours = figures(part, own)
        found[told] = {
            "guard_h": round(10.0 ** float(points[k][-1])),
            "past": [excess[k], values[k]],
            "later": ours,
            "ratio": {name: judge.ratios(part, own, each, week) for name, each in (("easy", easy), ("rule", rule))},
            "promise": {
                clause["clause"]: bool(ours[clause["figure"]] <= clause["bound"] * (1 + 1e-9))
                for clause in tuned.clauses
            },
        }
    return {**found, "best": min(found, key=lambda told: found[told]["past"])}


def _estimates(past: escala.Workload, platform: escala.Platform, at_s: float) -> dict[str, Any]:
    """By what a score can be ordered: requests, last2 where users are known, a model of the past."""
    users = past.jobs["user"].drop_nulls().n_unique() > 1
    try:
        model = {"model": model_of(past, platform, at_s, **OPTIONS)}
    except escala.EscalaError:
        model = {}
    return {"walltime": None, **({"last2": "last2"} if users else {}), **model}


def shipped(found: dict[str, Any]) -> str:
    """The text of the score file that comes with Escala."""
    every = found["scores"][ALL]
    return written(
        Linear(tuple(every["score"].items())),
        "The score of the scheduler escala, the smallest first: see docs/studies/queue2026.md.",
        f"Searched on the last {MOST:,} jobs of {', '.join(every['logs'])}.",
    )


def _found() -> dict[str, Any]:
    return json.loads(FOUND.read_text()) if FOUND.is_file() else {"scores": {}, "logs": {}}


def _keep(kind: str, name: str, entry: dict[str, Any]) -> None:
    """Put what was found into the file, at once."""
    _store({kind: {**_found()[kind], name: entry}, "machine": machine()})


def _store(more: dict[str, Any]) -> None:
    write_json(FOUND, {**_found(), **more})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bench_queue", description=__doc__)
    parser.add_argument("what", choices=["scores", "judge", "pasts", "page"])
    parser.add_argument("logs", nargs="*", help=f"{ALL}, {', '.join(LOGS)}")
    parser.add_argument("--traces", type=Path, default=TRACES, help="the folder that holds swf and windows")
    parser.add_argument("--searches", type=int, default=3, help="of tune")
    given = parser.parse_args()
    if given.what == "scores":
        scores(given.logs or [ALL, *JUDGED], given.traces)
    elif given.what == "judge":
        judged(given.logs or list(JUDGED), given.traces, given.searches)
    elif given.what == "pasts":
        pasts(given.logs or list(JUDGED), given.traces)
    else:
        FOUND.with_suffix(".md").write_text(page_queue.page(_found()), encoding="utf-8")
        FOUND.with_suffix(".svg").write_text(picture_queue.picture(_found()), encoding="utf-8")
        SHIPPED.write_text(shipped(_found()), encoding="utf-8")


if __name__ == "__main__":
    main()
