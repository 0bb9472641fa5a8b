"""Small files that would unfold to a full machine or to hours: each is read, or ends as one clear line, in a process of
its own with 4 GiB and within seconds."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 40
BYTES = 4 << 30
LARGE = "NodeName=n[0-999999] CPUs=4 Gres=gpu:2\n"
ALL = "PartitionName=p Nodes=ALL\n"
TOML = 'name = "x"\n[[nodes]]\nnames = "n[1-1000000]"\ncores = 4\n'
SMALL = "NodeName=n1 CPUs=4\nPartitionName=p Nodes=n1\n"
PBS = (
    "01/01/2024 00:10:00;E;{}.m;user=a ctime=1704067200 start=1704067200 exec_host={} Resource_List.nodect=2 "
    "total_execution_slots=4 end=1704067500 Exit_status=0\n"
)
READ = {
    "platform": "import escala\nescala.read_platform(sys.argv[1])",
    "log": "import escala\nescala.read_workload(sys.argv[1], shapes=True)",
    "export": (
        "from pathlib import Path\nfrom escala.platform.exports import read_exports\n"
        "read_exports([Path(one) for one in sys.argv[1:]])"
    ),
}
CHILD = """import sys
from escala.errors import EscalaError
from escala.reading import Unreadable
try:
    {read}
except Unreadable:
    raise
except EscalaError as error:
    print(error)
"""
GPU_KINDS = ",".join(f"gpu:k{k}:1" for k in range(2000))
FEATURES = ",".join(f"f{k}" for k in range(2000))
SETS = "".join(f"NodeSet=s{k} Nodes=ALL\n" for k in range(2000))
INCLUDES = {f"c{k}.conf": f"Include c{k + 1}.conf\n" * 60 for k in range(8)}
PARTITIONS = "".join(f"PartitionName=p{k} Nodes=ALL\n" for k in range(3000))
CLOSED = "".join(f'[[closed]]\nnodes = "ALL"\nfrom = {k}\nuntil = {k + 1}\n' for k in range(3000))
ACCOUNTS = "".join(f'a{k} = {{parent = "a{k + 1}"}}\n' for k in range(40_000)) + 'a40000 = {parent = "root"}\n'
MANY_SLOTS = "".join(PBS.format(k, "c1/0-49999+c2/0-49998") for k in range(9000))
EQUAL_SLOTS = MANY_SLOTS.replace("49998", "49999")
LONG_SLOTS = PBS.format(1, f"{'c' * 90_000}/0-49999+c2/0-49998")
YAML_KINDS = ", ".join(f"k{k}: 1" for k in range(3000))

HOSTILE: dict[str, tuple[str, dict[str, str], str]] = {
    "blank lines": ("platform", {"slurm.conf": " \n" * 300_000 + SMALL}, ""),
    "blank lines of an export": ("export", {"x.txt": "\n" * 300_000 + "NodeName=n1 CPUTot=4\n"}, ""),
    "a long word": ("platform", {"slurm.conf": SMALL + "a" * 300_000 + "\n"}, ""),
    "a long word of an export": ("export", {"x.txt": "NodeName=n1 CPUTot=4\n  " + "a" * 300_000 + "\n"}, ""),
    "a header of many users": ("export", {"x.txt": "Account|" + "User|" * 200_000 + "\n"}, "neither a slurm.conf"),
    "brackets of gres": ("platform", {"slurm.conf": f"NodeName=n1 CPUs=4 Gres={'(' * 300_000}\n" + ALL}, ""),
    "includes of includes": (
        "platform", {"slurm.conf": "Include c0.conf\n" + SMALL, **INCLUDES, "c8.conf": SMALL}, "more than 1000 files"
    ),
    "lines of gres.conf": (
        "platform",
        {"slurm.conf": LARGE + ALL, "gres.conf": "NodeName=n[0-999999] Name=gpu Type=a Count=1\n" * 400},
        "gres.conf, line 6: with its nodes there are more than 5,000,000",
    ),
    "one long gres of all nodes": (
        "platform",
        {"slurm.conf": LARGE + ALL, "gres.conf": "".join(f"Name=gpu Type=a{k}\n" for k in range(2000))},
        "",
    ),
    "sets of nodes": (
        "platform",
        {"slurm.conf": LARGE + SETS + f"PartitionName=p Nodes={','.join(f's{k}' for k in range(2000))}\n"},
        "have more than 5,000,000",
    ),
    "kinds of GPUs": ("platform", {"slurm.conf": f"NodeName=n[0-999999] Gres={GPU_KINDS}\n" + ALL}, "2002 kinds"),
    "kinds of GPUs of a site.toml": (
        "platform", {"site.toml": TOML + f"gpus = {{{','.join(f'k{k} = 1' for k in range(2000))}}}\n"}, "2002 kinds"
    ),
    "kinds of a platform in YAML": (
        "platform",
        {"p.yaml": f"name: x\nnodes: [{{count: 1000000, cores: 1, resources: {{{YAML_KINDS}}}}}]\n"},
        "3000 kinds of resources on 1000000 nodes",
    ),
    "features": (
        "platform", {"slurm.conf": f"NodeName=n[0-999999] Feature={FEATURES}\n" + ALL}, "more than 5,000,000 features"
    ),
    "partitions of all nodes": ("platform", {"slurm.conf": LARGE + PARTITIONS}, "'p30': with it partitions"),
    "closures of all nodes": ("platform", {"site.toml": TOML + CLOSED}, "closed 31: with it partitions and closures"),
    "accounts below one another": ("platform", {"site.toml": TOML + "[accounts]\n" + ACCOUNTS}, "more than 200 deep"),
    "a key of many parts": ("platform", {"site.toml": ".".join(["a"] * 100_000) + " = 1\n"}, "key of a thousand parts"),
    "a speed of many digits": (
        "platform",
        {"p.xml": f"<platform version='4'><host id='a' speed='{'1' * 300_000}x'/></platform>"},
        "is not a number with f",
    ),
    "slots of PBS": ("log", {"jobs.log": MANY_SLOTS}, "300,000,000 char"),
    "slots of a long name": ("log", {"jobs.log": LONG_SLOTS}, "300,000,000 char"),
    "as many slots on each host": ("log", {"jobs.log": EQUAL_SLOTS}, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_small_file_unfolds_to_is_bounded(tmp_path: Path, name: str) -> None:
    read, files, says = HOSTILE[name]
    assert sum(map(len, files.values())) < 4_000_000
    for file, content in files.items():
        (tmp_path / file).write_text(content)
    outcome = subprocess.run(
        [sys.executable, "-c", CHILD.format(read=READ[read].replace("\n", "\n    ")), tmp_path / next(iter(files))],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES)),
    )
    assert outcome.returncode == 0 and not outcome.stderr, outcome.stderr[-2000:]
    assert says in outcome.stdout and bool(says) == bool(outcome.stdout), outcome.stdout
    assert outcome.stdout.count("\n") == bool(says) and len(outcome.stdout) <= 501
