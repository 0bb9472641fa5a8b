"""Which cores a job gets: the lowest numbers, first of nodes that are on, then of nodes switching on, then of nodes
that are off.

An allocation is a list of chunks (low node, high node, cores on each). Nodes of one core are taken and given back a
word of 64 at a time.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import bits, codes
from escala.kernel.nodes import add_free, lower_hint, set_free, set_of, switch_on
from escala.kernel.parts import cores_of, level_of, parts_in, parts_of, room_on, use_kinds, word_for
from escala.kernel.state import World


@inlined
def low_word(w: World, which: int) -> int:
    """First word of a set that may hold a bit."""
    s = w.s[0]
    if which == codes.SET_ON:
        return s.low_on
    if which == codes.SET_BOOT:
        return s.low_boot
    return s.low_off


@inlined
def raise_hint(w: World, which: int, word: int) -> None:
    """No bit of the set lies below this word."""
    s = w.s[0]
    if which == codes.SET_ON:
        s.low_on = word
    elif which == codes.SET_BOOT:
        s.low_boot = word
    else:
        s.low_off = word


@inlined
def _new_chunk(w: World) -> int:
    s = w.s[0]
    if s.free_chunk != codes.NONE:
        c = s.free_chunk
        s.free_chunk = np.int64(w.chunk[c].next)
        return c
    c = s.next_chunk
    s.next_chunk = c + 1
    return c


@inlined
def append_chunk(w: World, j: int, last: int, low: int, high: int, per: int) -> int:
    """Add nodes low..high with `per` cores each to job `j`, whose last chunk is `last`; returns the last chunk."""
    if last != codes.NONE and w.chunk[last].high == low - 1 and w.chunk[last].per == per:
        w.chunk[last].high = high
        return last
    c = _new_chunk(w)
    w.chunk[c].low = low
    w.chunk[c].high = high
    w.chunk[c].per = per
    w.chunk[c].next = codes.NONE
    if last == codes.NONE:
        w.run[j].chunk = c
    else:
        w.chunk[last].next = c
    return c


@inlined
def node_take(w: World, n: int, need: int, beyond: bool) -> int:
    """Cores of node `n` that may be taken, at most `need`; beyond: the job runs past the head's reservation."""
    k = min(w.node[n].free, need)
    if beyond and bits.has(w.bits[codes.SET_RESERVED], n):
        k = min(k, w.node[n].limit)
    return k


@inlined
def _use_node(w: World, n: int, k: int, which: int, beyond: bool) -> None:
    """Take `k` cores of node `n` of a set (several cores a node): its count, its limit, and what remains beside the
    reservation."""
    s = w.s[0]
    node = w.node[n]
    if s.head != codes.NONE and w.o[0].head == codes.LOWEST_ID:
        fewer = k
        if bits.has(w.bits[codes.SET_RESERVED], n):
            before = min(node.free, node.limit)
            set_free(w, n, np.int64(node.free) - k)
            if beyond:
                node.limit -= k
            fewer = before - min(node.free, node.limit)
        else:
            set_free(w, n, np.int64(node.free) - k)
        s.extra -= fewer
        if which == codes.SET_ON:
            s.extra_on -= fewer
    else:
        set_free(w, n, np.int64(node.free) - k)


@lean
def _take_nodes(w: World, j: int, last: int, need: int, which: int, beyond: bool) -> tuple[int, int]:
    """Take up to `need` cores of one set, several cores a node; returns (last chunk, cores still needed)."""
    row = w.bits[which]
    asked = need
    for i in range(low_word(w, which), row.shape[0]):
        word = row[i]
        while word != bits.ZERO and need > 0:
            n = (i << 6) + bits.lowest(word)
            word &= word - bits.ONE
            k = node_take(w, n, need, beyond)
            if k > 0:
                _use_node(w, n, k, which, beyond)
                if w.node[n].free == 0:
                    bits.drop(row, n)
                last = append_chunk(w, j, last, n, n, k)
                need -= k
        if need == 0:
            break
    add_free(w, which, need - asked)
    return last, need


@lean
def _take_words(w: World, j: int, last: int, need: int, which: int, beyond: bool) -> tuple[int, int]:
    """Take up to `need` nodes of one core of one set, a word at a time; returns (last chunk, cores still needed)."""
    s = w.s[0]
    row = w.bits[which]
    reserved = w.bits[codes.SET_RESERVED]
    counted = s.head != codes.NONE and w.o[0].head == codes.LOWEST_ID
    asked = need
    empty_so_far = not beyond
    for i in range(low_word(w, which), row.shape[0]):
        word = row[i]
        if beyond:
            word &= ~reserved[i]
        if word == bits.ZERO:
            continue
        if bits.population(word) > need:
            word = bits.lowest_bits(word, need)
        row[i] &= ~word
        need -= bits.population(word)
        if counted:
            fewer = bits.population(word & ~reserved[i])
            s.extra -= fewer
            if which == codes.SET_ON:
                s.extra_on -= fewer
        if empty_so_far:
            raise_hint(w, which, i)
            empty_so_far = row[i] == bits.ZERO
        base = i << 6
        while word != bits.ZERO:
            low = bits.lowest(word)
            run = bits.lowest(~(word >> np.uint64(low)))
            last = append_chunk(w, j, last, base + low, base + low + run - 1, 1)
            if low + run >= 64:
                break
            word &= bits.FULL << np.uint64(low + run)
        if need == 0:
            break
    add_free(w, which, need - asked)
    return last, need


@lean
def take_set(w: World, j: int, last: int, need: int, which: int, beyond: bool) -> tuple[int, int]:
    """Take up to `need` cores of one set for job `j`; returns (last chunk, cores still needed)."""
    if need == 0:
        return last, 0
    if w.o[0].unit == 1:
        return _take_words(w, j, last, need, which, beyond)
    return _take_nodes(w, j, last, need, which, beyond)


@lean
def take(w: World, j: int, beyond: bool, any_power: bool) -> int:
    """Give job `j` its cores (they are there: the caller has counted); returns when all its nodes are on, in us (now,
    if they are).

    beyond: the job runs past the head's reservation and leaves it alone. any_power: nodes that are not on may be given;
    those that are off are switched on.
    """
    now = w.s[0].now
    need = np.int64(w.job[j].cores)
    last, need = take_set(w, j, codes.NONE, need, codes.SET_ON, beyond)
    if need == 0 or not any_power:
        return now
    first = last
    last, need = take_set(w, j, last, need, codes.SET_BOOT, beyond)
    last, need = take_set(w, j, last, need, codes.SET_OFF, beyond)
    ready = now
    c = w.run[j].chunk if first == codes.NONE else first
    while c != codes.NONE:
        for n in range(w.chunk[c].low, w.chunk[c].high + 1):
            if w.node[n].power == codes.OFF:
                switch_on(w, n)
            if w.node[n].power == codes.SWITCHING_ON:
                ready = max(ready, w.node[n].done)
        c = np.int64(w.chunk[c].next)
    return ready


@lean
def readiness(w: World, cores: int, beyond: bool) -> int:
    """When the nodes that `take` would give to a job of `cores` cores would all be on, us; nothing is taken."""
    s = w.s[0]
    o = w.o[0]
    need = cores
    ready = s.now
    for which in range(codes.SET_ON, codes.SET_OFF + 1):
        row = w.bits[which]
        for i in range(row.shape[0]):
            word = row[i]
            if o.unit == 1 and beyond:
                word &= ~w.bits[codes.SET_RESERVED, i]
            while word != bits.ZERO and need > 0:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                k = 1 if o.unit == 1 else node_take(w, n, need, beyond)
                if k > 0:
                    need -= k
                    if which == codes.SET_BOOT:
                        ready = max(ready, w.node[n].done)
                    elif which == codes.SET_OFF:
                        ready = max(ready, s.now + w.profile[w.node[n].profile].on_us)
            if need == 0:
                return ready
    return ready


@lean
def give_back(w: World, j: int) -> None:
    """Job `j` gives its cores back; its nodes are on. The chunks are recycled unless they are kept for the tables."""
    s = w.s[0]
    unit = w.o[0].unit == 1
    row = w.bits[codes.SET_ON]
    c = np.int64(w.run[j].chunk)
    total = 0
    while c != codes.NONE:
        low = np.int64(w.chunk[c].low)
        high = np.int64(w.chunk[c].high)
        per = np.int64(w.chunk[c].per)
        if unit:
            bits.put_range(row, low, high)
        else:
            for n in range(low, high + 1):
                set_free(w, n, np.int64(w.node[n].free) + per)
                bits.put(row, n)
        if w.demand.shape[0] > 0 and w.job[j].single != 0:
            parts = parts_in(w, j, per)
            for n in range(low, high + 1):
                use_kinds(w, j, n, -parts)
        total += per * (high - low + 1)
        lower_hint(w, codes.SET_ON, low >> 6)
        c = np.int64(w.chunk[c].next)
    s.free_on += total


@lean
def recycle(w: World, j: int) -> None:
    """The chunks of job `j` are no longer needed."""
    s = w.s[0]
    c = np.int64(w.run[j].chunk)
    while c != codes.NONE:
        following = np.int64(w.chunk[c].next)
        w.chunk[c].next = s.free_chunk
        s.free_chunk = c
        c = following
    w.run[j].chunk = codes.NONE


@lean
def has_room(w: World, j: int, any_power: bool) -> bool:
    """Is there room now for all parts of job `j`, which goes by nodes?"""
    left = parts_of(w, j)
    last = codes.SET_OFF if any_power else codes.SET_ON
    level = level_of(w, j)
    for which in range(codes.SET_ON, last + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i, level)
            while word != bits.ZERO:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                left -= room_on(w, j, n, left)
                if left == 0:
                    return True
    return False


@inlined
def node_readiness(w: World, n: int, which: int) -> int:
    """When node `n` of a set would be on, us."""
    if which == codes.SET_BOOT:
        return w.node[n].done
    if which == codes.SET_OFF:
        return w.s[0].now + w.profile[w.node[n].profile].on_us
    return w.s[0].now


@lean
def readiness_of_parts(w: World, j: int, any_power: bool) -> int:
    """When the nodes that `take_parts` would give to job `j` would all be on, us; nothing is taken."""
    left = parts_of(w, j)
    ready = w.s[0].now
    last = codes.SET_OFF if any_power else codes.SET_ON
    level = level_of(w, j)
    for which in range(codes.SET_ON, last + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i, level)
            while word != bits.ZERO:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                count = room_on(w, j, n, left)
                if count > 0:
                    ready = max(ready, node_readiness(w, n, which))
                    left -= count
                    if left == 0:
                        return ready
    return ready


@lean
def take_parts(w: World, j: int, any_power: bool) -> int:
    """Give job `j` the lowest nodes with room for its parts, in the order on, switching on, off (they are there: the
    caller has looked); returns when all are on, us."""
    left = parts_of(w, j)
    taken = 0
    ready = w.s[0].now
    chunk = codes.NONE
    last = codes.SET_OFF if any_power else codes.SET_ON
    level = level_of(w, j)
    for which in range(codes.SET_ON, last + 1):
        for i in range(w.bits.shape[1]):
            word = word_for(w, j, which, i, level)
            while word != bits.ZERO:
                n = (i << 6) + bits.lowest(word)
                word &= word - bits.ONE
                count = room_on(w, j, n, left)
                if count > 0:
                    chunk, on = take_on(w, j, chunk, n, taken, count)
                    ready = max(ready, on)
                    taken += count
                    left -= count
                    if left == 0:
                        return ready
    return ready


@inlined
def node_fits(w: World, j: int, n: int) -> bool:
    """Has node `n`, whatever its power state, room for all demands of the single-node job `j` now?"""
    free = 1 if w.o[0].unit == 1 else w.node[n].free
    if free < w.job[j].cores:
        return False
    if w.demand.shape[0] > 0:
        for k in range(w.demand.shape[1]):
            if w.room[n, k] < w.demand[j, k]:
                return False
    return True


@lean
def take_cores(w: World, n: int, per: int) -> int:
    """Take `per` free cores of node `n`; returns when it is on, us."""
    which = set_of(w.node[n].power)
    if w.o[0].unit == 1:
        bits.drop(w.bits[which], n)
    else:
        set_free(w, n, np.int64(w.node[n].free) - per)
        if w.node[n].free == 0:
            bits.drop(w.bits[which], n)
    add_free(w, which, -per)
    if w.node[n].power == codes.OFF:
        switch_on(w, n)
    if w.node[n].power == codes.SWITCHING_ON:
        return w.node[n].done
    return w.s[0].now


@lean
def take_on(w: World, j: int, chunk: int, n: int, first: int, count: int) -> tuple[int, int]:
    """Give job `j`, whose last chunk is `chunk`, room for so many of its parts, from `first` on, on node `n`, which has
    it; returns its last chunk, and when the node is on, us."""
    per = cores_of(w, j, first, count)
    chunk = append_chunk(w, j, chunk, n, n, per)
    use_kinds(w, j, n, count)
    return chunk, take_cores(w, n, per)
