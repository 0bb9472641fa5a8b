"""The verbs under `site`: a cluster described in a site.toml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escala.cli import options as opt
from escala.cli.tables import rows_table
from escala.cli.terminal import emit, progress
from escala.errors import EscalaError

if TYPE_CHECKING:
    from escala.platform import Site

Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="SOURCE...",
        help="slurm.conf, what scontrol show node, partition, config, reservation, sacctmgr show qos or assoc -P, "
        "sshare -a -P, sinfo -N -o or --json print; or else a job log",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="the site.toml to write", show_default=False, rich_help_panel="Output"),
]


def add_to(app: typer.Typer) -> None:
    """Register the verbs under `site`."""
    group = typer.Typer(help="A cluster described in a site.toml.", no_args_is_help=True, rich_markup_mode=None)
    group.callback()(lambda: None)
    group.command("import")(import_)
    app.add_typer(group, name="site")


def import_(sources: Sources, out: Out, force: opt.Force = False, as_json: opt.Json = False) -> None:
    """Write a site.toml from what Slurm says of its nodes and partitions, or from where the jobs of a log ran."""
    from dataclasses import replace

    from escala.platform import read_site
    from escala.platform.site_write import site_text
    from escala.slurm import settings_of
    from escala.writing import output_file

    site, notes = _read(sources)
    unread = [f"Not modelled: {line}" for line in dict.fromkeys((*site.unread, *settings_of(site).unread))]
    site = replace(site, unread=())
    with output_file(out, force=force) as file:
        file.write_text(site_text(site, [*notes, *unread]), encoding="utf-8")
        if read_site(file) != site:
            raise EscalaError(
                f"{out}: what was written does not read back as the same site: tell the makers of escala, with the "
                "sources"
            )
    told: dict[str, Any] = {
        "site": str(out),
        "nodes": site.n_nodes,
        "cores": site.total_cores,
        "notes": notes,
        "not_modelled": unread,
    }
    told["partitions"] = _partitions(site)
    emit(as_json, told, f"{site.name}: {site.n_nodes:,} nodes, {site.total_cores:,} cores",
         rows_table(told["partitions"]), *notes, *unread,
         f"Mend it where it is wrong, then give it as --platform {out}")  # fmt: skip


def _read(sources: list[Path]) -> tuple[Site, list[str]]:
    """The site, and what there is to know of how it was found."""
    from escala.platform.exports import kind_of, read_exports

    kinds = [kind_of(path) for path in sources]
    if all(kinds):
        return read_exports(sources), [f"From {', '.join(path.name for path in sources)}."]
    if any(kinds) or len(sources) > 1:
        raise EscalaError(
            f"{sources[kinds.index(None)]}: is no export of a site: give exports alone, or one job log alone"
        )
    import escala
    from escala.calibration import inferred

    with progress() as begin:
        begin(f"reading {sources[0].name}")
        found = inferred(escala.read_workload(sources[0], shapes=True), begin)
    return found.site, found.notes


def _partitions(site: Site) -> list[dict[str, Any]]:
    rows = []
    for one in site.partitions:
        cores = [int(site.cores[k]) for k in one.nodes]
        gpus = sum(int(site.resources["gpu"][k]) for k in one.nodes) if "gpu" in site.resources else 0
        sizes = f"{min(cores)}" if min(cores) == max(cores) else f"{min(cores)} to {max(cores)}"
        rows.append({"partition": one.name, "nodes": len(one.nodes), "cores of a node": sizes, "cores": sum(cores),
                     "gpus": gpus, "default": "yes" if one.default else ""})  # fmt: skip
    return rows
