"""`python docs/versions.py SITE BUILT NAME`: put a built documentation into a site with a folder for each version.

SITE/NAME is written anew, SITE/versions.json lists the folders, the newest release first and branches after the
releases, and SITE/index.html leads to the first. The sidebar of every version reads that list
(docs/_templates/versions.html).
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

LIST, START = "versions.json", "index.html"
PAGE = """<!doctype html><meta charset="utf-8">
<title>Escala: versions</title><meta http-equiv="refresh" content="0; url={first}/">
<ul>{all}</ul>
"""


def put(site: Path, built: Path, name: str) -> list[str]:
    """The versions of the site afterwards. ValueError for a name that is no plain folder, or a build without a first
    page."""
    if not re.fullmatch(r"\w[\w.+-]*", name) or not (built / START).is_file():
        raise ValueError(f"{name!r} is no name of a version, or {built} holds no documentation")
    site.mkdir(parents=True, exist_ok=True)
    if (site / name).exists():
        shutil.rmtree(site / name)
    shutil.copytree(built, site / name)
    names = sorted((path.parent.name for path in site.glob(f"*/{START}")), key=_rank, reverse=True)
    (site / LIST).write_text(json.dumps(names), encoding="utf-8")
    links = "".join(f'<li><a href="{one}/">{one}</a></li>' for one in names)
    (site / START).write_text(PAGE.format(first=names[0], all=links), encoding="utf-8")
    (site / ".nojekyll").touch()  # folders that begin with an underscore are served too
    return names


def _rank(name: str) -> tuple[bool, list[int], bool, str]:
    """Releases before branches, by number, a final one before its candidates."""
    found = re.fullmatch(r"v?(\d+(?:\.\d+)*)(.*)", name)
    return (
        (True, [int(part) for part in found[1].split(".")], not found[2], name) if found else (False, [], False, name)
    )


if __name__ == "__main__":
    sys.stdout.write("\n".join(put(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])) + "\n")
