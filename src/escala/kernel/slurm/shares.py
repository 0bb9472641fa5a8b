"""Fair share: used core time of users and accounts, halved as time goes by, and the factor that it gives, as slurmctld
reckons.

Usage is charged at each PriorityCalcPeriod, and, where limits are enforced, at the end of a job for what it ran since,
in CPU seconds or in what its partition bills (https://slurm.schedmd.com/priority_multifactor.html,
https://slurm.schedmd.com/tres.html).
Two formulas: the fair tree, whose factor is a user's rank (https://slurm.schedmd.com/fair_tree.html), and the classic
2^(-U/S) (https://slurm.schedmd.com/classic_fair_share.html).
"""

from __future__ import annotations

from escala.compile import compiled, lean
from escala.kernel.slurm.clock import unix_s
from escala.kernel.slurm.order import BY_NUMBER, BY_SHARES, sort
from escala.kernel.slurm.tables import (
    BILL_CPU,
    BILL_GPU,
    BILL_KINDS,
    BILL_MEMORY,
    BILL_NODE,
    CHARGED,
    MEMORY_CORE,
    MEMORY_NODE,
    N_QUEUE,
    N_RUNNING,
    NOW,
    RESET,
    Grid,
    Rules,
    Shares,
    World,
    one,
)

TREE, CLASSIC = 1, 2
BY_CPUS, BY_SUM, BY_MOST = range(3)
"""How a partition bills: CPUs alone, the weighted resources together, or the dearest of them
(PriorityFlags=MAX_TRES)."""
ENDLESS, ABOVE, UNKNOWN = 1e300, -1e308, -1.0


@lean
def charge(w: World, j: int, until_s: int) -> None:
    """What job j has run since the last charge to its user."""
    jobs, shares, s, rules = w.jobs, w.shares, w.s, w.rules
    ran = until_s - max(unix_s(rules, jobs.start[j]), s[CHARGED])
    if ran < 1:
        return
    used = billed(w, j) * (ran * rules.decay**ran) * shares.usage_factor[j]
    shares.usage[shares.of_job[j]] += used
    shares.usage[0] += used


@lean
def billed(w: World, j: int) -> float:
    """What a second of job j is charged."""
    jobs, shares, given = w.jobs, w.shares, w.allocated
    first, last = jobs.first[j], jobs.last[j]
    cpus, nodes = 0, 0
    for at in range(first, last):
        cpus += given.cpus[at]
        nodes += given.cpus[at] > 0
    part = w.records.part[jobs.ran[j]]
    if shares.billed[part] == BY_CPUS:
        return float(cpus)
    memory = 0
    for at in range(first, last):
        memory += given.memory[at]
    if w.rules.by_memory == 0 and w.rules.linear == 1:  # not given away: as asked for
        by_core = jobs.shape[j, MEMORY_CORE]
        memory = by_core * cpus if by_core > 0 else max(jobs.shape[j, MEMORY_NODE], 0) * nodes
    bill = shares.bill[part]
    total, most = 0.0, 0.0
    for kind in range(bill.size):
        count = cpus if kind == BILL_CPU else memory if kind == BILL_MEMORY else nodes if kind == BILL_NODE else 0
        if kind >= BILL_GPU:
            for at in range(first, last):
                for k in range(given.gpus.shape[1]):
                    if kind == BILL_GPU or kind == BILL_KINDS + k:
                        count += given.gpus[at, k]
        total += bill[kind] * count
        most = max(most, bill[kind] * count)
    return most if shares.billed[part] == BY_MOST else total


@lean
def settle(w: World) -> None:
    """Forget all usage, where a reset is due; decay what there is up to now, and charge what runs."""
    shares, s, rules = w.shares, w.s, w.rules
    now_s = unix_s(rules, s[NOW])
    if rules.reset_s > 0 and now_s >= s[RESET]:
        shares.usage[:] = 0.0
        s[RESET] += ((now_s - s[RESET]) // rules.reset_s + 1) * rules.reset_s
    kept = rules.decay ** (now_s - s[CHARGED])
    for a in range(shares.usage.size):
        shares.usage[a] *= kept
    if rules.fair == CLASSIC:
        _settle_classic(w, now_s)
    else:
        for i in range(s[N_RUNNING]):
            charge(w, w.lists.running[i], now_s)
        weigh(w)
    s[CHARGED] = now_s


@lean
def _settle_classic(w: World, now_s: int) -> None:
    """As slurmctld goes through its jobs, in the order of their submission: the effective usage of accounts is that
    before what runs is charged; that of a user is reckoned at the first of its jobs that waits, when only what runs
    before that job has been charged, and holds until the next period. Who has none that waits is reckoned when it next
    has one."""
    shares, s, rules = w.shares, w.s, w.rules
    weigh(w)
    for a in range(shares.parent.size):
        if shares.user[a] == 1:
            shares.factor[a] = UNKNOWN
    running, waiting = w.room.running, w.room.waiting
    for i in range(s[N_RUNNING]):
        running[i] = w.lists.running[i]
    for i in range(s[N_QUEUE]):
        waiting[i] = w.lists.queue[i]
    sort(w, running, s[N_RUNNING], BY_NUMBER)
    sort(w, waiting, s[N_QUEUE], BY_NUMBER)  # records stand in the order of their jobs
    at = 0
    for i in range(s[N_QUEUE]):
        j = w.records.job[waiting[i]]
        if shares.factor[shares.of_job[j]] != UNKNOWN:
            continue
        while at < s[N_RUNNING] and running[at] < j:
            charge(w, running[at], now_s)
            at += 1
        fair_of(shares, rules, j)
    while at < s[N_RUNNING]:
        charge(w, running[at], now_s)
        at += 1


@compiled
def weigh_first(table: Grid) -> None:
    """`weigh`, for what is not compiled. table: of `table_of`."""
    w = one(table, 0)
    weigh(w)


@lean
def weigh(w: World) -> None:
    """The factor of each user, 0 to 1, from the usage as it is. Rows: parents before children, usage in those of
    users."""
    shares, rules = w.shares, w.rules
    for a in range(shares.parent.size - 1, 0, -1):
        if shares.user[a] == 0:
            shares.usage[a] = 0.0
    shares.usage[0] = 0.0
    for a in range(shares.parent.size - 1, 0, -1):
        shares.usage[shares.parent[a]] += shares.usage[a]
    if rules.fair == CLASSIC:
        _classic(shares, rules.dampening)
    else:
        _tree(w)


@lean
def _classic(shares: Shares, dampening: float) -> None:
    """2^(-U/S): shares as a part of all, usage as a part of all and, by its share of it, of the account's."""
    total = shares.usage[0]
    shares.level[0], shares.factor[0] = 1.0, 1.0  # part of all shares; effective usage, until the second loop
    for a in range(1, shares.parent.size):
        up = shares.parent[a]
        of_level = shares.shares[a] / shares.among[a] if shares.among[a] > 0 else 0.0
        shares.level[a] = shares.level[up] * of_level
        own = shares.usage[a] / total if total > 0 else 0.0
        shares.factor[a] = own if up == 0 else own + (shares.factor[up] - own) * of_level
    for a in range(shares.parent.size):
        shares.effective[a] = shares.factor[a]
        shares.factor[a] = _by_use(shares.effective[a], shares.level[a], dampening)


@lean
def _by_use(used: float, part: float, dampening: float) -> float:
    """The factor by effective usage and share."""
    return 2.0 ** (-(used / part) / dampening) if part > 0 else 0.0


@lean
def _tree(w: World) -> None:
    """Ranks: at each level the larger shares / usage goes first, with everybody below it; of accounts that tie the
    first of the site."""
    shares = w.shares
    n, deep = shares.path.shape
    for a in range(1, shares.parent.size):
        up = shares.parent[a]
        part = shares.usage[a] / shares.usage[up] if shares.usage[up] > 0 else 0.0
        level = shares.shares[a] / shares.among[a] if shares.among[a] > 0 else 0.0
        shares.level[a] = 0.0 if level <= 0 else ENDLESS if part <= 0 else level / part
    order = shares.order
    for k in range(n):
        order[k] = k
        a = shares.leaf[k]
        for d in range(deep - 1, -1, -1):
            above = d >= shares.depth[a]
            shares.path[k, d] = ABOVE if above else -shares.level[a]
            # users before accounts
            shares.row[k, d] = a if shares.user[a] == 1 else a + shares.parent.size
            a = a if above else shares.parent[a]
    sort(w, order, n, BY_SHARES)
    tied_rank = n
    for i in range(n):
        if i == 0 or not _ties(shares, shares.leaf[order[i - 1]], shares.leaf[order[i]]):
            tied_rank = n - i
        shares.factor[shares.leaf[order[i]]] = tied_rank / n


@lean
def _ties(shares: Shares, a: int, b: int) -> bool:
    """Is user b as good as user a, who stands before it, or the first of an account that is as good as what stands
    before it?"""
    while shares.depth[a] > shares.depth[b]:
        a = shares.parent[a]
    while shares.depth[b] > shares.depth[a]:
        b = shares.parent[b]
    while shares.parent[a] != shares.parent[b]:
        a, b = shares.parent[a], shares.parent[b]
    return shares.level[a] == shares.level[b]


@lean
def fair_of(shares: Shares, rules: Rules, j: int) -> float:
    """The factor of the user of job j; with the classic formula, where it is not known, by what has been used up to now
    and, of its account, up to the last period."""
    a = shares.of_job[j]
    if shares.factor[a] == UNKNOWN:
        up, total = shares.parent[a], shares.usage[0]
        of_level = shares.shares[a] / shares.among[a] if shares.among[a] > 0 else 0.0
        own = shares.usage[a] / total if total > 0 else 0.0
        used = own if up == 0 else own + (shares.effective[up] - own) * of_level
        shares.factor[a] = _by_use(used, shares.level[a], rules.dampening)
    return shares.factor[a]
