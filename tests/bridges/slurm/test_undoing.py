"""Beside a fake Slurm: what undo takes back, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from escala.bridges.slurm import actor
from escala.bridges.slurm.actor import CHANGES, Changes
from escala.bridges.slurm.guard import Limits
from escala.bridges.slurm.loop import JOURNAL
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.undoing import check_cluster
from escala.errors import EscalaError
from tests.bridges.slurm.fake import FakeSlurm
from tests.bridges.slurm.world import FAST, World, queue, reserve, undo

pytestmark = pytest.mark.usefixtures("compiled")


def test_undo_gives_jobs_their_nice_back_but_not_what_others_have_set(tmp_path: Path) -> None:
    slurm = queue(7, 3, 1, 5)
    before = {job.number: (job.priority, job.nice) for job in slurm.jobs}
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    world.go(2)
    world.die()
    changed = [job for job in slurm.jobs if (job.priority, job.nice) != before[job.number]]
    assert len(changed) > 2
    changed[0].nice += 5  # by an administrator
    with open(tmp_path / CHANGES, "a") as file:
        file.write('{"job": "9')
    count = len(slurm.commands)
    assert undo(slurm, tmp_path, dry=True)[0] and len(slurm.commands) == count
    done, left = undo(slurm, tmp_path)
    assert all(good for _, good in done) and left == [
        f"job {changed[0].number}: its nice was set by somebody else since"
    ]
    assert [job.number for job in slurm.jobs if (job.priority, job.nice) != before[job.number]] == [changed[0].number]
    assert undo(slurm, tmp_path) == ([], left)


def test_undo_knows_a_nice_of_its_own_whose_successor_never_came_to_be(tmp_path: Path) -> None:
    """Killed, or refused by Slurm, between the record of a second nice and its command."""
    slurm = queue(7, 3, 1)
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    world.go(2)
    world.die()
    job = next(job for job in slurm.jobs if job.nice)
    Changes(tmp_path).will(str(job.number), job.nice, job.nice + 40)
    assert _nices(slurm) != {0}
    done, left = undo(slurm, tmp_path)
    assert all(good for _, good in done) and left == [] and _nices(slurm) == {0}


def test_jobs_that_slurm_no_longer_knows_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where a look left something out; and undo still restores the others, by a process that begins again, too."""
    monkeypatch.setattr(actor, "SLACK", 0)
    slurm = queue(7, 3, 1, 5)
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    world.go(2)
    world.die()
    changes, seen = Changes(tmp_path), Reader(slurm, clock=slurm.clock).read()
    changed = dict(changes.jobs)
    changes.will_lease("escala_n1", 5.0)
    for k in range(100, 150):
        changes.will(str(k), 0, k)
    (tmp_path / CHANGES).chmod(0o640)
    changes.keep(replace(seen, left_out=("job 100: not understood",)))
    assert len(changes.jobs) == len(changed) + 50
    world.begin()
    world.go(1)
    world.die()
    again = Changes(tmp_path)
    assert again.jobs == changed and again.leases == {"escala_n1": 5.0}
    assert len((tmp_path / CHANGES).read_text().split()) < 100 and (tmp_path / CHANGES).stat().st_mode & 0o777 == 0o640
    done, left = undo(slurm, tmp_path)
    assert len(done) > 2 and all(good for _, good in done) and left == [] and _nices(slurm) == {0}


def _nices(slurm: FakeSlurm) -> set[int]:
    return {job.nice for job in slurm.jobs}


def test_a_nice_that_an_administrator_has_set_stays(tmp_path: Path) -> None:
    slurm = queue(7, 3, 1)
    world = World(slurm, tmp_path, "order", scheduler="sjf", shutdown="never")
    world.go(2)
    job = next(job for job in slurm.jobs if job.nice)
    slurm("scontrol", "update", f"jobid={job.number}", f"nice={job.nice - 50}")
    nice, given = job.nice, len(slurm.commands)
    world.go(3)
    assert job.nice == nice and all(f"jobid={job.number}" not in command for command in slurm.commands[given:])


def test_undo_gives_up_what_its_own_process_made_and_nothing_else(tmp_path: Path) -> None:
    slurm = FakeSlurm(8)
    world = World(slurm, tmp_path, "power", Limits(**{**vars(FAST), "allowed": frozenset(["n1", "n2"])}))
    world.go(3)
    world.die()
    assert set(slurm.reservations) == {"escala_n1", "escala_n2"}
    slurm("scontrol", "delete", "reservationname=escala_n2")
    slurm.advance(200)
    others = {
        "escala_meeting": ("n3,n4", "root"),
        "escala_n5": ("n5", "ann"),
        "escala_n2": ("n2", "ann"),
        "escala_n1": ("n1", "ann"),
    }
    for name, (nodes, user) in others.items():
        reserve(slurm, name, nodes, user)
    done, left = undo(slurm, tmp_path)
    assert done == [] and set(slurm.reservations) == set(others), (
        "leases that have run out: what bears their names by now is another's"
    )
    assert [line.split(":")[0] for line in left] == [
        f"reservation {name} of {user}" for name, (_, user) in others.items()
    ]
    for name in ("escala_n1", "escala_n2", "escala_n5"):
        slurm("scontrol", "delete", f"reservationname={name}")
    world.begin()
    world.go(3)
    world.die()
    reserve(slurm, "escala_n5", "n5", "ann")
    assert sorted(line for line, _ in undo(slurm, tmp_path)[0]) == [
        f"scontrol delete reservationname=escala_n{k}" for k in (1, 2)
    ]
    assert set(slurm.reservations) == {"escala_meeting", "escala_n5"}


def test_undo_without_the_record_goes_by_form_node_and_user(tmp_path: Path) -> None:
    slurm = FakeSlurm(4)
    for folder, mode in ((tmp_path / "order", "order"), (tmp_path / "power", "power")):
        world = World(slurm, folder, mode, Limits(**{**vars(FAST), "allowed": frozenset(["n1"])}))
        world.go(3)
        world.die()
        (folder / CHANGES).unlink()
    for name, nodes, user in (("escala_meeting", "n3", "ann"), ("escala_n4", "n4", "bob"), ("escala_m1", "m1", "ann")):
        reserve(slurm, name, nodes, user)
    assert undo(slurm, tmp_path / "order", dry=True)[0] == [], "it has never switched a node"
    done, left = undo(slurm, tmp_path / "power")
    assert done == [("scontrol delete reservationname=escala_n1", True)] and len(left) == 3
    assert set(slurm.reservations) == {"escala_meeting", "escala_n4", "escala_m1"}


def test_undo_changes_no_other_cluster(tmp_path: Path) -> None:
    journal = tmp_path / JOURNAL
    world = World(queue(7, 3, 1), tmp_path, "order", scheduler="sjf", shutdown="never")
    world.go(2)
    world.die()
    check_cluster(lambda *_: "ClusterName = far", journal)  # of a journal that names none
    journal.write_text(journal.read_text().replace('"kind":"begin",', '"kind":"begin","cluster":"near",', 1))
    check_cluster(lambda *_: "ClusterName = near", journal)
    with pytest.raises(EscalaError, match="of cluster 'near', and Slurm here is far: nothing is undone"):
        check_cluster(lambda *_: "ClusterName = far", journal)
