"""Campaigns that contradict themselves, can never run, or meet a folder of something else: one line before any run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import escala
from escala.campaigns import journal
from escala.cli.campaign import shown
from tests.unit.campaigns.small import GENERATED, counted


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"log": []}, "unknown key 'log': did you mean logs"),
        ({"schedulers": []}, "schedulers is an empty list"),
        ({"schedulers": ["easy", "easy"]}, "schedulers names 'easy' twice"),
        ({"schedulers": ["esy"]}, "did you mean easy"),
        ({"schedulers": "easy"}, "give a list of texts"),
        ({"schedulers": ["agent:x"]}, "x: no trained agent here"),
        ({"platforms": None}, "platforms is missing"),
        ({"platforms": ["16x1"]}, "shutdown policy timeout:0 needs a power profile"),
        ({"platforms": ["16x1:grid5000"], "power": 3}, "power = 3"),
        ({"shutdowns": ["timeout"]}, "needs its seconds"),
        ({"seeds": [1, 1]}, "seeds names 1 twice"),
        ({"seeds": [-1]}, "seeds holds -1"),
        ({"seeds": [True]}, "a list of whole numbers"),
        ({"seeds": "3..1"}, "FIRST..LAST"),
        ({"seeds": "0..99999999999"}, "FIRST..LAST"),
        ({"options": {"hed": "lowest-id"}}, "did you mean head"),
        ({"options": {"head": ["x"]}}, "option head='x' is not known"),
        ({"options": {"head": []}}, "head is an empty list"),
        ({"options": {"depth": [3, "none", 3]}}, "names a value twice"),
        ({"options": {"seed": 3}}, "give seeds"),
        ({"options": {"record": True}}, "unknown key 'record'"),
        ({"options": {"estimate": [3]}}, "estimates by their names"),
        ({"options": [3]}, "a table of names and values"),
        ({"schedulers": ["easy", "plugin:narrow"]}, "no installed package announces one"),
        ({"logs": ["nowhere.swf"]}, "no such file"),
        ({"logs": [{"generator": "lublim"}]}, "did you mean lublin"),
        ({"logs": [{"generator": "lublin", "job": 3}]}, "did you mean jobs"),
        ({"logs": [{"name": "x"}]}, "needs path = or generator ="),
        ({"logs": [GENERATED, {**GENERATED, "jobs": 70}]}, "two logs are called 'lublin'"),
        ({"logs": [GENERATED], "reading": {"unit": "min"}}, "leave it out"),
        ({"reading": {"unit_": "min"}}, "did you mean unit"),
        ({"seeds": list(range(4000)), "options": {"until_s": [float(k + 1) for k in range(4000)]}},
         "are more than the 10,000,000"),
    ],
)  # fmt: skip
def test_contradictions_are_one_line_before_anything_runs(
    spec: dict[str, Any], tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    asked = {name: value for name, value in {**spec, **change}.items() if value is not None}
    with pytest.raises(escala.EscalaError) as told:
        escala.campaign(asked, tmp_path / "out", "local:1")
    assert said in str(told.value) and "\n" not in str(told.value) and not (tmp_path / "out").exists()


SLURM = {"schedulers": ["slurm"], "shutdowns": ["never"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"platforms": ["2x1:grid5000"], "options": {}}, 'drop such jobs with oversized = "drop" in [options]'),
        ({"schedulers": ["easy", "slurm"]}, "under slurm + timeout:0: scheduler slurm leaves nodes on"),
        ({**SLURM, "options": {"until_s": 9.0}}, "option until_s means nothing"),
        ({**SLURM, "platforms": ["2x1"], "options": {}}, "can never run on site"),
        ({"schedulers": ["conservative:queue=sjf"], "options": {"depth": 1, "oversized": "drop"}}, "give rebuild=True"),
        ({"options": {"estimate": "estimate_x"}}, "the log lacks this column"),
    ],
)  # fmt: skip
def test_what_can_never_run_is_one_line_before_anything_runs(
    spec: dict[str, Any], tmp_path: Path, change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = counted(monkeypatch)
    with pytest.raises(escala.EscalaError) as told:
        escala.campaign({**spec, **change}, tmp_path / "out", "local:1")
    line = str(told.value)
    assert said in line and "\n" not in line and made == [] and not (tmp_path / "out").exists()
    assert line.startswith(f"log 'small' on platform '{change.get('platforms', ['16x1:grid5000'])[0]}'"), line


def test_a_trial_asks_each_choice_once_and_leaves_other_faults_to_the_runs(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []

    def simulate(jobs: Any, machine: Any, scheduler: str, shutdown: str, **options: Any) -> None:
        tried.append((jobs.name, scheduler, shutdown, len(jobs)))
        raise RuntimeError("of somebody else's code")

    monkeypatch.setattr("escala.campaigns.trial.simulate", simulate)
    more = {"plan_margin_s": ["none", *map(float, range(1, 9))], "oversized": "drop"}
    escala.campaign({**spec, "schedulers": ["easy"], "options": more}, tmp_path / "margins", "local:1")
    assert len(tried) == 2 * 2 * 2, "of all margins one is tried, beside none"
    tried.clear()
    found = escala.campaign({**spec, "seeds": "0..9"}, tmp_path / "out", "local:1")
    assert len(tried) == len(set(tried)) == 2 * 4 and {few for *_, few in tried} <= {2, 3} and found.failed == 0


def test_a_trial_has_the_first_job_the_last_the_longest_and_one_of_a_single_node(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an agent looks at before it begins, such as the longest job of its chart, is looked at by a trial too."""
    tried: list[list[str]] = []

    def simulate(jobs: Any, *decides: Any, **options: Any) -> None:
        tried.append(jobs.jobs["job_id"].to_list())

    monkeypatch.setattr("escala.campaigns.trial.simulate", simulate)
    columns = {"submit_s": range(9), "runtime_s": [5] * 9, "cores": [1] * 9, "walltime_s": [9, 9, 9, 60, 9, 9, 9, 9, 9]}
    table = pl.DataFrame({**columns, "job_id": list("abcdefghi"), "single_node": [k == 5 for k in range(9)]})
    table.write_parquet(tmp_path / "nine.parquet")
    found = escala.campaign(
        {**spec, "logs": [str(tmp_path / "nine.parquet")], "seeds": [0]}, tmp_path / "out", "local:1"
    )
    assert found.failed == 0 and tried == [["a", "d", "f", "i"]] * 4


def test_engines_and_folders_that_are_none(spec: dict[str, Any], tmp_path: Path) -> None:
    for on in ("rey", "ray:nowhere", "ray:", "local:0", "local:x", "local:99999", 3):
        with pytest.raises(escala.EscalaError, match=r"engine"):
            escala.campaign(spec, tmp_path / "out", on)  # type: ignore[arg-type]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("mine")
    with pytest.raises(escala.EscalaError, match="holds files that no campaign wrote"):
        escala.campaign(spec, tmp_path / "out", "local:1")
    (tmp_path / "out" / journal.FILE).write_text("mine too\n")
    with pytest.raises(escala.EscalaError, match="holds files that no campaign wrote"):
        escala.campaign(spec, tmp_path / "out", "local:1")
    assert (tmp_path / "out" / journal.FILE).read_text() == "mine too\n"


def test_a_folder_of_another_version(spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs are not those of today: made anew, counted, and kept in the journal; a journal of another form is
    refused as it is."""
    spec = {**spec, "schedulers": ["easy"]}
    with monkeypatch.context() as then:
        then.setattr("escala.campaigns.runs.made_by", lambda: "0.0.9 of then")
        before = escala.campaign(spec, tmp_path / "out", "local:1")
    now = escala.campaign(spec, tmp_path / "out", "local:1")
    assert before.others == 0 and (now.done, now.kept, now.others) == (before.done, 0, before.done)
    assert now.runs.drop("key").equals(before.runs.drop("key"))
    said = f"kept from another definition or version of Escala, in no table: {now.others}"
    assert any(said in line for line in shown(now, Path("out")) if isinstance(line, str))
    path = tmp_path / "out" / journal.FILE
    path.write_bytes(later := path.read_bytes().replace(b"escala campaign 1", b"escala campaign 2"))
    with pytest.raises(escala.EscalaError, match="of another version of Escala"):
        escala.campaign(spec, tmp_path / "out", "local:1")
    assert path.read_bytes() == later


def test_one_campaign_at_a_time_in_a_folder(spec: dict[str, Any], tmp_path: Path) -> None:
    with journal.opened(tmp_path / "out"), pytest.raises(escala.EscalaError, match="another run writes there now"):
        escala.campaign(spec, tmp_path / "out", "local:1")
