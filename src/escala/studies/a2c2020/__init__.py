"""R2 (Liang et al., A2cScheduler, 2020): see `recipe`."""
