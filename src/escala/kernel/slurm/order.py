"""Sorting without memory of its own: what is sorted has one order, so any way of sorting gives the same."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import Ints, Records, Shares, World

BY_NUMBER, BY_PRIORITY, BY_SHARES = range(3)


@lean
def before(records: Records, a: int, b: int) -> bool:
    """Does record a stand before record b: in a reservation, higher tier, higher priority, earlier job?"""
    if records.rank[a] != records.rank[b]:
        return records.rank[a] > records.rank[b]
    if records.priority[a] != records.priority[b]:
        return records.priority[a] > records.priority[b]
    return a < b


@lean
def _served_before(shares: Shares, a: int, b: int) -> bool:
    """Does user a stand before user b in the fair tree: from the root down, the better account or user, of accounts
    that tie the first of the site, of a user and an account the user?"""
    for d in range(shares.path.shape[1]):
        if shares.path[a, d] != shares.path[b, d]:
            return shares.path[a, d] < shares.path[b, d]
        if shares.row[a, d] != shares.row[b, d]:
            return shares.row[a, d] < shares.row[b, d]
    return a < b


@lean
def _stands_before(w: World, a: int, b: int, by: int) -> bool:
    """Does a stand before b, as `sort` orders them?"""
    if by == BY_PRIORITY:
        return before(w.records, a, b)
    return _served_before(w.shares, a, b) if by == BY_SHARES else a < b


@lean
def sort(w: World, values: Ints, n: int, by: int) -> None:
    """Sort the first n values: numbers rising, records of the queue, or users of the fair tree. Shellsort, gaps
    smaller by 4/9 each time (Tokuda 1992)."""
    gap = n
    while gap > 1:
        gap = max(gap * 4 // 9, 1)
        for i in range(gap, n):
            value, at = values[i], i
            while at >= gap and _stands_before(w, value, values[at - gap], by):
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
