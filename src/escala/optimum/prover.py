"""Runs one solver on one model, as a script in a process of its own: solvers can then be stopped at any moment, and do
not meet each other's libraries.

(highspy 1.15 and OR-Tools 9.15 cannot even be imported together.) Reads an .npz from standard input and writes
messages, one JSON object a line: {"bound": b}, {"solution": [...]}, {"done": "optimal" | "limit", "version": "..."}.
HiGHS's own log goes the same way; its column of best bounds is read by the parent. Imports nothing of Escala.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import numpy as np


def say(**message: Any) -> None:
    """One message to the parent."""
    print(json.dumps(message), flush=True)  # noqa: T201


def milp(data: Any, limit_s: float) -> None:
    """HiGHS on a programme as `timeindexed.Model`, whose columns are all whole. known: a solution that can hardly be
    bettered is among its columns, so the heuristics, two fifths of the time, are left out."""
    import highspy

    columns, rows = data["cost"].size, data["low"].size
    order = np.lexsort((data["rows"], data["columns"]))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = data["cost"], np.zeros(columns), data["top"]
    lp.row_lower_, lp.row_upper_ = data["low"], data["high"]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.searchsorted(data["columns"][order], np.arange(columns + 1)).astype(np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = data["rows"][order].astype(np.int32), data["entries"][order]
    lp.integrality_ = [highspy.HighsVarType.kInteger] * columns
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {"threads": 1, "time_limit": limit_s, "mip_rel_gap": 1e-7, "mip_min_logging_interval": 1.0}
    if data["known"]:
        options |= {"mip_heuristic_effort": 0.0}
        options |= {f"mip_heuristic_run_{name}": False for name in ("rins", "rens", "root_reduced_cost")}
    for name, value in options.items():
        if solver.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise RuntimeError(f"HiGHS {solver.version()} has no option {name}")
    if solver.passModel(lp) == highspy.HighsStatus.kError or solver.run() == highspy.HighsStatus.kError:
        raise RuntimeError("HiGHS refuses the model")  # what it then says of bounds means nothing
    info = solver.getInfo()
    say(bound=float(info.mip_dual_bound))
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        say(solution=list(solver.getSolution().col_value))
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    say(done="optimal" if proved else "limit", version=f"highspy {solver.version()}")


def cpsat(data: Any, limit_s: float) -> None:
    """CP-SAT: start variables with holes in their domains, one cumulative a kind, equal jobs in order of release."""
    from importlib.metadata import version

    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    length, demand, capacity, ready, weight = (
        data[k].tolist() for k in ("length", "demand", "capacity", "ready", "weight")
    )
    first, lows, highs = data["first"].tolist(), data["lows"].tolist(), data["highs"].tolist()
    starts, jobs = [], range(len(length))
    for j in jobs:
        spans = [[lows[k], highs[k]] for k in range(first[j], first[j + 1])]
        starts.append(model.new_int_var_from_domain(cp_model.Domain.from_intervals(spans), f"s{j}"))
    intervals = [model.new_fixed_size_interval_var(starts[j], length[j], f"i{j}") for j in jobs]
    for kind, units in enumerate(capacity):
        users = [j for j in jobs if demand[j][kind] > 0]
        model.add_cumulative([intervals[j] for j in users], [demand[j][kind] for j in users], units)
    for before, after in data["pairs"].tolist():
        model.add(starts[before] <= starts[after])
    known = data["known"].tolist()
    for j in jobs:
        model.add_hint(starts[j], known[j])
    low, high = int(data["low"]), int(data["high"])
    total = model.new_int_var(low, high, "total")
    if bool(data["makespan"]):
        for j in jobs:
            model.add(total >= starts[j] + length[j])
    else:
        late = []
        for j in jobs:
            if ready[j] == int(data["release"][j]):
                late.append(starts[j] - ready[j])
                continue
            excess = model.new_int_var(0, max(0, highs[first[j + 1] - 1] - ready[j]), f"l{j}")
            model.add(excess >= starts[j] - ready[j])
            late.append(excess)
        model.add(total == sum(w * x for w, x in zip(weight, late)))
    model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    solver.parameters.max_time_in_seconds = limit_s
    solver.parameters.random_seed = 0
    solver.best_bound_callback = lambda bound: say(bound=float(bound))
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        say(solution=[solver.value(s) for s in starts])
    say(bound=float(solver.best_objective_bound))
    say(done="optimal" if status == cp_model.OPTIMAL else "limit", version=f"OR-Tools {version('ortools')}")


if __name__ == "__main__":
    given = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    {"milp": milp, "cpsat": cpsat}[sys.argv[1]](given, float(sys.argv[2]))
