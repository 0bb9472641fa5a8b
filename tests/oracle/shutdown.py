"""Shutdown policies. `before` acts before the scheduler, `after` behind it; each call is one decision."""

from __future__ import annotations

import math

from tests.oracle import gpus
from tests.oracle.world import OFF, ON, SWITCHING_OFF, Node, World, microseconds


class Shutdown:
    """Never. The timeouts' timers live in the world's nodes."""

    timeout: int | None = None  # microseconds
    hold: float | None = None
    if_busy = False
    cap_s: float | None = None

    def before(self, world: World) -> None: ...

    def after(self, world: World, strict: bool) -> None: ...


class Timeout(Shutdown):
    """timeout:T, timeout:T+S and (T = 0) hold:X."""

    def __init__(self, seconds: float, spare: int = 0, hold: float | None = None) -> None:
        self.timeout = microseconds(seconds)
        self.spare = spare
        self.hold = hold

    def before(self, world: World) -> None:
        world.busy = bool(world.running)

    def after(self, world: World, strict: bool) -> None:
        assert self.timeout is not None
        for node in idle_nodes(world)[self.spare :]:
            assert node.idle_since is not None
            late = node.profile.can_switch and world.now - node.idle_since >= self.timeout
            if late and not (strict and awaited(world, node)):
                world.switch_off(node)
        for node in idle_nodes(world):
            assert node.idle_since is not None
            due = node.idle_since + self.timeout
            node.timer = due if node.profile.can_switch and due > world.now else None


class Proportional(Shutdown):
    def __init__(self, fraction: float) -> None:
        self.fraction = fraction

    def after(self, world: World, strict: bool) -> None:
        busy = sum(1 for node in world.nodes if node.label == "computing" and not node.gone)
        for node in idle_nodes(world)[math.ceil(self.fraction * busy) :]:
            if node.profile.can_switch and not (strict and awaited(world, node)):
                world.switch_off(node)


class OffReservation(Shutdown):
    def __init__(self, number: int) -> None:
        self.number = number

    def before(self, world: World) -> None:
        missing = self.number - sum(1 for node in world.nodes if node.reserved)
        idle = [node for node in idle_nodes(world) if node.profile.can_switch and not node.reserved]
        off = [node for node in world.nodes if node.power == OFF and node.profile.can_switch and not node.barred]
        for node in (idle[::-1] + off[::-1])[: max(0, missing)]:
            node.reserved = True
            if node.power == ON:
                world.switch_off(node)
        world.refresh()


class ArrivalsKnown(Shutdown):
    """Knows what will be submitted, and when."""

    def after(self, world: World, strict: bool) -> None:
        for lane in range(len(world.lanes)):
            if not (strict and any(job.lane == lane for job in world.queue)):
                self.after_in(world, lane)

    def after_in(self, world: World, lane: int) -> None:
        mine = [node for node in world.nodes if node.number in world.lanes[lane] and not node.gone]
        free = sum(world.free_on(node) for node in mine if node.power != SWITCHING_OFF)
        beside = 0  # free cores of the nodes before that stay on
        for node in [node for node in mine if node.power == ON]:
            profile = node.profile
            idle = float(gpus.idle_of(node))
            if world.is_idle(node) and profile.can_switch and idle > 0:
                cycle = profile.switching_off_w * profile.switch_off_s + profile.switching_on_w * profile.switch_on_s
                if beside >= self.coming(world, world.now + microseconds(cycle / idle), free, lane):
                    world.switch_off(node)
                    continue
            beside += world.free_on(node)

    def coming(self, world: World, until: int, free: int, lane: int) -> int:
        """Cores of the jobs submitted by then, those left out that do not fit beside the ones before them."""
        need = 0
        for job in world.arrivals:
            if job.submit <= until and need + job.cores <= free and job.lane == lane:
                need += job.cores
        return need


def awaited(world: World, node: Node) -> bool:
    """Do jobs wait in the queue whose jobs may lie on the node?"""
    return any(node.number in world.lanes[job.lane] for job in world.queue)


def idle_nodes(world: World) -> list[Node]:
    return [node for node in world.nodes if world.is_idle(node) and not node.gone]


def shutdown(name: str) -> Shutdown:
    kind, _, argument = name.partition(":")
    if kind == "never":
        return Shutdown()
    if kind == "timeout":
        seconds, _, spare = argument.partition("+")
        return Timeout(float(seconds), int(spare or 0))
    if kind == "hold":
        fraction, *more = argument.split(":")
        chosen = Timeout(0.0, hold=float(fraction))
        chosen.if_busy = "if-busy" in more
        cap = more[-1] if more and more[-1] != "if-busy" else "3600"
        chosen.cap_s = None if cap == "uncapped" else float(cap)
        return chosen
    if kind == "arrivals-known":
        return ArrivalsKnown()
    if kind == "proportional":
        return Proportional(float(argument))
    if kind == "off-reservation":
        return OffReservation(int(argument))
    raise ValueError(name)
