"""Checkpoints hold arrays and JSON: what goes in comes out, and what a stranger planted does not run."""

from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from escala.agents import checkpoint, packed
from escala.errors import EscalaError


class Evil:
    """A pickle of it makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_what_is_packed_comes_back_equal() -> None:
    table = np.zeros(3, [(f"a field with a long name {k}", np.int64) for k in range(400)])
    content = {
        "plain": [1, 2.5, float("inf"), "text", None, True], "tuple": (1, (2, [3])),
        3: {"x": np.float32(0.1), "n": np.int64(2**40)},
        "tensor": torch.arange(3.0), "step": torch.tensor(7.0), "table": table, "big": 2**127, "nothing": {},
    }  # fmt: skip
    stream = io.BytesIO()
    packed.write(stream, {"seed": 1}, content)
    stream.seek(0)
    assert packed.read_request(stream) == {"seed": 1}
    stream.seek(0)
    back = packed.read(stream)
    for name in ("plain", "tuple", "big", "nothing", 3):
        assert back[name] == content[name]
    assert type(back["tuple"]) is tuple and type(back[3]["x"]) is np.float32
    assert torch.equal(back["tensor"], content["tensor"]) and torch.equal(back["step"], content["step"])
    assert back["table"].dtype == table.dtype and np.array_equal(back["table"], table)


def test_objects_are_not_packed() -> None:
    for value in (object(), np.array([object()])):
        with pytest.raises(TypeError, match="cannot be kept"):
            packed.write(io.BytesIO(), {}, {"x": value})


def _planted(folder: Path, how: str) -> None:
    """A foreign checkpoint that would run code, were it read by pickle."""
    folder.mkdir()
    evil = np.array([Evil(folder.parent / "PWNED")], dtype=object)
    request, tree = (np.array(json.dumps(text)) for text in ({"seed": 1}, {"array": 0}))
    if how == "torch":
        torch.save({"request": {"seed": 1}, "x": Evil(folder.parent / "PWNED")}, folder / checkpoint.FILE)
    elif how == "older":
        torch.save({"request": {"seed": 1}, "x": Evil(folder.parent / "PWNED")}, folder / checkpoint.OLD)
    elif how == "request":
        np.savez(folder / checkpoint.FILE, request=evil, tree=tree, allow_pickle=True)
    elif how == "array":
        np.savez(folder / checkpoint.FILE, allow_pickle=True, **{"request": request, "tree": tree, "array.0": evil})  # type: ignore[arg-type]
    else:
        np.save((folder / checkpoint.FILE).open("wb"), evil, allow_pickle=True)


@pytest.mark.parametrize("how", ["torch", "older", "request", "array", "plain"])
def test_a_planted_checkpoint_runs_nothing(tmp_path: Path, how: str) -> None:
    _planted(tmp_path / "run", how)
    with pytest.raises(EscalaError, match=r"not a readable checkpoint|of an older version"):
        checkpoint.read(tmp_path / "run", {"seed": 1})
    assert not (tmp_path / "PWNED").exists()


def test_of_another_training_only_the_request_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.write(tmp_path / checkpoint.FILE, {"request": {"seed": 1}, "steps": 5})
    monkeypatch.setattr(packed, "read", lambda stream: pytest.fail("the content was read"))
    with pytest.raises(EscalaError, match="seed=1, not 2"):
        checkpoint.read(tmp_path, {"seed": 2})


def test_a_broken_checkpoint_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / checkpoint.FILE
    checkpoint.write(path, {"request": {"seed": 1}, "numbers": np.arange(1000), "steps": 5})
    whole = path.read_bytes()
    chance = random.Random(0)
    for _ in range(60):
        broken = bytearray(whole[: chance.randrange(1, len(whole))] if chance.random() < 0.3 else whole)
        for _ in range(chance.randrange(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        path.write_bytes(broken)
        try:
            checkpoint.read(tmp_path, {"seed": 1})
        except EscalaError as error:
            assert "\n" not in str(error) and len(str(error)) < 600
