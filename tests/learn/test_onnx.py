"""ONNX files of trained agents: the preferences and greedy choices of the numpy decision, by onnxruntime, or by ONNX's
own reference."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala.agents import load_team
from escala.envs.exported import load_exported
from escala.envs.graphs import onnx_of, write_onnx
from escala.envs.graphs.networks import READERS
from escala.errors import EscalaError
from tests.learn.test_exported import KEPT, NETWORKS, STUDIES, untrained

with_onnx = pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed")


def asked(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """All outputs of a file by name."""
    import onnx

    onnx.checker.check_model(str(path), full_check=True)
    if find_spec("onnxruntime") is None:
        from onnx.reference import ReferenceEvaluator

        session: Any = ReferenceEvaluator(str(path))
        names = session.output_names
    else:
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, given), strict=True))


def seen_of(agent: Any, n: int) -> tuple[Any, Any]:
    """Observations of all kinds, empty places among them, and masks that leave the no-op."""
    random = np.random.default_rng(n)
    seen = random.random((n, *agent.manifest["observation_shape"]), np.float32)
    seen *= random.random((n, *(1 for _ in seen.shape[1:])), np.float32) ** 3
    if seen.ndim == 3:
        seen *= random.random((n, seen.shape[1], 1)) < 0.8
    else:
        seen *= random.random(seen.shape) < 0.9
    mask = random.random((n, agent.manifest["actions"])) < 0.7
    mask[:, 0] = True
    return seen.astype(np.float32), mask


def same_as_numpy(agent: Any, folder: Path) -> None:
    """To 1e-5 of their size, alone and in a batch; the choices wherever no two preferences are that near."""
    agent.export(folder / "out")
    decides = load_exported(folder / "out")
    write_onnx(decides, folder / "one.onnx")
    write_onnx(agent, folder / "two.onnx")
    assert (folder / "one.onnx").read_bytes() == (folder / "two.onnx").read_bytes()
    for n in (1, 60):
        seen, mask = seen_of(agent, n)
        found = asked(folder / "one.onnx", {"observation": seen, "mask": mask})
        ours = decides.logits(seen)
        assert found["preferences"].dtype == np.float32 and found["preferences"].shape == ours.shape
        far = 1e-5 * max(1.0, np.abs(ours).max())
        assert np.abs(found["preferences"] - ours).max() <= far
        chosen = decides.act(seen, mask, None)
        rows = np.arange(n)
        assert mask[rows, found["action"]].all() and (ours[rows, chosen] - ours[rows, found["action"]]).max() <= 2 * far
        assert (found["action"] == chosen).mean() >= 0.95
    assert len(set(found["action"].tolist())) > 1


@with_onnx
@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT.keys())
def test_kept_agents(name: str, tmp_path: Path) -> None:
    same_as_numpy(escala.load_agent(STUDIES / name), tmp_path)


@with_onnx
@pytest.mark.parametrize(("extractor", "shape", "more"), NETWORKS)
def test_recurrent_networks_images_and_sets(
    extractor: str, shape: tuple[int, ...], more: dict[str, Any], tmp_path: Path
) -> None:
    same_as_numpy(untrained(extractor, shape, **more), tmp_path)


def test_every_kind_of_network_has_a_graph() -> None:
    from escala.envs import forward

    assert READERS.keys() == forward.READERS.keys()


@with_onnx
@pytest.mark.parametrize("name", ["team-2x1-0", "team-3x2-0", "nothing-shared-50-3x1-1"])
def test_a_team(name: str, tmp_path: Path) -> None:
    team = load_team(STUDIES / "marl2024" / "agents" / name)
    write_onnx(team, tmp_path / "team.onnx")
    asks = team.networks_asked()
    numbers, actions = team.manifest["shape"][4], team.manifest["actions"]
    seen, mask = np.random.default_rng(0).random((50, numbers), np.float32), np.ones((50, actions), bool)
    ends = [""] if len(asks) == 1 else [f"_{k}" for k in range(len(asks))]
    found = asked(
        tmp_path / "team.onnx",
        {f"{name}{end}": one for end in ends for name, one in (("observation", seen), ("mask", mask))},
    )
    assert len(found) == 2 * len(asks)
    for ask, end in zip(asks, ends, strict=True):
        ours = ask(seen)
        assert np.abs(found[f"preferences{end}"] - ours).max() <= 1e-5 * max(1.0, np.abs(ours).max())
        assert np.array_equal(found[f"action{end}"], ours.argmax(axis=1))


@with_onnx
def test_another_network_is_refused_in_one_line() -> None:
    with pytest.raises(EscalaError, match=r"^a network of my-own cannot be exported"):
        onnx_of({"extractor": "my-own", "actions": 3, "observation_shape": [4]}, [{}])
