"""Sets of options for each environment: every option stands in one of them at another value than its default, every
choice in one."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.digests import logs

OFF_RESERVATION, SCHEDULING, SLOTS, TEAM = "escala/OffReservation-v0", "escala/Scheduling-v0", "escala/Slots-v0", "team"


class Variant(NamedTuple):
    """Options of an environment; `log` names what is played where it is not the environment's usual input."""

    env: str
    options: dict[str, Any]
    log: str = ""

    @property
    def name(self) -> str:
        told = [f"{key}={value}".replace(" ", "") for key, value in self.options.items()]
        return " ".join(
            [self.env.removeprefix("escala/").removesuffix("-v0"), *([f"({self.log})"] if self.log else []), *told]
        )


def variants() -> list[Variant]:
    """All of them."""
    given = [Variant(env, options) for env, sets in SETS.items() for options in sets]
    given += [Variant(env, {"oversized": "drop"}, "giants") for env in (OFF_RESERVATION, SCHEDULING)]
    given += [
        Variant(SLOTS, {}, "units"),
        Variant(SLOTS, {"unit_s": 60.0}, "minutes"),
        Variant(SLOTS, {"estimate": "runtime"}, "early"),
    ]
    given += [Variant(SLOTS, {"slots": 4, "observation": "image"}, "memory"), Variant(TEAM, {}, "shared")]
    return given


def arguments(variant: Variant) -> dict[str, Any]:
    """Workload, platform and options, as its environment takes them."""
    if variant.env in (OFF_RESERVATION, SCHEDULING):
        log = logs.days(most_cores=25) if variant.log == "giants" else logs.days()
        return {"workload": log, "platform": logs.PLATFORM, **variant.options}
    if not variant.log:
        return {"lists": 24, **variant.options}
    if variant.env == TEAM:
        return {"workload": logs.shared(), **variant.options}
    return {"workload": slot_log(variant), "platform": slot_machine(variant), **variant.options}


def slot_log(variant: Variant) -> Any:
    """A log for a slotted variant: its own, or one that suits its machine."""
    unit = int(variant.options.get("unit_s", 1))
    return logs.units(unit, early=variant.log in ("early", ""), memory=on_a_node(variant))


def slot_machine(variant: Variant) -> Any:
    """Its machine."""
    import escala

    return escala.Platform.uniform(1, 10, power=None, resources={"memory": 10}) if on_a_node(variant) else "10x1"


def on_a_node(variant: Variant) -> bool:
    """Is the machine of a slotted variant a single node with memory?"""
    return variant.log == "memory" or variant.options.get("model") == "cpu-memory"


IMAGE, COUNT, HOLD, TWO = {"observation": "image"}, {"action": "count"}, {"action": "hold"}, {"model": "cpu-memory"}

DAYS: list[dict[str, Any]] = [
    {},
    {"window": "drain"},
    {"window": "drain", "day_s": 21600.0},
    {"window": "drain", "day_s": 21600.0, "drain_days": 0.01},
    {"day_s": 43200.0},
    {"period_s": 120.0},
    {"start_off": False},
    {"min_jobs": 20},
]
"""What both environments of days take."""

SETS: dict[str, list[dict[str, Any]]] = {
    OFF_RESERVATION: [
        *DAYS,
        HOLD,
        COUNT,
        HOLD | {"holds": [0.0, 0.4, 1.5]},
        {"observation": "compact"},
        HOLD | {"observation": "compact", "history": 3, "jobs": 4},
        {"history": 6},
        {"jobs": 3},
        {"qos": "all"},
        {"tau": 0.1},
        {"stretch_cost": 0.4},
        {"normalise": "none"},
        {"guard": "none"},
        {"guard_at": 0.05},
        HOLD | {"guard": "late", "guard_at": 0.1},
        COUNT | {"guard": "none"},
        {"skip": False},
        {"ask": "periods"},
        COUNT | {"ask": "periods", "window": "drain"},
    ],
    SCHEDULING: [
        *DAYS,
        {"places": 5},
        {"waits": True},
        {"rho": 2.0},
        {"sigma": 0.5},
        {"tau": 1.5},
        {"confidence": "submitted"},
        {"shutdown": "never"},
        {"shutdown": "timeout:0"},
        {"objective": "wait"},
        {"objective": "bounded-slowdown"},
        {"objective": "area-wait"},
        {"guard_s": 300.0},
        {"warm": "easy"},
        {"warm": "fcfs", "day_s": 21600.0, "window": "drain"},
    ],
    SLOTS: [
        {},
        {"slots": 3},
        {"horizon": 40},
        {"placement": "reserve"},
        IMAGE,
        IMAGE | {"dtype": "float32"},
        IMAGE | {"backlog": 1},
        IMAGE | {"placement": "reserve", "skip": "none"},
        IMAGE | {"placement": "reserve", "dtype": "float32", "reward": "mean"},
        {"reward": "mean"},
        {"reward": "relative"},
        {"skip": "none"},
        {"skip": "forced"},
        {"skip": "forced", "placement": "reserve"},
        {"limit": 30},
        {"arrivals_end": 120},
        {"queue": "shortest", "slots": 4},
        {"queue": "ends", "slots": 4},
        TWO | {"queue": "shortest", "slots": 3, "skip": "forced", "arrivals_end": 60},
        {"load": 1.8},
        {"load": [0.6, 1.4]},
        {"window": 40},
        {"demand": "clip10"},
        {"demand": "six-to-ten"},
        {"lists": 7},
        {"lists_seed": 5},
        TWO,
        TWO | {"rate": 0.5},
        TWO | {"rate": [0.6, 0.9], "window": [20, 50]},
        TWO | IMAGE | {"slots": 5, "arrivals_end": 60},
    ],
    TEAM: [
        {},
        {"agents": 2},
        {"machines": 2},
        {"resources": 1},
        {"resources": 3},
        {"capacity": 8},
        {"capacity": [10, 6, 8]},
        {"horizon": 12},
        {"slots": 3},
        {"backlog": 4},
        {"load": 1.5, "backlog": 3, "overflow": "end"},
        {"information": "local"},
        {"machines": 2, "information": "local", "rewards": "local", "turns": "until-void"},
        {"rewards": "local"},
        {"alpha": -2.0},
        {"beta": -0.5},
        {"gamma": 0.0},
        {"turns": "until-void"},
        {"skip": "empty"},
        {"skip": "forced"},
        {"limit": 40},
        {"arrivals_end": 200},
        IMAGE,
        IMAGE | {"machines": 2, "information": "local", "backlog": 30},
        {"load": 0.9},
        {"load": [0.3, 0.9]},
        {"formula": "printed"},
        {"p_long": 0.6},
        {"steps": 40},
        {"lists": 5},
        {"lists_seed": 3},
    ],
}
