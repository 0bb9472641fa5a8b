"""Who may take nodes from whom on a site: its classes of jobs, one a partition and QOS, as tables of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.preempt import ALWAYS, CANCEL, HIGHER, NEVER_MAY, NOT_LOWER, REQUEUE, STAYS
from escala.platform.limits import EXEMPT, GRACE, MODE, PREEMPT, USUAL_QOS
from escala.platform.site import Partition, Site
from escala.slurm.settings import BY_PARTITION, BY_QOS, Settings

Ints = NDArray[np.int64]
Class = tuple[int, str]
WITHIN, PRIORITY = "within", "priority"


def mode_words(text: str) -> set[str]:
    """The words of a PreemptMode, such as `requeue,within`."""
    return {word for word in text.lower().replace("|", ",").split(",") if word}


class Rules:
    """The rules of a site between two classes."""

    def __init__(self, site: Site, settings: Settings) -> None:
        self.site, self.settings = site, settings
        self.usual = mode_words(settings.preempt_mode)
        if settings.preempt == BY_QOS:
            self._check()

    def _check(self) -> None:
        """EscalaError for a QOS that preempts one that is not there, and for two that preempt each other by way of
        others."""
        known = {**self.site.qos, **self.site.qos_limits}
        below = {name: self.qos(name).get(PREEMPT, ()) for name in known}
        for name, others in below.items():
            for other in others:
                if other not in known:
                    raise EscalaError(
                        f"qos {quoted(name)} preempts {quoted(other)}, which is not under [qos]: add it, or leave it "
                        "out"
                    )
        for name in below:
            seen, ahead = set[str](), list(below[name])
            while ahead:
                other = ahead.pop()
                if other == name:
                    raise EscalaError(
                        f"qos {quoted(name)} preempts itself, alone or by way of others: break the circle (Slurm "
                        "refuses it)"
                    )
                if other not in seen:
                    seen.add(other)
                    ahead += below[other]

    def qos(self, name: str) -> Mapping[str, Any]:
        return self.site.qos_limits.get(name, {})

    def part(self, one: Class) -> Partition:
        return self.site.partitions[one[0]]

    def words(self, one: Class) -> set[str]:
        """Its own mode; empty: that of the site."""
        own = self.part(one).preempt_mode if self.settings.preempt == BY_PARTITION else self.qos(one[1]).get(MODE)
        return mode_words(own or "")

    def mode(self, one: Class) -> int:
        """What becomes of its jobs."""
        words = self.words(one) - {"gang", WITHIN, PRIORITY, "cluster"} or self.usual
        if "requeue" in words:
            return REQUEUE if self.settings.job_requeue else CANCEL
        return CANCEL if "cancel" in words else STAYS

    def may(self, taker: Class, other: Class) -> int:
        """May a job of one class take nodes from one of another?"""
        words = self.words(taker) | self.usual
        if self.settings.preempt == BY_PARTITION:
            if self.part(other).tier >= self.part(taker).tier:
                return NEVER_MAY
            return NOT_LOWER if PRIORITY in words else ALWAYS
        if taker[1] == other[1]:
            return HIGHER if WITHIN in words else NEVER_MAY
        if other[1] not in self.qos(taker[1]).get(PREEMPT, ()):
            return NEVER_MAY
        return HIGHER if PRIORITY in words else ALWAYS

    def grace_s(self, one: Class) -> int:
        return int(self.part(one).grace_s if self.settings.preempt == BY_PARTITION else self.qos(one[1]).get(GRACE, 0))

    def exempt_s(self, one: Class) -> int:
        """By the QOS of the partition, that of the job (the other way round with OverPartQOS), or the site's."""
        own = self.part(one).own_qos
        names = [own, one[1]] if own is not None else [one[1]]
        if "OverPartQOS" in self.qos(one[1]).get("flags", ()):
            names.reverse()
        return int(
            next((self.qos(name)[EXEMPT] for name in names if EXEMPT in self.qos(name)), self.settings.exempt_time)
        )

    def first(self, one: Class) -> int:
        """Those of the lowest lose their nodes first."""
        return self.part(one).tier if self.settings.preempt == BY_PARTITION else self.site.qos.get(one[1], 0)


def preempting_of(site: Site, settings: Settings, part: Ints, qos: list[str | None], jobs: int) -> t.Preempting:
    """The tables. part, qos: of each record. All empty where nobody may preempt."""
    classes: dict[Class, int] = {}
    of_record = np.zeros(0, np.int64)
    if settings.preempts:
        of_record = np.array(
            [
                classes.setdefault((k, name or USUAL_QOS), len(classes))
                for k, name in zip(part.tolist(), qos, strict=True)
            ],
            np.int64,
        )
    rules = Rules(site, settings)
    listed = list(classes)
    may = [[rules.may(a, b) for b in listed] for a in listed]

    def ints(values: list[int]) -> Ints:
        return np.array(values, np.int64)

    def of_jobs(value: int, more: int = 0) -> Ints:
        return np.full(jobs + more if settings.preempts else 0, value, np.int64)

    return t.Preempting(
        of_record=of_record,
        may=np.array(may, np.int64).reshape(len(listed), len(listed)),
        first=ints([rules.first(one) for one in listed]),
        mode=ints([rules.mode(one) for one in listed]),
        grace_s=ints([rules.grace_s(one) for one in listed]),
        exempt_s=ints([rules.exempt_s(one) for one in listed]),
        short=ints([int("NoReserve" in rules.qos(one[1]).get("flags", ())) for one in listed]),
        notice_s=of_jobs(t.NONE),
        begun_s=of_jobs(t.NONE),
        tried=of_jobs(0),
        left=of_jobs(0),
        listed=of_jobs(0, 1),
        key=of_jobs(0, 1),
        order=np.zeros_like(of_record),
    )
