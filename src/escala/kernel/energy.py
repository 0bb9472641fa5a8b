"""Node-time in each state between two instants: the one place where energy accrues.

Energy is linear in what is kept here. With N_k nodes of a profile in state k and, for the computing ones, u = sum over
jobs of load x cores held / cores of the node,

    E = sum_k P_k integral N_k dt + (P_computing - P_idle) integral u dt

with computing nodes counted at P_idle in the first sum.
Node-times are integers (us), so that the same run cut into other pieces gives the same joules.
"""

from __future__ import annotations

from escala.compile import inlined
from escala.kernel import codes
from escala.kernel.state import World

CARRY = 1 << 61


@inlined
def measured_from(w: World) -> int:
    """When measuring begins, us."""
    o = w.o[0]
    return w.job[0].submit if o.limited == 0 and o.n_jobs > 0 else o.start_us


@inlined
def integrate(w: World, until: int) -> None:
    """Advance the clock to `until`, accruing node-time. Before the first submission nothing is measured, unless a time
    limit was given."""
    s = w.s[0]
    dt = until - max(s.now, measured_from(w))
    s.now = until
    if dt <= 0:
        return
    for p in range(w.ledger.shape[0]):
        ledger = w.ledger[p]
        for k in range(5):
            n = ledger.nodes[k]
            if n > 0:
                total = ledger.node_us[k] + n * dt
                if total >= CARRY:
                    total -= CARRY
                    ledger.carry[k] += 1
                ledger.node_us[k] = total
        if ledger.rate != 0.0:
            ledger.load_s += ledger.rate * (dt * 1e-6)


@inlined
def move(w: World, profile: int, source: int, target: int, n: int) -> None:
    """`n` nodes of a profile pass from one ledger state to another, now."""
    w.ledger[profile].nodes[source] -= n
    w.ledger[profile].nodes[target] += n


@inlined
def count_switch(w: World, offs: int, ons: int) -> None:
    """So many nodes begin to switch now. Those of the last instant stand apart: at the last finish they are no longer
    measured."""
    s = w.s[0]
    if s.now < measured_from(w):
        return
    if s.now > s.switched_us:
        s.switch_offs += s.offs_then
        s.switch_ons += s.ons_then
        s.offs_then = 0
        s.ons_then = 0
        s.switched_us = s.now
    s.offs_then += offs
    s.ons_then += ons


@inlined
def ledger_state(power: int) -> int:
    """Ledger state of a node that does not compute."""
    if power == codes.ON:
        return codes.IDLE
    if power == codes.OFF:
        return codes.IS_OFF
    if power == codes.SWITCHING_ON:
        return codes.IS_SWITCHING_ON
    return codes.IS_SWITCHING_OFF
