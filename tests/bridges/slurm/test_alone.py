"""One process acts on a partition: locks, leases of others."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from escala.bridges.slurm.actor import Changes
from escala.bridges.slurm.alone import alone, cluster_of, refuse_others
from escala.bridges.slurm.reader import Reader
from escala.bridges.slurm.snapshots import layout
from escala.errors import EscalaError
from tests.bridges.slurm.fake import FakeSlurm
from tests.bridges.slurm.shadow import WATTS
from tests.bridges.slurm.world import FAST, World, queue, undo

pytestmark = pytest.mark.usefixtures("compiled")


def test_two_folders_do_not_both_act_on_a_partition(tmp_path: Path, state_home: Path) -> None:
    refused = pytest.raises(
        EscalaError, match=r"lab, partition batch: another process acts on it \(--folder .*first\): end it first"
    )
    with alone("lab", "batch", tmp_path / "first"), alone("lab", "other", tmp_path / "second"), refused:
        alone("lab", "batch", tmp_path / "third").__enter__()
    with alone("lab", "batch", tmp_path / "third"):
        pass
    shutil.rmtree(state_home)
    state_home.write_text("")
    with pytest.raises(EscalaError, match="set XDG_STATE_HOME"):
        alone("lab", "batch", tmp_path).__enter__()
    assert cluster_of(lambda *_: "Configuration data as of x\nClusterName             = lab-1\nX = 3\n") == "lab-1"
    for printed in ("nothing", "ClusterName = a/b\n"):
        with pytest.raises(EscalaError, match="nothing is"):
            cluster_of(lambda *_, said=printed: said)


def test_a_mark_in_slurm_keeps_out_those_whom_no_lock_keeps_out(tmp_path: Path) -> None:
    """Two processes of different users or machines in mode order, which makes no lease."""
    slurm = queue(7, 3, 8, 1)
    first = World(slurm, tmp_path / "first", "order", scheduler="sjf", shutdown="never", marks=True)
    second = re.escape(
        "partition batch: a process of ann acts on it, as reservation escala_acts_batch says: end it, or begin when "
    )
    with pytest.raises(EscalaError, match=second + r"that counts no more \(in 60 s\)"):
        World(slurm, tmp_path / "second", "order", scheduler="sjf", shutdown="never", marks=True)
    first.go(12)
    with pytest.raises(EscalaError, match=second + r"that counts no more \(in [45]\d s\)"):
        World(slurm, tmp_path / "third", "order", scheduler="sjf", shutdown="never", marks=True)
    assert slurm.reserved() == set() and "others" not in {why for _, _, why in first.told("refused")}
    slurm.advance(int(FAST.lease_s))
    other = World(slurm, tmp_path / "fourth", "order", scheduler="sjf", shutdown="never", marks=True)
    given = len(slurm.commands)
    first.go(1)
    assert first.told("refused")[-1] == ["all", "", "others"] and len(slurm.commands) == given, (
        "it was away for longer than a lease"
    )
    undone, left = undo(slurm, tmp_path / "first", dry=True)
    assert not [line for line, _ in undone if "delete" in line]
    assert left == ["reservation escala_acts_batch of ann: it says that another process acts on a partition"]
    other.die()
    World(slurm, tmp_path / "fourth", "order", scheduler="sjf", shutdown="never", marks=True).die()
    assert undo(slurm, tmp_path / "fourth")[0][-1] == ("scontrol delete reservationname=escala_acts_batch", True)


def test_leases_of_others_stop_everything(tmp_path: Path) -> None:
    """Two processes that know nothing of each other, as on two machines: the second does nothing while the first has
    leases."""
    slurm = FakeSlurm(8)
    first = World(slurm, tmp_path / "first", "full")
    second = World(slurm, tmp_path / "second", "full")
    first.go(2)
    given = len(slurm.commands)
    for _ in range(5):
        second.go(1)
        assert len(slurm.commands) == given
    assert undo(slurm, tmp_path / "second", dry=True)[0] == [], "it made none of them"
    assert second.told("refused") == [["all", "", "others"]] * 5 and second.told("acted") == [] and first.told("acted")
    first.go(2)
    assert "others" not in {why for _, _, why in first.told("refused")}
    seen = Reader(slurm, clock=slurm.clock).read()
    at = layout(seen, "batch", WATTS)
    refuse_others(seen, at, Changes(tmp_path / "first").owns)
    with pytest.raises(
        EscalaError, match=r"escala_n1 of ann is a lease that this folder did not make: .* \(in \d+ s\)"
    ):
        refuse_others(seen, at, Changes(tmp_path / "second").owns)
