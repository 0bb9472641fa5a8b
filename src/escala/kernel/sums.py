"""What the sums over all nodes say of the agenda (`escala.kernel.agenda`): where a hole may be."""

from __future__ import annotations

import numpy as np

from escala.compile import lean
from escala.kernel import bits, codes
from escala.kernel.state import World

TIME = 0
FINE = 1
ROW = 2  # the first `n_rows` of them are a permutation: those past the slices in use are free


@lean
def possible(w: World, j: int, begin: int, before: int, own: int) -> int:
    """Position of the first slice, from `begin` on, with the cores of job `j` free for its walltime or until `own` (us;
    from then on it has them itself), all nodes together; NONE if none begins before the time `before`, which is not
    after `own`."""
    times = w.slices[TIME]
    n = w.s[0].n_slices
    length = w.job[j].walltime + w.o[0].margin_us
    start = np.int64(codes.NONE)  # of the hole that is being looked at, which must reach `until`
    until = codes.NEVER_US
    for first in range(begin, n, 64):
        if start == codes.NONE and times[first] >= before:
            return codes.NONE
        word = bits.below(w.spare, first, n, w.job[j].cores)  # those with too few cores
        rest = bits.FULL
        while True:
            if start == codes.NONE:
                enough = ~word & rest
                if enough == bits.ZERO:
                    break
                at = bits.lowest(enough)
                start = first + at
                if start >= n or times[start] >= before:
                    return codes.NONE
                until = min(times[start] + length, own)
                rest = bits.FULL << np.uint64(at)
            end = word & rest
            if end == bits.ZERO:
                break
            at = bits.lowest(end)
            if times[first + at] >= until:
                return start
            start = np.int64(codes.NONE)
            rest = bits.FULL << np.uint64(at)
    return start
