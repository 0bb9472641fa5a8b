"""The documentation: relative links lead somewhere, and the pages build without a warning."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import bench_bound, bench_policies
from escala.studies.lab.claims import read_rows
from escala.studies.verdicts import PAPERS, rows_of
from tests.growth import axes

ROOT = Path(__file__).resolve().parents[2]


def _drafts() -> set[Path]:
    """Files that git does not know yet: pages that somebody is still writing. None outside a repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "-z"], capture_output=True, text=True, cwd=ROOT
    )
    return {ROOT / name for name in listed.stdout.split("\0") if name}


DRAFTS = _drafts() if shutil.which("git") else set()
WRITTEN = sorted(p for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if "_build" not in p.parts)
PAGES = [page for page in WRITTEN if page not in DRAFTS]
OF_TODAY = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which names what was there once
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"(?<![\w/.\-:*{])((?:[\w\-]+/)+(?:[\w\-]+\.[a-z]{2,8})?)(?![\w/*{<])")
IN_CODE = re.compile(r"`([^`\n]+)`")
CLAIM = re.compile(r"r\d\.[a-z]\w*(?:\.\w+)*")
FENCED = re.compile(r"^(```|:::).*?^\1", re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The names of a page's headings, as they stand in links."""
    heads = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue  # the network is not asked
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.relative_to(ROOT)}: {link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert not anchor or anchor in _anchors(target), f"{page.relative_to(ROOT)}: no heading {link}"


def named_files(text: str) -> set[str]:
    """Paths in code spans of a page: words with a slash that begin as a folder of the repository, of the package or of
    a study does."""
    begins = {path.name for place in (ROOT, ROOT / "src" / "escala") for path in place.iterdir() if path.is_dir()}
    # escala/NAME-v0
    begins = {name for name in begins if not name.startswith((".", "_"))} - {"escala"} | {"tables", "figures"}
    found = {name for span in IN_CODE.findall(FENCED.sub("", text)) for name in FILE.findall(span)}
    return {name for name in found if name.split("/")[0] in begins}


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    places = (ROOT, ROOT / "src" / "escala", page.parent)
    lost = {
        name
        for name in named_files(page.read_text(encoding="utf-8"))
        if not any((place / name).exists() for place in places)
    }
    assert not lost, f"{page.relative_to(ROOT)} names {sorted(lost)}"


def test_the_files_of_a_page_are_found() -> None:
    page = (
        "see `bench/gone.py`, `kernel/queue.py -x` and `tests/`, not `escala/X-v0`, `a/b`, `out/x.html`, bench/plain.py"
    )
    page += "\n```\n`bench/no.py`\n```"
    assert named_files(page) == {"bench/gone.py", "kernel/queue.py", "tests/"}


def test_claims_that_pages_name_exist() -> None:
    """Claims of studies, and rows of the papers' pages."""
    folders = {study: ROOT / "docs" / "studies" / study for study in PAPERS}
    known = {claim["id"] for folder in folders.values() for claim in read_rows(folder)}
    known |= {row.id for study, folder in folders.items() for row in rows_of(study, folder)}
    named = {}
    for page in OF_TODAY:
        for span in IN_CODE.findall(page.read_text(encoding="utf-8")):
            named |= {span: page.relative_to(ROOT)} if CLAIM.fullmatch(span) else {}
    assert len(named) > 3
    assert {name: page for name, page in named.items() if name not in known} == {}


def test_the_table_of_bounds_has_the_rows_that_its_bench_writes() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = text.partition(bench_bound.BEGIN)[2].partition(bench_bound.END)[0]
    rows = [re.split(r" *\| *", line)[1:-1] for line in table.splitlines() if line.startswith("| ")]
    assert [row[:2] for row in rows[1:]] == [[what, must] for what, must, _ in bench_bound.LINES]
    assert rows[0][2:] and all(all(row) for row in (r[2:] for r in rows))


def test_the_table_of_figures_has_the_rows_that_the_bench_writes() -> None:
    pytest.importorskip("stable_baselines3", reason="the extra [agents] is not installed")
    from bench import __main__ as measuring

    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = text.partition(measuring.BEGIN)[2].partition(measuring.END)[0]
    rows = [re.split(r" *\| *", line)[1:-1] for line in table.splitlines() if line.startswith("| ")]
    assert [row[:2] for row in rows[1:]] == [[case.what, case.must] for case in measuring.CASES]
    assert all(re.match(r"[\d.,]+ \S+", row[2]) for row in rows[1:]), "each with a figure and its unit"


def test_every_scheduler_and_shutdown_policy_has_a_row_of_speed() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = text.partition(bench_policies.BEGIN)[2].partition(bench_policies.END)[0]
    rows = {re.split(r" *\| *", line)[1] for line in table.splitlines() if line.startswith("| ")}
    pairs = {
        bench_policies.FOLDER.sub("score:", " + ".join(name for name in pair if name != "never"))
        for pair in axes.pairs()
    }
    assert rows - {"scheduler + shutdown", "---"} == pairs


def test_only_conservative_is_left_out_of_the_larger_worlds() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = text.partition(bench_policies.BEGIN)[2].partition(bench_policies.END)[0]
    rows = [re.split(r" *\| *", line)[1:-1] for line in table.splitlines() if line.startswith("| ")]
    assert [name for name in rows[0] if "load" in name] == ["load 1.2"] and {len(row) for row in rows} == {len(rows[0])}
    more = rows[0].index("100,000 jobs")
    assert {row[0].split(":")[0].split(" ")[0] for row in rows[2:] if "–" in row[more : more + 2]} == {"conservative"}
    over = {row[0]: float(row[-1]) for row in rows[2:] if row[-1] not in "–-"}
    assert max(over.values()) <= 10.0, "us a job at load 1.2"
    assert {row[0].partition(":")[0].partition(" ")[0] for row in rows[2:] if row[0] not in over} == {"conservative"}


def test_pages_speak_of_the_repository_only() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"(^|[\s(`\"])/(home|work|root|tmp)/", text), (
            f"{page.relative_to(ROOT)} names a path of one machine"
        )


@pytest.mark.slow
@pytest.mark.long  # as `make docs` does
def test_pages_build_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="the extra [docs] is not installed")
    pytest.importorskip("myst_parser", reason="the extra [docs] is not installed")
    left_out = ",".join(
        [
            "_build",
            *(page.relative_to(ROOT / "docs").as_posix() for page in DRAFTS if page.is_relative_to(ROOT / "docs")),
        ]
    )
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-D",
        f"exclude_patterns={left_out}",
        "-q",
        "-W",
        "--keep-going",
        "-E",
        "-b",
        "html",
        "-d",
        tmp_path / "trees",
    ]
    done = subprocess.run(
        [*command, ROOT / "docs", tmp_path / "html"],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    built = (tmp_path / "html" / "reference" / "running.html").read_text(encoding="utf-8")
    assert 'id="escala.simulate"' in built and "queue_length" in built, "the reference comes from the code"


def test_the_citation_names_this_version() -> None:
    import yaml

    import escala

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == escala.__version__ and cited["license"] == "MIT" and cited["cff-version"] == "1.2.0"
