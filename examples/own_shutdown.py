"""A shutdown policy of one's own: nodes go off after ten idle minutes, but never the first two. Run: python
examples/own_shutdown.py"""

import math

import escala


def keep_two(view, act):
    """`idle_since_s` is NaN for nodes that are not idle. Asking for a call makes sure of a decision when the ten
    minutes are over."""
    idle_since_s = view.idle_since_s
    for node in range(2, len(idle_since_s)):
        if math.isnan(idle_since_s[node]):
            continue
        due_s = idle_since_s[node] + 600.0
        if view.now_s >= due_s:
            act.switch_off(node)
        else:
            act.call_at(due_s)


log = escala.workload.generate.grid5000(cluster="orion", days=7, seed=1)
for shutdown in ("never", "timeout:600", "timeout:600+2", keep_two):
    summary = escala.simulate(log, "orion", scheduler="easy", shutdown=shutdown).summary()
    name = getattr(shutdown, "__name__", shutdown)
    waste_mj, wait_h = summary["waste_j"] / 1e6, summary["mean_wait_s"] / 3600
    print(f"{name:14} waste {waste_mj:7.2f} MJ   switches {summary['transitions']:4.0f}   mean wait {wait_h:.3f} h")
