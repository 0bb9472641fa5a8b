"""What SWF and Batsim's JSON have no place for is refused, or named."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from escala.errors import EscalaError, EscalaWarning
from escala.workload import Workload, write_batsim, write_swf

JOBS: dict[str, Any] = {"submit_s": [5.0, 9.0], "runtime_s": [1.0, 1.0], "walltime_s": [2.0, 2.0], "cores": [4, 4]}
FORMS: dict[str, tuple[str, Callable[..., None]]] = {
    "SWF": ("out.swf", write_swf),
    "Batsim's JSON": ("out.json", partial(write_batsim, speed=1e9)),
    "Batsim's JSON of hosts": ("out.json", partial(write_batsim, speed=1e9, node_cores=4)),
}
LOST = {"dependency": "afterok:1", "reservation": "week", "array_limit": 2, "nice": 10, "priority": 7}


def jobs(form: str, **more: Any) -> Workload:
    return Workload.from_jobs(JOBS | ({"exclusive": [True, True]} if "hosts" in form else {}) | more)


@pytest.mark.parametrize("form", FORMS)
def test_begin_times_after_submission_are_refused(tmp_path: Path, form: str) -> None:
    name, write = FORMS[form]
    said = (
        rf"job '2' may begin after its submission \(begin_s\), which {form.removesuffix(' of hosts')} cannot hold: drop"
    )
    with pytest.raises(EscalaError, match=said):
        write(jobs(form, begin_s=[None, 9.5]), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(jobs(form, begin_s=[None, 9.0]), tmp_path / name)
        written = (tmp_path / name).read_text()
        write(jobs(form), tmp_path / name)
    assert (tmp_path / name).read_text() == written


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", LOST)
def test_what_slurm_alone_looks_at_is_named(tmp_path: Path, form: str, column: str) -> None:
    name, write = FORMS[form]
    array = {"array_id": ["a", "a"]}
    with pytest.warns(EscalaWarning, match=f"{form.removesuffix(' of hosts')} cannot hold {column}: not written"):
        write(jobs(form, **array, **{column: [None, LOST[column]]}), tmp_path / name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none where no job has one
        write(jobs(form, **array, **{column: [None, None]}), tmp_path / name)


def test_all_are_named_in_one_line(tmp_path: Path) -> None:
    more = {name: [value, value] for name, value in LOST.items()}
    with pytest.warns(EscalaWarning, match=f"SWF cannot hold {', '.join(LOST)}: not written") as caught:
        write_swf(jobs("SWF", array_id=["a", "a"], **more), tmp_path / "out.swf")
    assert len(caught) == 1 and caught[0].filename == __file__
