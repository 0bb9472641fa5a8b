"""A Slurm that is none: sbatch, squeue and scancel as one program, called by these names. Its tasks are processes of
this machine.

SLURM_STAND_IN is its folder: `calls` gets the words of each call; `refuse`, where it is there, is what sbatch says to
refuse; pieces of the scheduler or preset named in `deadly` end the process of their task.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

HERE = Path(os.environ["SLURM_STAND_IN"])
TASK = """
import os, runpy, sys
from pathlib import Path
from escala.engines import there as on
own, deadly, module = on.there, Path(sys.argv.pop(1)), sys.argv.pop(1)
def there(piece, **more):
    if deadly.exists() and deadly.read_text() in (getattr(piece, "scheduler", None), getattr(piece, "preset", None)):
        print("out of memory", flush=True)
        os._exit(9)
    return own(piece, **more)
on.there = there
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def sbatch(words: list[str]) -> int:
    """Begin a process for each task."""
    if (HERE / "refuse").exists():
        print(f"sbatch: error: {(HERE / 'refuse').read_text()}", file=sys.stderr)
        return 1
    given = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
    program, _, module, *arguments = shlex.split(sys.stdin.read().split("exec ", 1)[1])
    last = int(given["array"].removeprefix("0-"))
    for k in range(last + 1):
        with open(Path(given["chdir"]) / given["output"].replace("%a", str(k)), "w") as said:
            command = [program, "-c", TASK, str(HERE / "deadly"), module, *arguments]
            environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(k)}
            begun = subprocess.Popen(
                command, cwd=given["chdir"], env=environment, stdout=said, stderr=said, start_new_session=True
            )
        (HERE / f"{given['job-name']}.{k}").write_text(str(begun.pid))
    print(4242)
    return 0


def _tasks(words: list[str]) -> list[tuple[str, int]]:
    """(number in its array, process) of the tasks of the named job that live."""
    (name,) = [word.removeprefix("--name=") for word in words if word.startswith("--name=")]
    found = []
    for path in HERE.glob(f"{name}.*"):
        with suppress(OSError, ValueError):
            if "State:\tZ" not in Path(f"/proc/{path.read_text()}/status").read_text():
                found.append((path.suffix[1:], int(path.read_text())))
    return found


def main() -> int:
    """The client of the name by which this was called."""
    client, words = Path(sys.argv[0]).name, sys.argv[1:]
    with (HERE / "calls").open("a") as file:
        file.write(f"{client} {' '.join(words)}\n")
    if client == "sbatch":
        return sbatch(words)
    for number, process in _tasks(words):
        if client == "squeue":
            print(number)
        else:
            os.kill(process, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
