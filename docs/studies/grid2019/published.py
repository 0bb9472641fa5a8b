"""The agents "as published" kept in this folder: `python docs/studies/grid2019/published.py OUT` runs that part of the scale `short` in the
folder OUT, and puts its claims, rows and figures in the place of those here."""

import json
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl

from escala.report import curves, save, study_plots
from escala.studies import grid2019
from escala.studies.cells import run_cells
from escala.studies.claims import Claim, write_claims, write_table
from escala.studies.grid2019_report import AGENT, SHOWN, published_claims, published_frame
from escala.studies.published import folder_of_author
from escala.studies.saving import write_whole
from escala.studies.slotted import METRICS

HERE = Path(__file__).parent
PART = replace(grid2019.SCALES["short"], alone_loads=(), printed_loads=(), curve=(), variants=())


def main(out: Path) -> None:
    author = folder_of_author(None)
    if author is None:
        sys.exit("the author's lists are not at hand: set ESCALA_TRACES")
    settings = {"part": "published"}
    out.mkdir(parents=True, exist_ok=True)
    first = [cell for cell in grid2019.first_cells(PART, author, out) if cell.name.startswith("published")]
    cells = run_cells(out, first, settings, 2)
    agents = [cell for cell in grid2019.agent_cells(PART, author, out, cells) if cell.name.startswith("published")]
    cells = run_cells(out, first + agents, settings, 2)
    new = {claim.id: claim for claim in published_claims(PART, cells, author)}
    kept = [Claim(**claim) for claim in json.loads((HERE / "claims.json").read_text(encoding="utf-8"))]
    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    manifest["settings"] |= {name: asdict(PART)[name] for name in ("published", "rounds")}
    write_whole(HERE / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    for kept_agent in (HERE / "agents").glob("published-*"):
        shutil.copytree(out / "agents" / kept_agent.name, kept_agent, dirs_exist_ok=True)
    title, _, about = (HERE / "claims.md").read_text(encoding="utf-8").split("\n", 3)[:3]
    write_claims(HERE, title.removeprefix("# "), [new.get(claim.id, claim) for claim in kept], about)
    table = pl.read_csv(HERE / "tables" / "published.csv", infer_schema_length=None)
    redone = published_frame(PART, cells, author).select(table.columns).cast(dict(table.schema))
    fresh = redone.filter(pl.col("policy").str.starts_with(AGENT))
    table = table.update(fresh, on=["load", "policy"])
    write_table(HERE, "published", table)
    shown = table.filter(pl.col("policy").is_in((*SHOWN, AGENT, "author's PPO")))
    save(curves.against(shown, "load", list(METRICS.values()), x_label="Offered load, nominal (%)"), HERE / "figures" / "fig2-published")
    save(study_plots.metric_bars(shown.filter(pl.col("load") == 190), list(METRICS.values())), HERE / "figures" / "fig3-published")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
