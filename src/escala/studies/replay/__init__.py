"""Kept agents of studies, played again: what a study's tables say of each, beside what it gives now."""

from escala.studies.replay.figures import Figure, NotAtHand, Study, folder_of
from escala.studies.replay.replay import REPLAYED, Replay, replay

__all__ = ["REPLAYED", "Figure", "NotAtHand", "Replay", "Study", "folder_of", "replay"]
