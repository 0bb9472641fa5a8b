"""Does what was said of a machine make sense? One pass over its columns; whoever is told no looks for the reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from escala.compile import inlined, lean
from escala.kernel import codes
from escala.kernel.clock import SECOND

LATEST_S = 1e11
MOST = 2**31 - 1  # the largest whole number
WRONG = -(1 << 62)
STATES = {"queued": codes.QUEUED, "given": codes.GIVEN, "running": codes.RUNNING}
POWER = {"on": codes.ON, "switching_on": codes.SWITCHING_ON, "off": codes.OFF, "switching_off": codes.SWITCHING_OFF}
END = 10  # of a word, a line feed
_STATES, _POWER = (
    np.frombuffer("".join(f"{word}\n" for word in known).encode(), np.uint8) for known in (STATES, POWER)
)
_OF_STATES, _OF_POWER = (np.array(list(known.values())) for known in (STATES, POWER))


@lean
def survey(now: int, jobs: Any, nodes: Any, placed: Any) -> tuple[int, int, int, int, int, int, int]:
    """Of JOBS, NODES and PLACED at `now`, us, as in `escala.live.snapshot.Survey`: do they make sense (1); jobs out of
    the order of their submission, and jobs of one node; the most cores of a job; cores that jobs hold; switches whose
    end nobody tells, and nodes that are not on. What waits has no start from here on."""
    late = 0
    single = 0
    most = 0
    held = 0
    untold = 0
    off = 0
    sound = 1
    for k in range(jobs.shape[0]):
        job = jobs[k]
        if job.cores < 1 or job.walltime < 1 or job.submit > now:
            sound = 0
        if job.state != codes.RUNNING:
            job.start = codes.NONE
        elif job.start < 0 or job.start > now:
            sound = 0
        late += k > 0 and job.submit < jobs[k - 1].submit
        single += job.single
        most = max(most, job.cores)
    for n in range(nodes.shape[0]):
        node = nodes[n]
        if node.power == codes.ON and node.since > now:
            sound = 0
        untold += node.done < 0 and node.power % 2 == 1
        off += node.power != codes.ON
    if sound == 1:
        held = _sound_places(placed, jobs, nodes.shape[0])
    return np.int64(sound == 1 and held >= 0), late, single, most, held, untold, off


@inlined
def _sound_places(placed: Any, jobs: Any, n_nodes: int) -> int:
    """The cores held in PLACED, where those of a job stand together and the jobs in their order, on nodes that there
    are, and each job that holds any has all its cores; -1 where it is otherwise."""
    p = 0
    total = 0
    for k in range(jobs.shape[0]):
        cores = 0 if jobs[k].state == codes.QUEUED else jobs[k].cores
        held = 0
        while p < placed.shape[0] and placed[p].job == k:
            one = placed[p]
            if one.low < 0 or one.high < one.low or one.high >= n_nodes or one.per < 1 or one.per > cores:
                return -1
            held += (one.high - one.low + 1) * one.per
            p += 1
        if held != cores:
            return -1
        total += held
    return total if p == placed.shape[0] else -1  # what is left is out of order, or of a job that there is not


@inlined
def _us(seconds: float, absent: int) -> int:
    """A time in us, half up; `absent` for NaN, WRONG for what is none."""
    if np.isnan(seconds):
        return absent
    return np.int64(np.floor(seconds * SECOND + 0.5)) if 0.0 <= seconds <= LATEST_S else WRONG


@inlined
def _word(words: Any, at: int, letters: Any, numbers: Any) -> tuple[int, int]:
    """The number of the word at `at`, and where the next one begins; WRONG where it is none of those in `letters`."""
    m = 0
    for k in range(numbers.shape[0]):
        end = at
        while letters[m] != END and end < words.shape[0] and words[end] == letters[m]:
            end += 1
            m += 1
        if letters[m] == END and end < words.shape[0] and words[end] == END:
            return numbers[k], end + 1
        while letters[m] != END:
            m += 1
        m += 1
    return WRONG, at


@lean
def take_in(
    now: int, times: Any, whole: Any, words: Any, jobs: Any, nodes: Any, placed: Any
) -> tuple[int, int, int, int, int, int, int]:
    """Fills JOBS, NODES and PLACED, and surveys them. Columns, one behind the other, are times, s, NaN where there is
    none: submit, walltime, start, and of nodes idle since, end of the switch; whole numbers: cores, single, of nodes
    gone, and all of PLACED; words, uint8, a line feed behind each: states, and of nodes power. What is no time, no word
    or too large makes no sense."""
    n_jobs = jobs.shape[0]
    n_nodes = nodes.shape[0]
    sound = 1
    at = 0
    for k in range(n_jobs):
        job = jobs[k]
        job.row = k
        job.submit = _us(times[k], WRONG)
        job.walltime = _us(times[n_jobs + k], WRONG)
        job.start = _us(times[2 * n_jobs + k], codes.NONE)
        job.cores = whole[k]
        job.single = whole[n_jobs + k]
        job.state, at = _word(words, at, _STATES, _OF_STATES)
        job.user = codes.NONE
        job.estimate = codes.NONE
        job.order = codes.NONE
        if job.submit == WRONG or job.start == WRONG or job.state == WRONG or job.cores > MOST:
            sound = 0
    for n in range(n_nodes):
        node = nodes[n]
        node.since = _us(times[3 * n_jobs + n], now)
        node.done = _us(times[3 * n_jobs + n_nodes + n], codes.NONE)
        node.gone = whole[2 * n_jobs + n]
        node.power, at = _word(words, at, _POWER, _OF_POWER)
        if node.since == WRONG or node.done == WRONG or node.power == WRONG:
            sound = 0
    n_placed = placed.shape[0]
    first = 2 * n_jobs + n_nodes
    for p in range(n_placed):
        place = placed[p]
        place.job = whole[first + p]
        place.low = whole[first + n_placed + p]
        place.high = whole[first + 2 * n_placed + p]
        place.per = whole[first + 3 * n_placed + p]
    if sound == 0 or at != words.shape[0]:
        none = np.int64(0)
        return none, none, none, none, none, none, none
    return survey(now, jobs, nodes, placed)
