"""A server periodic hook of OpenPBS that asks `escala serve` what to do, and says it in the server's log; or starts the
jobs.

What was tested: reading jobs and vnodes, asking, and the words of `qrun`, against a stand-in for the module `pbs` and a
real `escala serve`. What was NOT tested: anything on a real OpenPBS. It is written after the manual pages
pbs_module(7B), pbs_node_attributes(7B), pbs_job_attributes(7B) and qrun(8B) of OpenPBS 20. Look at these before you
trust it:
- that states of vnodes are sums of pbs.ND_* numbers, and that `last_used_time` is there and in seconds since 1970;
- that the hook's user may connect to the socket (mode 0600: run `escala serve` as the same user, as a rule root);
- that `qrun -H` from a hook does not wait for the server that waits for the hook. Nothing is started unless `mode` says
  "run".
Not done: nodes are not switched (the log says which would be), job arrays, reservations, chunks with memory or GPUs,
several queues.

    qmgr -c "create hook escala event=periodic"
    qmgr -c "set hook escala freq=30"
    qmgr -c "import hook escala application/x-python default escala_hook.py"
    qmgr -c "import hook escala application/x-config default escala_hook.json"

The configuration: {"socket": "/run/escala/escala.sock", "nodes": ["n1", "n2"], "mode": "log", "qrun":
"/opt/pbs/bin/qrun"}. `nodes` are the vnodes in the order of the platform that `escala serve` was given; all other
vnodes are none of its business.
"""

import json
import re
import socket
import subprocess
import time

import pbs

NAME = re.compile(r"[A-Za-z0-9_.\[\]-]+")
CHUNK = re.compile(r"([^():+]+):(?:[^():+]*:)*?ncpus=(\d+)")
ASK_S, RUN_S = 10.0, 5.0
LONGEST_S = 365 * 86400.0  # of a job that requests no walltime
BYTES = 1 << 16


def tell(line):
    pbs.logmsg(pbs.LOG_DEBUG, "escala: " + line)


def placed_of(job, nodes):
    """(vnode's number, its ncpus) of a running job's chunks, those on our nodes."""
    found = CHUNK.findall(str(job.exec_vnode))
    return [(nodes[name.strip()], int(ncpus)) for name, ncpus in found if name.strip() in nodes]


def jobs_of(server, nodes):
    """The columns `jobs` and `placed`: what waits, and what runs on our nodes."""
    jobs = {name: [] for name in ("job_id", "submit_s", "walltime_s", "cores", "state", "start_s", "user")}
    placed = {name: [] for name in ("job", "first", "last", "cores")}
    for job in sorted(server.jobs(), key=lambda job: (int(job.qtime or 0), int(re.match(r"\d+", job.id).group()))):
        running = job.job_state == pbs.JOB_STATE_RUNNING
        if not running and job.job_state != pbs.JOB_STATE_QUEUED:
            continue
        held = placed_of(job, nodes) if running else []
        if running and not held:
            continue
        walltime = job.Resource_List["walltime"]
        cores = sum(ncpus for _, ncpus in held) if running else int(job.Resource_List["ncpus"] or 1)
        row = (job.id, float(job.qtime or 0), float(walltime or LONGEST_S), cores, "running" if running else "queued")
        row += (float(job.stime) if running else None, str(job.Job_Owner).partition("@")[0])
        for node, ncpus in held:
            for name, value in zip(placed, (len(jobs["job_id"]), node, node, ncpus)):
                placed[name].append(value)
        for name, value in zip(jobs, row):
            jobs[name].append(value)
    return jobs, placed


def nodes_of(server, nodes):
    """The column `nodes`: vnodes that take jobs or run some are on; the others are gone."""
    usable = pbs.ND_FREE | pbs.ND_BUSY | pbs.ND_JOBBUSY | pbs.ND_JOB_EXCLUSIVE
    told = {"power": ["on"] * len(nodes), "idle_since_s": [None] * len(nodes), "gone": [True] * len(nodes)}
    for vnode in server.vnodes():
        if vnode.name in nodes:
            number = nodes[vnode.name]
            told["gone"][number] = bool(int(vnode.state) & ~usable)
            used = getattr(vnode, "last_used_time", None)
            told["idle_since_s"][number] = float(used) if used else None
    return told


def snapshot_of(server, nodes, now):
    jobs, placed = jobs_of(server, nodes)
    return {"schema": 1, "now_s": now, "jobs": jobs, "nodes": nodes_of(server, nodes), "placed": placed}


def ask(path, told):
    """One line there, one line back."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
        there.settimeout(ASK_S)
        there.connect(path)
        there.sendall(json.dumps(told).encode() + b"\n")
        heard = b""
        while not heard.endswith(b"\n"):
            piece = there.recv(BYTES)
            if not piece:
                raise OSError("the server has left")
            heard += piece
    return json.loads(heard.decode())


def vnodes_of(start, names):
    """The vnode specification of qrun -H."""
    parts = [(names[node], cores) for first, last, cores in start["nodes"] for node in range(first, last + 1)]
    return "+".join(f"({name}:ncpus={cores})" for name, cores in parts)


def carry_out(orders, names, settings):
    for start in orders["starts"]:
        command = [settings.get("qrun", "qrun"), "-a", "-H", vnodes_of(start, names), start["job_id"]]
        if not NAME.fullmatch(start["job_id"]):
            tell(f"job {start['job_id']!r} has a strange name, and is left alone")
        elif start["waits"]:
            tell(f"would start {start['job_id']} once its nodes are on: {command[3]}")
        elif settings.get("mode", "log") != "run":
            tell("would start: " + " ".join(command))
        else:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_S)
            tell(f"started: {' '.join(command)}: status {done.returncode}")
    for job in orders.get("refused", ()):
        tell(f"job {job['job_id']} can never start: {job['why']}")
    for what, how in (("wakes", "on"), ("offs", "off")):
        if orders[what]:
            tell(f"would switch {how}: {' '.join(names[node] for node in orders[what])}")


def main():
    with open(pbs.hook_config_filename) as file:
        settings = json.load(file)
    names = settings["nodes"]
    if not all(NAME.fullmatch(name) for name in names):
        raise ValueError("a vnode in the configuration has a strange name")
    told = snapshot_of(pbs.server(), {name: number for number, name in enumerate(names)}, time.time())
    answer = ask(settings["socket"], {"decide": told})
    if "error" in answer:
        tell("refused: " + answer["error"])
    else:
        carry_out(answer, names, settings)


try:
    main()
except Exception as error:  # PBS goes on without us
    tell(f"nothing was done: {type(error).__name__}: {error}")
pbs.event().accept()
