"""Options that take a part of a log, of every verb that reads one."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _option(name: str, metavar: str, what: str) -> Any:
    """One of them; `what` is taken."""
    return typer.Option(
        f"--{name}", metavar=metavar, help=f"only jobs {what}", show_default=False, rich_help_panel="Part of the log"
    )


TIME = "2026-01-31, 2026-01-31T12:00 (UTC), or seconds on the log's clock"

Partition = Annotated[str | None, _option("partition", "A,B,...", "of these partitions or queues")]
User = Annotated[str | None, _option("user", "A,B,...", "of these users")]
Account = Annotated[str | None, _option("account", "A,B,...", "of these accounts or groups")]
Since = Annotated[str | None, _option("since", "TIME", f"submitted then or later: {TIME}")]
Until = Annotated[str | None, _option("until", "TIME", "submitted before that time")]
