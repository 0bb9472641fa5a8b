"""Days of a log on a machine that switches nodes off: what the agents of R3 decide."""
