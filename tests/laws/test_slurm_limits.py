"""Limits on random worlds, held against a slow ledger of its own: the documented order, and sums over what runs at a
moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.drive import drive
from escala.platform.site_write import site_text
from escala.slurm import settings_of
from escala.slurm.arrays import arrays_of
from escala.slurm.asked import Asking
from escala.slurm.run import play

WORLDS = 40
ORIGIN = 1_800_000_007.0
TRES = ("cpu", "mem", "node", "gpu", "gpu:k")
SITE = """\
name = "limits"
[[nodes]]
names = "n[1-6]"
cores = 4
memory_mb = 4000
gpus = {k = 2}
[[partitions]]
name = "p"
nodes = "ALL"
default = true
own_qos = "part"
[[partitions]]
name = "q"
nodes = "ALL"
[slurm]
SelectTypeParameters = "CR_CPU_Memory"
SchedulerParameters = "bf_interval=5,sched_interval=10,bf_resolution=10"
"""


def table(draw: np.random.Generator, names: tuple[str, ...], group: tuple[str, ...]) -> dict[str, Any]:
    """Some limits, low enough to be reached."""
    told: dict[str, Any] = {name: int(draw.integers(1, 6)) for name in names if draw.random() < 0.3}
    for name in group:
        if draw.random() < 0.4:
            most = {"cpu": (4, 16), "mem": (800, 4000), "node": (1, 5), "gpu": (2, 6), "gpu:k": (2, 6)}
            told[name] = {kind: int(draw.integers(*most[kind])) for kind in TRES if draw.random() < 0.4} or {"cpu": 12}
    return told


def world(seed: int, folder: Path) -> tuple[Any, escala.Workload]:
    draw = np.random.default_rng([seed, 77])
    per = ("grp_jobs", "max_jobs_per_user", "max_jobs_per_account", "grp_submit", "max_submit_per_user")
    tres = ("grp_tres", "max_tres_per_user", "max_tres_per_account", "max_tres")
    own = ("grp_jobs", "max_jobs", "max_submit", "grp_submit")
    qos = {name: table(draw, per, tres) for name in ("normal", "high", "part")}
    if draw.random() < 0.5:
        qos["high"]["flags"] = ("OverPartQOS",)
    accounts = {
        name: {"parent": parent, "shares": 1, "users": {}, "limits": table(draw, own, ("grp_tres",))}
        for name, parent in (("root", "root"), ("a", "root"), ("b", "a"), ("c", "root"))
    }
    accounts["b"] |= {"users": {"x": 1}, "user_limits": {"x": table(draw, own, ("grp_tres",))}}
    plain = folder / f"{seed}.toml"
    plain.write_text(SITE)
    from dataclasses import replace

    site = replace(escala.read_site(plain), qos=dict.fromkeys(qos, 1), qos_limits=qos, accounts=accounts)
    plain.write_text(site_text(site))
    n = 60
    some = draw.random((2, n))
    run = draw.exponential(100, n).clip(1)
    columns = {
        "submit_s": np.sort(draw.uniform(0, 900, n)),
        "runtime_s": run,
        "walltime_s": run + draw.exponential(200, n),
        "cores": draw.integers(1, 7, n),
        "memory_mb_per_core": draw.integers(50, 400, n),
        "nodes": [int(k) if s < 0.3 else None for k, s in zip(draw.integers(1, 3, n), some[0], strict=True)],
        "gpus_per_node": [int(k) if s < 0.3 else None for k, s in zip(draw.integers(1, 3, n), some[1], strict=True)],
        "gpu_kind": ["k" if s < 0.2 else None for s in some[1]],
        "user": draw.choice(["x", "y", "z"], n).tolist(),
        "account": draw.choice(["a", "b", "c"], n).tolist(),
        "qos": draw.choice(["normal", "high"], n).tolist(),
        "partition": draw.choice(["p", "q", "p,q"], n).tolist(),
    }
    return escala.read_site(plain), escala.Workload.from_jobs(columns, origin_s=ORIGIN)


class Ledger:
    """What runs at one moment, and the sums over it that each limit speaks of."""

    def __init__(self, site: Any, jobs: escala.Workload, run: t.World) -> None:
        self.site, self.jobs, self.run = site, jobs.jobs, run
        self.above = {name: told["parent"] for name, told in site.accounts.items()}

    def chain(self, account: str) -> list[str]:
        found = [account]
        while found[-1] != "root":
            found.append(self.above[found[-1]])
        return found

    def partition(self, j: int) -> str:
        """The partition by which the job runs, or could."""
        return self.site.partitions[self.run.records.part[self.run.jobs.ran[j]]].name

    def qos(self, j: int) -> list[str]:
        """The QOS that count for a job, the first first."""
        mine = self.jobs["qos"][j]
        order = ["part", mine] if self.partition(j) == "p" else [mine]
        return order[::-1] if "OverPartQOS" in self.site.qos_limits.get(mine, {}).get("flags", ()) else order

    def held(self, j: int) -> dict[str, Any]:
        at = np.arange(self.run.jobs.first[j], self.run.jobs.last[j])
        taken = self.run.allocated
        gpus = int(taken.gpus[at].sum())
        return {
            "cpu": int(taken.cpus[at].sum()),
            "mem": int(taken.memory[at].sum()),
            "node": set(taken.node[at]),
            "gpu": gpus,
            "gpu:k": gpus,
        }

    def total(self, jobs: list[int], kind: str) -> int:
        if kind == "jobs":
            return len(jobs)
        if kind == "node":
            return len(set().union(*(self.held(j)["node"] for j in jobs)))
        return sum(self.held(j)[kind] for j in jobs)

    def wanted(self, j: int) -> list[tuple[str, str, int, list[str]]]:
        """(whose, kind, most, key) of each limit that holds for a job, by the documented order."""
        user, account = self.jobs["user"][j], self.jobs["account"][j]
        found, seen = [], set()
        for name in self.qos(j):
            bounds = self.site.qos_limits.get(name, {})
            for whose, form, key in (
                ("qos", "grp_{}", [name]),
                ("qos user", "max_{}_per_user", [name, user]),
                ("qos account", "max_{}_per_account", [name, account]),
            ):
                mine = {"jobs": bounds.get(form.format("jobs"))} | bounds.get(form.format("tres"), {})
                found += [
                    (whose, kind, most, key)
                    for kind, most in mine.items()
                    if most is not None and (whose, kind) not in seen
                ]
                seen |= {(whose, kind) for kind, most in mine.items() if most is not None}
        own = self.site.accounts[account].get("user_limits", {}).get(user, {})
        levels = [("user", own, [account, user])]
        levels += [("account", self.site.accounts[name].get("limits", {}), [name]) for name in self.chain(account)]
        for whose, bounds, key in levels:
            mine = {"jobs": bounds.get("grp_jobs")} | bounds.get("grp_tres", {})
            found += [
                (whose, kind, most, key)
                for kind, most in mine.items()
                if most is not None and ("qos", kind) not in seen
            ]
        each = [bounds["max_jobs"] for _, bounds, _ in levels if "max_jobs" in bounds][:1]
        if each and ("qos user", "jobs") not in seen and ("qos account", "jobs") not in seen:
            found.append(("user", "jobs", each[0], [account, user]))
        return found

    def members(self, running: list[int], whose: str, key: list[str]) -> list[int]:
        """Which of the running jobs count there."""
        user, account = self.jobs["user"], self.jobs["account"]
        if whose.startswith("qos"):
            inside = [j for j in running if key[0] in self.qos(j)]
            column = {"qos": None, "qos user": user, "qos account": account}[whose]
            return inside if column is None else [j for j in inside if column[j] == key[1]]
        if whose == "user":
            return [j for j in running if account[j] == key[0] and user[j] == key[1]]
        return [j for j in running if key[0] in self.chain(account[j])]

    def least_spare(self, j: int, running: list[int]) -> float:
        """How much is left under the tightest limit of job j, with all that runs; below 0: one is exceeded."""
        least = np.inf
        for whose, kind, most, key in self.wanted(j):
            members = self.members(running, whose, key)
            others = set().union(*(self.held(k)["node"] for k in members if k != j))
            if (kind == "node" and self.held(j)["node"] <= others) or (
                kind == "gpu:k" and self.jobs["gpu_kind"][j] is None
            ):
                continue  # it adds no node; and a limit of a kind holds for those that ask for the kind, as in Slurm
            if kind in ("gpu", "gpu:k") and self.held(j)[kind] == 0:
                continue  # others may be over it, whose QOS hides it (_validate_tres_usage_limits in acct_policy.c)
            least = min(least, most - self.total(members, kind))
        return least


@pytest.mark.parametrize("seed", range(WORLDS))
def test_no_limit_is_ever_exceeded(tmp_path: Path, seed: int) -> None:
    """At each start, all limits of the job that starts hold for the sums over what runs then; every job runs, is
    refused, or can never.

    Of jobs that start at one moment the order is not known; there must be one: a job that can be the last is taken
    away, and so on.
    """
    site, jobs = world(seed, tmp_path)
    settings = settings_of(site)
    asked = Asking(jobs, site, settings).asked()
    run = play(jobs, site, settings, asked)
    ledger = Ledger(site, jobs, run)
    ended = np.flatnonzero(run.jobs.state == t.ENDED).tolist()
    assert (np.delete(run.limits.used, t.USED_SUBMITTED, axis=1) == 0).all(), "all has been given back"
    assert (run.limits.on_node == 0).all()
    waiting = (run.jobs.state == t.WAITING).sum()
    assert waiting + len(ended) + (run.jobs.state == t.NEVER).sum() == len(jobs)
    assert waiting == 0 or "node" in str(site.spec()), (
        "only a limit of nodes can be met by none of the nodes that are chosen"
    )
    reached = 0
    for now in np.unique(run.jobs.start[ended]):
        running = [k for k in ended if run.jobs.start[k] <= now < run.jobs.finish[k]]
        begun = [k for k in running if run.jobs.start[k] == now]
        while begun:
            spare = {j: ledger.least_spare(j, running) for j in begun}
            last = max(begun, key=lambda j: spare[j])
            assert spare[last] >= 0, (jobs.jobs["job_id"][last], now)
            reached += spare[last] == 0
            begun.remove(last)
            running.remove(last)
    if len(ended) > 20:
        assert reached or not any(site.qos_limits.values()), "limits are low enough to be met"


@pytest.mark.parametrize("seed", range(0, WORLDS, 4))
def test_the_counts_are_the_sums_over_what_runs(tmp_path: Path, seed: int) -> None:
    """At moments of a run, each row that the compiled passes keep equals the sum over the jobs that count there."""
    site, jobs = world(seed, tmp_path)
    settings = settings_of(site)
    asked = Asking(jobs, site, settings).asked()
    run = arrays_of(jobs, site, settings, asked)
    ledger = Ledger(site, jobs, run)
    names = {
        "jobs": t.USED_JOBS,
        "cpu": t.USED_CPUS,
        "mem": t.USED_MEMORY,
        "node": t.USED_NODES,
        "gpu": t.USED_GPUS,
        "gpu:k": t.USED_KINDS,
    }
    linked = sorted({row for kept in asked.bounded.classes.values() for row, limits in kept.links.items() if limits})
    number = {row: k for k, row in enumerate(linked)}
    for until in range(50, 2000, 130):
        drive(t.table_of(run), until * t.SECOND)
        running = [int(j) for j in np.flatnonzero(run.jobs.state == t.RUNNING)]
        for key, row in asked.bounded.rows.items():
            if row not in number:
                continue
            whose = {"association": "user" if len(key) == 3 else "account"}.get(
                key[0], "qos" if key[0] == "qos" else f"qos {key[0]}"
            )
            members = ledger.members(running, whose, list(key[1:]))
            for kind, column in names.items():
                if kind != "node" or run.limits.place[number[row]] >= 0:
                    assert run.limits.used[number[row], column] == ledger.total(members, kind), (until, key, kind)
