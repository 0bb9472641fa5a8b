"""Schedulers and shutdown policies side by side, and one figure taken apart. Run: python
examples/compare_policies.py"""

import polars as pl

import escala

log = escala.workload.generate.grid5000(cluster="orion", days=14, seed=1)
found = escala.compare(log, "orion", schedulers=["fcfs", "easy", "saf"], shutdowns=["never", "timeout:300"])
for name, result in found.results.items():
    summary = result.summary()
    energy_mj, waste_mj = summary["energy_j"] / 1e6, summary["waste_j"] / 1e6
    print(
        f"{name:20} mean wait {summary['mean_wait_s'] / 3600:6.2f} h   energy {energy_mj:6.1f} MJ   waste "
        f"{waste_mj:5.1f} MJ"
    )

result = found.results["easy + timeout:300"]
print("\nWhere the energy of easy + timeout:300 went (MJ):")
for row in result.totals.sort("joules", descending=True).iter_rows(named=True):
    print(f"  {row['state']:14} {row['joules'] / 1e6:7.2f}")

killed = result.jobs.filter(pl.col("state") == "KILLED")
print(f"\n{killed.height} of {result.jobs.height} jobs reached their requested time")
