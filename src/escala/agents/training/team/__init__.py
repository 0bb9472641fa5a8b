"""Training of several agents that share one queue."""
