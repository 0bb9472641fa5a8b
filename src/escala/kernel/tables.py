"""From the kernel's records to columns: allocations, and the life of every node."""

from __future__ import annotations

from typing import Any

from escala.compile import compiled
from escala.kernel import codes
from escala.kernel.energy import ledger_state
from escala.kernel.world import one


@compiled
def count_chunks(table: Any, i: int) -> int:
    """Number of chunks of all jobs of simulation `i` that have started."""
    w = one(table, i)
    total = 0
    for j in range(w.o[0].n_jobs):
        if w.run[j].start >= 0:
            c = w.run[j].chunk
            while c != codes.NONE:
                total += 1
                c = w.chunk[c].next
    return total


@compiled
def copy_chunks(table: Any, i: int, out: Any) -> None:
    """Fill `out` [4, chunks] with job row, low node, high node, cores on each."""
    w = one(table, i)
    k = 0
    for j in range(w.o[0].n_jobs):
        if w.run[j].start >= 0:
            c = w.run[j].chunk
            while c != codes.NONE:
                out[0, k] = j
                out[1, k] = w.chunk[c].low
                out[2, k] = w.chunk[c].high
                out[3, k] = w.chunk[c].per
                k += 1
                c = w.chunk[c].next


@compiled
def node_intervals(times: Any, busy: Any, share: Any, power: Any, first: Any, window: Any, out: Any, load: Any) -> int:
    """The intervals of every node in one state, within [window[0], window[1]), us.

    Events sorted by node and time; those of node n are first[n] .. first[n + 1] - 1, each with a change of busy cores,
    a change of load share and a new power state (or NONE). Fills `out` [4, *] with node, from, to, ledger state and
    `load` [*] with the integral of the load share over the interval, in us. Returns the number of intervals.
    """
    start, end = window[0], window[1]
    k = 0
    for n in range(first.shape[0] - 1):
        cores = 0
        rate = 0.0
        state = codes.ON
        since = start
        current = codes.IDLE
        integral = 0.0
        clock = start
        e = first[n]
        while e < first[n + 1]:
            t = min(max(times[e], start), end)
            integral += rate * (t - clock)
            clock = t
            while e < first[n + 1] and min(max(times[e], start), end) == t:
                cores += busy[e]
                rate += share[e]
                if power[e] != codes.NONE:
                    state = power[e]
                e += 1
            if cores == 0:
                rate = 0.0
            following = codes.COMPUTING if cores > 0 else ledger_state(state)
            if following != current:
                if t > since:
                    out[0, k] = n
                    out[1, k] = since
                    out[2, k] = t
                    out[3, k] = current
                    load[k] = integral
                    k += 1
                since = t
                current = following
                integral = 0.0
        if end > since:
            integral += rate * (end - clock)
            out[0, k] = n
            out[1, k] = since
            out[2, k] = end
            out[3, k] = current
            load[k] = integral
            k += 1
    return k


@compiled
def interval_text(low: Any, high: Any, first: Any, text: Any) -> int:
    """Write the interval lists "0-3 7" of all jobs as bytes, a line each.

    Intervals sorted by job and low node; those of job j are first[j] .. first[j + 1] - 1; touching ones are merged.
    Returns the length, or -1 where `text` is too short.
    """
    k = 0
    digits = 0
    for j in range(first.shape[0] - 1):
        a = first[j]
        began = k
        while a < first[j + 1]:
            top = high[a]
            b = a + 1
            while b < first[j + 1] and low[b] <= top + 1:
                top = max(top, high[b])
                b += 1
            if k + 49 > text.shape[0]:
                return -1
            if k > began:
                text[k] = 32
                k += 1
            for part in range(2):
                value = low[a] if part == 0 else top
                if part == 1:
                    if top == low[a]:
                        break
                    text[k] = 45
                    k += 1
                digits = 1
                scale = 10
                while value >= scale:
                    digits += 1
                    scale *= 10
                for d in range(digits):
                    text[k + digits - 1 - d] = 48 + value % 10
                    value //= 10
                k += digits
            a = b
        text[k] = 10
        k += 1
    return k
