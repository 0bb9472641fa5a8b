"""Nested values, arrays and tensors in one npz file: JSON and plain numbers, nothing that could run code when it is
read.

A file holds `request` (JSON: what the content belongs to), `tree` (JSON: the nesting) and `array.K`, the arrays that
the tree names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

REQUEST, TREE = "request", "tree"
HEADER = 1 << 20  # bytes of an array's header: tables of the kernel have many named fields


def write(stream: IO[bytes], request: Mapping[str, Any], content: Any) -> None:
    """Write a request and its content: dicts, lists, tuples, numbers, texts, None, arrays and tensors. TypeError for
    anything else."""
    arrays: list[NDArray[Any]] = []
    tree = json.dumps(_packed(content, arrays))
    held = {f"array.{k}": array for k, array in enumerate(arrays)}
    np.savez(stream, **{REQUEST: np.array(json.dumps(request)), TREE: np.array(tree)}, **held)


def read_request(stream: IO[bytes]) -> Any:
    """The request alone. Errors of many kinds where the file is none of ours."""
    return _json(np.load(stream, allow_pickle=False), REQUEST)


def read(stream: IO[bytes]) -> Any:
    """The content. Errors as `read_request`."""
    held = np.load(stream, allow_pickle=False, max_header_size=HEADER)
    return _unpacked(_json(held, TREE), held)


def _json(held: Any, name: str) -> Any:
    if not isinstance(held, np.lib.npyio.NpzFile):
        raise ValueError("is no npz file")
    return json.loads(str(held[name]))


def _packed(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """A value as JSON; arrays go into the list, and their places into the JSON."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, list):
        return [_packed(part, arrays) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [_packed(part, arrays) for part in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_packed(name, arrays), _packed(part, arrays)] for name, part in value.items()]}
    kind, array = _array(value)
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype} cannot be kept")
    arrays.append(array)
    return {kind: len(arrays) - 1}


def _array(value: Any) -> tuple[str, NDArray[Any]]:
    if isinstance(value, torch.Tensor):
        return "tensor", value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return "array", value
    if isinstance(value, np.generic):
        return "scalar", np.asarray(value)
    raise TypeError(f"a {type(value).__name__} cannot be kept")


def _unpacked(node: Any, held: Any) -> Any:
    if isinstance(node, list):
        return [_unpacked(part, held) for part in node]
    if not isinstance(node, dict):
        return node
    ((kind, value),) = node.items()
    if kind == "tuple":
        return tuple(_unpacked(part, held) for part in value)
    if kind == "dict":
        return {_unpacked(name, held): _unpacked(part, held) for name, part in value}
    array = held[f"array.{int(value)}"]
    if kind == "tensor":
        return torch.from_numpy(array.copy())
    return array[()] if kind == "scalar" else array
