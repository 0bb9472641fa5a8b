"""Networks of trained agents and teams as ONNX graphs, for runtimes that know neither Escala nor Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from escala.envs.forward import Shape, Weights
from escala.envs.graphs.graph import Graph
from escala.envs.graphs.networks import pairs_preferences, preferences_of
from escala.extras import need
from escala.writing import SEAL, write_whole

OPSET, FORMAT = 18, 8
"""Of operators and of the file: those of onnx 1.13 (2022), so that older runtimes read it too."""

OF_FOLDERS = {*SEAL, "escala", "kind", "format", "weights_sha256"}
"""What a manifest says of the folder that it lies in."""


def write_onnx(trained: Any, path: str | Path) -> None:
    """Write an agent or a team, exported or not, as an ONNX file: see `onnx_of`."""
    write_whole(path, onnx_of(trained.manifest, trained.arrays()))


def onnx_of(manifest: Mapping[str, Any], networks: Sequence[Weights]) -> bytes:
    """The file of a trained agent, or of a team with a network for each agent (or a single one).

    Inputs, of float32 and bool: `observation` [n, ...], `mask` [n, actions]. Outputs: `preferences` [n, actions] before
    the mask, and `action` [n], the greedy one among those that the mask allows. A team's of several networks end in
    `_0`, `_1`, ... The manifest is the file's property `escala`. EscalaError without the extra [onnx], and for networks
    that cannot be exported.
    """
    need("an ONNX file", "onnx")
    from onnx import TensorProto, helper

    shape = (
        list(manifest["observation_shape"]) if "observation_shape" in manifest else [Shape(*manifest["shape"]).numbers]
    )
    actions, graph = int(manifest["actions"]), Graph()
    reads = preferences_of if "extractor" in manifest else pairs_preferences
    inputs, outputs = [], []
    for k, weights in enumerate(networks):
        end = "" if len(networks) == 1 else f"_{k}"
        seen, mask, preferences, action = (f"{name}{end}" for name in ("observation", "mask", "preferences", "action"))
        graph.called(preferences, "Identity", reads(manifest, graph, weights, seen))
        allowed = graph("Where", mask, preferences, np.float32(-np.inf))
        graph.called(action, "ArgMax", allowed, axis=1, keepdims=0)
        inputs += [helper.make_tensor_value_info(seen, TensorProto.FLOAT, ["n", *shape])]
        inputs += [helper.make_tensor_value_info(mask, TensorProto.BOOL, ["n", actions])]
        outputs += [helper.make_tensor_value_info(preferences, TensorProto.FLOAT, ["n", actions])]
        outputs += [helper.make_tensor_value_info(action, TensorProto.INT64, ["n"])]
    made = helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants())
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(
        made, opset_imports=opsets, ir_version=FORMAT, producer_name="escala", producer_version=version("escala")
    )
    helper.set_model_props(
        model, {"escala": json.dumps({name: value for name, value in manifest.items() if name not in OF_FOLDERS})}
    )
    return bytes(model.SerializeToString())
