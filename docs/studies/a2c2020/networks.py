"""The networks on the image kept in this folder: `python docs/studies/a2c2020/networks.py OUT` runs that part of the scale `short` in the
folder OUT (table 3, and Conv3-16 at every rate; `escala study run a2c2020 --scale short --out OUT` goes on from there), and puts its
claims, rows and figures in the place of those here."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import polars as pl

from escala.report import curves, save, study_plots
from escala.studies import a2c2020
from escala.studies.a2c2020_report import A2C, AGENT, BASELINES, PRINTED, image_claims, image_frame, network_frame
from escala.studies.cells import run_cells
from escala.studies.claims import Claim, write_claims, write_table
from escala.studies.saving import write_whole

HERE = Path(__file__).parent
SCALE = a2c2020.SCALES["short"]


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    part = [cell for cell in a2c2020.cells_of(SCALE, out, None) if cell.name.split("/")[0] in ("rules", "network", "printed")]
    cells = run_cells(out, part, {"scale": "short", "log_file": None, **asdict(SCALE)}, 2)
    claims = {claim["id"]: Claim(**claim) for claim in json.loads((HERE / "claims.json").read_text(encoding="utf-8"))}
    claims |= {claim.id: claim for claim in image_claims(SCALE, cells)}
    title, _, about = (HERE / "claims.md").read_text(encoding="utf-8").split("\n", 3)[:3]
    write_claims(HERE, title.removeprefix("# "), list(claims.values()), about)
    write_table(HERE, "table3", network_frame(SCALE, cells))
    kept = pl.read_csv(HERE / "tables" / "tables1and2.csv", infer_schema_length=None)
    fresh = image_frame(SCALE, cells).select(kept.columns).cast(dict(kept.schema))
    rates = pl.concat([kept.filter(~pl.col("policy").is_in(fresh["policy"].unique().to_list())), fresh]).sort("rate", maintain_order=True)
    write_table(HERE, "tables1and2", rates)
    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    manifest["settings"] |= {name: asdict(SCALE)[name] for name in ("networks", "network", "network_seeds", "printed", "printed_seeds")}
    write_whole(HERE / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    metrics = ["mean_slowdown", "mean_turnaround_s", "mean_wait_s"]
    chosen = (*BASELINES, "tetris-normalised", "hold-back", AGENT, f"{AGENT}, likeliest", A2C, PRINTED)
    shown = rates.filter(pl.col("policy").is_in(chosen) & pl.col("mean_slowdown").is_not_null())
    save(study_plots.metric_bars(shown.filter(pl.col("rate") == round(100 * SCALE.network_rate)), metrics), HERE / "figures" / "fig3-bars")
    save(curves.against(shown, "rate", metrics, x_label="Job rate (%)"), HERE / "figures" / "rates")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
