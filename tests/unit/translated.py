"""A piece of a program that tells what Numba translates."""

from __future__ import annotations

SEEN = """
from numba.core import event

class Seen(event.Listener):
    def on_start(self, event):
        translated.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Seen())
"""
"""From here on the names of functions that are translated are appended to the list `translated`."""
