"""What the papers print, row by row, and what became of it here: a verdict on each number and sentence, computed from a
study's claims and tables by one rule (`rule`); and the page of each paper, in which every number comes from them
(`page`)."""

from escala.studies.verdicts.page import page_of, rows_of, told
from escala.studies.verdicts.papers import PAPERS
from escala.studies.verdicts.rule import VERDICTS, Found, Print, verdict

__all__ = ["PAPERS", "VERDICTS", "Found", "Print", "page_of", "rows_of", "told", "verdict"]
