"""Policies asked from outside: a machine of its own that carries out orders, and the same runs inside the kernel."""
