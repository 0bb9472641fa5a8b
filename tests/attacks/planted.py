"""Bugs to plant, one at a time, and the tests that have to notice: `python -m tests.attacks.mutants`.

Each is one small change that a tired person makes: a bound off by one, a sign, a comparison, a forgotten line. Nobody
chose the tests for a bug: all bugs of one area are shown to all tests of that area.
"""

from __future__ import annotations

from typing import NamedTuple

AREAS = {
    "kernel": (
        "tests/golden/test_hand_events.py", "tests/golden/test_hand_schedulers.py", "tests/golden/test_hand_power.py",
        "tests/golden/test_hand_hold.py", "tests/golden/test_hand_single_node.py",
        "tests/golden/test_hand_estimates.py", "tests/golden/test_reference.py",
        "tests/oracle/test_worlds.py", "tests/unit/policies/test_hold.py", "tests/unit/policies/test_run.py",
        "tests/laws", "tests/unit/kernel/test_plans.py",
    ),
    "policies": (
        "tests/unit/policies/test_scores.py", "tests/unit/test_options.py", "tests/unit/policies",
        "tests/golden/test_hand_schedulers.py", "tests/golden/test_peers.py",
        "tests/oracle/test_worlds.py", "tests/unit/test_estimates.py",
    ),
    "metrics": ("tests/unit/metrics", "tests/unit/result"),
    "readers": ("tests/unit/workload", "tests/unit/platform"),
    "envs": (
        "tests/unit/envs", "tests/unit/slots/test_slots_environment.py", "tests/unit/slots/test_slots_author.py",
        "tests/contracts", "tests/unit/multi/test_multi_game.py",
    ),
    "growth": ("tests/growth",),
    "live": ("tests/live/test_desk.py",),
    "beside": (
        "tests/bridges/slurm/test_as_if.py", "tests/bridges/slurm/test_guard.py", "tests/bridges/slurm/test_shadow.py",
        "tests/bridges/slurm/test_findings.py", "tests/bridges/slurm/test_undoing.py",
        "tests/bridges/slurm/test_acting.py",
    ),
    "streams": ("tests/unit/streaming",),
    "slurm": ("tests/unit/slurm",),
    "campaigns": (
        "tests/unit/campaigns/test_campaign.py", "tests/unit/campaigns/test_on_slurm.py",
        "tests/unit/campaigns/test_refused_campaigns.py", "tests/unit/policies/test_heeded.py",
    ),
}  # fmt: skip


class Bug(NamedTuple):
    """`old` stands exactly once in src/escala/`file` and becomes `new`."""

    area: str
    file: str
    old: str
    new: str

    @property
    def name(self) -> str:
        line = next(line for line in self.old.splitlines() if line.strip()).strip()
        return f"{self.file}: {line[:70]}"


BUGS = [
    # kernel
    Bug("kernel", "kernel/events.py", "heap[a].time == heap[b].time and heap[a].id < heap[b].id)",
        "heap[a].time == heap[b].time and heap[a].id > heap[b].id)"),
    Bug("kernel", "kernel/events.py", "    return min(t, s.tick_us)", "    return t"),
    Bug("kernel", "kernel/advance.py", "    return w.s[0].now >= limit or", "    return w.s[0].now > limit or"),
    Bug("kernel", "kernel/advance.py", "        if j == codes.NONE or w.run[j].state == codes.QUEUED:",
        "        if j == codes.NONE:"),
    Bug("kernel", "kernel/energy.py", "    dt = until - max(s.now, measured_from(w))\n", "    dt = until - s.now\n"),
    Bug("kernel", "kernel/energy.py", "ledger.rate * (dt * 1e-6)", "ledger.rate * ((dt - 1) * 1e-6)"),
    Bug("kernel", "kernel/energy.py", "        return codes.IS_SWITCHING_ON\n    return codes.IS_SWITCHING_OFF",
        "        return codes.IS_SWITCHING_OFF\n    return codes.IS_SWITCHING_ON"),
    Bug("kernel", "kernel/fit.py", "permission(w, j) <= w.s[0].now", "permission(w, j) < w.s[0].now"),
    Bug("kernel", "kernel/fit.py", "            if w.room[n, k] < w.demand[j, k]:",
        "            if w.room[n, k] <= w.demand[j, k]:"),
    Bug("kernel", "kernel/reservation.py", "limit_of(w, j) + 0.5)), w.o[0].cap_us)",
        "limit_of(w, j))), w.o[0].cap_us + 1)"),
    Bug("kernel", "kernel/forecast.py", "return min(max(mean, 1), limit)", "return max(mean, 1)"),
    Bug("kernel", "kernel/plans.py", "    if k < w.steps.shape[0]:", "    if k + 1 < w.steps.shape[0]:"),
    Bug("kernel", "kernel/plans.py", "        s.n_planned = codes.NONE\n", ""),
    Bug("kernel", "kernel/reservation.py", "        return s.free_on + s.free_boot + s.free_off\n    return s.free_on",
        "        return s.free_on + s.free_boot\n    return s.free_on"),
    Bug("kernel", "kernel/oracle.py", "        if w.heaps[HEAP_ENDS, k].time <= time:",
        "        if w.heaps[HEAP_ENDS, k].time < time:"),
    Bug("kernel", "kernel/nodes.py", "        w.node[n].since = s.now\n        if free_cores", "        if free_cores"),
    Bug("kernel", "kernel/shutdown.py", "    s.n_held -= 1\n    enter_set(w, n, w.node[n].cores)\n",
        "    s.n_held -= 1\n"),
    Bug("kernel", "kernel/energy.py", "    s.ons_then += ons\n", ""),
    Bug("kernel", "kernel/jobs.py", "    elif node.busy == 0:\n", "    elif node.busy <= 1:\n"),
    Bug("kernel", "kernel/jobs.py", "            if unit or w.node[n].free == w.node[n].cores:",
        "            if unit:"),
    Bug("kernel", "kernel/jobs.py", "    w.run[j].state = codes.KILLED if w.job[j].killed == 1 else codes.COMPLETED",
        "    w.run[j].state = codes.COMPLETED"),
    Bug("kernel", "kernel/shutdown.py", "due(w, w.node[n].since) <= s.now)", "due(w, w.node[n].since) < s.now)"),
    Bug("kernel", "kernel/shutdown.py", "    n = w.o[0].n_nodes - 1\n", "    n = w.o[0].n_nodes - 2\n"),
    Bug("kernel", "kernel/shutdown.py", "np.ceil(o.fraction * _computing(w))", "np.floor(o.fraction * _computing(w))"),
    Bug("kernel", "kernel/plans.py", "        _rise(w, i)\n        _sink", "        _sink"),
    Bug("kernel", "kernel/plans.py", "    return a < b", "    return a > b"),
    Bug("kernel", "kernel/plans.py", "    for n in range(1, w.s[0].n_plans):",
        "    for n in range(1, w.s[0].n_plans - 1):"),
    Bug("kernel", "kernel/sums.py", "                until = min(times[start] + length, own)",
        "                until = times[start] + length"),
    Bug("kernel", "kernel/single.py",
        "        fits = cores[n] >= w.job[j].cores\n"
        "        if w.demand.shape[0] > 0:\n"
        "            for k in range(room.shape[1]):\n"
        "                fits = fits and room[n, k] >= w.demand[j, k]\n"
        "        if fits:\n"
        "            return n",
        "        fits = cores[n] > w.job[j].cores\n"
        "        if w.demand.shape[0] > 0:\n"
        "            for k in range(room.shape[1]):\n"
        "                fits = fits and room[n, k] >= w.demand[j, k]\n"
        "        if fits:\n"
        "            return n"),
    Bug("kernel", "kernel/single.py", "                    cores[n] -= w.job[j].cores\n                    if w.demand",
        "                    if w.demand"),
    Bug("kernel", "kernel/schedule.py", "    need = w.job[j].cores - s.free_on - s.free_boot\n",
        "    need = w.job[j].cores - s.free_on\n"),
    # growth: schedules stay as they are, and take longer and longer
    Bug("growth", "kernel/queue.py", "NO_LIMIT = EMPTY - 1  #", "NO_LIMIT = EMPTY  #"),
    Bug("growth", "policies/shutdown.py", "        backlog = view.waiting_work\n",
        "        backlog = sum(job.cores * job.walltime_s for job in view.queue)\n"),
    # policies
    Bug("policies", "scores.py", "    return -walltime_us", "    return -walltime_us * cores"),
    Bug("policies", "scores.py", "    return np.sqrt(r) * cores + 2.56e4",
        "    return np.sqrt(r) * cores + 2.65e4"),
    Bug("policies", "scores.py", "    return r * np.sqrt(cores) + 5.30e5",
        "    return r * np.sqrt(cores) + 5.30e4"),
    Bug("policies", "scores.py", "np.maximum(submit_us / 1e6, 1.0)", "np.maximum(submit_us / 1e6, 10.0)"),
    Bug("policies", "policies/shutdown.py", "            self._off //= 2\n", "            self._off = 0\n"),
    Bug("policies", "policies/shutdown.py", "backlog >= self._last", "backlog > self._last"),
    Bug("policies", "policies/futures.py", "            del values[:-LATEST]", "            del values[:LATEST]"),
    Bug("policies", "policies/futures.py", "known, elapsed / np.maximum(walltime, 1), side=\"right\")",
        "known, elapsed / np.maximum(walltime, 1), side=\"left\")"),
    Bug("policies", "policies/futures.py", "        first = (at <= now_us).sum(axis=1)",
        "        first = (at < now_us).sum(axis=1)"),
    Bug("policies", "estimates.py", "return np.minimum(microseconds(jobs[\"runtime_s\"].to_numpy()), walltime)",
        "return microseconds(jobs[\"runtime_s\"].to_numpy())"),
    Bug("policies", "policies/compose.py", "if value else 0.5}, None", "if value else 0.25}, None"),
    # metrics
    Bug("metrics", "metrics/bootstrap.py", "self.low > 0.0 or", "self.low >= 0.0 or"),
    Bug("metrics", "metrics/bootstrap.py", "    tail = 50.0 * (1.0 - level)", "    tail = 100.0 * (1.0 - level)"),
    Bug("metrics", "metrics/bootstrap.py", "        return (ours - theirs) / episodes", "        return ours - theirs"),
    Bug("metrics", "metrics/compare.py", "(value - reference) / abs(reference)", "(value - reference) / reference"),
    Bug("metrics", "metrics/compare.py", "ours < theirs if smaller", "ours <= theirs if smaller"),
    Bug("metrics", "metrics/compare.py", "    rank = below + (equal + 1) / 2", "    rank = below + equal"),
    Bug("metrics", "metrics/compare.py", "    if not _same(completion - wait, runtime, scale=completion):",
        "    if not _same(completion - wait, runtime, scale=1e9 * completion):"),
    Bug("metrics", "metrics/machine.py", ".clip(upper_bound=end_s) -", " -"),
    Bug("metrics", "metrics/machine.py", "(pl.col(\"time_s\") > start_s) & (pl.col(\"time_s\") <= end_s)",
        "(pl.col(\"time_s\") >= start_s) & (pl.col(\"time_s\") <= end_s)"),
    Bug("metrics", "metrics/machine.py", "np.where(both[\"waiting\"].to_numpy() > 0,",
        "np.where(both[\"waiting\"].to_numpy() >= 0,"),
    Bug("metrics", "metrics/jobs.py", "(_WAIT / _W).ge(theta)", "_WAIT.ge(theta)"),
    Bug("metrics", "metrics/jobs.py", "    return (_TURNAROUND / _P.clip(lower_bound=bound_s)).clip(lower_bound=1.0)",
        "    return (_TURNAROUND / _P.clip(lower_bound=bound_s))"),
    Bug("metrics", "metrics/jobs.py", "np.percentile(x, (50.0, 95.0))",
        "np.percentile(x, (50.0, 95.0), method=\"higher\")"),
    Bug("metrics", "metrics/energy.py", "WASTE = (\"idle\", \"switching_off\", \"switching_on\")",
        "WASTE = (\"idle\", \"switching_on\", \"switching_off\", \"off\")"),
    Bug("metrics", "metrics/headroom.py", "(theirs.sum() - ours.mean(axis=0).sum()) / room",
        "(theirs.sum() - ours.sum()) / room"),
    # readers
    Bug("readers", "workload/swf.py", "    if first_submit_s >= ABSOLUTE_FROM_S:",
        "    if first_submit_s > ABSOLUTE_FROM_S * 10:"),
    Bug("readers", "workload/swf.py", "        whole = whole.set(whole < 0, None)",
        "        whole = whole.set(whole <= 0, None)"),
    Bug("readers", "workload/swf.py", "preferred.zip_with(preferred > 0, other)",
        "preferred.zip_with(preferred >= 0, other)"),
    Bug("readers", "workload/swf_scan.py", "powers[digits - point if point >= 0 else 0]",
        "powers[digits - point - 1 if point >= 1 else 0]"),
    Bug("readers", "workload/clean.py", "        cores=cores.ceil().cast(pl.Int64),",
        "        cores=cores.floor().cast(pl.Int64),"),
    Bug("readers", "workload/clean.py", "pl.when(wait.is_finite() & (wait >= 0)).then(wait)",
        "pl.when(wait.is_finite() & (wait > 0)).then(wait)"),
    Bug("readers", "workload/transform.py", "search_sorted(at, side=\"left\")", "search_sorted(at, side=\"right\")"),
    Bug("readers", "workload/transform.py", "(pl.col(\"submit_s\") - first) / factor)",
        "(pl.col(\"submit_s\") - first) * factor)"),
    Bug("readers", "workload/transform.py", "    kept = workload.jobs.filter(pl.col(\"cores\") <= cores)",
        "    kept = workload.jobs.filter(pl.col(\"cores\") < cores)"),
    Bug("readers", "workload/slurm.py", "days * 86400 + hours * 3600 + minutes * 60 + seconds",
        "days * 86400 + hours * 3600 + minutes * 60"),
    Bug("readers", "workload/slurm.py", "(pl.col(\"start_at\") - pl.col(\"submit_s\")).alias(\"wait_s\")",
        "(pl.col(\"start_at\") - pl.col(\"submit_at\")).alias(\"wait_s\")"),
    Bug("readers", "workload/google.py", "pl.coalesce(name, f\"{name} of all\")",
        "pl.coalesce(f\"{name} of all\", name)"),
    Bug("readers", "workload/google.py", "pl.when(pl.col(\"asked_us\") > 0)", "pl.when(pl.col(\"asked_us\") >= 0)"),
    Bug("readers", "workload/pbs.py", "for part in rest if (found", "for part in rest[1:] if (found"),
    Bug("readers", "workload/pbs.py", "& (ran >= limit)", "& (ran > limit)"),
    Bug("readers", "workload/oar.py", "float(max(len(set(computing)) - others, 0))", "float(len(set(computing)))"),
    Bug("readers", "workload/oar.py", "first, second = (asked, given) if asked_first",
        "first, second = (given, asked) if asked_first"),
    Bug("readers", "workload/oar.py", "limit is not None and ran >= limit:", "limit is not None and ran > limit:"),
    Bug("readers", "workload/oar.py", "-(-request.gpus // hosts)", "request.gpus"),
    Bug("readers", "workload/oar.py", "if one not in known or known[one].type == DEFAULT]", "]"),
    Bug("readers", "workload/asked_of_oar.py", "(3600, 60, 1), strict=False", "(60, 60, 1), strict=False"),
    Bug("readers", "workload/asked_of_oar.py", "        product = min(product * count, MOST)",
        "        product = min(max(product, count), MOST)"),
    Bug("readers", "workload/asked_of_oar.py", "one.limit_s == limit_s)",
        "one.limit_s is not None)"),
    Bug("readers", "workload/oar_json.py", "found if found is not None and found > 0 else None",
        "found if found is not None and found >= 0 else None"),
    # environments
    Bug("envs", "envs/rjms/reward.py", "        total += watts[p, 1] * node_us(w, p, codes.IS_SWITCHING_OFF)\n", ""),
    Bug("envs", "envs/rjms/reward.py", ">= tau * job.walltime and job.cores <= free",
        "> tau * job.walltime and job.cores <= free"),
    Bug("envs", "envs/rjms/observation.py", "    out[5] = crowd(s.n_queued)", "    out[5] = crowd(s.n_queued + 1)"),
    Bug("envs", "envs/rjms/observation.py", "history[(newest + 1 + k) % length]", "history[(newest + k) % length]"),
    Bug("envs", "envs/slots/step.py", "rewards[i, 0] = m.shown - value", "rewards[i, 0] = value - m.shown"),
    Bug("envs", "envs/slots/step.py", "(st.limit > 0 and m.row >= st.limit)", "(st.limit > 0 and m.row > st.limit)"),
    Bug("envs", "envs/slots/lens.py", "    m.makespan = (w.s[0].last_finish - w.job[0].submit) / st.unit_us",
        "    m.makespan = w.s[0].last_finish / st.unit_us"),
    Bug("envs", "envs/slots/heuristics.py", "if value < least or other < least_second:",
        "if value <= least or other < least_second:"),
    Bug("envs", "envs/slots/heuristics.py", "        passes = length_of(w, st, j) <= shadow",
        "        passes = length_of(w, st, j) < shadow"),
    Bug("envs", "envs/rjms/user_confidence.py", "for k in range(min(g.entered[u], RECENT)):\n        ratio",
        "for k in range(RECENT):\n        ratio"),
    Bug("envs", "envs/rjms/action.py", "held = allowed >= most and lacking <= 0",
        "held = allowed > most and lacking <= 0"),
    Bug("envs", "envs/rjms/scheduling_step.py", "    value -= st.sigma * reward.waited(w, m.seen_us, st.cost)\n",
        "    value -= st.sigma * reward.waited(w, 0, st.cost)\n"),
    Bug("envs", "envs/rjms/scheduling_step.py", "        mask[1 + k] = m.over == 0 and may_start(w, g, j)",
        "        mask[1 + k] = may_start(w, g, j)"),
    # live: a desk that is asked from outside
    Bug("live", "kernel/sound.py", "one.high >= n_nodes", "one.high > n_nodes"),
    Bug("live", "kernel/sound.py", "late += k > 0 and", "late += k > 1 and"),
    Bug("live", "kernel/sound.py", "return total if p == placed.shape[0] else -1  #", "return total  #"),
    # beside: guards of a real cluster
    Bug("beside", "bridges/slurm/guard.py", "> self.limits.longest_wait_s)", "> 2 * self.limits.longest_wait_s)"),
    Bug("beside", "bridges/slurm/guard.py", "for name in memory.free if name in before})", "for name in memory.free})"),
    Bug("beside", "bridges/slurm/guard.py", "        if not seen.left_out:  # else", "        if True:  # else"),
    Bug("beside", "bridges/slurm/guard.py", "len(usable) - 1 < self.limits.spare", "len(usable) < self.limits.spare"),
    Bug("beside", "bridges/slurm/guard.py", "2 ** (count - 1), MOST_ASIDE_S)", "2 ** count, MOST_ASIDE_S)"),
    Bug("beside", "bridges/slurm/guard.py", "            memory.in_a_row += 1\n", ""),
    Bug("beside", "bridges/slurm/guard.py", "why or (\"no-lease\" if one.kind == RENEW and not mine else \"\")", "why"),
    Bug("beside", "bridges/slurm/guard.py", "one.value > job.nice and one.name in self.late()",
        "one.name in self.late()"),
    Bug("beside", "bridges/slurm/guard.py", "            if done:\n                self._remember",
        "            if True:\n                self._remember"),
    Bug("beside", "bridges/slurm/as_if.py", "        self._leased &= off.keys()\n", ""),
    Bug("beside", "bridges/slurm/as_if.py", "if one.wanted.kind in (OFF_NODE, LEASE)}", "if one.wanted.kind == LEASE}"),
    Bug("beside", "bridges/slurm/as_if.py", "        if held := guard.held_up(shown):  #",
        "        if held := \"\":  #"),
    # streams: logs in pieces
    Bug("streams", "workload/known_ids.py", "np.maximum.accumulate(last[order])", "last[order]"),
    Bug("streams", "workload/known_ids.py", "(first[1:] - last[:-1] > 1)", "(first[1:] - last[:-1] > 2)"),
    Bug("streams", "workload/known_ids.py", "self._times.get(name, 1) if name in old",
        "self._times.get(name, 0) if name in old"),
    Bug("streams", "workload/to_parquet.py", "before[1] > after[0]", "before[0] > after[0]"),
    Bug("streams", "workload/to_parquet.py", "min(low for low, _ in self._spans)", "self._spans[0][0]"),
    Bug("streams", "workload/to_parquet.py", "CLOCKED = (\"submit_s\", BEGIN)", "CLOCKED = (\"submit_s\",)"),
    Bug("streams", "streaming/replay.py", "following_s - 1.0 / SECOND", "following_s"),
    Bug("streams", "streaming/digest.py", " + float(self._jobs)", ""),
    Bug("streams", "streaming/summary.py", "tally[state] += count", "tally[state] = count"),
    Bug("streams", "workload/google.py", "ends.cast(pl.Int64).cum_sum() - ends.cast(pl.Int64)",
        "ends.cast(pl.Int64).cum_sum()"),
    Bug("streams", "workload/google.py", "pl.col(\"ended_us\").shift(1).over", "pl.col(\"ended_us\").shift(-1).over"),
    Bug("streams", "workload/google.py", "pl.int_range(count, count + table.height)", "pl.int_range(0, table.height)"),
    Bug("streams", "workload/google.py", "of_collections |= not", "of_collections = not"),
    Bug("streams", "workload/google_json.py", "_lines(data, table.height) + (line - 1)",
        "_lines(data, table.height) + line"),
    Bug("streams", "workload/batsim_pieces.py", "        first += len(some)", "        first = len(some)"),
    Bug("streams", "workload/batsim_pieces.py", "and part.entry.value.keys() - keys:", "and not keys:"),
    Bug("streams", "workload/batsim_pieces.py", "characters(value) if HALF.search(text) else value", "value"),
    Bug("streams", "workload/ordering.py", "search_sorted(limit, side=\"left\")",
        "search_sorted(limit, side=\"right\")"),
    Bug("streams", "workload/ordering.py", "pl.concat(frames, how=\"diagonal\").sort(by, maintain_order=True).write",
        "pl.concat(frames, how=\"diagonal\").write"),
    # slurm: a site's jobs, limits and closures as tables
    Bug("slurm", "slurm/closed.py", "np.ceil(one.until_s)", "np.floor(one.until_s)"),
    Bug("slurm", "slurm/tres.py", "shape[:, t.MEMORY_CORE] * shape[:, t.MIN_CORES]",
        "shape[:, t.MEMORY_CORE] * shape[:, t.MIN_NODES]"),
    Bug("slurm", "slurm/preempting.py", "            names.reverse()\n", "            pass\n"),
    # campaigns
    Bug("campaigns", "campaigns/work.py", "if log_digest(run.log, run.seed or 0, log) != run.digest:", "if False:"),
    Bug("campaigns", "campaigns/work.py", "wait @ area / area.sum()", "wait @ area / area.size"),
    Bug("campaigns", "campaigns/journal.py", "            os.ftruncate(handle, len(whole))  # a torn last line\n", ""),
    Bug("campaigns", "campaigns/runs.py", "    stream.write(repr(workload.origin_s).encode())\n", ""),
    Bug("campaigns", "campaigns/trial.py", "one.scheduler, one.shutdown, *sorted(", "one.scheduler, *sorted("),
    Bug("campaigns", "campaigns/trial.py", "rows[[0, -1, longest, single]]", "rows[[0, -1, single]]"),
    Bug("campaigns", "policies/heeded.py", "        found |= {\"depth\", \"rebuild\"}",
        "        found.add(\"rebuild\")"),
]  # fmt: skip
