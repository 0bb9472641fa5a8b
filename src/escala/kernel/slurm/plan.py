"""The plan of one backfill pass: stretches of time, each with the nodes that no reservation holds."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.tables import NONE, Ints, Rules, Scratch


@lean
def new_plan(rules: Rules, now_s: int, room: Scratch) -> int:
    """One stretch from now to the end of the window, all nodes free; the number of records used."""
    step = rules.bf_resolution
    room.begin[0] = now_s // step * step
    room.end[0] = (now_s + rules.bf_window) // step * step
    room.after[0] = 0
    room.space[0] = NONE  # all bits
    return 1


@lean
def count_bits(words: Ints) -> int:
    """Bits that are set."""
    found = 0
    for w in range(words.size):
        word = words[w]
        while word:
            word &= word - 1
            found += 1
    return found


@lean
def covers(a: Ints, b: Ints) -> bool:
    """Is every node of a in b?"""
    outside = 0
    for w in range(a.size):
        outside |= a[w] & ~b[w]
    return outside == 0


@lean
def free_through(room: Scratch, nodes: Ints, start_s: int, end_s: int) -> int:
    """Take out of room.wanted (at first `nodes`) what is reserved in [start, end]; the first later moment with other
    nodes, or 0."""
    later = 0
    at = 0
    while True:
        following = room.after[at]
        if room.end[at] > start_s and following != 0 and later == 0:
            for w in range(nodes.size):
                if nodes[w] & room.space[following, w] & ~(room.wanted[w] & room.space[at, w]):
                    later = room.end[at]
                    break
        if room.end[at] > start_s:
            if room.begin[at] > end_s:
                break
            for w in range(nodes.size):
                room.wanted[w] &= room.space[at, w]
        at = following
        if at == 0:
            break
    return later


@lean
def overlaps(room: Scratch, start_s: int, end_s: int) -> bool:
    """Is some node of room.used reserved in [start, end)?"""
    at = 0
    while True:
        if room.end[at] > start_s and room.begin[at] < end_s and not covers(room.used, room.space[at]):
            return True
        at = room.after[at]
        if at == 0:
            return False


@lean
def _insert(room: Scratch, size: int, at: int, begin_s: int) -> int:
    """Split stretch `at` at a moment; the new stretch has number `size`."""
    room.begin[size] = begin_s
    room.end[size] = room.end[at]
    room.end[at] = begin_s
    room.after[size] = room.after[at]
    room.after[at] = size
    for w in range(room.used.size):
        room.space[size, w] = room.space[at, w]
    return size + 1


@lean
def reserve(room: Scratch, size: int, rules: Rules, start_s: int, end_s: int) -> int:
    """The nodes of room.used are reserved in [start, end); the number of records used so far."""
    start_s = max(start_s, room.begin[0])
    end_s = max(end_s, start_s + rules.bf_resolution)
    earlier, at, placed = 0, 0, False
    while True:
        if room.end[at] > start_s:
            size = _insert(room, size, at, start_s)
            placed = True
            break
        if room.end[at] == start_s:
            placed = True
            break
        earlier = at
        at = room.after[at]
        if at == 0:
            break
    beyond = NONE
    while placed and room.after[at] != 0:
        at = room.after[at]
        if end_s < room.end[at]:
            size = _insert(room, size, at, end_s)
        for w in range(room.used.size):
            room.space[at, w] &= ~room.used[w]
        if end_s == room.end[at]:
            beyond = room.after[at] if room.after[at] != 0 else NONE
            break
    _merge(room, earlier, beyond)
    return size


@lean
def _merge(room: Scratch, at: int, beyond: int) -> None:
    """Join the first two neighbouring stretches that have become equal."""
    while at != beyond:
        following = room.after[at]
        if following == 0:
            return
        if covers(room.space[at], room.space[following]) and covers(room.space[following], room.space[at]):
            room.end[at] = room.end[following]
            room.after[at] = room.after[following]
            return
        at = following
