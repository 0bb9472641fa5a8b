#!/usr/bin/env bash
# A small Slurm on this machine, for trying Escala beside it: one controller and emulated nodes that can be powered down and up. It runs as
# you, in a folder of its own, on the loopback address, and touches no other Slurm.
#
#   lab.sh up FOLDER [NODES] [CPUS]    start it (default 8 nodes of 4 CPUs); then: export SLURM_CONF=FOLDER/slurm.conf
#   lab.sh down FOLDER                 end its daemons, and nothing else
#
# Debian 12 and 13, Ubuntu 24.04: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins
# LAB_PORT: first of NODES+1 free ports (36817). LAB_BOOT_S: how long a node boots (2). LAB_RESUME_S: how long Slurm waits for that (20).
# LAB_EXTRA, LAB_PARTITIONS: more lines for slurm.conf, before its nodes and behind its partition (in its
# place, with Default=YES). LAB_NODES: what each node has, a line a node, in place of CPUS. A file FOLDER/broken: no node boots.
set -u
PATH=$PATH:/usr/sbin:/sbin
die() { echo "lab: $1" >&2; exit 1; }

daemons() {  # numbers of the processes of this lab that live
    local file pid
    for file in "$1"/run/*.pid; do
        [ -s "$file" ] || continue
        pid=$(cat "$file")
        case "$(cat "/proc/$pid/comm" 2>/dev/null)" in slurmd | slurmctld | munged) grep -qaF "$1" "/proc/$pid/environ" 2>/dev/null && echo "$pid" ;; esac
    done
    # jobs, and what runs them, which lives on without its slurmd and waits for its controller
    for file in $(grep -laF "SLURM_CONF=$1/slurm.conf" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file//[!0-9]/}
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = slurmstepd ] || grep -qaF SLURM_JOB_ID= "$file" 2>/dev/null && echo "$pid"
    done
}

down() {
    local pids
    [ -s "$1/run/slurmctld.pid" ] && SLURM_CONF=$1/slurm.conf timeout 5 scancel --user="$(id -un)" 2>/dev/null && sleep 1  # ends what jobs run
    for _ in 1 2 3; do  # a node that is booting has a file a little later
        pids=$(daemons "$1")
        [ -n "$pids" ] && kill -9 $pids 2>/dev/null
        sleep 0.3
    done
    rm -f "$1"/run/*.pid
}

configuration() {
    cat <<END
ClusterName=lab
SlurmctldHost=localhost
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$lab/run/munge.sock
StateSaveLocation=$lab/state
SlurmdSpoolDir=$lab/spool/%n
SlurmctldPidFile=$lab/run/slurmctld.pid
SlurmdPidFile=$lab/run/slurmd-%n.pid
SlurmctldLogFile=$lab/log/slurmctld.log
SlurmdLogFile=$lab/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,bf_resolution=1,batch_sched_delay=0
SuspendProgram=$lab/bin/suspend
ResumeProgram=$lab/bin/resume
SuspendTime=1000000
SuspendTimeout=2
ResumeTimeout=${LAB_RESUME_S:-20}
SuspendRate=0
ResumeRate=0
${LAB_EXTRA:-}
END
    for k in $(seq "$nodes"); do
        has=$(sed -n "${k}p" <<<"${LAB_NODES:-}")
        echo "NodeName=n$k NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + k)) ${has:-CPUs=$cpus RealMemory=4000}"
    done
    [[ ${LAB_PARTITIONS:-} == *Default=YES* ]] ||
        echo "PartitionName=batch Nodes=n[1-$nodes] Default=YES MaxTime=1-0 DefaultTime=10 State=UP OverSubscribe=NO"
    echo "${LAB_PARTITIONS:-}"
}

programs() {  # what Slurm calls to switch nodes: a node is a slurmd
    cat >"$lab/bin/suspend" <<END
#!/bin/bash
export SLURM_CONF=$lab/slurm.conf PATH="$PATH"
for node in \$(timeout 10 scontrol show hostnames "\$1"); do
    pid=\$(cat "$lab/run/slurmd-\$node.pid" 2>/dev/null)
    [ "\$(cat "/proc/\$pid/comm" 2>/dev/null)" = slurmd ] && kill -9 "\$pid"
    rm -f "$lab/run/slurmd-\$node.pid"
done
END
    cat >"$lab/bin/resume" <<END
#!/bin/bash
export SLURM_CONF=$lab/slurm.conf PATH="$PATH"
[ -e "$lab/broken" ] && exit 0
for node in \$(timeout 10 scontrol show hostnames "\$1"); do
    setsid -f bash -c "sleep ${LAB_BOOT_S:-2}; exec env --default-signal slurmd -b -N \$node" </dev/null >/dev/null 2>&1
done
sleep 0.5  # later versions end what a script has begun and is still of its session
END
    chmod +x "$lab/bin/suspend" "$lab/bin/resume"
}

up() {
    command -v slurmctld slurmd munged scontrol >/dev/null || die "slurmctld, slurmd, munged or scontrol is missing; see the head of this file"
    mkdir -p "$lab" && lab=$(cd "$lab" && pwd) || die "$lab: cannot be made"
    [ -e "$lab/slurm.conf" ] && { down "$lab"; rm -rf "${lab:?}"/{run,log,state,spool,bin,broken}; }
    mkdir -p "$lab"/{run,log,state,spool,bin}
    chmod 755 "$lab" "$lab/run"
    rm -f "$lab/run/key"
    head -c 1024 /dev/urandom >"$lab/run/key"
    chmod 400 "$lab/run/key"
    configuration >"$lab/slurm.conf"
    case "$(slurmctld -V)" in
        *" 22."*) ;;
        *" 23."*) echo "CgroupPlugin=cgroup/v1" >"$lab/cgroup.conf" ;;  # which asks nothing of the machine
        *) echo "CgroupPlugin=disabled" >"$lab/cgroup.conf" ;;
    esac
    programs
    export SLURM_CONF=$lab/slurm.conf
    LAB=$lab munged --force --key-file="$lab/run/key" --socket="$lab/run/munge.sock" --pid-file="$lab/run/munged.pid" \
        --log-file="$lab/log/munged.log" --seed-file="$lab/run/seed" || die "munged did not start; see $lab/log"
    timeout 20 slurmctld -c || die "slurmctld did not start; see $lab/log"
    for k in $(seq "$nodes"); do
        mkdir -p "$lab/spool/n$k"
        timeout 10 slurmd -N "n$k" || die "slurmd did not start; see $lab/log"
    done
    for _ in $(seq 100); do
        [ "$(timeout 5 sinfo -h -N -o '%N %t' 2>/dev/null | sort -u | grep -c ' idle$')" = "$nodes" ] && break
        sleep 0.2
    done
    [ "$(timeout 5 sinfo -h -N -o '%N %t' | sort -u | grep -c ' idle$')" = "$nodes" ] || die "the nodes did not come up; see $lab/log"
    echo "lab: $nodes nodes are idle; export SLURM_CONF=$lab/slurm.conf"
}

[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
lab=$2 nodes=${3:-8} cpus=${4:-4} port=${LAB_PORT:-36817}
case $1 in
    up) up ;;
    down) [ -d "$lab" ] || die "$lab: no such folder"; down "$(cd "$lab" && pwd)" ;;
    *) die "$1: give up or down" ;;
esac
