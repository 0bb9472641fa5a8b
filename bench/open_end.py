"""One step of a study of slotted worlds, alone: its agent that knows no end of arrivals, into the folder of the study
that is kept; or the positive controls of a2c2020, or its table 4 on real logs.

python -m bench.open_end a2c2020 --work DIR          trains, and chooses a look on lists kept for that; test lists stay
unseen python -m bench.open_end a2c2020 --work DIR --judge  then plays the test lists, counts that look, and writes
agent, tables and claim python -m bench.open_end a2c2020 --work DIR --controls NAME ...  trains these controls, plays
the test lists, writes them; with --decisions N for so many
python -m bench.open_end grid2019 --work DIR --light  the agent of load 10 % alone, test lists included
python -m bench.open_end a2c2020 --work DIR --logs TRACES        table 4 on the real logs of that folder

`escala study run` does the same among everything else. The agent's page is `escala study verdicts STUDY`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import asdict
from dataclasses import replace as replaced
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from escala.studies.a2c2020 import controls, real_logs
from escala.studies.a2c2020 import recipe as a2c2020
from escala.studies.a2c2020.cells import rules as rules_of
from escala.studies.grid2019 import recipe as grid2019
from escala.studies.lab import horizons, open_end
from escala.studies.lab.cells import Cell, run_cells
from escala.studies.lab.claims import Claim, read_rows, write_claims, write_table
from escala.studies.lab.looks import look
from escala.studies.verdicts.papers import PAPERS

STUDIES: dict[str, ModuleType] = {"grid2019": grid2019, "a2c2020": a2c2020}
KEPT = Path(__file__).resolve().parents[1] / "docs" / "studies"
SCALE = "short"
LOOK_LIGHT = "sweep of horizons by the agent of a light load that knows no end"
LOOK = "sweep of horizons by the agent that knows no end, and again by the other kept agents"


def trained(study: str, work: Path) -> dict[str, Any]:
    """What the cells gave up to the choice of the agent."""
    recipe = STUDIES[study]
    scale = recipe.SCALES[SCALE]
    world = recipe.open_world(scale)
    done = run_cells(work, open_end.rule_cells(world), settings(study), 1)
    return done | run_cells(work, open_end.agent_cells(world, scale.open, work / "agents", done), settings(study), 1)


def settings(study: str) -> dict[str, Any]:
    """Of the cells."""
    return {"study": study, "step": open_end.OPEN, "scale": SCALE, **asdict(STUDIES[study].SCALES[SCALE])}


def judge(study: str, work: Path, done: dict[str, Any]) -> None:
    """Play the test lists; write what came out into the kept folder."""
    recipe, kept, name = STUDIES[study], KEPT / study, open_end.name_of(open_end.chosen_seed(done) or 0)
    for folder in (kept / "agents").iterdir():
        if not folder.name.startswith(open_end.OPEN):
            shutil.copytree(folder, work / "agents" / folder.name, dirs_exist_ok=True)
    cells = recipe.horizon_cells(recipe.SCALES[SCALE], work, done)
    look(kept, LOOK, [name], again=False)  # before it is taken: one that is cut short is one, too
    done |= run_cells(work, cells, settings(study), 1)
    found = open_end.claims(PAPERS[study].key.lower(), kept, done, recipe.open_world(recipe.SCALES[SCALE]).loads[0])
    shutil.copytree(work / "agents" / name, kept / "agents" / name, dirs_exist_ok=True)
    replace(kept, found)


def control(work: Path, names: list[str], decisions: int | None) -> None:
    """Train and judge positive controls of a2c2020, for so many decisions in place of the scale's; write what came out
    into its kept folder, beside the others."""
    scale, kept = a2c2020.SCALES[SCALE], KEPT / "a2c2020"
    scale = scale if decisions is None else replaced(scale, controls=decisions)
    sizes = {"validation": scale.validation, "test": scale.test}
    rules = Cell(f"rules/{scale.network_rate}", rules_of, {"rate": scale.network_rate, **sizes})
    look(kept, "positive controls: other learners on the image", again=False)
    given = {"step": "controls", "scale": SCALE, **asdict(scale)}
    cells = [
        replaced(cell, given={**cell.given, "keep": str(work / "agents" / cell.name.replace("/", "-"))})
        for cell in controls.cells_of(scale, sizes | {"pool": scale.pool})
        if cell.name.removeprefix("control/") in names
    ]
    done = run_cells(work, [rules, *cells], given, 1)
    found = controls.frame(scale.network_rate, done)
    others = pl.read_csv(kept / "tables" / "controls.csv").filter(~pl.col("control").is_in(found["control"].to_list()))
    table = pl.concat([others, found.cast(dict(others.schema))])  # type: ignore[arg-type]
    order = pl.col("control").cast(pl.Enum(list(controls.CONTROLS)))
    write_table(kept, "controls", table.sort(order, maintain_order=True))
    replace(kept, controls.claims(scale.network_rate, done))


def light(study: str, work: Path) -> None:
    """Train the agents of light loads, and play the test lists; write what came out into the kept folder."""
    recipe, kept = STUDIES[study], KEPT / study
    scale, world = recipe.SCALES[SCALE], recipe.open_world(recipe.SCALES[SCALE])
    loads = [load for load in scale.loads if load < world.loads[0]]
    names = {open_end.light_name(load): (str(work / "agents" / open_end.light_name(load)), [load]) for load in loads}
    run_cells(work, open_end.light_cells(world, scale.open, work / "agents", loads), settings(study), 1)
    look(kept, LOOK_LIGHT, list(names), again=False)
    found = horizons.frame(run_cells(work, horizons.cells_of(names, world.name, world.horizons), settings(study), 1))
    table = pl.read_csv(kept / "tables" / "horizons.csv", schema_overrides={"horizon": pl.String})
    usual = table.filter(pl.col("agent").str.starts_with(f"{open_end.OPEN}-all"))["agent"][0]
    table = pl.concat(
        [table.filter(~pl.col("agent").is_in(list(names))), found.select(table.columns).cast(dict(table.schema))]
    )  # type: ignore[arg-type]
    write_table(kept, "horizons", table)
    for name in names:
        shutil.copytree(work / "agents" / name, kept / "agents" / name, dirs_exist_ok=True)
    rows = table.filter(pl.col("load") < world.loads[0])
    replace(kept, open_end.light_claims(PAPERS[study].key.lower(), rows, usual))


def logged(work: Path, traces: Path) -> None:
    """Table 4 of a2c2020 on real logs; write what came out into its kept folder."""
    scale, kept = a2c2020.SCALES[SCALE], KEPT / "a2c2020"
    look(kept, "table 4 on real logs", again=False)
    given = {"step": "logs", "scale": SCALE, **asdict(scale)}
    done = run_cells(work, real_logs.cells_of(scale, real_logs.at_hand(traces)), given, 1)
    write_table(kept, "table4-logs", real_logs.frame(done))
    replace(kept, real_logs.claims(done))


def replace(kept: Path, found: list[Claim]) -> None:
    """Write the claims of a kept folder anew, with those found in the place of those of the same ids."""
    title, _, about = (kept / "claims.md").read_text(encoding="utf-8").split("\n", 3)[:3]
    anew = {claim.id: claim for claim in found}
    every = [
        anew.pop(row["id"], None) or Claim(**{key: row[key] for key in row if key != "reproduces"})
        for row in read_rows(kept)
    ]
    write_claims(kept, title.removeprefix("# "), [*every, *anew.values()], about)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", choices=list(STUDIES))
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for cells and trainings; the same call goes on in it"
    )
    parser.add_argument("--judge", action="store_true", help="play the test lists: a look, which is counted")
    parser.add_argument("--light", action="store_true", help="the agents of light loads instead, test lists included")
    parser.add_argument(
        "--controls",
        nargs="+",
        choices=list(controls.CONTROLS),
        help="a2c2020: these controls instead, test lists included",
    )
    parser.add_argument(
        "--decisions", type=int, metavar="N", help="of --controls: learn so many, in place of the scale's"
    )
    parser.add_argument(
        "--logs", type=Path, metavar="TRACES", help="a2c2020: table 4 on the real logs of this folder instead"
    )
    given = parser.parse_args()
    sys.argv = ["python", "-m", "bench.open_end", given.study]  # for the manifests: no folder of this machine
    if given.light:
        light(given.study, given.work)
        return
    if given.logs:
        logged(given.work, given.logs)
        return
    if given.controls:
        control(given.work, given.controls, given.decisions)
        return
    done = trained(given.study, given.work)
    with pl.Config(tbl_rows=-1):
        print(open_end.frame(done))
    if given.judge:
        judge(given.study, given.work, done)
        print(
            f"written into {KEPT / given.study}: now escala study verdicts {given.study} --out "
            f"docs/studies/{given.study}.md --force"
        )


if __name__ == "__main__":
    main()
