"""A small Batsim: it plays the protocol of version 4 from jobs and a platform, carries out replies, and checks that
each is legal.

It shares no code with the process under test. Rules measured on the real one: all events of an instant come in one
message, in no particular order (calls and the notice that no more jobs come may be messages of their own); what a reply
causes at once comes in a further message; a request to switch several hosts is acknowledged once, when the last is
done; the simulation ends when all jobs have ended and no call and no switch is pending.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.live.machine import Machine
from tests.oracle.world import OFF, ON, SWITCHING_OFF, SWITCHING_ON, Node

Answer = Callable[[bytes], bytes]
Events = list[tuple[str, dict[str, Any]]]


def numbers(text: str) -> list[int]:
    return [n for part in text.split() for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]


class FakeBatsim(Machine):
    """platform, jobs: as a world of `tests.oracle.worlds` has them, each node of one core. seed: of the order of events
    at an instant."""

    def __init__(
        self, platform: dict[str, Any], jobs: list[dict[str, Any]], seed: int = 0, start_off: bool = False
    ) -> None:
        super().__init__(platform, jobs, start_off)
        assert all(node.cores == 1 for node in self.nodes)
        self.rng = random.Random(seed)
        self.calls: list[int] = []
        self.requests: list[tuple[list[int], set[int], str]] = []  # hosts, those not done yet, state
        self.notified = False
        self.transcript: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.profile_of: list[int] = list(platform["profile_of"])

    def pstates(self, number: int) -> tuple[str, str]:
        """On, asleep; hosts of another profile count otherwise."""
        k = self.profile_of[number]
        return ("0", str(k + 1)) if k % 2 == 0 else ("3", "0")

    def _resource(self, number: int) -> dict[str, Any]:
        node = self.nodes[number]
        on, off = self.pstates(number)
        k = int(off)
        properties: dict[str, str] = {"role": ""}
        if node.profile.can_switch:
            properties["sleep_pstates"] = f"{k}:{k + 1}:{k + 2}"
            n = max(k + 3, int(on) + 1)
            properties["wattage_per_state"] = ", ".join(["95:95:190"] * n)
        state = "sleeping" if node.power == OFF else "idle"
        return {
            "id": number,
            "name": f"host{number:03d}",
            "state": state,
            "properties": properties,
            "zone_properties": {},
        }

    def run(self, answer: Answer, *_: Any) -> None:  # type: ignore[override]
        """The whole simulation."""
        self.answer = answer
        self.now = 0
        resources = [self._resource(number) for number in range(len(self.nodes))]
        told = {
            "nb_resources": len(resources),
            "nb_compute_resources": len(resources),
            "nb_storage_resources": 0,
            "allow_compute_sharing": False,
            "allow_storage_sharing": True,
            "config": {"redis-enabled": False, "dynamic-jobs-enabled": False},
            "compute_resources": resources,
            "storage_resources": [],
            "workloads": {"w0": "jobs.json"},
            "profiles": {"w0": {}},
        }
        self._say([("SIMULATION_BEGINS", told)])
        while self._go_on():
            pass
        self._say([("SIMULATION_ENDS", {})])
        assert self.transcript[-1][1]["events"] == []

    def _go_on(self) -> bool:
        """The next instant. False where nothing will ever happen."""
        times = [job.finish for job in self.alive if job.finish is not None]
        times += [node.switch_end for node in self.nodes if node.switch_end is not None]
        times += [self.coming[0].submit] if self.coming else []
        times += self.calls
        if not times:
            assert not self.alive, f"deadlock: {[job.job_id for job in self.alive]} wait, and nothing will happen"
            return False
        assert self.now <= min(times)
        self.now = min(times)
        events = self._happening()
        calls: Events = [("REQUESTED_CALL", {}) for call in self.calls if call == self.now]
        self.calls = [call for call in self.calls if call > self.now]
        apart = bool(calls) and self.rng.random() < 0.3 and bool(events)
        if not apart:
            events += calls
        self.rng.shuffle(events)
        notice: Events = [("NOTIFY", {"type": "no_more_static_job_to_submit"})]
        if self.coming or self.notified:
            notice = []
        elif self.rng.random() < 0.5:
            events, notice = events + notice, []
        self.notified = self.notified or not self.coming
        self._say(events)
        if apart:
            self._say(calls)
        if notice:
            self._say(notice)
        return True

    def _happening(self) -> Events:
        """What happens now, but for calls; taken in."""
        events: Events = []
        for job in self.alive:
            if job.finish == self.now:
                state = "COMPLETED_WALLTIME_REACHED" if job.killed else "COMPLETED_SUCCESSFULLY"
                alloc = " ".join(str(number) for number, _ in job.held)
                data = {
                    "job_id": f"w0!{job.job_id}",
                    "job_state": state,
                    "return_code": -1 if job.killed else 0,
                    "alloc": alloc,
                }
                events.append(("JOB_COMPLETED", data))
        for hosts, left, state in self.requests:
            left -= {number for number in left if self.nodes[number].switch_end == self.now}
            if not left:
                events.append(("RESOURCE_STATE_CHANGED", {"resources": " ".join(map(str, hosts)), "state": state}))
        self.requests = [request for request in self.requests if request[1]]
        for job in self.coming:
            if job.submit == self.now:
                told = {
                    "id": f"w0!{job.job_id}",
                    "subtime": self.now / 1e6,
                    "res": job.cores,
                    "profile": "p",
                    "walltime": job.walltime_s,
                }
                told |= {} if job.user is None else {"user": job.user}
                events.append(("JOB_SUBMITTED", {"job_id": f"w0!{job.job_id}", "job": told}))
        self._take_in()
        return self._kept_in_order(events)

    def _kept_in_order(self, events: Events) -> Events:
        """Shuffled as a whole later, but jobs of one instant are submitted one after the other: here they are one
        entry."""
        submitted = [event for event in events if event[0] == "JOB_SUBMITTED"]
        return [event for event in events if event[0] != "JOB_SUBMITTED"] + (
            [("SUBMITTED", {"all": submitted})] if submitted else []
        )

    def _say(self, events: Events) -> None:
        """A message, and its reply carried out."""
        flat = [one for kind, data in events for one in (data["all"] if kind == "SUBMITTED" else [(kind, data)])]
        now = self.now / 1e6
        told = {"now": now, "events": [{"timestamp": now, "type": kind, "data": data} for kind, data in flat]}
        reply = json.loads(self.answer(json.dumps(told).encode()))
        self.transcript.append((told, reply))
        assert len(self.transcript) < 100 * (len(self.jobs) + len(self.nodes) + 10), "it asks to be called for ever"
        assert reply["now"] == now
        for event in reply["events"]:
            assert event["timestamp"] == now and set(event) == {"timestamp", "type", "data"}
            getattr(self, f"_{event['type'].lower()}")(event["data"])

    def _execute_job(self, data: dict[str, Any]) -> None:
        (job,) = [job for job in self.alive if f"w0!{job.job_id}" == data["job_id"]]
        hosts = numbers(data["alloc"])
        assert job.state == "waiting" and len(set(hosts)) == len(hosts) == job.cores, data
        for number in hosts:
            node = self.nodes[number]
            assert node.power == ON and not node.holders, (
                f"host {number} of job {job.job_id} is {node.power}, or computes"
            )
            node.holders.append((job, 1))
            node.idle_since = None
        job.held = [(number, 1) for number in hosts]
        self._begin(job)

    def _set_resource_state(self, data: dict[str, Any]) -> None:
        hosts = numbers(data["resources"])
        for number in hosts:
            node: Node = self.nodes[number]
            on, off = self.pstates(number)
            assert node.profile.can_switch and not node.holders and data["state"] in (on, off)
            if data["state"] == off:
                assert node.power == ON, f"host {number} shall sleep, and is {node.power}"
                self._switch(node, SWITCHING_OFF, node.profile.switch_off_s)
            else:
                assert node.power == OFF, f"host {number} shall wake, and is {node.power}"
                self._switch(node, SWITCHING_ON, node.profile.switch_on_s)
        self.requests.append((hosts, set(hosts), data["state"]))

    def _call_me_later(self, data: dict[str, Any]) -> None:
        assert data["timestamp"] > self.now / 1e6, "awaken in the past"
        self.calls.append(round(data["timestamp"] * 1e6))

    def _reject_job(self, data: dict[str, Any]) -> None:
        (job,) = [job for job in self.alive if f"w0!{job.job_id}" == data["job_id"]]
        assert job.state == "waiting" and job.cores > len(self.nodes)
        job.state = "REJECTED"
        self.alive.remove(job)


def platform_file(n: int, off_s: float, on_s: float, names: str = "host") -> str:
    """A platform file for Batsim."""
    speeds = f"100Mf, 1f, {1 / off_s!r}f, {1 / on_s!r}f"
    props = (
        '<prop id="wattage_per_state" value="95:95:190, 9:9:9, 100:100:100, 125:125:125"/><prop '
        'id="sleep_pstates" value="1:2:3"/>'
    )
    hosts = "".join(f'<host id="{names}{k:03d}" speed="{speeds}">{props}</host>' for k in range(n))
    return (
        '<platform version="4.1"><zone id="z" routing="None"><host id="master_host" '
        f'speed="100Mf"/>{hosts}</zone></platform>'
    )
