"""R3's table 5 (Casagrande, dissertation 2020) as it is printed: a day's delay, waste, switches and stretch by cluster
and policy."""

from __future__ import annotations

CLUSTERS = {"econome": "Econome", "graphite": "Graphite", "orion": "Orion", "taurus": "Taurus", "g5k": "Taurus"}
"""Input -> the cluster of the table whose days it has, or is like."""
POLICIES = {"agent": "DS", "oracle": "OR*", "timeout:0": "T(0)", "timeout:60": "T(1)", "timeout:300": "T(5)"}
QUANTITIES = ("delay_min", "waste_Wmin", "transitions", "day_stretch")
"""Four figures of each: mean, deviation, least, most over days. The waste is printed in J, and is in W min: a single
node that switches on takes 125."""

_PRINTED = """
Econome DS 48.50 116.77 0.0 1002.00 21738.40 20493.94 125.0 199485.5 93.50 80.38 1.0 797.00 0.22 1.03 0.0 26.68
Econome OR* 53.16 124.34 0.0 1002.00 18076.86 19474.91 125.0 223416.0 84.96 86.38 1.0 1044.00 0.21 1.07 0.0 26.68
Econome T(0) 49.69 123.29 0.0 1002.00 22392.20 23398.09 250.0 271352.0 106.12 106.36 2.0 1268.00 0.15 1.00 0.0 26.68
Econome T(1) 49.54 123.24 0.0 1002.00 25483.59 25960.63 250.0 329490.0 100.21 97.68 2.0 1260.00 0.15 0.99 0.0 26.68
Econome T(5) 49.48 123.54 0.0 1002.00 36624.22 32931.17 250.0 307125.0 85.35 72.73 2.0 720.00 0.14 0.99 0.0 26.68
Graphite DS 50.92 116.47 0.0 770.00 6712.60 6219.47 125.0 51549.5 30.63 27.94 1.0 238.00 0.41 1.38 0.0 22.88
Graphite OR* 54.27 123.59 0.0 770.00 7216.18 6587.65 125.0 72855.0 33.92 30.36 1.0 340.00 0.30 1.39 0.0 29.28
Graphite T(0) 52.81 125.29 0.0 770.00 8950.24 8287.19 125.0 89024.0 42.20 38.47 1.0 416.00 0.26 1.41 0.0 29.28
Graphite T(1) 52.99 125.43 0.0 770.00 10401.94 9381.74 125.0 87820.0 40.35 35.84 1.0 350.00 0.26 1.40 0.0 29.28
Graphite T(5) 52.91 125.40 0.0 770.00 15434.66 13357.23 125.0 87452.0 34.48 28.82 1.0 208.00 0.25 1.41 0.0 29.35
Orion DS 72.27 132.62 0.0 782.67 6284.59 6930.93 125.0 70165.0 28.07 30.69 1.0 291.25 0.54 2.10 0.0 66.24
Orion OR* 70.34 136.79 0.0 782.67 6763.39 7551.15 125.0 67003.0 31.84 34.79 1.0 302.00 0.41 2.04 0.0 63.95
Orion T(0) 67.23 139.61 0.0 782.67 8996.35 9892.78 250.0 146727.0 42.41 45.92 2.0 687.00 0.30 1.47 0.0 34.19
Orion T(1) 67.14 139.48 0.0 782.67 10081.97 10864.42 220.0 108591.0 38.95 40.81 1.0 356.00 0.30 1.47 0.0 34.19
Orion T(5) 67.39 139.76 0.0 782.67 14104.64 15307.39 220.0 125931.0 30.69 33.36 1.0 295.00 0.30 1.47 0.0 34.19
Taurus DS 48.31 106.29 0.0 1149.00 16513.70 12811.54 125.0 134672.0 72.53 54.15 1.0 584.00 0.30 1.48 0.0 28.54
Taurus OR* 53.60 113.04 0.0 1149.00 13747.39 12307.84 125.0 194121.0 62.43 53.19 1.0 904.00 0.29 1.46 0.0 29.51
Taurus T(0) 49.99 114.82 0.0 1149.00 17441.70 14984.53 375.0 264884.0 82.10 68.27 3.0 1236.00 0.22 1.45 0.0 29.51
Taurus T(1) 50.02 114.75 0.0 1149.00 19664.81 16836.47 375.0 271768.0 76.56 63.23 3.0 1032.00 0.22 1.44 0.0 28.72
Taurus T(5) 50.23 115.25 0.0 1149.00 28714.38 22920.56 375.0 256368.0 65.29 49.51 2.0 612.00 0.22 1.44 0.0 29.12
"""
TABLE5 = {
    (line.split()[0], line.split()[1]): tuple(map(float, line.split()[2:])) for line in _PRINTED.strip().splitlines()
}
"""(cluster, policy) -> the figures of its row."""


def beside(name: str, policy: str) -> dict[str, float | None]:
    """The printed figures that belong beside a policy's on an input, as columns `paper_*`; null where none are
    printed."""
    cluster, theirs = CLUSTERS.get(name, ""), POLICIES.get(policy, "")
    found, t0 = TABLE5.get((cluster, theirs)), TABLE5.get((cluster, "T(0)"))
    change = found[4] / t0[4] - 1.0 if found is not None and t0 is not None else None
    names = [f"paper_{quantity}{end}" for quantity in QUANTITIES for end in ("", "_sd", "_min", "_max")]
    return {"paper_waste_vs_t0": change, **{one: None if found is None else found[k] for k, one in enumerate(names)}}
