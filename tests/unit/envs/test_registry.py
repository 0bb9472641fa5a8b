"""Gymnasium knows the environments once it and the package are imported, whichever comes first."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from escala.registry import ENVIRONMENTS

ORDERS = {
    "escala first": "import escala; assert 'gymnasium' not in sys.modules; import gymnasium",
    "gymnasium first": "import gymnasium, escala",
    "looked for before": "import escala, importlib.util; assert importlib.util.find_spec('gymnasium'); import "
    "gymnasium",
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_names_are_known_in_either_order(order: str) -> None:
    told = (
        "; print(sorted(name for name in gymnasium.registry if name.startswith('escala/')), "
        "type(gymnasium.__loader__).__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {ORDERS[order]}{told}"], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split("] ") == [str(sorted(ENVIRONMENTS))[:-1], "SourceFileLoader\n"], done.stderr


def _alone(code: str, limit: float = 300.0) -> tuple[str, str]:
    """(stdout, stderr) of a process of its own, which ends with all of its children where it takes longer."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            return child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return "still waiting", ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


PLAY = """
import gymnasium, escala
{before}
alone = gymnasium.make("{name}"{given})
alone.reset(seed=0)
alone.step(0)  # now all is compiled
env = gymnasium.make_vec("{name}", num_envs=2, vectorization_mode="async"{given})
seen = env.reset(seed=0)[0]
assert (seen[0] == alone.reset(seed=0)[0]).all() and (seen[1] == alone.reset(seed=1)[0]).all()
for k in range(3):
    seen = env.step([0, 0])[0]
print("played", len(seen))
env.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_a_process_works_with_gymnasium_s_own_forks(name: str) -> None:
    """polars waits for ever in a forked process: what the parent read is taken over."""
    assert _alone(PLAY.format(name=name, before="", given=""))[0] == "played 2\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_an_environment_a_process_plays_a_log_of_one_s_own() -> None:
    before = "log = escala.workload.generate.grid5000(cluster='orion', days=3)"
    given = ", workload=log, platform='orion', action='hold', holds=[0.0, 0.5]"
    assert _alone(PLAY.format(name="escala/OffReservation-v0", before=before, given=given))[0] == "played 2\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_what_a_forked_process_cannot_do_it_says_in_one_line() -> None:
    tried = (
        "escala.simulate(log, '2x1')",
        "escala.read_workload('log.swf')",
        "escala.Workload.from_jobs({'submit_s': [0.0], 'cores': [1], 'runtime_s': [1.0]})",
        "gymnasium.make('escala/Slots-v0', lists=3)",
        "gymnasium.make_vec('escala/Slots-v0', num_envs=2)",
    )
    code = f"""
import gymnasium, os, escala
log = escala.Workload.from_jobs({{"submit_s": [0.0], "runtime_s": [5.0], "cores": [1]}})
for step in {tried}:
    pid = os.fork()
    if pid == 0:
        try:
            eval(step)
        except escala.EscalaError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""
    lines = _alone(code)[0].splitlines()
    assert len(lines) == len(tried) and all("was forked from" in line and "spawn" in line for line in lines)
