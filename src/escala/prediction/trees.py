"""Sums of regression trees in LightGBM's text form, read and evaluated here: what a model says needs no LightGBM.

The form: https://lightgbm.readthedocs.io (a section `Tree=k` a tree, with the arrays of its inner nodes and leaves). A
node sends a value to the left where it is at most the threshold; NaN goes where the node says, or counts as 0 where no
value was missing when it was fitted.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.compile import compiled
from escala.errors import EscalaError, quoted

CATEGORICAL, DEFAULT_LEFT = 1, 2
MISSING_ZERO, MISSING_NAN = 1, 2
NEAR_ZERO = 1e-35
MOST_NODES = 50_000_000
NODES = np.dtype([("feature", "i4"), ("left", "i4"), ("right", "i4"), ("kind", "i4"), ("threshold", "f8")])
"""A node; left, right: its children, of leaves -1 - their number; kind: LightGBM's decision type."""


class Trees(NamedTuple):
    """The trees of a model. node, leaf: of all trees; first, value [trees]: where the nodes and leaves of each begin;
    alone [trees]: has a tree one leaf and no node?"""

    node: NDArray[Any]
    leaf: NDArray[np.float64]
    first: NDArray[np.int64]
    value: NDArray[np.int64]
    alone: NDArray[np.bool_]


def read_trees(text: str, path: Path, features: int) -> Trees:
    """The trees of a LightGBM text. features: how many they may look at. EscalaError, one line, for what is no such
    text."""
    sections = re.split(r"^Tree=\d+\s*$", text.split("\nend of trees", 1)[0], flags=re.MULTILINE)[1:]
    if not sections:
        raise EscalaError(f"{path}: no trees in it: fit the model again (escala predict)")
    nodes, leaves, first, value = list[NDArray[Any]](), list[NDArray[np.float64]](), [0], [0]
    for number, section in enumerate(sections):
        try:
            node, leaf = _tree(section, features)
        except (KeyError, ValueError, OverflowError) as error:
            raise EscalaError(
                f"{path}: tree {number} makes no sense ({quoted(str(error))}): fit the model again (escala predict)"
            ) from None
        nodes.append(node)
        leaves.append(leaf)
        first.append(first[-1] + len(node))
        value.append(value[-1] + len(leaf))
    if value[-1] > MOST_NODES:
        raise EscalaError(f"{path}: {value[-1]:,} leaves: no model of run times")
    alone = np.array([len(node) == 0 for node in nodes])
    return Trees(np.concatenate(nodes), np.concatenate(leaves), np.array(first[:-1]), np.array(value[:-1]), alone)


def _tree(section: str, features: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """(nodes, leaves) of one tree; ValueError or KeyError for what makes no sense."""
    told = dict(line.partition("=")[::2] for line in section.splitlines() if "=" in line)
    leaf = np.array(told["leaf_value"].split(), np.float64)
    names = {"feature": "split_feature", "left": "left_child", "right": "right_child", "kind": "decision_type"}
    inner = int(told["num_leaves"]) - 1
    node = np.zeros(max(inner, 0), NODES)
    if inner > 0:
        for field, name in names.items():
            node[field] = np.array(told[name].split(), np.int32)
        node["threshold"] = np.array(told["threshold"].split(), np.float64)
    if len(leaf) != inner + 1 or not np.isfinite(leaf).all():
        raise ValueError("its leaves are not finite numbers, one more than nodes")
    if (node["kind"] & CATEGORICAL).any() or np.isnan(node["threshold"]).any():
        raise ValueError("a node that does not compare numbers")
    if not ((node["feature"] >= 0) & (node["feature"] < features)).all():
        raise ValueError("a feature that the model does not have")
    for side in ("left", "right"):  # children come after their parents, so that every way down ends
        child = node[side]
        if not np.where(child >= 0, (child > np.arange(inner)) & (child < inner), child >= -len(leaf)).all():
            raise ValueError("a node whose child is none")
    return node, leaf


@compiled
def evaluate(trees: Trees, rows: Any, out: Any) -> None:
    """out [rows]: the sum of the trees at each row of features [rows, features]."""
    for r in range(rows.shape[0]):
        total = 0.0
        for t in range(trees.first.shape[0]):
            begin = trees.first[t]
            k = -1 if trees.alone[t] else 0
            while k >= 0:
                node = trees.node[begin + k]
                x = rows[r, node.feature]
                missing = (node.kind >> 2) & 3
                if math.isnan(x) and missing != MISSING_NAN:
                    x = 0.0
                if (missing == MISSING_NAN and math.isnan(x)) or (missing == MISSING_ZERO and abs(x) <= NEAR_ZERO):
                    k = node.left if node.kind & DEFAULT_LEFT else node.right
                else:
                    k = node.left if x <= node.threshold else node.right
            total += trees.leaf[trees.value[t] - 1 - k]
        out[r] = total
