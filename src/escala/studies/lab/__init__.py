"""What studies share: cells that are done once, claims with intervals, days, statistics over days, runs on disk."""
