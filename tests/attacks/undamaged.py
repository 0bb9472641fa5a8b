"""Small files of each kind that Escala reads, which `tests.attacks.mutations` damages: texts FILES and Parquet tables
TABLES, by name."""

import io

import polars as pl

SWF = """; UnixStartTime: 1000
; MaxProcs: 64
1 0 0 10 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 -1 -1
job_2 5.25 0 1e3 4 -1 -1 4 60 -1 1 7 3 -1 2 -1 1 -1
"""
BATSIM = """{"nb_res": 4, "origin_s": 5, "jobs": [{"id": "1", "subtime": 0, "res": 2, "walltime": 9, "profile": "a"},
{"id": 2, "subtime": 1.5, "res": 2, "profile": "b", "user": "x"}, {"id": 3, "subtime": 1, "res": 1, "walltime": 5, "profile": "c"}],
"profiles": {"a": {"type": "delay", "delay": 5}, "b": {"type": "composed", "repeat": 2, "seq": ["a", "a"]},
"c": {"type": "parallel", "cpu": [1e9], "com": [0]}}}
"""
SACCT = """JobID|User|Account|QOS|State|Submit|Eligible|Start|End|Elapsed|Timelimit|AllocCPUS|AllocTRES|NodeList|JobName
1|u|a|q|COMPLETED|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:05|2024-03-01T10:00:15|00:00:10|1-00:00:00|4|cpu=4,mem=2G|n1|a
2_[3-5]|u|a|q|PENDING|2024-03-01T10:00:00|2024-03-01T10:00:00|Unknown|Unknown|00:00:00|UNLIMITED|0||None assigned|a|b
3|u|a|q|CANCELLED by 5|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:05|2024-03-01T10:00:15|00:10|05:00|4|cpu=4|n1|c
4+0|u|a|q|COMPLETED|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:05|2024-03-01T10:00:15|00:10|05:00|4|cpu=4|n1|c
4+1|u|a|q|COMPLETED|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:05|2024-03-01T10:00:15|00:10|05:00|4|cpu=4|n1|c
"""
PBS = """10/01/2017 00:00:16;Q;5.m1;queue=batch
10/01/2017 00:01:38;E;5.m1;user=u queue=batch ctime=1000 qtime=1005 etime=1010 start=1060 exec_host=c3/30 Resource_List.nodes=2:ppn=8+n1 \
Resource_List.walltime=08:00:00 Resource_List.mem=4gb end=1160 Exit_status=0
"""
PACK = """set,file,id,subtime,res,walltime,runtime,user,type
a,d,1,5,12,60,4,0,msg_par_hg
a,d,2,3,24,60,61,,msg_par_hg
"""
EAGLE = """job_id,user,account,partition,qos,wallclock_req,processors_req,submit_time,start_time,run_time,state
532209,u1,a,p,q,172800.0,10,2019-01-01 08:55:55,2019-01-01 08:55:56,99825.0,COMPLETED
"""
ALIBABA = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0
openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427061
"""
GOOGLE = """0,,62,0,,0,u,3,9,0.0625,0.0159,0.0004,0
0,,62,0,31,1,u,3,9,0.0625,0.0159,0.0004,0
600000000,,7,1,,0,p,0,0,0.0125,0.0159,0.0004,0
601000000,,7,1,5,1,p,0,0,0.0125,0.0159,0.0004,0
700000000,,7,1,5,2,p,0,0,0.0125,0.0159,0.0004,0
700000000,,7,1,,0,p,0,0,0.0125,0.0159,0.0004,0
720000000,,7,1,7,1,p,0,0,0.0125,0.0159,0.0004,0
800000000,,7,1,7,4,p,0,0,0.0125,0.0159,0.0004,0
900000000,,62,0,31,5,u,3,9,0.0625,0.0159,0.0004,0
"""
INSTANCES = """time,type,collection_id,instance_index,collection_type,priority,resource_request.cpus,resource_request.memory
600000000,SUBMIT,7,1,0,103,0.0125,0.0159
601000000,3,7,1,0,103,0.0125,0.0159
700000000,6,7,1,0,103,0.0125,0.0159
700000000,0,8,1,1,103,0.5,0.5
"""
EVENTS = """{"time":"600000000","type":0,"collection_id":"7","instance_index":"1","collection_type":"0","priority":"103","machine_id":"5",\
"resource_request":{"cpus":0.0125,"memory":0.0159},"constraint":[]}
{"time":"601000000","type":3,"collection_id":"7","instance_index":"1","resource_request":{"cpus":0.0125,"memory":0.0159}}
{"time":"700000000","type":6,"collection_id":"7","instance_index":"1","resource_request":{"cpus":0.0125}}
{"time":"700000000","type":0,"collection_id":"8","instance_index":"0","collection_type":"1","resource_request":{"cpus":0.5,"memory":0.5}}
"""
COLLECTIONS = (
    EVENTS
    + """{"time":"599000000","type":0,"collection_id":"7","collection_type":"0","priority":"103","user":"u","parent_collection_id":"6",\
"collection_name":"n1","collection_logical_name":"n","alloc_collection_id":"8","start_after_collection_ids":["5"],"max_per_machine":1}
{"time":"700000000","type":6,"collection_id":"7","user":"u","collection_name":"n1","missing_type":null,"scheduler":"1"}
"""
)
SACCT_JSON = """{"meta": {"plugin": {"type": "openapi/dbv0.0.38", "data_parser": "data_parser/v0.0.42"}}, "errors": [], "jobs": [
{"job_id": 12, "user": "u", "account": "a", "partition": "p", "qos": "q", "name": "b", "nodes": "n[1-2]", "allocation_nodes": 2,
"association": {"account": "a", "user": "u"}, "array": {"job_id": 0, "task_id": {"set": false, "infinite": false, "number": 0}},
"state": {"current": ["COMPLETED"], "reason": "None"}, "priority": {"set": true, "infinite": false, "number": 9}, "steps": [],
"time": {"submission": 1700000000, "eligible": 1700000000, "start": 1700000060, "end": 1700000160, "elapsed": 100,
"limit": {"set": true, "infinite": false, "number": 10}},
"required": {"CPUs": 8, "memory_per_cpu": {"set": true, "infinite": false, "number": 2000}},
"tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu:a100", "count": 2}], "requested": []}},
{"job_id": 17, "user": "u", "partition": "p", "state": {"current": "TIMEOUT"}, "array": {"job_id": 13, "task_id": 4},
"het": {"job_id": 13, "job_offset": 0},
"time": {"submission": 1700000100, "eligible": 0, "start": 1700000200, "end": 1700000800, "elapsed": 600, "limit": 10},
"required": {"CPUs": 4, "memory": 9223372036854779808}, "tres": {"allocated": [{"type": "cpu", "name": "", "count": 4}]}}]}
"""
OAR = """{
   "5" : {"Job_Id" : "5", "owner" : "u", "queue" : "p", "project" : "a", "name" : null, "state" : "Terminated", "types" : [],
      "submissionTime" : 1700000000, "startTime" : "1700000060", "stopTime" : 1700000160, "walltime" : 3600, "array_id" : 5,
      "assigned_resources" : [1, 2, "3", 4], "assigned_network_address" : ["n1", "n2"], "reservation" : "None",
      "wanted_resources" : "-l \\"{type = 'default'}/host=2/core=2,walltime=1:0:0\\" ", "exit_code" : 0,
      "message" : "R=4,W=1:0:0,J=B (Karma=0.087,quota_ok)", "properties" : "(mem > 64) AND drain='NO'"},
   "6" : {"Job_Id" : 6, "owner" : "v", "queue" : "besteffort", "state" : "Error", "types" : ["besteffort", "inner=5"],
      "submissionTime" : 1700000000, "startTime" : 1700000060, "stopTime" : 1700000160, "walltime" : null,
      "events" : [{"type" : "BESTEFFORT_KILL", "date" : 1700000160}], "resubmit_job_id" : 4, "dependencies" : [5]},
   "7" : {"id" : 7, "user" : "u", "queue_name" : "p", "state" : "Terminated", "types" : {"deploy" : true},
      "submission_time" : 1700000100, "start_time" : 1700000200, "stop_time" : 1700000300, "reservation" : "Scheduled",
      "resources" : [{"id" : 9, "status" : "assigned"}], "nodes" : [{"network_address" : "n3"}],
      "initial_request" : "oarsub -l nodes=1,walltime=2 -t deploy"}
}
"""
YAML = """name: c
profiles:
  blade: &b {computing_w: 210, idle_w: 90, off_w: 5, switching_off_w: 100, switching_on_w: 120, switch_off_s: 20, switch_on_s: 90}
  twin: {<<: *b, idle_w: 91}
nodes:
  - {count: 3, cores: 32, power: blade, resources: {memory: 128}}
  - {count: 2, cores: 64, power: grid5000, resources: {memory: 512}}
host_names: [a, b, c, d, e]
speed_flop_per_s: 1.0e9
"""
XML = """<?xml version='1.0' encoding='utf-8'?>
<!DOCTYPE platform SYSTEM "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd">
<platform version="4"><zone id="z" routing="Full"><host id="master_host" speed="1Gf"/>
<host id="h1" speed="1Gf,2Mf,1f,0.5f" core="4"><prop id="wattage_per_state" value="90:100,9:9,50:50,60:60"/>
<prop id="sleep_pstates" value="1:2:3"/></host>
<cluster id="c" prefix="n" suffix="x" radical="0-3,7" speed="1Gf" bw="1" lat="1"><prop id="role" value="compute"/></cluster>
</zone></platform>
"""
LOGS = {
    "swf": SWF,
    "batsim": BATSIM,
    "sacct": SACCT,
    "pbs": PBS,
    "pack": PACK,
    "eagle": EAGLE,
    "alibaba": ALIBABA,
    "google": GOOGLE,
}
LOGS |= {
    "instances": INSTANCES,
    "google-json": EVENTS,
    "google-collections": COLLECTIONS,
    "sacct-json": SACCT_JSON,
    "oar": OAR,
}
PLATFORMS = {"yaml": YAML, "xml": XML}
LINEAR = """form = "linear"
every_s = 300
column = "cores"
[weights]
log_wait_over_estimate = -0.5
column = 1e-3
"""
MULTIFACTOR = """form = "multifactor"
max_age_s = 604800
half_life_s = 3.5e5
size = "per-time"
nice = "cores"
weights = {age = 1000, fair_share = 10000, queue = 5, qos = 2}
shares.a = 3
[queues]
debug = 10
"big nodes" = 1
[qos]
high = 2
"""
POLICY = """format = 1
formula = "easy:queue=saf"
guard = "24h"
estimate = "last2"
"""
SITE = """platform = "4x2:grid5000"
seed = 3
"""
TOML = {"linear": LINEAR, "multifactor": MULTIFACTOR, "policy": POLICY, "site": SITE}
FILES = {**LOGS, **PLATFORMS, **TOML}


def _parquet(columns: dict[str, list[float] | list[int] | list[str]]) -> bytes:
    """Not packed: a damaged bit is met by the reader, not by the check sum of a packer."""
    written = io.BytesIO()
    pl.DataFrame(columns).write_parquet(written, compression="uncompressed")
    return written.getvalue()


JOBS = {
    "job_id": ["1", "2"],
    "submit_s": [0.0, 1.0],
    "cores": [1, 2],
    "walltime_s": [9.0, 9.0],
    "runtime_s": [5.0, 7.0],
}
RAN = {
    **JOBS,
    "start_s": [0.0, 5.0],
    "finish_s": [5.0, 12.0],
    "wait_s": [0.0, 4.0],
    "user": ["a", "b"],
    "state": ["COMPLETED", "COMPLETED"],
    "nodes": ["0", "0-1"],
}
TOTALS = _parquet({"state": ["computing"], "seconds": [24.0], "transitions": [0]})
MANIFEST = {
    "escala": "0.1.0",
    "format": 1,
    "workload": {"name": "x"},
    "platform": {"name": "2x1", "profiles": {}, "nodes": [{"count": 2, "cores": 1}]},
    "n_nodes": 2,
    "n_cores": 2,
    "options": {},
    "window": {"start_s": 0.0, "end_s": 12.0},
    "scheduler": "easy",
    "shutdown": "never",
    "left_out": [],
}
TABLES = {"table": _parquet(JOBS), "run": _parquet(RAN)}
"""A log, and the jobs of a saved run, whose manifest is signed anew for each damaged one."""
