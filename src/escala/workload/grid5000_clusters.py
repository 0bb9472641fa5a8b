"""Nine clusters of Grid'5000 as table 2 of R. B. Casagrande's dissertation (2020) describes them, and what the
generator solves for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escala.workload.grid5000_visits import HEAVY, LIGHT, LONG, SUBNODE, Floats, Ints

DAY_S = 86400.0
HEAVY_IN_QUICK = 0.3  # a quick visit is heavy this much less often than a slow one


@dataclass(frozen=True)
class Cluster:
    """A cluster of table 2: nodes x cores (the table gives their product), jobs over `days`, and the two shares to be
    met."""

    nodes: int
    node_cores: int
    jobs: int
    days: int  # from the first day of the period's first month to the last of its last
    sequential: float  # share of submissions < 5 min after the previous one
    utilisation: float
    size_exponent: float  # requests of n nodes have probability ~ n^-size_exponent
    long_share: float  # share of jobs in visits of the pace NIGHT
    quick_share: float  # and of the pace QUICK; fitted

    @property
    def cores(self) -> int:
        """Cores of the cluster."""
        return self.nodes * self.node_cores

    @property
    def jobs_per_day(self) -> float:
        """Mean number of jobs a day."""
        return self.jobs / self.days

    @property
    def sizes(self) -> tuple[Floats, Ints]:
        """Shares of the requests, and their cores, both [sizes], ascending."""
        nodes = np.arange(1, self.nodes + 1)
        weight = nodes**-self.size_exponent
        share = np.concatenate([[SUBNODE / 2, SUBNODE / 2], (1 - SUBNODE) * weight / weight.sum()])
        return share, np.concatenate([[1, max(1, self.node_cores // 3)], nodes * self.node_cores]).astype(np.int64)

    @property
    def mean_run_s(self) -> float:
        """Mean run time that makes `utilisation` of `jobs_per_day` jobs of these sizes, s (sizes and run times are
        independent)."""
        share, cores = self.sizes
        return self.utilisation * self.cores * DAY_S / self.jobs_per_day / float(share @ cores)

    @property
    def heavy_share(self) -> float:
        """Share of the jobs that are HEAVY, so that the mean run time of all is `mean_run_s`; the rest of those that
        are not LONG is LIGHT."""
        rest = self.mean_run_s - self.long_share * LONG.mean_s - (1 - self.long_share) * LIGHT.mean_s
        return rest / (HEAVY.mean_s - LIGHT.mean_s)

    @property
    def heavy_if_slow(self) -> float:
        """Probability that a slow visit is heavy; that of a quick one is HEAVY_IN_QUICK times as large."""
        return self.heavy_share / (1 - self.long_share - self.quick_share + HEAVY_IN_QUICK * self.quick_share)


CLUSTERS: dict[str, Cluster] = {
    "taurus": Cluster(14, 12, 81_925, 2_617, 0.541, 0.517, 1.9, 0.040, 0.559),
    "hercule": Cluster(4, 12, 50_003, 2_587, 0.469, 0.498, 2.3, 0.030, 0.457),
    "nova": Cluster(23, 16, 42_171, 1_003, 0.529, 0.583, 1.5, 0.030, 0.504),
    "orion": Cluster(4, 12, 66_005, 2_587, 0.397, 0.627, 2.3, 0.030, 0.324),
    "graphite": Cluster(4, 16, 60_786, 2_161, 0.560, 0.473, 2.5, 0.020, 0.587),
    "grimoire": Cluster(8, 16, 36_986, 1_400, 0.527, 0.564, 1.5, 0.030, 0.541),
    "grisou": Cluster(51, 16, 99_291, 1_400, 0.754, 0.695, 1.4, 0.030, 0.860),
    "econome": Cluster(22, 16, 66_557, 2_040, 0.668, 0.576, 1.4, 0.040, 0.761),
    "ecotype": Cluster(48, 20, 39_868, 669, 0.811, 0.665, 1.4, 0.040, 0.959),
}
"""The first six numbers of each are the table's."""
