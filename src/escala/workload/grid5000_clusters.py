"""Nine clusters of Grid'5000 as table 2 of R. B. Casagrande's dissertation (2020) describes them, and what the generator adds."""

from __future__ import annotations

from dataclasses import dataclass

DAY_S = 86400.0


@dataclass(frozen=True)
class Cluster:
    """A cluster of table 2: nodes x cores (the sum is in the table), jobs over `days`, and the two shares to be met."""

    nodes: int
    node_cores: int
    jobs: int
    days: int  # length of the table's period
    sequential: float  # share of submissions < 5 min after the previous one
    utilisation: float
    size_exponent: float  # requests of n nodes have probability ~ n^-size_exponent
    quick_share: float  # share of jobs in quick visits

    @property
    def cores(self) -> int:
        """Cores of the cluster."""
        return self.nodes * self.node_cores

    @property
    def jobs_per_day(self) -> float:
        """Mean number of jobs a day."""
        return self.jobs / self.days

    @property
    def work_s(self) -> float:
        """Mean work of a job, core seconds: what makes `utilisation` of `jobs_per_day`."""
        return self.utilisation * self.cores * DAY_S / self.jobs_per_day


CLUSTERS: dict[str, Cluster] = {
    "taurus": Cluster(14, 12, 81_925, 2_616, 0.541, 0.517, 1.9, 0.540),
    "hercule": Cluster(4, 12, 50_003, 2_586, 0.469, 0.498, 2.3, 0.450),
    "nova": Cluster(23, 16, 42_171, 1_003, 0.529, 0.583, 1.5, 0.487),
    "orion": Cluster(4, 12, 66_005, 2_586, 0.397, 0.627, 2.3, 0.311),
    "graphite": Cluster(4, 16, 60_786, 2_160, 0.560, 0.473, 2.5, 0.574),
    "grimoire": Cluster(8, 16, 36_986, 1_400, 0.527, 0.564, 1.5, 0.523),
    "grisou": Cluster(51, 16, 99_291, 1_400, 0.754, 0.695, 1.4, 0.852),
    "econome": Cluster(22, 16, 66_557, 2_040, 0.668, 0.576, 1.4, 0.746),
    "ecotype": Cluster(48, 20, 39_868, 669, 0.811, 0.665, 1.4, 0.963),
}
"""Table 2 of the dissertation; days from the first of the period's first month to the end of its last."""
