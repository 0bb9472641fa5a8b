"""Which nodes of a platform have features, and which ones host lists name."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from escala.errors import EscalaError, quoted
from escala.platform.hostlist import hosts_of
from escala.platform.platform import Platform
from escala.platform.site import Site

Mask = NDArray[np.bool_]
JOINED = ("&", "|", ",")
MOST_DEEP = 100  # parentheses inside one another


def _words_of(features: str) -> list[str]:
    """Features, what joins them, and parentheses."""
    return [word for one in re.split(r"([&|,()])", features) if (word := one.strip())]


def has_features(platform: Platform) -> bool:
    """Do its nodes have any?"""
    return isinstance(platform, Site) and any(platform.features)


def has_names(platform: Platform) -> bool:
    """Has it nodes that somebody named?"""
    return isinstance(platform, Site) or platform.names != Platform.uniform(platform.n_nodes).names


def strange_in(platform: Platform, text: str | None) -> str | None:
    """The first feature that no node has; None where there is none."""
    have = {one for node in _features_of(platform) for one in node}
    return next((word for word in _words_of(text) if word not in "&|,()" and word not in have), None) if text else None


def _features_of(platform: Platform) -> tuple[tuple[str, ...], ...]:
    return platform.features if isinstance(platform, Site) else ((),) * platform.n_nodes


def features_mask(platform: Platform, text: str | None) -> Mask:
    """bool [nodes]: nodes with these features, joined by & (or a comma) and |, of equal rank, from the left; those in
    parentheses first. `EscalaError` for what is no such expression."""
    every = np.ones(platform.n_nodes, bool)
    if not text:
        return every
    outer = list[tuple[Mask, str]]()
    mask, joined = every, "&"  # joined is "" after a feature
    for word in _words_of(text):
        if word in JOINED and not joined:
            joined = word
        elif word == "(" and joined and len(outer) < MOST_DEEP:
            outer.append((mask, joined))
            mask, joined = every, "&"
        elif word == ")" and outer and not joined:
            before, joined = outer.pop()
            mask, joined = _joined(before, joined, mask), ""
        elif word not in "&|,()" and joined:
            have = np.array([word in node for node in _features_of(platform)])
            mask, joined = _joined(mask, joined, have), ""
        else:
            raise _malformed(text)
    if joined or outer:
        raise _malformed(text)
    return mask


def _joined(left: Mask, by: str, right: Mask) -> Mask:
    return left | right if by == "|" else left & right


def _malformed(text: str) -> EscalaError:
    return EscalaError(
        f"features {quoted(text)} are no expression: join names by & and |, with parentheses in pairs (at most "
        f"{MOST_DEEP} inside one another), as in x&(y|z)"
    )


def places_of(platform: Platform) -> dict[str, int]:
    """Node by name."""
    return {name: k for k, name in enumerate(platform.names)}


def named_mask(platform: Platform, places: Mapping[str, int], hosts: str | None) -> Mask:
    """bool [nodes]: the nodes of a host list; `EscalaError` for one that is not there. places: see `places_of`."""
    names = hosts_of(hosts or "", "required_nodes or excluded_nodes")
    strange = next((name for name in names if name not in places), None)
    if strange is not None:
        what = "site" if isinstance(platform, Site) else "platform"
        raise EscalaError(
            f"names node {quoted(strange)}, which {what} {quoted(platform.name)} has not: mend its "
            f"required_nodes or excluded_nodes, or give the {what} that has it"
        )
    mask = np.zeros(platform.n_nodes, bool)
    mask[[places[name] for name in names]] = True
    return mask


def refuse_others(required: int, nodes: int) -> None:
    """`EscalaError` for a job that names another number of nodes than it asks for."""
    if nodes != required:
        raise EscalaError(
            f"required_nodes are {required} nodes: give as many as nodes; others beside them are not modelled"
        )
