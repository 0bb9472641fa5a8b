"""Every kept agent of a study, played again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from escala.errors import EscalaError
from escala.studies.replay.figures import Figure, NotAtHand, folder_of

REPLAYED = {
    "a2c2020": "slots",
    "deepscheduler2020": "days",
    "deepshutdown2020": "days",
    "grid2019": "slots",
    "marl2024": "teams",
}
"""Study -> the module here that plays its agents, with a function of the study's name: (study, agent, seed) ->
figures."""


@dataclass(frozen=True)
class Replay:
    """What came out. seed: of the new test sets, None: the study's own. missing: agents that were not played, and
    why."""

    study: str
    folder: Path
    seed: int | None
    figures: tuple[Figure, ...]
    missing: tuple[str, ...]

    @property
    def differ(self) -> tuple[Figure, ...]:
        """The figures that are not those of their rows."""
        return tuple(figure for figure in self.figures if not figure.same)

    @property
    def looked(self) -> list[str]:
        """The agents that were played on held-out data: all on the study's own test set, on new ones those of real
        logs."""
        names = sorted({figure.agent for figure in self.figures})
        if self.seed is None:
            return names
        if REPLAYED[self.study] != "days":
            return []
        from escala.studies.replay.days import anew

        return [name for name in names if not anew(name)]

    def told(self) -> dict[str, Any]:
        """As JSON keeps it."""
        rows = [asdict(figure) | {"same": figure.same} for figure in self.figures]
        about = {"study": self.study, "folder": str(self.folder), "seed": self.seed, "differ": len(self.differ)}
        return about | {"figures": rows, "missing": list(self.missing)}


def replay(
    study: str,
    folder: Path | None = None,
    *,
    seed: int | None = None,
    agents: Sequence[str] = (),
    progress: Callable[[float], None] | None = None,
    seen: Callable[[Figure], None] | None = None,
) -> Replay:
    """Play the kept agents of a study on its own test set, where every figure must be that of its row to the last digit
    printed, or (seed) on a new one drawn from the same source, where it must lie within `figures.ERRORS` standard
    errors. Where the days of a real log are the test set, they stay, and sampled choices are drawn anew; agents on
    lists of an author are left out.

    folder: of the study, see `folder_of`; agents: only these; seen: gets each figure as it comes. Raises EscalaError:
    no such study, no agents, none that can be played here.
    """
    if study not in REPLAYED:
        raise EscalaError(f"no study {study!r} to replay: known are {', '.join(REPLAYED)}")
    kept = folder_of(study, folder)
    names = kept.agents()
    unknown = [name for name in agents if name not in names]
    if unknown:
        raise EscalaError(f"{kept.folder}: keeps no agent {unknown[0]!r}: known are {', '.join(names)}")
    play: Callable[..., Iterable[Figure]] = getattr(import_module(f"escala.studies.replay.{REPLAYED[study]}"), study)
    figures: list[Figure] = []
    missing = []
    asked = list(agents or names)
    for k, name in enumerate(asked):
        try:
            for figure in play(kept, name, seed):
                figures.append(figure)
                if seen is not None:
                    seen(figure)
        except NotAtHand as error:
            missing.append(str(error))
        if progress is not None:
            progress((k + 1) / len(asked))
    if not figures:
        raise EscalaError(f"{kept.folder}: no agent could be replayed: {missing[0] if missing else 'it keeps none'}")
    return Replay(study, kept.folder, seed, tuple(figures), tuple(missing))
