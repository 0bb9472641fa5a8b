"""Bridges: what stands between a desk and what runs jobs."""
