"""The decision process: a message of Batsim comes, the desk decides where something has happened, and the reply carries
it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from escala.bridges.batsim.hosts import Hosts
from escala.bridges.batsim.lost import KILLED, STAY, Lost
from escala.bridges.batsim.machine import Job, Machine
from escala.bridges.batsim.messages import Event, Message, intervals, read, write
from escala.errors import EscalaError, quoted, waiting
from escala.live import Desk, Orders
from escala.platform import Platform

FIRST_CALL_S = 1e-7
"""When the first decision is asked for, that of time 0. A message must be of later than now, and jobs of time 0 come
before; Batsim writes times with six decimals."""

NOTHING = ("no_more_external_event_to_occur",)
TICK_US = 1e6

Reply = list[tuple[str, dict[str, Any]]]


class Process:
    """make: the desk of a platform. platform: its nodes with the times of their switches; None: what Batsim tells,
    where nodes stay on.
    lost: what becomes of jobs on hosts that become unavailable (`lost.WAYS`).

    There is a decision at time 0, as in Escala's own simulation, and after whatever happened. Batsim's calls are no
    events: one that is not due by now (others came before it) changes nothing, since rules whose scores change with
    time are asked when they said. After the last job nobody is asked, and the simulation ends.
    """

    def __init__(self, make: Callable[[Platform], Desk], platform: Platform | None, lost: str = STAY) -> None:
        self._make, self._given = make, platform
        self.lost = Lost(lost)
        self._machine: Machine | None = None
        self._desk: Desk | None = None
        self._due_s: float | None = 0.0
        self._calls: set[int] = set()
        self._before_s = 0.0
        self.coming, self.over = True, False
        self.messages = self.started = self.rejected = self.switches = 0

    @property
    def counts(self) -> dict[str, int]:
        """As `Desk.counts`."""
        return {} if self._desk is None else self._desk.counts

    def answer(self, data: bytes) -> bytes:
        """The reply to a message; EscalaError for one that makes no sense."""
        message = read(data, self._before_s)
        self._before_s = message.now_s
        self.messages += 1
        return write(message.now_s, self._reply(message))

    def _reply(self, message: Message) -> Reply:
        now, reply, happened = message.now_s, Reply(), False
        self._calls = {call for call in self._calls if call > round(now * TICK_US)}
        for event in message.events:
            happened = self._take(event, now, reply) or happened
        machine = self._machine
        if machine is None or self.over:
            return reply
        self._execute(machine.ready(now), reply)
        kinds = {event.kind for event in message.events}
        due = (
            "REQUESTED_CALL" in kinds
            and self._due_s is not None
            and round(self._due_s * TICK_US) <= round(now * TICK_US)
        )
        if "SIMULATION_BEGINS" in kinds:
            self._call(FIRST_CALL_S, reply)
        elif (happened or due) and (machine.jobs or self.coming):
            self._decide(machine, now, reply)
        if not self.coming:
            self.lost.finish(bool(machine.jobs), reply)
        if not self.coming and not self._calls and machine.stuck:
            raise EscalaError(
                f"Batsim: {waiting(len(machine.jobs))}, and nothing will ever happen: give policies under which "
                "every job can run"
            )
        return reply

    def _take(self, event: Event, now_s: float, reply: Reply) -> bool:
        """Take in an event. Has something happened about which to decide?"""
        if event.kind == "SIMULATION_BEGINS":
            self._begin(event, reply)
            return False
        machine = self._machine
        if machine is None:
            raise EscalaError(
                f"Batsim: {quoted(event.kind)} came before SIMULATION_BEGINS: start this process first, then Batsim"
            )
        if event.kind == "JOB_SUBMITTED":
            job = machine.submitted(event)
            self.lost.submitted(event)
            if job.cores > machine.platform.n_nodes:
                self.rejected += 1
                reply.append(("REJECT_JOB", {"job_id": job.name}))
                return False
        elif event.kind == "JOB_COMPLETED":
            name = event.has("job_id", str)
            machine.completed(name, event.timestamp_s)
            self._again(machine, name, event.data.get("job_state"), event.timestamp_s, reply)
        elif event.kind == "JOB_KILLED":
            for name in machine.killed(event.has("job_ids", list), event.timestamp_s):
                self._again(machine, name, KILLED, event.timestamp_s, reply)
            self.lost.progress(event)
        elif event.kind == "RESOURCE_STATE_CHANGED":
            machine.switched(event, event.timestamp_s)
        elif event.kind == "NOTIFY":
            return self._notified(machine, event, reply)
        elif event.kind == "SIMULATION_ENDS":
            self.over = True
        elif event.kind != "REQUESTED_CALL":
            raise EscalaError(
                f"Batsim: {quoted(event.kind)} is an event that is not known here: switch off what sends it"
            )
        return event.kind != "REQUESTED_CALL"

    def _again(self, machine: Machine, name: str, state: Any, at_s: float, reply: Reply) -> None:
        """A job has ended; one that was killed for its hosts may come again."""
        event = self.lost.ended(name, state, reply)
        if event is not None:
            event = event._replace(timestamp_s=at_s)
            machine.submitted(event)
            self.lost.submitted(event)

    def _notified(self, machine: Machine, event: Event, reply: Reply) -> bool:
        what = event.has("type", str)
        if what == "no_more_static_job_to_submit":
            self.coming = False
        elif what in ("event_machine_available", "event_machine_unavailable"):
            here = what == "event_machine_available"
            nodes = machine.available(event, here=here)
            if not here:
                self.lost.hit(machine.jobs.values(), nodes, reply)
            return True
        elif what not in NOTHING:
            raise EscalaError(
                f"Batsim: it notifies of {quoted(what)}, which is not known here: switch off what sends it"
            )
        return False

    def _begin(self, event: Event, reply: Reply) -> None:
        if self._machine is not None:
            raise EscalaError("Batsim: SIMULATION_BEGINS came twice: start a process for each simulation")
        config = event.data.get("config")
        config = config if isinstance(config, dict) else {}
        if config.get("redis-enabled"):
            raise EscalaError(
                "Batsim: jobs are told by way of Redis, which is not asked: start Batsim without --enable-redis"
            )
        hosts = Hosts.told(event)
        platform = hosts.platform(self._given)
        self._desk, self._machine = self._make(platform), Machine(hosts, platform)
        self.lost.begin(event, config, reply)

    def _decide(self, machine: Machine, now_s: float, reply: Reply) -> None:
        assert self._desk is not None
        orders = self._desk.decide(machine.snapshot(now_s))
        self._switch(machine, orders, reply)
        self._execute(machine.carry_out(orders, now_s), reply)
        self._due_s = orders.next_s
        if orders.next_s is not None:
            self._call(orders.next_s, reply)

    def _switch(self, machine: Machine, orders: Orders, reply: Reply) -> None:
        """One request for all nodes that will be ready together: Batsim tells once, when the last is."""
        for nodes, on in ((orders.offs, False), (orders.wakes, True)):
            groups: dict[tuple[int, str], list[int]] = {}
            for node in nodes:
                states = machine.hosts.states[node]
                state = states.on if on else states.off
                assert state is not None
                groups.setdefault((int(machine.platform.profile_of[node]), state), []).append(machine.hosts.ids[node])
            for (_, state), ids in groups.items():
                self.switches += len(ids)
                reply.append(("SET_RESOURCE_STATE", {"resources": intervals(ids), "state": state}))

    def _execute(self, jobs: list[Job], reply: Reply) -> None:
        assert self._machine is not None
        for job in jobs:
            self.started += 1
            reply.append(
                (
                    "EXECUTE_JOB",
                    {"job_id": job.name, "alloc": intervals(self._machine.hosts.ids[node] for node in job.nodes)},
                )
            )

    def _call(self, at_s: float, reply: Reply) -> None:
        """Ask to be called, unless that is asked for already."""
        at_us = round(at_s * TICK_US)
        if at_us not in self._calls:
            self._calls.add(at_us)
            reply.append(("CALL_ME_LATER", {"timestamp": at_s}))
