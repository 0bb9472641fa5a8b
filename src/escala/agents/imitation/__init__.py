"""Warm starts: teachers, what they do state by state, and learning to do the same."""
