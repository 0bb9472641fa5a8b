"""What each paper prints: a module a study, with its rows and the first screen of its page."""

from escala.studies.verdicts.papers.a2c2020 import PAPER as A2C2020
from escala.studies.verdicts.papers.deepscheduler2020 import PAPER as DEEPSCHEDULER2020
from escala.studies.verdicts.papers.deepshutdown2020 import PAPER as DEEPSHUTDOWN2020
from escala.studies.verdicts.papers.grid2019 import PAPER as GRID2019
from escala.studies.verdicts.papers.marl2024 import PAPER as MARL2024

PAPERS = {paper.study: paper for paper in (GRID2019, A2C2020, DEEPSHUTDOWN2020, DEEPSCHEDULER2020, MARL2024)}
"""Study -> its paper."""
