"""What verbs left in folders, as the parts of a page: runs, what was found over episodes, trained agents, and
studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escala.cli import day_headroom, headroom
from escala.errors import EscalaError
from escala.platform import Platform
from escala.reading import own, read_json
from escala.writing import INDEX, PAGE

if TYPE_CHECKING:
    import polars as pl

WRITERS = "simulate, compare, train, evaluate or study run"


@dataclass(frozen=True)
class Saved:
    """What lies in a folder. runs: name -> folder of a saved Result. comparison: `metrics.compare.episodes`. sections,
    training, days: of the page, see `report.page`. notes: paragraphs under its title.
    """

    folder: Path
    kind: str
    runs: dict[str, Path] = field(default_factory=dict)
    comparison: pl.DataFrame | None = None
    sections: Sequence[Any] = ()
    training: Sequence[Any] = ()
    days: Sequence[Any] = ()
    notes: Sequence[str] = ()


def read_saved(folder: Path) -> Saved:
    """What lies in a folder.

    Raises:
        EscalaError: nothing that a page can show, or a part of it is missing or broken.
    """
    manifest = _manifest(folder)
    kind = str(manifest.get("kind", ""))
    if (folder / "jobs.parquet").exists():
        names = [manifest.get(part) for part in ("scheduler", "shutdown")]
        if not all(isinstance(name, str) for name in names):
            raise EscalaError(
                f"{folder}: not a whole run (manifest.json names no scheduler or no shutdown policy); write it again"
            )
        return Saved(folder, "run", {" + ".join(map(str, names)): folder})
    reader = _READERS.get(kind)
    if reader is not None:
        with own(folder, kind, "write it again"):
            return reader(folder, manifest)
    inside = sorted(path.parent.name for path in folder.glob("*/manifest.json"))
    if not inside:
        _refuse_with_page(folder)
    hint = f"give one of its subfolders {', '.join(inside)}" if inside else f"give a folder that {WRITERS} wrote"
    raise EscalaError(f"{folder}: holds no saved results of its own; {hint}")


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_json(folder / "manifest.json")
    except EscalaError:
        manifest = None
    if not isinstance(manifest, dict):
        _refuse_with_page(folder)
        raise EscalaError(f"{folder}: holds no saved results; give a folder that {WRITERS} wrote")
    return manifest


def _refuse_with_page(folder: Path) -> None:
    """EscalaError for a folder of a verb that wrote its page itself."""
    for page in (folder / PAGE, folder / INDEX):
        if page.is_file():
            raise EscalaError(f"{folder}: has its page already: {page}")


def merged(parts: Sequence[Saved]) -> dict[str, Path]:
    """The runs of all folders by name; a name that several folders have stands behind the folder's."""
    often = Counter(name for part in parts for name in part.runs)
    plain = len({part.folder.name for part in parts}) == len(parts)
    return {
        (f"{part.folder.name if plain else part.folder}: {name}" if often[name] > 1 else name): run
        for part in parts
        for name, run in part.runs.items()
    }


def _comparison(folder: Path, manifest: dict[str, Any]) -> Saved:
    from escala.policies.pairs import folder_of

    runs = {str(name): folder / folder_of(str(name)) for name in manifest["runs"]}
    return Saved(folder, "comparison", runs, sections=headroom.section(folder))


def _evaluation(folder: Path, manifest: dict[str, Any]) -> Saved:
    told = (
        f"{manifest['agent']} on {manifest['days']} days of {manifest['workload']}, after the first "
        f"{manifest['after']}; each day is played by itself, and policies are paired by day."
    )
    machine = Platform.from_spec(manifest["platform"]) if "platform" in manifest else None
    power = "" if machine is None else machine.power_line
    days = _days(folder, manifest.get("window") == "cut", power)
    old = (
        ""
        if days or machine is not None
        else "It was written before evaluations kept the energy by state, so it has no part for operators: evaluate "
        "again."
    )
    notes = [told, *([power] if power and not days else []), *([old] if old else [])]
    return Saved(
        folder, "evaluation", comparison=_judged(folder), sections=day_headroom.section(folder), days=days, notes=notes
    )


def _days(folder: Path, cut: bool, power: str) -> list[Any]:
    """The days behind an evaluation, with whose watts they rest on; none where they lack what operators ask."""
    import polars as pl

    from escala.report import JudgedDays
    from escala.studies.lab.saving import DAYS

    try:
        days = JudgedDays(pl.read_csv(folder / DAYS, infer_schema_length=None), cut=cut, power=power)
    except FileNotFoundError:
        return []
    if not days.whole:
        return []
    days.summaries()  # what cannot be summed up is damaged: told by whoever reads the folder
    return [days]


def _judged(folder: Path) -> pl.DataFrame:
    from escala.studies.lab.saving import read_judged

    return read_judged(folder)


def _agent(folder: Path, manifest: dict[str, Any]) -> Saved:
    from escala.report import Section
    from escala.report.training import training_of, training_table

    return Saved(
        folder,
        "agent",
        sections=[Section("The agent", tables=[training_table(manifest)])],
        training=training_of(folder),
    )


def _study(folder: Path, manifest: dict[str, Any]) -> Saved:
    from escala.report.study_page import sections_of

    claims = read_json(folder / "claims.json")
    # one verdict, `holds`, for the paper's figure and our own aim
    if any("reproduces" not in claim for claim in claims):
        raise EscalaError(
            f"{folder}: claims.json is of an earlier version of Escala, with one verdict where there are two now; "
            "claims.md beside it can still be read, and `escala study run` into another folder makes a new one"
        )
    lines = (folder / "claims.md").read_text(encoding="utf-8").splitlines()
    about = [line for line in lines[1:] if line.strip()][:1]
    notes = [line.replace("*", "") for line in about if not line.startswith("|")]  # a page has no Markdown
    return Saved(
        folder,
        "study",
        sections=[*_paper(folder, manifest), *sections_of(folder, claims, manifest["missing"])],
        notes=notes,
    )


def _paper(folder: Path, manifest: dict[str, Any]) -> list[Any]:
    """What the study's paper claims, and what became of it row by row; nothing where no paper belongs to it."""
    from escala.studies.verdicts import PAPERS
    from escala.studies.verdicts.sections import sections_of

    return sections_of(manifest["study"], folder) if manifest.get("study") in PAPERS else []


_READERS: dict[str, Callable[[Path, dict[str, Any]], Saved]] = {
    "comparison": _comparison,
    "evaluation": _evaluation,
    "agent": _agent,
    "study": _study,
}
