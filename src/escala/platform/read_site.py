"""`read_site`: a site from slurm.conf, or from a site.toml that a person can read and mend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from escala.errors import EscalaError, quoted
from escala.platform.hostlist import hosts_of
from escala.platform.limits import mode_of
from escala.platform.sinfo import UNKNOWN
from escala.platform.site import Partition, Site
from escala.platform.site_entries import Nodes, default_marked, gpus_of, seconds_of, whole
from escala.platform.site_toml import site_of_toml
from escala.platform.slurm_conf import Conf, read_conf, read_gres
from escala.platform.tres_weights import weights_of
from escala.reading import guarded, read_text

ALL = "all"
OUTSIDE = ("down", "fail", "drain", "future")
"""States in a node's line with which it is not there at the start."""


def read_site(path: str | Path) -> Site:
    """The site that a file describes: slurm.conf (with what it includes), or a site.toml; found from the content.

    The result is a Platform with partitions and Slurm's settings. Keys that are not modelled are in its `unread`.
    EscalaError in one line for a partition without nodes, nodes that are not described, numbers that are none.
    """
    if isinstance(path, Site):
        return path
    place = Path(path)
    with guarded(place, "a site"):
        text = read_text(place)
    return site_of_conf(place) if is_conf(text) else site_of_toml(place)


def is_conf(text: str) -> bool:
    """Does the text look like slurm.conf: lines NodeName=, PartitionName=, or Include?"""
    return re.search(
        r"(?im)^[ \t]*(nodename|partitionname|clustername|slurmctldhost)[ \t]*=|^[ \t]*include[ \t]+\S", text
    ) is not None and not (re.search(r"(?m)^[ \t]*\[", text))


def site_of_conf(path: Path) -> Site:
    """The site of a slurm.conf, with the kinds of GPUs that a gres.conf beside it tells."""
    conf = read_conf(path)
    beside = path.with_name("gres.conf")
    gres = read_gres(beside) if beside.is_file() else {}
    return site_of_lines(conf, path, gres)


def site_of_lines(conf: Conf, path: Path, gres: Mapping[str, str] | None = None) -> Site:
    """The site of lines under Slurm's names. path: where they are from. gres: node ("" for each that has none of its
    own) -> its GPUs as gres.conf tells them; they go before those in the node's line where both have as many."""
    nodes = Nodes()
    usual: dict[str, str] = {}
    for line in conf.nodes:
        if line["nodename"].upper() == "DEFAULT":
            usual |= line
            continue
        told = {**usual, **line}
        if told.get("state", "").lower() in OUTSIDE:
            conf.unread.append(f"{line['where']}: node {told['nodename']} is {told['state']}: left out")
            continue
        where = f"{path.name}: node {quoted(told['nodename'])}"
        one = _node(told, where)
        hosts, own = hosts_of(told["nodename"], f"{path}, {line['where']}"), gres or {}
        texts = [own.get(host, own.get("", "")) for host in hosts]
        for text, alike in groupby(zip(hosts, texts, strict=True), key=itemgetter(1)):
            nodes.add([host for host, _ in alike], where, **{**one, "gpus": _gpus(text, one["gpus"], where)})
    if not nodes.names:
        raise EscalaError(f"{path}: no line NodeName= describes a node that is up: a site needs its nodes")
    partitions = _partitions(conf, nodes, path)
    name = conf.settings.get("clustername", path.stem)
    return nodes.site(name, {}, partitions=partitions, settings=conf.settings, unread=tuple(conf.unread))


def _gpus(text: str, own: dict[str, int], where: str) -> dict[str, int]:
    """The GPUs of a node by kind. text: what gres.conf says of it; own: by its line."""
    kinds = gpus_of(text, f"{where}, gres.conf")
    return kinds if sum(kinds.values()) == sum(own.values()) and set(own) == {""} else own


def _node(told: Mapping[str, str], where: str) -> dict[str, Any]:
    """What one NodeName line says of each of its nodes."""

    def number(key: str, usual: int, least: int = 1) -> int:
        return whole(told.get(key, usual), f"{where}, {key}", least)

    threads = number("threadspercore", 1)
    sockets = number("sockets", 1) if "sockets" in told else number("boards", 1) * number("socketsperboard", 1)
    built = sockets * number("corespersocket", 1) * threads
    cpus = number("cpus", built)
    cores = max(1, cpus - number("corespeccount", 0, 0) * threads)
    said = told.get("realmemory") != UNKNOWN
    memory = number("realmemory", 1, 0) - number("memspeclimit", 0, 0) if said else 0
    return {
        "cores": cores,
        "threads": threads if cpus % threads == 0 and ("corespersocket" not in told or cpus == built) else 1,
        "memory_mb": max(0, memory) if said else None,
        "gpus": gpus_of(told.get("gres", ""), f"{where}, Gres"),
        "features": tuple(one.strip() for one in told.get("feature", "").split(",") if one.strip()),
        "weight": number("weight", 1, 0),
    }


def _partitions(conf: Conf, nodes: Nodes, path: Path) -> tuple[Partition, ...]:
    found: list[Partition] = []
    usual: dict[str, str] = {}
    for line in conf.partitions:
        if line["partitionname"].upper() == "DEFAULT":
            usual |= line
            continue
        told = {**usual, **line}
        where = f"{path.name}: partition {quoted(told['partitionname'])}"
        listed = nodes.listed(told.get("nodes", ""), where, conf.sets) if told.get("nodes") else ()
        if not listed:
            raise EscalaError(f"{where} has no node: say Nodes=ALL or a host list, or leave the partition out")
        found.append(_partition(told, listed, where, conf.settings))
    if not found:
        conf.unread.append(f"{path.name}: no PartitionName: all nodes are taken as one partition")
    return default_marked(found)


def _partition(told: Mapping[str, str], nodes: tuple[int, ...], where: str, settings: Mapping[str, str]) -> Partition:
    def number(key: str) -> int | None:
        text = told.get(key, "").strip()
        return None if text.lower() in ("", "infinite", "unlimited") else whole(text, f"{where}, {key}")

    def words(key: str) -> tuple[str, ...]:
        given = tuple(one.strip() for one in told.get(key, "").split(",") if one.strip())
        return () if given and given[0].lower() == ALL else given

    most = seconds_of(told.get("maxtime", "infinite"), f"{where}, MaxTime")
    usual = told.get("defaulttime", "").strip()
    per_core = number("defmempercpu")
    per_node = number("defmempernode")
    if per_core is None and per_node is None:
        per_core = _setting(settings, "defmempercpu", where)
        per_node = _setting(settings, "defmempernode", where) if per_core is None else None
    both = whole(told.get("priority", 1), f"{where}, Priority")
    return Partition(
        name=told["partitionname"],
        nodes=nodes,
        default=told.get("default", "no").lower() == "yes",
        max_s=most,
        default_s=seconds_of(usual, f"{where}, DefaultTime") if usual and usual.lower() != "none" else most,
        max_nodes=number("maxnodes"),
        min_nodes=number("minnodes") or 0,
        max_cores_per_node=number("maxcpuspernode"),
        tier=whole(told.get("prioritytier", both), f"{where}, PriorityTier"),
        factor=whole(told.get("priorityjobfactor", both), f"{where}, PriorityJobFactor"),
        exclusive=told.get("oversubscribe", "no").lower() == "exclusive",
        up=told.get("state", "up").lower() == "up",
        memory_mb_per_core=per_core,
        memory_mb_per_node=per_node,
        least_loaded=told.get("lln", "no").lower() == "yes",
        accounts=words("allowaccounts"),
        denied_accounts=words("denyaccounts"),
        qos=words("allowqos"),
        denied_qos=words("denyqos"),
        own_qos=told.get("qos", "").strip() or None,
        tres_billing_weights=_billing(told, where),
        preempt_mode=_preempt_mode(told, settings, where),
        grace_s=float(whole(told.get("gracetime", 0), f"{where}, GraceTime")),
    )


def _setting(settings: Mapping[str, str], key: str, where: str) -> int | None:
    text = settings.get(key, "").strip().lower()
    value = None if text in ("", "unlimited") else whole(text, f"{where}, {key}")
    return value or None


def _billing(told: Mapping[str, str], where: str) -> str | None:
    text = told.get("tresbillingweights", "").strip()
    if not text or text.lower() == "(null)":
        return None
    weights_of(text, f"{where}, TRESBillingWeights", [])
    return text


def _preempt_mode(told: Mapping[str, str], settings: Mapping[str, str], where: str) -> str | None:
    """What a partition says of it, where that is not what the site says: `scontrol show partition` repeats it."""
    preempts = settings.get("preempttype", "none").lower() not in ("preempt/none", "none", "(null)", "")
    text = told.get("preemptmode", "").strip()
    if not preempts or not text or text.lower() == settings.get("preemptmode", "").lower():
        return None
    return mode_of(text, f"{where}, PreemptMode")
