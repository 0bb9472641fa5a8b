"""YAML as platform files use it: maps, lists, text and numbers, within limits.

A few lines of YAML can stand for gigabytes (an alias of aliases of aliases), contain themselves, or nest without end.
Dates are text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from escala.errors import EscalaError, quoted
from escala.reading import first_twin

DEEPEST = 50  # maps and lists within one another
MOST_UNFOLDED = 1_000_000  # characters and entries that aliases may add to what is written


def read_yaml(data: bytes, path: Path) -> Any:
    """What the file holds. Raises EscalaError with the line where it is no YAML, names a key twice or unfolds beyond
    the limits."""
    try:
        loader = _Loader(data)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if _size(node, {}, set()) > 4 * len(data) + MOST_UNFOLDED:
                raise EscalaError(
                    f"{path}: its aliases unfold to more than {MOST_UNFOLDED:,} entries: write out what you need"
                )
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise EscalaError(f"{where}: neither XML nor YAML; give a platform file") from None
    except _Refused as error:
        raise EscalaError(f"{path}, line {error.mark.line + 1}: {error}") from None


class _Refused(Exception):
    """Something at a place of the file."""

    def __init__(self, mark: yaml.Mark, what: str) -> None:
        super().__init__(what)
        self.mark = mark


class _Loader(yaml.SafeLoader):
    """The safe loader, with limits; of YAML's own kinds of values, dates and bytes stay text."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise _Refused(mark, f"maps and lists nested more than {DEEPEST} deep; a platform needs four")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError):
            raise _Refused(
                node.start_mark, f"{quoted(node.value)} is no number that can be read; mend it, or quote it as text"
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [
            key.value
            for key, _ in node.value
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge"
        ]
        twin = first_twin(keys)
        if twin is not None:
            raise _Refused(node.start_mark, f"{quoted(twin)} is given twice; keep one of them")
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _size(node: yaml.Node, known: dict[int, int], within: set[int]) -> int:
    """Characters and entries of a node with every alias written out; `_Refused` where it holds itself."""
    key = id(node)
    if key in known:
        return known[key]
    if isinstance(node, yaml.ScalarNode):
        known[key] = 1 + len(node.value)
        return known[key]
    if key in within:
        raise _Refused(node.start_mark, "an entry that holds itself; write it out")
    parts = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    known[key] = 1 + sum(_size(part, known, within | {key}) for part in parts)
    return known[key]
