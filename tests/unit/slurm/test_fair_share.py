"""Fair share by hand: the trees of Slurm's documentation, charging and decay, and the files that tell of accounts.

Sources: https://slurm.schedmd.com/fair_tree.html, classic_fair_share.html and priority_multifactor.html.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala import EscalaError
from escala.compile import lean
from escala.kernel.slurm import tables as t
from escala.kernel.slurm.shares import settle, weigh_first
from escala.platform.exports import read_exports
from escala.platform.site_write import site_text
from escala.slurm import settings_of
from escala.slurm.arrays import arrays_of
from escala.slurm.asked import Asking
from escala.slurm.in_name import changed
from escala.slurm.run import play

SITE = """\
name = "fair"
[[nodes]]
names = "n[1-4]"
cores = 4
[slurm]
PriorityType = "priority/multifactor"
PriorityWeightFairshare = 1000000
AccountingStorageType = "accounting_storage/slurmdbd"
PriorityCalcPeriod = "1"
"""


def site(tmp_path: Path, accounts: str, more: str = "") -> Any:
    path = tmp_path / "site.toml"
    path.write_text(f"{SITE}{more}\n[accounts]\n{accounts}\n")
    return escala.read_site(path)


def jobs(users: list[str], **columns: Any) -> escala.Workload:
    """One job of each "account/user", a minute apart."""
    n = len(users)
    table: dict[str, Any] = {
        "submit_s": [60.0 * k for k in range(n)],
        "runtime_s": [600.0] * n,
        "walltime_s": [3600.0] * n,
        "cores": [4] * n,
    }
    table |= {"account": [one.partition("/")[0] for one in users], "user": [one.partition("/")[2] for one in users]}
    return escala.Workload.from_jobs({**table, **columns}, origin_s=1_800_000_000.0)


def factors(place: Any, used: dict[str, float]) -> dict[str, float]:
    """User -> factor, for used CPU seconds of each."""
    work = jobs(list(used))
    settings = settings_of(place)
    run = arrays_of(work, place, settings, Asking(work, place, settings).asked())
    for j, name in enumerate(used):
        run.shares.usage[run.shares.of_job[j]] = used[name]
    weigh_first(t.table_of(run))
    return {name: float(run.shares.factor[run.shares.of_job[j]]) for j, name in enumerate(used)}


def test_the_fair_tree_ranks_accounts_before_their_users(tmp_path: Path) -> None:
    """A has used less than its share, so all its users stand before those of B, whatever they used: 4/4, 3/4, 2/4,
    1/4."""
    place = site(tmp_path, "A = {shares = 3}\nB = {shares = 1}")
    assert factors(place, {"A/a": 60.0, "A/b": 10.0, "B/c": 1.0, "B/d": 39.0}) == {
        "A/b": 1.0,
        "A/a": 0.75,
        "B/c": 0.5,
        "B/d": 0.25,
    }


def test_ties_of_the_fair_tree(tmp_path: Path) -> None:
    """Users that tie share a rank and the next is skipped; a user that ties with an account has the rank of its best
    user. Of accounts that tie the best user of the second has the rank of the last before: slurmctld does not merge
    them, since _count_tied_accounts stops at an account, whatever fair_tree.html says."""
    flat = site(tmp_path, "A = {}")
    assert factors(flat, {"A/a": 0.0, "A/b": 10.0, "A/c": 10.0, "A/d": 40.0}) == {
        "A/a": 1.0,
        "A/b": 0.75,
        "A/c": 0.75,
        "A/d": 0.25,
    }
    two = site(tmp_path, "A = {}\nB = {}")
    assert factors(two, {"A/a": 10.0, "A/b": 30.0, "B/c": 20.0, "B/d": 20.0}) == {
        "A/a": 1.0,
        "A/b": 0.75,
        "B/c": 0.75,
        "B/d": 0.75,
    }
    mixed = site(tmp_path, "A = {}\nroot = {}")
    assert factors(mixed, {"root/u": 20.0, "A/a": 5.0, "A/b": 15.0}) == {
        "root/u": 1.0,
        "A/a": 1.0,
        "A/b": pytest.approx(1 / 3),
    }


def test_no_shares_come_last_and_idle_users_count(tmp_path: Path) -> None:
    place = site(tmp_path, "A = {users = {a = 1, z = 0, idle = 1, gone = 1}}")
    assert factors(place, {"A/a": 10.0, "A/z": 0.0}) == {"A/a": 0.5, "A/z": 0.25}


def test_the_classic_formula(tmp_path: Path) -> None:
    """Shares: A 3 of 4, its users half of it each. Effective usage of a: .2 + (.5 - .2) x 1/2 = .35, its share 3/8:
    2^(-.35 / .375)."""
    place = site(tmp_path, "A = {shares = 3}\nB = {shares = 1}", 'PriorityFlags = "NO_FAIR_TREE"')
    found = factors(place, {"A/a": 20.0, "A/b": 30.0, "B/c": 50.0})
    assert found == {
        "A/a": pytest.approx(2 ** (-0.35 / 0.375)),
        "A/b": pytest.approx(2 ** (-0.4 / 0.375)),
        "B/c": pytest.approx(2**-2.0),
    }
    damped = site(
        tmp_path, "A = {shares = 3}\nB = {shares = 1}", 'PriorityFlags = "NO_FAIR_TREE"\nFairShareDampeningFactor = 2'
    )
    assert factors(damped, {"A/a": 20.0, "A/b": 30.0, "B/c": 50.0})["B/c"] == pytest.approx(0.5)


@lean
def settled(table: Any) -> None:
    settle(t.one(table, 0))


def test_the_classic_formula_charges_jobs_in_the_order_of_their_submission(tmp_path: Path) -> None:
    """Jobs 1 and 3 run, 2 and 4 wait; both lists stand the other way round. At job 2 only job 1 has been charged: ann
    has used all, half of it counts, her share is a half. At job 4 bob has used a half."""
    place = site(tmp_path, "A = {}", 'PriorityFlags = "NO_FAIR_TREE"')
    work = jobs(["A/ann", "A/ann", "A/bob", "A/bob"])
    settings = settings_of(place)
    run = arrays_of(work, place, settings, Asking(work, place, settings).asked())
    for j in (0, 2):
        run.jobs.start[j], run.jobs.ran[j], run.jobs.last[j] = 0, j, run.jobs.first[j] + 1
        run.allocated.cpus[run.jobs.first[j]] = 4
    run.lists.running[:2], run.lists.queue[:2] = (2, 0), (3, 1)
    run.s[[t.N_RUNNING, t.N_QUEUE]] = 2
    run.s[t.NOW] = 600 * t.SECOND
    settled(t.table_of(run))
    assert run.shares.factor[run.shares.of_job[[1, 3]]] == pytest.approx([2 ** (-0.5 / 0.5), 2 ** (-0.25 / 0.5)])


def test_who_has_used_less_goes_first(tmp_path: Path) -> None:
    """bob's second job was submitted last, and starts before ann's, who has used the machine; without fair share the
    order is kept."""
    place = site(tmp_path, "A = {}")
    work = jobs(["A/ann", "A/ann", "A/bob"], cores=[16, 16, 16])
    assert escala.simulate(work, place, scheduler="slurm").jobs.sort("start_s")["job_id"].to_list() == ["1", "3", "2"]
    (tmp_path / "plain.toml").write_text(SITE.replace("1000000", "0"))
    plain = escala.simulate(work, escala.read_site(tmp_path / "plain.toml"), scheduler="slurm")
    assert plain.jobs.sort("start_s")["job_id"].to_list() == ["1", "2", "3"]


@pytest.mark.parametrize("more", ["", 'PriorityDecayHalfLife = "0"', 'PriorityDecayHalfLife = "0-1"'])
@pytest.mark.parametrize("seed", range(3))
def test_the_usage_is_the_decayed_integral_of_what_ran(tmp_path: Path, seed: int, more: str) -> None:
    """An independent ledger, from starts and ends alone: each piece of a run between two steps is charged and decays as
    slurmctld does it; and that is the integral of cores x 2^(-age / half-life), up to what two steps can change."""
    draw = np.random.default_rng([seed, 28])
    place = site(tmp_path, "A = {}\nB = {parent = 'A'}", more)
    n = 40
    users = [f"{a}/{u}" for a, u in zip(draw.choice(["A", "B", "C"], n), draw.choice(["x", "y"], n), strict=True)]
    run_s = draw.exponential(900, n).clip(1)
    work = jobs(
        users,
        submit_s=np.sort(draw.uniform(0, 9000, n)),
        runtime_s=run_s,
        walltime_s=run_s + 3600,
        cores=draw.integers(1, 17, n),
    )
    settings = settings_of(place)
    run = play(work, place, settings, Asking(work, place, settings).asked())
    last, decay, kept = int(run.s[t.CHARGED]), run.rules.decay, 2 * run.rules.calc_us // t.SECOND
    begun, zero = run.rules.started_us, run.rules.epoch_us
    beats = [us for k in range(10_000) if ((us := begun + k * run.rules.calc_us) + zero) // t.SECOND <= last] + [
        1 << 60
    ]
    assert (beats[-2] + zero) // t.SECOND == last
    strict, exact = np.zeros(len(run.shares.parent)), np.zeros(len(run.shares.parent))
    for j in range(n):
        row, cpus = run.shares.of_job[j], run.allocated.cpus[run.jobs.first[j] : run.jobs.last[j]].sum()
        start, end = (int((us + zero) // t.SECOND) for us in (run.jobs.start[j], run.jobs.finish[j]))
        exact[row] += cpus * (decay ** (last - np.arange(start, end).astype(float))).sum()
        for a_us, b_us in pairwise(beats):
            a, b = (int((us + zero) // t.SECOND) for us in (a_us, b_us))
            ran = min(end, b) - max(start, a)
            if ran > 0:  # an end within the step is charged there, and decays with all else at the end of the step
                strict[row] += (
                    cpus * ran * decay**ran * decay ** (last - (min(a, last) if run.jobs.finish[j] <= b_us else b))
                )
    user = run.shares.user == 1
    assert run.shares.usage[user] == pytest.approx(strict[user], rel=1e-9)
    assert run.shares.usage[user] == pytest.approx(exact[user], rel=1 - decay**kept + 1e-9)
    assert (exact[user] > 0).all()


def test_a_reset_forgets_all_usage(tmp_path: Path) -> None:
    """The clock starts at 08:00 UTC: a job of noon is forgotten after midnight, one of the next day is not."""
    place = site(tmp_path, "A = {}", 'PriorityUsageResetPeriod = "DAILY"\nPriorityDecayHalfLife = "0"')
    work = jobs(["A/a", "A/b"], submit_s=[3600.0, 90000.0])
    settings = settings_of(place)
    run = play(work, place, settings, Asking(work, place, settings).asked())
    assert run.shares.usage[run.shares.of_job].tolist() == [0.0, 2400.0]


def test_what_runs_at_a_reset_is_charged_for_the_last_period(tmp_path: Path) -> None:
    """Usage is forgotten first, at 00:00:57, and the minute since 23:59:57 charged then; the job ends at 00:10:00."""
    place = site(tmp_path, "A = {}", 'PriorityUsageResetPeriod = "DAILY"\nPriorityDecayHalfLife = "0"')
    work = jobs(["A/a"], submit_s=[57_000.0], runtime_s=[1200.0])
    settings = changed(settings_of(place), "slurm:started=-2.5:tick=0.4")
    run = play(work, place, settings, Asking(work, place, settings).asked())
    assert run.shares.usage[run.shares.of_job].tolist() == [603 * 4.0]


def test_ends_are_charged_where_limits_are_enforced(tmp_path: Path) -> None:
    """A job of 10 s between two periods: without limits slurmctld never looks at what it used (_adjust_limit_usage)."""
    for enforced, used in (("associations", 0.0), ("limits", 40.0)):
        place = site(tmp_path, "A = {}", f'AccountingStorageEnforce = "{enforced}"\nPriorityDecayHalfLife = "0"')
        work = jobs(["A/a"], submit_s=[65.0], runtime_s=[10.0])
        settings = changed(settings_of(place), "slurm:started=-2.5:tick=0.4")
        run = play(work, place, settings, Asking(work, place, settings).asked())
        assert run.shares.usage[run.shares.of_job].tolist() == [used]


def test_without_slurmdbd_it_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE.replace("slurmdbd", "none"))
    settings = settings_of(escala.read_site(path))
    assert not settings.fair_share
    assert any("slurmdbd" in one for one in settings.unread)


def test_a_given_priority_stays(tmp_path: Path) -> None:
    place = site(tmp_path, "A = {}")
    work = jobs(["A/ann", "A/ann", "A/bob"], cores=[16, 16, 16], priority=[1, 3_000_000, None])
    assert escala.simulate(work, place, scheduler="slurm").jobs.sort("start_s")["job_id"].to_list() == ["1", "2", "3"]


CONF = "ClusterName=lab\nNodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"
ASSOC = """\
Cluster|Account|User|Partition|Share|Priority|GrpJobs
lab|root|||1||
lab| root|root||1||
lab| physics|||30||
lab|  theory|||2||
lab|   theory|ann||3||
lab| chem|||10||
"""


def test_associations_of_sacctmgr(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "assoc.txt").write_text(ASSOC)
    place = read_exports([tmp_path / "slurm.conf", tmp_path / "assoc.txt"])
    assert place.accounts["theory"] == {"parent": "physics", "shares": 2, "users": {"ann": 3}}
    assert place.accounts["chem"] == {"parent": "root", "shares": 10, "users": {}}
    (tmp_path / "written.toml").write_text(site_text(place))
    assert escala.read_site(tmp_path / "written.toml").accounts == place.accounts
    (tmp_path / "named.txt").write_text(
        "Account|User|Share|Par Name\ntheory||2|physics\nphysics||30|root\ntheory|ann|3|\n"
    )
    assert (
        read_exports([tmp_path / "slurm.conf", tmp_path / "named.txt"]).accounts["theory"] == place.accounts["theory"]
    )


@pytest.mark.parametrize(
    ("accounts", "message"),
    [
        ("A = {parent = 'B'}\nB = {parent = 'A'}", "break the circle"),
        ("A = {parent = 'A'}", "break the circle"),
        ("A = {parent = 'C'}", "which is no account"),
        ("A = {share = 3}", "unknown entry `share`"),
        ("A = {shares = -1}", "out of range"),
        ("A = {users = {a = 'parent'}}", "not a whole number"),
        ("A = 3", "write a table"),
    ],
)
def test_bad_accounts_are_one_line(tmp_path: Path, accounts: str, message: str) -> None:
    with pytest.raises(EscalaError, match=message) as caught:
        site(tmp_path, accounts)
    assert "\n" not in str(caught.value)


def test_two_clusters_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=lab\nNodeName=n1 CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n")
    (tmp_path / "assoc.txt").write_text(ASSOC + "other|root|||1||\n")
    with pytest.raises(EscalaError, match="several clusters"):
        read_exports([tmp_path / "slurm.conf", tmp_path / "assoc.txt"])


SSHARE = """\
Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root||||100|0.000000|1.000000
 root|root|1|0.333333|0|0.000000|1.000000
 physics||3|0.750000|90|0.900000|
  physics|ann|1|0.500000|60|0.600000|0.5
  physics|bob|1|0.500000|30|0.300000|0.6
 chem||1|0.250000|10|0.100000|
  chem|cy|2|1.000000|10|0.100000|0.9
"""


def test_what_users_had_used_before_comes_from_sshare(tmp_path: Path) -> None:
    """Alone it says the tree too. "RawUsage: The number of cpu-seconds of all the jobs that charged the association"
    (https://slurm.schedmd.com/sshare.html); at the start bob, whose account has used more, stands behind cy."""
    conf, told = tmp_path / "slurm.conf", tmp_path / "sshare.txt"
    conf.write_text(CONF)
    told.write_text(SSHARE)
    place = read_exports([conf, told])
    assert place.accounts["physics"] == {
        "parent": "root", "shares": 3, "users": {"ann": 1, "bob": 1}, "usage": {"ann": 60.0, "bob": 30.0}
    }  # fmt: skip
    again = tmp_path / "site.toml"
    again.write_text(site_text(place))
    assert "ann = {shares = 1, usage = 60" in again.read_text() and escala.read_site(again).accounts == place.accounts
    tree = (
        "physics = {shares = 3, users = {ann = {usage = 60}, bob = {usage = 30}}}\nchem = {users = {cy = {usage = 10}}}"
    )
    work = jobs(["physics/ann", "physics/bob", "chem/cy"], submit_s=[0.0, 0.0, 0.0], cores=[16, 16, 16])
    orders = []
    for accounts in (tree, "physics = {shares = 3}\nchem = {}"):
        start = escala.simulate(work, site(tmp_path, accounts), scheduler="slurm").jobs["start_s"].to_list()
        orders.append(sorted(range(3), key=start.__getitem__))
    assert orders == [[2, 1, 0], [0, 2, 1]]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("|60|", "|much|", "RawUsage of 'ann': 'much' is no number of CPU seconds"),
        ("  chem|cy", "  chum|cy", "account 'chum' is not among the associations"),
        ("|3|0.75", "|parent|0.75", "share of 'physics'"),
    ],
)
def test_a_bad_sshare_is_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    conf, told = tmp_path / "slurm.conf", tmp_path / "sshare.txt"
    conf.write_text(CONF)
    told.write_text(SSHARE.replace(old, new))
    (tmp_path / "assoc.txt").write_text(ASSOC)
    among = [tmp_path / "assoc.txt"] if "chum" in new else []
    with pytest.raises(EscalaError, match=said):
        read_exports([conf, *among, told])
    with pytest.raises(EscalaError, match="user 'a', usage: -1 is no number of CPU seconds"):
        site(tmp_path, "A = {users = {a = {usage = -1}}}")
