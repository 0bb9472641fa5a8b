"""`Result`: what a run leaves, as tables. Metrics, plots, reports and tests read this, never a live simulation."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from escala.errors import EscalaError, one_line, quoted
from escala.foresight import known_in
from escala.metrics import summarise
from escala.parquet import note_written, read_table
from escala.platform import Platform
from escala.reading import own, read_json
from escala.writing import SEAL, saved_folder

FORMAT = 1
SAVED = "simulate"  # the verb that leaves such a folder
AGAIN = "run it again"
JOBS = (
    "job_id",
    "submit_s",
    "start_s",
    "finish_s",
    "wait_s",
    "cores",
    "walltime_s",
    "runtime_s",
    "user",
    "state",
    "nodes",
)
TOO_MANY_INTERVALS = 30_000_000  # node intervals; about 1 GB as a table


@dataclass(frozen=True)
class NodeTables:
    """What the tables of nodes are made from, on demand: they can be far larger than the jobs."""

    nodes: Callable[[], pl.DataFrame]
    power: Callable[[], pl.DataFrame]
    allocations: Callable[[], pl.DataFrame]
    intervals: int  # upper bound of the rows of `nodes`


@dataclass(eq=False)
class Result:
    """One run.

    jobs: job_id, submit_s, start_s, finish_s, wait_s, cores, walltime_s, runtime_s, user, state, nodes; where the log
    recorded waits also recorded_wait_s and queue. totals: state, seconds, joules, transitions over all nodes. manifest:
    everything needed to run it again. There is a column joules only where every node has a power profile. `nodes`
    (node, from_s, to_s, state), `power` (node, state, seconds, joules, transitions) and `allocations` (job_id, node,
    cores) are made when first asked for. decisions: one row a command of a policy outside the kernel, where they were
    recorded.
    """

    jobs: pl.DataFrame
    totals: pl.DataFrame
    manifest: dict[str, Any]
    node_tables: NodeTables
    decisions: pl.DataFrame | None = None
    _summary: dict[str, float | int] | None = field(default=None, repr=False)

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """node, from_s, to_s, state: the life of every node; EscalaError where that is too large to make."""
        self._refuse_giants("nodes")
        return self.node_tables.nodes()

    @cached_property
    def power(self) -> pl.DataFrame:
        """node, state, seconds, joules, transitions."""
        self._refuse_giants("power")
        return self.node_tables.power()

    @cached_property
    def allocations(self) -> pl.DataFrame:
        """job_id, node, cores, joules: how many cores each job held where, and what they drew while it ran (idle power
        included)."""
        return self.node_tables.allocations()

    def _refuse_giants(self, table: str) -> None:
        if self.node_tables.intervals > TOO_MANY_INTERVALS:
            raise EscalaError(
                f"the table {table!r} of this run would have some {self.node_tables.intervals:,} rows (nodes x jobs): "
                "use totals, a shorter window, or fewer and larger nodes"
            )

    @property
    def platform(self) -> dict[str, Any]:
        """The platform's plain description; see `Platform.from_spec`."""
        spec: dict[str, Any] = self.manifest["platform"]
        return spec

    @property
    def knows(self) -> str:
        """What the policies knew of the future, "" for honest ones; see `escala.foresight`."""
        return known_in(self.manifest)

    @property
    def unseen(self) -> dict[str, str]:
        """What jobs ask for and the run did not look at: column -> why; see `escala.unseen`."""
        return dict(self.manifest.get("unseen", {}))

    def summary(self) -> dict[str, float | int]:
        """All metrics of the run, names with units; see `escala.metrics.summarise`."""
        if self._summary is None:
            self._summary = self.metrics(None)
        return dict(self._summary)

    def metrics(self, only: Collection[str] | None) -> dict[str, float | int]:
        """Of the summary, at least those that are wanted, in less time."""
        window = self.manifest["window"]
        nodes, cores = self.manifest["n_nodes"], self.manifest["n_cores"]
        return summarise(
            self.jobs,
            self.totals,
            nodes=nodes,
            cores=cores,
            start_s=window["start_s"],
            end_s=window["end_s"],
            only=only,
        )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write manifest.json, summary.json and Parquet tables into `folder`, at once: a killed run leaves no
        half-written folder.

        A folder that holds an unchanged saved Result and nothing else is replaced; any other folder that is not empty
        is refused.
        """
        target = Path(folder)
        with saved_folder(target, SAVED) as scratch:
            self._write(scratch)
        return target

    def _write(self, folder: Path) -> None:
        left_out = list(self.manifest.get("left_out", ()))  # of a loaded result: what was too large then
        self.jobs.write_parquet(folder / "jobs.parquet")
        if self.node_tables.intervals <= TOO_MANY_INTERVALS and not left_out:
            self.nodes.write_parquet(folder / "nodes.parquet")
            self.power.write_parquet(folder / "power.parquet")
            self.allocations.write_parquet(folder / "allocations.parquet")
        else:
            left_out = ["nodes", "power", "allocations"]
        self.totals.write_parquet(folder / "totals.parquet")
        if self.decisions is not None:
            self.decisions.write_parquet(folder / "decisions.parquet")
        note_written(*sorted(folder.glob("*.parquet")))
        manifest = without_places({**self.manifest, "left_out": left_out})
        (folder / "summary.json").write_text(json.dumps(_finite(self.summary()), indent=1) + "\n")
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Result:
        """Read what `save` wrote; EscalaError naming the file that is missing or broken."""
        source = Path(folder)

        def read(name: str) -> pl.DataFrame:
            try:
                return read_table(source / f"{name}.parquet").drop([] if powered else ["joules"], strict=False)
            except EscalaError as error:
                raise _unreadable(source, error) from error

        manifest = read_manifest(source)
        # of that folder, not of the run
        manifest = {name: value for name, value in manifest.items() if name not in SEAL}
        with own(source, "run", AGAIN):
            # versions before kept zeros where there were no watts
            powered = Platform.from_spec(manifest["platform"]).has_energy
            left_out = list(manifest["left_out"])
        decisions = read("decisions") if (source / "decisions.parquet").exists() else None

        def table(name: str) -> Callable[[], pl.DataFrame]:
            def make() -> pl.DataFrame:
                if name in left_out and "streamed" in manifest:
                    raise EscalaError(
                        f"{source}: a streamed run keeps no table {name!r}: simulate the log, or a part of it, in "
                        "memory"
                    )
                if name in left_out:
                    raise EscalaError(
                        f"{source}: the table {name!r} was too large to keep: run it again on a shorter window"
                    )
                return read(name)

            return make

        node_tables = NodeTables(table("nodes"), table("power"), table("allocations"), 0)
        found = cls(read("jobs"), read("totals"), manifest, node_tables, decisions)
        with own(source, "run", AGAIN):
            _check_whole(found)
        return found

    def export(self, form: str, folder: str | os.PathLike[str]) -> Path:
        """Write the run as another engine's files. form: "batsim" (jobs.csv, schedule.csv, machine_states.csv,
        consumed_energy.csv, pstate_changes.csv)."""
        if form != "batsim":
            raise EscalaError(f"unknown export {form!r}: use 'batsim'")
        from escala.export.batsim import export

        return export(self, Path(folder))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of one saved run; EscalaError where there is none, or it is of something else."""
    try:
        manifest = read_json(folder / "manifest.json")
    except EscalaError as error:
        raise _unreadable(folder, error) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _no_run(folder, manifest if isinstance(manifest, dict) else {})
    return manifest


def _check_whole(found: Result) -> None:
    """Errors of many kinds where a loaded result lacks what its readers look at."""
    found.jobs.select(JOBS)
    found.totals.select("state", "seconds")
    found.summary()
    words = [found.manifest[name] for name in ("scheduler", "shutdown")] + [
        found.manifest["workload"]["name"],
        found.knows,
    ]
    if not all(isinstance(word, str) for word in words) or not isinstance(found.manifest["options"], dict):
        raise TypeError("names or options of another kind")


def without_places(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest to be shared: the name of the log's file in place of its path, which tells a reader of a page about
    somebody's machine."""
    workload = manifest.get("workload")
    if not isinstance(workload, dict) or "path" not in (how := workload.get("read_as") or {}):
        return manifest
    shown = {"file": os.path.basename(how["path"]), **{name: value for name, value in how.items() if name != "path"}}
    return {**manifest, "workload": {**workload, "read_as": shown}}


def _no_run(folder: Path, manifest: dict[str, Any]) -> EscalaError:
    """What a folder is whose manifest is not that of one run, and what to give."""
    verb, runs = manifest.get("verb"), manifest.get("runs")
    if not isinstance(verb, str) or verb == SAVED:
        found = manifest.get("format")
        return EscalaError(
            f"{folder / 'manifest.json'}: format {found!r} is not {FORMAT}: run it again with this version of Escala"
        )
    inside = runs[0] if isinstance(runs, list) and runs and isinstance(runs[0], str) else None
    advice = (
        "give a folder written by simulate --out"
        if inside is None
        else f"give the folders of its runs, such as {quoted(inside)} in it"
    )
    return EscalaError(f"{folder}: was written by escala {one_line(verb)[:40]}, and is not one run: {advice}")


def _unreadable(folder: Path, error: Exception) -> EscalaError:
    return EscalaError(
        f"{folder} holds no readable Escala result ({str(error).splitlines()[0]}): give a folder written by simulate "
        "--out"
    )


def _finite(summary: dict[str, float | int]) -> dict[str, float | int | None]:
    """JSON has no NaN: what has no value is null."""
    return {k: None if isinstance(v, float) and v != v else v for k, v in summary.items()}
