"""Plan times: microseconds, and the exact residue that the reference engine's arithmetic leaves.

Under rules "batsched" a plan time is an exact sum of doubles: the clock rounded to 6 decimals, walltimes, a margin.
Written as (us, fine) with fine = time x 2**72 modulo 2**64, sums are two integer additions, and two sums with equal us
differ by far less than the modulus (4 ms), so that the signed difference of their fines decides exactly which is
earlier. Under rules "escala" every fine is 0.
"""

from __future__ import annotations

import numpy as np

from escala.compile import inlined

SECOND = 1_000_000  # us
TWO8 = float(1 << 8)
TWO64 = float(1 << 64)
HALF = np.uint64(1 << 63)  # a difference of residues from here on is negative


@inlined
def fine(us: int) -> int:
    """Residue of the double nearest to `us` x 1e-6 seconds: exact, as the last bit of the least of them, 1 us, is
    2**-72."""
    parts = us / 1e6 * TWO8
    return np.int64(np.uint64((parts - np.floor(parts)) * TWO64))


@inlined
def earlier(us_a: int, fine_a: int, us_b: int, fine_b: int) -> bool:
    """Is plan time a before plan time b? The difference may wrap around, so it is unsigned: of signed numbers the
    compiler assumes that it does not, and compares them without the modulus."""
    return us_a < us_b or (us_a == us_b and np.uint64(fine_a) - np.uint64(fine_b) >= HALF)
