"""The prose of the pages: sentences that can be read at once, lines that can be compared, and programs that use public
names."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import escala

ROOT = Path(__file__).resolve().parents[2]
ALL = [*sorted(ROOT.glob("*.md")), *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]
PAGES = [page for page in ALL if page.name != "claims.md"]  # written by the studies
READ = [page for page in PAGES if "studies" not in page.relative_to(ROOT).parts]
FENCED = re.compile(r"^( *)(```+|:::+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LEFT_OUT = re.compile(r"^ *(\||#|<!--|!\[).*$", re.MULTILINE)
WORDS, SHARE, COLUMNS, NOTE = 35, 0.9, 120, 80


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def passages(text: str) -> list[str]:
    """Paragraphs and list items of a page, without code blocks, tables, headings and pictures; a code span or a link is
    one word."""
    text = LEFT_OUT.sub("\n", FENCED.sub("\n", text))
    text = re.sub(r"`[^`]+`", "CODE", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", text)
    return [" ".join(part.split()) for part in parts if part.strip()]


def sentences(text: str) -> list[str]:
    return list(
        chain.from_iterable(re.split(r"(?<=[.?!])[*)\"]*\s+(?=[*\"(\[]*[A-Z])", passage) for passage in passages(text))
    )


def test_sentences_are_counted() -> None:
    text = (
        "# Head\nOne two `a b` [three four](x.md). Five:\n\n- six e.g. seven.\n- **Eight.** Nine\n\n| a | b "
        "|\n```\ncode here.\n```\nTen.\n"
    )
    assert sentences(text) == ["One two CODE three four.", "Five:", "- six e.g. seven.", "- **Eight.", "Nine", "Ten."]


@pytest.mark.parametrize("page", READ, ids=_name)
def test_nine_sentences_of_ten_are_short(page: Path) -> None:
    found = sentences(page.read_text(encoding="utf-8"))
    long = sorted((s for s in found if len(s.split()) > WORDS), key=lambda s: -len(s.split()))
    assert len(long) <= (1 - SHARE) * len(found) + 1e-9, (
        f"{_name(page)}: {len(long)} of {len(found)}, the longest: {long[:3]}"
    )


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_lines_of_prose_are_wrapped(page: Path) -> None:
    text = FENCED.sub(lambda block: "\n" * block[0].count("\n"), page.read_text(encoding="utf-8"))
    text = re.sub(r"\]\([^)\s]+\)", "]", text)  # addresses cannot be wrapped
    wide = [
        k
        for k, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS and not line.lstrip().startswith(("|", "#", "!["))
    ]
    assert not wide, f"{_name(page)}: lines {wide} have more than {COLUMNS} columns"


def test_notes_of_the_design_are_short() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    assert [part for part in passages(text) if len(part.split()) > NOTE] == []


def test_the_changelog_is_short() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert releases and all(release.count("\n") <= 60 and "\n### Results changed" in release for release in releases)


def _is_public(module: ModuleType, name: str) -> bool:
    return name in getattr(module, "__all__", ()) and not name.startswith("_")


def hidden(code: str) -> list[str]:
    """What a program takes of Escala that is not public: not in `escala.__all__`, nor in the `__all__` of a module on
    the way."""
    wrong = []
    for node in ast.walk(ast.parse(code)):
        asked = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            asked = [f"{node.module}.{alias.name}" for alias in node.names]
        for path in (name for name in asked if name.split(".")[0] == "escala"):
            steps, module = path.split(".")[1:], escala
            for k, step in enumerate(steps):
                if not _is_public(module, step):
                    wrong.append(path)
                    break
                if k < len(steps) - 1:
                    module = import_module(".".join(["escala", *steps[: k + 1]]))
    return wrong


def test_names_that_are_not_public_are_found() -> None:
    assert (
        hidden(
            "import escala\nfrom escala.workload import generate\nimport numpy.linalg\nfrom escala.agents import "
            "load_team"
        )
        == []
    )
    assert hidden("from escala.envs.nowhere import f\nfrom escala import simulation") == [
        "escala.envs.nowhere.f",
        "escala.simulation",
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if PYTHON.search(page.read_text(encoding="utf-8"))], ids=_name)
def test_programs_of_the_pages_use_public_names(page: Path) -> None:
    """The page of a study may also take functions of that study."""
    pytest.importorskip("stable_baselines3", reason="the extra [agents] is not installed")
    own = f"escala.studies.{page.parent.name}"
    wrong = list(chain.from_iterable(hidden(code) for code in PYTHON.findall(page.read_text(encoding="utf-8"))))
    assert [name for name in wrong if not name.startswith(own)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=_name)
def test_examples_use_public_names(path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra [agents] is not installed")
    assert hidden(path.read_text(encoding="utf-8")) == []


PRIVATE = re.compile(r"\b(void|likeliest|luck|beneath|sittings?|strays?|naps?|pupils?|told|tells)\b", re.IGNORECASE)
"""Words of the code's own, where the field has a common one (docs/glossary.md)."""


@pytest.mark.parametrize("page", READ, ids=_name)
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    found = {word for passage in passages(page.read_text(encoding="utf-8")) for word in PRIVATE.findall(passage)}
    assert not found, f"{_name(page)}: {sorted(found)}"
