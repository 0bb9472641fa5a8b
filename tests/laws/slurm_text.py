"""A random world of Slurm's rules as a site.toml, and as columns of a workload."""

from __future__ import annotations

from typing import Any

from tests.oracle.accounts import ROOT, Bounds
from tests.oracle.clock import AGAIN_S
from tests.oracle.preemption import SECOND
from tests.oracle.priorities import Weights
from tests.oracle.shapes import NO_END, Node
from tests.oracle.site import NO_LIMIT, Job, Site

ORIGIN = 1_800_000_000
GPUS = ("k", "m")


def _nodes(site: Site) -> str:
    text = ""
    for n in range(site.nodes):
        has = [name for name, inside in site.features.items() if n in inside]
        one = site.shapes[n] if site.shapes else Node()
        speed = f"speed = {site.speeds[n]}\n" if site.speeds else ""
        more = f"memory_mb = {one.memory}\nweight = {one.weight}\n" if site.shapes else ""
        more += (
            f"gpus = {{{', '.join(f'{GPUS[k]} = {some}' for k, some in enumerate(one.gpus) if some)}}}\n"
            if any(one.gpus)
            else ""
        )
        text += f'[[nodes]]\nnames = "n{n}"\ncores = {one.cores}\n{speed}{more}features = {has}\n'
    return text


def _slurm(site: Site) -> str:
    kind = "backfill" if site.backfills else "builtin"
    settings = (
        f"bf_interval=1,bf_resolution=1,sched_interval=1,batch_sched_delay=0,bf_max_job_array_resv={site.array_plans}"
    )
    settings += f",requeue_delay={AGAIN_S - 1}"
    told = site.yields
    settings += (
        f",bf_yield_interval={told.work},bf_yield_sleep={told.sleep},bf_max_time={told.most // SECOND}"
        if told.test
        else ""
    )
    settings += ",bf_continue" * told.goes_on
    counted = "CR_CPU_Memory" if site.by_memory else "CR_CPU"
    counted += ",CR_LLN" if len(site.loaded) == len(site.parts) else ""
    return (
        f'[slurm]\nSelectTypeParameters = "{counted}"\nSchedulerType = "sched/{kind}"\nSchedulerParameters = '
        f'"{settings}"\nMinJobAge = {site.min_age_s}\n'
    )


def text_of(site: Site) -> str:
    text = _nodes(site)
    for name, (inside, tier) in site.parts.items():
        text += (
            f'[[partitions]]\nname = "{name}"\nnodes = "{",".join(f"n{n}" for n in sorted(inside))}"\ntier = {tier}\n'
        )
        text += f"factor = {site.weights.factors[name]}\n" if site.weights else ""
        text += "least_loaded = true\n" if name in site.loaded and len(site.loaded) < len(site.parts) else ""
    for one in site.reservations:
        text += (
            f'[[closed]]\nkind = "reserved"\nname = "{one.name}"\nnodes = '
            f'"{",".join(f"n{n}" for n in sorted(one.nodes))}"\n'
        )
        text += f"from = {ORIGIN + one.begin_s}\nuntil = {ORIGIN + one.end_s}\n"
        flags = ["flex"] * one.flex + ["magnetic"] * bool(one.draws)
        text += f"flags = {flags}\n" if flags else ""
        users = sorted(one.draws) if one.draws else []
        text += f"users = {users}\n" if users else ""
    for one in site.outages:
        text += (
            f'[[closed]]\nkind = "{"down" if one.down else "drain"}"\nnodes = '
            f'"{",".join(f"n{n}" for n in sorted(one.nodes))}"\n'
        )
        text += (
            f"from = {ORIGIN + one.begin_s}\nuntil = {ORIGIN + one.end_s}\nrequeue = "
            f"{'true' if one.again else 'false'}\n"
        )
    text += _slurm(site)
    if site.weights:
        text += _weights(site.weights)
    tres = {"cpu": site.most_cpus, "gpu": site.most_gpus}
    if site.accounts:
        tres = {kind: most for kind, most in tres.items() if most < NO_END}
    many = f"max_jobs_per_user = {site.most_jobs}, " if not site.accounts or site.most_jobs < NO_LIMIT else ""
    text += (
        f"[qos]\nnormal = {{priority = {site.weights.ranks['normal'] if site.weights else 1}, {many}grp_tres = "
        f"{_table(tres)}}}\n"
    )
    text += f"high = {{priority = {site.weights.ranks['high']}}}\n" if site.weights else ""
    return text + _accounts(site)


def _weights(told: Weights) -> str:
    names = {"Age": told.age, "JobSize": told.size, "Partition": told.part, "QOS": told.qos, "Fairshare": told.fair}
    text = "".join(f"PriorityWeight{name} = {value}\n" for name, value in names.items())
    text += (
        'PriorityType = "priority/multifactor"\nAccountingStorageType = '
        '"accounting_storage/slurmdbd"\nPriorityCalcPeriod = "1"\n'
    )
    text += f'PriorityMaxAge = "00:{told.max_age_s // 60:02}:00"\nPriorityDecayHalfLife = "{told.half_life_s // 60}"\n'
    text += f'PriorityFavorSmall = "{"YES" if told.favor_small else "NO"}"\n'
    return text + 'PriorityFlags = "SMALL_RELATIVE_TO_TIME"\n' * told.by_time


def _table(tres: dict[str, int]) -> str:
    return f"{{{', '.join(f'{kind} = {most}' for kind, most in tres.items())}}}"


def _accounts(site: Site) -> str:
    """The tree of a site.toml."""

    def said(one: Bounds) -> list[str]:
        numbers = {name: getattr(one, name) for name in ("grp_jobs", "grp_submit", "max_jobs", "max_submit")} | {
            "max_time": one.max_time_s and one.max_time_s // 60
        }
        tables = {"grp_tres": one.grp_tres, "max_tres": one.max_tres}
        known = [f"{name} = {value}" for name, value in numbers.items() if value is not None]
        return known + [f"{name} = {_table(value)}" for name, value in tables.items() if value]

    text = "[accounts]\n" * bool(site.accounts)
    for name, one in site.accounts.items():
        users = ", ".join(
            f"{user} = {{{', '.join([f'shares = {one.user_shares.get(user, 1)}', *said(own)])}}}"
            for user, own in one.users.items()
        )
        entries = [f"shares = {one.shares}"] * (name != ROOT)
        entries += [f'parent = "{one.parent}"'] * (one.parent not in (None, ROOT)) + said(one.own)
        text += f"{name} = {{{', '.join([*entries, *[f'users = {{{users}}}'] * bool(users)])}}}\n"
    return text


def columns_of(site: Site, jobs: list[Job]) -> dict[str, Any]:
    """The jobs for `Workload.from_jobs`."""
    asks = [one.shape for one in jobs]
    return {
        "submit_s": [one.submit / SECOND for one in jobs],
        "runtime_s": [one.run / SECOND for one in jobs],
        "walltime_s": [float(one.limit_s) for one in jobs],
        "nodes": [one.nodes for one in asks],
        "tasks": [one.tasks for one in asks],
        "cores_per_task": [one.per for one in asks],
        "tasks_per_node": [one.on_node or None for one in asks],
        "memory_mb_per_core": [one.memory_core or None for one in asks],
        "memory_mb_per_node": [one.memory_node or None for one in asks],
        "gpus_per_node": [one.gpus_node or None for one in asks],
        "gpus_per_task": [one.gpus_task or None for one in asks],
        "gpu_kind": [None if one.kind is None else GPUS[one.kind] for one in asks],
        "exclusive": [one.exclusive for one in asks],
        "partition": [",".join(one.parts) for one in jobs],
        "priority": [one.priority for one in jobs],
        "user": [one.user for one in jobs],
        "account": [one.account for one in jobs],
        "job_name": [one.name for one in jobs],
        "qos": [one.qos for one in jobs],
        "nice": [one.nice for one in jobs],
        "features": [one.feature for one in jobs],
        "begin_s": [None if one.begin is None else one.begin / SECOND for one in jobs],
        "array_id": [one.array for one in jobs],
        "array_limit": [site.array_limit[one.array] if one.array == "x" else None for one in jobs],
        "reservation": [one.inside for one in jobs],
        "dependency": [
            ",".join(
                [
                    *(f"{kind}:{row + 1}" for row, kind in one.waits_for),
                    *(f"after:{row + 1}+{minutes}" for row, minutes in one.minutes),
                    *["singleton"] * one.singleton,
                ]
            )
            or None
            for one in jobs
        ],
    }
