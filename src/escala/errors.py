"""The one error that users see: what is wrong, where, and how to mend it, in one line."""

from __future__ import annotations


class EscalaError(ValueError):
    """Bad input or an impossible request. The message is one line: what, where, how to mend it."""
