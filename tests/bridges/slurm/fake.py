"""A Slurm that is none: it answers the clients' commands as text, in the words of 22.05, on a clock of its own. Jobs
take whole nodes.

It starts jobs by priority, wakes nodes on its own for those that could run, and leaves nodes in reservations alone, as
the real one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from escala.bridges.slurm.commands import Failed
from escala.bridges.slurm.text import FORMAT

EPOCH = 1_800_000_000
BOOT_S, SINK_S, BOOT_TIMEOUT_S = 20, 5, 60
KEPT_S = 300  # ended jobs are listed for so long
REQUEUED_S = 120


@dataclass
class FakeNode:
    name: str
    cpus: int = 4
    state: str = "IDLE"  # IDLE, ALLOCATED, DOWN
    power: str = ""  # "", POWERING_UP, POWERED_DOWN, POWERING_DOWN
    until: int = 0
    busy: int = EPOCH
    broken: bool = False
    partition: str = "batch"
    flags: str = ""  # more of them, as Slurm writes them


@dataclass
class FakeJob:
    number: int
    submit: int
    nodes: int
    runtime: int
    limit: int = 600
    priority: int = 1000
    nice: int = 0
    user: str = "ann"
    state: str = "PENDING"
    start: int | None = None
    end: int | None = None
    hosts: list[str] = field(default_factory=list)
    eligible: int = 0
    partition: str = "batch"
    only: tuple[str, ...] = ()  # the nodes that it may have; (): any
    after: int = 0  # the job that it depends on


class FakeSlurm:
    """Called with the words of a command, as `Clients` are. commands: all that changed something."""

    def __init__(self, nodes: int = 8, jobs: list[FakeJob] | None = None) -> None:
        self.now = EPOCH
        self.nodes = {f"n{k + 1}": FakeNode(f"n{k + 1}") for k in range(nodes)}
        self.coming = sorted(jobs or [], key=lambda job: job.submit)
        self.jobs: list[FakeJob] = []
        self.reservations: dict[str, tuple[list[str], int, int]] = {}
        self.users: dict[str, str] = {}  # of reservations
        self.commands: list[tuple[str, ...]] = []
        self.version = "slurm-wlm 22.05.8"

    def clock(self) -> float:
        return float(self.now)

    def advance(self, seconds: int) -> None:
        """Second by second."""
        for _ in range(seconds):
            self.now += 1
            self._second()

    def _second(self) -> None:
        while self.coming and self.coming[0].submit <= self.now:
            self.jobs.append(self.coming.pop(0))
        self.reservations = {name: one for name, one in self.reservations.items() if one[2] > self.now}
        for job in self.jobs:
            if job.state == "RUNNING" and job.end is not None and job.end <= self.now:
                job.state = "COMPLETED"
                for name in job.hosts:
                    self.nodes[name].state, self.nodes[name].busy = "IDLE", self.now
        for node in self.nodes.values():
            self._switch(node)
        self._start()
        self.jobs = [job for job in self.jobs if job.state != "COMPLETED" or (job.end or 0) + KEPT_S > self.now]

    def _switch(self, node: FakeNode) -> None:
        if node.power == "POWERING_DOWN" and node.until <= self.now:
            node.power = "POWERED_DOWN"
        if node.power != "POWERING_UP":
            return
        if not node.broken and node.until <= self.now:
            node.power, node.busy = "", self.now
        elif node.broken and node.until - BOOT_S + BOOT_TIMEOUT_S <= self.now:
            node.state, node.power = "DOWN", "POWERED_DOWN"
            for job in self.jobs:
                if job.state == "CONFIGURING" and node.name in job.hosts:
                    self._requeue(job)

    def _requeue(self, job: FakeJob) -> None:
        for name in job.hosts:
            if self.nodes[name].state != "DOWN":
                self.nodes[name].state = "IDLE"
        job.state, job.hosts, job.start, job.eligible = "PENDING", [], None, self.now + REQUEUED_S

    def reserved(self) -> set[str]:
        return {name for hosts, start, end in self.reservations.values() if start <= self.now < end for name in hosts}

    def _start(self) -> None:
        kept = self.reserved()
        free = [
            node
            for node in self.nodes.values()
            if node.state == "IDLE" and node.power != "POWERING_DOWN" and node.name not in kept
        ]
        free.sort(key=lambda node: node.power != "")
        waiting = [job for job in self.jobs if job.state == "PENDING" and self._reason(job) == "Priority"]
        for job in sorted(waiting, key=lambda job: (-job.priority, job.number)):
            fit = [
                node
                for node in free
                if job.partition in node.partition.split(",") and node.name in (job.only or self.nodes)
            ]
            if len(fit) >= job.nodes:
                taken = fit[: job.nodes]
                free = [node for node in free if node not in taken]
                job.hosts, job.state = [node.name for node in taken], "CONFIGURING"
                for node in taken:
                    node.state = "ALLOCATED"
                    if node.power == "POWERED_DOWN":
                        node.power, node.until = "POWERING_UP", self.now + BOOT_S
        for job in self.jobs:
            if job.state == "CONFIGURING" and all(self.nodes[name].power == "" for name in job.hosts):
                job.state, job.start, job.end = "RUNNING", self.now, self.now + min(job.runtime, job.limit)

    def __call__(self, client: str, *words: str) -> str:
        if "--version" in words:
            return f"{self.version}\n"
        if client == "squeue":
            assert f"--format={FORMAT}" in words
            return "".join(self._queue())
        asked = " ".join(word for word in words if not word.startswith("--"))
        if asked == "show nodes":
            return "".join(map(self._node, self.nodes.values()))
        if asked == "show reservations":
            return "".join(map(self._reservation, self.reservations)) or "No reservations in the system\n"
        if asked == "show jobs":
            held = [job for job in self.jobs if job.state in ("RUNNING", "CONFIGURING")]
            parts = {job.number: "".join(f"   Nodes={name} CPU_IDs=0-3 Mem=0" for name in job.hosts) for job in held}
            return "".join(f"JobId={number} x{told}\n" for number, told in parts.items())
        self.commands.append((client, *words))
        return self._change(words[0], dict(word.split("=", 1) for word in words if "=" in word))

    def _queue(self) -> Iterator[str]:
        for job in self.jobs:
            limit = f"{job.limit // 86400}-{job.limit // 3600 % 24:02}:{job.limit // 60 % 60:02}:{job.limit % 60:02}"
            times = f"{job.submit}|{job.start or 'N/A'}|{job.end or 'N/A'}"
            size = f"{job.nodes}|{4 * job.nodes}|{job.priority}|{job.nice}|NO"
            reason = self._reason(job) if job.state == "PENDING" else "None"
            end = f"{job.user}|{job.partition}|{','.join(job.hosts)}|{reason}"
            yield f"{job.number}|{job.state}|{times}|{limit}|{size}|{end}\n"

    def _reason(self, job: FakeJob) -> str:
        if not job.priority:
            return "JobHeldUser"
        if job.after and any(one.number == job.after and one.state != "COMPLETED" for one in self.jobs):
            return "Dependency"
        return "Priority" if job.eligible <= self.now else "BeginTime"

    def _node(self, node: FakeNode) -> str:
        flags = [
            node.state,
            *filter(None, [node.power, node.flags]),
            *(["RESERVED"] if node.name in self.reserved() else []),
        ]
        busy = node.cpus if node.state == "ALLOCATED" else 0
        head = (
            f"NodeName={node.name} Arch=x86_64 CPUAlloc={busy} CPUEfctv={node.cpus} CPUTot={node.cpus} OS=Linux "
            "6.1 #1 SMP"
        )
        since = "Unknown" if node.power else node.busy
        return (
            f"{head} State={'+'.join(flags)} ThreadsPerCore=1 Partitions={node.partition}  LastBusyTime={since} "
            "CfgTRES=cpu=4\n"
        )

    def _reservation(self, name: str) -> str:
        hosts, start, end = self.reservations[name]
        users = self.users.get(name, "(null)")
        return (
            f"ReservationName={name} StartTime={start} EndTime={end} Nodes={','.join(hosts)} Users={users} "
            "Groups=(null)\n"
        )

    def _change(self, verb: str, told: dict[str, str]) -> str:
        if verb == "create":
            name = told["reservationname"]
            if name in self.reservations:
                raise Failed("Error creating the reservation: Duplicate reservation name")
            start, end = (
                int(told.get(word, "now+0").replace("now", "0").split("+")[-1]) for word in ("starttime", "endtime")
            )
            self.reservations[name] = (told["nodes"].split(","), self.now + start, self.now + end)
            self.users[name] = told["user"]
        elif verb == "delete":
            if self.reservations.pop(told.get("reservationname", ""), None) is None:
                raise Failed("no such reservation")
        elif "reservationname" in told:
            hosts, start, _ = self.reservations[told["reservationname"]]
            self.reservations[told["reservationname"]] = (
                hosts,
                start,
                self.now + int(told["endtime"].removeprefix("now+")),
            )
        elif "nodename" in told:
            self._power(self.nodes[told["nodename"]], told["state"])
        elif "jobid" in told:
            job = next((job for job in self.jobs if str(job.number) == told["jobid"] and job.state == "PENDING"), None)
            if job is None:
                raise Failed("Invalid job id specified")
            job.priority += job.nice - int(told["nice"])
            job.nice = int(told["nice"])
        return ""

    def _power(self, node: FakeNode, state: str) -> None:
        if state == "power_down" and node.state == "IDLE" and not node.power:
            node.power, node.until = "POWERING_DOWN", self.now + SINK_S
        elif state == "resume" and node.state == "DOWN":
            node.state = "IDLE"
        elif state == "power_up" and node.power == "POWERED_DOWN" and node.state == "IDLE":
            node.power, node.until = "POWERING_UP", self.now + BOOT_S
