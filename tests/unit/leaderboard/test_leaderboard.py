"""Leaderboards: an entry's figures are those of single replays, nothing is run twice, ranks rest on paired weeks, and a
check tells what is not the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import escala
from escala import leaderboard
from escala.campaigns import work
from escala.engines import on_slurm
from escala.leaderboard.entry import FILE
from escala.leaderboard.suite import jobs_digest
from escala.tuning.split import split_of

TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces" / "swf"
LOGS = {
    "one": ({"jobs": 1500, "cores": 16, "load": 0.8, "seed": 1}, "8x2:grid5000"),
    "two": ({"jobs": 1200, "cores": 16, "load": 0.7, "seed": 2}, "16x1:grid5000"),
}


def _log(name: str) -> escala.Workload:
    return escala.workload.generate.lublin(**LOGS[name][0])


def _suite(*names: str, **more: Any) -> dict[str, Any]:
    logs = [
        {
            "name": name,
            "generator": "lublin",
            **LOGS[name][0],
            "platform": LOGS[name][1],
            "sha256": jobs_digest(_log(name)),
        }
        for name in names or LOGS
    ]
    return {"name": "small", "logs": logs, **more}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, leaderboard.Entry]:
    """Policy -> its entry."""
    out = tmp_path_factory.mktemp("entries")
    asked = ("easy", "fcfs", "easy:queue=sjf", "easy:queue=sjf:estimate=runtime")
    return {policy: leaderboard.enter(policy, out / str(k), _suite(), on="local:1") for k, policy in enumerate(asked)}


def test_figures_are_those_of_single_replays(entries: dict[str, leaderboard.Entry]) -> None:
    for name, (_, platform) in LOGS.items():
        log = _log(name)
        first, last = log.jobs["submit_s"][0], log.jobs["submit_s"][-1]
        at = first + 0.6 * (last - first)
        later = log.jobs["submit_s"].to_numpy() >= at
        week = ((log.jobs["submit_s"].to_numpy()[later] - at) // (7 * 86400)).astype(int)
        runtime = log.jobs["runtime_s"].to_numpy()[later]
        slowdown, longest = {}, {}
        for policy in ("easy", "easy:queue=sjf"):
            wait = escala.simulate(log, platform, policy).jobs["wait_s"].to_numpy()[later]
            slowdown[policy], longest[policy] = (
                np.maximum((wait + runtime) / np.maximum(runtime, 10.0), 1.0),
                wait.max(),
            )
        found = entries["easy:queue=sjf"].logs[name]
        assert found["jobs"] == later.sum() and found["weeks"] == len(set(week))
        assert found["figures"]["bounded_slowdown"] == pytest.approx(slowdown["easy:queue=sjf"].mean(), rel=1e-12)
        assert found["baselines"]["easy"]["longest_wait_s"] == pytest.approx(longest["easy"], rel=1e-12)
        sums = [slowdown["easy:queue=sjf"][week == k].sum() for k in range(week.max() + 1)]
        assert found["by_week"]["policy"]["bounded_slowdown"] == pytest.approx(sums, rel=1e-12)
        ratio = slowdown["easy:queue=sjf"].sum() / slowdown["easy"].sum()
        assert found["ratio"]["easy"]["bounded_slowdown"][0] == pytest.approx(ratio, rel=1e-12)
        clause = next(c for c in found["promise"] if c["clause"].startswith("longest-wait"))
        assert clause["kept"] == (longest["easy:queue=sjf"] <= 1.25 * longest["easy"])
        assert found["energy"] is None and found["who_pays"]["by size"]


def test_a_policy_that_switches_nodes_off_is_judged_beside_easy_with_all_nodes_on(tmp_path: Path) -> None:
    entry = leaderboard.enter("easy", tmp_path / "out", _suite("one"), shutdown="timeout:0", on="local:1")
    found, log = entry.logs["one"], _log("one")
    at, last = split_of(log, "60%").at_s, float(log.jobs["submit_s"][-1])
    cut = {
        shutdown: [
            escala.simulate(log, LOGS["one"][1], "easy", shutdown, until_s=end).summary()["energy_j"]
            for end in (at, last)
        ]
        for shutdown in ("never", "timeout:0")
    }
    spent = {shutdown: end - begin for shutdown, (begin, end) in cut.items()}
    assert found["energy"]["easy"] == pytest.approx(spent["never"], rel=1e-9)
    assert (
        found["energy"]["ratio"][0] == pytest.approx(spent["timeout:0"] / spent["never"], rel=1e-9)
        and spent["timeout:0"] < spent["never"]
    )
    assert found["baselines"]["easy"]["mean_wait_s"] < found["figures"]["mean_wait_s"], (
        "easy's own waits are with nodes on"
    )


def test_easy_is_exactly_itself_and_clairvoyant_entries_are_never_the_best(
    entries: dict[str, leaderboard.Entry],
) -> None:
    found = leaderboard.standing(list(entries.values())[::-1])
    by_name = {row.entry.name: row for row in found.rows}
    assert by_name["easy"].value == (1.0, 1.0, 1.0) and by_name["easy"].kept == 2
    assert found.rows[0].entry.name == "easy:queue=sjf:estimate=runtime" and found.rows[0].entry.knows == "runtimes"
    assert (
        found.best is not None and found.best.entry.name == "easy:queue=sjf" and found.best.against == (1.0, 1.0, 1.0)
    )
    means = [entries["easy:queue=sjf"].logs[log]["ratio"]["easy"]["bounded_slowdown"][0] for log in LOGS]
    assert by_name["easy:queue=sjf"].value[0] == pytest.approx(np.exp(np.mean(np.log(means))), rel=1e-12)
    assert found.rows[0].value == found.best.value, "these jobs ask for what they run: knowing it gives nothing"
    assert [row.value[0] for row in found.rows] == sorted(row.value[0] for row in found.rows)
    alone = leaderboard.standing([entries["easy:queue=sjf:estimate=runtime"]])
    assert alone.best is None


def test_intervals_are_over_the_same_weeks(entries: dict[str, leaderboard.Entry]) -> None:
    """Where one entry has half of another's figure in every week, their ratio is no question of weeks, though each
    alone is."""
    told = json.loads(json.dumps(entries["fcfs"].logs))
    for found in told.values():
        sums = found["by_week"]["policy"]
        sums["bounded_slowdown"] = [0.5 * value for value in sums["bounded_slowdown"]]
    half = leaderboard.Entry(**{**vars(entries["fcfs"]), "name": "half", "logs": told})
    found = leaderboard.standing([entries["fcfs"], half])
    other = next(row for row in found.rows if row.entry.name == "fcfs")
    assert other.against == pytest.approx((2.0, 2.0, 2.0)) and other.value[1] < other.value[0] < other.value[2]


def test_nothing_is_run_twice_and_processes_change_nothing(
    entries: dict[str, leaderboard.Entry], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    own = work.simulate
    monkeypatch.setattr(work, "simulate", lambda *given, **more: (made.append(given[2]), own(*given, **more))[1])
    leaderboard.enter("fcfs", tmp_path / "out", _suite(), on="local:1")
    assert made == ["fcfs", "easy", "easy-sjf"] * 2
    first = (tmp_path / "out" / FILE).read_bytes()
    leaderboard.enter("fcfs", tmp_path / "out", _suite(), on="local:1")
    assert len(made) == 6
    leaderboard.enter("fcfs", tmp_path / "out", _suite(promise="mean-wait<=2*easy"), on="local:1")
    assert len(made) == 12, "another promise is another judgement"
    leaderboard.enter("fcfs", tmp_path / "two", _suite(), on="local:2")
    assert (tmp_path / "two" / FILE).read_bytes() == first
    assert leaderboard.read_entry(tmp_path / "two") == entries["fcfs"]


def test_slurm_gives_the_same_entry(
    entries: dict[str, leaderboard.Entry], tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_slurm, "QUEUE_S", 0.5)
    assert leaderboard.enter("fcfs", tmp_path / "out", _suite(), on="slurm:tasks=2") == entries["fcfs"]
    assert " --array=0-1 " in (slurm / "calls").read_text()


def test_a_log_on_which_a_policy_fails_is_named_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, own = _suite(), work.simulate

    def simulate(log: Any, machine: Any, scheduler: Any, *given: Any, **more: Any) -> Any:
        if len(log) == 1500 and scheduler == "fcfs":
            raise escala.EscalaError("no luck")
        return own(log, machine, scheduler, *given, **more)

    monkeypatch.setattr(work, "simulate", simulate)
    with pytest.raises(escala.EscalaError, match=r"^log 'one': no luck$"):
        leaderboard.enter("fcfs", tmp_path / "out", suite, on="local:1")
    assert not (tmp_path / "out" / FILE).exists()
    monkeypatch.setattr(
        work,
        "simulate",
        lambda log, *given, **more: own(log, *given, **more) if len(log) == 1500 else pytest.fail("again"),
    )
    leaderboard.enter("fcfs", tmp_path / "out", suite, on="local:1")


def test_a_check_tells_what_is_not_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in LOGS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.toml").write_text('format = 1\nformula = "easy:queue=saf"\n')
    entry = leaderboard.enter(f"policy:{tmp_path}/{{log}}", "out", _suite(), name="mine", on="local:1")
    assert (
        entry.policy == "policy:{log}"
        and list(entry.logs["one"]["files"]) == ["policy.toml"]
        and str(tmp_path) not in Path("out", FILE).read_text()
    )
    assert leaderboard.check(entry, on="local:1") == []
    assert leaderboard.check(entry, policy="policy:two", on="local:1") == []
    (tmp_path / "two" / "policy.toml").write_text('format = 1\nformula = "easy:queue=sjf"\n')
    told = leaderboard.check(entry, on="local:1")
    assert told[0].startswith("two, files, policy.toml: ") and any("bounded_slowdown" in line for line in told)
    assert not any(line.startswith("one") for line in told)
    (tmp_path / "two" / "policy.toml").write_text('format = 1\nformula = "easy:queue=saf"\n')
    text = Path("out", FILE).read_text()
    figure = entry.logs["one"]["figures"]["p99_wait_s"]
    Path("changed.json").write_text(text.replace(f'"p99_wait_s": {figure}', f'"p99_wait_s": {0.9 * figure}', 1))
    (line,) = leaderboard.check(leaderboard.read_entry("changed.json"), on="local:1")
    assert line.startswith("one, figures, p99_wait_s: ")


def test_what_was_chosen_on_the_judged_weeks_is_refused(tmp_path: Path) -> None:
    log = _log("one")
    split = split_of(log, "60%")
    for after, refused in ((0.0, False), (7 * 86400.0, True)):
        told = (
            f'format = 1\nformula = "easy:queue=saf"\n[log]\nsha256 = "{log.digest()}"\nat_s = {split.at_s + after}\n'
        )
        (tmp_path / "policy.toml").write_text(told)
        if refused:
            for policy in (f"policy:{tmp_path}", f"slurm:queue=policy:{tmp_path}"):
                with pytest.raises(escala.EscalaError, match=r"was chosen on weeks of one .* --after 60%"):
                    leaderboard.enter(policy, tmp_path / "out", _suite("one"), on="local:1")
        else:
            leaderboard.enter(f"policy:{tmp_path}", tmp_path / "out", _suite("one"), on="local:1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"log": []}, "unknown key 'log': did you mean logs?"),
        ({"logs": []}, r"logs are missing: give each as a table, \[\[logs\]\]"),
        ({"after": "all"}, "after='all'"),
        ({"promise": "p99<=1"}, "'p99' is no figure"),
        ({"objective": "p95-wait"}, "objective = 'p95-wait': use one of slowdown, wait, area-wait"),
        ({"options": {"until_s": 5.0}}, r"\[options\] until_s = 5.0: whole logs are replayed"),
        ({"options": {"hed": "x"}}, "unknown key 'hed': did you mean head?"),
        ({"name": ""}, "name = .*: a text of 1 to 200 characters"),
        ({"name": "two\nlines"}, "of one line"),
    ],
)
def test_a_wrong_suite_is_one_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(escala.EscalaError, match=said):
        leaderboard.enter("easy", tmp_path / "out", {**_suite("one"), **change}, on="local:1")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0" * 64}, "log 'one' holds other jobs than the suite's"),
        ({"sha256": "abc"}, "64 hexadecimal digits"),
        ({"generator": "lubin"}, "unknown generator 'lubin': did you mean lublin?"),
        ({"file": "x.swf"}, "needs file = or generator ="),
        ({"platform": "none"}, "none"),
    ],
)
def test_a_wrong_log_is_one_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    suite = _suite("one")
    suite["logs"][0] |= change
    with pytest.raises(escala.EscalaError, match=said):
        leaderboard.enter("easy", tmp_path / "out", suite, on="local:1")


def test_files_are_found_in_the_folder_whatever_their_packing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = _log("one")
    escala.workload.swf.write_swf(log, Path("one.swf.gz"))
    sha256 = jobs_digest(escala.read_workload("one.swf.gz"))
    Path("suite.toml").write_text(
        'name = "own"\n[[logs]]\nname = "one"\nfile = "one.swf"\nsource = "my drawer"\nplatform = "16x1"\nsha256 = '
        f'"{sha256}"\n'
    )
    entry = leaderboard.enter("fcfs", "out", "suite.toml", on="local:1")
    assert entry.logs["one"]["jobs"] > 0
    assert jobs_digest(log.with_jobs(log.jobs, origin_s=log.origin_s + 3600)) != jobs_digest(log), "another weekday"
    Path("one.swf.gz").rename("other.swf.gz")
    with pytest.raises(
        escala.EscalaError,
        match=r"a log of the suite is missing in logs or .*: one.swf \(my drawer\): put them there \(--logs DIR\)",
    ):
        leaderboard.enter("fcfs", "out", "suite.toml", logs="logs", on="local:1")


def test_entries_that_cannot_stand_beside_each_other_are_refused(
    entries: dict[str, leaderboard.Entry], tmp_path: Path
) -> None:
    easy, fcfs = entries["easy"], entries["fcfs"]
    for given, said in (
        ([], "no entries"),
        ([easy, easy], "two entries are called 'easy'"),
        (
            [easy, leaderboard.Entry(**{**vars(fcfs), "suite": _suite(promise="mean-wait<=2*easy")})],
            "'fcfs' is an entry of another suite",
        ),
    ):
        with pytest.raises(escala.EscalaError, match=said):
            leaderboard.standing(given)
    told = json.loads(json.dumps(fcfs.logs))
    told["one"]["by_week"]["easy"]["bounded_slowdown"][0] *= 1.01
    with pytest.raises(escala.EscalaError, match="EASY itself differs on one"):
        leaderboard.standing([easy, leaderboard.Entry(**{**vars(fcfs), "logs": told})])
    fcfs.write(tmp_path / "fcfs.json")
    text = (tmp_path / "fcfs.json").read_text()
    for damage, said in (
        (("entry of a leaderboard", "diary"), "is no entry of a leaderboard"),
        (('"format": 1', '"format": 9'), "format 9 is not 1"),
        (('"by_week"', '"by_year"'), "not a whole entry"),
        (('"kept": false', '"kap": false'), "not a whole entry"),
        (('"name": "two"', '"name": "three"'), "not a whole entry"),
        (('"name": "fcfs"', '"name": "\\u001b[31mfcfs"'), r"damaged.json: name .* of one line is needed"),
    ):
        (tmp_path / "damaged.json").write_text(text.replace(*damage))
        with pytest.raises(escala.EscalaError, match=said):
            leaderboard.read_entry(tmp_path / "damaged.json")


def test_the_suites_that_come_with_escala_have_their_logs() -> None:
    """Every generated log has the hash that its suite says; files are looked at where they are here."""
    for name in leaderboard.SUITES:
        suite = leaderboard.read_suite(name)
        assert suite.name == name and len({log.name for log in suite.logs}) == len(suite.logs) >= 5
        for log in suite.logs:
            if log.file is None or (TRACES / f"{log.file}.gz").is_file():
                run = suite.run(log, "easy", "never", [TRACES])
                assert split_of(run.log.load(0), suite.after)
