"""Reading the reference engine's runs: inputs as the oracle takes them, outputs as plain rows. Independent of escala's
own readers."""

from __future__ import annotations

import csv
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

PER_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True)
class Run:
    """A run of the reference engine and how Escala is to repeat it."""

    name: str
    scheduler: str
    shutdown: str = "never"
    plan_margin_s: float | None = None
    starts: bool = True  # False: rounding in the engine's clock splits instants, so totals and energy only
    slow: bool = False  # for the oracle
    # some seconds and more for the oracle: the whole run under `make fuzz` only, its beginning always
    long: bool = False

    @property
    def flop(self) -> bool:
        """Jobs of flop profiles: one that takes exactly its walltime counts as completed there, as killed here."""
        return "-flop" in self.name or self.name.startswith("ties2")

    @property
    def rules(self) -> str:
        return "batsched" if self.shutdown == "never" else "escala"


RUNS = (
    Run("kth-fcfs_fast", "fcfs", slow=True, long=True),
    Run("kth-easy_bf", "easy", slow=True, long=True),
    Run("kth-easy_bf_fast", "easy-fast", slow=True, long=True),
    Run("kth-conservative_bf", "conservative", slow=True, long=True),
    Run("hpc2n-easy_bf-flop", "easy", starts=False, slow=True, long=True),
    Run("hpc2n-easy_bf_fast-flop", "easy-fast", slow=True),
    Run("cerit-fcfs_fast", "fcfs", slow=True, long=True),
    Run("cerit-easy_bf", "easy", slow=True, long=True),
    Run("theta22-easy_bf_fast", "easy-fast", slow=True, long=True),
    Run("theta22-easy_bf", "easy", slow=True, long=True),
    Run("ties1-fcfs_fast", "fcfs"),
    Run("ties1-easy_bf", "easy"),
    Run("ties1-easy_bf_fast", "easy-fast"),
    Run("ties1-conservative_bf", "conservative"),
    Run("ties2-fcfs_fast", "fcfs"),
    Run("ties2-easy_bf", "easy"),
    Run("ties2-easy_bf_fast", "easy-fast"),
    Run("ties2-conservative_bf", "conservative", slow=True, long=True),
    Run("ties1-easy_bf-d0", "easy", plan_margin_s=0.0),
    Run("ties1-conservative_bf-d0", "conservative", plan_margin_s=0.0, slow=True, long=True),
    Run("power-timeout0", "fcfs", "timeout:0"),
    Run("power-timeout60", "fcfs", "timeout:60"),
    Run("power-timeout300-stock", "fcfs", "timeout:300"),
    Run("ties5-easy_bf", "easy"),
    Run("ties5-conservative_bf", "conservative", slow=True, long=True),
    Run("ties5-easy_bf_fast", "easy-fast"),
    Run("ties6-easy_bf", "easy"),
    Run("ties6-easy_bf-flop", "easy", starts=False),
    Run("ties6-conservative_bf", "conservative", slow=True, long=True),
    Run("ties6-conservative_bf-flop", "conservative", starts=False, slow=True, long=True),
)


def text_of(path: Path) -> str:
    if path.suffix == ".gz":
        with gzip.open(path, "rt") as stream:
            return stream.read()
    return path.read_text()


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(text_of(path).splitlines()))


def quantity(text: str) -> float:
    """ "100Mf" -> 1e8."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([kMG]?)f\s*", text)
    assert match, text
    return float(match[1]) * PER_PREFIX[match[2]]


def read_platform(path: Path, hosts: int) -> dict[str, Any]:
    """The first `hosts` hosts (in plain string order of their names, the master left out), one core each; all are alike
    in these runs."""
    root = ElementTree.fromstring(text_of(path).strip())
    found = sorted((h for h in root.iter("host") if h.get("id") != "master_host"), key=lambda h: h.get("id", ""))[
        :hosts
    ]
    assert len(found) == hosts
    profiles, profile_of = [], []
    speeds = set()
    for host in found:
        speed = [quantity(part) for part in host.get("speed", "").split(",")]
        props = {prop.get("id"): prop.get("value", "") for prop in host.iter("prop")}
        watts = [
            [float(w) for w in part.split(":")]
            for part in (props.get("wattage_per_state") or props.get("watt_per_state") or "").split(",")
        ]
        sleep, going_off, going_on = (int(n) for n in props["sleep_pstates"].split(":"))
        profile = {
            "computing_w": watts[0][-1],
            "idle_w": watts[0][0],
            "off_w": watts[sleep][-1],
            "switching_off_w": watts[going_off][-1],
            "switching_on_w": watts[going_on][-1],
            "switch_off_s": 1 / speed[going_off],
            "switch_on_s": 1 / speed[going_on],
            "can_switch": True,
        }
        # platforms may give idle:epsilon:full with epsilon > idle: a computing host draws full at full load
        if profile not in profiles:
            profiles.append(profile)
        profile_of.append(profiles.index(profile))
        speeds.add(speed[0])
    assert len(speeds) == 1
    return {"cores": [1] * hosts, "profiles": profiles, "profile_of": profile_of, "speed": speeds.pop()}


def read_workload(path: Path, speed: float) -> list[dict[str, Any]]:
    """Jobs in the order of the file."""
    data = json.loads(text_of(path))
    jobs = []
    for job in data["jobs"]:
        profile = data["profiles"][job["profile"]]
        flop = profile["type"] == "parallel_homogeneous"
        assert flop or profile["type"] == "delay"
        jobs.append(
            {
                "job_id": str(job["id"]),
                "submit_s": float(job["subtime"]),
                "runtime_s": float(profile["cpu"]) / speed if flop else float(profile["delay"]),
                "walltime_s": float(job["walltime"]),
                "cores": int(job["res"]),
                "load": 1.0 if flop else 0.0,
            }
        )
    return jobs


def numbers(intervals: str) -> list[int]:
    """ "0-2 7" -> [0, 1, 2, 7]."""
    found: list[int] = []
    for part in intervals.split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def read_jobs(path: Path) -> dict[str, dict[str, Any]]:
    """Job id -> start, finish, hosts, state, joules of the reference engine."""
    found = {}
    for row in rows_of(path):
        state = row.get("final_state") or ("COMPLETED_SUCCESSFULLY" if row["success"] == "1" else "KILLED")
        found[row["job_id"]] = {
            "submit_s": float(row["submission_time"]),
            "start_s": float(row["starting_time"]),
            "finish_s": float(row["finish_time"]),
            "nodes": numbers(row["allocated_resources"]),
            "state": "COMPLETED" if state == "COMPLETED_SUCCESSFULLY" else "KILLED",
            "joules": float(row["consumed_energy"]),
        }
    return found


def totals(path: Path) -> dict[str, float]:
    return {key: float(value) for key, value in rows_of(path)[0].items() if key != "batsim_version"}
