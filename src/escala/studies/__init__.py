"""Studies: a folder each, whose `recipe` says what is done; `lab` is what they share, `replay` plays kept agents
again."""

STUDIES = {
    "a2c2020": "A2C on jobs with CPU and memory against SJF, Tetris and chance at four rates (Liang et al. 2020), and "
    "its networks",
    "deepscheduler2020": "learnt schedulers that waste less energy, on the same days (Casagrande 2020)",
    "deepshutdown2020": "learnt policies that switch nodes off, on real days of Grid'5000 and other logs (Casagrande "
    "2020)",
    "demo": "the main job end to end, on a built-in log or your own (run it with: escala demo)",
    "grid2019": "PPO on a pool of ten against the heuristics at seven loads (Casagrande et al. 2019): as published, "
    "and on fresh lists",
    "marl2024": "several PPO agents, one queue, machines of their own, against the heuristics (Gergely 2024)",
}
"""Name -> what the study is about."""

RUNNABLE = {
    "a2c2020": "escala.studies.a2c2020.recipe",
    "grid2019": "escala.studies.grid2019.recipe",
    "deepshutdown2020": "escala.studies.deepshutdown2020.recipe",
    "deepscheduler2020": "escala.studies.deepscheduler2020.recipe",
    "marl2024": "escala.studies.marl2024.recipe",
}
"""Studies that `escala study run` runs -> their module, with `run(scale, out, jobs=, progress=)` and `SCALES`."""

__all__ = ["RUNNABLE", "STUDIES"]
