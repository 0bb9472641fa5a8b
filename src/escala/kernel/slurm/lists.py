"""The queue in order, running jobs by their planned end, and ends to come."""

from __future__ import annotations

from escala.compile import lean
from escala.kernel.slurm.order import BY_PRIORITY, before, sort
from escala.kernel.slurm.tables import (
    DIRTY,
    FAR,
    FIRST_LATER,
    N_LATER,
    N_QUEUE,
    N_RUNNING,
    Ints,
    Jobs,
    Lists,
    Records,
    World,
)


@lean
def enqueue(records: Records, lists: Lists, s: Ints, record: int) -> None:
    """Put a record at its place in the queue."""
    low, high = 0, s[N_QUEUE]
    while low < high:
        middle = (low + high) // 2
        if before(records, record, lists.queue[middle]):
            high = middle
        else:
            low = middle + 1
    for i in range(s[N_QUEUE], low, -1):
        lists.queue[i] = lists.queue[i - 1]
    lists.queue[low] = record
    s[N_QUEUE] += 1


@lean
def dequeue(records: Records, lists: Lists, s: Ints, j: int) -> None:
    """Take all records of job j out of the queue."""
    kept = 0
    for i in range(s[N_QUEUE]):
        if records.job[lists.queue[i]] != j:
            lists.queue[kept] = lists.queue[i]
            kept += 1
    s[N_QUEUE] = kept


@lean
def sort_queue(w: World) -> None:
    """The whole queue anew, after its priorities have changed."""
    w.s[DIRTY] = 0
    sort(w, w.lists.queue, w.s[N_QUEUE], BY_PRIORITY)


@lean
def _running_place(jobs: Jobs, lists: Lists, s: Ints, j: int) -> int:
    """How many running jobs stand before job j: slurmctld takes them out of its list of jobs and sorts them, stably, by
    planned end."""
    low, high = 0, s[N_RUNNING]
    while low < high:
        middle = (low + high) // 2
        other = lists.running[middle]
        if jobs.end_s[other] < jobs.end_s[j] or (jobs.end_s[other] == jobs.end_s[j] and other < j):
            low = middle + 1
        else:
            high = middle
    return low


@lean
def add_running(jobs: Jobs, lists: Lists, s: Ints, j: int) -> None:
    """A job among the running ones, by planned end; those of one end in the order of their submission."""
    at = _running_place(jobs, lists, s, j)
    for i in range(s[N_RUNNING], at, -1):
        lists.running[i] = lists.running[i - 1]
    lists.running[at] = j
    s[N_RUNNING] += 1


@lean
def put_later(lists: Lists, s: Ints, us: int, j: int) -> None:
    """Job j may be looked at again from a moment on; below 0: follower -1 - j. Behind those that wait for the same
    one."""
    size = lists.later_job.size
    at = (s[FIRST_LATER] + s[N_LATER]) % size
    for _ in range(s[N_LATER]):
        earlier = (at - 1) % size
        if lists.later_us[earlier] <= us:
            break
        lists.later_us[at] = lists.later_us[earlier]
        lists.later_job[at] = lists.later_job[earlier]
        at = earlier
    lists.later_us[at] = us
    lists.later_job[at] = j
    s[N_LATER] += 1


@lean
def remove_running(jobs: Jobs, lists: Lists, s: Ints, j: int) -> None:
    """The same job out of them."""
    at = _running_place(jobs, lists, s, j)
    s[N_RUNNING] -= 1
    for i in range(at, s[N_RUNNING]):
        lists.running[i] = lists.running[i + 1]


@lean
def push_end(lists: Lists, size: int, us: int, j: int) -> None:
    """An end into the heap of `size` entries; of one instant the earlier job first."""
    i = size
    while i > 0:
        up = (i - 1) // 2
        if lists.heap_us[up] < us or (lists.heap_us[up] == us and lists.heap_job[up] < j):
            break
        lists.heap_us[i] = lists.heap_us[up]
        lists.heap_job[i] = lists.heap_job[up]
        i = up
    lists.heap_us[i] = us
    lists.heap_job[i] = j


@lean
def move_end(lists: Lists, size: int, us: int, j: int) -> None:
    """The end of job j, which is in the heap, at another moment: what lies behind it in the table is put in anew, as it
    may stand wrong."""
    at = 0
    while lists.heap_job[at] != j:
        at += 1
    lists.heap_us[at] = us
    for k in range(size):
        moment, job = lists.heap_us[k], lists.heap_job[k]
        push_end(lists, k, moment, job)


@lean
def pop_end(lists: Lists, size: int) -> int:
    """The job that ends first, out of the heap of `size` entries."""
    first = lists.heap_job[0]
    us, j = lists.heap_us[size - 1], lists.heap_job[size - 1]
    size -= 1
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and _earlier(lists, down + 1, down):
            down += 1
        if us < lists.heap_us[down] or (us == lists.heap_us[down] and j < lists.heap_job[down]):
            break
        lists.heap_us[i] = lists.heap_us[down]
        lists.heap_job[i] = lists.heap_job[down]
        i = down
    if size > 0:
        lists.heap_us[i] = us
        lists.heap_job[i] = j
    return first


@lean
def drop_end(lists: Lists, size: int, j: int) -> None:
    """The end of job j out of the heap: before all others, it is the one that is popped."""
    move_end(lists, size, -FAR, j)
    pop_end(lists, size)


@lean
def _earlier(lists: Lists, a: int, b: int) -> bool:
    return lists.heap_us[a] < lists.heap_us[b] or (
        lists.heap_us[a] == lists.heap_us[b] and lists.heap_job[a] < lists.heap_job[b]
    )


@lean
def records_before(jobs: Jobs, records: Records, lists: Lists, i: int, j: int) -> int:
    """Records of job j in front of place i of the queue."""
    found = 0
    if jobs.record[j + 1] - jobs.record[j] > 1:
        for k in range(i):
            if records.job[lists.queue[k]] == j:
                found += 1
    return found
