"""An output that tests write."""

from __future__ import annotations

from pathlib import Path

from escala.writing import output_folder


def ours(folder: Path, text: str = "old") -> Path:
    """An output of compare."""
    with output_folder(folder, "compare") as work:
        assert work is not None
        (work / "table.csv").write_text(text)
    return folder
