"""Several agents that share one queue, each with machines of its own (R4); see `escala.envs.multi`."""
