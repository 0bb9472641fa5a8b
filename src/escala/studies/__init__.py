"""Studies: one readable file each, which says what it does and writes what it found."""

STUDIES = {"demo": "the main job end to end, on a built-in log or your own (run it with: escala demo)"}
"""Name -> what the study is about."""

__all__ = ["STUDIES"]
